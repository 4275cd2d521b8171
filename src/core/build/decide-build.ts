import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations, imageLabels, labels, machineOSConfigConditions } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { type BuildState, stateOfBuild } from "../config/build-phase.ts";
import type { ContentMode } from "../config/node-config.ts";
import { buildName } from "./build-key.ts";
import {
  type BuildPlan,
  type PlanFacts,
  attachedTo,
  currentBuildOf,
  imageOf,
  isAttached,
  planBuild,
  superseded,
} from "./build-plan.ts";
import { type RebuildStep, rebuildStep } from "./build-rebuild.ts";
import { readRetries } from "./build-retry.ts";
import { isNearlyDone } from "./build-state.ts";

/** The registry's answer about an image. */
export type ImageAnswer =
  | { readonly is: "image"; readonly labels: Readonly<Record<string, string>> }
  /** `denied`: the registry does not disclose whether the image exists. */
  | { readonly is: "absent" | "denied" | "unreachable"; readonly problem: string };

/** Everything that decides about a pool's image, once its inputs are read. */
export interface BuildView {
  readonly pool: Pick<MachineConfigPool, "metadata">;
  readonly config: Pick<MachineOSConfig, "metadata" | "status">;
  readonly facts: PlanFacts;
  readonly maxRetries: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Steps run once inputs have been stable for `ms`. `since`: the last change; both monotonic. */
  readonly still: { readonly since: number; readonly now: number; readonly ms: number };
  /** Answers of the registry in this pass, by pullspec. */
  readonly images: ReadonlyMap<string, ImageAnswer>;
  /** Obsolete builds were handled in this pass. */
  readonly isTidy: boolean;
  /** What prevents steps from running; `unknown`: not checked in this pass. */
  readonly preflight: "unknown" | { readonly problem: BuildObstacle | undefined };
}

export interface BuildObstacle {
  readonly code: string;
  readonly message: string;
}

type StartPlan = Extract<BuildPlan, { readonly strategy: "append" | "build" }>;
type ReusePlan = Extract<BuildPlan, { readonly strategy: "reuse" }>;

/** The view is incomplete: look up or repair the missing part, then decide again in the same pass. */
export type BuildQuestion =
  | { readonly do: "inspect"; readonly image: string }
  | { readonly do: "preflight"; readonly plan: BuildPlan }
  /** `clears`: failures that a rebuild removes. `cancels`: runs for something else. */
  | { readonly do: "tidy"; readonly clears: readonly MachineOSBuild[]; readonly cancels: readonly MachineOSBuild[] };

/** Steps before any build, because they change the desired image. */
export type BuildOpening =
  /** The installation provided an image that is not adopted; `isTaken`: it was adopted earlier. */
  | { readonly do: "closeSeed"; readonly isTaken: boolean; readonly reason: string; readonly message: string }
  /** The installation provided an image that is adopted. `seen`: the build that records it, from an earlier pass. */
  | {
      readonly do: "adopt";
      readonly image: string;
      readonly mode: ContentMode;
      readonly seen: MachineOSBuild | undefined;
    }
  | ({ readonly do: "rebuild" } & Pick<Extract<RebuildStep, { do: "begin" }>, "serial" | "active" | "request">);

/** Why a pool has to wait, as its MachineOSConfig reports it. */
export interface BuildWait {
  readonly do: "wait";
  readonly reason: string;
  readonly message: string;
  readonly build?: MachineOSBuild;
  readonly reconcileAfterSeconds?: number;
}

