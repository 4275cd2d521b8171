import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, fieldManagers, finalizers, machineOSConfigConditions as types } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import { type Intent, compileIntent, isOfReference, notAccepted } from "../core/build/build-intent.ts";
import { isMaterialised } from "../core/config/opt-in.ts";
import { equalValues } from "../ignition/canonical.ts";
import type { Context, Controller } from "../kube/controller.ts";
import { updateByDecision } from "../kube/kube-client.ts";
import { type Outcome, done, waiting } from "../kube/outcome.ts";
import { intentFacts, poolWatches } from "./cluster-facts.ts";
import { writeConfigStatus } from "./write-objects.ts";
import { defined } from "../api/schema/defined.ts";
import { type ConfigRefusal, configRefused, contentStamped, inputsRefused, poolOptedIn } from "./reports.ts";

/**
 * Turns each way of opting a pool in into one MachineOSConfig: creates and removes those that no user wrote, keeps each
 * until the objects that were created for it are deleted, and reports which one decides.
 */
export function optInController(): Controller {
  /** Pool → problems of its inputs that were reported where there is no MachineOSConfig to report them on. */
  const reported = new Map<string, string>();
  return {
    name: "opt-in",
    watches: poolWatches,
    owns: [
      "MachineOSConfig/opt-in-source",
      "MachineOSConfig.metadata.finalizers",
      "MachineOSConfig.status.conditions/Accepted",
    ],
    reconcile: (name, context) => optIn(name, context, reported),
  };
}

async function optIn(name: string, context: Context, reported: Map<string, string>): Promise<Outcome> {
  const { caches } = context;
  const pool = caches.of(MachineConfigPool).get(name);
  const configs = caches
    .of(MachineOSConfig)
    .list()
    .filter(({ spec }) => spec.machineConfigPool.name === name);
  for (const config of configs) if (config.metadata.deletionTimestamp === undefined) await adopt(config, context);
  if (pool === undefined) {
    reported.delete(name);
    for (const config of configs)
      if (!isMaterialised(config))
        await accept(config, { reason: "PoolNotFound", message: `there is no MachineConfigPool ${name}` }, context);
    return done();
  }
  if (pool.metadata.deletionTimestamp !== undefined) return done();
  const facts = intentFacts(pool, caches);
  const intent = compileIntent(facts);
  await materialise(pool, intent, configs, context);
  reportProblems(pool, intent, context, reported);
  const refused = notAccepted(facts);
  for (const config of configs)
    if (config.metadata.deletionTimestamp === undefined)
      await accept(config, refused.get(config.metadata.name), context);
  return intent.opted === "in" && intent.config === undefined && intent.materialised === undefined
    ? waiting(
        intent.problems[0]?.code ?? "InputsMissing",
        intent.problems.map(({ message }) => message).join("; "),
        300,
      )
    : done();
}

/**
 * Takes a MachineOSConfig over: it is held on to, and one that the reference rolled out keeps the meaning that it
 * had.
 */
async function adopt(config: MachineOSConfig, { kube, caches, report, signal }: Context): Promise<void> {
  if (config.metadata.finalizers?.includes(finalizers.osBuildCleanup) === true) return;
  const isOurs = (build: string) =>
    caches.of(MachineOSBuild).get(build)?.metadata.annotations?.[annotations.contentKey] !== undefined;
  const adopted = await updateByDecision(
    kube,
    MachineOSConfig,
    config.metadata,
    (object) => {
      const has = object.metadata.finalizers ?? [];
      if (object.metadata.deletionTimestamp !== undefined || has.includes(finalizers.osBuildCleanup))
        return { decision: { stamped: false } };
      const stamped =
        object.metadata.annotations?.[annotations.imageContent] === undefined &&
        isOfReference(object, finalizers.osBuildCleanup, isOurs);
      const metadata = {
        finalizers: [...has, finalizers.osBuildCleanup],
        ...(stamped ? { annotations: { [annotations.imageContent]: "os-only" } } : {}),
      };
      return { decision: { stamped }, write: { metadata } as unknown as Partial<MachineOSConfig> };
    },
    { owner: fieldManagers.osBuilder, cached: config, signal },
  );
  if (adopted?.decision.stamped !== true) return;
  report(contentStamped(config));
}

async function materialise(
  pool: MachineConfigPool,
  intent: Intent,
  configs: readonly MachineOSConfig[],
  { kube, log, signal }: Context,
): Promise<void> {
  const own = configs.filter((config) => isMaterialised(config) && config.metadata.deletionTimestamp === undefined);
  const isWanted = intent.opted === "in" && intent.source !== "MachineOSConfig";
  for (const config of own) {
    if (isWanted) continue;
    await kube.delete(MachineOSConfig, config.metadata, {
      ...defined({ uid: config.metadata.uid }),
      signal,
    });
    log.info(
      { pool: pool.metadata.name, machineOSConfig: config.metadata.name, because: intent.because },
      "MachineOSConfig removed",
    );
  }
  if (!isWanted || intent.materialised === undefined) return;
  const { name } = pool.metadata;
  const there = configs.find(({ metadata }) => metadata.name === name);
  // An object that is being deleted must be removed first.
  if (there?.metadata.deletionTimestamp !== undefined) return;
  if (
    there !== undefined &&
    equalValues(there.spec, intent.materialised) &&
    there.metadata.annotations?.[annotations.optInSource] === intent.source
  )
    return;
  const owner = { apiVersion: pool.apiVersion, kind: pool.kind, name, uid: pool.metadata.uid ?? "" };
  // Fields that were changed by hand are reset to the ConfigMap's values.
  await kube.apply(
    MachineOSConfig,
    {
      metadata: {
        name,
        annotations: { [annotations.optInSource]: intent.source },
        finalizers: [finalizers.osBuildCleanup],
        ownerReferences: [owner],
      },
      spec: intent.materialised,
    },
    { owner: fieldManagers.osBuilder, force: true, signal },
  );
  log.info(
    { pool: name, source: intent.source },
    there === undefined ? "MachineOSConfig made" : "MachineOSConfig follows its ConfigMap",
  );
}

function reportProblems(
  pool: MachineConfigPool,
  intent: Intent,
  { report }: Context,
  reported: Map<string, string>,
): void {
  const text =
    intent.opted === "in" && intent.source !== "MachineOSConfig"
      ? intent.problems.map(({ code, message }) => `${code}: ${message}`).join("; ")
      : "";
  if (reported.get(pool.metadata.name) === text) return;
  reported.set(pool.metadata.name, text);
  if (text !== "") report(inputsRefused(pool, text));
}

async function accept(config: MachineOSConfig, refusal: ConfigRefusal | undefined, context: Context): Promise<void> {
  const before = conditionOf(config.status?.conditions, types.accepted);
  const wanted =
    refusal === undefined
      ? ({ type: types.accepted, status: "True", reason: "Accepted", message: "" } as const)
      : ({ type: types.accepted, status: "False", ...refusal } as const);
  if (
    before !== undefined &&
    before.status === wanted.status &&
    before.reason === wanted.reason &&
    before.message === wanted.message &&
    before.observedGeneration === config.metadata.generation
  )
    return;
  await writeConfigStatus(config, [wanted], context);
  if (refusal !== undefined && before?.reason !== refusal.reason) context.report(configRefused(config, refusal));
  if (refusal === undefined && before?.status !== "True") {
    const source = config.metadata.annotations?.[annotations.optInSource] ?? "MachineOSConfig";
    context.report(poolOptedIn(config, source));
  }
}
