import { MachineConfig, MachineConfigPool, MachineOSBuild, MachineOSConfig, kubernetes } from "../api/index.ts";
import { McoError } from "../api/errors.ts";
import { annotations, labels, namespace, objects } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import { readFailure } from "../core/build/build-retry.ts";
import { durationText } from "../core/books/fold-book.ts";
import { describeBuild, imageText, namedImage, shortImage } from "../core/config/image-pair.ts";
import { encodeDataUrl } from "../ignition/data-url.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import type { Clock } from "../ports/clock.ts";
import { pushSecretName } from "./image-mode.ts";
import { stateOfBuild } from "../core/config/build-phase.ts";

export interface TourOptions {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly print: (line: string) => void;
  /** Host and port of the registry. */
  readonly registry: string;
  /** Makes the registry refuse every push; `undefined`: as usual. */
  readonly refusePushes: (refusal: { readonly status: number; readonly text: string } | undefined) => Promise<void>;
  /** Steps of a Containerfile can be run on this machine. */
  readonly hasBuildah: boolean;
}

const pool = "worker";
const files = "image-mode-files";
const owner = "mco-up";
const containerfile =
  "FROM configs AS final\nCOPY banner /usr/share/image-mode/banner\nLABEL org.example.team=platform\n";
const lookEveryMs = 200;
const longestLine = 160;
const patienceMs = 300_000;

/**
 * Demonstrates images built on the cluster: a pool opts in, its machines boot an image, a build fails and is requested
 * again, and the pool returns to the stock OS.
 *
 * @throws McoError `MCO_TOUR_STUCK`: an expected state was not reached.
 */
export async function imageModeTour(options: TourOptions, signal: AbortSignal): Promise<void> {
  const { kube, print } = options;
  const step = (text: string) => print(`\n== ${text}`);
  const patchPool = (notes: Readonly<Record<string, string | null>>) =>
    kube.patch(
      MachineConfigPool,
      { name: pool },
      { type: "merge", body: { metadata: { annotations: notes } } },
      { owner },
    );

  step(
    `the pool ${pool} opts in${options.hasBuildah ? ", with a Containerfile of its own" : " (buildah is not installed here: images are made without running anything)"}`,
  );
  await patchPool({ [annotations.canarySeconds]: "3", [annotations.layeringEnabled]: null });
  if (options.hasBuildah)
    await kube.apply(
      kubernetes.ConfigMap,
      {
        metadata: { name: files, namespace },
        data: { banner: "This machine boots an image that was built on its own cluster.\n" },
      },
      { owner },
    );
  await kube.apply(
    MachineOSConfig,
    {
      metadata: { name: pool, ...(options.hasBuildah ? { annotations: { [annotations.buildContext]: files } } : {}) },
      spec: {
        machineConfigPool: { name: pool },
        imageBuilder: { imageBuilderType: "Job" },
        renderedImagePushSecret: { name: pushSecretName },
        renderedImagePushSpec: `${options.registry}/os/${pool}:latest`,
        ...(options.hasBuildah ? { containerFile: [{ containerfileArch: "NoArch", content: containerfile }] } : {}),
      },
    },
    { owner },
  );
  print(`kubectl get machineosconfig ${pool}; kubectl get pods -n ${namespace} -l k8s-app=${objects.osBuilder}`);
  await until(
    options,
    "the builder's pod",
    async () => (await builderPods(kube)).find(({ status }) => status?.phase === "Running"),
    signal,
  );
  print("the builder runs, in a pod of its own");
  await untilBooted(options, signal);

  step("a build fails: the registry refuses the next push");
  await options.refusePushes({ status: 413, text: "quota exceeded" });
  await kube.apply(
    MachineConfig,
    {
      metadata: { name: "90-image-mode", labels: { [labels.role]: pool } },
      spec: {
        config: {
          ignition: { version: "3.4.0" },
          storage: {
            files: [{ path: "/etc/image-mode.conf", mode: 0o644, contents: { source: encodeDataUrl("tour=1\n") } }],
          },
        },
      },
    },
    { owner },
  );
  const failed = await until(
    options,
    "the build to fail",
    async () => (await buildsOfTarget(kube)).find((build) => stateOfBuild(build).phase === "Failed"),
    signal,
    printBuilds(options),
  );
  const failure = readFailure(failed.metadata.annotations?.[annotations.buildFailure]);
  print(`${failure?.class ?? ""}: ${failure?.cause ?? stateOfBuild(failed).message}`);
  print(`no machine was touched; mco build explain ${pool}, kubectl describe machineosbuild ${failed.metadata.name}`);

  step("the cause is gone, and a rebuild is asked for by annotation");
  await options.refusePushes(undefined);
  await patchPool({ [annotations.rebuildImage]: "after-the-tour's-failure" });
  await untilBooted(options, signal);
  await until(
    options,
    "the request to be taken away",
    async () =>
      (await kube.get(MachineConfigPool, { name: pool }))?.metadata.annotations?.[annotations.rebuildImage] ===
      undefined
        ? true
        : undefined,
    signal,
  );
  print(`the annotation ${annotations.rebuildImage} is gone: the rebuild has ended`);

  step("the pool opts out: an explicit no");
  await patchPool({ [annotations.layeringEnabled]: "false" });
  await until(
    options,
    "machines on the stock OS",
    async () => {
      const state = await poolState(kube);
      return state.updated && state.images.every((image) => image === "") ? state : undefined;
    },
    signal,
    printPool(options),
  );
  await until(
    options,
    "the builder's pod to go",
    async () => ((await builderPods(kube)).length === 0 ? true : undefined),
    signal,
  );
  print(
    "every machine runs the stock OS again, and the builder is gone; its images are kept while the MachineOSConfig stays",
  );
}

