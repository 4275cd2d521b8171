import { expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations } from "../../api/names.ts";
import { imageTrouble } from "./image-trouble.ts";

const began = Date.parse("2026-05-04T10:00:00Z");
const poolWith = (type: string, status: "True" | "False") =>
  ({
    metadata: { name: "worker" },
    status: {
      conditions: [
        { type, status, reason: "x", message: "quota exceeded", lastTransitionTime: "2026-05-04T10:00:00Z" },
      ],
    },
  }) as Pick<MachineConfigPool, "metadata" | "status">;
const build = (type: string, reason: string, notes: Readonly<Record<string, string>> = {}) =>
  ({
    metadata: { name: "b-1", creationTimestamp: "2026-05-04T10:00:00Z", annotations: notes },
    spec: {
      machineConfig: { name: "r1" },
      machineOSConfig: { name: "worker" },
      renderedImagePushSpec: "r.example/os:1",
    },
    status: {
      conditions: [
        { type, status: "True", reason, message: "the registry is gone", lastTransitionTime: "2026-05-04T10:00:00Z" },
      ],
    },
  }) as unknown as MachineOSBuild;

test.for([
  {
    title: "a build that fails",
    pool: poolWith("ImageBuildDegraded", "True"),
    says: /cannot be built since .*quota exceeded; mco build explain worker/,
  },
  {
    title: "inputs that are missing",
    pool: poolWith("ImageInputsValid", "False"),
    says: /cannot be planned since .*quota exceeded/,
  },
  {
    title: "a build that waits, and none runs",
    builds: [build("Prepared", "InputChanged")],
    says: /the build b-1 waits since .*the registry is gone/,
  },
  { title: "a build that runs", builds: [build("Building", "Running")], says: undefined },
  {
    title: "a build with a next attempt",
    builds: [build("Prepared", "RetryScheduled", { [annotations.nextAttemptAt]: "2026-05-04T10:20:00Z" })],
    says: undefined,
  },
  { title: "a pool whose builds work", pool: poolWith("ImageBuildDegraded", "False"), says: undefined },
  { title: "a pool whose inputs are valid", pool: poolWith("ImageInputsValid", "True"), says: undefined },
])(
  "$title, for ten minutes, is what the operator says, and not before [operator-image-trouble-1]",
  ({ pool = poolWith("Updated", "True"), builds = [], says }) => {
    expect(imageTrouble(pool, builds, began + 599_999)).toBeUndefined();
    const told = imageTrouble(pool, builds, began + 600_000);
    if (says === undefined) expect(told).toBeUndefined();
    else expect(told).toMatch(says);
  },
);
