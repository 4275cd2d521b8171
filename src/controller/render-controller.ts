import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { fieldManagers, objects, poolConditions } from "../api/names.ts";
import { selectorIsEmpty, selectorMatches } from "../api/schema/object.ts";
import { isCompleted, versionGate } from "../core/render/controller-config-of.ts";
import { isRendered, poolOfRendered } from "../core/config/is-rendered.ts";
import { describeRendered } from "../core/preview/describe-rendered.ts";
import { renderForPool, storageOverridesOf } from "../core/render/render-for-pool.ts";
import type { Refusal } from "../core/render/render-pool.ts";
import { trimMachineConfig } from "../core/pool/trim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Caches, type Context, type Controller, watching } from "../kube/controller.ts";
import { type Outcome, done, stalled, waiting } from "../kube/outcome.ts";
import type { Change } from "../kube/watch-cache.ts";

export interface RenderOptions {
  readonly version: string;
  readonly generatorVersion: string;
  /** `absent`: this process makes no base configurations, so there are none to wait for. */
  readonly baseConfigs: "awaited" | "absent";
}

const waitSeconds = 30;

/** What the books know of pools, so that nothing is reported twice. */
interface RenderMemory {
  /** Pool → the configuration that it points to. */
  readonly pointed: Map<string, string>;
  /** Pool → why it cannot be rendered. */
  readonly refused: Map<string, string>;
}

