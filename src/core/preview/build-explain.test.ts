import { expect, test } from "vitest";
import { annotations } from "../../api/names.ts";
import { likelyEnd, nextAttempt } from "./build-explain.ts";

const now = Date.parse("2026-05-04T10:00:00Z");
const scheduled = (at: string) => ({ metadata: { name: "b", annotations: { [annotations.nextAttemptAt]: at } } });

test.for([
  {
    title: "a retry to come",
    at: "2026-05-04T10:05:00Z",
    phase: "Prepared",
    says: ["it is tried again at 2026-05-04T10:05:00Z"],
  },
  {
    title: "a retry that is due",
    at: "2026-05-04T09:59:00Z",
    phase: "Prepared",
    says: ["it is tried again when the builder gets to it"],
  },
  {
    title: "an ended build with a next one",
    at: "2026-05-04T10:05:00Z",
    phase: "Interrupted",
    says: ["it is tried again at 2026-05-04T10:05:00Z"],
  },
  { title: "a build at the limit of its retries", at: "2026-05-04T09:59:00Z", phase: "Failed", says: [] },
  { title: "a build that succeeded", at: "2026-05-04T10:05:00Z", phase: "Succeeded", says: [] },
] as const)("$title names no time in the past [preview-build-explain-1]", ({ at, phase, says }) => {
  expect(nextAttempt(scheduled(at), { phase }, now)).toEqual(says);
});

test("a build that takes longer than others has no likely end [preview-build-explain-2]", () => {
  expect(likelyEnd(now - 60_000, 120_000, now)).toBe(
    ", which is likely around 2026-05-04T10:01:00Z (builds of this pool take 2m00s)",
  );
  expect(likelyEnd(now - 120_000, 120_000, now)).toBe("; it takes longer than usual (builds of this pool take 2m00s)");
  expect(likelyEnd(now, undefined, now)).toBe("");
});
