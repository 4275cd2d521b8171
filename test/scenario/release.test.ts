import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import {
  ClusterOperator,
  ControllerConfig,
  MachineConfig,
  MachineConfigPool,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { version } from "../../src/cli/version.ts";
import { packedStockOs, stockOsImage } from "../../src/cluster/stock-os.ts";
import { gzippedLayer } from "../support/registry/tar-builder.ts";
import { type TestRegistry, startTestRegistry } from "../support/registry/test-registry.ts";
import { TestCluster, annotation, hasApiServer, machineConfig } from "../support/test-cluster.ts";
import { endScenario } from "../support/end-scenario.ts";

const { annotations, namespace, objects } = names;
const pools = ["master", "worker"];
const machines = ["master-0", "worker-0", "worker-1"];
const release = { name: objects.osImageConfigMap, namespace };
let cluster: TestCluster;
let registry: TestRegistry;

const booted = (machine: string) => {
  const { booted: id, deployments } = cluster.machineState(machine);
  return deployments[id]?.image;
};
const targets = async () =>
  Object.fromEntries(await Promise.all(pools.map(async (pool) => [pool, await cluster.target(pool)] as const)));

/** An image that is the stock OS and one file more. */
function newOs(text: string): string {
  const layer = gzippedLayer(
    { path: "usr/", type: "5" },
    { path: "usr/lib/", type: "5" },
    { path: "usr/lib/release", contents: text },
  );
  return `${registry.host}/os/release@${registry.addImage("os/release", [{ bytes: packedStockOs.layer.bytes, plain: gunzipSync(packedStockOs.layer.bytes) }, layer])}`;
}

describe.skipIf(!hasApiServer)("a new release", () => {
  beforeAll(async () => {
    [cluster, registry] = await Promise.all([TestCluster.start({ workers: 2 }), startTestRegistry()]);
  }, 180_000);

  afterAll(() => registry?.close());
  afterAll(() => endScenario(cluster));

  test(
    "moves the OS image of every pool and rolls every node, as mco plan said it would, as an entry like any other [scenario-release-2]",
    { timeout: 240_000 },
    async () => {
      const before = await targets();
      const boots = machines.map((machine) => cluster.machineState(machine).bootId);
      const image = newOs("two\n");
      const manifest = {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: release,
        data: { releaseVersion: version, baseOSContainerImage: image },
      };
      const file = join(cluster.directory, "release.yaml");
      writeFileSync(file, stringify(manifest));
      const planned = await cluster.mco(["plan", "-f", file, "--json"]);
      expect(planned.code, planned.stderr).toBe(2);
      const forecast = JSON.parse(planned.stdout) as {
        warnings: string[];
        pools: {
          pool: string;
          to: string;
          changes: unknown[];
          nodes: { node: string; drains: boolean; reboots: boolean }[];
        }[];
      };
      expect(forecast.warnings).toEqual([]);

      await cluster.kube.patch(kubernetes.ConfigMap, release, { type: "merge", body: { data: manifest.data } });
      await Promise.all(pools.map((pool) => cluster.untilRolledOut(pool, before[pool] ?? "", 200)));
      for (const [index, machine] of machines.entries()) {
        expect(booted(machine), machine).toBe(image);
        expect(cluster.machineState(machine).bootId, machine).not.toBe(boots[index]);
      }
      expect(cluster.hostFile("worker-1", "/usr/lib/release")).toBe("two\n");
      const after = await targets();
      for (const pool of pools) {
        const rendered = await cluster.kube.get(MachineConfig, { name: after[pool] ?? "" });
        expect(rendered?.spec.osImageURL).toBe(image);
        const { stdout } = await cluster.mco(["diff", before[pool] ?? "", after[pool] ?? "", "--json"]);
        const { comparisons } = JSON.parse(stdout) as { comparisons: { changes: unknown[] }[] };
        expect(comparisons.flatMap(({ changes }) => changes)).toEqual([
          expect.objectContaining({ kind: "osImage", from: stockOsImage, to: image }),
        ]);
      }
      expect(Object.fromEntries(forecast.pools.map(({ pool, to }) => [pool, to]))).toEqual(after);
      expect(
        forecast.pools.flatMap(({ nodes }) => nodes.map(({ node, drains, reboots }) => [node, drains, reboots])).sort(),
      ).toEqual([
        // The only machine of the control plane has nowhere to drain to.
        ["master-0", false, true],
        ["worker-0", true, true],
        ["worker-1", true, true],
      ]);
    },
  );

  test(
    "reaches a pool that keeps an OS image of its own only once it lets go of it, and a paused one once it goes on [scenario-release-3]",
    { timeout: 240_000 },
    async () => {
      const own = booted("worker-0") ?? "";
      const start = await cluster.target("worker");
      await cluster.kube.create(
        MachineConfig,
        machineConfig("99-worker-own-os", {}, { more: { osImageURL: own } }) as MachineConfig,
      );
      await cluster.kube.patch(
        MachineConfigPool,
        { name: "master" },
        { type: "merge", body: { spec: { paused: true } } },
      );
      const master = await cluster.target("master");

      await cluster.kube.patch(kubernetes.ConfigMap, release, {
        type: "merge",
        body: { data: { baseOSContainerImage: stockOsImage } },
      });
      await cluster.until(
        ControllerConfig,
        objects.controllerConfig,
        ({ spec, status, metadata }) =>
          spec.baseOSContainerImage === stockOsImage && status?.observedGeneration === metadata.generation,
        "the release is read",
      );
      const rendered = await cluster.until(
        MachineConfigPool,
        "master",
        ({ spec }) => spec.configuration?.name !== undefined && spec.configuration.name !== master,
        "the paused pool has a new target",
      );
      expect(
        (await cluster.kube.get(MachineConfig, { name: rendered.spec.configuration?.name ?? "" }))?.spec.osImageURL,
      ).toBe(stockOsImage);
      const kept = await cluster.kube.get(MachineConfig, { name: await cluster.target("worker") });
      expect(kept?.spec.osImageURL).toBe(own);
      expect(booted("master-0")).toBe(own);

      await cluster.kube.patch(
        MachineConfigPool,
        { name: "master" },
        { type: "merge", body: { spec: { paused: false } } },
      );
      await cluster.kube.delete(MachineConfig, { name: "99-worker-own-os" });
      await Promise.all([cluster.untilRolledOut("master", master, 200), cluster.untilRolledOut("worker", start, 200)]);
      for (const machine of machines) expect(booted(machine), machine).toBe(stockOsImage);
    },
  );

  test(
    "whose operator does not run yet moves nothing, and is told of [scenario-release-1]",
    { timeout: 120_000 },
    async () => {
      const before = await targets();
      await cluster.kube.patch(kubernetes.ConfigMap, release, {
        type: "merge",
        body: { data: { releaseVersion: "99.0.0", baseOSContainerImage: newOs("three\n") } },
      });
      await cluster.until(
        ClusterOperator,
        objects.clusterOperator,
        ({ status }) =>
          (status?.conditions ?? []).some(
            ({ type, status: is, message = "" }) =>
              type === "Progressing" && is === "True" && message.includes("99.0.0"),
          ),
        "told",
      );
      expect(await targets()).toEqual(before);
      await cluster.kube.patch(kubernetes.ConfigMap, release, {
        type: "merge",
        body: { data: { releaseVersion: version, baseOSContainerImage: stockOsImage } },
      });
      await cluster.until(
        ClusterOperator,
        objects.clusterOperator,
        ({ status }) =>
          (status?.conditions ?? []).some(({ type, status: is }) => type === "Progressing" && is === "False"),
        "over",
      );
      expect(await targets()).toEqual(before);
      for (const machine of machines)
        expect(annotation(await cluster.untilNode(machine, () => true, "there"), annotations.state)).toBe("Done");
    },
  );
});
