import { expect, test } from "vitest";
import { type Condition, timestampOf } from "../../api/schema/object.ts";
import { type BuildPhase, hasEnded, stateOfBuild } from "./build-phase.ts";

const conditionsOf = (...isTrue: readonly string[]): Condition[] =>
  ["Prepared", "Building", "Succeeded", "Failed", "Interrupted"].map((type) => ({
    type,
    status: isTrue.includes(type) ? "True" : "False",
    reason: type,
    message: "",
    lastTransitionTime: timestampOf(0),
  }));

test.for<{ title: string; conditions: Condition[] | undefined; phase: BuildPhase; ended: boolean }>([
  { title: "a build without conditions has not begun", conditions: undefined, phase: "Initial", ended: false },
  {
    title: "a build whose conditions are all False has not begun",
    conditions: conditionsOf(),
    phase: "Initial",
    ended: false,
  },
  { title: "a build that is prepared goes on", conditions: conditionsOf("Prepared"), phase: "Prepared", ended: false },
  { title: "a build that runs goes on", conditions: conditionsOf("Building"), phase: "Building", ended: false },
  { title: "a build with an image has ended", conditions: conditionsOf("Succeeded"), phase: "Succeeded", ended: true },
  { title: "a build that failed has ended", conditions: conditionsOf("Failed"), phase: "Failed", ended: true },
  {
    title: "a build that was taken back has ended",
    conditions: conditionsOf("Interrupted"),
    phase: "Interrupted",
    ended: true,
  },
  {
    title: "an end counts beside a Building that stayed True",
    conditions: conditionsOf("Building", "Failed"),
    phase: "Failed",
    ended: true,
  },
  {
    title: "an image counts beside a Prepared that stayed True",
    conditions: conditionsOf("Prepared", "Succeeded"),
    phase: "Succeeded",
    ended: true,
  },
])("$title", ({ conditions, phase, ended }) => {
  const state = stateOfBuild(conditions === undefined ? {} : { status: { conditions } });
  expect({ phase: state.phase, ended: hasEnded(state) }).toEqual({ phase, ended });
});
