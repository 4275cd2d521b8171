import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MachineConfigNode, MachineConfigPool, PinnedImageSet, kubernetes, names } from "../../src/api/index.ts";
import { conditionOf } from "../../src/api/schema/object.ts";
import { podImageFolder } from "../../src/host/directory/pod-images.ts";
import { endScenario } from "../support/end-scenario.ts";
import { gzippedLayer } from "../support/registry/tar-builder.ts";
import { type TestRegistry, startTestRegistry } from "../support/registry/test-registry.ts";
import { TestCluster, hasApiServer } from "../support/test-cluster.ts";
import { untilSeen } from "../support/until-seen.ts";

const { hostPaths, labels, pinnedImageConditions, poolConditions } = names;
const machines = ["worker-0", "worker-1"];
let cluster: TestCluster;
let registry: TestRegistry;

const pushed = (name: string): string =>
  `${registry.host}/apps/${name}@${registry.addImage(`apps/${name}`, [gzippedLayer({ path: "name", contents: name })])}`;
const missing = (name = "one"): string => `${registry.host}/apps/${name}@sha256:${"9".repeat(64)}`;

const setOf = (name: string, role: string | undefined, ...images: readonly string[]) => ({
  apiVersion: PinnedImageSet.apiVersion,
  kind: PinnedImageSet.kind,
  metadata: { name, ...(role === undefined ? {} : { labels: { [labels.role]: role } }) },
  spec: { pinnedImages: images.map((image) => ({ name: image })) },
});

/** The images in the store of a machine, by name. */
function stored(machine: string): readonly string[] {
  const folder = join(podImageFolder(join(cluster.directory, "hosts", machine)), "images");
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json") && !name.startsWith("."))
    .map((name) => (JSON.parse(readFileSync(join(folder, name), "utf8")) as { readonly image: string }).image)
    .sort();
}

