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
  OSImageStream,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { version } from "../../src/cli/version.ts";
import { packedStockOs } from "../../src/standin/cluster/stock-os.ts";
import { type BuiltEntry, gzippedLayer } from "../support/registry/tar-builder.ts";
import { type TestRegistry, startTestRegistry } from "../support/registry/test-registry.ts";
import { TestCluster, annotation, hasApiServer, machineConfig } from "../support/test-cluster.ts";
import { endScenario } from "../support/end-scenario.ts";
import { untilSeen } from "../support/until-seen.ts";

const { annotations, imageLabels, namespace, objects } = names;
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

/** An image that is the stock OS and one file more, or some. */
function newOs(text: string, labels: Readonly<Record<string, string>> = {}, ...more: readonly BuiltEntry[]): string {
  const layer = gzippedLayer(
    { path: "usr/", type: "5" },
    { path: "usr/lib/", type: "5" },
    { path: "usr/lib/release", contents: text },
    ...more,
  );
  return `${registry.host}/os/release@${registry.addImage("os/release", [{ bytes: packedStockOs.layer.bytes, plain: gunzipSync(packedStockOs.layer.bytes) }, layer], { labels })}`;
}

describe.skipIf(!hasApiServer)("a new release", () => {
  beforeAll(async () => {
    [cluster, registry] = await Promise.all([TestCluster.start({ workers: 2 }), startTestRegistry()]);
  }, 600_000);

  afterAll(() => registry?.close());
  afterAll(() => endScenario(cluster));

  test(
    "changes every pool's OS image and rolls every node, exactly as mco plan predicts [scenario-release-2]",
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
      await Promise.all(pools.map((pool) => cluster.untilRolledOut(pool, before[pool] ?? "")));
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
          expect.objectContaining({ kind: "osImage", from: cluster.stockOsImage, to: image }),
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
    "reaches a pool with its own OS image once the pool gives it up, and a paused pool once it is resumed [scenario-release-3]",
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
        body: { data: { baseOSContainerImage: cluster.stockOsImage } },
      });
      await cluster.until(
        ControllerConfig,
        objects.controllerConfig,
        ({ spec, status, metadata }) =>
          spec.baseOSContainerImage === cluster.stockOsImage && status?.observedGeneration === metadata.generation,
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
      ).toBe(cluster.stockOsImage);
      const kept = await cluster.kube.get(MachineConfig, { name: await cluster.target("worker") });
      expect(kept?.spec.osImageURL).toBe(own);
      expect(booted("master-0")).toBe(own);

      await cluster.kube.patch(
        MachineConfigPool,
        { name: "master" },
        { type: "merge", body: { spec: { paused: false } } },
      );
      await cluster.kube.delete(MachineConfig, { name: "99-worker-own-os" });
      await Promise.all([cluster.untilRolledOut("master", master), cluster.untilRolledOut("worker", start, 200)]);
      for (const machine of machines) expect(booted(machine), machine).toBe(cluster.stockOsImage);
    },
  );

  test(
    "is reported and changes nothing before its operator runs [scenario-release-1]",
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
        body: { data: { releaseVersion: version, baseOSContainerImage: cluster.stockOsImage } },
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

  test(
    "brings streams, which pools follow by name or by default; one that does not exist is refused [scenario-release-4]",
    { timeout: 240_000 },
    async () => {
      const before = await targets();
      const stream = (name: string, ...packages: readonly string[]) => {
        const labels = { [imageLabels.streamClass]: name, [imageLabels.bootc]: "1" };
        const list = JSON.stringify(Object.fromEntries(packages.map((one) => [one, "1.0-1.x86_64"])));
        return {
          os: newOs(`${name}\n`, labels),
          extensions: newOs(
            `extensions of ${name}\n`,
            { ...labels, [imageLabels.osExtensions]: "true" },
            { path: "usr/share/", type: "5" },
            { path: "usr/share/rpm-ostree/", type: "5" },
            { path: "usr/share/rpm-ostree/extensions.json", contents: list },
          ),
        };
      };
      const streams = { "rhel-9": stream("rhel-9", "usbguard", "sysstat"), "rhel-10": stream("rhel-10", "usbguard") };
      const from = (name: string) => ({ kind: "DockerImage", name });
      const tags = Object.entries(streams).flatMap(([name, { os, extensions }]) => [
        { name: `${name}-coreos`, from: from(os) },
        { name: `${name}-coreos-extensions`, from: from(extensions) },
      ]);
      // The master pool waits, so that its machine keeps its system until the streams are chosen.
      const pause = (paused: boolean) =>
        cluster.kube.patch(MachineConfigPool, { name: "master" }, { type: "merge", body: { spec: { paused } } });
      await pause(true);
      await cluster.kube.patch(kubernetes.ConfigMap, release, {
        type: "merge",
        body: { data: { imageStream: JSON.stringify({ spec: { tags } }) } },
      });
      const { status } = await cluster.until(
        OSImageStream,
        "cluster",
        (object) => object.status?.availableStreams.length === 2,
        "the streams are named",
      );
      expect(status?.availableStreams.map(({ name, osImage }) => [name, osImage])).toEqual([
        ["rhel-10", streams["rhel-10"].os],
        ["rhel-9", streams["rhel-9"].os],
      ]);

      const asking = machineConfig("99-extensions", {}, { more: { extensions: ["usbguard", "sysstat"] } });
      const planFor = (name: string) =>
        cluster.mco(["plan", "-f", "-", "--os-stream", name, "--pool", "worker"], { input: JSON.stringify(asking) });
      const broken = await planFor("rhel-10");
      expect(broken).toMatchObject({
        code: 1,
        stdout: expect.stringContaining("pool worker: worker-0, worker-1\n") as string,
      });
      expect(broken.stdout).toContain(
        "breaks worker-0, worker-1: the extension sysstat needs the package sysstat, which the stream's image with extensions does not have",
      );
      const whole = await planFor("rhel-9");
      expect([whole.code, whole.stdout]).toEqual([
        2,
        expect.stringContaining("nothing that was compared breaks a machine") as string,
      ]);

      const follow = (name: string, ...flags: readonly string[]) =>
        cluster.kubectl([
          ...flags,
          "patch",
          "mcp",
          "worker",
          "--type=merge",
          "-p",
          JSON.stringify({ spec: { osImageStream: { name } } }),
        ]);
      // The API server's policy reads its own copy of the streams, which it may see a moment after the test.
      const refused = await untilSeen(
        "a stream that does not exist is refused",
        () => follow("rhel-8", "--dry-run=server"),
        ({ code }) => code === 1,
      );
      expect(refused.stderr).toContain("OSImageStream/cluster has no stream rhel-8; it has rhel-10, rhel-9");
      const other = status?.defaultStream === "rhel-9" ? "rhel-10" : "rhel-9";
      expect((await follow(other)).code).toBe(0);
      await cluster.until(
        MachineConfigPool,
        "worker",
        (pool) => pool.status?.osImageStream?.name === other && pool.status.updatedMachineCount === 2,
        "the pool runs its stream",
        { seconds: 420 },
      );
      expect(cluster.hostFile("worker-1", "/usr/lib/release")).toBe(`${other}\n`);
      expect(booted("worker-0")).toBe(streams[other].os);
      const told = await cluster.mco(["explain", "osimagestream/cluster"]);
      expect([told.code, told.stdout]).toEqual([0, expect.stringContaining(other)]);

      // The default is what a pool without a name of its own follows.
      await pause(false);
      await cluster.untilRolledOut("master", before["master"] ?? "");
      expect(booted("master-0")).toBe(streams[other === "rhel-9" ? "rhel-10" : "rhel-9"].os);
    },
  );
});
