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
/** A longer question is answered, not kept: reviews ask about namespaces, users and groups of any length. */
const keptCharacters = 4_096;
/** Rules of all kept answers together; a longer answer is not kept: one role may have ten thousands. */
const keptRules = 500_000;
const longestKeptAnswer = 10_000;

/** `user:x`, `group:y` → bindings by name; keyed by namespace before that, empty for the whole cluster. */
type Bindings = Map<string, Map<string, KubeObject>>;

export function rbacIndex(live: LiveObjects): RbacIndex {
  const bindings: Bindings = new Map();
  const answers = new Map<string, readonly PolicyRule[]>();
  let rulesInAnswers = 0;
  const forget = () => {
    answers.clear();
    rulesInAnswers = 0;
  };
  for (const resource of [resources.roles, resources.clusterRoles]) live.subscribe({ resource }, forget);
  // One binding after the other: whoever changes one of many does not have all of them read again.
  for (const resource of [resources.roleBindings, resources.clusterRoleBindings]) {
    for (const { object } of live.list(resource)) put(bindings, object);
    live.subscribe({ resource }, ({ type, live: { object }, previous }) => {
      if (previous !== undefined) drop(bindings, previous.object);
      if (type !== "DELETED") put(bindings, object);
      forget();
    });
  }

  function roleOf(binding: KubeObject): KubeObject | undefined {
    const reference = isObject(binding["roleRef"]) ? binding["roleRef"] : {};
    const name = String(reference["name"]);
    return (
      reference["kind"] === "Role"
        ? live.get({ resource: resources.roles, namespace: binding.metadata.namespace ?? "", name })
        : live.get({ resource: resources.clusterRoles, namespace: "", name })
    )?.object;
  }

  /** Each role once, however many bindings give it. */
  function rolesFor(user: UserInfo, namespace: string): ReadonlySet<KubeObject> {
    const subjects = [`user:${user.name}`, ...user.groups.map((one) => `group:${one}`)];
    const found = new Set<KubeObject>();
    for (const scope of namespace === "" ? [""] : ["", namespace])
      for (const subject of subjects)
        for (const binding of byName(bindings.get(`${scope}|${subject}`))) {
          const role = roleOf(binding);
          if (role !== undefined) found.add(role);
        }
    return found;
  }

  return {
    rulesFor(user, namespace) {
      const id = JSON.stringify([user.name, user.groups, namespace]);
      const known = answers.get(id);
      if (known !== undefined) return known;
      const rules = [...rolesFor(user, namespace)].flatMap((role) =>
        role.kind === "Role" ? policyRules(role) : rulesOfClusterRole(role, live),
      );
      if (id.length > keptCharacters || rules.length > longestKeptAnswer) return rules;
      if (answers.size >= answerLimit || rulesInAnswers + rules.length > keptRules) forget();
      rulesInAnswers += rules.length;
      answers.set(id, rules);
      return rules;
    },
  };
}

const byName = (found: ReadonlyMap<string, KubeObject> | undefined): readonly KubeObject[] =>
  [...(found ?? [])].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, binding]) => binding);

function placesOf(binding: KubeObject): readonly string[] {
  const { namespace = "" } = binding.metadata;
  const subjects = Array.isArray(binding["subjects"]) ? binding["subjects"].filter(isObject) : [];
  return subjects.map((subject) => `${namespace}|${subjectKey(subject, namespace)}`);
}

function put(bindings: Bindings, binding: KubeObject): void {
  const name = binding.metadata.name ?? "";
  for (const place of placesOf(binding)) {
    const known = bindings.get(place);
    if (known === undefined) bindings.set(place, new Map([[name, binding]]));
    else known.set(name, binding);
  }
}

function drop(bindings: Bindings, binding: KubeObject): void {
  for (const place of placesOf(binding)) {
    const known = bindings.get(place);
    known?.delete(binding.metadata.name ?? "");
    if (known?.size === 0) bindings.delete(place);
  }
}

/** With those that it takes from other roles. */
export function rulesOfClusterRole(role: KubeObject, live: LiveObjects): readonly PolicyRule[] {
  if (!isObject(role["aggregationRule"])) return policyRules(role);
  return [
    ...policyRules(role),
    ...aggregateRules(
      role,
      live.list(resources.clusterRoles).map(({ object }) => object),
    ),
  ];
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
