import { McoError } from "../api/errors.ts";
import { type ConfigMap, kubernetes } from "../api/foreign/kubernetes.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { isOpenShiftBy } from "../core/render/openshift-inputs.ts";
import { pullSecretKey } from "../core/render/pull-secret.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { OSImageStream } from "../api/kinds/os-image-stream.ts";
import { annotations, fieldManagers, namespace, objects } from "../api/names.ts";
import { mergedAuth, registryAccessOf } from "../core/images/registry-access.ts";
import { trimMachineConfig } from "../core/pool/trim.ts";
import { textOfBase64 } from "../core/render/base-configs.ts";
import { fileText } from "../core/render/config-file.ts";
import { mostStoredTextBytes } from "../ignition/held-contents.ts";
import {
  type InspectedImage,
  type StreamDecision,
  type StreamSource,
  decideStreams,
  streamInputs,
  streamsOf,
} from "../core/render/os-streams.ts";
import { imageReferencesPath, imagesOfImageStream } from "../core/render/stream-sources.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Caches, type Context, type Controller, watching } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import { type Outcome, done, waiting } from "../kube/outcome.ts";
import type { ImageStore, ImageStoreSettings } from "../registry/image-store.ts";
import { own } from "../api/schema/own.ts";
import { streamsNotRead } from "./reports.ts";

type Images = Pick<ImageStore, "inspect" | "resolve" | "readFiles">;
export type OpenStreamImages = (settings: ImageStoreSettings) => Images;

/** Time after which sources that could not be read are read again. */
const retrySeconds = 60;
/** Time after which names without a digest may mean another image. */
const againSeconds = 3600;
const mostRemembered = 400;

const osImageMap = { namespace, fieldSelector: `metadata.name=${objects.osImageConfigMap}` } as const;
/** There is one ClusterVersion. */
const versionName = "version";
/** Key of the ConfigMap with the OS images, for clusters without a release payload: an ImageStream in JSON. */
export const imageStreamKey = "imageStream";

interface StreamMemory {
  /** Image by digest → its labels, which never change. */
  readonly labels: Map<string, InspectedImage["labels"]>;
  /** What was last said of the object. */
  told: string;
}

/** What the streams are read from. */
interface StreamInputs {
  readonly config: ControllerConfig;
  readonly map: ConfigMap | undefined;
  /** The release payload; empty: the cluster has none. */
  readonly payload: string;
  readonly installedVersion: string;
}

/**
 * Keeps OSImageStream/cluster: which OS images the cluster's sources offer to pools, by the labels of the images.
 *
 * @param open absent: this process reads no registry, and writes nothing.
 */
export function osImageStreamController(open: OpenStreamImages | undefined): Controller {
  const memory: StreamMemory = { labels: new Map(), told: "" };
  const key = [objects.clusterSingleton];
  return {
    name: "os-image-streams",
    watches: [
      watching({ resource: OSImageStream, optional: true }),
      watching({
        resource: ControllerConfig,
        concerns: ({ before, after }) => (equalValues(before?.spec, after?.spec) ? [] : key),
      }),
      watching({
        resource: kubernetes.ConfigMap,
        selection: osImageMap,
        concerns: ({ before, after }) => (equalValues(before?.data, after?.data) ? [] : key),
      }),
      watching({
        resource: openshift.ClusterVersion,
        optional: true,
        concerns: ({ before, after }) => (before?.status?.desired?.image === after?.status?.desired?.image ? [] : key),
      }),
      // For the registries of machines.
      watching({ resource: MachineConfigPool, concerns: () => [] }),
      watching({ resource: MachineConfig, keep: trimMachineConfig, concerns: () => [] }),
    ],
    owns: ["OSImageStream.status", "OSImageStream.metadata.annotations"],

    async reconcile(name, context): Promise<Outcome> {
      const { caches } = context;
      const inputs = observe(caches);
      if (open === undefined || name !== objects.clusterSingleton || inputs === undefined) return done();
      const meantFor = inputs.map?.data?.["releaseVersion"] ?? "";
      const version = inputs.config.metadata.annotations?.[annotations.generatedByVersion] ?? "";
      if (meantFor !== "" && version !== "" && meantFor !== version)
        return waiting("ReleaseArrives", `the OS images of release ${meantFor} wait for its operator`, retrySeconds);

      const sources = await readSources(inputs, await openImages(open, context), memory, context);
      const found = streamsOf(sources);
      const decision = decideStreams({
        existing: caches.of(OSImageStream).get(name),
        found,
        presentImage: inputs.config.spec.baseOSContainerImage,
        installedVersion: inputs.installedVersion,
        inputs: streamInputs(inputs.config.spec, inputs.payload),
      });
      await perform(decision, inputs.config, memory, context);
      return done(found.isComplete ? againSeconds : retrySeconds);
    },
  };
}

function observe(caches: Caches): StreamInputs | undefined {
  const config = caches.of(ControllerConfig).get(objects.controllerConfig);
  if (config === undefined) return undefined;
  const version = caches.of(openshift.ClusterVersion).get(versionName);
  return {
    config,
    map: caches.of(kubernetes.ConfigMap, osImageMap).list()[0],
    payload: version?.status?.desired?.image ?? "",
    installedVersion:
      version?.status?.history?.findLast(({ state }) => state === "Completed")?.version ??
      version?.status?.desired?.version ??
      "",
  };
}

