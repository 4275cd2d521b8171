import { expect, test } from "vitest";
import { listText } from "./list-text.ts";

test.for([
  { title: "no items are no text", items: [], most: 3, says: "" },
  { title: "a short list is shown whole", items: ["a", "b", "c"], most: 3, says: "a, b, c" },
  { title: "a long list says how many it leaves out", items: ["a", "b", "c", "d"], most: 2, says: "a, b and 2 more" },
  { title: "the first of many count as all of them", items: ["a", "b"], most: 2, count: 9, says: "a, b and 7 more" },
])("$title", ({ items, most, count, says }) => {
  expect(listText(items, most, count)).toBe(says);
});
