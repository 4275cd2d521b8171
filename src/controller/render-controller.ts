import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { OSImageStream } from "../api/kinds/os-image-stream.ts";
import { openshift } from "../api/foreign/openshift.ts";
import {
  annotations,
  credentialConditions,
  fieldManagers,
  group,
  labels,
  objects,
  poolConditions,
} from "../api/names.ts";
import { ContainerRuntimeConfig } from "../api/kinds/container-runtime-config.ts";
import { KubeletConfig } from "../api/kinds/kubelet-config.ts";
import { type KubeObject, type Resource, conditionOf } from "../api/schema/object.ts";
import { gateDefaults, nodeDefaults } from "../core/kubelet/decide-defaults.ts";
import type { SettingsObject } from "../core/kubelet/decide-generated.ts";
import { selectPools } from "../core/kubelet/select-pools.ts";
import { baseConfigNames } from "../core/render/base-config-of.ts";
import { baseRoles } from "../core/render/base-configs.ts";
import { isCompleted, versionGate } from "../core/render/controller-config-of.ts";
import { poolSelects, selectorProblem } from "../core/config/pool-selector.ts";
import { fieldsNotHeld } from "../core/config/held-fields.ts";
import { isRendered, membersOf, poolInRenderedName, poolOfRendered } from "../core/config/is-rendered.ts";
import { credentialsConfigName } from "../core/runtime/decide-credentials.ts";
import { registriesConfigName } from "../core/runtime/registries-config.ts";
import { registryKinds, trimRegistryObject } from "../core/runtime/registry-objects.ts";
import { describeRendered } from "../core/preview/describe-rendered.ts";
import { isCurrentStream, renderStreamOf } from "../core/render/os-streams.ts";
import { renderForPool, storageOverridesOf } from "../core/render/render-for-pool.ts";
import type { RenderRefusal } from "../core/render/render-pool.ts";
import { withOverallDegraded } from "../core/pool/pool-status.ts";
import { trimMachineConfig } from "../core/pool/trim.ts";
import { listText, shortList } from "../core/text/list-text.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Caches, type Context, type Controller, watching } from "../kube/controller.ts";
import { KubeError, isPassing } from "../kube/kube-error.ts";
import { type Outcome, done, stalled, waiting } from "../kube/outcome.ts";
import type { ObjectChange } from "../kube/watch-cache.ts";
import { type RenderPace, pacedTarget, renderPace } from "./render-pace.ts";

export interface RenderOptions {
  readonly version: string;
  readonly generatorVersion: string;
  /** `absent`: this process makes no base configurations, so rendering does not wait for them. */
  readonly baseConfigs: "awaited" | "absent";
  /** `awaited`: this process turns objects with settings into MachineConfigs. */
  readonly settings: "awaited" | "absent";
  /** `awaited`: this process writes the registries of machines. */
  readonly registries: "awaited" | "absent";
}

const waitSeconds = 30;
/** How long a pool waits for an object with settings that was just written, so that one change is one roll-out. */
const longestSettingsWaitMs = 10_000;

/** Earlier reports about pools, so that each is made once. */
interface RenderMemory extends RenderPace {
  /** Pool → the configuration that it points to. */
  readonly pointed: Map<string, string>;
  /** Pool → why it cannot be rendered. */
  readonly refused: Map<string, string>;
  /** A pool's objects with settings, or a generated MachineConfig → since when (monotonic milliseconds). */
  readonly awaited: Map<string, number>;
}

