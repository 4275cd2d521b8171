import { type Schema, written } from "../contract.ts";
import { formats } from "../formats.ts";
import { fieldOf } from "./field-set.ts";
import { isList, isObject, type JsonObject } from "../json-values.ts";
import { canonicalQuantity, parseQuantity } from "../../../../api/schema/quantities.ts";
import { microTime } from "../schema-parts.ts";

/**
 * Canonicalises a value of a built-in type in place, as Go does by decoding and encoding it: drops empty fields, adds
 * those that are always written. `encoding/json`, and the tags in kubernetes/api (v0.34).
 */
export function canonicalise(schema: Schema, value: unknown): void {
  if (isList(value)) {
    if (schema.items !== undefined) for (const item of value) canonicalise(schema.items, item);
    return;
  }
  if (!isObject(value)) return;
  const writings = schema[written];
  if (writings !== undefined) {
    for (const [name, writing] of writings) {
      const property = schema.properties?.[name];
      // A field with a default counts as absent when empty.
      if (
        writing === "always" &&
        (value[name] ?? undefined) === undefined &&
        (property?.default === undefined || property.type === "object")
      )
        value[name] = emptyValue(property);
    }
  }
  for (const key of Object.keys(value)) {
    const field = fieldOf(schema, key);
    if (field.schema === undefined) continue;
    canonicalise(field.schema, value[key]);
    const inner = value[key];
    if (field.schema.format === "quantity" && (typeof inner === "string" || typeof inner === "number"))
      value[key] = canonicalQuantity(String(inner));
    if (writings !== undefined && field.named && !writings.has(key) && isEmpty(value[key])) delete value[key];
  }
}

/** The content of a new object of a built-in type before any write. */
export function emptyObject(schema: Schema): JsonObject {
  const object: JsonObject = {};
  for (const [name, writing] of schema[written] ?? []) {
    const property = schema.properties?.[name];
    if (writing === "null") object[name] = property?.type === "array" ? [] : {};
    else if (writing === "always")
      object[name] = property?.type === "object" ? emptyObject(property) : emptyValue(property);
  }
  return object;
}

const isQuantityValue = (value: unknown): boolean =>
  (typeof value === "string" || typeof value === "number") && parseQuantity(String(value)) !== undefined;

/**
 * Why Go's decoder would not read a value as a built-in type; its words, but for the names of Go's own types.
 */
export function undecodable(schema: Schema, value: unknown, field = ""): string | undefined {
  if (value === null || value === undefined) return undefined;
  const wrong = (type: string, given = kindOf(value)) =>
    `json: cannot unmarshal ${given} into Go struct field ${field} of type ${type}`;
  if (schema.format === "quantity" && !isQuantityValue(value))
    return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  if (schema["x-kubernetes-int-or-string"] === true)
    return typeof value === "string" || typeof value === "number" ? undefined : wrong("intstr.IntOrString");
  switch (schema.type) {
    case "string":
      if (typeof value !== "string") return wrong("string");
      if (schema.format === "byte" && formats["byte"]?.(value) === false) return "illegal base64 data at input byte 0";
      return schema.format === "date-time" && value !== "" && Number.isNaN(Date.parse(value))
        ? `parsing time ${JSON.stringify(value)} as "2006-01-02T15:04:05${schema === microTime ? ".000000" : ""}Z07:00": cannot parse ${JSON.stringify(value)} as "2006"`
        : undefined;
    case "boolean":
      return typeof value === "boolean" ? undefined : wrong("bool");
    case "integer":
      if (
        schema.format === "int32" &&
        typeof value === "number" &&
        Number.isInteger(value) &&
        Math.abs(value + 0.5) > 2 ** 31
      )
        return wrong("int32", `number ${value}`);
      return typeof value === "number" && Number.isInteger(value) ? undefined : wrong(schema.format ?? "int64");
    case "array": {
      if (!isList(value)) return wrong("[]interface {}");
      const { items } = schema;
      return items === undefined
        ? undefined
        : value.reduce<string | undefined>((found, item) => found ?? undecodable(items, item, field), undefined);
    }
    case "object":
      if (!isObject(value)) return wrong("map[string]interface {}");
      return Object.keys(value).reduce<string | undefined>((found, key) => {
        const inner = fieldOf(schema, key);
        return (
          found ??
          (inner.schema === undefined
            ? undefined
            : undecodable(inner.schema, value[key], inner.named ? (field === "" ? key : `${field}.${key}`) : field))
        );
      }, undefined);
    default:
      return undefined;
  }
}

/**
 * Why the result of a strategic patch is no value of a built-in type. Go converts it into structs field by field, not
 * from JSON, and reports errors in other words. kubernetes/apimachinery pkg/runtime/converter.go (v0.34)
 */
export function inconvertible(schema: Schema, value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined;
  // These types read themselves.
  if (schema.format === "quantity" || schema.format === "date-time" || schema["x-kubernetes-int-or-string"] === true)
    return undecodable(schema, value);
  if (schema.type === "string" && schema.format === "byte") {
    if (typeof value !== "string") return `cannot restore slice from ${goKind(value)}`;
    return formats["byte"]?.(value) === false
      ? "error decoding from json: illegal base64 data at input byte 0"
      : undefined;
  }
  switch (schema.type) {
    case "string":
      if (typeof value === "string") return undefined;
      return goKind(value) === "int64" ? "cannot convert int64 to string" : "unrecognized type: string";
    case "boolean":
      return typeof value === "boolean" ? undefined : "unrecognized type: bool";
    case "integer": {
      const type = schema.format ?? "int64";
      if (typeof value !== "number") return `unrecognized type: ${type}`;
      return Number.isInteger(value) ? undefined : `cannot convert float64 to ${type}`;
    }
    case "array":
      if (!isList(value)) return `cannot restore slice from ${goKind(value)}`;
      return schema.items === undefined ? undefined : first(value, (item) => inconvertible(schema.items ?? {}, item));
    case "object": {
      if (!isObject(value))
        return schema.properties === undefined
          ? `cannot restore map from ${goKind(value)}`
          : `cannot restore struct from: ${goKind(value)}`;
      const fields = schema.properties === undefined ? Object.keys(value) : Object.keys(schema.properties);
      return first(fields, (field) => inconvertible(fieldOf(schema, field).schema ?? {}, value[field]));
    }
    default:
      return undefined;
  }
}

function first<T>(values: readonly T[], find: (value: T) => string | undefined): string | undefined {
  return values.reduce<string | undefined>((found, value) => found ?? find(value), undefined);
}

function goKind(value: unknown): string {
  if (isList(value)) return "slice";
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  if (typeof value === "boolean") return "bool";
  return isObject(value) ? "map" : "string";
}

function kindOf(value: unknown): string {
  if (isList(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

function isEmpty(value: unknown): boolean {
  if (isList(value)) return value.length === 0;
  if (isObject(value)) return Object.keys(value).length === 0;
  return value === null || value === false || value === 0 || value === "";
}

function emptyValue(schema: Schema | undefined): unknown {
  if (schema?.nullable === true) return null;
  if (schema?.type === "object") return {};
  if (schema?.format === "quantity") return "0";
  if (schema?.type === "boolean") return false;
  return schema?.type === "string" ? "" : 0;
}