/** Registries as machines reach them: the cluster's pull secret, authorities, proxy and mirrors. */
async function openImages(open: OpenStreamImages, { caches, kube, signal }: Context): Promise<Images> {
  const config = caches.of(ControllerConfig).get(objects.controllerConfig);
  const { trust, certificates, proxy, nodeAuth } = registryAccessOf(config?.spec);
  const secret = await kube.get(kubernetes.Secret, pullSecretKey(isOpenShiftBy(config)), { signal });
  const encoded = secret?.data?.[".dockerconfigjson"];
  const worker = caches.of(MachineConfigPool).get("worker")?.spec.configuration?.name ?? "";
  const registries = fileText(
    caches.of(MachineConfig).get(worker),
    "/etc/containers/registries.conf",
    mostStoredTextBytes,
  );
  return open({
    auth: { pull: mergedAuth([encoded === undefined ? undefined : textOfBase64(encoded), nodeAuth]), push: undefined },
    certificates: (host) =>
      Promise.resolve([...(own(certificates, host) ?? []), ...(trust === undefined ? [] : [trust])]),
    registries,
    // Labels of a stream are those of every architecture of its images.
    architecture: "amd64",
    proxy,
  });
}

/** The sources in their order: a later one replaces streams of earlier ones. */
async function readSources(
  { config, map, payload }: StreamInputs,
  images: Images,
  memory: StreamMemory,
  context: Context,
): Promise<readonly StreamSource[]> {
  const { baseOSContainerImage, baseOSExtensionsContainerImage = "" } = config.spec;
  const own = [baseOSContainerImage, baseOSExtensionsContainerImage].filter((image) => image !== "");
  const sources: StreamSource[] = [];
  // One image alone is no stream.
  if (own.length === 2)
    sources.push(await inspected(`ControllerConfig/${config.metadata.name}`, own, images, memory, context));
  if (payload !== "") {
    const name = `release payload ${payload}`;
    const text = await asked(async () => {
      const bytes = (await images.readFiles(payload, [imageReferencesPath], context.signal)).get(imageReferencesPath);
      return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
    }, context.signal);
    if ("problem" in text) sources.push({ name, images: [], problems: [text.problem] });
    else if (text.value === undefined)
      sources.push({ name, images: [], problems: [`it has no file ${imageReferencesPath}`] });
    else sources.push(await inspectedStream(name, text.value, images, memory, context));
  }
  const brought = map?.data?.[imageStreamKey];
  if (brought !== undefined)
    sources.push(
      await inspectedStream(
        `ConfigMap/${objects.osImageConfigMap} ${imageStreamKey}`,
        brought,
        images,
        memory,
        context,
      ),
    );
  return sources;
}

async function inspectedStream(
  name: string,
  text: string,
  images: Images,
  memory: StreamMemory,
  context: Context,
): Promise<StreamSource> {
  const named = imagesOfImageStream(text);
  if (named.verdict === "refused") return { name, images: [], problems: [named.problem] };
  return inspected(name, named.images, images, memory, context);
}

async function inspected(
  name: string,
  list: readonly string[],
  images: Images,
  memory: StreamMemory,
  { signal }: Context,
): Promise<StreamSource> {
  const read: InspectedImage[] = [];
  const problems: string[] = [];
  for (const image of list) {
    const answer = await asked(() => labelsOf(image, images, memory, signal), signal);
    if ("problem" in answer) problems.push(`${image}: ${answer.problem}`);
    else read.push(answer.value);
  }
  return { name, images: read, problems };
}

async function labelsOf(
  image: string,
  images: Images,
  { labels }: StreamMemory,
  signal: AbortSignal,
): Promise<InspectedImage> {
  const resolved = await images.resolve(image, signal);
  const known = labels.get(resolved);
  if (known !== undefined) return { image: resolved, labels: known };
  const found = await images.inspect(resolved, signal);
  if (found.is !== "image")
    throw new McoError("MCO_IMAGE_UNREACHABLE", { image, problem: found.problem, retryable: true });
  labels.set(resolved, found.labels);
  const oldest = labels.keys().next();
  if (labels.size > mostRemembered && oldest.done !== true) labels.delete(oldest.value);
  return { image: resolved, labels: found.labels };
}

/** The answer of a registry, or why there is none. */
async function asked<T>(
  ask: () => Promise<T>,
  signal: AbortSignal,
): Promise<{ readonly value: T } | { readonly problem: string }> {
  try {
    return { value: await ask() };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof McoError) || !error.code.startsWith("MCO_IMAGE_")) throw error;
    const { problem } = error.facts;
    return { problem: typeof problem === "string" ? problem : error.message };
  }
}

async function perform(
  decision: StreamDecision,
  config: ControllerConfig,
  memory: StreamMemory,
  context: Context,
): Promise<void> {
  const { kube, signal, report, log } = context;
  const told = decision.problems.join("; ");
  const isNews = told !== memory.told;
  memory.told = told;
  if (decision.do === "nothing") {
    if (isNews && told !== "") {
      log.info({ problems: decision.problems }, "no OS image stream is known");
      report(streamsNotRead(config, told));
    }
    return;
  }
  const by = { owner: fieldManagers.osImageStreams, signal };
  const { create, status } = decision;
  const key = { name: objects.clusterSingleton };
  if (create !== undefined)
    await kube.create(
      OSImageStream,
      { apiVersion: OSImageStream.apiVersion, kind: OSImageStream.kind, metadata: key, spec: create },
      by,
    );
  if (status !== undefined)
    await updateObject(
      kube,
      OSImageStream,
      key,
      (object) => (equalValues(object.status, status) ? undefined : { status }),
      { subresource: "status", ...by },
    );
  // Last: pools wait until the streams are those of the images that are named now.
  const written = await updateObject(
    kube,
    OSImageStream,
    key,
    ({ metadata }) => {
      const wanted = { ...metadata.annotations, ...decision.annotations };
      return equalValues(metadata.annotations ?? {}, wanted)
        ? undefined
        : { metadata: { ...metadata, annotations: wanted } };
    },
    by,
  );
  if (isNews && told !== "" && written !== undefined) report(streamsNotRead(written, told));
}
