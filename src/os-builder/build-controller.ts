import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import {
  annotations,
  fieldManagers,
  finalizers,
  imageLabels,
  labels,
  machineOSConfigConditions as types,
} from "../api/names.ts";
import { conditionOf, timestampOf } from "../api/schema/object.ts";
import { renderRefusal } from "../core/pool/answers.ts";
import {
  type PoolBuildReport,
  imageBuildDegraded,
  layeringTold,
  withBuildReport,
} from "../core/build/build-conditions.ts";
import { type OptedIn, compileIntent } from "../core/build/build-intent.ts";
import { buildName, labelValue, printComponents, sha256Hex } from "../core/build/build-key.ts";
import {
  type BuildPlan,
  type PlanFacts,
  attachedTo,
  currentBuildOf,
  imageOf,
  isAttached,
  nextBuildName,
  planBuild,
  superseded,
} from "../core/build/build-plan.ts";
import { activeRebuild, rebuildRequest, rebuildStep } from "../core/build/build-rebuild.ts";
import { readRetries } from "../core/build/build-retry.ts";
import { isNearlyDone } from "../core/build/build-state.ts";
import { isMaterialised } from "../core/config/opt-in.ts";
import type { Context, Controller } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import { isAlreadyExists } from "../kube/kube-error.ts";
import { type Outcome, settled, waiting } from "../kube/outcome.ts";
import type { BuildBackend } from "./backend.ts";
import { buildRequest } from "./build-request.ts";
import { buildSettingsIn, intentFacts, nodesIn, poolOfBuild, poolWatches } from "./cluster-facts.ts";
import {
  type DriveContext,
  type NextLook,
  backendOf,
  cancelBuild,
  driveBuild,
  modeOf,
  runOf,
  succeed,
} from "./drive-build.ts";
import type { Images, OpenImages } from "./images.ts";
import { type Want, WantObserver } from "./observe-want.ts";
import {
  type WantedCondition,
  annotateBuild,
  annotateConfig,
  annotatePool,
  writeBuildState,
  writeConfigStatus,
} from "./write-objects.ts";
import type { ContentMode } from "../core/config/node-config.ts";
import { hasEnded, stateOfBuild } from "../core/config/build-phase.ts";
import { type InputProblem, errorsOf, inputsValid } from "../core/build/input-problem.ts";
import { maxRetriesOf } from "../core/build/build-settings.ts";

export interface BuildControllerOptions {
  /** In the order in which they are asked: cheaper ones first. */
  readonly backends: readonly BuildBackend[];
  readonly images: OpenImages;
  /** How long inputs must have been still before steps are run, in milliseconds. */
  readonly stillMs?: number;
}

const stillMs = 5000;
const registrySeconds = 30;
/** Inputs whose only fault is the answer of a registry are looked at again. */
const invalidSeconds = 60;
const waitedForRender = 30;
/** After a write that changes what is wanted: its news come by the watch, as a rule sooner. */
const againSeconds = 0.25;

const noted = (
  object: { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } } | undefined,
  annotation: string,
) => object?.metadata.annotations?.[annotation];

const referenceTo = (build: MachineOSBuild) => ({
  group: MachineOSBuild.group,
  resource: MachineOSBuild.plural,
  name: build.metadata.name,
});
const registryWaits = (problem: string): Standing => ({
  upToDate: {
    is: false,
    reason: "RegistryUnreachable",
    message: `whether an image is still there cannot be seen, so that nothing is built: ${problem}`,
  },
  lookAgainSeconds: registrySeconds,
});

type Reason = Pick<BuildPlan, "strategy" | "because" | "turnedDown"> & {
  readonly from?: MachineOSBuild;
  readonly parent?: { readonly image: string; readonly hasConfigLayer: boolean };
};

type Configured = OptedIn & { readonly config: MachineOSConfig };

/** What is true of a pool's image after a look, for its MachineOSConfig and the pool. */
interface Standing {
  readonly upToDate: { readonly is: boolean; readonly reason: string; readonly message: string };
  readonly build?: MachineOSBuild;
  readonly lookAgainSeconds?: number;
}

/**
 * Has images made for the pools that are opted in, and says what came of it. Everything that it knows is on objects: a
 * process that takes over goes on where the last one ended, at whatever step.
 */
