import { describe, expect, test } from "vitest";
import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations, labels, nodeStates } from "../../api/names.ts";
import { factsOf } from "../pool/pool-queries.ts";
import { clusterOperatorConditions } from "./cluster-operator-status.ts";
import { extensionOf, initialConditions, requiredPools, versionsOf } from "./operator-report.ts";

const now = Date.UTC(2030, 0, 1);
const pool = (
  name: string,
  target: string,
  more: { readonly paused?: boolean; readonly required?: boolean } = {},
): MachineConfigPool => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  metadata: { name, generation: 1, labels: more.required === false ? {} : { [labels.requiredForUpgrade]: "" } },
  spec: {
    nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } },
    configuration: { name: target },
    ...(more.paused === undefined ? {} : { paused: more.paused }),
  },
});
const node = (name: string, role: string, config: string, desired = config): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: {
    name,
    labels: { [`node-role.kubernetes.io/${role}`]: "" },
    annotations: {
      [annotations.currentConfig]: config,
      [annotations.desiredConfig]: desired,
      [annotations.state]: nodeStates.done,
    },
  },
  spec: {},
  status: { conditions: [{ type: "Ready", status: "True" }] },
});
const facts = (pools: readonly MachineConfigPool[], nodes: readonly Node[]) =>
  factsOf({ pools, nodes, machineConfigNodes: [] }, now);
const image =
  (has: string, overridden = false) =>
  () => ({ image: has, overridden });

describe("pools that an upgrade waits for", () => {
  const release = { osImage: "os@sha256:2" };
  test.for([
    {
      title: "have arrived when every machine has what was rendered for the release",
      cluster: facts([pool("master", "r2")], [node("m", "master", "r2")]),
      of: image("os@sha256:2"),
      outcome: { kind: "done" },
    },
    {
      title: "have not while a machine is on its way",
      cluster: facts([pool("master", "r2")], [node("m", "master", "r1", "r2")]),
      of: image("os@sha256:2"),
      outcome: { kind: "progressing", message: expect.stringContaining("pool master: ") },
    },
    {
      title: "have not when they are at what the release before rendered",
      cluster: facts([pool("master", "r1")], [node("m", "master", "r1")]),
      of: image("os@sha256:1"),
      outcome: { kind: "progressing", message: "pool master has not been rendered for the release yet" },
    },
    {
      title: "have not when what they are at cannot be read",
      cluster: facts([pool("master", "r1")], [node("m", "master", "r1")]),
      of: () => undefined,
      outcome: { kind: "progressing" },
    },
    {
      title: "are updated if their OS image is overridden",
      cluster: facts([pool("master", "r1")], [node("m", "master", "r1")]),
      of: image("os@sha256:own", true),
      outcome: { kind: "done" },
    },
    {
      title: "are no matter of time when one is paused with updates waiting",
      cluster: facts([pool("master", "r2", { paused: true })], [node("m", "master", "r1")]),
      of: image("os@sha256:2"),
      outcome: { kind: "failed", message: expect.stringMatching(/master.*paused.*spec.paused to false/) },
    },
    {
      title: "are not custom pools",
      cluster: facts([pool("infra", "r2", { required: false, paused: true })], [node("i", "infra", "r1")]),
      of: image("os@sha256:1"),
      outcome: { kind: "done" },
    },
  ])("$title [operator-report-4]", ({ cluster, of, outcome }) => {
    expect(requiredPools(cluster, release, of)).toMatchObject({ task: "RequiredPools", ...outcome });
  });
});

describe("what a ClusterOperator shows beside its conditions", () => {
  test("one line on each pool, and the last errors while there are any [operator-report-3]", () => {
    const cluster = facts(
      [pool("worker", "r2"), pool("master", "r1")],
      [node("m", "master", "r1"), node("w", "worker", "r1", "r2")],
    );
    expect(extensionOf(cluster, [{ task: "A", kind: "done" }])).toEqual({
      master: "all 1 nodes are at latest configuration r1",
      worker: expect.stringContaining("out of 1 nodes are updating to latest configuration r2"),
    });
    expect(
      extensionOf(cluster, [
        { task: "A", kind: "failed", message: "b" },
        { task: "C", kind: "failed", message: "d" },
      ]),
    ).toMatchObject({ lastSyncError: "A: b; C: d" });
  });

  test("is no longer than a condition may be, whatever a task was told [operator-report-5]", () => {
    const outcomes = [{ task: "A", kind: "failed", message: "x".repeat(2_000_000) }] as const;
    const cluster = facts([], []);
    expect(extensionOf(cluster, outcomes)["lastSyncError"]).toHaveLength(32_768);
    const conditions = clusterOperatorConditions({ version: "1", reached: undefined, outcomes, cluster }, [], now);
    for (const { message } of conditions) expect(message?.length).toBeLessThanOrEqual(32_768);
  });

  test("release and image move together, and neither before everything has arrived [operator-report-2]", () => {
    const current = { version: "2", image: "suite@2" };
    expect(versionsOf(undefined, undefined, current)).toBeUndefined();
    const before = [
      { name: "operator", version: "1" },
      { name: "operator-image", version: "suite@1" },
    ];
    expect(versionsOf("1", before, current)).toEqual(before);
    expect(versionsOf("2", before, current)).toEqual([
      { name: "operator", version: "2" },
      { name: "operator-image", version: "suite@2" },
    ]);
    expect(versionsOf("1", [{ name: "operator", version: "1" }], current)).toEqual([
      { name: "operator", version: "1" },
    ]);
  });

  test("nothing is claimed before anybody looked [operator-report-1]", () => {
    expect(initialConditions(now).map(({ type, status, reason }) => [type, status, reason])).toEqual([
      ["Available", "False", undefined],
      ["Progressing", "False", undefined],
      ["Degraded", "False", undefined],
      ["Upgradeable", "Unknown", "NoData"],
    ]);
  });
});