/** The next step for the desired image. */
export type BuildAction =
  /** The desired image is rolled out, and no build has to record it. */
  | { readonly do: "nothing"; readonly because: string }
  | BuildWait
  /** Steps have to run, but inputs may change again. `since`: their last observed change (monotonic). */
  | {
      readonly do: "holdStill";
      readonly since: number;
      readonly because: string;
      readonly reconcileAfterSeconds: number;
    }
  /** The desired image is built: publish it. */
  | { readonly do: "publish"; readonly build: MachineOSBuild; readonly image: string }
  /** The build failed, and a person has to act. */
  | {
      readonly do: "giveUp";
      readonly reason: "BuildFailed" | "BuildInterrupted";
      readonly build: MachineOSBuild;
      readonly because: string;
    }
  /** The registry lost the image of a build. */
  | { readonly do: "forget"; readonly image: string; readonly because: string }
  /** The build of the rolled-out image was deleted: recreate it with that image. */
  | {
      readonly do: "recall";
      readonly image: string;
      readonly because: string;
      /** It came with an installation. */
      readonly isPreBuilt: boolean;
    }
  /** Another build has made the image. */
  | { readonly do: "reuse"; readonly plan: ReusePlan; readonly image: string }
  /** Another build is making the image. */
  | { readonly do: "attach"; readonly plan: ReusePlan }
  | { readonly do: "start"; readonly plan: StartPlan }
  /** The build before this one ended without an image. */
  | { readonly do: "restart"; readonly plan: StartPlan; readonly after: MachineOSBuild };

export type BuildDecision =
  | BuildQuestion
  | BuildOpening
  /** `endsRebuild`: this ends the requested rebuild. */
  | (BuildAction & { readonly endsRebuild: { readonly succeeded: boolean } | undefined });

const noted = (object: { readonly metadata: MachineOSBuild["metadata"] }, annotation: string) =>
  object.metadata.annotations?.[annotation];

/** Maximum wait for a registry, or for the prerequisites of steps. */
const registrySeconds = 30;
const preflightSeconds = 60;

const registryWait = (problem: string): BuildWait => ({
  do: "wait",
  reason: "RegistryUnreachable",
  message: `whether an image is still there cannot be seen, so that nothing is built: ${problem}`,
  reconcileAfterSeconds: registrySeconds,
});

/** Decides about the image that a pool needs. */
export function decideBuild(view: BuildView): BuildDecision {
  const opening = decideSeed(view);
  if (opening !== undefined) return opening.do === "wait" ? { ...opening, endsRebuild: undefined } : opening;
  const build = currentBuildOf(view.facts);
  const state = build === undefined ? undefined : stateOfBuild(build);
  const current = build === undefined || state === undefined ? undefined : { build, state };
  const step = rebuildStep({
    pool: view.pool,
    config: view.config,
    build: state?.phase,
    goesOn: current !== undefined && goesOn(current),
  });
  if (step.do === "begin") return { do: "rebuild", serial: step.serial, active: step.active, request: step.request };
  const untidy = view.isTidy ? undefined : decideTidy(view.facts, build);
  if (untidy !== undefined) return untidy;
  const decision = current === undefined ? decideStart(view, undefined) : decideCurrent(view, current, step);
  if (decision.do === "inspect" || decision.do === "preflight") return decision;
  return { ...decision, endsRebuild: step.do === "finish" ? { succeeded: step.succeeded } : undefined };
}

type StartDecision = BuildAction | Exclude<BuildQuestion, { readonly do: "tidy" }>;

interface Current {
  readonly build: MachineOSBuild;
  readonly state: BuildState;
}

const dueOf = (build: MachineOSBuild) => Date.parse(noted(build, annotations.nextAttemptAt) ?? "");

/** Whether another build follows an interrupted one by itself. */
const goesOn = ({ build, state }: Current): boolean =>
  state.phase === "Interrupted" && (state.reason !== "UserDeleted" || !Number.isNaN(dueOf(build)));

/** Decides from the build of the desired image. */
function decideCurrent(view: BuildView, current: Current, step: RebuildStep): StartDecision {
  const { build, state } = current;
  const says = `${build.metadata.name}: ${state.message}`;
  switch (state.phase) {
    case "Initial":
    case "Prepared":
    case "Building":
      return {
        do: "wait",
        reason: "Building",
        message: `${build.metadata.name}: ${state.phase} ${state.reason}`,
        build,
      };
    case "Succeeded": {
      const image = imageOf(build);
      return image === undefined ? decideStart(view, build) : { do: "publish", build, image };
    }
    case "Failed":
      return step.do !== "finish" && hasRetriesAgain(view, state)
        ? decideStart(view, build)
        : { do: "giveUp", reason: "BuildFailed", build, because: says };
    case "Interrupted": {
      if (!goesOn(current)) return { do: "giveUp", reason: "BuildInterrupted", build, because: says };
      const waits = state.reason === "UserDeleted" ? dueOf(build) - view.now : 0;
      return waits > 0
        ? { do: "wait", reason: "BuildInterrupted", message: state.message, build, reconcileAfterSeconds: waits / 1000 }
        : decideStart(view, build);
    }
  }
}