const builderPods = async (kube: KubeClient) =>
  (await kube.list(kubernetes.Pod, { namespace, labelSelector: `k8s-app=${objects.osBuilder}` })).items;

async function buildsOfTarget(kube: KubeClient): Promise<readonly MachineOSBuild[]> {
  const target = (await kube.get(MachineConfigPool, { name: pool }))?.spec.configuration?.name;
  return (await kube.list(MachineOSBuild)).items.filter(
    ({ spec }) => spec.machineOSConfig.name === pool && spec.machineConfig.name === target,
  );
}

async function poolState(kube: KubeClient) {
  const [object, nodes] = await Promise.all([
    kube.get(MachineConfigPool, { name: pool }),
    kube.list(kubernetes.Node, { labelSelector: `node-role.kubernetes.io/${pool}` }),
  ]);
  const conditions = object?.status?.conditions as { type: string; status?: string; message?: string }[] | undefined;
  const updated =
    conditionOf(conditions, "Updated")?.status === "True" &&
    object?.status?.observedGeneration === object?.metadata.generation;
  return {
    updated,
    target: object?.spec.configuration?.name ?? "",
    says: conditionOf(conditions, "Updating")?.message ?? "",
    images: nodes.items.map(({ metadata }) => imageText(namedImage(metadata.annotations ?? {}, "current"))),
    configs: nodes.items.map(({ metadata }) => metadata.annotations?.[annotations.currentConfig] ?? ""),
  };
}

/** Every machine of the pool runs the image that is rolled out. */
async function untilBooted(options: TourOptions, signal: AbortSignal): Promise<void> {
  const { kube, clock, print } = options;
  const began = clock.monotonic();
  const builds = printBuilds(options);
  const pools = printPool(options);
  const done = await until(
    options,
    "machines on the new image",
    async () => {
      const [state, config] = await Promise.all([poolState(kube), kube.get(MachineOSConfig, { name: pool })]);
      const image = config?.status?.currentImagePullSpec ?? "";
      const isOfTarget = (await buildsOfTarget(kube)).some(
        ({ metadata }) => metadata.name === config?.status?.machineOSBuild?.name,
      );
      return state.updated &&
        isOfTarget &&
        image !== "" &&
        state.images.every((one) => one === image) &&
        state.configs.every((one) => one === state.target)
        ? { image, machines: state.images.length }
        : undefined;
    },
    signal,
    async () => {
      await builds();
      await pools();
    },
  );
  print(
    `${done.machines} machines boot ${shortImage(done.image)}, ${durationText(clock.monotonic() - began)} after it was asked for`,
  );
}

function printBuilds({ kube, print }: TourOptions): () => Promise<void> {
  const printed = new Map<string, string>();
  return async () => {
    for (const build of (await kube.list(MachineOSBuild)).items) {
      const text = `${shortened(describeBuild(build))} [${build.metadata.annotations?.[annotations.buildStrategy] ?? "to be planned"}]`;
      if (printed.get(build.metadata.name) !== text) print(`   ${text}`);
      printed.set(build.metadata.name, text);
    }
  };
}

/** Without times, with shortened hashes, and at a readable length. */
function shortened(text: string): string {
  const short = text
    .replaceAll(/ since [^\s;,)]+/g, "")
    .replaceAll(/(?<=-)([0-9a-f]{8})[0-9a-f]{24}\b/g, "$1")
    .replaceAll(/(?<=@sha256:[0-9a-f]{12})[0-9a-f]{52}/g, "");
  return short.length <= longestLine ? short : `${short.slice(0, longestLine - 1)}…`;
}

function printPool({ kube, print }: TourOptions): () => Promise<void> {
  let printed = "";
  return async () => {
    const { says } = await poolState(kube);
    const text = shortened(says);
    if (text !== printed && text !== "") print(`   ${text}`);
    printed = text;
  };
}

async function until<T>(
  { clock }: Pick<TourOptions, "clock">,
  what: string,
  look: () => Promise<T | undefined>,
  signal: AbortSignal,
  meanwhile: () => Promise<void> = () => Promise.resolve(),
): Promise<T> {
  const began = clock.monotonic();
  for (;;) {
    signal.throwIfAborted();
    await meanwhile();
    const found = await look();
    if (found !== undefined) return found;
    if (clock.monotonic() - began > patienceMs)
      throw new McoError("MCO_TOUR_STUCK", { waitedFor: what, seconds: patienceMs / 1000 });
    await clock.sleep(lookEveryMs, signal);
  }
}
