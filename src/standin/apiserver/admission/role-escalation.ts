import { andMore } from "../../../core/text/list-text.ts";
import type { AdmissionPlugin } from "./admission.ts";
import type { Authorizer } from "../access/authorization.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import { type RbacIndex, rulesOfClusterRole } from "../access/rbac-index.ts";
import type { AccessAttributes, KubeObject, UserInfo } from "../schema/contract.ts";
import { firstTexts } from "../schema/first-texts.ts";
import { equalJson, isObject } from "../schema/json-values.ts";
import { authorize, mastersGroup, type PolicyRule, policyRules } from "../schema/rbac.ts";
import { forbidden } from "../schema/status.ts";

/**
 * A user cannot grant more than their own rights, unless they may `escalate` roles or `bind` the role:
 * `k8s.io/kubernetes pkg/registry/rbac (master)`.
 */
export function roleEscalation(live: LiveObjects, rbac: RbacIndex, access: Authorizer): AdmissionPlugin {
  return {
    validate({ operation, served, namespace, name, object, before }, { user }) {
      if (
        served.definition.group !== "rbac.authorization.k8s.io" ||
        object === undefined ||
        operation === "DELETE" ||
        user.groups.includes(mastersGroup) ||
        (before !== undefined && equalJson(apartFromOwners(before), apartFromOwners(object)))
      )
        return undefined;
      const may = (verb: string, resource: string, of: string): boolean => {
        const attributes: AccessAttributes = {
          user,
          verb,
          group: served.definition.group,
          resource,
          subresource: "",
          namespace,
          name: of,
        };
        return access.allows(attributes);
      };
      const own = rbac.rulesFor(user, namespace);
      const missing = (rules: readonly PolicyRule[]) =>
        rules.flatMap((rule) => questions(rule, user, namespace)).filter((question) => !authorize(own, question));
      switch (served.definition.plural) {
        case "roles":
        case "clusterroles": {
          if (may("escalate", served.definition.plural, name)) return undefined;
          const rules = policyRules(object);
          if (isTooMuch(rules, own)) return forbidden(served.definition, name, tooMuch);
          const extra = missing(rules);
          if (extra.length > 0) return forbidden(served.definition, name, refusalText(user, extra));
          // It takes the rules of whatever roles there will be.
          const takes = isObject(object["aggregationRule"]) || isObject(before?.["aggregationRule"]);
          return takes && missing(fullAuthority).length > 0
            ? forbidden(served.definition, name, "must have cluster-admin privileges to use an aggregationRule")
            : undefined;
        }
        default: {
          const reference = isObject(object["roleRef"]) ? object["roleRef"] : {};
          const plural = reference["kind"] === "Role" ? "roles" : "clusterroles";
          const role = String(reference["name"]);
          if (may("bind", plural, role)) return undefined;
          const granted: KubeObject | undefined = live.get({
            resource: `${plural}.rbac.authorization.k8s.io`,
            namespace: plural === "roles" ? namespace : "",
            name: role,
          })?.object;
          if (granted === undefined)
            return forbidden(
              served.definition,
              name,
              `${plural}.rbac.authorization.k8s.io ${JSON.stringify(role)} not found`,
            );
          const rules = plural === "roles" ? policyRules(granted) : rulesOfClusterRole(granted, live);
          if (isTooMuch(rules, own)) return forbidden(served.definition, name, tooMuch);
          const extra = missing(rules);
          return extra.length === 0 ? undefined : forbidden(served.definition, name, refusalText(user, extra));
        }
      }
    },
  };
}

/**
 * What a change needs no rights for: owners and finalizers, by which the garbage collector deletes. A label gives a role's
 * rights to all who have a role that selects it, so it is judged as a rule is: `k8s.io/kubernetes pkg/registry/rbac/helpers.go
 * (master)` IsOnlyMutatingGCFields.
 */
function apartFromOwners({ metadata, ...rest }: KubeObject): unknown {
  const { ownerReferences: _, finalizers: __, managedFields: ___, resourceVersion: ____, ...own } = metadata;
  return { ...rest, metadata: own };
}

const fullAuthority: readonly PolicyRule[] = [
  { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
  { verbs: ["*"], nonResourceURLs: ["*"] },
];

/** Single things of one role that are compared with the rights of its author: a short rule can allow billions. */
const mostQuestions = 100_000;
/** The same by the words of the author's own rules, each of which may be compared with each of these. */
const mostComparisons = 50_000_000;
const tooMuch = `its rules allow more than ${mostQuestions} single things, which cannot be compared with your rights: use fewer verbs, groups, resources and names in a rule`;

function isTooMuch(rules: readonly PolicyRule[], own: readonly PolicyRule[]): boolean {
  const count = ({
    verbs = [],
    apiGroups = [],
    resources = [],
    resourceNames = [],
    nonResourceURLs = [],
  }: PolicyRule) =>
    verbs.length * (nonResourceURLs.length + apiGroups.length * resources.length * Math.max(1, resourceNames.length));
  const asked = rules.reduce((sum, rule) => sum + count(rule), 0);
  const words = own.reduce(
    (sum, rule) => Object.values(rule).reduce((length, list: readonly string[]) => length + list.length, sum),
    0,
  );
  return asked > mostQuestions || asked * words > mostComparisons;
}

/** Every single thing that a rule allows. */
function questions(rule: PolicyRule, user: UserInfo, namespace: string): readonly AccessAttributes[] {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const asked: AccessAttributes[] = [];
  for (const verb of verbs) {
    for (const path of nonResourceURLs)
      asked.push({ user, verb, group: "", resource: "", subresource: "", namespace: "", name: "", path });
    for (const group of apiGroups) {
      for (const full of resources) {
        const [resource = "", subresource = ""] = full.split("/");
        for (const name of resourceNames.length > 0 ? resourceNames : [""])
          asked.push({ user, verb, group, resource, subresource, namespace, name });
      }
    }
  }
  return asked;
}

function refusalText(user: UserInfo, extra: readonly AccessAttributes[]): string {
  const { texts, left } = firstTexts(extra, ({ verb, group, resource, subresource, path }) =>
    path !== undefined
      ? `{NonResourceURLs:[${JSON.stringify(path)}], Verbs:[${JSON.stringify(verb)}]}`
      : `{APIGroups:[${JSON.stringify(group)}], Resources:[${JSON.stringify(subresource === "" ? resource : `${resource}/${subresource}`)}], Verbs:[${JSON.stringify(verb)}]}`,
  );
  return `user ${JSON.stringify(user.name)} (groups=[${user.groups.map((group) => JSON.stringify(group)).join(" ")}]) is attempting to grant RBAC permissions not currently held:\n${[...texts, ...(left === 0 ? [] : [andMore(left)])].join("\n")}`;
}