/** Merges a pool's MachineConfigs into one rendered config and points the pool at it. */
export function renderController(options: RenderOptions): Controller {
  const memory: RenderMemory = { pointed: new Map(), refused: new Map(), awaited: new Map(), ...renderPace() };
  return {
    name: "render",
    watches: [
      watching({
        resource: MachineConfigPool,
        concerns: ({ key, before, after }, caches) =>
          before !== undefined && after !== undefined && before.metadata.generation === after.metadata.generation
            ? []
            : key === "worker" && before?.spec.osImageStream?.name !== after?.spec.osImageStream?.name
              ? allPools(caches)
              : [key],
      }),
      watching({ resource: MachineConfig, keep: trimMachineConfig, concerns: poolsSelecting }),
      watching({
        resource: ControllerConfig,
        concerns: (change, caches) => (concernsRendering(change) ? allPools(caches) : []),
      }),
      watching({
        resource: MachineConfiguration,
        concerns: ({ before, after }, caches) =>
          equalValues(storageOverridesOf(before), storageOverridesOf(after)) ? [] : allPools(caches),
      }),
      ...(options.settings === "awaited" ? settingsKinds : []).map((resource) =>
        watching<SettingsObject>({
          resource: resource as Resource<SettingsObject>,
          concerns: ({ before, after }, caches) =>
            isJudged(before) === isJudged(after) ? [] : poolsOf(after ?? before, caches),
        }),
      ),
      watching({
        resource: OSImageStream,
        optional: true,
        concerns: ({ before, after }, caches) =>
          equalValues(before?.status, after?.status) &&
          before?.metadata.annotations?.[annotations.streamInputs] ===
            after?.metadata.annotations?.[annotations.streamInputs]
            ? []
            : allPools(caches),
      }),
      // What is made of them wakes the pools.
      ...(options.registries === "awaited" ? registryKinds : []).map((resource) =>
        watching<KubeObject>({ resource, keep: trimRegistryObject, optional: true, concerns: () => [] }),
      ),
      ...(options.settings === "awaited" ? clusterKinds : []).map((resource) =>
        watching<KubeObject>({ resource, optional: true, concerns: () => [] }),
      ),
    ],
    owns: ["MachineConfig/rendered", "MachineConfigPool.spec.configuration"],
    workers: 2,
    degradedCondition: poolConditions.renderDegraded,
    withSummary: withOverallDegraded,

    async reconcile(name, context): Promise<Outcome> {
      const { caches } = context;
      const pool = caches.of(MachineConfigPool).get(name);
      if (pool === undefined || pool.metadata.deletionTimestamp !== undefined) return done();
      const { machineConfigSelector } = pool.spec;
      if (machineConfigSelector !== undefined && selectorProblem(machineConfigSelector)?.is === "empty")
        return refuseAll(pool, context);
      const malformed = malformedSelector(pool);
      if (malformed !== undefined) return refuseFor(name, malformed, memory, context);
      const controllerConfig = caches.of(ControllerConfig).get(objects.controllerConfig);
      const gate = versionGate(controllerConfig, options.version);
      const isOpen =
        gate.verdict === "open" || (options.baseConfigs === "absent" && gate.reason === "ControllerConfigNotCompleted");
      if (!isOpen || controllerConfig === undefined)
        return gate.verdict === "closed" ? waiting(gate.reason, gate.message, waitSeconds) : done();

      // The template controller recreates a deleted one at once; until then, machines keep what it gave them.
      const missing = options.baseConfigs === "awaited" ? missingBase(pool, caches) : undefined;
      if (missing !== undefined)
        return waiting(
          "ControllerConfigNotCompleted",
          `the base configuration ${missing} is not there yet`,
          waitSeconds,
        );

      const unjudged = options.settings === "awaited" ? awaitedSettings(pool, memory, context) : undefined;
      if (unjudged !== undefined) return waiting("SettingsNotJudged", `${unjudged} has not been judged yet`, 2);
      const unwritten = awaitedConfig(pool, memory, options, context);
      if (unwritten !== undefined) return waiting("SettingsNotJudged", `${unwritten} has not been written yet`, 2);

      const osImageStream = caches.of(OSImageStream).get(objects.clusterSingleton);
      if (osImageStream?.status !== undefined && !isCurrentStream(osImageStream, controllerConfig.spec))
        return waiting("StreamsNotRead", "the OS image streams of the cluster's present images are not known yet", 2);

      const members = knownMembers(pool, caches);
      const current = caches.of(MachineConfig).get(pool.spec.configuration?.name ?? "");
      const overrides = storageOverridesOf(caches.of(MachineConfiguration).get(objects.machineConfiguration));
      const stream = renderStreamOf(pool, caches.of(MachineConfigPool).list(), osImageStream);
      const inputs = { pool, members, controllerConfig, generatorVersion: options.generatorVersion, ...stream };
      const result = renderForPool(inputs, current, overrides);
      if (result.verdict === "refused") return refuse(name, result.refusals, memory, context);
      const paced = pacedTarget(pool, result.config.metadata.name, memory, context);
      if (paced !== undefined) return waiting("ChangesPaced", paced.message, paced.seconds);
      const stored = await store(pool, result.config, options, context);
      if (stored.verdict !== "stored") return refuseStored(name, result.config.metadata.name, stored, memory, context);
      reportRecovered(name, memory, context);
      reportTarget(pool, { current, result, members: members.length }, memory, context);
      await point(pool, result, members.length, context);
      return done();
    },
  };
}

