import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { labels } from "../../api/names.ts";
import { selectorIsEmpty, selectorMatches } from "../../api/schema/object.ts";

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
    .filter(
      ({ spec }) =>
        spec.nodeSelector !== undefined &&
        !selectorIsEmpty(spec.nodeSelector) &&
        selectorMatches(spec.nodeSelector, node.metadata.labels),
    )
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

/** Labels by which a pool selects its nodes; none where its selector cannot be met by labels alone. */
function labelsSelectedBy(pool: MachineConfigPool | undefined): Readonly<Record<string, string>> {
  const selector = pool?.spec.nodeSelector;
  if (selector === undefined || selectorIsEmpty(selector)) return {};
  const wanted: Record<string, string> = { ...selector.matchLabels };
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    if (operator === "Exists") wanted[key] = "";
    if (operator === "In" && values.length === 1) wanted[key] = values[0] ?? "";
  }
  return wanted;
}

/**
 * Labels that a node gets that joins a pool: its kubelet may not give them to it. A machine of a custom pool is a
 * worker, too.
 */
export function labelsOfJoin(pool: MachineConfigPool): Readonly<Record<string, string>> {
  return {
    ...(pool.metadata.name === "master" ? { [labels.controlPlaneRole]: "" } : { [labels.workerRole]: "" }),
    ...labelsSelectedBy(pool),
  };
}

/** Labels that may schedule the cluster's own workload onto a machine, and trust it with that. */
const controlPlaneRoles: readonly string[] = [labels.masterRole, labels.controlPlaneRole, labels.arbiterRole];

/** Whether a machine that joins a pool becomes one of the control plane. */
export const makesControlPlane = (pool: MachineConfigPool | undefined): boolean =>
  pool !== undefined && Object.keys(labelsOfJoin(pool)).some((key) => controlPlaneRoles.includes(key));

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
): Readonly<Record<string, string>> | undefined {
  const pool = pools.find(({ metadata }) => metadata.name === record.pool);
  if (pool === undefined || record.lastPool !== record.pool) return undefined;
  if (makesControlPlane(pool)) return undefined;
  const given = labelsOfJoin(pool);
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
      const given = labelsSelectedBy(pool);
      const membership = poolOfNode(
        { metadata: { ...node.metadata, labels: { ...node.metadata.labels, ...given } } },
        pools,
      );
      if (membership.verdict !== "member" || membership.pool !== name) return [];
      const pairs = Object.entries(given).map(([key, value]) => `${key}=${value}`);
      return [{ pool: name, command: `kubectl label node ${node.metadata.name} ${pairs.join(" ")}` }];
    })
    .sort((a, b) => (a.pool < b.pool ? -1 : 1));
}
