import { describe, expect, test } from "vitest";
import { notWithin, shown } from "./not-within.ts";

describe("what a wait saw last", () => {
  test.for([
    ["nothing", undefined, "nothing"],
    ["a number", 3, "3"],
    ["a list in its order", [3, 1], "[3,1]"],
    ["an error by its message", new TypeError("no"), "TypeError: no"],
    [
      "an object's status before the rest, and nothing that the server adds",
      { kind: "Node", metadata: { uid: "1", name: "a" }, status: { phase: "x" } },
      '{"status":{"phase":"x"},"metadata":{"name":"a"},"kind":"Node"}',
    ],
  ] as const)("%s", ([, value, text]) => expect(shown(value)).toBe(text));

  test("is cut if it is long", () => expect(shown("x".repeat(1000), 10)).toBe(`"${"x".repeat(9)}…`));

  test("stands in the failure beside what was waited for and how long", () =>
    expect(notWithin(3, "a pod", { ready: false }).message).toBe('not within 3 s: a pod; last seen: {"ready":false}'));
});
