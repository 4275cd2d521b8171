import { expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations, labels } from "../../api/names.ts";
import { imageBlocker } from "./image-blocker.ts";

const poolNamed = (name: string, more: { readonly isDegraded?: boolean; readonly isCustom?: boolean } = {}) =>
  ({
    metadata: { name, labels: more.isCustom === true ? {} : { [labels.builtInPool]: "" } },
    spec: { configuration: { name: "r2" } },
    status: {
      conditions:
        more.isDegraded === true ? [{ type: "ImageBuildDegraded", status: "True", reason: "x", message: "413" }] : [],
    },
  }) as unknown as MachineConfigPool;
const build = (type: string, reason = "x", config = "r2", notes: Readonly<Record<string, string>> = {}) =>
  ({
    metadata: { name: "b-1", annotations: notes },
    spec: { machineConfig: { name: config } },
    status: { conditions: [{ type, status: "True", reason, message: "ended by hand" }] },
  }) as unknown as MachineOSBuild;

test.for([
  { title: "a pool without images", pool: poolNamed("worker"), builds: [], blocks: undefined },
  { title: "a build that fails", pool: poolNamed("worker", { isDegraded: true }), builds: [], blocks: "BuildFailed" },
  {
    title: "the same in a custom pool",
    pool: poolNamed("infra", { isDegraded: true, isCustom: true }),
    builds: [],
    blocks: undefined,
  },
  {
    title: "a build that was ended",
    pool: poolNamed("worker"),
    builds: [build("Interrupted")],
    blocks: "InterruptedBuild",
  },
  {
    title: "one of an earlier target",
    pool: poolNamed("worker"),
    builds: [build("Interrupted", "x", "r1")],
    blocks: undefined,
  },
  {
    title: "one that another replaced",
    pool: poolNamed("worker"),
    builds: [build("Interrupted", "Superseded")],
    blocks: undefined,
  },
  {
    title: "one that has a next attempt",
    pool: poolNamed("worker"),
    builds: [build("Interrupted", "x", "r2", { [annotations.nextAttemptAt]: "2026-01-01T00:00:00Z" })],
    blocks: undefined,
  },
  { title: "a running build of workers", pool: poolNamed("worker"), builds: [build("Building")], blocks: undefined },
  {
    title: "a running build of the control plane",
    pool: poolNamed("master"),
    builds: [build("Building")],
    blocks: "BuildRunning",
  },
  { title: "a build that succeeded", pool: poolNamed("master"), builds: [build("Succeeded")], blocks: undefined },
])("$title: what it means for an upgrade [pool-image-blocker-1]", ({ pool, builds, blocks }) => {
  const [blocker, ...others] = imageBlocker(pool, builds);
  expect(others).toEqual([]);
  expect(blocker?.reason).toBe(blocks);
  if (blocker !== undefined) expect(blocker.remedy).toContain("mco build");
});