export function buildController(options: BuildControllerOptions): Controller {
  const { backends } = options;
  let observer: WantObserver | undefined;
  /** Build → its pool, of those that were seen: news of a run may come when its build is gone. */
  const pools = new Map<string, string>();
  /** Pool → key that steps are to be run for, and since when it is wanted. */
  const still = new Map<string, { readonly key: string; readonly since: number }>();
  /** Builds whose objects were removed since this process began. */
  const cleaned = new Set<string>();
  /** Pools whose request to rebuild was told to be of no use. */
  const ignored = new Map<string, string>();

  return {
    name: "build",
    watches: poolWatches,
    owns: [
      "MachineOSConfig.status",
      "MachineOSBuild",
      "MachineConfigPool.status.conditions/ImageBuildDegraded",
      "MachineConfigPool.metadata.annotations/buildRetries",
    ],
    workers: 4,

    start(add, context) {
      observer = new WantObserver(options.images, context.clock);
      for (const backend of backends) {
        const stop = backend.watch((build) => add(poolNameOf(build)));
        context.signal.addEventListener("abort", stop, { once: true });
      }
    },

    async reconcile(name, context): Promise<Outcome> {
      const { caches } = context;
      for (const build of caches.of(MachineOSBuild).list()) pools.set(build.metadata.name, poolOfBuild(build));
      const pool = caches.of(MachineConfigPool).get(name);
      const configs = caches
        .of(MachineOSConfig)
        .list()
        .filter(({ spec }) => spec.machineConfigPool.name === name);
      const leaving = configs.filter(
        ({ metadata }) =>
          metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(finalizers.osBuildCleanup) === true,
      );
      for (const config of leaving) await release(config, pool, context);
      // What was written says how it goes on.
      if (leaving.length > 0) return settled(1);
      const exists = pool !== undefined && pool.metadata.deletionTimestamp === undefined;
      const intent = exists ? compileIntent(intentFacts(pool, caches)) : undefined;
      let outcome: Outcome;
      if (pool === undefined || intent === undefined || intent.opted === "out")
        outcome = await leave(name, pool, configs, context);
      else if (
        intent.config === undefined ||
        intent.config.metadata.finalizers?.includes(finalizers.osBuildCleanup) !== true
      )
        outcome = settled();
      else outcome = await keep(pool, { ...intent, config: intent.config }, context);
      return sooner(outcome, await driveAll(name, context));
    },
  };

  /** Which pool a run's news concern; the build may be gone by then. */
  function poolNameOf(build: string): string {
    return pools.get(build) ?? build;
  }

  function driveContext(context: Context): DriveContext {
    return { context, backends, observer: observerOf(context), wantOf: (build) => wantOf(build, context) };
  }

  function observerOf(context: Context): WantObserver {
    observer ??= new WantObserver(options.images, context.clock);
    return observer;
  }

  /** What a build is for, read anew, and whether that has the key that it was begun for. */
  async function wantOf(build: MachineOSBuild, context: Context): Promise<Want | "changed" | "waits"> {
    const { caches, signal } = context;
    const pool = caches.of(MachineConfigPool).get(poolOfBuild(build));
    const rendered = caches.of(MachineConfig).get(build.spec.machineConfig.name);
    const config = caches.of(MachineOSConfig).get(build.spec.machineOSConfig.name);
    if (pool === undefined || rendered === undefined || config === undefined) return "changed";
    const intent = compileIntent(intentFacts(pool, caches));
    if (intent.opted === "out") return "changed";
    const want = await observerOf(context).observe(pool, { ...intent, config }, rendered, caches, signal);
    // What is wrong with the inputs may be mended, and then be what it was.
    if (want.verdict !== "want") return "waits";
    return want.inputs.key.key === noted(build, annotations.contentKey) ? want : "changed";
  }

  /** Brings every build of a pool that has not ended a step on, and removes what those that ended needed. */
  async function driveAll(pool: string, context: Context): Promise<NextLook> {
    const looks: number[] = [];
    for (const build of context.caches.of(MachineOSBuild).list()) {
      if (poolOfBuild(build) !== pool) continue;
      const state = stateOfBuild(build);
      if (hasEnded(state)) await cleanUp(build, state.phase === "Failed", context);
      else {
        const look = await driveBuild(build, driveContext(context));
        if (look !== undefined) looks.push(look);
      }
    }
    return looks.length === 0 ? undefined : Math.min(...looks);
  }

  /** Secrets go at once; of a failure the rest stays for a while, for people to look at. */
  async function cleanUp(build: MachineOSBuild, keepForInspection: boolean, { signal }: Context): Promise<void> {
    const backend = isAttached(build) ? undefined : backendOf(build, backends);
    const id = build.metadata.uid ?? build.metadata.name;
    if (backend === undefined || cleaned.has(id) || (keepForInspection && cleaned.has(`${id} but what people look at`)))
      return;
    await backend.cleanup({ build: build.metadata.name }, { keepForInspection }, signal);
    cleaned.add(keepForInspection ? `${id} but what people look at` : id);
  }

  /** A MachineOSConfig that is being deleted: its runs end, machines get their time, and it goes. */
  async function release(
    config: MachineOSConfig,
    pool: MachineConfigPool | undefined,
    context: Context,
  ): Promise<void> {
    const { kube, caches, clock, log, signal } = context;
    await endRuns(config.metadata.name, "OptedOut", `the MachineOSConfig ${config.metadata.name} was deleted`, context);
    // Machines that were told to go back already have nothing to wait for.
    if (
      pool !== undefined &&
      pool.metadata.deletionTimestamp === undefined &&
      !isMaterialised(config) &&
      config.status?.currentImagePullSpec !== undefined &&
      layeringTold(pool) === "layered"
    ) {
      const until = timestampOf(clock.now() + buildSettingsIn(caches).optOutGraceMs);
      if (noted(pool, annotations.optOutAfter) === undefined)
        await annotatePool(pool, { [annotations.optOutAfter]: until }, context);
    }
    await updateObject(
      kube,
      MachineOSConfig,
      config.metadata,
      (object) =>
        object.metadata.uid === config.metadata.uid
          ? ({
              metadata: {
                finalizers: (object.metadata.finalizers ?? []).filter((each) => each !== finalizers.osBuildCleanup),
              },
            } as unknown as Partial<MachineOSConfig>)
          : undefined,
      { owner: fieldManagers.osBuilder, cached: config, signal },
    );
    context.events.event(config, {
      type: "Normal",
      reason: "ConfigDeleted",
      message: "what was made for it is gone; its images stay as long as a machine needs them",
    });
    log.info({ machineOSConfig: config.metadata.name }, "MachineOSConfig released");
  }

  /** Ends every run of a MachineOSConfig but those that others wait for. */
  async function endRuns(
    machineOSConfig: string,
    reason: "OptedOut",
    message: string,
    context: Context,
  ): Promise<void> {
    const builds = context.caches.of(MachineOSBuild).list();
    for (const { build } of superseded(machineOSConfig, undefined, builds)) {
      if (attachedTo(build.metadata.name, builds).some((other) => other.spec.machineOSConfig.name !== machineOSConfig))
        continue;
      await cancelBuild(build, reason, message, { context, backends });
    }
    for (const build of builds)
      if (build.spec.machineOSConfig.name === machineOSConfig && hasEnded(stateOfBuild(build)))
        await cleanUp(build, false, context);
  }

  /** A pool without images: what was begun ends, and what was told of images goes. */
  async function leave(
    name: string,
    pool: MachineConfigPool | undefined,
    configs: readonly MachineOSConfig[],
    context: Context,
  ): Promise<Outcome> {
    const { caches, events, scribe, clock } = context;
    still.delete(name);
    const why = pool === undefined ? `the pool ${name} was deleted` : `the pool ${name} is not opted in to images`;
    for (const machineOSConfig of new Set([
      ...configs.map(({ metadata }) => metadata.name),
      ...caches
        .of(MachineOSBuild)
        .list()
        .filter((build) => poolOfBuild(build) === name)
        .map(({ spec }) => spec.machineOSConfig.name),
    ]))
      await endRuns(machineOSConfig, "OptedOut", why, context);
    for (const config of configs) {
      if (config.metadata.deletionTimestamp !== undefined || isMaterialised(config)) continue;
      await annotateConfig(config, { [annotations.rebuild]: null, [annotations.rebuildActive]: null }, context);
      await writeConfigStatus(
        config,
        [
          {
            type: types.upToDate,
            status: "False",
            reason: pool === undefined ? "PoolNotFound" : "OptedOut",
            message: why,
          },
        ],
        context,
      );
    }
    if (pool === undefined || pool.metadata.deletionTimestamp !== undefined) return settled();
    const told = layeringTold(pool);
    const after = Date.parse(noted(pool, annotations.optOutAfter) ?? "");
    if (told !== "layered") {
      const request = rebuildRequest({ pool, config: undefined });
      if (request !== undefined && ignored.get(name) !== request)
        events.event(pool, {
          type: "Warning",
          reason: "RebuildIgnored",
          message: `the pool has no images that could be built again; ${annotations.rebuildImage} counts once it is opted in`,
        });
      if (request === undefined) ignored.delete(name);
      else ignored.set(name, request);
      if (noted(pool, annotations.optOutAfter) !== undefined)
        await annotatePool(pool, { [annotations.optOutAfter]: null }, context);
      return settled();
    }
    // A MachineOSConfig that is made again in time changes nothing.
    if (!Number.isNaN(after) && after > clock.now()) return settled((after - clock.now()) / 1000);
    await annotatePool(
      pool,
      {
        [annotations.newestImageEquivalentConfig]: null,
        [annotations.rebuildImage]: null,
        [annotations.buildRetries]: null,
        [annotations.optOutAfter]: null,
      },
      context,
      { [annotations.rebuildImage]: null },
    );
    await report(pool, { degraded: { is: false, reason: "OptedOut", message: "" } }, context);
    events.event(pool, {
      type: "Normal",
      reason: "OptedOut",
      message: "machines go back to the stock operating system",
    });
    scribe.line({
      book: `pool/${name}`,
      chapter: "OptOut",
      run: timestampOf(clock.now()),
      path: "Asked",
      mark: "end",
      level: "boundary",
      reason: "OptedOut",
      message: `machines of ${name} go back to the stock operating system`,
    });
    return settled();
  }

  async function report(
    pool: MachineConfigPool,
    wanted: PoolBuildReport,
    { kube, clock, events, signal }: Context,
  ): Promise<void> {
    const before = imageBuildDegraded(pool);
    await updateObject(
      kube,
      MachineConfigPool,
      pool.metadata,
      (object) => {
        const conditions = withBuildReport(object, wanted, clock.now());
        return conditions === undefined
          ? undefined
          : ({ status: { conditions: [...conditions] } } as Partial<MachineConfigPool>);
      },
      { subresource: "status", owner: fieldManagers.osBuilder, cached: pool, signal },
    );
    if (wanted.degraded.is && before === undefined)
      events.event(pool, { type: "Warning", reason: "BuildDegraded", message: wanted.degraded.message });
    if (!wanted.degraded.is && before !== undefined)
      events.event(pool, { type: "Normal", reason: "BuildRecovered", message: "an image can be made again" });
  }

  /** A pool with images: what is wanted is made, and told. */
  async function keep(pool: MachineConfigPool, intent: Configured, context: Context): Promise<Outcome> {
    const { caches, signal } = context;
    if (noted(pool, annotations.optOutAfter) !== undefined)
      await annotatePool(pool, { [annotations.optOutAfter]: null }, context);
    const target = pool.spec.configuration?.name ?? "";
    const rendered = caches.of(MachineConfig).get(target);
    const refused = renderRefusal(pool);
    if (rendered === undefined || refused !== undefined) {
      const message =
        refused === undefined ? "waiting for a rendered config" : `waiting for a rendered config: ${refused}`;
      await tell(pool, intent, undefined, { upToDate: { is: false, reason: "WaitingForRender", message } }, context);
      return waiting("WaitingForRender", message, waitedForRender);
    }
    const want = await observerOf(context).observe(pool, intent, rendered, caches, signal);
    if (want.verdict !== "want") {
      await tell(
        pool,
        intent,
        want.problems,
        {
          upToDate: {
            is: false,
            reason: want.verdict === "waits" ? want.reason : "InputsInvalid",
            message: want.verdict === "waits" ? want.message : "see the condition InputsValid",
          },
        },
        context,
      );
      const [first] = errorsOf(want.problems);
      return want.verdict === "waits"
        ? waiting(want.reason, want.message, registrySeconds)
        : waiting(first?.code ?? "InputsInvalid", inputsValid(want.problems).message, invalidSeconds);
    }
    const standing = await makeSo(pool, intent, want, context);
    if (standing === "again") return settled(againSeconds);
    await tell(pool, intent, want.problems, standing, context);
    const denied = want.problems.some(({ code }) => code === "PushTokenDenied") ? [invalidSeconds] : [];
    const looks = [...denied, ...(standing.lookAgainSeconds === undefined ? [] : [standing.lookAgainSeconds])];
    return looks.length === 0 ? settled() : settled(Math.min(...looks));
  }

  /** Says how it stands, on the MachineOSConfig and on the pool. */
  async function tell(
    pool: MachineConfigPool,
    intent: Configured,
    problems: readonly InputProblem[] | undefined,
    { upToDate, build }: Standing,
    context: Context,
  ): Promise<void> {
    const { config } = intent;
    const wanted: WantedCondition[] = [
      {
        type: types.upToDate,
        status: upToDate.is ? "True" : "False",
        reason: upToDate.reason,
        message: upToDate.message,
      },
    ];
    const before = conditionOf(config.status?.conditions, types.inputsValid);
    if (problems !== undefined) {
      const valid = inputsValid(problems);
      wanted.push({ type: types.inputsValid, ...valid });
      if (valid.status === "False" && (before?.status !== "False" || before.message !== valid.message))
        context.events.event(config, { type: "Warning", reason: "ConfigReconcileFailed", message: valid.message });
      if (valid.status === "True" && before?.status === "False")
        context.events.event(config, {
          type: "Normal",
          reason: "ConfigReconciled",
          message: "an image can be made from what is given",
        });
    }
    await writeConfigStatus(config, wanted, context, (object) =>
      (object.status?.observedGeneration ?? 0) >= (object.metadata.generation ?? 0)
        ? undefined
        : { observedGeneration: object.metadata.generation ?? 0 },
    );
    const state = build === undefined ? undefined : stateOfBuild(build);
    const active = activeRebuild(config) !== undefined;
    const degraded =
      state?.phase === "Failed"
        ? { is: true, reason: state.reason, message: state.message }
        : {
            is: false,
            reason: state === undefined || hasEnded(state) ? "AsExpected" : active ? "RebuildRequested" : "Building",
            message:
              state === undefined || hasEnded(state) ? "" : `${build?.metadata.name}: ${state.phase} ${state.reason}`,
          };
    // What is wrong with inputs is told elsewhere, and takes nothing back.
    if (build === undefined && layeringTold(pool) === "layered") return;
    await report(
      pool,
      {
        degraded,
        ...(intent.source === "PoolLabel" ? { legacy: { phase: state?.phase, message: state?.message ?? "" } } : {}),
      },
      context,
    );
  }

  /** @returns `again`: something was written that changes what is wanted. */
  async function makeSo(
    pool: MachineConfigPool,
    intent: Configured,
    want: Want,
    context: Context,
  ): Promise<Standing | "again"> {
    const { caches, events, clock } = context;
    const { config } = intent;
    const builds = caches
      .of(MachineOSBuild)
      .list()
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const facts: PlanFacts = {
      machineOSConfig: config.metadata.name,
      rendered: want.rendered.metadata.name,
      repository: want.inputs.repository,
      key: want.inputs.key.key,
      parentKey: want.inputs.key.parentKey,
      base: want.sources.base,
      isBaseParent: want.inputs.isBaseParent,
      holdsConfiguration: want.mode === "full",
      current: noted(config, annotations.currentMachineOSBuild),
      builds,
      forced: activeRebuild(config) !== undefined,
    };
    const retries = readRetries(noted(pool, annotations.buildRetries));
    if (!retries.valid) {
      events.event(pool, {
        type: "Warning",
        reason: "ConfigReconcileFailed",
        message: `${annotations.buildRetries} is ${JSON.stringify(noted(pool, annotations.buildRetries))}, which is no number of retries: it counts as none`,
      });
      await annotatePool(pool, { [annotations.buildRetries]: null }, context);
    }
    const seeded = await seed(config, want, facts, context);
    if (seeded !== undefined) return seeded;
    const build = currentBuildOf(facts);
    const state = build === undefined ? undefined : stateOfBuild(build);
    const due = Date.parse(noted(build, annotations.nextAttemptAt) ?? "");
    const restarts = state?.phase === "Interrupted" && (state.reason !== "UserDeleted" || !Number.isNaN(due));

    const step = rebuildStep({ pool, config, build: state?.phase, goesOn: restarts });
    if (step.do === "begin") {
      await annotateConfig(
        config,
        { [annotations.rebuildSerial]: String(step.serial), [annotations.rebuildActive]: step.active },
        context,
        (object) => noted(object, annotations.rebuildActive) !== noted(config, annotations.rebuildActive),
      );
      await annotatePool(pool, { [annotations.buildRetries]: null }, context);
      events.event(pool, {
        type: "Normal",
        reason: "RebuildRequested",
        message: `the image is built again${step.request === "" ? "" : ` (${step.request.slice(0, 200)})`}`,
      });
      return "again";
    }
    if (facts.forced) await clearFailed(facts, context);
    await supersede(facts, build, context);
    const restartsAfterLimit =
      state?.phase === "Failed" &&
      state.reason === "RetryLimitReached" &&
      retries.retries < maxRetriesOf(config, buildSettingsIn(caches));
    const standing = await (async (): Promise<Standing | "again"> => {
      if (build === undefined || state === undefined) return begin(pool, want, facts, context);
      if (state.phase === "Succeeded")
        return imageOf(build) === undefined
          ? begin(pool, want, facts, context)
          : publish(pool, intent, build, imageOf(build) ?? "", context);
      if (state.phase === "Failed" && step.do !== "finish")
        return restartsAfterLimit
          ? begin(pool, want, facts, context)
          : {
              upToDate: { is: false, reason: "BuildFailed", message: `${build.metadata.name}: ${state.message}` },
              build,
            };
      if (state.phase === "Failed")
        return {
          upToDate: { is: false, reason: "BuildFailed", message: `${build.metadata.name}: ${state.message}` },
          build,
        };
      if (state.phase === "Interrupted") {
        if (!restarts)
          return {
            upToDate: { is: false, reason: "BuildInterrupted", message: `${build.metadata.name}: ${state.message}` },
            build,
          };
        if (state.reason === "UserDeleted" && due > clock.now())
          return {
            upToDate: { is: false, reason: "BuildInterrupted", message: state.message },
            build,
            lookAgainSeconds: (due - clock.now()) / 1000,
          };
        return begin(pool, want, facts, context);
      }
      return {
        upToDate: { is: false, reason: "Building", message: `${build.metadata.name}: ${state.phase} ${state.reason}` },
        build,
      };
    })();
    if (step.do === "finish") await endRebuild(pool, config, step.succeeded, context);
    return standing;
  }

  /** The requests and the mark of a rebuild go when it has ended, whatever came of it. */
  async function endRebuild(
    pool: MachineConfigPool,
    config: MachineOSConfig,
    succeeded: boolean,
    context: Context,
  ): Promise<void> {
    await annotatePool(
      pool,
      { [annotations.rebuildImage]: null, ...(succeeded ? { [annotations.buildRetries]: null } : {}) },
      context,
      { [annotations.rebuildImage]: null },
    );
    await annotateConfig(config, { [annotations.rebuild]: null, [annotations.rebuildActive]: null }, context);
  }

  /** A rebuild clears what failed before, and everything that was kept of it. */
  async function clearFailed(facts: PlanFacts, { kube, events, signal }: Context): Promise<void> {
    for (const build of facts.builds) {
      const { phase } = stateOfBuild(build);
      if (
        build.spec.machineOSConfig.name !== facts.machineOSConfig ||
        noted(build, annotations.contentKey) === facts.key ||
        (phase !== "Failed" && phase !== "Interrupted")
      )
        continue;
      const backend = backendOf(build, backends);
      await backend?.cancel(runOf(build), "a rebuild was asked for", signal);
      await backend?.cleanup({ build: build.metadata.name }, { keepForInspection: false }, signal);
      await kube.delete(MachineOSBuild, build.metadata, { signal });
      events.event(build, {
        type: "Normal",
        reason: "BuildDeleted",
        message: "a rebuild was asked for, and this one had failed",
      });
    }
  }

  /** Runs for something else end, but those that others wait for, and those that are as good as done. */
  async function supersede(facts: PlanFacts, wanted: MachineOSBuild | undefined, context: Context): Promise<void> {
    for (const { build, state } of superseded(facts.machineOSConfig, wanted?.metadata.name, facts.builds)) {
      // A run for the same key is what is wanted, whatever configuration it was begun for.
      const isForThis = noted(build, annotations.contentKey) === facts.key && !isAttached(build);
      if (isForThis || isNearlyDone(state) || attachedTo(build.metadata.name, facts.builds).length > 0) continue;
      await cancelBuild(build, "Superseded", `${facts.rendered} (key ${facts.key}) is wanted now`, {
        context,
        backends,
      });
    }
  }

  /** Begins what makes the image that is wanted, as cheaply as it can be. */
  async function begin(
    pool: MachineConfigPool,
    want: Want,
    facts: PlanFacts,
    context: Context,
  ): Promise<Standing | "again"> {
    const { clock, events, signal, log } = context;
    const { config } = want;
    const here = pool.metadata.name;
    const lone = standingOfReference(config, facts);
    if (lone !== undefined)
      return {
        upToDate: {
          is: true,
          reason: "UpToDate",
          message: `${lone.metadata.name} was made before this suite looked after the pool`,
        },
      };
    const recalled = await recall(want, facts, context);
    if (recalled !== undefined) return recalled;
    const plan = planBuild(facts);
    if (plan.strategy === "none") return { upToDate: { is: true, reason: "UpToDate", message: plan.because } };
    if (plan.strategy === "reuse" && plan.state === "finished") {
      const image = imageOf(plan.from) ?? "";
      const there = await lookAt(image, want.images, signal);
      if (there.is === "absent") {
        await loseImage(image, facts, context);
        return "again";
      }
      if (there.is !== "image") return registryWaits(there.problem);
      const made = await create(facts, want, plan, context);
      await succeed(made, image, "Reused", undefined, context);
      return {
        upToDate: {
          is: false,
          reason: "Building",
          message: `${made.metadata.name} takes the image of ${plan.from.metadata.name}`,
        },
        build: made,
        lookAgainSeconds: 1,
      };
    }
    if (plan.strategy === "append" && plan.parent.image !== facts.base) {
      const there = await lookAt(plan.parent.image, want.images, signal);
      if (there.is === "absent") {
        await loseImage(plan.parent.image, facts, context);
        return "again";
      }
      if (there.is !== "image") return registryWaits(there.problem);
    }
    if (plan.strategy === "build") {
      const known = still.get(here);
      if (known?.key !== facts.key) still.set(here, { key: facts.key, since: clock.monotonic() });
      const waits = (still.get(here)?.since ?? 0) + (options.stillMs ?? stillMs) - clock.monotonic();
      if (waits > 0)
        return {
          upToDate: {
            is: false,
            reason: "InputsMoving",
            message: "the build begins when its inputs have been still for a while",
          },
          lookAgainSeconds: waits / 1000,
        };
      const missing = await preflight(want, facts, plan, context);
      if (missing !== undefined)
        return {
          upToDate: { is: false, reason: missing.code, message: missing.message },
          lookAgainSeconds: invalidSeconds,
        };
    }
    // Retries were spent on another key.
    if (currentBuildOf(facts) === undefined && noted(pool, annotations.buildRetries) !== undefined)
      await annotatePool(pool, { [annotations.buildRetries]: null }, context);
    const rolledOut = facts.builds.find(({ metadata }) => metadata.name === facts.current)?.spec.machineConfig.name;
    if (rolledOut !== undefined && rolledOut !== facts.rendered)
      events.event(pool, {
        type: "Normal",
        reason: "PoolConfigChanged",
        message: `${facts.rendered} in place of ${rolledOut}: ${plan.strategy}`,
      });
    const made = await create(facts, want, plan, context);
    still.delete(here);
    if (plan.strategy === "reuse")
      await writeBuildState(
        made,
        {
          phase: "Building",
          reason: "Attached",
          message: `waits for ${plan.from.metadata.name}, which makes the same image`,
        },
        context,
      );
    if (plan.strategy === "reuse")
      events.event(made, {
        type: "Normal",
        reason: "BuildAttached",
        message: `waits for ${plan.from.metadata.name}, which makes the same image`,
      });
    else await writeBuildState(made, { phase: "Initial", reason: "", message: "" }, context);
    log.info(
      { pool: here, build: made.metadata.name, strategy: plan.strategy, because: plan.because },
      "build planned",
    );
    return {
      upToDate: {
        is: false,
        reason: "Building",
        message: `${made.metadata.name}: ${plan.strategy}, as ${plan.because}`,
      },
      build: made,
    };
  }

  /** Asks a registry for an image; that it does not answer is an answer too. */
  async function lookAt(
    image: string,
    images: Images,
    signal: AbortSignal,
  ): Promise<Awaited<ReturnType<Images["inspect"]>>> {
    return images.inspect(image, signal);
  }

  /** The registry does not have an image any more: no build is said to have made it. */
  async function loseImage(image: string, facts: PlanFacts, context: Context): Promise<void> {
    for (const build of facts.builds)
      if (build.status?.digestedImagePushSpec === image)
        await annotateBuild(build, { [annotations.imageLost]: timestampOf(context.clock.now()) }, context);
    context.log.warn({ image }, "the registry does not have an image any more");
  }

  /** What the reference made for this configuration stands until something else is wanted. */
  function standingOfReference(config: MachineOSConfig, facts: PlanFacts): MachineOSBuild | undefined {
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

  /** A build that somebody deleted though its image is rolled out is told again, as long as its image is there. */
  async function recall(want: Want, facts: PlanFacts, context: Context): Promise<Standing | "again" | undefined> {
    const image = want.config.status?.currentImagePullSpec;
    const first = buildName(facts.machineOSConfig, facts.key);
    if (
      image === undefined ||
      facts.current === undefined ||
      facts.builds.some(({ metadata }) => metadata.name === facts.current) ||
      (facts.current !== first && !facts.current.startsWith(`${first}-`))
    )
      return undefined;
    const there = await lookAt(image, want.images, context.signal);
    if (there.is === "absent") return undefined;
    if (there.is !== "image") return registryWaits(there.problem);
    const made = await create(
      facts,
      want,
      { strategy: "reuse", because: "its image is rolled out", turnedDown: [] },
      context,
    );
    await succeed(made, image, "Reused", undefined, context);
    return {
      upToDate: { is: false, reason: "Building", message: `${made.metadata.name} is told again` },
      build: made,
      lookAgainSeconds: 1,
    };
  }

  /** Takes an image over that was made before there was a cluster. Once: the request goes when that is written. */
  async function seed(
    config: MachineOSConfig,
    want: Want,
    facts: PlanFacts,
    context: Context,
  ): Promise<Standing | "again" | undefined> {
    const image = noted(config, annotations.preBuiltImage);
    if (image === undefined) return undefined;
    const done = async (reason: string, message: string) => {
      await writeConfigStatus(
        config,
        [{ type: types.seeded, status: reason === "PreBuiltImageSeeded" ? "True" : "False", reason, message }],
        context,
      );
      await annotateConfig(config, { [annotations.preBuiltImage]: null }, context);
      return "again" as const;
    };
    if (config.status?.currentImagePullSpec !== undefined)
      return done(
        conditionOf(config.status.conditions, types.seeded)?.status === "True" ? "PreBuiltImageSeeded" : "ImageThere",
        "",
      );
    if (!/^[^@\s]+@sha256:[0-9a-f]{64}$/.test(image))
      return done("ImageNotDigest", `${image} is not named by its digest`);
    const there = await lookAt(image, want.images, context.signal);
    if (there.is === "unreachable") return registryWaits(there.problem);
    if (there.is !== "image") return done("ImageAbsent", there.problem);
    const mode: ContentMode = there.labels[imageLabels.content] === "full" ? "full" : "os-only";
    const seen = facts.builds.find(
      (build) =>
        build.metadata.labels?.[labels.preBuiltImage] !== undefined &&
        build.spec.machineOSConfig.name === facts.machineOSConfig,
    );
    // What holds something else than is wanted is rolled out all the same, and then replaced.
    const made =
      seen ??
      (await create(
        mode === want.mode ? facts : { ...facts, key: sha256Hex(image).slice(0, 32) },
        want,
        { strategy: "reuse", because: "its image came with the installation", turnedDown: [] },
        context,
        { mode, isPreBuilt: true, hasKey: mode === want.mode },
      ));
    await succeed(made, image, "Reused", undefined, context);
    await writeConfigStatus(
      config,
      [{ type: types.seeded, status: "True", reason: "PreBuiltImageSeeded", message: image }],
      context,
      () => ({ currentImagePullSpec: image, machineOSBuild: referenceTo(made) }),
    );
    await annotateConfig(
      config,
      { [annotations.currentMachineOSBuild]: made.metadata.name, [annotations.preBuiltImage]: null },
      context,
    );
    return "again";
  }

  /** Makes the object of a build; one that is there already is taken over. */
  async function create(
    facts: PlanFacts,
    want: Want,
    plan: Reason,
    context: Context,
    seeding?: { readonly mode: ContentMode; readonly isPreBuilt: boolean; readonly hasKey: boolean },
  ): Promise<MachineOSBuild> {
    const { kube, events, scribe, signal } = context;
    const name = nextBuildName(facts);
    const { key, parentKey, components } = want.inputs.key;
    const { from, parent } = plan;
    const build: MachineOSBuild = {
      apiVersion: MachineOSBuild.apiVersion,
      kind: MachineOSBuild.kind,
      metadata: {
        name,
        labels: {
          [labels.machineOSConfig]: labelValue(facts.machineOSConfig),
          [labels.targetPool]: labelValue(want.pool),
          [labels.renderedConfig]: labelValue(facts.rendered),
          ...(seeding?.isPreBuilt === true ? { [labels.preBuiltImage]: "true" } : {}),
        },
        annotations: {
          ...(seeding?.hasKey === false
            ? { [annotations.contentKey]: "" }
            : {
                [annotations.contentKey]: key,
                [annotations.parentKey]: parentKey,
                [annotations.keyInputs]: printComponents(components),
              }),
          [annotations.imageContent]: seeding?.mode ?? want.mode,
          [annotations.buildStrategy]: plan.strategy,
          [annotations.buildBecause]: JSON.stringify({
            because: plan.because,
            turnedDown: plan.turnedDown,
            ...(parent === undefined ? {} : { parent }),
          }),
          [annotations.buildAttempt]: "1",
          [annotations.pushSecret]: want.config.spec.renderedImagePushSecret.name,
          ...(from === undefined ? {} : { [annotations.reusedFrom]: from.metadata.name }),
        },
      },
      spec: {
        machineConfig: { name: facts.rendered },
        machineOSConfig: { name: facts.machineOSConfig },
        renderedImagePushSpec: `${facts.repository}:${name}`,
      },
    };
    try {
      const made = await kube.create(MachineOSBuild, build, { owner: fieldManagers.osBuilder, signal });
      events.event(made, { type: "Normal", reason: "BuildStarted", message: `${plan.strategy}: ${plan.because}` });
      scribe.line({
        book: `build/${name}`,
        chapter: "Planned",
        path: "Planned",
        mark: "end",
        level: "boundary",
        reason: "BuildPlanned",
        message: `${plan.strategy}: ${plan.because}`,
        data: {
          strategy: plan.strategy,
          config: facts.rendered,
          key,
          pool: want.pool,
          ...(from === undefined ? {} : { from: from.metadata.name }),
        },
      });
      scribe.line({
        book: `pool/${want.pool}`,
        chapter: "Build",
        run: name,
        path: "Built",
        mark: "begin",
        level: "boundary",
        reason: "BuildStarted",
        message: `${name} makes the image of ${facts.rendered}: ${plan.strategy}, as ${plan.because}`,
        data: { chapter: `build/${name}`, strategy: plan.strategy },
      });
      return made;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const there = await kube.get(MachineOSBuild, { name }, { signal });
      if (there === undefined) throw error;
      return there;
    }
  }

  /** What keeps steps from being run here at all. */
  async function preflight(
    want: Want,
    facts: PlanFacts,
    plan: BuildPlan,
    context: Context,
  ): Promise<{ readonly code: string; readonly message: string } | undefined> {
    const backend = backends.find((each) => each.capabilities().run);
    if (backend === undefined)
      return { code: "BuilderBinaryMissing", message: "nothing here can run the steps of a Containerfile" };
    const draft: MachineOSBuild = {
      apiVersion: MachineOSBuild.apiVersion,
      kind: MachineOSBuild.kind,
      metadata: { name: nextBuildName(facts), annotations: { [annotations.buildStrategy]: plan.strategy } },
      spec: {
        machineConfig: { name: facts.rendered },
        machineOSConfig: { name: facts.machineOSConfig },
        renderedImagePushSpec: `${facts.repository}:${nextBuildName(facts)}`,
      },
    };
    const request = await buildRequest(
      draft,
      1,
      want,
      observerOf(context),
      context.caches,
      { moreMemory: false, noCache: false },
      context.signal,
    );
    const [problem] = await backend.preflight(request, context.signal);
    return problem;
  }

  /** When every machine of the pool runs an image, its book is told, once. */
  async function tellRolledOut(
    pool: MachineConfigPool,
    build: MachineOSBuild,
    image: string,
    context: Context,
  ): Promise<void> {
    if (noted(build, annotations.rolledOutAt) !== undefined) return;
    const members = nodesIn(context.caches).filter((node) => node.pool === pool.metadata.name);
    const runs = ({ node }: (typeof members)[number]) =>
      noted(node, annotations.currentImage) === image &&
      noted(node, annotations.currentConfig) === build.spec.machineConfig.name;
    if (members.length === 0 || !members.every(runs)) return;
    await annotateBuild(build, { [annotations.rolledOutAt]: timestampOf(context.clock.now()) }, context);
    context.scribe.line({
      book: `build/${build.metadata.name}`,
      chapter: "RolledOut",
      path: "RolledOut",
      mark: "end",
      level: "boundary",
      reason: "ImageRolledOut",
      message: `all ${members.length} machines of ${pool.metadata.name} run ${image}`,
      data: { pool: pool.metadata.name, machines: members.length },
    });
  }

  /** The image that is wanted is there: whoever rolls it out is told, and first of all. */
  async function publish(
    pool: MachineConfigPool,
    intent: Configured,
    build: MachineOSBuild,
    image: string,
    context: Context,
  ): Promise<Standing> {
    const { events, scribe, log } = context;
    const { config } = intent;
    const { name } = build.metadata;
    const isPublished =
      config.status?.currentImagePullSpec === image &&
      config.status.machineOSBuild?.name === name &&
      noted(config, annotations.currentMachineOSBuild) === name;
    if (!isPublished) {
      const before = config.status?.currentImagePullSpec;
      await writeConfigStatus(
        config,
        [{ type: types.upToDate, status: "True", reason: "UpToDate", message: `${name}: ${image}` }],
        context,
        (object) =>
          object.status?.currentImagePullSpec === image && object.status.machineOSBuild?.name === name
            ? undefined
            : { currentImagePullSpec: image, machineOSBuild: referenceTo(build) },
      );
      await annotateConfig(config, { [annotations.currentMachineOSBuild]: name }, context);
      log.info({ pool: pool.metadata.name, build: name, image, content: modeOf(build) }, "image published");
      if (before === image && activeRebuild(config) !== undefined)
        events.event(pool, {
          type: "Normal",
          reason: "RebuildUnchanged",
          message: `built again, the image is the same to the last byte: ${image}`,
        });
      scribe.line({
        book: `build/${name}`,
        chapter: "Published",
        path: "Published",
        mark: "end",
        level: "boundary",
        reason: "ImagePublished",
        message: `${image} is the image of ${pool.metadata.name}`,
        data: { image, pool: pool.metadata.name },
      });
    }
    if (isPublished) await tellRolledOut(pool, build, image, context);
    const legacy = intent.source === "PoolLabel" ? { [annotations.newestImageEquivalentConfig]: image } : {};
    await annotatePool(pool, { ...legacy, [annotations.buildRetries]: null }, context);
    return { upToDate: { is: true, reason: "UpToDate", message: `${name}: ${image}` }, build };
  }
}

function sooner(outcome: Outcome, look: NextLook): Outcome {
  if (look === undefined || outcome.kind === "stalled") return outcome;
  return { ...outcome, lookAgainAfterSeconds: Math.min(outcome.lookAgainAfterSeconds ?? Infinity, look) };
}
