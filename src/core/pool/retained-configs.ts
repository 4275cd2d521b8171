import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations, notYetSet } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { poolOfRendered } from "../config/is-rendered.ts";
import { defaultPoolPolicy, poolPolicy } from "./pool-policy.ts";
import { quarantinedTargets, refusedTargetsOf } from "./quarantine.ts";
import { listText } from "../text/list-text.ts";

/** One reason to retain a rendered config. */
export interface ConfigUse {
  readonly config: string;
  /** For people: `node worker-0 (currentConfig)`. */
  readonly user: string;
}

const usesOf = (
  user: string,
  named: readonly (readonly [how: string, config: string | undefined])[],
): readonly ConfigUse[] =>
  named.flatMap(([how, config]) =>
    config === undefined || config === "" || config === notYetSet ? [] : [{ config, user: `${user} (${how})` }],
  );

/**
 * The configs that a pool names: its target, the last config common to all its machines, and its quarantined targets.
 */
export const usesOfPool = (pool: MachineConfigPool): readonly ConfigUse[] =>
  usesOf(`pool ${pool.metadata.name}`, [
    ["target", pool.spec.configuration?.name],
    ["status", pool.status?.configuration?.name],
    ...quarantinedTargets(pool).map((config) => ["quarantined", config] as const),
  ]);

export const usesOfNode = ({ metadata }: Node): readonly ConfigUse[] =>
  usesOf(
    `node ${metadata.name}`,
    (["currentConfig", "desiredConfig", "firstPivotConfig"] as const).map((key) => [
      key,
      metadata.annotations?.[annotations[key]],
    ]),
  );

/** A MachineConfigNode names the desired and current configs of its machine, and those that it rolled back from. */
export const usesOfMachineConfigNode = ({ metadata, spec, status }: MachineConfigNode): readonly ConfigUse[] =>
  usesOf(`MachineConfigNode ${metadata.name}`, [
    ["spec", spec.configVersion.desired],
    ["status", status?.configVersion?.desired],
    ["status", status?.configVersion?.current],
    ...refusedTargetsOf({ metadata }).map(({ config }) => ["refused", config] as const),
  ]);

/** A build names the rendered config that its image is built from. */
export const usesOfBuild = (build: MachineOSBuild): readonly ConfigUse[] =>
  usesOf(`${build.kind} ${build.metadata.name}`, [["spec", build.spec?.machineConfig?.name]]);

/** Whether one rendered config stays, and why. */
export type ConfigRetention =
  | { readonly name: string; readonly keep: true; readonly because: "used"; readonly users: readonly string[] }
  /** One of the pool's last configs, retained for a roll-back. `place`: 1 is the newest. */
  | {
      readonly name: string;
      readonly keep: true;
      readonly because: "recent";
      readonly place: number;
      readonly of: number;
    }
  /**
   * Unused, but for less than `quietSeconds`. `until`: in milliseconds since the epoch; `undefined` if the start is
   * unknown.
   */
  | {
      readonly name: string;
      readonly keep: true;
      readonly because: "quiet";
      readonly quietSeconds: number;
      readonly until: number | undefined;
    }
  | { readonly name: string; readonly keep: false; readonly unusedSince: number };

/** How long a config is left alone that no machine was given: far longer than what was decided is on its way. */
export const passingQuietSeconds = 60;