/** The list of the machine's engine. */
function listed(machine: string): string {
  const path = join(cluster.directory, "hosts", machine, "rootfs", hostPaths.pinnedImages);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

const untilNode = (machine: string, what: string, is: (node: MachineConfigNode) => boolean) =>
  cluster.until(MachineConfigNode, machine, is, `${machine}: ${what}`, { seconds: 420 });
const has = (name: string, generation: number) => (node: MachineConfigNode) =>
  node.status?.pinnedImageSets?.some((set) => set.name === name && set.currentGeneration === generation) === true &&
  conditionOf(node.status.conditions, pinnedImageConditions.progressing)?.status === "False";
const bootIds = () => machines.map((machine) => cluster.machineState(machine).bootId);

describe.skipIf(!hasApiServer)("images that machines fetch in advance", () => {
  let before: readonly string[];

  beforeAll(async () => {
    registry = await startTestRegistry();
    cluster = await TestCluster.start({ workers: 2 });
    before = bootIds();
  });
  afterAll(async () => {
    try {
      await endScenario(cluster);
    } finally {
      await registry.close();
    }
  });

  test("a set without a digest, or of nothing, is refused with the field and what to write [scenario-pins-1]", async () => {
    const created = (...images: readonly string[]) =>
      cluster.kube.create(PinnedImageSet, setOf("refused", "worker", ...images)).then(
        () => "",
        (error: unknown) => String(error),
      );
    expect(await created("registry.example.com/app:latest")).toMatch(
      /spec\.pinnedImages\[0\]\.name.*the image must be named by its digest, host\/path@sha256:/,
    );
    expect(await created(`app@sha256:${"1".repeat(64)}`)).toMatch(/with the registry's host/);
    expect(await created()).toContain("spec.pinnedImages");
    const image = `registry.example.com/app@sha256:${"1".repeat(64)}`;
    expect(await created(image, image)).toMatch(/Duplicate value/);
  });

  test("a set that no pool has says so; with its label, its image lies on each machine and is pinned there [scenario-pins-2]", async () => {
    const image = pushed("one");
    await cluster.kube.create(PinnedImageSet, setOf("apps", undefined, image));
    await untilSeen(
      "the Event of a set without a pool",
      async () => (await cluster.kube.list(kubernetes.Event)).items.map(({ reason }) => reason),
      (reasons) => reasons.includes("PinnedImageSetWithoutPool"),
    );
    expect((await cluster.mco(["explain", "pinnedimageset/apps"])).stdout).toContain(
      `kubectl label pinnedimageset apps ${labels.role}=worker`,
    );
    await cluster.kube.patch(
      PinnedImageSet,
      { name: "apps" },
      { type: "merge", body: { metadata: { labels: { [labels.role]: "worker" } } } },
    );
    for (const machine of machines) {
      await untilNode(machine, "has the image", has("apps", 1));
      expect(stored(machine)).toEqual([image]);
      expect(listed(machine)).toContain(`  "${image}",`);
    }
    expect(listed("master-0")).toBe("");
    const pool = await cluster.until(
      MachineConfigPool,
      "worker",
      ({ status }) => status?.poolSynchronizersStatus?.[0]?.updatedMachineCount === 2,
      "the pool counts its machines",
      { seconds: 420 },
    );
    expect(pool.spec.pinnedImageSets).toEqual([{ name: "apps" }]);
    expect((await cluster.mco(["status"])).stdout).toContain("pinned images on 2 of 2 machines");
    expect((await cluster.mco(["explain", "pinnedimageset/apps"])).stdout).toContain(
      "2 of 2 machines of pool worker have its image",
    );
  });

  test("a wrong digest is told on the machine and the pool with image, field, code and remedy; the old image stays pinned [scenario-pins-3]", async () => {
    const [good] = stored("worker-0");
    const wrong = missing();
    await cluster.kube.patch(
      PinnedImageSet,
      { name: "apps" },
      { type: "merge", body: { spec: { pinnedImages: [{ name: good ?? "" }, { name: wrong }] } } },
    );
    for (const machine of machines) {
      const { status } = await untilNode(
        machine,
        "reports the failure",
        (node) => conditionOf(node.status?.conditions, pinnedImageConditions.degraded)?.status === "True",
      );
      expect(conditionOf(status?.conditions, pinnedImageConditions.degraded)).toMatchObject({
        reason: "PrefetchFailed",
        message: expect.stringContaining(
          `PinnedImageSet apps: spec.pinnedImages[1].name: ${wrong}: MCO_IMAGE_ABSENT`,
        ) as string,
      });
      expect(status?.pinnedImageSets).toMatchObject([
        { name: "apps", desiredGeneration: 2, currentGeneration: 1, lastFailedGeneration: 2 },
      ]);
      expect(listed(machine)).toContain(`  "${good}",`);
    }
    await cluster.until(
      MachineConfigPool,
      "worker",
      ({ status }) =>
        conditionOf(
          status?.conditions as { type: string; status: string; message: string }[] | undefined,
          poolConditions.pinnedImageSetsDegraded,
        )?.message.includes("PinnedImageSet apps spec.pinnedImages[1].name: MCO_IMAGE_ABSENT") === true,
      "the pool names object and field",
      { seconds: 420 },
    );
    const { stdout } = await cluster.mco(["explain", "pinnedimageset/apps"]);
    expect(stdout).toContain("MCO_IMAGE_ABSENT: Check the image reference");
  });

  test("a plan says what each machine would fetch, as the registry names it, and what cannot be known [scenario-pins-6]", async () => {
    const [good = ""] = stored("worker-0");
    const large = pushed("large");
    const file = join(cluster.directory, "plan-pins.json");
    writeFileSync(file, JSON.stringify(setOf("apps", "worker", good, large)));
    const { stdout, code } = await cluster.mco(["plan", "-f", file]);
    expect(code).toBe(2);
    expect(stdout).toContain(`  + ${large}`);
    expect(stdout).toMatch(/ {2}worker-0, worker-1: 1 image, \d+ bytes to fetch, \d+ bytes to be free; its kubelet/);
    const plan = JSON.parse((await cluster.mco(["plan", "-f", file, "--json"])).stdout) as {
      readonly pinnedImages: readonly { readonly machines: readonly { readonly fetchBytes: number }[] }[];
    };
    const size = gzippedLayer({ path: "name", contents: "large" }).bytes.length;
    expect(plan.pinnedImages[0]?.machines.map(({ fetchBytes }) => fetchBytes)).toEqual([size, size]);
    writeFileSync(file, JSON.stringify(setOf("apps", "worker", good, missing("other"))));
    expect((await cluster.mco(["plan", "-f", file])).stdout).toMatch(
      /not known: the size of .*\/apps\/other@sha256:9+: /,
    );
  });

  test("a corrected set ends the failure; no machine drains or reboots for any of it [scenario-pins-4]", async () => {
    const [good] = stored("worker-0");
    const two = pushed("two");
    await cluster.kube.patch(
      PinnedImageSet,
      { name: "apps" },
      { type: "merge", body: { spec: { pinnedImages: [{ name: good ?? "" }, { name: two }] } } },
    );
    for (const machine of machines) {
      await untilNode(machine, "has both images", has("apps", 3));
      expect(stored(machine)).toEqual([good, two].toSorted());
      expect(listed(machine)).toContain(`  "${two}",`);
    }
    await cluster.until(
      MachineConfigPool,
      "worker",
      ({ status }) =>
        conditionOf(
          status?.conditions as { type: string; status: string }[] | undefined,
          poolConditions.pinnedImageSetsDegraded,
        )?.status === "False",
      "the pool is well again",
      { seconds: 420 },
    );
    expect(bootIds()).toEqual(before);
  });

  test("a deleted set leaves the machines' lists; what was fetched is the engine's to remove [scenario-pins-5]", async () => {
    await cluster.kube.delete(PinnedImageSet, { name: "apps" });
    for (const machine of machines) {
      await untilNode(machine, "has no set", ({ status }) => (status?.pinnedImageSets ?? []).length === 0);
      await untilSeen(
        "the list goes",
        () => listed(machine),
        (list) => list === "",
      );
      expect(stored(machine)).toHaveLength(2);
    }
    await cluster.until(
      MachineConfigPool,
      "worker",
      ({ spec }) => spec.pinnedImageSets === undefined,
      "the pool names no set",
      { seconds: 420 },
    );
    expect(bootIds()).toEqual(before);
  });
});
