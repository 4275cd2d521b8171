import { leastOf } from "../api/schema/extremes.ts";
import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { annotations, fieldManagers } from "../api/names.ts";
import { type KubeObject, timestampOf } from "../api/schema/object.ts";
import { poolPolicy } from "../core/pool/pool-policy.ts";
import { givenConfigs } from "../core/config/given-configs.ts";
import { poolOfRendered } from "../core/config/is-rendered.ts";
import { servedCandidates } from "../core/join/choose-served.ts";
import {
  type ConfigUse,
  type ConfigRetention,
  describeRetention,
  recreatedConfig,
  retainedConfigs,
  usesOfBuild,
  usesOfMachineConfigNode,
  usesOfNode,
  usesOfPool,
} from "../core/pool/retained-configs.ts";
import { type Caches, type Context, type Controller, type Watch, watching } from "../kube/controller.ts";
import { isAlreadyExists, isConflict, isForbidden } from "../kube/kube-error.ts";
import { type Outcome, done } from "../kube/outcome.ts";
import { trimBuild, trimMachineConfig, trimNode } from "../core/pool/trim.ts";
import { configRestored, configsRemoved, poolAnnotationIgnored } from "./reports.ts";

/** The controller notices within this time that a config has lost its last user. */
const reconcileAfterSeconds = 300;
/** How many are removed in one batch; API server and watchers get a pause in between. */
const mostAtOnce = 20;
const breathSeconds = 2;

const used = "used-config";
const ofPool = "pool";
const given = "given-config";
const configsIn = (uses: readonly ConfigUse[]) => [...new Set(uses.map(({ config }) => config))];

/** Everything that uses a rendered config, according to the caches of this process; the likeliest users come first. */
function configUsers(caches: Caches, config: string): readonly string[] {
  const users = <T extends KubeObject>(objects: readonly T[], usesOf: (object: T) => readonly ConfigUse[]) =>
    objects
      .flatMap((object) =>
        usesOf(object)
          .filter((use) => use.config === config)
          .map(({ user }) => user),
      )
      .sort();
  const all = [
    ...users(caches.of(MachineConfigPool).byIndex(used, config), usesOfPool),
    ...users(caches.of(kubernetes.Node).byIndex(used, config), usesOfNode),
    ...users(caches.of(MachineOSBuild).byIndex(used, config), usesOfBuild),
    ...users(caches.of(MachineConfigNode).byIndex(used, config), usesOfMachineConfigNode),
  ];
  return [...new Set(all)];
}

/** Whether any object names a rendered config. */
export const isUsed = (caches: Caches, config: string): boolean => configUsers(caches, config).length > 0;

/** Whether anything but its target names a config, or a machine was given it. */
function isNeeded(caches: Caches, config: string): boolean {
  const isNamed =
    caches.of(kubernetes.Node).byIndex(used, config).length > 0 ||
    caches.of(MachineOSBuild).byIndex(used, config).length > 0 ||
    caches.of(MachineConfigNode).byIndex(used, config).length > 0;
  const pools = caches.of(MachineConfigPool).byIndex(used, config);
  const isServed = (pool: MachineConfigPool) =>
    servedCandidates(pool).includes(config) || pool.spec.configuration?.name !== config;
  return isNamed || caches.of(MachineConfigNode).byIndex(given, config).length > 0 || pools.some(isServed);
}

interface CollectMemory {
  /** Whether the caches are complete, so that a config which appears is a new one. */
  isWatching: boolean;
  /** Configs that were made while this process watched: it knows all that became of them. */
  readonly made: Set<string>;
  /** Those of them that a machine, also one that is about to join, may have been given. */
  readonly needed: Set<string>;
  /** Since when nothing uses a config, in milliseconds since the epoch: losing it costs only time. */
  readonly unusedSince: Map<string, number>;
  /** Deleted rendered configs, as they were, until a pass has checked whether they are needed. */
  readonly gone: Map<string, MachineConfig>;
  /** Pool → the last report about its annotations. */
  readonly reported: Map<string, string>;
}

/**
 * Removes rendered configs that nothing uses, after a quiet time, except the last few of each pool; one that no machine was
 * given, or may have been served as it joined, after a minute. Recreates a config
 * that was deleted while something uses it; the render controller recreates the target of a pool from its members. Also
 * reports annotations of a pool that count as absent because they are invalid.
 */
