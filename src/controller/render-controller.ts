import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { fieldManagers, objects, poolConditions } from "../api/names.ts";
import { selectorIsEmpty, selectorMatches } from "../api/schema/object.ts";
import { isCompleted, renderFence } from "../core/render/controller-config-of.ts";
import { isRendered, poolOfRendered } from "../core/config/is-rendered.ts";
import { describeRendered } from "../core/preview/describe-rendered.ts";
import { renderForPool, storageOverridesOf } from "../core/render/render-for-pool.ts";
import type { Refusal } from "../core/render/render-pool.ts";
import { slimMachineConfig } from "../core/pool/slim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Caches, type Controller, watching } from "../kube/controller.ts";
import { type Outcome, settled, stalled, waiting } from "../kube/outcome.ts";
import type { Change } from "../kube/watch-cache.ts";

export interface RenderOptions {
  readonly version: string;
  readonly generatorVersion: string;
  /** `absent`: nobody in this process makes base configurations, so there are none to wait for. */
  readonly baseConfigs: "awaited" | "absent";
}

const waitSeconds = 30;

/** Merges a pool's MachineConfigs into one rendered config and points the pool at it. */
export function renderController(options: RenderOptions): Controller {
  /** Pool → what its book knows: the configuration that it points to, and why it cannot be rendered. */
  const pointed = new Map<string, string>();
  const refused = new Map<string, string>();
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
      watching({ resource: MachineConfig, keep: slimMachineConfig, concerns: poolsSelecting }),
      watching({
        resource: ControllerConfig,
        concerns: (change, caches) =>
          concernsRendering(change)
            ? caches
                .of(MachineConfigPool)
                .list()
                .map(({ metadata }) => metadata.name)
            : [],
      }),
      watching({
        resource: MachineConfiguration,
        concerns: ({ before, after }, caches) =>
          equalValues(storageOverridesOf(before), storageOverridesOf(after))
            ? []
            : caches
                .of(MachineConfigPool)
                .list()
                .map(({ metadata }) => metadata.name),
      }),
    ],
    owns: ["MachineConfig/rendered", "MachineConfigPool.spec.configuration"],
    workers: 2,
    degradedCondition: poolConditions.renderDegraded,

    async reconcile(name, { caches, kube, log, events, scribe, signal }): Promise<Outcome> {
      const pool = caches.of(MachineConfigPool).get(name);
      if (pool === undefined || pool.metadata.deletionTimestamp !== undefined) return settled();
      const { machineConfigSelector } = pool.spec;
      if (machineConfigSelector !== undefined && selectorIsEmpty(machineConfigSelector)) {
        events.event(pool, {
          type: "Warning",
          reason: "SelectingAll",
          message: "This machineconfigpool is selecting all machineconfigs. A non-empty selector is required.",
        });
        return stalled("SelectingAll", "the machineConfigSelector is empty and would select every MachineConfig");
      }
      const controllerConfig = caches.of(ControllerConfig).get(objects.controllerConfig);
      const fence = renderFence(controllerConfig, options.version);
      const isOpen =
        fence.verdict === "open" ||
        (options.baseConfigs === "absent" && fence.reason === "ControllerConfigNotCompleted");
      if (!isOpen || controllerConfig === undefined)
        return fence.verdict === "closed" ? waiting(fence.reason, fence.message, waitSeconds) : settled();

      const configs = caches.of(MachineConfig);
      const pools = caches.of(MachineConfigPool).list();
      const members = configs
        .list()
        .filter(
          (config) =>
            config.metadata.deletionTimestamp === undefined &&
            selectorMatches(machineConfigSelector, config.metadata.labels) &&
            !isRendered(config, pools),
        );
      const current = configs.get(pool.spec.configuration?.name ?? "");
      const overrides = storageOverridesOf(caches.of(MachineConfiguration).get(objects.machineConfiguration));
      const result = renderForPool(
        { pool, members, controllerConfig, generatorVersion: options.generatorVersion },
        current,
        overrides,
      );
      if (result.verdict === "refused") {
        const outdated = result.refusals.find(({ code }) => code === "OutdatedMember");
        if (outdated !== undefined) return waiting("OutdatedMember", outdated.reason, waitSeconds);
        const problem = sentence(result.refusals);
        if (refused.get(name) !== problem)
          scribe.line({
            book: `pool/${name}`,
            chapter: "Render",
            path: "Refused",
            mark: "begin",
            level: "boundary",
            reason: "RenderRefused",
            message: problem,
          });
        refused.set(name, problem);
        return stalled("RenderRefused", `Failed to render configuration for pool ${name}: ${problem}`);
      }

      if (refused.delete(name))
        scribe.line({
          book: `pool/${name}`,
          chapter: "Render",
          path: "Refused",
          mark: "end",
          level: "boundary",
          reason: "Recovered",
          message: "the pool can be rendered again",
        });
      const { config, source } = result;
      const rendered = config.metadata.name;
      const known = configs.get(rendered);
      if (known !== undefined && poolOfRendered(known) === undefined && config.metadata.ownerReferences !== undefined) {
        // It came with the installation, when nobody knew the pool that owns it.
        await kube.apply(
          MachineConfig,
          { metadata: { name: rendered, ownerReferences: config.metadata.ownerReferences } },
          { owner: fieldManagers.render, signal },
        );
        log.info({ pool: name, rendered }, "rendered config taken over");
      }
      if (known === undefined) {
        await kube.apply(MachineConfig, config, { owner: fieldManagers.render, signal });
        events.event(pool, {
          type: "Normal",
          reason: "RenderedConfigGenerated",
          message: `${rendered} successfully generated (release version: ${options.version}, controller version: ${options.generatorVersion})`,
        });
      }
      const target = pool.spec.configuration?.name;
      if (target !== undefined && target !== "" && target !== rendered && current !== undefined) {
        const changes = describeRendered(current, result);
        events.event(pool, {
          type: "Normal",
          reason: "RenderedConfigChanged",
          message: `${rendered} in place of ${target}: ${changes}`,
        });
        if (pointed.get(name) !== rendered)
          scribe.line({
            book: `pool/${name}`,
            chapter: "Render",
            run: rendered,
            path: "Changed",
            mark: "end",
            level: "boundary",
            reason: "RenderedConfigChanged",
            message: changes,
            data: { from: target, to: rendered, members: members.length },
          });
        pointed.set(name, rendered);
      } else if (target === undefined || target === "") {
        if (pointed.get(name) !== rendered)
          scribe.line({
            book: `pool/${name}`,
            chapter: "Render",
            run: rendered,
            path: "Rendered",
            mark: "end",
            level: "boundary",
            reason: "RenderedConfigGenerated",
            message: `rendered from ${members.length} MachineConfigs`,
            data: { to: rendered, members: members.length },
          });
        pointed.set(name, rendered);
      }
      const configuration = { name: rendered, source: source.map((reference) => ({ ...reference })) };
      if (!equalValues(pool.spec.configuration, configuration)) {
        // The installation, and the reference before us, wrote it under other names; nobody else has a say in it.
        await kube.apply(
          MachineConfigPool,
          { metadata: { name }, spec: { configuration } },
          { owner: fieldManagers.render, force: true, signal },
        );
        if (pool.spec.configuration?.name !== rendered)
          log.info({ pool: name, rendered, members: members.length }, "pool rendered");
      }
      return settled();
    },
  };
}

const sentence = (refusals: readonly Refusal[]) =>
  refusals.map(({ reason, remedy }) => (remedy === undefined ? reason : `${reason} (${remedy})`)).join("; ");

/**
 * Pools that select a MachineConfig before or after a change; for a rendered config that vanished, the pool that needs
 * it.
 */
function poolsSelecting({ key, before, after }: Change<MachineConfig>, caches: Caches): readonly string[] {
  const pools = caches.of(MachineConfigPool).list();
  const changed = after ?? before;
  if (changed !== undefined && isRendered(changed, pools))
    return after === undefined
      ? pools.filter(({ spec }) => spec.configuration?.name === key).map(({ metadata }) => metadata.name)
      : [];
  // Only what is merged matters; a new annotation is none of it, but for the one that says who generated it.
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
