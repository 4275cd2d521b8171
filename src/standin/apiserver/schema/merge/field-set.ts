import { rootSchema } from "../schema-parts.ts";
import { canonicalJson } from "../../../../core/text/canonical-json.ts";
import { type Schema, written } from "../contract.ts";
import { equalJson, isList, isObject, type JsonObject } from "../json-values.ts";
import { own } from "../../../../api/schema/own.ts";

/**
 * A set of fields of an object, as a tree. Keys are path elements in the form of FieldsV1: `f:name`, `k:{"name":"x"}`,
 * `v:"value"`, `i:0`. `member`: the field itself is in the set, not only something below it.
 * kubernetes-sigs/structured-merge-diff fieldpath/ (master)
 */
export interface FieldSet {
  member: boolean;
  readonly children: Map<string, FieldSet>;
}

/** The empty set. */
export function emptySet(): FieldSet {
  return { member: false, children: new Map() };
}

/** Whether the set is empty. */
export function isEmpty(set: FieldSet): boolean {
  return !set.member && set.children.size === 0;
}

/** Fields in either. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  const result: FieldSet = { member: a.member || b.member, children: new Map(a.children) };
  for (const [key, other] of b.children) {
    const mine = result.children.get(key);
    result.children.set(key, mine === undefined ? other : union(mine, other));
  }
  return result;
}

/** Fields in any of many sets, in one pass: to add them one by one would copy the sum for each. */
export function unionOf(sets: readonly FieldSet[]): FieldSet {
  const [first, ...more] = sets;
  if (first === undefined) return emptySet();
  if (more.length === 0) return first;
  const byKey = new Map<string, FieldSet[]>();
  for (const { children } of sets)
    for (const [key, child] of children) {
      const known = byKey.get(key);
      if (known === undefined) byKey.set(key, [child]);
      else known.push(child);
    }
  return {
    member: sets.some(({ member }) => member),
    children: new Map([...byKey].map(([key, children]) => [key, unionOf(children)])),
  };
}

/** Fields of `a` that are not in `b`. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  const result: FieldSet = { member: a.member && !b.member, children: new Map() };
  for (const [key, mine] of a.children) {
    const other = b.children.get(key);
    const rest = other === undefined ? mine : difference(mine, other);
    if (!isEmpty(rest)) result.children.set(key, rest);
  }
  return result;
}

/** Fields in both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  const result: FieldSet = { member: a.member && b.member, children: new Map() };
  for (const [key, mine] of a.children) {
    const other = b.children.get(key);
    if (other === undefined) continue;
    const both = intersection(mine, other);
    if (!isEmpty(both)) result.children.set(key, both);
  }
  return result;
}

/** Whether both hold the same fields. */
export function equalSets(a: FieldSet, b: FieldSet): boolean {
  if (a.member !== b.member || a.children.size !== b.children.size) return false;
  for (const [key, mine] of a.children) {
    const other = b.children.get(key);
    if (other === undefined || !equalSets(mine, other)) return false;
  }
  return true;
}

/** FieldsV1 → set. Unknown keys are dropped. */
export function parseFieldsV1(fields: unknown): FieldSet {
  const set = emptySet();
  if (!isObject(fields)) return set;
  for (const key of Object.keys(fields)) {
    if (key === ".") set.member = true;
    else if (/^[fkvi]:/.test(key)) {
      const child = parseFieldsV1(fields[key]);
      if (isEmpty(child)) child.member = true;
      set.children.set(key.startsWith("k:") || key.startsWith("v:") ? canonicalKey(key) : key, child);
    }
  }
  return set;
}

/** Set → FieldsV1: sorted, `{}` for a field without children. */
export function printFieldsV1(set: FieldSet): JsonObject {
  const result: JsonObject = {};
  if (set.member && set.children.size > 0) result["."] = {};
  for (const key of [...set.children.keys()].toSorted()) {
    const child = set.children.get(key);
    if (child !== undefined) result[key] = printFieldsV1(child);
  }
  return result;
}

