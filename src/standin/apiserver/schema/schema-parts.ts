import { type Schema, documentedRequired, written } from "./contract.ts";

/** Words to write schemas of built-in kinds with. */

export const string: Schema = { type: "string" };
export const integer: Schema = { type: "integer", format: "int32" };
export const long: Schema = { type: "integer", format: "int64" };
export const boolean: Schema = { type: "boolean" };
export const intOrString: Schema = { "x-kubernetes-int-or-string": true, [written]: new Map() };
/** `100m`, `2Gi`, or a number. */
export const quantity: Schema = { "x-kubernetes-int-or-string": true, format: "quantity", [written]: new Map() };
export const time: Schema = { type: "string", format: "date-time", nullable: true };
/** A time that Go reads with microseconds; published as any other. */
export const microTime: Schema = { ...time };
/** base64 */
export const bytes: Schema = { type: "string", format: "byte" };
/** An object with unspecified fields. */
export const anything: Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
export const stringMap: Schema = { type: "object", additionalProperties: string };
export const strings: Schema = { type: "array", items: string, "x-kubernetes-list-type": "atomic" };

/** An object with exactly these fields. */
export function object(properties: Readonly<Record<string, Schema>>, more: Schema = {}): Schema {
  return { type: "object", properties, ...more };
}

/** An object whose other fields are kept as they are. */
export function open(properties: Readonly<Record<string, Schema>>, more: Schema = {}): Schema {
  return { type: "object", properties, "x-kubernetes-preserve-unknown-fields": true, ...more };
}

/** A map that an apply replaces as a whole. */
export function atomic(schema: Schema): Schema {
  return schema.type === "array"
    ? { ...schema, "x-kubernetes-list-type": "atomic" }
    : { ...schema, "x-kubernetes-map-type": "atomic" };
}

/** A list that is replaced as a whole. */
export function list(items: Schema): Schema {
  return { type: "array", items, "x-kubernetes-list-type": "atomic" };
}

/** A list whose items are identified by `keys`; strategic patches merge it by the first of them. */
export function listMap(keys: readonly string[], items: Schema, more: Schema = {}): Schema {
  const [key = ""] = keys;
  return {
    type: "array",
    items,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": keys,
    "x-kubernetes-patch-merge-key": key,
    "x-kubernetes-patch-strategy": "merge",
    ...more,
  };
}

/** A list of different strings; strategic patches add to it. */
export function set(items: Schema): Schema {
  return { type: "array", items, "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge" };
}

/** The same schema with a default. */
export function defaulted(schema: Schema, value: unknown): Schema {
  return { ...schema, default: value };
}

/** kubernetes/apimachinery pkg/apis/meta/v1/types.go (master) */
export const objectMeta: Schema = object(
  {
    name: string,
    generateName: string,
    namespace: string,
    selfLink: string,
    uid: string,
    resourceVersion: string,
    generation: long,
    creationTimestamp: time,
    deletionTimestamp: time,
    deletionGracePeriodSeconds: long,
    labels: stringMap,
    annotations: stringMap,
    ownerReferences: listMap(
      ["uid"],
      atomic(
        object(
          {
            apiVersion: string,
            kind: string,
            name: string,
            uid: string,
            controller: boolean,
            blockOwnerDeletion: boolean,
          },
          {
            [documentedRequired]: ["apiVersion", "kind", "name", "uid"],
            [written]: new Map([
              ...["apiVersion", "kind", "name", "uid"].map((field) => [field, "always"] as const),
              ...["controller", "blockOwnerDeletion"].map((field) => [field, "pointer"] as const),
            ]),
          },
        ),
      ),
    ),
    finalizers: set(string),
    managedFields: list(
      object({
        manager: string,
        operation: string,
        apiVersion: string,
        time,
        fieldsType: string,
        fieldsV1: anything,
        subresource: string,
      }),
    ),
  },
  {
    [written]: new Map([
      ["deletionGracePeriodSeconds", "pointer"],
      ["managedFields", "pointer"],
    ]),
  },
);

const roots = new WeakMap<Schema, Schema>();
const metas = new WeakSet<Schema>([objectMeta]);

/** Whether a schema is that of the metadata of a whole object. */
export const isObjectMeta = (schema: Schema): boolean => metas.has(schema);

/** The schema of a whole object: apiVersion, kind and metadata are Kubernetes' own, whatever `schema` says of them. */
export function rootSchema(schema: Schema): Schema {
  const known = roots.get(schema);
  if (known !== undefined) return known;
  const given = schema.properties?.["metadata"]?.properties;
  const metadata: Schema =
    given === undefined || schema.properties?.["metadata"] === objectMeta
      ? objectMeta
      : {
          ...objectMeta,
          properties: {
            ...objectMeta.properties,
            ...(given["name"] === undefined ? {} : { name: given["name"] }),
            ...(given["generateName"] === undefined ? {} : { generateName: given["generateName"] }),
          },
        };
  metas.add(metadata);
  const root: Schema = { ...schema, properties: { ...schema.properties, apiVersion: string, kind: string, metadata } };
  roots.set(schema, root);
  roots.set(root, root);
  return root;
}
