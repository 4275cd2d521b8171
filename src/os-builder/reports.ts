/**
 * Everything that the os-builder reports, as a function for each happening: its lines in books, its Events and all of their
 * texts. Callers give the facts, and pass the result to `report`.
 */
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations } from "../api/names.ts";
import { defined } from "../api/schema/defined.ts";
import { type FailureRecord, attemptOf } from "../core/build/build-retry.ts";
import { type Happening, noticed } from "../kube/report.ts";
import { poolOfBuild } from "./cluster-facts.ts";

const bookOf = ({ metadata }: MachineOSBuild) => ({ book: `build/${metadata.name}` }) as const;
/** The chapter of a build in the book of its pool. */
const inPool = (build: MachineOSBuild) =>
  ({
    book: `pool/${poolOfBuild(build)}`,
    run: build.metadata.name,
  }) as const;
const inAttempt = (build: MachineOSBuild) => {
  const attempt = attemptOf(build);
  return { ...bookOf(build), run: String(attempt), path: `Attempt/${attempt}` } as const;
};
const byAdministrator = (action: string) => ({ action, actor: "administrator" }) as const;

// The process

const life = (identity: string) => ({ book: "cluster", chapter: "OsBuilder", run: identity }) as const;

export const builderStarted = (identity: string, version: string): Happening => ({
  ...life(identity),
  path: "Start",
  mark: "begin",
  reason: "Started",
  message: `${identity}, version ${version}`,
});

export const builderStopped = (identity: string): Happening => ({
  ...life(identity),
  path: "Shutdown",
  mark: "end",
  reason: "Stopped",
  message: `${identity} ended`,
});

// Opting in and out

/** @param source what opted the pool in. */
export const poolOptedIn = (config: MachineOSConfig, source: string): Happening => {
  const pool = config.spec.machineConfigPool.name;
  return {
    book: `pool/${pool}`,
    run: config.metadata.uid ?? config.metadata.name,
    mark: "end",
    reason: "OptedIn",
    message: `machines of ${pool} get images that are built on the cluster (${source})`,
    data: { source },
  };
};

/** @param run of the chapter: when the pool was opted out. */
export const poolOptedOut = (pool: MachineConfigPool, run: string): Happening => ({
  about: pool,
  book: `pool/${pool.metadata.name}`,
  run,
  mark: "end",
  reason: "OptedOut",
  message: `machines of ${pool.metadata.name} go back to the stock operating system`,
});

/** Why a MachineOSConfig decides about no pool. */
export interface ConfigRefusal {
  readonly reason: "PoolNotFound" | "OptedOut" | "DuplicateForPool";
  readonly message: string;
}

export const configRefused = (config: MachineOSConfig, { reason, message }: ConfigRefusal): Happening =>
  noticed(config, reason, message);

export const configDeleted = (config: MachineOSConfig): Happening =>
  noticed(config, "ConfigDeleted", "its builds are removed; its images stay while a machine needs them");

export const contentStamped = (config: MachineOSConfig): Happening =>
  noticed(
    config,
    "ImageContentStamped",
    `its images were made without files and units, and stay so: ${annotations.imageContent} is os-only now; set it to full to have all of the configuration in the image`,
  );

// Inputs

/** @param about the MachineOSConfig, or the pool if it has none. */
export const inputsRefused = (about: MachineOSConfig | MachineConfigPool, message: string): Happening =>
  noticed(about, "ConfigReconcileFailed", message);

export const inputsAccepted = (config: MachineOSConfig): Happening =>
  noticed(config, "ConfigReconciled", "an image can be made from the inputs");

/** @param text the value of the annotation that counts retries. */
export const retriesUnreadable = (pool: MachineConfigPool, text: string | undefined): Happening =>
  inputsRefused(
    pool,
    `${annotations.buildRetries} is ${JSON.stringify(text)}, which is no number of retries: it counts as none`,
  );

export const buildsDegraded = (pool: MachineConfigPool, message: string): Happening =>
  noticed(pool, "BuildDegraded", message);

