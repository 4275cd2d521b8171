import { describe, expect, test } from "vitest";
import type { Condition } from "./object.ts";
import { setCondition } from "./conditions.ts";

const now = Date.UTC(2030, 0, 2);
const [then, stamp] = ["2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"];
const said = (more: Partial<Condition> = {}): Condition => ({
  type: "Ready",
  status: "True",
  reason: "AsExpected",
  message: "",
  lastTransitionTime: then,
  ...more,
});
const word = (more: Partial<Condition> = {}) => {
  const { lastTransitionTime: _, ...worded } = said(more);
  return worded;
};
const other = said({ type: "Other" });

describe("setCondition", () => {
  test.for([
    {
      title: "a new one comes last",
      before: [other],
      next: word(),
      after: [other, said({ lastTransitionTime: stamp })],
    },
    {
      title: "there need be none before",
      before: undefined,
      next: word(),
      after: [said({ lastTransitionTime: stamp })],
    },
    {
      title: "another status begins now",
      before: [said(), other],
      next: word({ status: "False" }),
      after: [said({ status: "False", lastTransitionTime: stamp }), other],
    },
    {
      title: "other words keep the time",
      before: [said(), other],
      next: word({ message: "m", reason: "R" }),
      after: [said({ message: "m", reason: "R" }), other],
    },
    {
      title: "a time that is missing is filled in",
      before: [{ ...said(), lastTransitionTime: undefined as unknown as string }],
      next: word(),
      after: [said({ lastTransitionTime: stamp })],
    },
    {
      title: "what the writer no longer says is gone",
      before: [said({ observedGeneration: 1 })],
      next: word(),
      after: [said()],
    },
  ])("$title", ({ before, next, after }) => {
    expect(setCondition(before, next, now)).toEqual(after);
  });

  test("what says the same already stays the very object", () => {
    const before = [said(), other];
    const after = setCondition(before, word(), now);
    expect(after.every((condition, index) => condition === before[index])).toBe(true);
  });
});