type Rendered = Extract<ReturnType<typeof renderForPool>, { verdict: "rendered" }>;

const allPools = (caches: Caches): readonly string[] =>
  caches
    .of(MachineConfigPool)
    .list()
    .map(({ metadata }) => metadata.name);

/** The first missing base configuration of the roles that a pool selects; `undefined`: none is missing. */
const missingBase = ({ spec }: MachineConfigPool, caches: Caches): string | undefined =>
  baseRoles
    .filter((role) => poolSelects(spec.machineConfigSelector, { [labels.role]: role }))
    .flatMap(baseConfigNames)
    .find((name) => caches.of(MachineConfig).get(name) === undefined);

const settingsKinds = [KubeletConfig, ContainerRuntimeConfig] as const;

/** Whether a controller has said what became of the object as it is. */
const isJudged = (object: SettingsObject | undefined): boolean =>
  object === undefined ||
  object.metadata.deletionTimestamp !== undefined ||
  object.status?.observedGeneration === object.metadata.generation;

/** The pools that an object with settings selects. */
function poolsOf(object: SettingsObject | undefined, caches: Caches): readonly string[] {
  const selection = selectPools(object?.spec.machineConfigPoolSelector, caches.of(MachineConfigPool).list());
  return selection.verdict === "selected" ? selection.pools.map(({ metadata }) => metadata.name) : [];
}

/**
 * An object for this pool that is about to become a MachineConfig; `undefined`: none that is worth waiting for. A pool
 * waits again only after all were judged: whoever writes such objects without end holds up no configuration of others.
 */
function awaitedSettings(
  pool: MachineConfigPool,
  { awaited }: RenderMemory,
  { caches, clock }: Context,
): string | undefined {
  const key = `settings of ${pool.metadata.name}`;
  const pools = poolsBelow(pool, caches);
  const unjudged = settingsKinds
    .flatMap((resource) => caches.of(resource as Resource<SettingsObject>).list())
    .find(
      (object) => !isJudged(object) && selectPools(object.spec.machineConfigPoolSelector, pools).verdict !== "refused",
    );
  if (unjudged === undefined) {
    awaited.delete(key);
    return undefined;
  }
  const now = clock.monotonic();
  const since = awaited.get(key) ?? now;
  awaited.set(key, since);
  return now - since < longestSettingsWaitMs ? `${unjudged.kind}/${unjudged.metadata.name}` : undefined;
}

/** Pools whose generated MachineConfigs become part of a pool's: by their role. */
const poolsBelow = ({ spec, metadata }: MachineConfigPool, caches: Caches): readonly MachineConfigPool[] =>
  caches
    .of(MachineConfigPool)
    .list()
    .filter(
      (one) =>
        one.metadata.name === metadata.name ||
        poolSelects(spec.machineConfigSelector, { [labels.role]: one.metadata.name }),
    );

/** Objects of the whole cluster that become MachineConfigs of every pool, or of every built-in one. */
const clusterKinds = [openshift.CRIOCredentialProviderConfig, openshift.ConfigNode, openshift.FeatureGate] as const;

/** Names of the MachineConfigs that this process makes for a pool of what the cluster has. */
function generatedFor(
  { metadata: { name, labels: has } }: MachineConfigPool,
  caches: Caches,
  options: RenderOptions,
): readonly string[] {
  const names: string[] = [];
  const isBuiltIn = has?.[labels.builtInPool] !== undefined;
  const hasRegistries = () => registryKinds.some((resource) => caches.of(resource as Resource).size > 0);
  if (options.registries === "awaited" && isBuiltIn && hasRegistries()) names.push(registriesConfigName(name));
  if (options.settings === "absent") return names;
  const credentials = caches.of(openshift.CRIOCredentialProviderConfig).get(objects.clusterSingleton);
  const isThere = (resource: Resource) => caches.of(resource).get(objects.clusterSingleton) !== undefined;
  const isRefused = conditionOf(credentials?.status?.conditions, credentialConditions.rendered)?.status === "False";
  if (credentials !== undefined && isBuiltIn && !isRefused) names.push(credentialsConfigName(name));
  if (isThere(openshift.ConfigNode)) names.push(nodeDefaults(name));
  if (isThere(openshift.FeatureGate)) names.push(gateDefaults(name));
  return names;
}

