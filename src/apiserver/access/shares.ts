import { joinNamespace, namespace as suiteNamespace, objects, suiteNamespaces } from "../../api/names.ts";
import { clusterNamespaces } from "../storage/room.ts";
import type { Share, UserInfo } from "../schema/contract.ts";
import { mastersGroup } from "./authorization.ts";

/** Accounts of the suite whose pods run on the machines of the control plane alone. */
const trustedAccounts: ReadonlySet<string> = new Set(
  [objects.operator, objects.controller, objects.state, objects.osBuilder, objects.configServer].map(
    (name) => `system:serviceaccount:${suiteNamespace}:${name}`,
  ),
);

/**
 * The share of a user. All accounts of a namespace have one: whoever may create accounts has as many users as they like. Those
 * of the cluster's own namespaces are created by the cluster; root on a machine has the tokens of all pods of that machine,
 * among them those of builds.
 */
export function shareOf({ name, groups, extra }: UserInfo): Share {
  if (groups.includes(mastersGroup)) return { of: name, part: "cluster" };
  if (groups.includes("system:nodes")) return { of: name, part: "nodes" };
  const namespace = /^system:serviceaccount:([^:]+):/.exec(name)?.[1];
  if (namespace === undefined) return { of: name, part: "others" };
  const ofNamespace: Share = { of: `system:serviceaccount:${namespace}`, part: "others" };
  // Machines that join hold tokens of these accounts before anybody has let them in.
  if (!clusterNamespaces.has(namespace) || namespace === joinNamespace) return ofNamespace;
  const node = extra?.["authentication.kubernetes.io/node-name"]?.[0];
  if (trustedAccounts.has(name)) return { of: node === undefined ? name : `${name} on ${node}`, part: "cluster" };
  if (node !== undefined) return { of: `system:node:${node}`, part: "nodes" };
  return suiteNamespaces.includes(namespace) ? ofNamespace : { of: name, part: "cluster" };
}
