import { expect, test } from "vitest";
import { selectorMatches } from "./object.ts";

test.for(["constructor", "toString", "hasOwnProperty"])(
  "an object without labels has none that is called %s [api-selectors-1]",
  (key) => {
    const matches = (operator: "Exists" | "DoesNotExist") =>
      selectorMatches({ matchExpressions: [{ key, operator }] }, {});
    expect([matches("Exists"), matches("DoesNotExist")]).toEqual([false, true]);
  },
);
