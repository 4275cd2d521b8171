import type { ResourceDefinition } from "../contract.ts";
import type { JsonObject } from "../json-values.ts";

/** The forms in which a client may ask for discovery. */
export type DiscoveryForm = "v2" | "v2beta1";

/**
 * Everything below `/api` (`core`) or `/apis` (`groups`) in one document: apidiscovery.k8s.io v2 or v2beta1, which
 * differ in name only. kubernetes/apiserver pkg/endpoints/discovery/aggregated (master)
 */
export function aggregatedDiscovery(
  definitions: readonly ResourceDefinition[],
  path: "core" | "groups",
  form: DiscoveryForm,
): JsonObject {
  const groups = groupsOf(definitions).filter(({ group }) => (group === "") === (path === "core"));
  return {
    kind: "APIGroupDiscoveryList",
    apiVersion: `apidiscovery.k8s.io/${form}`,
    metadata: {},
    items: groups.map(({ group, versions }) => ({
      metadata: { name: group, creationTimestamp: null },
      versions: versions.map(({ version, resources }) => ({
        version,
        resources: resources.map(aggregatedResource),
        freshness: "Current",
      })),
    })),
  };
}

/** `/api` in the old form. */
export function legacyVersions(address: string): JsonObject {
  return {
    kind: "APIVersions",
    versions: ["v1"],
    serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: address }],
  };
}

/** `/apis` in the old form. */
export function legacyGroups(definitions: readonly ResourceDefinition[]): JsonObject {
  return {
    kind: "APIGroupList",
    apiVersion: "v1",
    groups: groupsOf(definitions)
      .filter(({ group }) => group !== "")
      .map(legacyGroup),
  };
}

/** `/apis/GROUP`; undefined: no such group. */
export function legacyGroupOf(definitions: readonly ResourceDefinition[], group: string): JsonObject | undefined {
  const found = groupsOf(definitions).find((one) => one.group === group && group !== "");
  return found === undefined ? undefined : { kind: "APIGroup", apiVersion: "v1", ...legacyGroup(found) };
}

/** `/api/v1`, `/apis/GROUP/VERSION`; undefined: nothing is served there. */
export function legacyResources(
  definitions: readonly ResourceDefinition[],
  group: string,
  version: string,
): JsonObject | undefined {
  const served = definitions.filter((definition) => definition.group === group && definition.version === version);
  if (served.length === 0) return undefined;
  return {
    kind: "APIResourceList",
    ...(group === "" ? {} : { apiVersion: "v1" }),
    groupVersion: groupVersion(group, version),
    resources: served.flatMap(legacyResource),
  };
}

interface ServedGroup {
  readonly group: string;
  readonly versions: readonly { readonly version: string; readonly resources: readonly ResourceDefinition[] }[];
}

/** In order of first appearance, versions by priority. */
function groupsOf(definitions: readonly ResourceDefinition[]): readonly ServedGroup[] {
  const groups = new Map<string, Map<string, ResourceDefinition[]>>();
  for (const definition of definitions) {
    const versions = groups.get(definition.group) ?? new Map<string, ResourceDefinition[]>();
    groups.set(definition.group, versions);
    const resources = versions.get(definition.version) ?? [];
    versions.set(definition.version, resources);
    resources.push(definition);
  }
  return [...groups].map(([group, versions]) => ({
    group,
    versions: [...versions]
      .toSorted(([a], [b]) => compareVersions(a, b))
      .map(([version, resources]) => ({ version, resources })),
  }));
}

/** v2, v1, v1beta2, v1beta1, v1alpha1, others: kubernetes/apimachinery pkg/version/helpers.go (master). */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [versionRank(a), versionRank(b)];
  if (left === undefined || right === undefined) return left === right ? (a < b ? -1 : 1) : left === undefined ? 1 : -1;
  return right.stability - left.stability || right.major - left.major || right.minor - left.minor;
}

function versionRank(
  version: string,
): { readonly stability: number; readonly major: number; readonly minor: number } | undefined {
  const parts = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (parts === null) return undefined;
  return {
    stability: parts[2] === undefined ? 2 : parts[2] === "beta" ? 1 : 0,
    major: Number(parts[1]),
    minor: Number(parts[3] ?? 0),
  };
}

function groupVersion(group: string, version: string): string {
  return group === "" ? version : `${group}/${version}`;
}

function aggregatedResource(definition: ResourceDefinition): JsonObject {
  const { group, version, kind, plural, singular, shortNames, categories, namespaced, verbs, subresources } =
    definition;
  return {
    resource: plural,
    responseKind: { group, version, kind },
    scope: namespaced ? "Namespaced" : "Cluster",
    singularResource: singular,
    verbs,
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
    ...(subresources.length > 0
      ? {
          subresources: subresources.map((sub) => ({
            subresource: sub.name,
            responseKind: sub.kind ?? { group, version, kind },
            verbs: sub.verbs,
          })),
        }
      : {}),
  };
}

function legacyGroup({ group, versions }: ServedGroup): JsonObject {
  const listed = versions.map(({ version }) => ({ groupVersion: groupVersion(group, version), version }));
  return { name: group, versions: listed, preferredVersion: listed[0] };
}

function legacyResource(definition: ResourceDefinition): readonly JsonObject[] {
  const { kind, plural, singular, shortNames, categories, namespaced, verbs, subresources } = definition;
  return [
    {
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs,
      ...(shortNames.length > 0 ? { shortNames } : {}),
      ...(categories.length > 0 ? { categories } : {}),
    },
    ...subresources.map((sub) => ({
      name: `${plural}/${sub.name}`,
      singularName: "",
      namespaced,
      ...(sub.kind === undefined ? {} : { group: sub.kind.group, version: sub.kind.version }),
      kind: sub.kind?.kind ?? kind,
      verbs: sub.verbs,
    })),
  ];
}