export function collectController(): Controller {
  const memory: CollectMemory = {
    isWatching: false,
    made: new Set(),
    needed: new Set(),
    unusedSince: new Map(),
    gone: new Map(),
    reported: new Map(),
  };
  return {
    name: "collect",
    watches: watchesOf(memory),
    owns: ["MachineConfig/rendered.metadata.annotations/rolled-out-at", "MachineConfig/rendered.deletion"],

    async reconcile(name, context): Promise<Outcome> {
      const { caches, clock } = context;
      memory.isWatching = true;
      const pool = caches.of(MachineConfigPool).get(name);
      const rendered = caches
        .of(MachineConfig)
        .byIndex(ofPool, name)
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      await makeAgain(name, pool, memory, context);
      if (pool !== undefined) await noteRolledOut(pool, context);
      reportProblems(name, pool, memory, context);

      const now = clock.now();
      noteUsed(rendered, now, memory, caches);
      const verdicts = retainedConfigs({
        rendered,
        policy: pool === undefined ? undefined : poolPolicy(pool).policy,
        usersOf: (config) => configUsers(caches, config),
        unusedSince: (config) => memory.unusedSince.get(config),
        isPassing: (config) => memory.made.has(config) && !memory.needed.has(config),
        now,
      });
      const going = verdicts.filter(({ keep }) => !keep);
      await remove(name, pool, going.slice(0, mostAtOnce), verdicts, memory, context);
      if (going.length > mostAtOnce) return done(breathSeconds);
      return rendered.length === 0 ? done() : done(Math.max(1, secondsToNext(verdicts, now)));
    },
  };
}

function watchesOf(memory: CollectMemory): readonly [Watch, ...Watch[]] {
  return [
    watching({
      resource: MachineConfigPool,
      indexes: { [used]: (pool) => configsIn(usesOfPool(pool)) },
      concerns: ({ key, before, after }) => {
        for (const config of after === undefined ? [] : servedCandidates(after)) memory.needed.add(config);
        return before !== undefined && after !== undefined && wantedOf(before) === wantedOf(after) ? [] : [key];
      },
    }),
    watching({
      resource: MachineConfig,
      keep: trimMachineConfig,
      indexes: { [ofPool]: (config) => [poolOfRendered(config)].flatMap((pool) => pool ?? []) },
      concerns: ({ key, before, after }) => {
        const pool = poolOfRendered(after ?? before ?? { metadata: { name: key } });
        if (pool === undefined || (before !== undefined && after !== undefined)) return [];
        if (after === undefined && before !== undefined) forget(key, before, memory);
        else {
          memory.gone.delete(key);
          if (memory.isWatching) memory.made.add(key);
        }
        return [pool];
      },
    }),
    watching({
      resource: kubernetes.Node,
      keep: trimNode,
      concerns: () => [],
      indexes: { [used]: (node: Node) => configsIn(usesOfNode(node)) },
    }),
    watching({
      resource: MachineConfigNode,
      concerns: () => [],
      indexes: { [used]: (object) => configsIn(usesOfMachineConfigNode(object)), [given]: givenConfigs },
    }),
    watching({
      resource: MachineOSBuild,
      keep: trimBuild,
      concerns: () => [],
      indexes: { [used]: (build) => configsIn(usesOfBuild(build)) },
    }),
  ];
}

function forget(name: string, config: MachineConfig, { made, needed, gone, unusedSince }: CollectMemory): void {
  gone.set(name, config);
  made.delete(name);
  needed.delete(name);
  unusedSince.delete(name);
}

/** Records since when nothing uses which config, and which ones machines may have been given. */
function noteUsed(
  rendered: readonly MachineConfig[],
  now: number,
  { needed, unusedSince }: CollectMemory,
  caches: Caches,
): void {
  for (const { metadata } of rendered) {
    if (!needed.has(metadata.name) && isNeeded(caches, metadata.name)) needed.add(metadata.name);
    if (isUsed(caches, metadata.name)) unusedSince.delete(metadata.name);
    else if (!unusedSince.has(metadata.name)) unusedSince.set(metadata.name, now);
  }
}

