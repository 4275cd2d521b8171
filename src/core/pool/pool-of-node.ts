import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { labels } from "../../api/names.ts";
import { poolSelects, selectorProblem } from "../config/pool-selector.ts";
import { own } from "../../api/schema/own.ts";
import { shellWord } from "../text/shell-word.ts";

export type PoolOfNode =
  | {
      readonly verdict: "member";
      readonly pool: string;
      /** The node is a master and in a custom pool's selection too; master wins. */ readonly masterAndCustom: boolean;
    }
  /** No pool selects it, or it is not ours to manage. */
  | { readonly verdict: "none"; readonly reason: string }
  /** Several custom pools select it: it belongs to none until its labels say which. */
  | { readonly verdict: "ambiguous"; readonly pools: readonly string[] };

const isBuiltIn = (pool: string) => pool === "master" || pool === "worker";

/**
 * Which pool a node belongs to: a custom pool over `worker`, `master` over everything
 * (openshift/machine-config-operator pkg/helpers/helpers.go, main).
 */
export function poolOfNode(node: Pick<Node, "metadata">, pools: readonly MachineConfigPool[]): PoolOfNode {
  if (node.metadata.labels?.[labels.os] === "windows")
    return { verdict: "none", reason: "Windows nodes are not managed" };
  const selecting = pools
    .filter(({ spec }) => poolSelects(spec.nodeSelector, node.metadata.labels))
    .map(({ metadata }) => metadata.name)
    .sort();
  const custom = selecting.filter((pool) => !isBuiltIn(pool));
  if (selecting.includes("master")) return { verdict: "member", pool: "master", masterAndCustom: custom.length > 0 };
  if (custom.length > 1) return { verdict: "ambiguous", pools: custom };
  const [only] = custom.length === 1 ? custom : selecting;
  return only === undefined
    ? { verdict: "none", reason: "no pool selects it" }
    : { verdict: "member", pool: only, masterAndCustom: false };
}

type Labels = Readonly<Record<string, string>>;

/** How many combinations of values are tried for a pool that selects by lists of them. */
const mostChoices = 256;

/**
 * Labels that put a node into a pool: the first ones, in the order in which its selector lists values, that make the
 * node a member of that pool and of no other. A value that the node has already and that the pool selects stays. Where no
 * labels alone do it, those of the first values.
 *
 * @param also labels that the node is given beside them.
 */
function labelsSelectedBy(
  pool: MachineConfigPool,
  { metadata }: Pick<Node, "metadata">,
  pools: readonly MachineConfigPool[],
  also: Labels = {},
): Labels {
  const selector = pool.spec.nodeSelector;
  if (selector === undefined || selectorProblem(selector) !== undefined) return also;
  const has: Labels = { ...metadata.labels, ...also };
  let choices: readonly Labels[] = [{ ...also, ...selector.matchLabels }];
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const is = own(selector.matchLabels, key) ?? own(has, key);
    const wanted = operator === "Exists" ? [""] : operator === "In" ? values : [];
    if (wanted.length === 0 || (is !== undefined && (operator === "Exists" || wanted.includes(is)))) continue;
    choices = withValues(choices, key, wanted);
  }
  const makesMember = (choice: Labels) => {
    const membership = poolOfNode({ metadata: { ...metadata, labels: { ...metadata.labels, ...choice } } }, pools);
    return membership.verdict === "member" && membership.pool === pool.metadata.name;
  };
  return choices.find(makesMember) ?? choices[0] ?? also;
}

/** Each combination with each value of a key that it does not have, the first ones only. */
function withValues(choices: readonly Labels[], key: string, values: readonly string[]): readonly Labels[] {
  const result: Labels[] = [];
  for (const choice of choices)
    for (const value of Object.hasOwn(choice, key) ? [choice[key] ?? ""] : values) {
      if (result.length >= mostChoices) return result;
      result.push({ ...choice, [key]: value });
    }
  return result;
}

/**
 * Labels that a node gets that joins a pool: its kubelet may not give them to it. A machine of a custom pool is a
 * worker, too.
 */
export const labelsOfJoin = (
  pool: MachineConfigPool,
  node: Pick<Node, "metadata">,
  pools: readonly MachineConfigPool[],
): Labels =>
  labelsSelectedBy(
    pool,
    node,
    pools,
    pool.metadata.name === "master" ? { [labels.controlPlaneRole]: "" } : { [labels.workerRole]: "" },
  );

/** Labels that may schedule the cluster's own workload onto a machine, and trust it with that. */
const controlPlaneRoles: readonly string[] = [labels.masterRole, labels.controlPlaneRole, labels.arbiterRole];

/** Whether a machine that joins a pool becomes one of the control plane, whatever labels it has already. */
export const makesControlPlane = (pool: MachineConfigPool | undefined): boolean =>
  pool !== undefined &&
  Object.keys(labelsOfJoin(pool, { metadata: { name: "" } }, [pool])).some((key) => controlPlaneRoles.includes(key));

/**
 * Labels for a machine that registers again after its Node was deleted; `undefined`: an administrator has to give them.
 * Nothing of a Node that its kubelet can write decides: only the record of the pool that the machine joined, and was
 * in last, does.
 *
 * @param record of the machine whose key the name belongs to: see NodeBinding.
 */
export function labelsOfReturn(
  node: Pick<Node, "metadata">,
  record: { readonly pool: string; readonly lastPool?: string | undefined },
  pools: readonly MachineConfigPool[],
): Labels | undefined {
  const pool = pools.find(({ metadata }) => metadata.name === record.pool);
  if (pool === undefined || record.lastPool !== record.pool) return undefined;
  if (makesControlPlane(pool)) return undefined;
  const given = labelsOfJoin(pool, node, pools);
  const assumed = { ...node, metadata: { ...node.metadata, labels: { ...node.metadata.labels, ...given } } };
  const membership = poolOfNode(assumed, pools);
  return membership.verdict === "member" && membership.pool === record.pool ? given : undefined;
}

/** One pool that an unassigned node may be put into, with the command that does it. */
export interface PoolOffer {
  readonly pool: string;
  readonly command: string;
}

/** The pools that a node in no pool may be put into by labels alone; none for a node that no pool may take. */
export function poolOffers(node: Pick<Node, "metadata">, pools: readonly MachineConfigPool[]): readonly PoolOffer[] {
  if (node.metadata.labels?.[labels.os] === "windows") return [];
  return pools
    .flatMap((pool) => {
      const { name } = pool.metadata;
      const given = labelsSelectedBy(pool, node, pools);
      const membership = poolOfNode(
        { metadata: { ...node.metadata, labels: { ...node.metadata.labels, ...given } } },
        pools,
      );
      if (membership.verdict !== "member" || membership.pool !== name) return [];
      const pairs = Object.entries(given).map(([key, value]) => `${key}=${value}`);
      return [{ pool: name, command: `kubectl label node ${node.metadata.name} ${pairs.map(shellWord).join(" ")}` }];
    })
    .sort((a, b) => (a.pool < b.pool ? -1 : 1));
}