/**
 * A MachineConfig that is about to be made for this pool, so that machines of a new cluster do not lose for a moment
 * what they were installed with; `undefined`: none that is worth waiting for.
 */
function awaitedConfig(
  pool: MachineConfigPool,
  { awaited }: RenderMemory,
  options: RenderOptions,
  { caches, clock }: Context,
): string | undefined {
  const now = clock.monotonic();
  const names = poolsBelow(pool, caches).flatMap((one) => generatedFor(one, caches, options));
  const isThere = (name: string) => caches.of(MachineConfig).get(name) !== undefined;
  for (const name of names.filter(isThere)) awaited.delete(name);
  return names
    .filter((name) => !isThere(name))
    .find((name) => {
      const since = awaited.get(name) ?? now;
      awaited.set(name, since);
      return now - since < longestSettingsWaitMs;
    });
}

/** The pool's members among the objects that the controller knows. */
const knownMembers = (pool: MachineConfigPool, caches: Caches): readonly MachineConfig[] =>
  membersOf(pool, caches.of(MachineConfigPool).list(), caches.of(MachineConfig).list());

function refuseAll(pool: MachineConfigPool, { report }: Pick<Context, "report">): Outcome {
  report({
    about: pool,
    notice: "SelectingAll",
    message: "This machineconfigpool is selecting all machineconfigs. A non-empty selector is required.",
  });
  return stalled("SelectingAll", "the machineConfigSelector is empty and would select every MachineConfig");
}

/** The problem of a malformed selector of a pool; `undefined`: both are well-formed. */
function malformedSelector({ spec }: MachineConfigPool): string | undefined {
  for (const field of ["machineConfigSelector", "nodeSelector"] as const) {
    const selector = spec[field];
    const problem = selector === undefined ? undefined : selectorProblem(selector);
    if (problem?.is === "malformed") return `spec.${field}${problem.field} ${problem.reason}: ${problem.remedy}`;
  }
  return undefined;
}

/** Reports why a pool cannot be rendered: it keeps its current config. */
function refuseFor(pool: string, problem: string, memory: RenderMemory, context: Pick<Context, "report">): Outcome {
  reportRefusal(pool, "RenderRefused", problem, memory, context);
  return stalled("RenderRefused", `Failed to render configuration for pool ${pool}: ${problem}`);
}

/**
 * Reports that a pool cannot be rendered: it keeps its current config. A member that is not current yet is only
 * awaited.
 */
function refuse(
  pool: string,
  refusals: readonly RenderRefusal[],
  memory: RenderMemory,
  context: Pick<Context, "report">,
): Outcome {
  const outdated = refusals.find(({ code }) => code === "OutdatedMember");
  if (outdated !== undefined) return waiting("OutdatedMember", outdated.reason, waitSeconds);
  return refuseFor(pool, sentence(refusals), memory, context);
}

/** What the API server has under the name of a rendered config. `taken`: what somebody else has put there. */
type Stored =
  | { readonly verdict: "stored" | "taken" }
  /** It does not keep all of what is rendered. */
  | { readonly verdict: "notKept"; readonly fields: readonly string[] };

/**
 * Reports that the rendered config of a pool is not what was rendered: the pool is not pointed at it. The deletion of that
 * MachineConfig, or a change of it, has it judged again.
 */
