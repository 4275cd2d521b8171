import { joinNamespace } from "../../api/names.ts";
import { clusterNamespaces } from "../storage/room.ts";
import type { UserInfo } from "../schema/contract.ts";
import { mastersGroup } from "./authorization.ts";

/** Whose part of the server's connections, memory and time a request takes. */
export interface Share {
  readonly of: string;
  /** A part of everything is kept for administrators, nodes and the accounts of the cluster itself. */
  readonly isKept: boolean;
}

/**
 * The share of a user. All accounts of a namespace have one: whoever may create accounts has as many users as they like. Those
 * of the cluster's own namespaces are created by the cluster.
 */
export function shareOf({ name, groups }: UserInfo): Share {
  const namespace = /^system:serviceaccount:([^:]+):/.exec(name)?.[1];
  // Machines that join hold tokens of these accounts before anybody has let them in.
  if (namespace !== undefined && (!clusterNamespaces.has(namespace) || namespace === joinNamespace))
    return { of: `system:serviceaccount:${namespace}`, isKept: false };
  return {
    of: name,
    isKept: namespace !== undefined || groups.includes(mastersGroup) || groups.includes("system:nodes"),
  };
}
