import type { FieldError, KubeObject, ResourceDefinition, SubresourceDefinition } from "../contract.ts";
import { typeSchema } from "./builtin-types.ts";
import { at, equalJson, isObject, type JsonObject } from "../json-values.ts";
import { validateFinalizers, subdomainName, validateMetadata, type NameRule } from "../validation/object-validation.ts";
import { builtinTable } from "../tables.ts";

const allVerbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"] as const;

export interface KindOptions {
  readonly plural?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly clusterScoped?: boolean;
  readonly verbs?: readonly string[];
  readonly status?: boolean;
  readonly scale?: boolean;
  readonly subresources?: readonly SubresourceDefinition[];
  /** The row of the type table, where it is not called as the kind. */
  readonly type?: string;
  readonly name?: NameRule;
  /** `never`: the kind has no generation; `annotations`: they count as well. */
  readonly generation?: "never" | "annotations";
  readonly prepare?: (object: KubeObject, before: KubeObject | undefined) => void;
  readonly validate?: (
    object: KubeObject,
    before: KubeObject | undefined,
    subresource: string,
  ) => readonly FieldError[];
  readonly selectableFields?: ResourceDefinition["selectableFields"];
}

const scaleKind = { group: "autoscaling", version: "v1", kind: "Scale" };

/** Groups that judge metadata by the rules of all kinds alone. */
const plainMetadata: ReadonlySet<string> = new Set([
  "admissionregistration.k8s.io",
  "apiextensions.k8s.io",
  "apiregistration.k8s.io",
  "coordination.k8s.io",
  "policy",
]);

/**
 * Kinds whose updates are judged as new objects are, too: `ValidateXUpdate` in `k8s.io/kubernetes pkg/apis (v1.34)`
 * calls `ValidateX`.
 */
const judgedAnew: ReadonlySet<string> = new Set([
  "ClusterRole",
  "ClusterRoleBinding",
  "ConfigMap",
  "CSINode",
  "PersistentVolume",
  "PersistentVolumeClaim",
  "Role",
  "RoleBinding",
  "Secret",
  "Service",
  "ServiceAccount",
  "VolumeAttachment",
]);

export function kind(group: string, version: string, name: string, options: KindOptions = {}): ResourceDefinition {
  const hasStatus = options.status === true;
  const subresources: SubresourceDefinition[] = [...(options.subresources ?? [])];
  if (options.scale === true) subresources.push({ name: "scale", kind: scaleKind, verbs: ["get", "patch", "update"] });
  if (hasStatus) subresources.push({ name: "status", verbs: ["get", "patch", "update"] });
  return {
    group,
    version,
    kind: name,
    listKind: `${name}List`,
    plural: options.plural ?? `${name.toLowerCase()}s`,
    singular: name.toLowerCase(),
    shortNames: options.shortNames ?? [],
    categories: options.categories ?? [],
    namespaced: options.clusterScoped !== true,
    verbs: options.verbs ?? allVerbs,
    custom: false,
    subresources,
    hasStatus,
    ...(options.scale === true
      ? {
          scale: {
            specReplicasPath: ".spec.replicas",
            statusReplicasPath: ".status.replicas",
            labelSelectorPath: ".spec.selector",
          },
        }
      : {}),
    schema: typeSchema(options.type ?? name),
    table: builtinTable(name),
    generationChanged:
      options.generation === "never"
        ? () => false
        : (before, after) =>
            !equalJson(withoutVolatile(before), withoutVolatile(after)) ||
            (options.generation === "annotations" &&
              !equalJson(before.metadata.annotations ?? {}, after.metadata.annotations ?? {})),
    prepare: options.prepare ?? (() => undefined),
    // On an update, the real server validates metadata twice, for all kinds and for this one, and reports both.
    validate: (object, before, subresource) => [
      ...(before === undefined ? [] : validateMetadata(object, before, options.name ?? subdomainName)),
      ...validateMetadata(object, before, options.name ?? subdomainName),
      ...(plainMetadata.has(group) ? [] : validateFinalizers(object)),
      ...(before !== undefined && judgedAnew.has(name)
        ? [...validateMetadata(object, undefined, options.name ?? subdomainName), ...validateFinalizers(object)]
        : []),
      ...(options.validate?.(object, before, subresource) ?? []),
    ],
    selectableFields: options.selectableFields ?? {},
  };
}

function withoutVolatile(object: KubeObject): JsonObject {
  const { metadata: _metadata, status: _status, apiVersion: _apiVersion, kind: _kind, ...rest } = object;
  return rest;
}

export function objectIn(parent: JsonObject, field: string): JsonObject {
  const current = parent[field];
  if (isObject(current)) return current;
  const made: JsonObject = {};
  parent[field] = made;
  return made;
}

/** An empty text is an absent one. */
export function setDefault(target: JsonObject, field: string, value: unknown): void {
  if (target[field] === "") target[field] = value;
  target[field] ??= value;
}

export function isZero(value: unknown): boolean {
  return value === 0 || value === "0%" || value === "0";
}

/** A value as the real server prints its own struct: every field, by its name in Go. */
export function asGo(value: unknown, fields: readonly string[]): JsonObject {
  return Object.fromEntries(
    fields.map((field) => [
      field === "apiGroup" ? "APIGroup" : `${field.charAt(0).toUpperCase()}${field.slice(1)}`,
      at(value, field) ?? null,
    ]),
  );
}
