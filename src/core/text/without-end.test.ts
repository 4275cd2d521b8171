import { expect, test } from "vitest";
import { withoutEnd } from "./without-end.ts";

test.for([
  ["a b \t ", " \t", "a b"],
  ["  ", " ", ""],
  ["", " ", ""],
  ["a//b", "/", "a//b"],
  ["/", "/", ""],
] as const)("%j without %j at its end is %j [without-end-1]", ([text, characters, left]) => {
  expect(withoutEnd(text, characters)).toBe(left);
});

test("a long run that ends before the text costs one look [without-end-2]", () => {
  const text = `${" ".repeat(2_000_000)}x`;
  const began = process.cpuUsage();
  expect(withoutEnd(text, " ")).toBe(text);
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(2);
});
