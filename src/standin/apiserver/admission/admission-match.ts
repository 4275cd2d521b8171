import type { AdmissionRequest } from "./admission.ts";
import { inVersion } from "../schema/event-conversion.ts";
import type { Catalog } from "../schema/kinds/catalog.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import type { UserInfo } from "../schema/contract.ts";
import { isObject } from "../schema/json-values.ts";
import { labelSelectorMatches } from "../schema/selectors.ts";

/**
 * The write as a list of `rules` (webhooks) or `resourceRules` (policies) speaks of it; `undefined`: none does. Unless
 * `matchPolicy` is `Exact`, a rule about one version speaks of the same objects in every other, and sees them in its own:
 * `k8s.io/apiserver pkg/admission/plugin/policy/matching/matching.go (master)`.
 */
export function asMatched(
  rules: unknown,
  matchPolicy: unknown,
  request: AdmissionRequest,
  catalog: Catalog,
): AdmissionRequest | undefined {
  if (!Array.isArray(rules) || rules.length === 0) return undefined;
  const speaksOf = (one: AdmissionRequest) => rules.some((rule) => isObject(rule) && ruleMatches(rule, one));
  if (speaksOf(request)) return request;
  if (matchPolicy === "Exact") return undefined;
  const { served, object, before } = request;
  const other = catalog
    .versionsOf(served.stored)
    .find((version) => version !== served && speaksOf({ ...request, served: version }));
  if (other === undefined) return undefined;
  return {
    ...request,
    served: other,
    requested: served,
    object: object === undefined ? undefined : inVersion(object, other.apiVersion),
    before: before === undefined ? undefined : inVersion(before, other.apiVersion),
  };
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
  const requested = (request.requested ?? request.served).definition;
  const sub = request.subresource === "" ? {} : { subResource: request.subresource };
  const requestSub = request.subresource === "" ? {} : { requestSubResource: request.subresource };
  return {
    uid,
    kind: { group, version, kind },
    resource: { group, version, resource: plural },
    ...sub,
    requestKind: { group: requested.group, version: requested.version, kind: requested.kind },
    requestResource: { group: requested.group, version: requested.version, resource: requested.plural },
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
