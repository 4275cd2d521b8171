import type { AdmissionRequest } from "./admission.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import type { UserInfo } from "../schema/contract.ts";
import { isObject } from "../schema/json-values.ts";
import { labelSelectorMatches } from "../schema/selectors.ts";

/** Whether a list of `rules` (webhooks) or `resourceRules` (policies) speaks of a write. */
export function anyRuleMatches(rules: unknown, request: AdmissionRequest): boolean {
  return Array.isArray(rules) && rules.some((rule) => isObject(rule) && ruleMatches(rule, request));
}

function ruleMatches(
  rule: Readonly<Record<string, unknown>>,
  { operation, served, subresource, name }: AdmissionRequest,
): boolean {
  const { group, version, plural, namespaced } = served.definition;
  const has = (field: string, value: string) => {
    const values = rule[field];
    return Array.isArray(values) && (values.includes("*") || values.includes(value));
  };
  if (!has("operations", operation) || !has("apiGroups", group) || !has("apiVersions", version)) return false;
  const { scope, resourceNames, resources } = rule;
  if (scope === "Namespaced" && !namespaced) return false;
  if (scope === "Cluster" && namespaced) return false;
  if (Array.isArray(resourceNames) && resourceNames.length > 0 && !resourceNames.includes(name)) return false;
  return Array.isArray(resources) && resources.some((pattern) => resourceMatches(String(pattern), plural, subresource));
}

/** `pods`, `pods/status`, `pods/*`, `*`, `*` + `/status`: subresources only match where they are spelled. */
function resourceMatches(pattern: string, plural: string, subresource: string): boolean {
  const [resource = "", sub = ""] = pattern.split("/");
  if (resource !== "*" && resource !== plural) return false;
  return pattern === "*" ? subresource === "" : sub === "*" || sub === subresource;
}

/** namespaceSelector and objectSelector of a webhook or policy. */
export function selectorsMatch(
  selectors: Readonly<Record<string, unknown>>,
  request: AdmissionRequest,
  live: LiveObjects,
): boolean {
  const { namespaceSelector, objectSelector } = selectors;
  if (isObject(namespaceSelector) && Object.keys(namespaceSelector).length > 0) {
    const isNamespace = request.served.stored === "namespaces";
    // What lives in no namespace is not narrowed by one.
    if (isNamespace || request.namespace !== "") {
      const labels = isNamespace
        ? (request.object ?? request.before)?.metadata.labels
        : live.get({ resource: "namespaces", namespace: "", name: request.namespace })?.object.metadata.labels;
      if (!labelSelectorMatches(namespaceSelector, labels)) return false;
    }
  }
  if (isObject(objectSelector) && Object.keys(objectSelector).length > 0) {
    return [request.object, request.before].some(
      (object) => object !== undefined && labelSelectorMatches(objectSelector, object.metadata.labels),
    );
  }
  return true;
}

/**
 * The `request` that webhooks are sent and expressions see: `k8s.io/api admission/v1 (master)` AdmissionRequest,
 * without the objects.
 */
export function describeRequest(request: AdmissionRequest, user: UserInfo, uid: string): Record<string, unknown> {
  const { group, version, kind, plural, namespaced } = request.served.definition;
  const gvk = { group, version, kind };
  const gvr = { group, version, resource: plural };
  const sub = request.subresource === "" ? {} : { subResource: request.subresource };
  const requestSub = request.subresource === "" ? {} : { requestSubResource: request.subresource };
  return {
    uid,
    kind: gvk,
    resource: gvr,
    ...sub,
    requestKind: gvk,
    requestResource: gvr,
    ...requestSub,
    ...(request.name === "" ? {} : { name: request.name }),
    ...(namespaced ? { namespace: request.namespace } : {}),
    operation: request.operation,
    userInfo: {
      username: user.name,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      groups: user.groups,
      ...(user.extra === undefined ? {} : { extra: user.extra }),
    },
    dryRun: request.dryRun,
    options: request.options,
  };
}
