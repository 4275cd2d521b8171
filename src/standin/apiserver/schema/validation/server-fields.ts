import { own } from "../../../../api/schema/own.ts";
import type { KubeObject } from "../contract.ts";
import { isObject } from "../json-values.ts";
import { undecodable } from "../merge/canonicalise.ts";
import { objectMeta } from "../schema-parts.ts";

/** Why a server cannot read the metadata of an object. */
export interface MetadataFault {
  /** `metadata.labels` */
  readonly field: string;
  /** As Go's decoder puts it. */
  readonly message: string;
}

/** Types that the rest of the server relies on. Takes fields out that are null, and what no server stores. */
export function findMetadataFault(metadata: Readonly<Record<string, unknown>>): MetadataFault | undefined {
  const fields = metadata as Record<string, unknown>;
  for (const field of ["name", "generateName", "namespace", "uid", "resourceVersion"]) {
    const value = fields[field];
    if (value === null) delete fields[field];
    else if (value !== undefined && typeof value !== "string") return wrongType(value, field, "string");
    // Two names with different halves of a character would be one key in the store.
    else if (value?.isWellFormed() === false)
      return { field: `metadata.${field}`, message: `metadata.${field} has an incomplete character` };
  }
  for (const field of ["labels", "annotations"]) {
    const value = fields[field];
    if (value === null) delete fields[field];
    else if (value !== undefined && !isObject(value)) return wrongType(value, field, "map[string]string");
    else if (value !== undefined) {
      const wrong = Object.values(value).find((one) => typeof one !== "string");
      if (wrong !== undefined) return wrongType(wrong, field, "string");
    }
  }
  for (const field of ["finalizers", "ownerReferences", "managedFields"]) {
    const value = fields[field];
    if (value === null) delete fields[field];
    else if (
      value !== undefined &&
      (!Array.isArray(value) ||
        value.some((one) => (field === "finalizers" ? typeof one !== "string" : !isObject(one))))
    ) {
      return wrongType(value, field, field === "finalizers" ? "[]string" : "[]object");
    }
  }
  for (const field of ["creationTimestamp", "deletionTimestamp"]) {
    const value = fields[field];
    if (typeof value === "string" && Number.isNaN(Date.parse(value)))
      return {
        field: `metadata.${field}`,
        message: `parsing time ${JSON.stringify(value)} as "2006-01-02T15:04:05Z07:00": cannot parse ${JSON.stringify(value)} as "2006"`,
      };
  }
  delete fields["selfLink"];
  for (const [field, value] of Object.entries(fields)) {
    const message = undecodable(own(objectMeta.properties, field) ?? {}, value, `ObjectMeta.metadata.${field}`);
    if (message !== undefined) return { field: `metadata.${field}`, message };
  }
  return undefined;
}

/** As Go's decoder puts it. */
function wrongType(value: unknown, field: string, type: string): MetadataFault {
  const given = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
  return {
    field: `metadata.${field}`,
    message: `json: cannot unmarshal ${given} into Go struct field ObjectMeta.metadata.${field} of type ${type}`,
  };
}

/** The part of objects of a kind that its server counts, or that endpoints of its own write. */
interface ServersPart {
  /** Whether the status belongs to another endpoint than the one that makes the object. */
  readonly hasStatus: boolean;
  /** Kinds without a generation counter keep the value that a client sends, as on the real server. */
  readonly hasGeneration: boolean;
}

/**
 * Takes off a new object what no client sets: `BeforeCreate` in `k8s.io/apiserver pkg/registry/rest/create.go (v1.34)`, and
 * the strategies of kinds for their status. `managedFields` stay: an apply has written them already.
 */
export function dropServerFields(object: KubeObject, { hasStatus, hasGeneration }: ServersPart): void {
  const { metadata } = object;
  delete metadata.uid;
  delete metadata.creationTimestamp;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.resourceVersion;
  if (hasGeneration) delete metadata.generation;
  if (hasStatus) delete object["status"];
}
