import { joinNamespace, namespace as suiteNamespace, objects, suiteNamespaces } from "../../api/names.ts";
import { clusterNamespaces } from "../storage/room.ts";
import type { UserInfo } from "../schema/contract.ts";
import { mastersGroup } from "./authorization.ts";

/**
 * Of everything, a part is kept for machines, and another for administrators and the components of the cluster: root on one
 * machine takes nothing of it.
 */
export type Part = "others" | "nodes" | "cluster";

/** Whose part of the server's connections, memory and time a request takes. */
export interface Share {
  readonly of: string;
  readonly part: Part;
}

const daemonAccount = `system:serviceaccount:${suiteNamespace}:${objects.daemon}`;

/**
 * The share of a user. All accounts of a namespace have one: whoever may create accounts has as many users as they like. Those
 * of the cluster's own namespaces are created by the cluster; root on a machine has the tokens of all pods of that machine.
 */
export function shareOf({ name, groups, extra }: UserInfo): Share {
  if (groups.includes(mastersGroup)) return { of: name, part: "cluster" };
  if (groups.includes("system:nodes")) return { of: name, part: "nodes" };
  const namespace = /^system:serviceaccount:([^:]+):/.exec(name)?.[1];
  if (namespace === undefined) return { of: name, part: "others" };
  // Machines that join hold tokens of these accounts before anybody has let them in.
  if (!clusterNamespaces.has(namespace) || namespace === joinNamespace)
    return { of: `system:serviceaccount:${namespace}`, part: "others" };
  const node = extra?.["authentication.kubernetes.io/node-name"]?.[0];
  if (node === undefined) return { of: name, part: "cluster" };
  // These run on a few machines, which are trusted with them; what runs on every machine is as its machine.
  return suiteNamespaces.includes(namespace) && name !== daemonAccount
    ? { of: `${name} on ${node}`, part: "cluster" }
    : { of: `system:node:${node}`, part: "nodes" };
}
