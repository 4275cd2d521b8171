import Type, { type Static, type TObject, type TSchema } from "typebox";
import type { ApiGate, gateKeyword } from "../feature-sets.ts";

/** One of a closed set of strings, in the only form that CRDs accept: `enum` with a `type`. */
export const oneOf = <const Values extends readonly string[]>(
  values: Values,
  options: { default?: Values[number]; description?: string } & Gated = {},
) => Type.Unsafe<Values[number]>({ type: "string", enum: values, ...options });

/** A list that is merged by key, so that two appliers can own different entries. */
export const listMap = <Item extends TObject>(
  keys: readonly (string & keyof Static<Item>)[],
  item: Item,
  limits: ListLimits = {},
) => Type.Array(item, { ...limits, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys });

/** A list that is replaced as a whole (atomic). */
export const atomicList = <Item extends TSchema>(item: Item, limits: ListLimits = {}) =>
  Type.Array(item, { ...limits, "x-kubernetes-list-type": "atomic" });

/** A list that holds each value once. */
export const setOf = <Item extends TSchema>(item: Item, limits: ListLimits = {}) =>
  Type.Array(item, { ...limits, "x-kubernetes-list-type": "set" });

/** A map with arbitrary keys. `Type.Record` would emit `patternProperties`, which CRDs refuse. */
export const mapOf = <Value extends TSchema>(value: Value, options: { description?: string } = {}) =>
  Type.Unsafe<Record<string, Static<Value>>>({ type: "object", additionalProperties: value, ...options });

/** An object with arbitrary fields, which are preserved. */
export const anyObject = (options: { description?: string; nullable?: boolean } = {}) =>
  Type.Unsafe<Record<string, unknown>>({ type: "object", "x-kubernetes-preserve-unknown-fields": true, ...options });

export const intOrString = (options: { description?: string; pattern?: string } = {}) =>
  Type.Unsafe<number | string>({
    "x-kubernetes-int-or-string": true,
    anyOf: [{ type: "integer" }, { type: "string" }],
    ...options,
  });

export const dateTime = (options: Annotated = {}) =>
  Type.Unsafe<string>({ type: "string", format: "date-time", ...options });

/** Bytes, base64-encoded on the wire. */
export const bytes = (options: { description?: string; nullable?: boolean } = {}) =>
  Type.Unsafe<string>({ type: "string", format: "byte", ...options });

const dnsNameRule = {
  minLength: 1,
  maxLength: 253,
  pattern: "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)(\\.([a-z0-9]([-a-z0-9]*[a-z0-9])?))*$",
} as const;
const dnsNamePattern = new RegExp(dnsNameRule.pattern);

/** A DNS-1123 subdomain. */
export const dnsName = (options: Annotated & { readonly minLength?: number } = {}) =>
  Type.String({ ...dnsNameRule, ...options });

/** Whether a text is a DNS-1123 subdomain, as `dnsName` has it. */
export const isDnsName = (text: string): boolean => text.length <= dnsNameRule.maxLength && dnsNamePattern.test(text);

export const labelSelector = (description: string) =>
  Type.Object(
    {
      matchLabels: Type.Optional(mapOf(Type.String())),
      matchExpressions: Type.Optional(
        atomicList(
          Type.Object({
            key: Type.String(),
            operator: oneOf(["In", "NotIn", "Exists", "DoesNotExist"]),
            values: Type.Optional(atomicList(Type.String())),
          }),
        ),
      ),
    },
    { description, "x-kubernetes-map-type": "atomic" },
  );

export const objectReference = (extra: Record<string, TSchema> = {}) =>
  Type.Object(
    {
      apiVersion: Type.Optional(Type.String()),
      kind: Type.Optional(Type.String()),
      namespace: Type.Optional(Type.String()),
      name: Type.Optional(Type.String()),
      uid: Type.Optional(Type.String()),
      resourceVersion: Type.Optional(Type.String()),
      fieldPath: Type.Optional(Type.String()),
      ...extra,
    },
    { "x-kubernetes-map-type": "atomic" },
  );

/** `metav1.Condition`, merged by type. */
export const conditionList = (limits: ListLimits = {}) =>
  listMap(
    ["type"],
    Type.Object({
      type: Type.String({
        maxLength: 316,
        // Source: kubernetes/apimachinery pkg/apis/meta/v1/types.go (master)
        pattern:
          "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
      }),
      status: oneOf(["True", "False", "Unknown"]),
      reason: Type.String({ minLength: 1, maxLength: 1024, pattern: "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$" }),
      message: Type.String({ maxLength: 32768 }),
      lastTransitionTime: dateTime(),
      observedGeneration: Type.Optional(Type.Integer({ minimum: 0 })),
    }),
    limits,
  );

/** A part of a name: RFC 1123 label. */
export const dnsLabel = (options: Annotated = {}) =>
  Type.String({ minLength: 1, maxLength: 63, pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", ...options });
/** The plural of a kind: RFC 1035 label. */
export const resourceName = (options: Annotated = {}) =>
  Type.String({ minLength: 1, maxLength: 63, pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$", ...options });

/** An integer of 64 bits. */
export const int64 = (options: NumberOptions = {}) => Type.Integer({ format: "int64", ...options });
/** An integer of 32 bits. */
export const int32 = (options: NumberOptions = {}) => Type.Integer({ format: "int32", ...options });

interface Annotated {
  readonly description?: string;
  readonly "x-kubernetes-validations"?: readonly FieldRule[];
}
/** Of a field that exists where the cluster has a feature. */
interface Gated {
  readonly [gateKeyword]?: ApiGate;
}
interface ListLimits extends Annotated, Gated {
  readonly maxItems?: number;
  readonly minItems?: number;
}
interface NumberOptions extends Annotated {
  readonly minimum?: number;
  readonly maximum?: number;
}

/** A rule of one field: CEL over `self`, and over `oldSelf` where a change is judged. */
export interface FieldRule {
  readonly rule: string;
  readonly message: string;
}

/** The rule of a counter that only rises. */
export const neverFalls = (field: string) => ({
  "x-kubernetes-validations": [{ rule: "self >= oldSelf", message: `${field} must not fall` }],
});

/** The older form of conditions: texts without limits, list replaced as a whole. */
export const looseConditionList = () =>
  atomicList(
    Type.Object({
      type: Type.Optional(Type.String()),
      status: Type.Optional(Type.String()),
      reason: Type.Optional(Type.String()),
      message: Type.Optional(Type.String()),
      lastTransitionTime: Type.Optional(Type.Unsafe<string>({ type: "string", format: "date-time", nullable: true })),
    }),
  );