export const buildsRecovered = (pool: MachineConfigPool): Happening =>
  noticed(pool, "BuildRecovered", "an image can be made again");

// Rebuilds

/** @param request the administrator's text, as far as there is one. */
export const rebuildRequested = (pool: MachineConfigPool, request: string): Happening =>
  noticed(pool, "RebuildRequested", `the image is built again${request === "" ? "" : ` (${request.slice(0, 200)})`}`);

/** @param until the sentence that says when such a request counts. */
export const rebuildIgnored = (pool: MachineConfigPool, until: string): Happening =>
  noticed(
    pool,
    "RebuildIgnored",
    `the pool has no images that could be built again; ${annotations.rebuildImage} counts once ${until}`,
  );

export const rebuildUnchanged = (pool: MachineConfigPool, image: string): Happening =>
  noticed(pool, "RebuildUnchanged", `built again, the image is the same to the last byte: ${image}`);

/** A build that failed is removed, because the administrator wants another one. */
export const failedBuildDeleted = (build: MachineOSBuild): Happening =>
  noticed(build, "BuildDeleted", "a rebuild was asked for, and this one had failed");

// A build

export interface PlannedBuild {
  readonly strategy: string;
  readonly because: string;
  /** The rendered configuration. */
  readonly rendered: string;
  readonly key: string;
  readonly from?: MachineOSBuild;
}

export const buildPlanned = (
  build: MachineOSBuild,
  { strategy, because, rendered, key, from }: PlannedBuild,
): Happening => [
  {
    about: build,
    ...bookOf(build),
    mark: "end",
    reason: "BuildPlanned",
    message: `${strategy}: ${because}`,
    data: { strategy, config: rendered, key, pool: poolOfBuild(build), ...defined({ from: from?.metadata.name }) },
  },
  {
    ...inPool(build),
    mark: "begin",
    reason: "BuildStarted",
    message: `${build.metadata.name} makes the image of ${rendered}: ${strategy}, as ${because}`,
    data: { chapter: bookOf(build).book, strategy },
  },
];

/** @param before the configuration that the pool's present image is of. */
export const configReplaced = (
  pool: MachineConfigPool,
  { rendered, before, strategy }: { readonly rendered: string; readonly before: string; readonly strategy: string },
): Happening => noticed(pool, "PoolConfigChanged", `${rendered} in place of ${before}: ${strategy}`);

/** The build waits for others, because its backend runs as many as it may. */
export const buildQueued = (message: string): Happening => ({
  book: "cluster",
  mark: "note",
  reason: "BuildQueued",
  message,
});

/** The build waits for the run of another one. */
export const buildAttached = (build: MachineOSBuild, message: string): Happening =>
  noticed(build, "BuildAttached", message);

/** The run of an attempt was begun. */
export const runBegun = (build: MachineOSBuild, message: string): Happening => [
  {
    ...bookOf(build),
    run: String(attemptOf(build)),
    mark: "end",
    reason: "BuildPrepared",
    message: `attempt ${attemptOf(build)} has all of its inputs`,
  },
  { about: build, ...inAttempt(build), mark: "begin", reason: "BuildStarted", message },
];

/** The run of an attempt was seen for the first time. */
export const runSeen = (build: MachineOSBuild): Happening =>
  noticed(build, "BuildBuilding", `attempt ${attemptOf(build)} runs`);

/** @param step that the run is at; `undefined`: the backend has no steps, and `reason` says what it does. */
export const stepReached = (build: MachineOSBuild, step: string | undefined, reason: string): Happening => ({
  ...inAttempt(build),
  mark: "note",
  reason: "BuildStepDone",
  message: `at ${step ?? reason}`,
  data: { step: step ?? "" },
});