/** When the next quiet time of a config is over, or the next use may have ended. */
const secondsToNext = (verdicts: readonly ConfigRetention[], now: number): number =>
  Math.min(
    leastOf(
      verdicts.flatMap((verdict) =>
        verdict.keep && verdict.because === "quiet" && verdict.until !== undefined
          ? [(verdict.until - now) / 1000]
          : [],
      ),
    ),
    reconcileAfterSeconds,
  );

/**
 * Admission refuses invalid values; values that were stored while admission was off count as absent, which is reported.
 */
function reportProblems(
  name: string,
  pool: MachineConfigPool | undefined,
  { reported }: CollectMemory,
  { report }: Context,
): void {
  const problems = pool === undefined ? [] : poolPolicy(pool).problems;
  const text = problems
    .map(({ path, reason, remedy }) => `${path}: ${reason}${remedy === undefined ? "" : `; ${remedy}`}`)
    .join("; ");
  if (pool !== undefined && text !== "" && reported.get(name) !== text) report(poolAnnotationIgnored(pool, text));
  if (text === "") reported.delete(name);
  else reported.set(name, text);
}

async function remove(
  name: string,
  pool: MachineConfigPool | undefined,
  going: readonly ConfigRetention[],
  verdicts: readonly ConfigRetention[],
  { unusedSince }: CollectMemory,
  { kube, caches, report, log, signal }: Context,
): Promise<void> {
  const removed: string[] = [];
  for (const verdict of going) {
    const config = caches.of(MachineConfig).get(verdict.name);
    const { uid, resourceVersion } = config?.metadata ?? {};
    // A new user may have appeared since: the current caches decide.
    if (uid === undefined || resourceVersion === undefined || configUsers(caches, verdict.name).length > 0) continue;
    try {
      await kube.delete(MachineConfig, { name: verdict.name }, { uid, resourceVersion, signal });
    } catch (error) {
      // The object has changed, or an object that this process does not know yet uses it: the next pass decides.
      if (!isConflict(error) && !isForbidden(error)) throw error;
      log.info({ pool: name, config: verdict.name, error }, "rendered config not removed now");
      continue;
    }
    removed.push(verdict.name);
    unusedSince.delete(verdict.name);
    log.info({ pool: name, config: verdict.name, why: describeRetention(verdict) }, "rendered config removed");
  }
  if (removed.length === 0 || pool === undefined) return;
  const kept = (because: string) => verdicts.filter((verdict) => verdict.keep && verdict.because === because).length;
  report(configsRemoved(pool, removed, { used: kept("used"), recent: kept("recent") }));
}

async function makeAgain(
  name: string,
  pool: MachineConfigPool | undefined,
  { gone, needed }: CollectMemory,
  { kube, caches, report, log, signal }: Context,
): Promise<void> {
  for (const [config, object] of gone) {
    if (poolOfRendered(object) !== name) continue;
    const users = configUsers(caches, config);
    const isTarget = pool?.spec.configuration?.name === config;
    if (users.length > 0 && !isTarget && caches.of(MachineConfig).get(config) === undefined) {
      needed.add(config);
      try {
        await kube.create(MachineConfig, recreatedConfig(object, pool?.metadata.uid), {
          owner: fieldManagers.render,
          signal,
        });
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
      }
      if (pool === undefined) log.warn({ pool: name, config, users }, "rendered config made again");
      else report(configRestored(pool, config, users));
    }
    gone.delete(config);
  }
}

/** The part of a pool that decides which configurations are kept and which reports are made. */
const wantedOf = (pool: MachineConfigPool) => {
  const { policy, problems } = poolPolicy(pool);
  return JSON.stringify([policy.retainedConfigs, policy.retentionQuietSeconds, problems, configsIn(usesOfPool(pool))]);
};

/** A config that all machines have is a possible target to go back to: the config itself records it. */
async function noteRolledOut(pool: MachineConfigPool, { kube, caches, clock, signal }: Context): Promise<void> {
  const config = caches.of(MachineConfig).get(pool.status?.configuration?.name ?? "");
  if (
    config === undefined ||
    poolOfRendered(config) !== pool.metadata.name ||
    config.metadata.annotations?.[annotations.rolledOutAt] !== undefined
  )
    return;
  const stamp = timestampOf(clock.now());
  await kube.patch(
    MachineConfig,
    { name: config.metadata.name },
    { type: "merge", body: { metadata: { annotations: { [annotations.rolledOutAt]: stamp } } } },
    { owner: fieldManagers.collect, signal },
  );
}