/** Merges a pool's MachineConfigs into one rendered config and points the pool at it. */
export function renderController(options: RenderOptions): Controller {
  const memory: RenderMemory = { pointed: new Map(), refused: new Map() };
  return {
    name: "render",
    watches: [
      watching({
        resource: MachineConfigPool,
        concerns: ({ key, before, after }) =>
          before !== undefined && after !== undefined && before.metadata.generation === after.metadata.generation
            ? []
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
    ],
    owns: ["MachineConfig/rendered", "MachineConfigPool.spec.configuration"],
    workers: 2,
    degradedCondition: poolConditions.renderDegraded,

    async reconcile(name, context): Promise<Outcome> {
      const { caches } = context;
      const pool = caches.of(MachineConfigPool).get(name);
      if (pool === undefined || pool.metadata.deletionTimestamp !== undefined) return done();
      const { machineConfigSelector } = pool.spec;
      if (machineConfigSelector !== undefined && selectorIsEmpty(machineConfigSelector))
        return refuseAll(pool, context);
      const controllerConfig = caches.of(ControllerConfig).get(objects.controllerConfig);
      const gate = versionGate(controllerConfig, options.version);
      const isOpen =
        gate.verdict === "open" || (options.baseConfigs === "absent" && gate.reason === "ControllerConfigNotCompleted");
      if (!isOpen || controllerConfig === undefined)
        return gate.verdict === "closed" ? waiting(gate.reason, gate.message, waitSeconds) : done();

      const members = membersOf(pool, caches);
      const current = caches.of(MachineConfig).get(pool.spec.configuration?.name ?? "");
      const overrides = storageOverridesOf(caches.of(MachineConfiguration).get(objects.machineConfiguration));
      const inputs = { pool, members, controllerConfig, generatorVersion: options.generatorVersion };
      const result = renderForPool(inputs, current, overrides);
      if (result.verdict === "refused") return refuse(name, result.refusals, memory, context);
      reportRecovered(name, memory, context);
      await store(pool, result.config, options, context);
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

/** The MachineConfigs that a pool's rendered config is merged from. */
function membersOf({ spec }: MachineConfigPool, caches: Caches): readonly MachineConfig[] {
  const pools = caches.of(MachineConfigPool).list();
  return caches
    .of(MachineConfig)
    .list()
    .filter(
      (config) =>
        config.metadata.deletionTimestamp === undefined &&
        selectorMatches(spec.machineConfigSelector, config.metadata.labels) &&
        !isRendered(config, pools),
    );
}

function refuseAll(pool: MachineConfigPool, { report }: Pick<Context, "report">): Outcome {
  report({
    about: pool,
    notice: "SelectingAll",
    message: "This machineconfigpool is selecting all machineconfigs. A non-empty selector is required.",
  });
  return stalled("SelectingAll", "the machineConfigSelector is empty and would select every MachineConfig");
}

/**
 * Reports that a pool cannot be rendered: it keeps its current config. A member that is not current yet is only
 * awaited.
 */
function refuse(
  pool: string,
  refusals: readonly Refusal[],
  { refused }: RenderMemory,
  { report }: Pick<Context, "report">,
): Outcome {
  const outdated = refusals.find(({ code }) => code === "OutdatedMember");
  if (outdated !== undefined) return waiting("OutdatedMember", outdated.reason, waitSeconds);
  const problem = sentence(refusals);
  if (refused.get(pool) !== problem)
    report({
      book: `pool/${pool}`,
      chapter: "Render",
      path: "Refused",
      mark: "begin",
      level: "boundary",
      reason: "RenderRefused",
      message: problem,
    });
  refused.set(pool, problem);
  return stalled("RenderRefused", `Failed to render configuration for pool ${pool}: ${problem}`);
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

/** Makes the rendered config, or adopts one that the installation brought. */
async function store(
  pool: MachineConfigPool,
  config: Rendered["config"],
  { version, generatorVersion }: RenderOptions,
  { caches, kube, log, report, signal }: Context,
): Promise<void> {
  const { name, ownerReferences } = config.metadata;
  const known = caches.of(MachineConfig).get(name);
  if (known !== undefined && poolOfRendered(known) === undefined && ownerReferences !== undefined) {
    // At installation time, the uid of the owning pool was not known.
    await kube.apply(MachineConfig, { metadata: { name, ownerReferences } }, { owner: fieldManagers.render, signal });
    log.info({ pool: pool.metadata.name, rendered: name }, "rendered config taken over");
  }
  if (known !== undefined) return;
  await kube.apply(MachineConfig, config, { owner: fieldManagers.render, signal });
  report({
    about: pool,
    notice: "RenderedConfigGenerated",
    message: `${name} successfully generated (release version: ${version}, controller version: ${generatorVersion})`,
  });
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

const sentence = (refusals: readonly Refusal[]) =>
  refusals.map(({ reason, remedy }) => (remedy === undefined ? reason : `${reason} (${remedy})`)).join("; ");

/**
 * Pools that select a MachineConfig before or after a change; for a deleted rendered config, the pool that needs it.
 */
function poolsSelecting({ key, before, after }: Change<MachineConfig>, caches: Caches): readonly string[] {
  const pools = caches.of(MachineConfigPool).list();
  const changed = after ?? before;
  if (changed !== undefined && isRendered(changed, pools))
    return after === undefined
      ? pools.filter(({ spec }) => spec.configuration?.name === key).map(({ metadata }) => metadata.name)
      : [];
  // Only merged content matters; annotations do not, except the one that names the generator.
  if (
    before !== undefined &&
    after !== undefined &&
    equalValues(before.spec, after.spec) &&
    equalValues(before.metadata.labels, after.metadata.labels) &&
    equalValues(before.metadata.annotations, after.metadata.annotations)
  )
    return [];
  return pools
    .filter(({ spec }) =>
      [before, after].some(
        (config) => config !== undefined && selectorMatches(spec.machineConfigSelector, config.metadata.labels),
      ),
    )
    .map(({ metadata }) => metadata.name);
}

function concernsRendering({ before, after }: Change<ControllerConfig>): boolean {
  if (before === undefined || after === undefined) return true;
  return (
    before.metadata.generation !== after.metadata.generation ||
    isCompleted(before) !== isCompleted(after) ||
    !equalValues(before.metadata.annotations, after.metadata.annotations)
  );
}