/** An attempt failed, and another one follows. */
export const attemptFailed = (
  build: MachineOSBuild,
  because: string,
  record: Pick<FailureRecord, "class" | "step" | "nextAction">,
): Happening => ({
  about: build,
  ...inAttempt(build),
  mark: "fail",
  reason: "BuildStepFailed",
  message: because,
  data: { class: record.class, step: record.step },
  next: byAdministrator(record.nextAction),
});

export const imageBuilt = (
  build: MachineOSBuild,
  image: string,
  reason: "Ready" | "Appended" | "Reused",
): Happening => [
  reason === "Reused"
    ? {
        about: build,
        notice: "BuildReused",
        message: `takes the image of ${build.metadata.annotations?.[annotations.reusedFrom] ?? "an earlier build"}: ${image}`,
      }
    : { about: build, ...inAttempt(build), chapter: "Building", mark: "end", reason: "ImageBuilt", message: image },
  {
    ...bookOf(build),
    chapter: "Verified",
    path: "Verified",
    mark: "end",
    reason: "ImageBuilt",
    message: `${image} (${reason})`,
  },
  {
    ...inPool(build),
    mark: "end",
    reason: "ImageBuilt",
    message: image,
    data: { chapter: bookOf(build).book, image },
  },
];

/** The build failed with its last attempt. @param record of that attempt, as far as there is one. */
export const buildFailed = (
  build: MachineOSBuild,
  reason: string,
  message: string,
  record: Pick<FailureRecord, "class" | "step" | "nextAction"> | undefined,
): Happening => {
  const next = byAdministrator(record?.nextAction ?? "Read the message");
  const data = { class: record?.class ?? reason };
  return [
    {
      // The Event is about the build.
      about: undefined,
      ...inAttempt(build),
      mark: "fail",
      reason: "BuildStepFailed",
      message,
      data: { ...data, step: record?.step ?? "" },
      next,
    },
    {
      about: build,
      ...bookOf(build),
      mark: "fail",
      reason: reason === "RetryLimitReached" ? "RetryLimitReached" : "BuildFailed",
      message,
      data,
      next,
    },
    {
      ...inPool(build),
      mark: "fail",
      reason: "BuildFailed",
      message,
      data: { chapter: bookOf(build).book, ...data },
      next,
    },
  ];
};

/** The build ended without an image, which is no failure. */
export const buildInterrupted = (
  build: MachineOSBuild,
  reason: "Superseded" | "OptedOut" | "UserDeleted",
  why: string,
): Happening => {
  const message = `${reason}: ${why}`;
  return [
    {
      about: build,
      ...bookOf(build),
      chapter: "Interrupted",
      path: "Interrupted",
      mark: "end",
      outcome: "Interrupted",
      reason: "BuildInterrupted",
      message,
    },
    { ...inPool(build), mark: "end", outcome: "Interrupted", reason: "BuildFailed", message },
  ];
};

// An image

export const imagePublished = (build: MachineOSBuild, image: string, pool: string): Happening => ({
  ...bookOf(build),
  mark: "end",
  reason: "ImagePublished",
  message: `${image} is the image of ${pool}`,
  data: { image, pool },
});

/** Every machine of the pool runs the image. */
export const imageRolledOut = (
  build: MachineOSBuild,
  image: string,
  { pool, machines }: { readonly pool: string; readonly machines: number },
): Happening => ({
  ...bookOf(build),
  mark: "end",
  reason: "ImageRolledOut",
  message: `all ${machines} machines of ${pool} run ${image}`,
  data: { pool, machines },
});

/** @param image that was deleted; `undefined`: the build has none of its own, or others have it too. */
export const buildPruned = (build: MachineOSBuild, image: string | undefined): Happening => ({
  about: image === undefined ? undefined : build,
  ...bookOf(build),
  mark: "end",
  reason: "ImagePruned",
  message: image ?? "the build was removed; it has no image of its own, or others have it too",
});

/** @param why the registry's answer. */
export const imageNotPruned = (build: MachineOSBuild, image: string, why: string): Happening =>
  noticed(build, "ImageNotPruned", `the registry did not delete ${image}: ${why}`);
