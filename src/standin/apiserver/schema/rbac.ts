import { withoutEnd } from "../../../core/text/without-end.ts";
import type { AccessAttributes, KubeObject } from "./contract.ts";
import { isObject, listAt } from "./json-values.ts";
import { labelSelectorMatches } from "./selectors.ts";

/** May do everything, whatever the roles say. */
export const mastersGroup = "system:masters";

/** One rule of a Role or ClusterRole. */
export interface PolicyRule {
  readonly verbs?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

/** Of each role that is stored; one that changes is another object. */
const rulesOf = new WeakMap<KubeObject, readonly PolicyRule[]>();

/** The rules of a Role or ClusterRole, as far as they are readable. They share its lists. */
export function policyRules(role: KubeObject): readonly PolicyRule[] {
  let rules = rulesOf.get(role);
  if (rules === undefined) rulesOf.set(role, (rules = listAt(role, "rules").filter(isObject).map(readRule)));
  return rules;
}

const isText = (value: unknown): value is string => typeof value === "string";

function readRule(rule: Record<string, unknown>): PolicyRule {
  const words = (field: string): readonly string[] => {
    const list = listAt(rule, field);
    return list.every(isText) ? list : list.filter(isText);
  };
  return {
    verbs: words("verbs"),
    apiGroups: words("apiGroups"),
    resources: words("resources"),
    resourceNames: words("resourceNames"),
    nonResourceURLs: words("nonResourceURLs"),
  };
}

/**
 * Whether one of `rules` allows the request: kubernetes/kubernetes pkg/apis/rbac/v1/evaluation_helpers.go (master). A
 * rule with resourceNames never allows a request without a name (list, watch, create).
 */
export function authorize(rules: readonly PolicyRule[], attributes: AccessAttributes): boolean {
  return rules.some((rule) => allows(rule, attributes));
}

function allows(
  { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }: PolicyRule,
  asked: AccessAttributes,
): boolean {
  if (!verbs.includes("*") && !verbs.includes(asked.verb)) return false;
  if (asked.path !== undefined) return nonResourceURLs.some((url) => pathMatches(url, asked.path ?? ""));
  if (!apiGroups.includes("*") && !apiGroups.includes(asked.group)) return false;
  const combined = asked.subresource === "" ? asked.resource : `${asked.resource}/${asked.subresource}`;
  const named = resources.some(
    (resource) =>
      resource === "*" || resource === combined || (asked.subresource !== "" && resource === `*/${asked.subresource}`),
  );
  return named && (resourceNames.length === 0 || resourceNames.includes(asked.name));
}

function pathMatches(pattern: string, path: string): boolean {
  if (pattern === "*" || pattern === path) return true;
  return pattern.endsWith("*") && path.startsWith(withoutEnd(pattern, "*"));
}

/** The rules that a ClusterRole with an aggregationRule takes from others, each once, in the order of their names. */
export function aggregateRules(role: KubeObject, clusterRoles: readonly KubeObject[]): readonly PolicyRule[] {
  const selectors = listAt(role, "aggregationRule", "clusterRoleSelectors");
  const found: PolicyRule[] = [];
  const seen = new Set<string>();
  for (const other of clusterRoles.toSorted((a, b) => ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1))) {
    if (
      other.metadata.name === role.metadata.name ||
      !selectors.some((selector) => labelSelectorMatches(selector, other.metadata.labels))
    )
      continue;
    for (const rule of policyRules(other)) {
      const text = JSON.stringify(rule);
      if (!seen.has(text)) found.push(rule);
      seen.add(text);
    }
  }
  return found;
}

/** The answer of a SelfSubjectRulesReview. */
export function rulesReview(rules: readonly PolicyRule[]): {
  readonly resourceRules: readonly Record<string, readonly string[]>[];
  readonly nonResourceRules: readonly Record<string, readonly string[]>[];
  readonly incomplete: boolean;
} {
  const filled = (entries: Record<string, readonly string[]>): Record<string, readonly string[]> =>
    Object.fromEntries(Object.entries(entries).filter(([, values]) => values.length > 0));
  return {
    resourceRules: rules
      .filter(({ resources = [] }) => resources.length > 0)
      .map(({ verbs = [], apiGroups = [], resources = [], resourceNames = [] }) =>
        filled({ verbs, apiGroups, resources, resourceNames }),
      ),
    nonResourceRules: rules
      .filter(({ nonResourceURLs = [] }) => nonResourceURLs.length > 0)
      .map(({ verbs = [], nonResourceURLs = [] }) => filled({ verbs, nonResourceURLs })),
    incomplete: false,
  };
}
