import { describe, expect, test } from "vitest";
import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations } from "../../api/names.ts";
import {
  describeRetention,
  recreatedConfig,
  retainedConfigs,
  retentionOf,
  usesOfBuild,
  usesOfMachineConfigNode,
  usesOfNode,
  usesOfPool,
} from "./retained-configs.ts";
import { poolOfRendered } from "../config/is-rendered.ts";

const owner = {
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  name: "worker",
  uid: "pool-uid",
  controller: true,
};
const rendered = (name: string, created: string, rolledOut?: string): MachineConfig =>
  ({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: {
      name,
      uid: `${name}-uid`,
      resourceVersion: "7",
      creationTimestamp: created,
      ownerReferences: [owner],
      annotations: { a: "b", ...(rolledOut === undefined ? {} : { [annotations.rolledOutAt]: rolledOut }) },
    },
    spec: { osImageURL: name },
  }) as unknown as MachineConfig;

const hour = 3_600_000;
const policy = { retainedConfigs: 2, retentionQuietSeconds: 3600 };
const judge = (configs: readonly MachineConfig[], more: Partial<Parameters<typeof retainedConfigs>[0]> = {}) => {
  const verdicts = retainedConfigs({
    rendered: configs,
    policy,
    usersOf: () => [],
    unusedSince: () => 0,
    now: hour,
    ...more,
  });
  return verdicts.map((verdict) => `${verdict.name} ${verdict.keep ? verdict.because : "goes"}`);
};
/** The name of a rendered config of the pool worker; its hash ends with the given digits. */
const hashed = (digits: string) => `rendered-worker-${digits.padStart(32, "0")}`;
const five = ["a", "b", "c", "d", "e"].map((name, index) => rendered(name, `2030-01-0${index + 1}T00:00:00Z`));

describe("retainedConfigs", () => {
  test("used configs and the last few stay, the rest is removed, oldest first [pool-retained-configs-1]", () => {
    expect(
      judge(five.toReversed(), { usersOf: (config) => (config === "b" ? ["node w (currentConfig)"] : []) }),
    ).toEqual(["a goes", "b used", "c goes", "d recent", "e recent"]);
  });

  test("what is used takes no place from those that are kept for going back [pool-retained-configs-2]", () => {
    expect(judge(five, { usersOf: (config) => (config === "e" || config === "d" ? ["pool"] : []) })).toEqual([
      "a goes",
      "b recent",
      "c recent",
      "d used",
      "e used",
    ]);
  });

  test("what was rolled out is kept before what never was [pool-retained-configs-3]", () => {
    const [a, b, c, d] = [
      rendered("a", "2030-01-01T00:00:00Z", "2030-01-01T01:00:00Z"),
      rendered("b", "2030-01-02T00:00:00Z", "2030-01-02T01:00:00Z"),
      rendered("c", "2030-01-03T00:00:00Z"),
      rendered("d", "2030-01-04T00:00:00Z"),
    ];
    expect(judge([a, b, c, d])).toEqual(["c goes", "d goes", "a recent", "b recent"]);
  });

  test("an unused one is left alone for the quiet time; one whose last use is not known, from now on [pool-retained-configs-4]", () => {
    expect(judge(five, { now: hour - 1 })).toEqual(["a quiet", "b quiet", "c quiet", "d recent", "e recent"]);
    expect(judge(five, { unusedSince: () => undefined })).toEqual([
      "a quiet",
      "b quiet",
      "c quiet",
      "d recent",
      "e recent",
    ]);
    expect(judge(five, { policy: { ...policy, retentionQuietSeconds: 0 }, now: 0 })).toEqual([
      "a goes",
      "b goes",
      "c goes",
      "d recent",
      "e recent",
    ]);
  });

  test("of a pool that is gone nothing is kept for going back, but what is used is [pool-retained-configs-5]", () => {
    expect(
      judge(five, { policy: undefined, usersOf: (config) => (config === "c" ? ["node w (currentConfig)"] : []) }),
    ).toEqual(["a goes", "b goes", "c used", "d goes", "e goes"]);
  });

  test("one that no machine was given is no config to go back to, and goes after a minute [pool-retained-configs-9]", () => {
    const isPassing = (config: string) => config === "d" || config === "e";
    const after = (now: number) => judge(five, { isPassing, now });
    expect(after(59_999)).toEqual(["a quiet", "b recent", "c recent", "d quiet", "e quiet"]);
    expect(after(60_000)).toEqual(["a quiet", "b recent", "c recent", "d goes", "e goes"]);
    expect(judge(five, { isPassing, usersOf: (config) => (config === "e" ? ["pool worker (target)"] : []) })).toEqual([
      "a goes",
      "b recent",
      "c recent",
      "d goes",
      "e used",
    ]);
  });

  test("each says why [pool-retained-configs-6]", () => {
    const say = (more: Partial<Parameters<typeof retainedConfigs>[0]>) =>
      retainedConfigs({
        rendered: five,
        policy,
        usersOf: (config) => (config === "b" ? ["node w (currentConfig)", "pool worker (status)"] : []),
        unusedSince: () => 0,
        now: hour,
        ...more,
      }).map(describeRetention);
    expect(say({})).toEqual([
      "nothing has used it since 1970-01-01T00:00:00Z: it goes",
      "used by node w (currentConfig), pool worker (status)",
      "nothing has used it since 1970-01-01T00:00:00Z: it goes",
      "kept for going back, 2 of 2",
      "kept for going back, 1 of 2",
    ]);
    expect(say({ now: 0 })[0]).toBe("unused; it goes after 1970-01-01T01:00:00Z");
    expect(say({ unusedSince: () => undefined })[0]).toBe("unused; it goes when nothing has used it for 3600 s");
  });
});

