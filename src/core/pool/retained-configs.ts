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

/** One reason why a rendered config has to stay. */
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

/** What a pool names: its target, what all of its machines have had last, and what it must not give to anybody. */
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

/** A MachineConfigNode names what its machine should have, has, and went back from. */
export const usesOfMachineConfigNode = ({ metadata, spec, status }: MachineConfigNode): readonly ConfigUse[] =>
  usesOf(`MachineConfigNode ${metadata.name}`, [
    ["spec", spec.configVersion.desired],
    ["status", status?.configVersion?.desired],
    ["status", status?.configVersion?.current],
    ...refusedTargetsOf({ metadata }).map((config) => ["refused", config] as const),
  ]);

/** An image is built from the rendered config that its build names. */
export const usesOfBuild = (build: MachineOSBuild): readonly ConfigUse[] =>
  usesOf(`${build.kind} ${build.metadata.name}`, [["spec", build.spec?.machineConfig?.name]]);

/** What is to become of one rendered config, and why. */
export type Retention =
  | { readonly name: string; readonly keep: true; readonly because: "used"; readonly users: readonly string[] }
  /** One of the last that the pool has had: somebody may want to go back to it. `place`: 1 is the newest. */
  | {
      readonly name: string;
      readonly keep: true;
      readonly because: "recent";
      readonly place: number;
      readonly of: number;
    }
  /**
   * Nobody has used it for too short a time, of `quietSeconds`. `until`: in milliseconds since the epoch; `undefined`
   * where the beginning is not known.
   */
  | {
      readonly name: string;
      readonly keep: true;
      readonly because: "quiet";
      readonly quietSeconds: number;
      readonly until: number | undefined;
    }
  | { readonly name: string; readonly keep: false; readonly unusedSince: number };

export interface RetentionFacts {
  /** Rendered configs of one pool. */
  readonly rendered: readonly MachineConfig[];
  /** How many are kept for going back, and how long an unused one is left alone; of a pool that is gone, none are. */
  readonly policy: { readonly retainedConfigs: number; readonly retentionQuietSeconds: number } | undefined;
  /** Who uses a config, for people. */
  readonly usersOf: (config: string) => readonly string[];
  /** Since when nothing uses a config, in milliseconds since the epoch; `undefined`: not known, so that it stays. */
  readonly unusedSince: (config: string) => number | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Which rendered configs of a pool stay, and why, in the order in which those that go may go: oldest first.
 *
 * What anything names stays. Of the others the last few stay that the pool has had, for whoever wants to go back; then
 * a quiet time passes, since what refers to a config may come to be known later than the config is.
 */
export function retainedConfigs({ rendered, policy, usersOf, unusedSince, now }: RetentionFacts): readonly Retention[] {
  const { retainedConfigs: most, retentionQuietSeconds: quiet } = policy ?? {
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
  // What was rolled out comes after what never was: it is what one can go back to.
  const unused = ordered.filter(({ metadata }) => used.get(metadata.name)?.length === 0);
  return ordered.map(({ metadata: { name } }): Retention => {
    const users = used.get(name) ?? [];
    if (users.length > 0) return { name, keep: true, because: "used", users };
    const place = unused.length - unused.findIndex(({ metadata }) => metadata.name === name);
    if (place <= most) return { name, keep: true, because: "recent", place, of: most };
    const since = unusedSince(name);
    if (since === undefined) return { name, keep: true, because: "quiet", quietSeconds: quiet, until: undefined };
    const until = since + quiet * 1000;
    return now < until
      ? { name, keep: true, because: "quiet", quietSeconds: quiet, until }
      : { name, keep: false, unusedSince: since };
  });
}

/** Why one rendered config stays, from whole lists: what a command line looks at once. `undefined`: it is none. */
export function retentionOf(
  name: string,
  objects: {
    readonly pools: readonly MachineConfigPool[];
    readonly nodes: readonly Node[];
    readonly machineConfigNodes: readonly MachineConfigNode[];
    readonly machineConfigs: readonly MachineConfig[];
  },
  now: number,
): Retention | undefined {
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
const listed = (items: readonly string[]) =>
  items.length <= shown ? items.join(", ") : `${items.slice(0, shown).join(", ")} and ${items.length - shown} more`;

/** Why a rendered config stays, or that it goes, for people. */
export function describeRetention(retention: Retention): string {
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

/** Why a rendered config cannot be deleted, with what would help. */
export const whyNotDeleted = (name: string, users: readonly string[]): string =>
  `${name} is in use by ${listed(users)}: machines could not be brought to it, or be compared with it, any more; bring them to another configuration first, and it is removed when nothing uses it (annotation ${annotations.retainedConfigs} of the pool)`;

/**
 * The same config once more, without what the API server gave the one that is gone. An owner that is gone too is left
 * out.
 */
export function remade(config: MachineConfig, poolUid: string | undefined): MachineConfig {
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