function refuseStored(
  pool: string,
  rendered: string,
  stored: Stored,
  memory: RenderMemory,
  context: Pick<Context, "report">,
): Outcome {
  const [reason, problem] =
    stored.verdict === "notKept"
      ? ([
          "RenderedConfigNotKept",
          `the API server does not keep ${listText(stored.fields, 7)} of the MachineConfig ${rendered} as rendered: the definition of MachineConfig in this cluster is of another release and lacks the field, or an admission webhook changes it; bring the CustomResourceDefinition ${MachineConfig.plural}.${group} to this release, or except rendered MachineConfigs from the webhook, and delete ${rendered}, which is made again`,
        ] as const)
      : ([
          "RenderedNameTaken",
          `the MachineConfig ${rendered} has other contents than those that the pool's MachineConfigs give: another writer made or changed it; delete it, and it is made again (if machines use it, bring them to another configuration first)`,
        ] as const);
  reportRefusal(pool, reason, problem, memory, context);
  return stalled(reason, problem);
}

/** Enters a refusal in the pool's book, once for each problem. */
function reportRefusal(
  pool: string,
  reason: "RenderRefused" | "RenderedNameTaken" | "RenderedConfigNotKept",
  problem: string,
  { refused }: RenderMemory,
  { report }: Pick<Context, "report">,
): void {
  if (refused.get(pool) !== problem)
    report({
      book: `pool/${pool}`,
      chapter: "Render",
      path: "Refused",
      mark: "begin",
      level: "boundary",
      reason,
      message: problem,
    });
  refused.set(pool, problem);
}

function reportRecovered(pool: string, { refused }: RenderMemory, { report }: Pick<Context, "report">): void {
  if (!refused.delete(pool)) return;
  report({
    book: `pool/${pool}`,
    chapter: "Render",
    path: "Refused",
    mark: "end",
    level: "boundary",
    reason: "Recovered",
    message: "the pool can be rendered again",
  });
}

/**
 * Makes the rendered config, or adopts one that the installation brought. One of that name with other contents is neither
 * changed nor adopted: anybody who may create MachineConfigs can give one that name before, or change it after. Contents are
 * compared and not names, whose hash takes U+0085 for a blank or a line break.
 */
async function store(
  pool: MachineConfigPool,
  config: Rendered["config"],
  { version, generatorVersion }: RenderOptions,
  context: Context,
): Promise<Stored> {
  const { caches, kube, log, report, signal } = context;
  const { name, ownerReferences } = config.metadata;
  const known = caches.of(MachineConfig).get(name);
  if (known !== undefined && fieldsNotHeld(known, config).length > 0) {
    const fields = await lostBy(config, context);
    return fields.length === 0 ? { verdict: "taken" } : { verdict: "notKept", fields };
  }
  if (known !== undefined && poolOfRendered(known) === undefined && ownerReferences !== undefined) {
    // At installation time, the uid of the owning pool was not known.
    await kube.apply(MachineConfig, { metadata: { name, ownerReferences } }, { owner: fieldManagers.render, signal });
    log.info({ pool: pool.metadata.name, rendered: name }, "rendered config taken over");
  }
  if (known !== undefined) return { verdict: "stored" };
  // Not applied: where the cache is behind, that would add to what somebody else has put there.
  const made = await kube.create(MachineConfig, config, { owner: fieldManagers.render, signal });
  const fields = fieldsNotHeld(made, config);
  if (fields.length > 0) return { verdict: "notKept", fields };
  report({
    about: pool,
    notice: "RenderedConfigGenerated",
    message: `${name} successfully generated (release version: ${version}, controller version: ${generatorVersion})`,
  });
  return { verdict: "stored" };
}

/**
 * The fields that the API server would not keep if a rendered config were written again: its definition lacks them, or an
 * admission webhook changes them. Nothing is written.
 */
async function lostBy(config: Rendered["config"], { kube, signal }: Context): Promise<readonly string[]> {
  const { metadata, spec } = config;
  try {
    const tried = await kube.patch(
      MachineConfig,
      { name: metadata.name },
      { type: "json", operations: [{ op: "add", path: "/spec", value: spec }] },
      { owner: fieldManagers.render, dryRun: true, signal },
    );
    return fieldsNotHeld(tried, config);
  } catch (error) {
    // Gone, or a webhook that judges no tries: what is there is what counts.
    if (error instanceof KubeError && !isPassing(error)) return [];
    throw error;
  }
}

