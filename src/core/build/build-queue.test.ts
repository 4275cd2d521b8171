import { expect, test } from "vitest";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations } from "../../api/names.ts";
import { stuckBuild } from "./build-queue.ts";

const build = (name: string, minute: number, condition: readonly [string, string] | undefined, notes: object = {}) =>
  ({
    metadata: { name, creationTimestamp: `2026-01-01T00:0${minute}:00Z`, annotations: notes },
    spec: {},
    status: {
      conditions:
        condition === undefined ? [] : [{ type: condition[0], status: "True", reason: condition[1], message: "m" }],
    },
  }) as unknown as MachineOSBuild;

test.for([
  { title: "nothing", builds: [], stuck: undefined },
  {
    title: "one that waits behind a running one",
    builds: [build("a", 1, ["Building", "Running"]), build("b", 2, undefined)],
    stuck: undefined,
  },
  {
    title: "ended ones",
    builds: [build("a", 1, ["Succeeded", "Ready"]), build("b", 2, ["Failed", "X"])],
    stuck: undefined,
  },
  {
    title: "one that waits for its next attempt",
    builds: [build("a", 1, ["Prepared", "RetryScheduled"], { [annotations.nextAttemptAt]: "2026-01-01T01:00:00Z" })],
    stuck: undefined,
  },
  {
    title: "the oldest that waits while none runs",
    builds: [build("b", 2, undefined), build("a", 1, ["Prepared", "InputChanged"])],
    stuck: "a",
  },
  {
    title: "one that waits after another has ended",
    builds: [build("a", 1, ["Succeeded", "Ready"]), build("b", 2, undefined)],
    stuck: "b",
  },
])("of $title, the stuck build is $stuck [build-queue-1]", ({ builds, stuck }) => {
  expect(stuckBuild(builds)?.name).toBe(stuck);
});
