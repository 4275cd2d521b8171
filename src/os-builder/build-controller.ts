import { leastOf } from "../api/schema/extremes.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, finalizers } from "../api/names.ts";
import { compileIntent } from "../core/build/build-intent.ts";
import { errorsOf, inputsValid } from "../core/build/input-problem.ts";
import { hasEnded, stateOfBuild } from "../core/config/build-phase.ts";
import { renderRefusal } from "../core/pool/pool-queries.ts";
import type { Controller } from "../kube/controller.ts";
import { type Outcome, done, waiting } from "../kube/outcome.ts";
import type { BuildBackend } from "./backend.ts";
import { type BuilderContext, builderMemory, rememberPools } from "./builder-context.ts";
import { cleanUp } from "./clean-up.ts";
import { intentFacts, poolOfBuild, poolWatches } from "./cluster-facts.ts";
import { driveBuild } from "./drive-build.ts";
import type { OpenImages } from "./images.ts";
import { makeImage } from "./make-image.ts";
import type { NextPassMs } from "./perform-run.ts";
import { type Want, WantObserver } from "./observe-want.ts";
import { leavePool, noteRebuild, releaseConfig } from "./opt-out.ts";
import { type Configured, reportLacking, reportStanding } from "./report-image.ts";
import { annotatePool } from "./write-objects.ts";

export interface BuildControllerOptions {
  /** In the order in which they are asked: cheaper ones first. */
  readonly backends: readonly BuildBackend[];
  readonly images: OpenImages;
  /** How long inputs must have been still before steps are run, in milliseconds. */
  readonly stillMs?: number;
}

const defaultStillMs = 5000;
const registrySeconds = 30;
/** Inputs whose only fault is the answer of a registry are read again after this time. */
const invalidSeconds = 60;
const waitedForRender = 30;
/** Delay after a write that changes the desired image; the watch usually reports it sooner. */
const againSeconds = 0.25;

/**
 * Has images built for opted-in pools, and reports the results. All its state is on objects: a process that takes over
 * continues at the step where the last one ended.
 */
export function buildController({ backends, images, stillMs = defaultStillMs }: BuildControllerOptions): Controller {
  const memory = builderMemory();
  let observer: WantObserver | undefined;

  return {
    name: "build",
    watches: poolWatches,
    owns: [
      "MachineOSConfig.status",
      "MachineOSBuild",
      "MachineConfigPool.status.conditions/ImageBuildDegraded",
      "MachineConfigPool.status.conditions/ImageInputsValid",
      "MachineConfigPool.metadata.annotations/buildRetries",
    ],
    workers: 4,

    start(add, context) {
      observer = new WantObserver(images, context.clock);
      for (const backend of backends) {
        // The build may be gone when its run has news.
        const stop = backend.watch((build) => add(memory.pools.get(build) ?? build));
        context.signal.addEventListener("abort", stop, { once: true });
      }
    },

    async reconcile(name, context): Promise<Outcome> {
      observer ??= new WantObserver(images, context.clock);
      return reconcilePool(name, { ...context, backends, observer, memory, stillMs });
    },
  };
}

const isHeld = ({ metadata }: MachineOSConfig): boolean =>
  metadata.finalizers?.includes(finalizers.osBuildCleanup) === true;

async function reconcilePool(name: string, context: BuilderContext): Promise<Outcome> {
  const { caches, memory } = context;
  const builds = caches.of(MachineOSBuild).list();
  rememberPools(
    memory,
    builds.map((build) => ({ name: build.metadata.name, pool: poolOfBuild(build) })),
  );
  const pool = caches.of(MachineConfigPool).get(name);
  const configs = caches
    .of(MachineOSConfig)
    .list()
    .filter(({ spec }) => spec.machineConfigPool.name === name);
  const leaving = configs.filter((config) => config.metadata.deletionTimestamp !== undefined && isHeld(config));
  for (const config of leaving) await releaseConfig(config, pool, context);
  // The written objects decide the next step.
  if (leaving.length > 0) return done(1);
  const outcome = await servePool(name, pool, configs, context);
  return sooner(outcome, await driveAll(name, context));
}

/** Has the image made that a pool wants, or takes the pool back from images. */
async function servePool(
  name: string,
  pool: MachineConfigPool | undefined,
  configs: readonly MachineOSConfig[],
  context: BuilderContext,
): Promise<Outcome> {
  const exists = pool !== undefined && pool.metadata.deletionTimestamp === undefined;
  const intent = exists ? compileIntent(intentFacts(pool, context.caches)) : undefined;
  if (pool === undefined || intent === undefined || intent.opted === "out")
    return leavePool(name, pool, configs, context);
  const { config } = intent;
  if (config === undefined) {
    const errors = errorsOf(intent.problems);
    if (errors.length > 0) await reportLacking(pool, errors, context);
    noteRebuild(pool, "an image can be made from its inputs; see its conditions", context);
    return done();
  }
  return !isHeld(config) ? done() : keepPool(pool, { ...intent, config }, context);
}

