import { expect, test } from "vitest";
import { countWork } from "../../../test/support/count-work.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { labels } from "../../api/names.ts";
import { judgeAmongMembers, judgeMembersOfPool, judgeObject } from "./judge-admission.ts";
import { type PoolForecast, planCluster } from "./plan-cluster.ts";

const reason = (at: number, place = at) =>
  `spec.config.systemd.units[${place}]: the unit u${at}.service has two contents`;

/** A pool that is refused for so many reasons, of which the first `standing` stood before, one place further up. */
const refusedPool = (reasons: number, standing: number): PoolForecast => ({
  pool: "worker",
  verdict: "refused",
  refusals: Array.from({ length: reasons }, (_, at) => ({
    code: "PathConflict" as const,
    reason: reason(at, at + 1),
    involves: [{ member: "99-new", path: `spec.config.systemd.units[${at + 1}]` }],
  })),
  stood: Array.from({ length: standing }, (_, at) => reason(at)),
});

test("reasons that stood before a change refuse nothing, wherever their items are by now [preview-judge-admission-1]", () => {
  const judge = (reasons: number, standing: number) =>
    judgeAmongMembers("99-new", { pools: [refusedPool(reasons, standing)] });
  expect(judge(3, 3)).toEqual({ verdict: "allowed", warnings: [] });
  expect(judge(3, 2)).toMatchObject({
    verdict: "refused",
    causes: [{ field: "spec.config.systemd.units[3]", message: reason(2, 3) }],
  });
});

test("thousands of reasons are compared with as many that stood before in time in proportion to their number [preview-judge-admission-2]", async () => {
  const pools = [refusedPool(3_001, 3_000)];
  for (const judge of [judgeAmongMembers, judgeMembersOfPool]) {
    const name = judge === judgeAmongMembers ? "99-new" : "worker";
    expect(await countWork(() => expect(judge(name, { pools })).toMatchObject({ verdict: "refused" }))).toBeLessThan(
      100_000,
    );
  }
});

const pool: MachineConfigPool = {
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  metadata: { name: "worker" },
  spec: {
    machineConfigSelector: { matchLabels: { [labels.role]: "worker" } },
    nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } },
  },
};
const withFiles = (name: string, files: readonly object[]): MachineConfig => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfig",
  metadata: { name, labels: { [labels.role]: "worker" } },
  spec: { config: { ignition: { version: "3.4.0" }, storage: { files } } },
});
const full = (path: string) => ({ path, contents: { source: "data:,x" } });
const bare = (path: string) => ({ path, mode: 0o600 });
const numbered = (one: (at: number) => object, count: number) => Array.from({ length: count }, (_, at) => one(at));

const judgedBeside = (standing: readonly MachineConfig[], written: MachineConfig) => {
  const cluster = (machineConfigs: readonly MachineConfig[]) => ({
    pools: [pool],
    machineConfigs,
    machineConfiguration: undefined,
    controllerConfig: undefined,
    nodes: [],
  });
  return judgeAmongMembers(written.metadata.name, planCluster(cluster(standing), cluster([...standing, written])));
};

test.for([
  [
    "paths that exclude each other",
    [
      withFiles(
        "70-above",
        numbered((at) => full(`/etc/x${at}`), 61),
      ),
      withFiles(
        "71-below",
        numbered((at) => full(`/etc/x${at}/y`), 60),
      ),
    ],
    withFiles("99-new", [full("/etc/x60/y")]),
    withFiles("99-new", [full("/etc/other")]),
  ],
  [
    "files without contents",
    [
      withFiles(
        "70-bare",
        numbered((at) => bare(`/etc/x${at}`), 60),
      ),
    ],
    withFiles("99-new", [bare("/etc/x60")]),
    withFiles("99-new", [full("/etc/other")]),
  ],
] as const)(
  "a MachineConfig that adds one to many %s is refused, and one that adds none is not [preview-judge-admission-3]",
  ([, standing, adding, harmless]) => {
    expect(judgedBeside(standing, adding)).toMatchObject({
      verdict: "refused",
      causes: [{ field: expect.stringContaining("spec.config.storage.files[0]") }],
    });
    expect(judgedBeside(standing, harmless)).toEqual({ verdict: "allowed", warnings: [] });
  },
);

test("a MachineConfig that gets one more conflict within itself is refused, however many it is stored with [preview-judge-admission-4]", () => {
  const files = numbered((at) => full(`/etc/x${at}`), 61);
  const stored = withFiles("99-own", [...files, ...numbered((at) => full(`/etc/x${at}/y`), 60)]);
  const more = withFiles("99-own", [...files, ...numbered((at) => full(`/etc/x${at}/y`), 61)]);
  expect(judgeObject("MachineConfig", stored, { before: stored }).verdict).toBe("allowed");
  expect(judgeObject("MachineConfig", more, { before: stored })).toMatchObject({
    verdict: "refused",
    causes: [{ field: "spec.config.storage.files[121].path" }],
  });
});
