import type { LiveObjects } from "../storage/live-objects.ts";
import type { KubeObject, UserInfo } from "../schema/contract.ts";
import { isObject } from "../schema/json-values.ts";
import { aggregateRules, type PolicyRule, policyRules } from "../schema/rbac.ts";

const group = "rbac.authorization.k8s.io";
const resources = {
  roles: `roles.${group}`,
  roleBindings: `rolebindings.${group}`,
  clusterRoles: `clusterroles.${group}`,
  clusterRoleBindings: `clusterrolebindings.${group}`,
};

/** Which rules hold for a user, answered from the live roles and bindings without walking over all of them. */
export interface RbacIndex {
  /** In `namespace`, cluster-wide grants included; with an empty namespace only those. */
  rulesFor(user: UserInfo, namespace: string): readonly PolicyRule[];
}

/** Answers kept until a role or binding changes. */
const answerLimit = 5_000;

export function rbacIndex(live: LiveObjects): RbacIndex {
  /** `user:x`, `group:y` → bindings; keyed by namespace before that, empty for the whole cluster. */
  let bindings: Map<string, KubeObject[]> | undefined;
  const answers = new Map<string, readonly PolicyRule[]>();
  const changed = () => {
    bindings = undefined;
    answers.clear();
  };
  for (const resource of Object.values(resources)) live.subscribe({ resource }, changed);

  function index(): Map<string, KubeObject[]> {
    const made = new Map<string, KubeObject[]>();
    for (const resource of [resources.roleBindings, resources.clusterRoleBindings]) {
      for (const { object, key } of live.list(resource)) {
        for (const subject of Array.isArray(object["subjects"]) ? object["subjects"].filter(isObject) : []) {
          const at = `${key.namespace}|${subjectKey(subject, key.namespace)}`;
          const known = made.get(at);
          if (known === undefined) made.set(at, [object]);
          else known.push(object);
        }
      }
    }
    return made;
  }

  function rulesOfRole(binding: KubeObject): readonly PolicyRule[] {
    const reference = isObject(binding["roleRef"]) ? binding["roleRef"] : {};
    const name = String(reference["name"]);
    if (reference["kind"] === "Role") {
      const role = live.get({ resource: resources.roles, namespace: binding.metadata.namespace ?? "", name });
      return role === undefined ? [] : policyRules(role.object);
    }
    const role = live.get({ resource: resources.clusterRoles, namespace: "", name })?.object;
    if (role === undefined) return [];
    if (!isObject(role["aggregationRule"])) return policyRules(role);
    return [
      ...policyRules(role),
      ...aggregateRules(
        role,
        live.list(resources.clusterRoles).map(({ object }) => object),
      ),
    ];
  }

  return {
    rulesFor(user, namespace) {
      const id = JSON.stringify([user.name, user.groups, namespace]);
      const known = answers.get(id);
      if (known !== undefined) return known;
      bindings ??= index();
      const subjects = [`user:${user.name}`, ...user.groups.map((one) => `group:${one}`)];
      const found = new Set<KubeObject>();
      for (const scope of namespace === "" ? [""] : ["", namespace]) {
        for (const subject of subjects)
          for (const binding of bindings.get(`${scope}|${subject}`) ?? []) found.add(binding);
      }
      const rules = [...found].flatMap(rulesOfRole);
      if (answers.size >= answerLimit) answers.clear();
      answers.set(id, rules);
      return rules;
    },
  };
}

function subjectKey(subject: Readonly<Record<string, unknown>>, bindingNamespace: string): string {
  const name = String(subject["name"]);
  switch (subject["kind"]) {
    case "Group":
      return `group:${name}`;
    case "ServiceAccount":
      return `user:system:serviceaccount:${typeof subject["namespace"] === "string" ? subject["namespace"] : bindingNamespace}:${name}`;
    default:
      return `user:${name}`;
  }
}