describe("who uses a rendered config", () => {
  test("pools, nodes, MachineConfigNodes and builds name theirs [pool-retained-configs-7]", () => {
    const pool = {
      metadata: { name: "worker", annotations: { [annotations.quarantined]: '[{"config":"q"}]' } },
      spec: { configuration: { name: "t" } },
      status: { configuration: { name: "s" } },
    } as unknown as MachineConfigPool;
    const node = {
      metadata: {
        name: "w",
        annotations: {
          [annotations.currentConfig]: "c",
          [annotations.desiredConfig]: "d",
          [annotations.firstPivotConfig]: "f",
        },
      },
    } as unknown as Node;
    const machineConfigNode = {
      metadata: { name: "w", annotations: { [annotations.refusedTargets]: '[{"config":"r"}]' } },
      spec: { configVersion: { desired: "d" } },
      status: { configVersion: { desired: "not-yet-set", current: "c" } },
    } as unknown as MachineConfigNode;
    const build = {
      apiVersion: "x",
      kind: "MachineOSBuild",
      metadata: { name: "b" },
      spec: { machineConfig: { name: "i" }, machineOSConfig: { name: "p" }, renderedImagePushSpec: "r/i:t" },
    };
    const all = [
      ...usesOfPool(pool),
      ...usesOfNode(node),
      ...usesOfMachineConfigNode(machineConfigNode),
      ...usesOfBuild(build),
    ];
    expect(all.map(({ config, user }) => `${config}: ${user}`)).toEqual([
      "t: pool worker (target)",
      "s: pool worker (status)",
      "q: pool worker (quarantined)",
      "c: node w (currentConfig)",
      "d: node w (desiredConfig)",
      "f: node w (firstPivotConfig)",
      "d: MachineConfigNode w (spec)",
      "c: MachineConfigNode w (status)",
      "r: MachineConfigNode w (refused)",
      "i: MachineOSBuild b (spec)",
    ]);
  });

  test("from whole lists: why one stays, and nothing of what is no rendered config", () => {
    const pool = {
      metadata: { name: "worker", annotations: { [annotations.retainedConfigs]: "1" } },
      spec: { configuration: { name: hashed("e") } },
    } as unknown as MachineConfigPool;
    const node = {
      metadata: {
        name: "w",
        annotations: { [annotations.currentConfig]: hashed("a"), [annotations.desiredConfig]: hashed("e") },
      },
    } as unknown as Node;
    const other = { apiVersion: "x", kind: "MachineConfig", metadata: { name: "99-x" } } as unknown as MachineConfig;
    const named = five.map((config) => ({
      ...config,
      metadata: { ...config.metadata, name: hashed(config.metadata.name) },
    }));
    const objects = { pools: [pool], nodes: [node], machineConfigNodes: [], machineConfigs: [...named, other] };
    const why = (name: string) => {
      const retention = retentionOf(name, objects, 0);
      return retention === undefined ? undefined : describeRetention(retention);
    };
    expect([...["a", "b", "d", "e"].map(hashed), "99-x", "absent"].map(why)).toEqual([
      "used by node w (currentConfig)",
      "unused; it goes when nothing has used it for 3600 s",
      "kept for going back, 1 of 1",
      "used by pool worker (target), node w (desiredConfig)",
      undefined,
      undefined,
    ]);
  });
});

test("one that is made again is the same, but for what the API server gave the one that is gone [pool-retained-configs-8]", () => {
  const config = rendered(hashed("a"), "2030-01-01T00:00:00Z");
  expect(poolOfRendered(config)).toBe("worker");
  expect(recreatedConfig(config, "pool-uid")).toEqual({
    apiVersion: config.apiVersion,
    kind: "MachineConfig",
    metadata: { name: hashed("a"), annotations: { a: "b" }, ownerReferences: [owner] },
    spec: config.spec,
  });
  // With an owner that is gone it would be collected at once.
  expect(recreatedConfig(config, "another")).not.toHaveProperty("metadata.ownerReferences");
});
