import { describe, expect, test } from "vitest";
import { heavyContents } from "../../../test/support/heavy-contents.ts";
import type { ContainerRuntimeConfig } from "../../api/kinds/container-runtime-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { labels } from "../../api/names.ts";
import { type OSImageQuestion, questionOf } from "./os-image-demands.ts";
import { type ClusterObjects, planCluster } from "./plan-cluster.ts";

const one = `os@sha256:${"1".repeat(64)}`;
const two = `os@sha256:${"2".repeat(64)}`;

const pool: MachineConfigPool = {
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  metadata: { name: "worker", labels: { "pools.operator.machineconfiguration.openshift.io/worker": "" } },
  spec: {
    machineConfigSelector: { matchLabels: { [labels.role]: "worker" } },
    nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } },
  },
};
const config = (name: string, spec: object): MachineConfig => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfig",
  metadata: { name, labels: { [labels.role]: "worker" } },
  spec: { config: { ignition: { version: "3.4.0" } }, ...spec },
});
const runtime = (defaultRuntime: "crun" | "runc"): ContainerRuntimeConfig => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "ContainerRuntimeConfig",
  metadata: { name: "runtime", uid: "1", generation: 1 },
  spec: {
    machineConfigPoolSelector: { matchLabels: { "pools.operator.machineconfiguration.openshift.io/worker": "" } },
    containerRuntimeConfig: { defaultRuntime },
  },
});
const cluster = (image: string, configs: readonly MachineConfig[], runtimes: readonly ContainerRuntimeConfig[]) =>
  ({
    pools: [pool],
    machineConfigs: [config("00-worker", { osImageURL: image }), ...configs],
    machineConfiguration: undefined,
    controllerConfig: undefined,
    nodes: [],
    settings: { kubeletConfigs: [], containerRuntimeConfigs: runtimes, cluster: {} },
  }) satisfies ClusterObjects;

/** What a plan asks of the pool's OS image. */
function asked(before: ClusterObjects, after: ClusterObjects): OSImageQuestion | undefined {
  const forecast = planCluster(before, after).pools[0];
  expect(forecast).toMatchObject({ verdict: "changes" });
  return forecast?.verdict === "changes" ? forecast.osImage : undefined;
}

describe("a plan asks of the OS image", () => {
  test("for the runtime that a new ContainerRuntimeConfig chooses [os-image-demands-1]", () => {
    expect(asked(cluster(one, [], []), cluster(one, [], [runtime("runc")]))).toMatchObject({
      demands: { runtime: { name: "runc", path: expect.stringMatching(/^\/etc\/crio\/crio\.conf\.d\//) } },
      image: { verdict: "named", name: one },
    });
  });

  test("for a cgroup version that a kernel argument chooses [os-image-demands-2]", () => {
    const argument = "systemd.unified_cgroup_hierarchy=0";
    const after = cluster(one, [config("50-old", { kernelArguments: [`quiet ${argument}`] })], []);
    expect(asked(cluster(one, [], []), after)?.demands).toEqual({ cgroupV1: [argument] });
  });

  test("nothing where a change concerns something else [os-image-demands-3]", () => {
    const after = cluster(one, [config("50-quiet", { kernelArguments: ["quiet"] })], []);
    expect(asked(cluster(one, [], []), after)).toBeUndefined();
  });
});

describe("a runtime left over from an earlier release", () => {
  const drop = {
    path: "/etc/crio/crio.conf.d/01-runtime",
    contents: { source: "data:,%5Bcrio.runtime%5D%0Adefault_runtime%20%3D%20%22runc%22%0A" },
  };
  const withDropIn = (osImageURL: string, more: object = {}) =>
    config("rendered-worker-1", {
      osImageURL,
      config: { ignition: { version: "3.4.0" }, storage: { files: [drop] } },
      ...more,
    });

  test("is asked for again with another image, and not with the same [os-image-demands-4]", () => {
    expect(questionOf(withDropIn(one), withDropIn(two), false)).toMatchObject({
      demands: { runtime: { name: "runc" } },
      image: { name: two },
    });
    expect(questionOf(withDropIn(one), withDropIn(one, { fips: true }), false)).toBeUndefined();
  });

  test("is not the choice of the base configuration [os-image-demands-6]", () => {
    const base = config("rendered-worker-1", {
      osImageURL: two,
      config: {
        ignition: { version: "3.4.0" },
        storage: { files: [{ ...drop, path: "/etc/crio/crio.conf.d/00-default" }] },
      },
    });
    expect(questionOf(withDropIn(one), base, false)).toBeUndefined();
  });

  test("is not looked for where the image has no name yet [os-image-demands-5]", () => {
    expect(questionOf(undefined, withDropIn(two), true)?.image).toMatchObject({
      verdict: "unread",
      problem: expect.stringContaining("built on the cluster"),
    });
    expect(questionOf(undefined, withDropIn(""), false)?.image).toMatchObject({
      verdict: "unread",
      problem: "the configuration names none",
    });
  });

  test.for([
    ["line feeds", "\n"],
    ["line feeds and carriage returns", "\r\n"],
    ["blanks", " "],
    ["tabs", "\t"],
    ["blanks of Unicode", "\u00a0"],
    ["separators of lines", "\u2028"],
  ] as const)("is looked for in a drop-in of %s in one pass [os-image-demands-7]", ([, blank]) => {
    const before = process.threadCpuUsage();
    const text = blank.repeat(60_000);
    const contents = { source: `data:,${encodeURIComponent(`${text}!\ndefault_runtime = "runc"${text}`)}` };
    const padded = config("rendered-worker-1", {
      osImageURL: one,
      config: { ignition: { version: "3.4.0" }, storage: { files: [{ ...drop, contents }] } },
    });
    expect(questionOf(undefined, padded, false)).toMatchObject({ demands: { runtime: { name: "runc" } } });
    expect(process.threadCpuUsage(before).user / 1e6).toBeLessThan(2);
  });

  test("is looked for from the last drop-in, and not in those that are too large [os-image-demands-8]", () => {
    const folder = "/etc/crio/crio.conf.d";
    const many = (last: string) => [
      ...Array.from({ length: 30 }, (_, i) => ({ path: `${folder}/${i + 10}-a`, contents: heavyContents(i) })),
      { ...drop, path: `${folder}/${last}-b`, contents: { source: "data:,default_runtime%20%3D%20%22runc%22" } },
    ];
    for (const last of ["99", "00"]) {
      const files = many(last);
      const rendered = config("rendered-worker-1", {
        osImageURL: one,
        config: { ignition: { version: "3.4.0" }, storage: { files } },
      });
      const before = process.threadCpuUsage();
      const asks = questionOf(undefined, rendered, false);
      expect(process.threadCpuUsage(before).user / 1e6).toBeLessThan(1.5);
      expect(asks).toMatchObject({ demands: { runtime: { name: "runc", path: `${folder}/${last}-b` } } });
    }
  });
});