/** A pool with images: what is wanted is made, and reported. */
async function keepPool(pool: MachineConfigPool, intent: Configured, context: BuilderContext): Promise<Outcome> {
  const { caches, observer, signal } = context;
  if (pool.metadata.annotations?.[annotations.optOutAfter] !== undefined)
    await annotatePool(pool, { [annotations.optOutAfter]: null }, context);
  const rendered = caches.of(MachineConfig).get(pool.spec.configuration?.name ?? "");
  const refused = renderRefusal(pool);
  if (rendered === undefined || refused !== undefined) {
    const message =
      refused === undefined ? "waiting for a rendered config" : `waiting for a rendered config: ${refused}`;
    const upToDate = { is: false, reason: "WaitingForRender", message };
    await reportStanding(pool, intent, undefined, { upToDate }, context);
    return waiting("WaitingForRender", message, waitedForRender);
  }
  const want = await observer.observe(pool, intent, rendered, caches, signal);
  switch (want.verdict) {
    case "waits": {
      const upToDate = { is: false, reason: want.reason, message: want.message };
      await reportStanding(pool, intent, want.problems, { upToDate }, context);
      return waiting(want.reason, want.message, registrySeconds);
    }
    case "invalid": {
      const upToDate = { is: false, reason: "InputsInvalid", message: "see the condition InputsValid" };
      await reportStanding(pool, intent, want.problems, { upToDate }, context);
      const [first] = errorsOf(want.problems);
      return waiting(first?.code ?? "InputsInvalid", inputsValid(want.problems).message, invalidSeconds);
    }
    case "want":
      return makeWanted(pool, intent, want, context);
  }
}

async function makeWanted(
  pool: MachineConfigPool,
  intent: Configured,
  want: Want,
  context: BuilderContext,
): Promise<Outcome> {
  const standing = await makeImage(pool, intent, want, context);
  if (standing === "again") return done(againSeconds);
  await reportStanding(pool, intent, want.problems, standing, context);
  const denied = want.problems.some(({ code }) => code === "PushTokenDenied") ? [invalidSeconds] : [];
  const looks = [...denied, ...(standing.reconcileAfterSeconds === undefined ? [] : [standing.reconcileAfterSeconds])];
  return looks.length === 0 ? done() : done(leastOf(looks));
}

/** Brings every build of a pool that has not ended a step on, and removes what those that ended needed. */
async function driveAll(pool: string, context: BuilderContext): Promise<NextPassMs> {
  const { backends, observer } = context;
  const looks: number[] = [];
  for (const build of context.caches.of(MachineOSBuild).list()) {
    if (poolOfBuild(build) !== pool) continue;
    const state = stateOfBuild(build);
    if (hasEnded(state)) await cleanUp(build, state.phase === "Failed", context);
    else {
      const outcome = await driveBuild(build, { context, backends, observer, wantOf: (of) => wantOf(of, context) });
      if (outcome !== undefined) looks.push(outcome);
    }
  }
  return looks.length === 0 ? undefined : leastOf(looks);
}

/** The purpose of a build, read again, and whether it still has the key for which the build was started. */
async function wantOf(build: MachineOSBuild, context: BuilderContext): Promise<Want | "changed" | "waits"> {
  const { caches, observer, signal } = context;
  const pool = caches.of(MachineConfigPool).get(poolOfBuild(build));
  const rendered = caches.of(MachineConfig).get(build.spec.machineConfig.name);
  const config = caches.of(MachineOSConfig).get(build.spec.machineOSConfig.name);
  if (pool === undefined || rendered === undefined || config === undefined) return "changed";
  const intent = compileIntent(intentFacts(pool, caches));
  if (intent.opted === "out") return "changed";
  const want = await observer.observe(pool, { ...intent, config }, rendered, caches, signal);
  // A fix of invalid inputs may restore the previous inputs.
  if (want.verdict !== "want") return "waits";
  return want.inputs.key.key === build.metadata.annotations?.[annotations.contentKey] ? want : "changed";
}

function sooner(outcome: Outcome, look: NextPassMs): Outcome {
  if (look === undefined || outcome.kind === "stalled") return outcome;
  return { ...outcome, reconcileAfterSeconds: Math.min(outcome.reconcileAfterSeconds ?? Infinity, look) };
}
