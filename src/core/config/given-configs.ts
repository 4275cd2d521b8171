import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations } from "../../api/names.ts";
import { poolInRenderedName, poolOfRendered } from "./is-rendered.ts";

/** The configuration that a machine is given, the one that it updates to meanwhile, the one that it has, one before. */
const mostGiven = 4;

/**
 * The configurations that the node controller has given a machine, the newest first. Only the controller writes this
 * record: a Node's own annotations can be written by root on that machine, so they prove nothing.
 */
export function givenConfigs({ metadata }: Pick<MachineConfigNode, "metadata">): readonly string[] {
  return (metadata.annotations?.[annotations.givenConfigs] ?? "").split(" ").filter((name) => name !== "");
}

/**
 * The record after a machine was given `target`.
 *
 * @param target `undefined`: the machine has no target that its pool names, and nothing is added.
 * @param current the configuration that the machine reports. It stays in the record, but enters it only if there is no
 *   record yet and the configuration is of a pool in `pools`.
 * @param wanted the configuration that its Node wants from it. It stays, too: the record is written before the Node, and
 *   several targets may follow each other before the Node names one of them.
 */
export function givenConfigsAfter(
  given: readonly string[],
  target: string | undefined,
  current: { readonly name: string; readonly pools: readonly string[] },
  wanted = "",
): readonly string[] {
  const pool = poolInRenderedName(current.name);
  const isFirst = given.length === 0 && pool !== undefined && current.pools.includes(pool);
  if (target === undefined) return isFirst ? [current.name] : given;
  const kept = [...(isFirst ? [current.name] : []), ...[current.name, wanted].filter((name) => given.includes(name))];
  return [...new Set([target, ...kept, ...given])].slice(0, mostGiven);
}

/**
 * Whether a MachineConfigNode is of the Node with this uid. Until the garbage collector has removed the one of a former Node,
 * the next machine of that name has it, and what it says of another pool; one without an owner is of whichever Node there
 * is.
 *
 * @param uid `undefined`: not known.
 */
export function isOfNode({ metadata }: Pick<MachineConfigNode, "metadata">, uid: string | undefined): boolean {
  const owners = (metadata.ownerReferences ?? []).filter(({ kind }) => kind === "Node");
  return uid === undefined || owners.length === 0 || owners.some((owner) => owner.uid === uid);
}

/** Whether a machine may read a configuration, and why. */
export type Delivery =
  | { readonly verdict: "deliver"; readonly because: "given" | "poolNames" | "ofPool" }
  | { readonly verdict: "refused"; readonly reason: "NoMachine" | "NotYours"; readonly message: string };

export interface DeliveryFacts {
  /** The name in the caller's credential. */
  readonly node: string;
  /** UID of its Node there; `undefined`: the API server names none. */
  readonly nodeUid: string | undefined;
  /** Name of the requested configuration. */
  readonly asked: string;
  readonly machineConfigNode: Pick<MachineConfigNode, "metadata" | "spec"> | undefined;
  /** The pool that the MachineConfigNode names. */
  readonly pool: Pick<MachineConfigPool, "metadata" | "spec" | "status"> | undefined;
  /** The requested configuration; `undefined`: it does not exist. */
  readonly config: Pick<MachineConfig, "metadata"> | undefined;
}

/**
 * Decides which configurations a machine may read: those that it was given, those that its pool names, and, until the
 * controller has given it one, any that was rendered for its pool, since it joined with one of them. What other
 * machines have is refused, with the same words whether it exists or not.
 */
export function judgeDelivery({ node, nodeUid, asked, machineConfigNode, pool, config }: DeliveryFacts): Delivery {
  if (machineConfigNode === undefined)
    return {
      verdict: "refused",
      reason: "NoMachine",
      message: `there is no MachineConfigNode ${node} yet: the operator makes it once the Node is in a pool`,
    };
  if (!isOfNode(machineConfigNode, nodeUid))
    return {
      verdict: "refused",
      reason: "NoMachine",
      message: `the MachineConfigNode ${node} is of another Node of that name: the operator makes another one`,
    };
  const given = givenConfigs(machineConfigNode);
  if (given.includes(asked)) return { verdict: "deliver", because: "given" };
  if (pool !== undefined) {
    if ([pool.spec.configuration?.name, pool.status?.configuration?.name].includes(asked))
      return { verdict: "deliver", because: "poolNames" };
    if (given.length === 0 && config !== undefined && poolOfRendered(config) === pool.metadata.name)
      return { verdict: "deliver", because: "ofPool" };
  }
  return {
    verdict: "refused",
    reason: "NotYours",
    message: `${asked} is no configuration that ${node} was given, or that the pool ${machineConfigNode.spec.pool.name} names`,
  };
}