/** Members as paths in the form of messages (`.spec.containers[name="x"].image`), in order. */
export function printPaths(set: FieldSet, prefix = ""): string[] {
  // On each level first the members, then their children.
  const sorted = [...set.children.entries()]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, child]) => ({ child, path: prefix + printElement(key) }));
  return [
    ...sorted.filter(({ child }) => child.member).map(({ path }) => path),
    ...sorted.flatMap(({ child, path }) => printPaths(child, path)),
  ];
}

function canonicalKey(key: string): string {
  try {
    return key.slice(0, 2) + canonicalJson(JSON.parse(key.slice(2)));
  } catch {
    return key;
  }
}

/** A path element as messages show it. */
export function printElement(key: string): string {
  const body = key.slice(2);
  switch (key.charAt(0)) {
    case "f":
      return `.${body}`;
    case "i":
      return `[${body}]`;
    case "v":
      return `[=${body}]`;
    default: {
      const fields: unknown = JSON.parse(body);
      return `[${Object.entries(isObject(fields) ? fields : {})
        .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
        .join(",")}]`;
    }
  }
}

/** How a value is owned and merged: as one, field by field, or item by item. */
export type Shape =
  | { readonly kind: "leaf" }
  | { readonly kind: "map"; readonly schema: Schema | undefined }
  | { readonly kind: "listMap" | "set"; readonly schema: Schema; readonly keys: readonly string[] };

const leaf: Shape = { kind: "leaf" };

/** Without a schema, objects are owned field by field and lists as one. */
export function shapeOf(value: unknown, schema: Schema | undefined): Shape {
  if (isObject(value)) return schema?.["x-kubernetes-map-type"] === "atomic" ? leaf : { kind: "map", schema };
  if (!isList(value) || schema === undefined) return leaf;
  if (schema["x-kubernetes-list-type"] === "set") return { kind: "set", schema, keys: [] };
  const keys = schema["x-kubernetes-list-map-keys"];
  if (schema["x-kubernetes-list-type"] === "map" && keys !== undefined) return { kind: "listMap", schema, keys };
  return leaf;
}

/** The schema of a field, and whether it is one of the named ones. */
export function fieldOf(
  schema: Schema | undefined,
  key: string,
): { readonly schema: Schema | undefined; readonly named: boolean } {
  // An object in a field has the metadata of every object, however little its definition says of it.
  const whole = schema?.["x-kubernetes-embedded-resource"] === true ? rootSchema(schema) : schema;
  const property = own(whole?.properties, key);
  if (property !== undefined) return { schema: property, named: true };
  return {
    schema: isObject(schema?.additionalProperties) ? (schema.additionalProperties as Schema) : undefined,
    named: false,
  };
}

/** The path element of an item of a list. An absent key takes the schema's default. */
export function elementOf(item: unknown, shape: Extract<Shape, { kind: "listMap" | "set" }>): string {
  if (shape.kind === "set" || !isObject(item)) return `v:${canonicalJson(item)}`;
  const key: JsonObject = {};
  for (const name of shape.keys) key[name] = item[name] ?? shape.schema.items?.properties?.[name]?.default ?? null;
  return `k:${canonicalJson(key)}`;
}

/** All fields that a value names: the fields that an applier claims. */
export function fieldsOf(value: unknown, schema: Schema | undefined): FieldSet {
  const shape = shapeOf(value, schema);
  const set = emptySet();
  if (shape.kind === "leaf") {
    set.member = true;
    return set;
  }
  if (shape.kind === "map") {
    if (!isObject(value)) return set;
    for (const key of Object.keys(value)) {
      const field = fieldOf(schema, key);
      const inner = value[key];
      const child = fieldsOf(inner, field.schema);
      // An empty list claims no field of a built-in type, which does not even write it.
      if (schema?.[written] !== undefined && isList(inner) && isEmpty(child)) continue;
      if (inner === null || isEmpty(child) || !field.named) child.member = true;
      set.children.set(`f:${key}`, child);
    }
    return set;
  }
  const byElement = new Map<string, FieldSet[]>();
  for (const item of isList(value) ? value : []) {
    const element = elementOf(item, shape);
    const child = shape.kind === "set" ? emptySet() : fieldsOf(item, shape.schema.items);
    child.member = true;
    const alike = byElement.get(element);
    if (alike === undefined) byElement.set(element, [child]);
    else alike.push(child);
  }
  for (const [element, alike] of byElement) set.children.set(element, unionOf(alike));
  return set;
}