/** Raising the retry limit, or removing the counter, restarts a failed build. */
const hasRetriesAgain = ({ pool, maxRetries }: BuildView, { reason }: BuildState): boolean =>
  reason === "RetryLimitReached" &&
  readRetries(pool.metadata.annotations?.[annotations.buildRetries]).retries < maxRetries;

/** How to obtain the image. @param after the build that ended without an image. */
function decideStart(view: BuildView, after: MachineOSBuild | undefined): StartDecision {
  const { facts } = view;
  const lone = standingOfReference(view);
  if (lone !== undefined)
    return { do: "nothing", because: `${lone.metadata.name} was made before this suite looked after the pool` };
  const recalled = decideRecall(view);
  if (recalled !== undefined) return recalled;
  const plan = planBuild(facts);
  switch (plan.strategy) {
    case "none":
      return { do: "nothing", because: plan.because };
    case "reuse": {
      if (plan.state === "running") return { do: "attach", plan };
      const image = imageOf(plan.from) ?? "";
      return askOf(view, image) ?? { do: "reuse", plan, image };
    }
    case "append":
      return (plan.parent.image === facts.base ? undefined : askOf(view, plan.parent.image)) ?? startOf(plan, after);
    case "build":
      return decideSteps(view, plan) ?? startOf(plan, after);
  }
}

const startOf = (plan: StartPlan, after: MachineOSBuild | undefined): BuildAction =>
  after === undefined ? { do: "start", plan } : { do: "restart", plan, after };

/** What to do before an image can be used; `undefined`: the registry has it. */
function askOf({ images }: BuildView, image: string): StartDecision | undefined {
  const answer = images.get(image);
  if (answer === undefined) return { do: "inspect", image };
  switch (answer.is) {
    case "image":
      return undefined;
    case "absent":
      return { do: "forget", image, because: "the registry does not have the image any more" };
    case "denied":
    case "unreachable":
      return registryWait(answer.problem);
  }
}

/** What prevents build steps from running now. */
function decideSteps({ still, preflight }: BuildView, plan: BuildPlan): StartDecision | undefined {
  const waits = still.since + still.ms - still.now;
  if (waits > 0)
    return {
      do: "holdStill",
      since: still.since,
      because: "the build begins when its inputs have been still for a while",
      reconcileAfterSeconds: waits / 1000,
    };
  if (preflight === "unknown") return { do: "preflight", plan };
  return preflight.problem === undefined
    ? undefined
    : {
        do: "wait",
        reason: preflight.problem.code,
        message: preflight.problem.message,
        reconcileAfterSeconds: preflightSeconds,
      };
}

/** The image that the reference implementation built for this configuration stays until another one is desired. */
function standingOfReference({ config, facts }: BuildView): MachineOSBuild | undefined {
  const build = facts.builds.find(({ metadata }) => metadata.name === facts.current);
  if (
    build === undefined ||
    noted(build, annotations.contentKey) !== undefined ||
    facts.holdsConfiguration ||
    facts.forced
  )
    return undefined;
  const isSame =
    build.spec.machineConfig.name === facts.rendered &&
    build.status?.digestedImagePushSpec === config.status?.currentImagePullSpec &&
    imageOf(build) !== undefined;
  return isSame && build.spec.renderedImagePushSpec.startsWith(`${facts.repository}:`) ? build : undefined;
}

