import type { Impersonation } from "./authentication.ts";
import { nodeNameOf, nodeRefusal, type NodeAuthorizer } from "./node-authorizer.ts";
import type { RbacIndex } from "./rbac-index.ts";
import type { AccessAttributes, UserInfo } from "../schema/contract.ts";
import { authorize, mastersGroup } from "../schema/rbac.ts";
import { Refusal } from "../schema/status.ts";

export interface Authorizer {
  allows(attributes: AccessAttributes, fieldSelectorNode?: string): boolean;
}

export function authorizer(nodes: NodeAuthorizer, rbac: RbacIndex): Authorizer {
  return {
    allows(attributes, fieldSelectorNode) {
      const { user } = attributes;
      if (user.groups.includes(mastersGroup)) return true;
      const node = nodeNameOf(user);
      if (node !== undefined && attributes.path === undefined && nodes.allows(node, attributes, fieldSelectorNode))
        return true;
      return authorize(rbac.rulesFor(user, attributes.namespace), attributes);
    },
  };
}

/** 403 in the words of `k8s.io/apiserver pkg/endpoints/handlers/responsewriters/errors.go (master)`. */
export function accessDenied(attributes: AccessAttributes): Refusal {
  const { user, verb, group, resource, subresource, namespace, name, path } = attributes;
  const who = `User ${JSON.stringify(user.name)}`;
  if (path !== undefined)
    return new Refusal(403, "Forbidden", `forbidden: ${who} cannot ${verb} path ${JSON.stringify(path)}`, {});
  const what = subresource === "" ? resource : `${resource}/${subresource}`;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace ${JSON.stringify(namespace)}`;
  const qualified = group === "" ? resource : `${resource}.${group}`;
  const subject = name === "" ? qualified : `${qualified} ${JSON.stringify(name)}`;
  const node = nodeNameOf(user);
  const why = node === undefined ? "" : nodeRefusal(node, attributes);
  return new Refusal(
    403,
    "Forbidden",
    `${subject} is forbidden: ${who} cannot ${verb} resource ${JSON.stringify(what)} in API group ${JSON.stringify(group)} ${where}${why === "" ? "" : `: ${why}`}`,
    {
      ...(name === "" ? {} : { name }),
      ...(group === "" ? {} : { group }),
      kind: resource,
    },
  );
}

/**
 * The permissions that `user` needs to impersonate another: one for the user, and one for each group, extra value and
 * uid that the request names.
 */
export function impersonationChecks(
  user: UserInfo,
  { user: other, groups }: Impersonation,
): readonly AccessAttributes[] {
  const may = (resource: string, name: string, more: Partial<AccessAttributes> = {}): AccessAttributes => ({
    user,
    verb: "impersonate",
    group: "",
    resource,
    subresource: "",
    namespace: "",
    name,
    ...more,
  });
  const group = "authentication.k8s.io";
  const account = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(other.name);
  return [
    account === null
      ? may("users", other.name)
      : may("serviceaccounts", account[2] ?? "", { namespace: account[1] ?? "" }),
    ...groups.map((name) => may("groups", name)),
    ...Object.entries(other.extra ?? {}).flatMap(([subresource, values]) =>
      values.map((value) => may("userextras", value, { group, subresource })),
    ),
    ...(other.uid === undefined ? [] : [may("uids", other.uid, { group })]),
  ];
}