/** The fields in which two values differ. */
export interface Comparison {
  readonly added: FieldSet;
  readonly removed: FieldSet;
  readonly modified: FieldSet;
}

/** Compares field by field; `undefined` is absent. */
export function compareValues(before: unknown, after: unknown, schema: Schema | undefined): Comparison {
  const result: Comparison = { added: emptySet(), removed: emptySet(), modified: emptySet() };
  compareInto(before, after, schema, result.added, result.removed, result.modified);
  return result;
}

/** Fields below what was added or removed count as well, and so does the container itself. */
function everything(value: unknown, schema: Schema | undefined): FieldSet {
  const shape = shapeOf(value, schema);
  const set = emptySet();
  set.member = true;
  if (shape.kind === "map" && isObject(value)) {
    for (const key of Object.keys(value))
      set.children.set(`f:${key}`, everything(value[key], fieldOf(schema, key).schema));
  } else if ((shape.kind === "listMap" || shape.kind === "set") && isList(value)) {
    for (const item of value)
      set.children.set(
        elementOf(item, shape),
        shape.kind === "set" ? memberOnly() : everything(item, shape.schema.items),
      );
  }
  return set;
}

function memberOnly(): FieldSet {
  return { member: true, children: new Map() };
}

function compareInto(
  before: unknown,
  after: unknown,
  schema: Schema | undefined,
  added: FieldSet,
  removed: FieldSet,
  modified: FieldSet,
): void {
  if (before === after) return;
  // Null is an empty container.
  if (before === null && shapeOf(after, schema).kind !== "leaf")
    return compareInto(isList(after) ? [] : {}, after, schema, added, removed, modified);
  if (after === null && shapeOf(before, schema).kind !== "leaf")
    return compareInto(before, isList(before) ? [] : {}, schema, added, removed, modified);
  const [old, now] = [shapeOf(before, schema), shapeOf(after, schema)];
  const descend = (key: string, was: unknown, is: unknown, inner: Schema | undefined): void => {
    if (was === undefined && is === undefined) return;
    const [a, r, m] = [emptySet(), emptySet(), emptySet()];
    if (was === undefined) merge(a, everything(is, inner));
    else if (is === undefined) merge(r, everything(was, inner));
    else compareInto(was, is, inner, a, r, m);
    if (!isEmpty(a)) added.children.set(key, a);
    if (!isEmpty(r)) removed.children.set(key, r);
    if (!isEmpty(m)) modified.children.set(key, m);
  };
  if (old.kind === "map" && now.kind === "map" && isObject(before) && isObject(after)) {
    for (const key of Object.keys(after))
      descend(`f:${key}`, own(before, key), after[key], fieldOf(schema, key).schema);
    for (const key of Object.keys(before))
      if (own(after, key) === undefined) descend(`f:${key}`, before[key], undefined, fieldOf(schema, key).schema);
    return;
  }
  if ((old.kind === "listMap" || old.kind === "set") && old.kind === now.kind && isList(before) && isList(after)) {
    const shape = old;
    const olds = new Map(before.map((item) => [elementOf(item, shape), item]));
    const news = new Map(after.map((item) => [elementOf(item, shape), item]));
    for (const [key, item] of news) {
      if (shape.kind === "set" && olds.has(key)) continue;
      descend(key, olds.get(key), item, shape.kind === "set" ? undefined : shape.schema.items);
    }
    for (const [key, item] of olds)
      if (!news.has(key)) descend(key, item, undefined, shape.kind === "set" ? undefined : shape.schema.items);
    return;
  }
  if (equalJson(before, after)) return;
  modified.member = true;
  // The type changed: everything below is new or gone as well.
  if (old.kind !== "leaf") merge(removed, { member: false, children: everything(before, schema).children });
  if (now.kind !== "leaf") merge(added, { member: false, children: everything(after, schema).children });
}

function merge(target: FieldSet, source: FieldSet): void {
  if (source.member) target.member = true;
  for (const [key, child] of source.children) target.children.set(key, child);
}
