import type { ParseResult } from "@marcbachmann/cel-js";
import { decodeBase64 } from "../../../../ignition/data-url.ts";
import type { Schema } from "../contract.ts";
import { formats, isTimestamp } from "../formats.ts";
import { isList, isObject, type JsonObject } from "../json-values.ts";
import { isObjectMeta, objectMeta, string } from "../schema-parts.ts";
import { markList } from "./cel-equality.ts";
import { kubernetesEnvironment } from "./cel-functions.ts";

/** Words that are no names in CEL; a property so called is written `__word__`. */
const reserved = new Set([
  "true",
  "false",
  "null",
  "in",
  "as",
  "break",
  "const",
  "continue",
  "else",
  "for",
  "function",
  "if",
  "import",
  "let",
  "loop",
  "package",
  "namespace",
  "return",
  "var",
  "void",
  "while",
]);

/** How a property is called in rules: kubernetes/apiserver pkg/cel/escaping.go (master). */
export function escapeName(name: string): string {
  if (reserved.has(name)) return `__${name}__`;
  return name.replaceAll(
    /__|[./-]/g,
    (found) => ({ __: "__underscores__", ".": "__dot__", "/": "__slash__", "-": "__dash__" })[found] ?? found,
  );
}

/** Of the metadata of a resource, rules may name no other fields. */
const namedMetadata: Readonly<Record<string, Schema>> = { name: string, generateName: string };

/**
 * The properties of an object that a rule may name. Those that a schema preserves without knowing them are none, and a
 * resource inside an object has `apiVersion`, `kind` and `metadata`.
 */
export function rulePropertiesOf(schema: Schema): Readonly<Record<string, Schema>> {
  if (isObjectMeta(schema)) return namedMetadata;
  return schema["x-kubernetes-embedded-resource"] === true
    ? { ...schema.properties, apiVersion: string, kind: string, metadata: objectMeta }
    : (schema.properties ?? {});
}

const namedProperties = new WeakMap<Schema, ReadonlyMap<string, Schema>>();

/** {@link rulePropertiesOf} by the names that rules give them; made once for each schema. */
export function namedPropertiesOf(schema: Schema): ReadonlyMap<string, Schema> {
  const known = namedProperties.get(schema);
  if (known !== undefined) return known;
  const named = new Map(Object.entries(rulePropertiesOf(schema)).map(([key, its]) => [escapeName(key), its]));
  namedProperties.set(schema, named);
  return named;
}

/** Lists and objects of one object, as CEL sees them, with the schema under which they were read. */
export type DecodedValues = Map<unknown, { readonly schema: Schema | undefined; readonly value: unknown }>;

/**
 * A JSON value as CEL sees it, under a schema if it has one: whole numbers are integers (BigInt) unless the schema says `number`,
 * formatted strings are times, durations and bytes, names of properties are escaped. Objects are Maps: the library
 * takes a plain one for something else if it has a key `constructor`.
 *
 * @param decoded what was read before: rules of each level of an object see all that is below it.
 */
export function toCel(value: unknown, schema?: Schema, decoded?: DecodedValues): unknown {
  if (typeof value === "number") return schema?.type !== "number" && Number.isInteger(value) ? BigInt(value) : value;
  if (typeof value === "string") return schema?.format === undefined ? value : formatted(value, schema.format);
  if (typeof value !== "object" || value === null) return value;
  const known = decoded?.get(value);
  if (known !== undefined && known.schema === schema) return known.value;
  const result = isList(value) ? listToCel(value, schema, decoded) : mapToCel(value as JsonObject, schema, decoded);
  decoded?.set(value, { schema, value: result });
  return result;
}

function listToCel(value: readonly unknown[], schema: Schema | undefined, decoded: DecodedValues | undefined): unknown {
  const list = value.map((item) => toCel(item, schema?.items, decoded));
  const keys = schema?.["x-kubernetes-list-map-keys"];
  if (schema?.["x-kubernetes-list-type"] === "set") markList(list, { kind: "set" });
  else if (schema?.["x-kubernetes-list-type"] === "map" && keys !== undefined)
    markList(list, { kind: "map", keys: keys.map(escapeName) });
  return list;
}

function mapToCel(value: JsonObject, schema: Schema | undefined, decoded: DecodedValues | undefined): unknown {
  const result = new Map<string, unknown>();
  const properties = schema?.properties;
  const rest = isObject(schema?.additionalProperties) ? (schema.additionalProperties as Schema) : undefined;
  for (const key of Object.keys(value)) {
    if (properties !== undefined && Object.hasOwn(properties, key))
      result.set(escapeName(key), toCel(value[key], properties[key], decoded));
    else result.set(key, toCel(value[key], rest, decoded));
  }
  return result;
}

let durations: ParseResult | undefined;

function formatted(value: string, format: string): unknown {
  if ((format === "date-time" || format === "datetime") && isTimestamp(value)) return new Date(Date.parse(value));
  if (format === "byte" && formats["byte"]?.(value) === true) return decodeBase64(value);
  if (format === "date" && formats["date"]?.(value) === true) return new Date(Date.parse(value));
  if (format === "duration") {
    durations ??= kubernetesEnvironment("run").registerVariable("text", "string").parse("duration(text)");
    try {
      return durations({ text: value });
    } catch {
      return value;
    }
  }
  return value;
}
