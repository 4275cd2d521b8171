import { describe, expect, test } from "vitest";
import type { FailureClass } from "./build-failures.ts";
import { type FailureRecord, retryAfterFailure, readFailure, readRetries } from "./build-retry.ts";

const failureOf = (class_: FailureClass, more: object = {}) => ({
  class: class_,
  step: "push",
  cause: "it said no",
  excerpt: "",
  ...more,
});
const now = "2026-01-01T00:00:00Z";
const after = (
  class_: FailureClass,
  more: { retries?: number; maxRetries?: number; before?: FailureRecord; attempt?: number; chance?: number } = {},
) =>
  retryAfterFailure({
    failure: failureOf(class_),
    before: undefined,
    attempt: 1,
    retries: 0,
    maxRetries: 5,
    now,
    chance: 0.5,
    ...more,
  });

describe("after a failed attempt", () => {
  test("what is charged is tried again five times, with growing waits, and the sixth failure is the end", () => {
    let before: FailureRecord | undefined;
    const seen = [];
    for (let attempt = 1, retries = 0; attempt <= 6; attempt += 1) {
      const decision = after("PushUnavailable", { retries, attempt, ...(before === undefined ? {} : { before }) });
      seen.push(
        decision.decision === "again" ? [decision.record.charge?.to, decision.afterMs / 1000] : [decision.reason],
      );
      retries = decision.record.charge?.to ?? retries;
      before = decision.record;
    }
    expect(seen).toEqual([[1, 30], [2, 60], [3, 120], [4, 240], [5, 480], ["RetryLimitReached"]]);
    expect(before).toMatchObject({ attempt: 6, counts: { PushUnavailable: 6 } });
  });

  test("the wait is at most ten minutes, spread by a fifth", () => {
    expect(after("PushUnavailable", { retries: 12, maxRetries: 20, chance: 0.5 })).toMatchObject({ afterMs: 600_000 });
    expect(after("PushUnavailable", { chance: 0 })).toMatchObject({ afterMs: 24_000 });
    expect(after("PushUnavailable", { chance: 1 })).toMatchObject({ afterMs: 36_000 });
  });

  test("a permanent class ends it at once, and leaves the counter as it was", () => {
    const decision = after("UserStepFailed", { retries: 2 });
    expect(decision).toMatchObject({ decision: "failed", reason: "UserStepFailed" });
    expect(decision.record.charge).toBeUndefined();
    expect(decision.message).toBe(
      "push failed on attempt 1/6: it said no. Correct the instruction; its last lines are in the failure's excerpt.",
    );
  });

  test.for([
    { class_: "PushDenied", times: 1 },
    { class_: "Timeout", times: 1 },
    { class_: "VerifyFailed", times: 2 },
  ] satisfies readonly { class_: FailureClass; times: number }[])(
    "$class_ is retried $times times, each counted, and then ends with its own class",
    ({ class_, times }) => {
      let before: FailureRecord | undefined;
      for (let attempt = 1; attempt <= times; attempt += 1) {
        const decision = after(class_, { attempt, retries: attempt - 1, ...(before === undefined ? {} : { before }) });
        expect(decision).toMatchObject({ decision: "again", record: { charge: { from: attempt - 1, to: attempt } } });
        before = decision.record;
      }
      expect(
        after(class_, { attempt: times + 1, retries: times, ...(before === undefined ? {} : { before }) }),
      ).toMatchObject({ decision: "failed", reason: class_ });
    },
  );

  test("a lost node is not charged three times, and then is", () => {
    let before: FailureRecord | undefined;
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const decision = after("NodeLost", { attempt, retries: 5, ...(before === undefined ? {} : { before }) });
      expect(decision.decision).toBe("again");
      expect(decision.record.charge).toBeUndefined();
      before = decision.record;
    }
    expect(after("NodeLost", { attempt: 4, retries: 0, ...(before === undefined ? {} : { before }) })).toMatchObject({
      decision: "again",
      record: { charge: { to: 1 } },
    });
    expect(after("NodeLost", { attempt: 4, retries: 5, ...(before === undefined ? {} : { before }) })).toMatchObject({
      decision: "failed",
      reason: "RetryLimitReached",
    });
  });

  test("with no retries allowed, the first failure that would be tried again is the end", () => {
    expect(after("PushUnavailable", { maxRetries: 0 })).toMatchObject({
      decision: "failed",
      reason: "RetryLimitReached",
    });
  });

  test("after the limit was lowered, the next failure is the end", () => {
    expect(after("PushUnavailable", { retries: 4, maxRetries: 2 })).toMatchObject({
      decision: "failed",
      reason: "RetryLimitReached",
    });
  });

  test("the message at the limit names the last class and the remedy", () => {
    const decision = after("PushUnavailable", { retries: 5 });
    expect(decision.message).toContain("5 of 5 retries are spent");
    expect(decision.message).toContain("PushUnavailable");
    expect(decision.message).toContain("mco build start");
  });

  test("a failure keeps when its class was first seen", () => {
    const first = after("PushUnavailable").record;
    const second = retryAfterFailure({
      failure: failureOf("PushUnavailable"),
      before: first,
      attempt: 2,
      retries: 1,
      maxRetries: 5,
      now: "2026-01-01T00:01:00Z",
      chance: 0.5,
    });
    expect(second.record).toMatchObject({ firstSeen: now, lastSeen: "2026-01-01T00:01:00Z" });
  });
});

test.for([
  { text: undefined, retries: 0, valid: true },
  { text: "3", retries: 3, valid: true },
  { text: "", retries: 0, valid: false },
  { text: "-1", retries: 0, valid: false },
  { text: "many", retries: 0, valid: false },
  { text: "1.5", retries: 0, valid: false },
])("a counter of $text counts as $retries", ({ text, retries, valid }) => {
  expect(readRetries(text)).toEqual({ retries, valid });
});

test("a record is read as it was written, and what is none is none", () => {
  const { record } = after("PushUnavailable");
  expect(readFailure(JSON.stringify(record))).toEqual(record);
  for (const text of [undefined, "", "null", "{}", '{"class":"Odd","attempt":1}'])
    expect(readFailure(text)).toBeUndefined();
});
