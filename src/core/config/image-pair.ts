import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import {
  annotations,
  machineOSBuildConditions as types,
  machineOSConfigConditions,
  namespace,
  objects,
  poolConditions,
} from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { optInOf } from "./opt-in.ts";
import { hasEnded, stateOfBuild } from "./build-phase.ts";
import { readComponents } from "./key-components.ts";
import type { ContentMode } from "./node-config.ts";

export const imageWaitReasons = ["WaitingForBuild", "BuildFailed", "BuildInterrupted", "OptOutGrace"] as const;
export type ImageWaitReason = (typeof imageWaitReasons)[number];

/** Why no machine of a pool can get its target now. */
export interface ImageWait {
  readonly reason: ImageWaitReason;
  readonly message: string;
  readonly remedy: string;
  /** A build runs or follows on its own: no action is needed. */
  readonly goesOn?: true;
}

/** The image that goes with a pool's configuration. */
export interface ImageTarget {
  /** Pullspec by digest; empty: machines run the operating system that the configuration names. */
  readonly image: string;
  /** What the image holds of the configuration. */
  readonly content: ContentMode;
  readonly awaits: ImageWait | undefined;
  /** Digest of the base image; empty: unknown. */
  readonly base: string;
  /** The pool was opted in together with all others. */
  readonly byDefault: boolean;
}

export const stockTarget: ImageTarget = {
  image: "",
  content: "os-only",
  awaits: undefined,
  base: "",
  byDefault: false,
};
export const sameImageTarget = (a: ImageTarget, b: ImageTarget): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Whether a machine was given all of a target: its configuration and its image, which has been built. */
export const isGiven = (
  machine: { readonly desired: string; readonly desiredImage: string },
  target: string,
  { image, awaits }: ImageTarget,
): boolean => machine.desired === target && machine.desiredImage === image && awaits === undefined;

/** Known facts about a pool's images. */
export interface ImageFacts {
  /** The MachineOSConfig that decides about the pool. */
  readonly config: MachineOSConfig | undefined;
  /** MachineOSBuilds of it. */
  readonly builds: readonly MachineOSBuild[];
  /** Milliseconds after the deletion of a MachineOSConfig during which machines keep their images. */
  readonly graceMs: number;
}

const digestPullspec = /^[^@\s]+@sha256:[0-9a-f]{64}$/;
export const isDigestPullspec = (image: string): boolean => digestPullspec.test(image);

/**
 * The image that every machine of a pool should boot, or why it gets none: only a single MachineOSBuild pairs a
 * configuration with an image.
 */
export function imageTargetOf(
  pool: Pick<MachineConfigPool, "metadata" | "spec" | "status">,
  { config, builds, graceMs }: ImageFacts,
  now: number,
): ImageTarget {
  const configs = config === undefined ? [] : [config];
  // The builder makes a MachineOSConfig for each pool that the cluster's default opts in.
  const optIn = optInOf(pool, { configs, defaultOptIn: undefined, graceMs, now });
  if (optIn.opted === "out") return stockTarget;
  if (optIn.config === undefined) return optIn.opted === "leaving" ? keptUntil(optIn.until) : notMadeYet(pool);
  const wanted = pool.spec.configuration?.name ?? "";
  const pair = publishedPair(optIn.config, builds, wanted);
  const wait =
    optIn.opted === "in"
      ? waitForImage(pool.metadata.name, { config: optIn.config, builds, wanted, isPublished: pair !== undefined })
      : {
          reason: "OptOutGrace" as const,
          message: `the MachineOSConfig ${optIn.config.metadata.name} is being deleted: machines go back to the stock OS after ${new Date(optIn.until).toISOString()}`,
          remedy: "make the MachineOSConfig again to keep the images",
        };
  return { ...(pair ?? { ...stockTarget, byDefault: isByDefault(optIn.config) }), awaits: wait };
}

const isByDefault = ({ metadata }: MachineOSConfig) =>
  metadata.annotations?.[annotations.optInSource] === "ClusterDefault";

/** The target of a pool whose MachineOSConfig is gone, and whose machines keep their images for a time. */
const keptUntil = (until: number): ImageTarget =>
  waits(
    "OptOutGrace",
    `the MachineOSConfig was deleted: machines go back to the stock OS after ${new Date(until).toISOString()}`,
    "make the MachineOSConfig again to keep the images",
  );

/** The target of a pool that is opted in, and whose MachineOSConfig the builder has not created yet. */
function notMadeYet(pool: Pick<MachineConfigPool, "status">): ImageTarget {
  const lacking = lackingInputsOf(pool);
  return lacking === undefined
    ? waits(
        "WaitingForBuild",
        "the pool has opted in to images, and its MachineOSConfig is not there yet",
        "see the pod machine-os-builder and the ConfigMap on-cluster-build-config",
      )
    : waits(
        "BuildFailed",
        `no image can be built from what was given: ${lacking}`,
        `correct the ConfigMap ${objects.buildConfig} in ${namespace}; docs/os-images.md lists its keys`,
      );
}