export interface RetentionFacts {
  /** Rendered configs of one pool. */
  readonly rendered: readonly MachineConfig[];
  /** How many are retained for a roll-back, and how long an unused one is retained; a deleted pool retains none. */
  readonly policy: { readonly retainedConfigs: number; readonly retentionQuietSeconds: number } | undefined;
  /** The users of a config, for people. */
  readonly usersOf: (config: string) => readonly string[];
  /** When a config became unused, in milliseconds since the epoch; `undefined`: unknown, so it is retained. */
  readonly unusedSince: (config: string) => number | undefined;
  /** Whether a config is known to have been a target for a moment, which no machine was given; absent: of none. */
  readonly isPassing?: (config: string) => boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Which rendered configs of a pool are retained, and why. Those that may be deleted are in deletion order: oldest
 * first.
 *
 * A config that any object names is retained. Of the others, the pool's last few are retained for a roll-back; the rest
 * stay for a quiet period, because a reference to a config may become visible later than the config. One that no machine
 * was given is no config to go back to, and stays a minute.
 */
export function retainedConfigs({
  rendered,
  policy,
  usersOf,
  unusedSince,
  isPassing = () => false,
  now,
}: RetentionFacts): readonly ConfigRetention[] {
  const { retainedConfigs: most, retentionQuietSeconds } = policy ?? {
    ...defaultPoolPolicy,
    retainedConfigs: 0,
  };
  const text = (config: MachineConfig) =>
    [
      config.metadata.annotations?.[annotations.rolledOutAt] ?? "",
      config.metadata.creationTimestamp ?? "",
      config.metadata.name,
    ] as const;
  const older = (a: MachineConfig, b: MachineConfig) => {
    const [x, y] = [text(a), text(b)];
    const differs = x.findIndex((part, index) => part !== y[index]);
    return differs < 0 ? 0 : (x[differs] ?? "") < (y[differs] ?? "") ? -1 : 1;
  };
  const ordered = rendered.toSorted(older);
  const used = new Map(ordered.map(({ metadata }) => [metadata.name, usersOf(metadata.name)]));
  // Configs that were rolled out are retained before those that never were: they are the ones to roll back to.
  const unused = ordered.filter(({ metadata: { name } }) => used.get(name)?.length === 0 && !isPassing(name));
  return ordered.map(({ metadata: { name } }): ConfigRetention => {
    const users = used.get(name) ?? [];
    if (users.length > 0) return { name, keep: true, because: "used", users };
    const index = unused.findIndex(({ metadata }) => metadata.name === name);
    const place = unused.length - index;
    if (index >= 0 && place <= most) return { name, keep: true, because: "recent", place, of: most };
    const quiet = index >= 0 ? retentionQuietSeconds : Math.min(retentionQuietSeconds, passingQuietSeconds);
    const since = unusedSince(name);
    if (since === undefined) return { name, keep: true, because: "quiet", quietSeconds: quiet, until: undefined };
    const until = since + quiet * 1000;
    return now < until
      ? { name, keep: true, because: "quiet", quietSeconds: quiet, until }
      : { name, keep: false, unusedSince: since };
  });
}

/**
 * Why one rendered config is retained, computed from whole lists for the command line. `undefined`: not a rendered
 * config.
 */
export function retentionOf(
  name: string,
  objects: {
    readonly pools: readonly MachineConfigPool[];
    readonly nodes: readonly Node[];
    readonly machineConfigNodes: readonly MachineConfigNode[];
    readonly machineConfigs: readonly MachineConfig[];
  },
  now: number,
): ConfigRetention | undefined {
  const { pools, nodes, machineConfigNodes, machineConfigs } = objects;
  const config = machineConfigs.find(({ metadata }) => metadata.name === name);
  const poolName = config === undefined ? undefined : poolOfRendered(config);
  if (poolName === undefined) return undefined;
  const users = new Map<string, string[]>();
  for (const use of [
    ...pools.flatMap(usesOfPool),
    ...nodes.flatMap(usesOfNode),
    ...machineConfigNodes.flatMap(usesOfMachineConfigNode),
  ]) {
    const known = users.get(use.config) ?? [];
    users.set(use.config, known.includes(use.user) ? known : [...known, use.user]);
  }
  const pool = pools.find(({ metadata }) => metadata.name === poolName);
  const rendered = machineConfigs.filter((one) => poolOfRendered(one) === poolName);
  return retainedConfigs({
    rendered,
    policy: pool === undefined ? undefined : poolPolicy(pool).policy,
    usersOf: (one) => users.get(one) ?? [],
    unusedSince: () => undefined,
    now,
  }).find((verdict) => verdict.name === name);
}

const shown = 5;
const listed = (items: readonly string[]) => listText(items, shown);

/** Why a rendered config is retained, or that it is deleted, for people. */
export function describeRetention(retention: ConfigRetention): string {
  if (!retention.keep) return `nothing has used it since ${timestampOf(retention.unusedSince)}: it goes`;
  switch (retention.because) {
    case "used":
      return `used by ${listed(retention.users)}`;
    case "recent":
      return `kept for going back, ${retention.place} of ${retention.of}`;
    case "quiet":
      return retention.until === undefined
        ? `unused; it goes when nothing has used it for ${retention.quietSeconds} s`
        : `unused; it goes after ${timestampOf(retention.until)}`;
  }
}

/** Why a rendered config that is in use cannot be deleted, with the remedy. */
export const whyRetained = `machines could not be brought to it, or be compared with it, any more; bring them to another configuration first, and it is removed when nothing uses it (annotation ${annotations.retainedConfigs} of the pool)`;

/**
 * A copy of a deleted config, without the fields that the API server had set and without owners that no longer exist.
 */
export function recreatedConfig(config: MachineConfig, poolUid: string | undefined): MachineConfig {
  const { name, labels, annotations: said, ownerReferences, finalizers } = config.metadata;
  const owners = (ownerReferences ?? []).filter(({ uid, kind }) => kind !== "MachineConfigPool" || uid === poolUid);
  return {
    apiVersion: config.apiVersion,
    kind: config.kind,
    metadata: {
      name,
      ...(labels === undefined ? {} : { labels }),
      ...(said === undefined ? {} : { annotations: said }),
      ...(owners.length === 0 ? {} : { ownerReferences: owners }),
      ...(finalizers === undefined ? {} : { finalizers }),
    },
    spec: config.spec,
  };
}
