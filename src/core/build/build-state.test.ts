import { describe, expect, test } from "vitest";
import { conditionsOfBuild, isNearlyDone, mayFollow, timesOf, stepReason } from "./build-state.ts";
import { type BuildPhase, stateOfBuild } from "../config/build-phase.ts";

const phases: readonly BuildPhase[] = ["Initial", "Prepared", "Building", "Succeeded", "Failed", "Interrupted"];

test("a build may start in any state, goes from preparing to building, from a transient state to an end, and never leaves an end", () => {
  const legal = phases.flatMap((from) =>
    phases.filter((to) => from !== to && mayFollow(from, to)).map((to) => `${from}→${to}`),
  );
  expect(legal).toEqual([
    ...["Prepared", "Building", "Succeeded", "Failed", "Interrupted"].map((to) => `Initial→${to}`),
    ...["Building", "Succeeded", "Failed", "Interrupted"].map((to) => `Prepared→${to}`),
    ...["Succeeded", "Failed", "Interrupted"].map((to) => `Building→${to}`),
  ]);
});

describe("conditions", () => {
  const now = Date.UTC(2026, 0, 1);
  test("of its phases exactly one is True, none at the beginning, and what they say is read back", () => {
    for (const phase of phases) {
      const state = {
        phase,
        reason: phase === "Initial" ? "" : "Because",
        message: phase === "Initial" ? "" : "so it is",
      };
      const conditions = conditionsOfBuild(state, undefined, now);
      expect(conditions).toHaveLength(7);
      expect(conditions.slice(0, 5).filter(({ status }) => status === "True")).toHaveLength(
        phase === "Initial" ? 0 : 1,
      );
      expect(stateOfBuild({ status: { conditions: [...conditions] } })).toEqual(state);
      for (const condition of conditions) expect(condition.reason).not.toBe("");
    }
  });

  test("the time of a transition stays while the status does", () => {
    const first = conditionsOfBuild({ phase: "Building", reason: "StepPush", message: "" }, undefined, now);
    const second = conditionsOfBuild({ phase: "Building", reason: "StepVerify", message: "" }, first, now + 60_000);
    expect(second.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual(
      first.map(({ lastTransitionTime }) => lastTransitionTime),
    );
    const third = conditionsOfBuild({ phase: "Succeeded", reason: "Ready", message: "" }, second, now + 120_000);
    expect(
      third.filter(({ lastTransitionTime }) => lastTransitionTime === "2026-01-01T00:02:00Z").map(({ type }) => type),
    ).toEqual(["Building", "Succeeded", "Reconciling"]);
  });
});

test.for([
  { step: "pull-base", reason: "StepPullBase" },
  { step: "user:3", reason: "StepUser" },
  { step: "push", reason: "StepPush" },
  { step: "", reason: "StepUnknown" },
])("the step $step is reported as $reason", ({ step, reason }) => {
  expect(stepReason(step)).toBe(reason);
});

test("a run that pushes is nearly done, one that pulls is not", () => {
  expect(isNearlyDone({ phase: "Building", reason: "StepPush", message: "" })).toBe(true);
  expect(isNearlyDone({ phase: "Building", reason: "StepPullBase", message: "" })).toBe(false);
});

test("the end is after the start, in whole seconds, whatever the clocks said", () => {
  const now = Date.UTC(2026, 0, 1, 0, 0, 10);
  expect(timesOf("2026-01-01T00:00:05.300Z", "2026-01-01T00:00:05.900Z", now)).toEqual({
    buildStart: "2026-01-01T00:00:05Z",
    buildEnd: "2026-01-01T00:00:06Z",
  });
  expect(timesOf("2026-01-01T00:00:08Z", "2026-01-01T00:00:02Z", now)).toEqual({
    buildStart: "2026-01-01T00:00:08Z",
    buildEnd: "2026-01-01T00:00:09Z",
  });
  expect(timesOf(undefined, undefined, now)).toEqual({
    buildStart: "2026-01-01T00:00:10Z",
    buildEnd: "2026-01-01T00:00:11Z",
  });
});

test("times that no object can hold are those of now [build-state-1]", () => {
  const now = Date.parse("2026-01-01T00:00:10Z");
  for (const odd of ["+275760-09-13T00:00:00Z", "9999-12-31T23:59:59Z", "-000001-01-01T00:00:00Z", "long ago"])
    expect(timesOf(odd, odd, now)).toEqual({
      buildStart: "2026-01-01T00:00:10Z",
      buildEnd: "2026-01-01T00:00:11Z",
    });
});
