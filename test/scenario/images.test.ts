import { existsSync, readdirSync, readFileSync, lstatSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  MachineConfig,
  MachineConfigNode,
  MachineConfigPool,
  MachineOSBuild,
  MachineOSConfig,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { conditionOf } from "../../src/api/schema/object.ts";
import { pushSecretName } from "../../src/cli/image-mode.ts";
import { addressesOf, ports } from "../../src/standin/cluster/layout.ts";
import { shortImage } from "../../src/core/config/image-pair.ts";
import { TestCluster, annotation, hasApiServer, hasKubectl, machineConfig } from "../support/test-cluster.ts";
import { stateOfBuild } from "../../src/core/config/build-phase.ts";
import { untilSeen } from "../support/until-seen.ts";
import { endScenario } from "../support/end-scenario.ts";
import { metricsTexts } from "../support/canary-sinks.ts";

const { annotations, namespace, objects } = names;
const hasBuildah = (process.env["PATH"] ?? "").split(":").some((folder) => existsSync(join(folder, "buildah")));
const machines = ["worker-0", "worker-1"];
let cluster: TestCluster;

const poolNotes = (notes: Readonly<Record<string, string | null>>) =>
  cluster.kube.patch(
    MachineConfigPool,
    { name: "worker" },
    { type: "merge", body: { metadata: { annotations: notes } } },
  );
const labelPool = (value: string | null) =>
  cluster.kube.patch(
    MachineConfigPool,
    { name: "worker" },
    { type: "merge", body: { metadata: { labels: { [annotations.layeringEnabled]: value } } } },
  );
const runsRegistry = () => cluster.record().processes.some(({ name }) => name === "registry");
const builds = async () => (await cluster.kube.list(MachineOSBuild)).items;
const target = () => cluster.target("worker");
const notesOf = async (name: string) => (await cluster.kube.get(kubernetes.Node, { name }))?.metadata.annotations ?? {};
const builderPods = async () =>
  (await cluster.kube.list(kubernetes.Pod, { namespace, labelSelector: `k8s-app=${objects.osBuilder}` })).items;
const booted = (machine: string) => {
  const { booted: id, deployments } = cluster.machineState(machine);
  return deployments[id]?.image ?? "";
};

/** What is below a folder of a machine: path → kind, mode and contents. */
function tree(machine: string, folder: string): Readonly<Record<string, string>> {
  const root = join(cluster.directory, "hosts", machine, "rootfs", folder);
  const found: Record<string, string> = {};
  const walk = (at: string, path: string): void => {
    for (const name of readdirSync(at).sort()) {
      const here = join(at, name);
      const entry = lstatSync(here);
      const below = `${path}/${name}`;
      // Under way to its name.
      if (/^\..*\.[0-9a-f]{12}$/.test(name)) continue;
      if (entry.isDirectory()) walk(here, below);
      else
        found[below] = entry.isSymbolicLink()
          ? `link ${readlinkSync(here)}`
          : `${(entry.mode & 0o7777).toString(8)} ${readFileSync(here, "utf8")}`;
    }
  };
  walk(root, "");
  return found;
}

/** Both machines run the image that is rolled out for the pool's target; `not`: another one than that. */
async function untilBooted(what: string, not = ""): Promise<string> {
  const published = await cluster.until(
    MachineOSConfig,
    "worker",
    ({ status }) => (status?.currentImagePullSpec ?? not) !== not,
    `${what}: an image is published`,
    { seconds: 420 },
  );
  const image = published.status?.currentImagePullSpec ?? "";
  expect(image).toMatch(/@sha256:[0-9a-f]{64}$/);
  await cluster.until(
    MachineConfigPool,
    "worker",
    ({ spec, status, metadata }) => {
      const updated = conditionOf(
        status?.conditions as { type: string; status: string; message: string }[] | undefined,
        "Updated",
      );
      return (
        updated?.status === "True" &&
        updated.message.includes(` in image ${shortImage(image)}`) &&
        updated.message.includes(spec.configuration?.name ?? "?") &&
        status?.observedGeneration === metadata.generation
      );
    },
    what,
    { seconds: 420 },
  );
  for (const name of machines) {
    const notes = await notesOf(name);
    expect(
      ["desiredImage", "desiredOSimage", "currentImage", "currentOSimage"].map(
        (key) => notes[`machineconfiguration.openshift.io/${key}`],
      ),
      name,
    ).toEqual([image, image, image, image]);
    expect(booted(name), name).toBe(image);
  }
  return image;
}

describe.skipIf(!hasApiServer)("a pool that boots images built on its cluster", () => {
  let before: ReturnType<typeof tree>;
  let registry: string;

  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 2 });
    registry = `${addressesOf(cluster.record().network).registry}:${ports.registry}`;
    await cluster.kube.apply(MachineConfig, machineConfig("50-before", { "/etc/before.conf": "1\n" }) as never, {
      owner: "test",
    });
    await cluster.untilRolledOut("worker", await target(), 120);
    before = tree("worker-0", "etc");
    seen = await target();
    await poolNotes({ [annotations.canarySeconds]: "1" });
  }, 600_000);

  afterAll(() => endScenario(cluster));

  test(
    "opting in starts the builder's pod, and every machine boots the image with its configuration's files [scenario-images-1]",
    { timeout: 240_000 },
    async () => {
      expect(await builderPods()).toEqual([]);
      expect(runsRegistry()).toBe(false);
      await cluster.kube.apply(
        MachineOSConfig,
        {
          metadata: { name: "worker" },
          spec: {
            machineConfigPool: { name: "worker" },
            imageBuilder: { imageBuilderType: "Job" },
            renderedImagePushSecret: { name: pushSecretName },
            renderedImagePushSpec: `${registry}/os/worker:latest`,
          },
        },
        { owner: "test" },
      );
      const image = await untilBooted("the first image booted");
      expect(runsRegistry()).toBe(true);
      expect((await builderPods()).map(({ status }) => status?.phase)).toEqual(["Running"]);
      const [build] = await builds();
      expect(build?.metadata.annotations?.[annotations.buildStrategy]).toBe("append");
      const metrics = (await metricsTexts(cluster)).find(({ where }) => where.includes(objects.osBuilder))?.text ?? "";
      expect(metrics).toContain(
        `ocl_build_state{pool="worker",build="${build?.metadata.name}",state="Succeeded",strategy="append"} 1`,
      );
      for (const name of machines) {
        expect((await notesOf(name))[annotations.desiredImageContent]).toBe("full");
        expect(cluster.hostFile(name, "/etc/before.conf")).toBe("1\n");
        const described = await cluster.kube.get(MachineConfigNode, { name });
        expect([described?.spec.configImage?.desiredImage, described?.status?.configImage?.currentImage]).toEqual([
          image,
          image,
        ]);
      }
    },
  );

  test(
    "another file costs one layer and a reboot; kernel arguments cost no build [scenario-images-5]",
    { timeout: 240_000 },
    async () => {
      const known = (await builds()).length;
      await cluster.kube.apply(
        MachineConfig,
        machineConfig("60-file", { "/etc/image.conf": "one\n", "/var/lib/app/data": "two\n" }) as never,
        { owner: "test" },
      );
      const old = booted("worker-0");
      await untilTarget("60-file");
      const image = await untilBooted("the second image booted", old);
      expect(
        (await builds()).filter(({ metadata }) => metadata.annotations?.[annotations.buildStrategy] === "append"),
      ).toHaveLength(known + 1);
      expect(cluster.hostFile("worker-1", "/etc/image.conf")).toBe("one\n");
      expect(cluster.hostFile("worker-1", "/var/lib/app/data")).toBe("two\n");

      await cluster.kube.apply(
        MachineConfig,
        machineConfig("61-kargs", {}, { more: { kernelArguments: ["quiet"] } }) as never,
        { owner: "test" },
      );
      await untilTarget("61-kargs");
      expect(await untilBooted("kernel arguments booted")).toBe(image);
      const { booted: id, deployments } = cluster.machineState("worker-0");
      expect(deployments[id]?.kernelArguments).toContain("quiet");
      expect(
        (await builds()).filter(({ metadata }) => metadata.annotations?.[annotations.buildStrategy] !== "reuse"),
      ).toHaveLength(known + 1);
    },
  );

  test(
    "a refused push fails with its reason and touches no machine; a rebuild by annotation succeeds [scenario-images-3]",
    { timeout: 240_000 },
    async () => {
      const refusal = join(cluster.directory, "registry", "refuse-pushes");
      writeFileSync(refusal, "413 quota exceeded\n");
      const image = booted("worker-0");
      await cluster.kube.apply(MachineConfig, machineConfig("60-file", { "/etc/image.conf": "three\n" }) as never, {
        owner: "test",
      });
      const config = await untilTarget("60-file-again");
      const failed = await cluster.until(
        MachineConfigPool,
        "worker",
        ({ status }) =>
          conditionOf(status?.conditions as { type: string; status: string }[] | undefined, "ImageBuildDegraded")
            ?.status === "True",
        "the build failed",
      );
      expect(
        conditionOf(failed.status?.conditions as { type: string; reason: string }[], "ImageBuildDegraded")?.reason,
      ).toBe("PushRejected");
      const build = (await builds()).find(
        ({ spec, ...rest }) => spec.machineConfig.name === config && stateOfBuild(rest).phase === "Failed",
      );
      expect(build).toBeDefined();
      const explained = await cluster.mco(["build", "explain", "worker"]);
      expect(explained.stdout).toContain("quota exceeded");
      if (hasKubectl)
        expect((await cluster.kubectl(["describe", "machineosbuild", build?.metadata.name ?? ""])).stdout).toContain(
          "quota exceeded",
        );
      expect([booted("worker-0"), booted("worker-1")]).toEqual([image, image]);
      rmSync(refusal);
      await poolNotes({ [annotations.rebuildImage]: "again" });
      await untilBooted("the rebuilt image booted", image);
      await cluster.until(
        MachineConfigPool,
        "worker",
        (pool) =>
          annotation(pool, annotations.rebuildImage) === "" &&
          pool.metadata.annotations?.[annotations.rebuildImage] === undefined,
        "the request is gone",
      );
      expect(cluster.hostFile("worker-0", "/etc/image.conf")).toBe("three\n");
      expect((await builds()).some(({ metadata }) => metadata.name === build?.metadata.name)).toBe(false);
    },
  );

  test.skipIf(!hasBuildah)(
    "a Job with buildah builds the pool's Containerfile, with a readable log that holds no secret [scenario-images-4]",
    { timeout: 240_000 },
    async () => {
      const old = booted("worker-0");
      await cluster.kube.apply(
        kubernetes.ConfigMap,
        { metadata: { name: "context", namespace }, data: { banner: "built here\n" } },
        { owner: "test" },
      );
      await cluster.kube.patch(
        MachineOSConfig,
        { name: "worker" },
        {
          type: "merge",
          body: {
            metadata: { annotations: { [annotations.buildContext]: "context" } },
            spec: {
              containerFile: [
                { containerfileArch: "NoArch", content: "FROM configs AS final\nCOPY banner /usr/share/banner\n" },
              ],
            },
          },
        },
      );
      await untilBooted("the custom image booted", old);
      const name = (await cluster.kube.get(MachineOSConfig, { name: "worker" }))?.status?.machineOSBuild?.name ?? "";
      const build = await cluster.kube.get(MachineOSBuild, { name });
      expect(build?.metadata.annotations?.[annotations.buildStrategy]).toBe("build");
      await untilSeen(
        "its book tells of it",
        async () => (await cluster.mco(["book", `build/${name}`])).stdout,
        (text) => text.includes("ImagePublished"),
        { seconds: 420, everyMs: 200 },
      );
      expect(cluster.hostFile("worker-1", "/usr/share/banner")).toBe("built here\n");
      expect(cluster.hostFile("worker-1", "/etc/image.conf")).toBe("three\n");
    },
  );

  test(
    "opting out returns every machine to the stock OS and removes the builder's pod [scenario-images-2]",
    { timeout: 240_000 },
    async () => {
      for (const name of ["60-file", "61-kargs"]) await cluster.kube.delete(MachineConfig, { name });
      await poolNotes({ [annotations.layeringEnabled]: "false" });
      for (const name of machines)
        await cluster.untilNode(
          name,
          ({ metadata, spec }) =>
            metadata.annotations?.[annotations.currentImage] === undefined &&
            metadata.annotations?.[annotations.desiredImage] === undefined &&
            metadata.annotations?.[annotations.state] === "Done" &&
            spec?.unschedulable !== true,
          `${name} is back on the stock OS`,
          150,
        );
      await cluster.until(
        MachineConfigPool,
        "worker",
        ({ status }) =>
          conditionOf(status?.conditions as { type: string; status: string }[] | undefined, "Updated")?.status ===
          "True",
        "the pool is updated",
      );
      for (const name of machines) expect(booted(name)).toMatch(/\/os\/stock@sha256:/);
      expect(
        Object.entries(tree("worker-0", "etc")).filter(
          ([path, text]) => before[path] !== text && !path.startsWith("/machine-config-daemon/"),
        ),
      ).toEqual([]);
      expect(
        Object.keys(before).filter(
          (path) =>
            cluster.hostFile("worker-0", `/etc${path}`) === undefined &&
            !path.startsWith("/machine-config-daemon/") &&
            !before[path]?.startsWith("link "),
        ),
      ).toEqual([]);
      await untilSeen("the builder's pod is gone", builderPods, (pods) => pods.length === 0, { seconds: 420 });
      const config = await cluster.kube.get(MachineOSConfig, { name: "worker" });
      expect(conditionOf(config?.status?.conditions, "Accepted")).toMatchObject({
        status: "False",
        reason: "OptedOut",
      });
      expect((await cluster.kube.list(kubernetes.Job, { namespace: names.buildNamespace })).items).toEqual([]);
    },
  );

  test(
    "the pool's label alone opts in, with nothing written by hand; with the label the MachineOSConfig goes, and the builder [scenario-images-6]",
    { timeout: 240_000 },
    async () => {
      await cluster.kube.delete(MachineOSConfig, { name: "worker" });
      await untilSeen(
        "the MachineOSConfig is gone",
        () => cluster.kube.get(MachineOSConfig, { name: "worker" }),
        (config) => config === undefined,
        { seconds: 420 },
      );
      await poolNotes({ [annotations.layeringEnabled]: null });
      await labelPool("");
      const image = await untilBooted("the image by label booted");
      expect(image).toContain(`${registry}/os/images@`);
      expect(
        (await cluster.kube.get(MachineOSConfig, { name: "worker" }))?.metadata.annotations?.[annotations.optInSource],
      ).toBe("PoolLabel");
      await labelPool(null);
      await poolNotes({ [annotations.layeringEnabled]: null });
      for (const name of machines)
        await cluster.untilNode(
          name,
          ({ metadata }) =>
            metadata.annotations?.[annotations.currentImage] === undefined &&
            metadata.annotations?.[annotations.desiredImage] === undefined &&
            metadata.annotations?.[annotations.state] === "Done",
          `${name} is back on the stock OS`,
          150,
        );
      await untilSeen(
        "the MachineOSConfig is gone with its label",
        () => cluster.kube.get(MachineOSConfig, { name: "worker" }),
        (config) => config === undefined,
        { seconds: 420 },
      );
      await untilSeen("the builder's pod is gone", builderPods, (pods) => pods.length === 0, { seconds: 420 });
    },
  );
});

let seen = "";
/** The pool's next target. */
async function untilTarget(what: string): Promise<string> {
  const pool = await cluster.until(
    MachineConfigPool,
    "worker",
    ({ spec }) => (spec.configuration?.name ?? seen) !== seen,
    `a target with ${what}`,
  );
  seen = pool.spec.configuration?.name ?? "";
  return seen;
}