/** What the builder reports on a pool whose image it cannot plan. */
export function lackingInputsOf({ status }: Pick<MachineConfigPool, "status">): string | undefined {
  const condition = conditionOf(status?.conditions as PoolConditions, poolConditions.imageInputsValid);
  return condition?.status === "False" ? condition.message : undefined;
}

type PoolConditions =
  | readonly { readonly type: string; readonly status: string; readonly reason?: string; readonly message?: string }[]
  | undefined;

/** The image that the MachineOSConfig publishes, if one build made it from the configuration that the pool wants. */
function publishedPair(
  config: MachineOSConfig,
  builds: readonly MachineOSBuild[],
  wanted: string,
): ImageTarget | undefined {
  const published = builds.find(({ metadata }) => metadata.name === config.status?.machineOSBuild?.name);
  const image = published?.status?.digestedImagePushSpec ?? "";
  const isPublished =
    published !== undefined &&
    isTrue(published, types.succeeded) &&
    published.spec.machineConfig.name === wanted &&
    image === config.status?.currentImagePullSpec &&
    isDigestPullspec(image);
  if (!isPublished) return undefined;
  return {
    image,
    content: published.metadata.annotations?.[annotations.imageContent] === "full" ? "full" : "os-only",
    awaits: undefined,
    base: baseOf(published),
    byDefault: isByDefault(config),
  };
}

/** What the machines of a pool wait for before they get an image; `undefined`: the published one is current. */
function waitForImage(
  pool: string,
  {
    config,
    builds,
    wanted,
    isPublished,
  }: {
    readonly config: MachineOSConfig;
    readonly builds: readonly MachineOSBuild[];
    readonly wanted: string;
    readonly isPublished: boolean;
  },
): ImageWait | undefined {
  const inputs = conditionOf(config.status?.conditions, machineOSConfigConditions.inputsValid);
  if (!isPublished && inputs?.status === "False")
    return {
      reason: "BuildFailed",
      message: `no image can be built from the inputs: ${inputs.message}`,
      remedy: `correct the inputs that MachineOSConfig ${config.metadata.name} names: mco build explain ${pool}`,
    };
  const forTarget = builds.filter(({ spec }) => spec.machineConfig.name === wanted);
  const running = forTarget.find((build) => !hasEnded(stateOfBuild(build)));
  if (running !== undefined && stateOfBuild(running).reason === "InputChanged")
    return {
      reason: "WaitingForBuild",
      message: `the image of ${wanted} cannot be built yet: ${describeBuild(running)}`,
      remedy: `provide what ${running.metadata.name} waits for: mco build explain ${pool}`,
    };
  if (running !== undefined)
    return {
      reason: "WaitingForBuild",
      message: `the image of ${wanted} is being made: ${describeBuild(running)}`,
      remedy: `it continues when ${running.metadata.name} is done: mco build status`,
      goesOn: true,
    };
  if (isPublished) return undefined;
  const last = newest(forTarget);
  const obstacle = last === undefined ? standingObstacle(config) : undefined;
  if (obstacle !== undefined)
    return {
      reason: "WaitingForBuild",
      message: `the image of ${wanted} cannot be built yet: ${obstacle.message}`,
      remedy: `provide what the build needs: mco build explain ${pool}`,
    };
  return (
    (last === undefined ? undefined : waitAfter(last, wanted, pool)) ?? {
      reason: "WaitingForBuild",
      message: `the image of ${wanted} has to be built first`,
      remedy: "it continues when the image is built: mco build status",
      goesOn: true,
    }
  );
}

/** Reasons of the condition UpToDate that pass by themselves, or that another condition or a build explains. */
const passing: ReadonlySet<string> = new Set([
  "WaitingForRender",
  "InputsInvalid",
  "InputsMoving",
  "Building",
  "BuildFailed",
  "BuildInterrupted",
  "OptedOut",
  "PoolNotFound",
]);

/** What keeps the builder from beginning a build; `undefined`: nothing does that an administrator has to see to. */
export function standingObstacle(
  config: Pick<MachineOSConfig, "status"> | undefined,
): { readonly reason: string; readonly message: string } | undefined {
  const standing = conditionOf(config?.status?.conditions, machineOSConfigConditions.upToDate);
  return standing?.status !== "False" || passing.has(standing.reason) ? undefined : standing;
}