/** Reports the changes of a new target; for the first target of a pool, how many configs it was merged from. */
function reportTarget(
  pool: MachineConfigPool,
  {
    current,
    result,
    members,
  }: { readonly current: MachineConfig | undefined; readonly result: Rendered; readonly members: number },
  { pointed }: RenderMemory,
  { report }: Context,
): void {
  const { name } = pool.metadata;
  const rendered = result.config.metadata.name;
  const target = pool.spec.configuration?.name ?? "";
  const isFirst = target === "";
  if (!isFirst && (target === rendered || current === undefined)) return;
  const message =
    current === undefined || isFirst
      ? `rendered from ${members} MachineConfigs`
      : `${rendered} in place of ${target}: ${describeRendered(current, result)}`;
  const isKnown = pointed.get(name) === rendered;
  pointed.set(name, rendered);
  if (isKnown) {
    // The book has it; but a pool that still, or again, points elsewhere is an Event.
    if (!isFirst) report({ about: pool, notice: "RenderedConfigChanged", message });
    return;
  }
  const here = { book: `pool/${name}`, chapter: "Render", run: rendered, mark: "end", level: "boundary" } as const;
  if (isFirst)
    report({
      ...here,
      path: "Rendered",
      reason: "RenderedConfigGenerated",
      message,
      data: { to: rendered, members },
    });
  else
    report({
      about: pool,
      ...here,
      path: "Changed",
      reason: "RenderedConfigChanged",
      message,
      data: { from: target, to: rendered, members },
    });
}

/** Points the pool at its rendered config. */
async function point(
  pool: MachineConfigPool,
  { config, source }: Rendered,
  members: number,
  { kube, log, signal }: Context,
): Promise<void> {
  const { name } = pool.metadata;
  const rendered = config.metadata.name;
  const configuration = { name: rendered, source: source.map((reference) => ({ ...reference })) };
  if (equalValues(pool.spec.configuration, configuration)) return;
  // The installation, and the reference before us, wrote it under other field managers; no other writer may own it.
  await kube.apply(
    MachineConfigPool,
    { metadata: { name }, spec: { configuration } },
    { owner: fieldManagers.render, force: true, signal },
  );
  if (pool.spec.configuration?.name !== rendered) log.info({ pool: name, rendered, members }, "pool rendered");
}

const mostRefusals = 20;
/** The first reasons, and how many more there are. */
const sentence = (refusals: readonly RenderRefusal[]) =>
  shortList(refusals, mostRefusals, ({ reason, remedy }) =>
    remedy === undefined ? reason : `${reason} (${remedy})`,
  ).join("; ");

/**
 * Pools that select a MachineConfig before or after a change; for a rendered config that is deleted, or whose contents
 * change, the pool of its name and those that need it.
 */
function poolsSelecting({ key, before, after }: ObjectChange<MachineConfig>, caches: Caches): readonly string[] {
  const pools = caches.of(MachineConfigPool).list();
  const changed = after ?? before;
  const isSameSpec = before !== undefined && after !== undefined && equalValues(before.spec, after.spec);
  const named = poolInRenderedName(key);
  // A new one is judged when its pool comes to its name.
  const needing = (before === undefined || isSameSpec ? [] : pools)
    .filter(({ metadata, spec }) => metadata.name === named || spec.configuration?.name === key)
    .map(({ metadata }) => metadata.name);
  if (changed !== undefined && isRendered(changed, pools)) return needing;
  // Only merged content matters; annotations do not, except the one that names the generator.
  if (
    isSameSpec &&
    equalValues(before.metadata.labels, after.metadata.labels) &&
    equalValues(before.metadata.annotations, after.metadata.annotations)
  )
    return [];
  const selecting = pools
    .filter(({ spec }) =>
      [before, after].some(
        (config) => config !== undefined && poolSelects(spec.machineConfigSelector, config.metadata.labels),
      ),
    )
    .map(({ metadata }) => metadata.name);
  return named === undefined ? selecting : [...new Set([...selecting, ...needing])];
}

function concernsRendering({ before, after }: ObjectChange<ControllerConfig>): boolean {
  if (before === undefined || after === undefined) return true;
  return (
    before.metadata.generation !== after.metadata.generation ||
    isCompleted(before) !== isCompleted(after) ||
    !equalValues(before.metadata.annotations, after.metadata.annotations)
  );
}
