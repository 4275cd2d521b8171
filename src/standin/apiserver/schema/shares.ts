import { joinNamespace, namespace as suiteNamespace, objects, suiteNamespaces } from "../../../api/names.ts";
import type { Share, UserInfo } from "./contract.ts";
import { mastersGroup } from "./rbac.ts";

/** Namespaces of the cluster and of the suite: tenants store nothing there, and what they store takes no room of it. */
export const clusterNamespaces: ReadonlySet<string> = new Set([
  "kube-system",
  "kube-public",
  "kube-node-lease",
  ...suiteNamespaces,
  joinNamespace,
]);

/** Accounts of the suite whose pods run on the machines of the control plane alone. */
const trustedAccounts: ReadonlySet<string> = new Set(
  [objects.operator, objects.controller, objects.state, objects.osBuilder, objects.configServer].map(
    (name) => `system:serviceaccount:${suiteNamespace}:${name}`,
  ),
);

/** Whether a user is an account that machines join with. */
export const isJoiningAccount = ({ name }: Pick<UserInfo, "name">): boolean =>
  name.startsWith(`system:serviceaccount:${joinNamespace}:`);

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