/** A deleted build whose image is rolled out is recreated, as long as the registry has the image. */
function decideRecall({ config, facts, images }: BuildView): StartDecision | undefined {
  const image = config.status?.currentImagePullSpec;
  const { current } = facts;
  const first = buildName(facts.machineOSConfig, facts.key);
  if (
    image === undefined ||
    current === undefined ||
    facts.builds.some(({ metadata }) => metadata.name === current) ||
    (current !== first && !current.startsWith(`${first}-`))
  )
    return undefined;
  const answer = images.get(image);
  if (answer === undefined) return { do: "inspect", image };
  switch (answer.is) {
    case "image":
      return {
        do: "recall",
        image,
        because: "its image is rolled out",
        isPreBuilt: isSeededWith(image, config),
      };
    case "absent":
      return undefined;
    case "denied":
    case "unreachable":
      return registryWait(answer.problem);
  }
}

const seededOf = ({ status }: Pick<MachineOSConfig, "status">) =>
  conditionOf(status?.conditions, machineOSConfigConditions.seeded);

/**
 * Whether an image is the one that was adopted from the installation. An earlier version could close the adoption twice and lose
 * the image's name: then no image counts as one that a build made.
 */
function isSeededWith(image: string, config: Pick<MachineOSConfig, "status">): boolean {
  const seeded = seededOf(config);
  return seeded?.message === image || (seeded?.status === "True" && seeded.message === "");
}

/** Decides about an image from the installation that an annotation asks to adopt, once. */
function decideSeed({ config, facts, images }: BuildView): BuildQuestion | BuildOpening | BuildWait | undefined {
  const image = noted(config, annotations.preBuiltImage);
  if (image === undefined) return undefined;
  const refuse = (reason: string, message: string): BuildOpening => ({
    do: "closeSeed",
    isTaken: false,
    reason,
    message,
  });
  if (config.status?.currentImagePullSpec !== undefined)
    return seededOf(config)?.status === "True"
      ? // The message is the image that was adopted.
        { do: "closeSeed", isTaken: true, reason: "PreBuiltImageSeeded", message: seededOf(config)?.message ?? "" }
      : refuse("ImageThere", "");
  if (!/^[^@\s]+@sha256:[0-9a-f]{64}$/.test(image))
    return refuse("ImageNotDigest", `${image} is not named by its digest`);
  const answer = images.get(image);
  if (answer === undefined) return { do: "inspect", image };
  switch (answer.is) {
    case "unreachable":
      return registryWait(answer.problem);
    case "absent":
    case "denied":
      return refuse("ImageAbsent", answer.problem);
    case "image":
      return {
        do: "adopt",
        image,
        mode: answer.labels[imageLabels.content] === "full" ? "full" : "os-only",
        seen: facts.builds.find(
          (build) =>
            build.metadata.labels?.[labels.preBuiltImage] !== undefined &&
            build.spec.machineOSConfig.name === facts.machineOSConfig,
        ),
      };
  }
}

/** Builds that a rebuild clears, and obsolete runs; `undefined`: there are none. */
function decideTidy(facts: PlanFacts, wanted: MachineOSBuild | undefined): BuildQuestion | undefined {
  const clears = facts.forced ? facts.builds.filter((build) => isCleared(build, facts)) : [];
  const cancels = superseded(facts.machineOSConfig, wanted?.metadata.name, facts.builds)
    .filter(
      ({ build, state }) =>
        // A run for the same key builds the desired image, regardless of the configuration that it began for.
        (noted(build, annotations.contentKey) !== facts.key || isAttached(build)) &&
        !isNearlyDone(state) &&
        // Others wait for it.
        attachedTo(build.metadata.name, facts.builds).length === 0,
    )
    .map(({ build }) => build);
  return clears.length + cancels.length === 0 ? undefined : { do: "tidy", clears, cancels };
}

/** Whether a rebuild clears a build: an obsolete one that failed. */
function isCleared(build: MachineOSBuild, facts: PlanFacts): boolean {
  const { phase } = stateOfBuild(build);
  return (
    build.spec.machineOSConfig.name === facts.machineOSConfig &&
    noted(build, annotations.contentKey) !== facts.key &&
    (phase === "Failed" || phase === "Interrupted")
  );
}
