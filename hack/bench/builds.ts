import {
  MachineConfig,
  MachineConfigPool,
  MachineOSBuild,
  MachineOSConfig,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { hasBuildah, pushSecretName } from "../../src/cli/image-mode.ts";
import { registryHost } from "../../src/standin/cluster/cluster-registry.ts";
import { addressesOf } from "../../src/standin/cluster/layout.ts";
import { TestCluster, machineConfig } from "../../test/support/test-cluster.ts";
import { type Summary, summary } from "./statistics.ts";
import { stateOfBuild } from "../../src/core/config/build-phase.ts";

export interface BuildMetrics {
  /**
   * With an empty cache: custom steps by buildah in a Job, from the object of the build to the image that was found in
   * the registry.
   */
  readonly coldSeconds: number;
  /** The same without the cache of steps, the base image being there: what a rebuild costs. */
  readonly rebuildSeconds: number;
  /** One file of the configuration changed. */
  readonly fileSeconds: Summary;
  readonly rebuildHasEqualDigest: boolean;
  /** Runs that were begun for… */
  readonly runs: {
    readonly kernelArguments: number;
    readonly goingBack: number;
    readonly secondPoolOfEqualContent: number;
  };
}

const { annotations, labels, namespace } = names;
const pool = "worker";
const patienceMs = 120_000;

/** Builds of a pool that is paused, so that only building is measured. `undefined` where buildah is not installed. */
export async function measureBuilds(
  { files }: { readonly files: number },
  tell: (line: string) => void,
): Promise<BuildMetrics | undefined> {
  if (!hasBuildah(process.env)) {
    tell("buildah is not on this machine (hack/image-tools installs it): builds are not measured");
    return undefined;
  }
  const cluster = await TestCluster.start({ workers: 1 });
  try {
    const { kube } = cluster;
    const registry = registryHost(addressesOf(cluster.record().network));
    const runs = async () =>
      (await kube.list(MachineOSBuild)).items.filter(
        ({ metadata }) => metadata.annotations?.[annotations.buildStrategy] !== "reuse",
      ).length;
    const setFile = (text: string) =>
      kube.apply(MachineConfig, machineConfig("90-bench", { "/etc/bench.conf": `${text}\n` }) as never, {
        owner: "bench",
      });
    const optIn = (name: string) =>
      kube.apply(
        MachineOSConfig,
        {
          metadata: { name, annotations: { [annotations.buildContext]: "bench" } },
          spec: {
            machineConfigPool: { name },
            imageBuilder: { imageBuilderType: "Job" },
            renderedImagePushSecret: { name: pushSecretName },
            renderedImagePushSpec: `${registry}/os/bench:latest`,
            containerFile: [
              { containerfileArch: "NoArch", content: "FROM os AS final\nCOPY banner /usr/share/banner\n" },
            ],
          },
        },
        { owner: "bench" },
      );

    await kube.patch(MachineConfigPool, { name: pool }, { type: "merge", body: { spec: { paused: true } } });
    await kube.apply(
      kubernetes.ConfigMap,
      { metadata: { name: "bench", namespace }, data: { banner: "x".repeat(100_000) } },
      { owner: "bench" },
    );
    await optIn(pool);
    const cold = await nextBuild(cluster, new Set());
    tell(`cold build: ${cold.seconds} s`);
    const known = new Set([cold.name]);
    const seconds: number[] = [];
    let last = cold.image;
    for (let turn = 0; turn < files; turn += 1) {
      await setFile(String(turn));
      const build = await nextBuild(cluster, known);
      known.add(build.name);
      seconds.push(build.seconds);
      last = build.image;
      tell(`one file changed: ${build.seconds} s`);
    }
    await kube.patch(
      MachineConfigPool,
      { name: pool },
      { type: "merge", body: { metadata: { annotations: { [annotations.rebuildImage]: "bench" } } } },
    );
    const rebuilt = await nextBuild(cluster, known);
    known.add(rebuilt.name);
    tell(`rebuild: ${rebuilt.seconds} s, ${rebuilt.image === last ? "the same digest" : "another digest"}`);

    const before = await runs();
    await kube.apply(
      MachineConfig,
      machineConfig("91-bench", {}, { more: { kernelArguments: ["bench=1"] } }) as never,
      { owner: "bench" },
    );
    const arguments_ = await nextBuild(cluster, known);
    known.add(arguments_.name);
    const afterArguments = await runs();
    await kube.delete(MachineConfig, { name: "91-bench" });
    await untilTarget(cluster, rebuilt.config);
    const afterBack = await runs();
    const selectors = {
      machineConfigSelector: { matchLabels: { [labels.role]: pool } },
      nodeSelector: { matchLabels: { "node-role.kubernetes.io/second": "" } },
    };
    await kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: MachineConfigPool.kind,
      metadata: { name: "second" },
      spec: selectors,
    });
    await optIn("second");
    await kube.patch(
      MachineOSConfig,
      { name: "second" },
      {
        type: "merge",
        body: {
          metadata: {
            annotations: {
              [annotations.rebuildSerial]:
                (await kube.get(MachineOSConfig, { name: pool }))?.metadata.annotations?.[annotations.rebuildSerial] ??
                "0",
            },
          },
        },
      },
    );
    await nextBuild(cluster, known, "second");
    const afterSecond = await runs();
    return {
      coldSeconds: cold.seconds,
      rebuildSeconds: rebuilt.seconds,
      fileSeconds: summary(seconds),
      rebuildHasEqualDigest: rebuilt.image === last,
      runs: {
        kernelArguments: afterArguments - before,
        goingBack: afterBack - afterArguments,
        secondPoolOfEqualContent: afterSecond - afterBack,
      },
    };
  } finally {
    await cluster.stop();
  }
}

interface Ended {
  readonly name: string;
  readonly seconds: number;
  readonly image: string;
  readonly config: string;
}

/** The next build that succeeds, with the seconds from when its object was seen. */
async function nextBuild(cluster: TestCluster, known: ReadonlySet<string>, of: string = pool): Promise<Ended> {
  const seen = new Map<string, number>();
  const began = performance.now();
  while (performance.now() - began < patienceMs) {
    for (const build of (await cluster.kube.list(MachineOSBuild)).items) {
      const { name } = build.metadata;
      if (known.has(name) || build.spec.machineOSConfig.name !== of) continue;
      const since = seen.get(name) ?? performance.now();
      seen.set(name, since);
      const { phase, message } = stateOfBuild(build);
      if (phase === "Failed") throw new Error(`${name}: ${message}`);
      if (phase === "Succeeded")
        return {
          name,
          seconds: Math.round((performance.now() - since) / 10) / 100,
          image: build.status?.digestedImagePushSpec ?? "",
          config: build.spec.machineConfig.name,
        };
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("no build ended");
}

/** Waits until the pool wants a configuration again and its image is published for it. */
async function untilTarget(cluster: TestCluster, config: string): Promise<void> {
  const began = performance.now();
  while (performance.now() - began < patienceMs) {
    const [target, published] = await Promise.all([
      cluster.target(pool),
      cluster.kube.get(MachineOSConfig, { name: pool }),
    ]);
    const build = await cluster.kube.get(MachineOSBuild, { name: published?.status?.machineOSBuild?.name ?? "none" });
    if (target === config && build?.spec.machineConfig.name === config) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the pool did not go back to ${config}`);
}
