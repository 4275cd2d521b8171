import { pushAll } from "../../api/schema/push-all.ts";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { OSImageStream, StreamImages } from "../../api/kinds/os-image-stream.ts";
import { annotations, imageLabels } from "../../api/names.ts";
import { isDnsName } from "../../api/schema/schema.ts";

/** They follow no other pool. */
const builtInPools: ReadonlySet<string> = new Set(["master", "worker", "arbiter"]);

/** What a registry says of one image. */
export interface InspectedImage {
  /** By digest. */
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** What one source names. `problems`: images of it that could not be read, or the source itself. */
export interface StreamSource {
  /** `ConfigMap machine-config-osimageurl`, `release payload IMAGE`. */
  readonly name: string;
  readonly images: readonly InspectedImage[];
  readonly problems: readonly string[];
}

export interface FoundStreams {
  /** Sorted by name. */
  readonly streams: readonly StreamImages[];
  readonly problems: readonly string[];
  /** Everything that the sources name was read. */
  readonly isComplete: boolean;
}

/**
 * The streams that the sources name; a later source replaces a stream of the same name. A stream needs an OS image and
 * an image with extensions from the same source. An image without the label of a stream belongs to none.
 *
 * Labels: openshift/machine-config-operator pkg/osimagestream (main).
 */
export function streamsOf(sources: readonly StreamSource[]): FoundStreams {
  const streams = new Map<string, StreamImages>();
  const problems: string[] = [];
  for (const source of sources) {
    pushAll(
      problems,
      source.problems.map((problem) => `${source.name}: ${problem}`),
    );
    const halves = new Map<string, { os: Set<string>; extensions: Set<string> }>();
    for (const { image, labels } of source.images) {
      const name = labels[imageLabels.streamClass] ?? "";
      const part = partOf(labels);
      if (name === "" || part === undefined) continue;
      const half = halves.get(name) ?? { os: new Set(), extensions: new Set() };
      half[part].add(image);
      halves.set(name, half);
    }
    for (const [name, { os, extensions }] of halves) {
      const [osImage, osExtensionsImage] = [[...os][0], [...extensions][0]];
      if (!isDnsName(name)) problems.push(`${source.name}: ${name} is no name of a stream`);
      else if (osImage === undefined || osExtensionsImage === undefined)
        problems.push(
          `${source.name}: the stream ${name} has no ${osImage === undefined ? "OS image" : "image with extensions"}, and pools cannot follow it`,
        );
      else if (os.size + extensions.size > 2)
        problems.push(`${source.name}: the stream ${name} has several images: ${[...os, ...extensions].join(", ")}`);
      else streams.set(name, { name, osImage, osExtensionsImage });
    }
  }
  return {
    streams: [...streams.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    problems,
    isComplete: sources.every((source) => source.problems.length === 0),
  };
}

/** Images with extensions are built from an OS image and may have its labels too. */
const partOf = (labels: InspectedImage["labels"]): "os" | "extensions" | undefined =>
  imageLabels.osExtensions in labels ? "extensions" : imageLabels.bootc in labels ? "os" : undefined;

export interface StreamView {
  readonly existing: Pick<OSImageStream, "metadata" | "spec" | "status"> | undefined;
  readonly found: FoundStreams;
  /** The OS image that the ControllerConfig names. */
  readonly presentImage: string;
  /** The version that the cluster was installed with; empty: not known. */
  readonly installedVersion: string;
  /** `streamInputs` of what the sources were read for. */
  readonly inputs: string;
}

export type StreamDecision =
  /** There is no stream, and no object that could say so. */
  | { readonly do: "nothing"; readonly problems: readonly string[] }
  | {
      readonly do: "write";
      /** `undefined`: the object exists. */
      readonly create: OSImageStream["spec"] | undefined;
      /** `undefined`: it stays as it is. */
      readonly status: NonNullable<OSImageStream["status"]> | undefined;
      readonly annotations: Readonly<Record<string, string>>;
      readonly problems: readonly string[];
    };

/**
 * The status of OSImageStream/cluster. While a source cannot be read, streams that no other source names stay: a
 * registry that is away takes no OS image from a pool.
 */
export function decideStreams({ existing, found, presentImage, installedVersion, inputs }: StreamView): StreamDecision {
  const kept = found.isComplete ? [] : (existing?.status?.availableStreams ?? []);
  const streams = [
    ...found.streams,
    ...kept.filter(({ name }) => !found.streams.some((stream) => stream.name === name)),
  ].sort((a, b) => (a.name < b.name ? -1 : 1));
  const choice = defaultOf(existing, streams, presentImage, installedVersion);
  if (existing === undefined && choice === undefined) return { do: "nothing", problems: found.problems };
  const wanted = existing?.spec.defaultStream;
  const problems = [
    ...found.problems,
    ...(wanted === undefined || wanted === choice
      ? []
      : [
          `spec.defaultStream: there is no stream ${wanted}; ${streams.length === 0 ? "no source names one" : `the streams are ${streams.map(({ name }) => name).join(", ")}, and pools without one follow ${choice ?? "the cluster's OS image"}`}`,
        ]),
  ];
  return {
    do: "write",
    create: existing === undefined && choice !== undefined ? { defaultStream: choice } : undefined,
    status: choice === undefined ? undefined : { availableStreams: [...streams], defaultStream: choice },
    annotations: {
      [annotations.streamInputs]: inputs,
      [annotations.streamProblems]: problems.length === 0 ? "" : JSON.stringify(problems),
    },
    problems,
  };
}

/**
 * The default: what the object wants, what it has, the only one, the built-in rule of the reference, and last the stream
 * of the image that machines have already.
 *
 * Source of the order: openshift/machine-config-operator pkg/osimagestream (main).
 */
function defaultOf(
  existing: StreamView["existing"],
  streams: readonly StreamImages[],
  presentImage: string,
  installedVersion: string,
): string | undefined {
  const only = streams.length === 1 ? streams[0]?.name : undefined;
  const present = streams.find(({ osImage }) => osImage === presentImage)?.name;
  return [
    existing?.spec.defaultStream,
    existing?.status?.defaultStream,
    only,
    builtInDefault(installedVersion),
    present,
    streams[0]?.name,
  ].find((name) => streams.some((stream) => stream.name === name));
}

function builtInDefault(version: string): string | undefined {
  if (/okd|scos/.test(version)) return "centos-10";
  const major = /^(\d+)\./.exec(version)?.[1];
  return major === undefined ? undefined : Number(major) >= 5 ? "rhel-10" : "rhel-9";
}

/** What could not be read of the streams, as the object has it. */
export function problemsOfStreams({ metadata }: Pick<OSImageStream, "metadata">): readonly string[] {
  try {
    const read: unknown = JSON.parse(metadata.annotations?.[annotations.streamProblems] ?? "");
    return Array.isArray(read) ? read.filter((text) => typeof text === "string") : [];
  } catch {
    // Empty, or written by somebody else.
    return [];
  }
}

/** What streams are read for: a status for other images is not current. */
export const streamInputs = (
  { baseOSContainerImage, baseOSExtensionsContainerImage = "" }: Partial<ControllerConfig["spec"]>,
  payload: string,
): string => JSON.stringify([baseOSContainerImage ?? "", baseOSExtensionsContainerImage, payload]);

/** Whether the streams were read for the images that the ControllerConfig names now. */
export function isCurrentStream(
  stream: Pick<OSImageStream, "metadata">,
  spec: Partial<Pick<ControllerConfig["spec"], "baseOSContainerImage" | "baseOSExtensionsContainerImage">>,
): boolean {
  const inputs = stream.metadata.annotations?.[annotations.streamInputs] ?? "";
  const ours = streamInputs(spec, "");
  // Those of another suite say nothing of it.
  return inputs === "" || inputs.startsWith(ours.slice(0, ours.lastIndexOf(",")));
}

/** The stream of a pool. */
export type StreamOfPool =
  /** The cluster has no streams: machines get the ControllerConfig's images. */
  | { readonly verdict: "none" }
  | { readonly verdict: "stream"; readonly stream: StreamImages; readonly from: "pool" | "worker" | "default" }
  /** The pool, or the worker pool for it, names a stream that there is not. */
  | ({ readonly verdict: "unknown" } & UnknownStream);

export interface UnknownStream {
  readonly name: string;
  readonly from: "pool" | "worker";
  /** The streams that exist. */
  readonly streams: readonly string[];
}

type PoolWithStream = Pick<MachineConfigPool, "metadata"> & {
  readonly spec?: Pick<NonNullable<MachineConfigPool["spec"]>, "osImageStream">;
};

/** Its own, else that of the worker pool for a pool of an administrator, else the cluster's default. */
export function streamOfPool(
  pool: PoolWithStream,
  pools: readonly PoolWithStream[],
  osImageStream: Pick<OSImageStream, "status"> | undefined,
): StreamOfPool {
  const builtIn = builtInPools.has(pool.metadata.name);
  const own = pool.spec?.osImageStream?.name ?? "";
  const workers = builtIn
    ? ""
    : (pools.find(({ metadata }) => metadata.name === "worker")?.spec?.osImageStream?.name ?? "");
  const streams = osImageStream?.status?.availableStreams ?? [];
  const find = (name: string) => streams.find((stream) => stream.name === name);
  const [name, from] = own !== "" ? ([own, "pool"] as const) : ([workers, "worker"] as const);
  if (name !== "") {
    const stream = find(name);
    return stream === undefined
      ? { verdict: "unknown", name, from, streams: streams.map((each) => each.name) }
      : { verdict: "stream", stream, from };
  }
  const stream = find(osImageStream?.status?.defaultStream ?? "");
  return stream === undefined ? { verdict: "none" } : { verdict: "stream", stream, from: "default" };
}

/** The stream whose OS image a rendered config has; `undefined`: none, or a MachineConfig names an image of its own. */
export function streamOfRendered(
  rendered:
    | {
        readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
        readonly spec?: { readonly osImageURL?: string };
      }
    | undefined,
  osImageStream: Pick<OSImageStream, "status"> | undefined,
): string | undefined {
  if (rendered?.metadata.annotations?.[annotations.osImageURLOverridden] === "true") return undefined;
  return osImageStream?.status?.availableStreams.find(({ osImage }) => osImage === rendered?.spec?.osImageURL)?.name;
}

/** What a pool's stream means for its rendered config. */
export function renderStreamOf(
  pool: PoolWithStream,
  pools: readonly PoolWithStream[],
  osImageStream: Pick<OSImageStream, "status"> | undefined,
): {
  readonly stream?: { readonly name: string; readonly osImage: string; readonly extensionsImage: string };
  readonly unknownStream?: UnknownStream;
} {
  const found = streamOfPool(pool, pools, osImageStream);
  switch (found.verdict) {
    case "none":
      return {};
    case "unknown":
      return { unknownStream: found };
    case "stream": {
      const { name, osImage, osExtensionsImage } = found.stream;
      return { stream: { name, osImage, extensionsImage: osExtensionsImage } };
    }
  }
}
