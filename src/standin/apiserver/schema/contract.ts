/**
 * The border between the API server's engine (storage, requests, watches) and its pure half (schemas, patches,
 * ownership, tables): data types and the signatures of the functions that the engine calls.
 */

import type { OwnerReference } from "../../../api/schema/object.ts";

export type { OwnerReference };

/** Any stored object. Always has apiVersion, kind and metadata once it passed the front door. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: unknown;
}

export interface ObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
}

export interface ManagedFieldsEntry {
  manager?: string;
  operation?: "Apply" | "Update";
  apiVersion?: string;
  time?: string;
  fieldsType?: "FieldsV1";
  fieldsV1?: Record<string, unknown>;
  subresource?: string;
}

/**
 * How a field of a built-in type is written that is not simply left out when empty: `always`, also when empty;
 * `pointer`, also when empty if it was given; `null`, as such.
 */
export type Writing = "always" | "pointer" | "null";

/** Schema key of {@link Writing}; a symbol, because it is no part of the schema that is published. */
export const written = Symbol("written");

/** Schema key of the fields that the documentation lists as required; validation follows the rules of the kind. */
export const documentedRequired = Symbol("documentedRequired");

/** A structural OpenAPI v3 schema with Kubernetes' extensions. */
export interface Schema {
  [written]?: ReadonlyMap<string, Writing>;
  [documentedRequired]?: readonly string[];
  type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  format?: string;
  description?: string;
  nullable?: boolean;
  default?: unknown;
  enum?: readonly unknown[];
  properties?: Readonly<Record<string, Schema>>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  required?: readonly string[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: boolean;
  exclusiveMaximum?: boolean;
  multipleOf?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minProperties?: number;
  maxProperties?: number;
  allOf?: readonly Schema[];
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  not?: Schema;
  "x-kubernetes-preserve-unknown-fields"?: boolean;
  "x-kubernetes-embedded-resource"?: boolean;
  "x-kubernetes-int-or-string"?: boolean;
  "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  "x-kubernetes-list-map-keys"?: readonly string[];
  "x-kubernetes-map-type"?: "atomic" | "granular";
  "x-kubernetes-patch-merge-key"?: string;
  "x-kubernetes-patch-strategy"?: string;
  "x-kubernetes-validations"?: readonly ValidationRule[];
}

export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

export interface PrinterColumn {
  readonly name: string;
  readonly type: string;
  readonly format?: string;
  readonly description?: string;
  readonly priority?: number;
  readonly jsonPath: string;
}

export interface TableCells {
  readonly columns: readonly {
    readonly name: string;
    readonly type: string;
    readonly format: string;
    readonly description: string;
    readonly priority: number;
  }[];
  /** `now`: milliseconds since the epoch, for ages. */
  row(object: KubeObject, now: number): readonly unknown[];
}

/** One reason why a value is refused; becomes `status.details.causes[]` and a part of the message. */
export interface FieldError {
  /**
   * `FieldValueInvalid`, `FieldValueRequired`, `FieldValueNotSupported`, `FieldValueDuplicate`, `FieldValueTooLong`,
   * `FieldValueTooMany`, `FieldValueForbidden`, `FieldValueTypeInvalid`, …
   */
  readonly reason: string;
  /** `spec.containers[0].name` */
  readonly field: string;
  /** The whole text as Kubernetes prints it after the field: `Invalid value: "x": must be …`. */
  readonly message: string;
  /** It only says that other errors kept the kind's rules from being checked. */
  readonly isRest?: true;
}

/** One served kind in one version. */
export interface ResourceDefinition {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Verbs in discovery order, for example create, delete, deletecollection, get, list, patch, update, watch. */
  readonly verbs: readonly string[];
  /** `true`: born from a CustomResourceDefinition; answers 415 to strategic merge patches. */
  readonly custom: boolean;
  readonly subresources: readonly SubresourceDefinition[];
  /** With `status`: whether /status exists, so that the main endpoint ignores status and the other way round. */
  readonly hasStatus: boolean;
  readonly scale?: {
    readonly specReplicasPath: string;
    readonly statusReplicasPath: string;
    readonly labelSelectorPath?: string;
  };
  readonly schema: Schema;
  readonly columns?: readonly PrinterColumn[];
  readonly table: TableCells;
  /**
   * Whether a change from `before` to `after` bumps metadata.generation (the default: anything but metadata and status
   * changed; kinds without spec: never).
   */
  generationChanged(before: KubeObject, after: KubeObject): boolean;
  /**
   * Defaults and normalisation beyond the schema's (a Secret's stringData, a Pod's qosClass …). Changes `object` in
   * place.
   */
  prepare(object: KubeObject, before: KubeObject | undefined): void;
  /**
   * Rules beyond the schema's: metadata (name, labels, owners, finalizers), immutability, cross-field. `before` is
   * undefined on create.
   */
  validate(object: KubeObject, before: KubeObject | undefined, subresource: string): readonly FieldError[];
  /** Values that a field selector may name, beside metadata.name and metadata.namespace. */
  readonly selectableFields: Readonly<Record<string, (object: KubeObject) => string>>;
}

export interface SubresourceDefinition {
  /** `status`, `scale`, `eviction`, `binding`, `log`, `token`, `approval`, `finalize`. */
  readonly name: string;
  /** The kind of its body if it differs. */
  readonly kind?: { readonly group: string; readonly version: string; readonly kind: string };
  readonly verbs: readonly string[];
}

/**
 * A schema made ready for use. One per definition, built once. `schema/structural.ts`: `compileSchema(schema):
 * CompiledSchema`.
 */
export interface CompiledSchema {
  /** Fills defaults in place. */
  applyDefaults(object: KubeObject): void;
  /** Why a value of a built-in type cannot be read at all. */
  undecodable(object: KubeObject): string | undefined;
  /** Drops unknown fields in place and returns the first of their paths, sorted (`spec.foo`, `spec.containers[0].bar`). */
  prune(object: KubeObject): readonly string[];
  /** Schema rules and CEL rules; `before` for transition rules. Type errors come first. */
  validate(object: KubeObject, before: KubeObject | undefined): readonly FieldError[];
}

/** `schema/patches.ts` */
export type PatchResult =
  | { readonly verdict: "patched"; readonly object: unknown }
  | {
      readonly verdict: "refused";
      readonly status: number;
      readonly reason: string;
      readonly message: string;
      readonly causes?: readonly FieldError[];
    };
export type JsonPatch = (object: unknown, operations: unknown) => PatchResult;
export type MergePatch = (object: unknown, patch: unknown) => PatchResult;
export type StrategicMergePatch = (object: unknown, patch: unknown, schema: Schema) => PatchResult;

/** `schema/field-sets.ts` */
export interface ApplyRequest {
  readonly live: KubeObject | undefined;
  readonly applied: KubeObject;
  /** The `namespace/name` of `applied`; either may be empty. */
  readonly name: string;
  /** Paths that the endpoint does not write: naming them yields no ownership. */
  readonly reset?: readonly (readonly string[])[];
  readonly schema: Schema;
  readonly manager: string;
  readonly force: boolean;
  /** RFC 3339 */
  readonly time: string;
  readonly subresource?: string;
}
export type ApplyResult =
  | { readonly verdict: "applied"; readonly object: KubeObject }
  /** 409 with one cause `FieldManagerConflict` for each field. */
  | {
      readonly verdict: "conflict";
      readonly message: string;
      readonly causes: readonly {
        readonly reason: "FieldManagerConflict";
        readonly field: string;
        readonly message: string;
      }[];
    }
  | { readonly verdict: "refused"; readonly status: number; readonly message: string };
/** `applyServerSide(request): ApplyResult` merges, and writes metadata.managedFields of the result. */
export type ApplyServerSide = (request: ApplyRequest) => ApplyResult;
/**
 * `trackUpdate(before, after, schema, {manager, time, subresource}): void` rewrites after.metadata.managedFields for a
 * create, update or patch.
 */
export type TrackUpdate = (
  before: KubeObject | undefined,
  after: KubeObject,
  schema: Schema,
  by: { readonly manager: string; readonly time: string; readonly subresource?: string },
) => void;

/** `schema/selectors.ts`: parse → matcher, or the message of a 400. */
export type ParsedSelector<Target> =
  | {
      readonly verdict: "valid";
      readonly matches: (target: Target) => boolean;
      readonly requires?: Readonly<Record<string, string>>;
    }
  | { readonly verdict: "invalid"; readonly message: string };

/** `schema/custom-resource-definition.ts`: `definitionsOf(crd): …` */
export type CustomDefinitions =
  | { readonly verdict: "served"; readonly definitions: readonly ResourceDefinition[]; readonly storageVersion: string }
  | { readonly verdict: "refused"; readonly errors: readonly FieldError[] };

/** The requester. `schema/rbac.ts` decides from this and the rules. */
export interface UserInfo {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/**
 * Of everything, a part is kept for machines, and another for administrators and the components of the cluster: root on one
 * machine takes nothing of it.
 */
export type Part = "others" | "nodes" | "cluster";

/** Whose part of the server's connections, memory and time a request takes. */
export interface Share {
  readonly of: string;
  readonly part: Part;
}

export interface AccessAttributes {
  readonly user: UserInfo;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Set for paths that are no resources (`/version`). */
  readonly path?: string;
}

/** A served kind in one version, ready for use. */
export interface Served {
  readonly definition: ResourceDefinition;
  readonly schema: CompiledSchema;
  /** Under which resource its objects are stored: `deployments.apps`. */
  readonly stored: string;
  /** The apiVersion that they are stored in. */
  readonly storedApiVersion: string;
  readonly apiVersion: string;
  /** Whether objects count the changes of their spec. */
  readonly hasGeneration: boolean;
}