/** What the newest build leaves to an administrator; `undefined`: another build follows by itself. */
function waitAfter(last: MachineOSBuild, wanted: string, pool: string): ImageWait | undefined {
  if (isTrue(last, types.failed))
    return {
      reason: "BuildFailed",
      message: `the image of ${wanted} could not be built: ${describeBuild(last)}`,
      remedy: `mco build explain ${pool} says what to do; then: mco build start ${pool}`,
    };
  const isRetried = last.metadata.annotations?.[annotations.nextAttemptAt] !== undefined;
  const isSuperseded = conditionOf(last.status?.conditions, types.interrupted)?.reason === "Superseded";
  if (!isTrue(last, types.interrupted) || isRetried || isSuperseded) return undefined;
  return {
    reason: "BuildInterrupted",
    message: `the build of the image of ${wanted} was ended: ${describeBuild(last)}`,
    remedy: `to have it built after all: mco build start ${pool}`,
  };
}

const waits = (reason: ImageWaitReason, message: string, remedy: string): ImageTarget => ({
  ...stockTarget,
  awaits: { reason, message, remedy },
});
const isTrue = (build: Pick<MachineOSBuild, "status">, type: string) =>
  conditionOf(build.status?.conditions, type)?.status === "True";

/** The state of a build in a few words. */
export function describeBuild({ metadata, status }: MachineOSBuild): string {
  const speaking = (status?.conditions ?? []).find((condition) => condition.status === "True");
  return speaking === undefined
    ? `${metadata.name} has not begun`
    : `${metadata.name} ${speaking.type} (${speaking.reason})${speaking.message === "" ? "" : `: ${speaking.message}`}`;
}

/** The build that was created last. */
export function newest(builds: readonly MachineOSBuild[]): MachineOSBuild | undefined {
  const at = ({ metadata }: MachineOSBuild) => metadata.creationTimestamp ?? "";
  return builds.reduce<MachineOSBuild | undefined>(
    (last, build) =>
      last === undefined || at(build) > at(last) || (at(build) === at(last) && build.metadata.name > last.metadata.name)
        ? build
        : last,
    undefined,
  );
}

/** Digest of the base image of a build. */
export function baseOf({ metadata }: Pick<MachineOSBuild, "metadata">): string {
  const base = readComponents(metadata.annotations?.[annotations.keyInputs])?.["base"];
  return typeof base === "string" ? base : "";
}

/** The image in the annotations of a node, which have two keys for it: ours, and an older one. */
export type NamedImage =
  | { readonly verdict: "none" }
  | { readonly verdict: "image"; readonly image: string }
  /** The two annotations disagree. */
  | { readonly verdict: "conflicting"; readonly image: string; readonly older: string };

/** The current or desired image of a node, from its annotations. An empty value counts as absent. */
export function namedImage(notes: Readonly<Record<string, string>>, of: "desired" | "current"): NamedImage {
  const [image = "", older = ""] =
    of === "desired"
      ? [notes[annotations.desiredImage], notes[annotations.desiredOSImage]]
      : [notes[annotations.currentImage], notes[annotations.currentOSImage]];
  if (image === "" && older === "") return { verdict: "none" };
  if (image !== "" && older !== "" && image !== older) return { verdict: "conflicting", image, older };
  return { verdict: "image", image: image === "" ? older : image };
}

/**
 * A text for comparison and display: empty for no image, the pullspec of one, and both of a conflict, which equals no
 * pullspec.
 */
export function imageText(named: NamedImage): string {
  switch (named.verdict) {
    case "none":
      return "";
    case "image":
      return named.image;
    case "conflicting":
      return `${named.image} or ${named.older}`;
  }
}

/** Every named image: both of a conflict, since the machine may run either. */
export function imagesNamed(named: NamedImage): readonly string[] {
  switch (named.verdict) {
    case "none":
      return [];
    case "image":
      return [named.image];
    case "conflicting":
      return [named.image, named.older];
  }
}

/** A node's annotations for its desired image, which go into the same patch as its desired configuration. */
export function imageAnnotations(
  { image, content }: Pick<ImageTarget, "image" | "content">,
  node: Pick<Node, "metadata">,
): Readonly<Record<string, string | null>> {
  const keys = [annotations.desiredImage, annotations.desiredOSImage, annotations.desiredImageContent] as const;
  if (image !== "")
    return {
      [annotations.desiredImage]: image,
      [annotations.desiredOSImage]: image,
      [annotations.desiredImageContent]: content,
    };
  return Object.fromEntries(
    keys.filter((key) => node.metadata.annotations?.[key] !== undefined).map((key) => [key, null]),
  );
}

/** `…@sha256:0123456789ab` */
export const shortImage = (image: string): string => image.replace(/^.*@(sha256:[0-9a-f]{12})[0-9a-f]*$/, "$1");
