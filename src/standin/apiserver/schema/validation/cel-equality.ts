import { Optional } from "@marcbachmann/cel-js";
import { equalJson, isList } from "../json-values.ts";
import { spend, spendOn, traversal } from "./cel-cost.ts";

/** A list by its schema's `x-kubernetes-list-type`: the order of a set is irrelevant, and items of a map have keys. */
export type ListKind =
  | { readonly kind: "set" }
  | { readonly kind: "map"; /** As expressions spell them. */ readonly keys: readonly string[] };

const kinds = new WeakMap<readonly unknown[], ListKind>();

/** Records the list type of a value, which decides its equality and addition. */
export function markList(list: readonly unknown[], kind: ListKind): void {
  kinds.set(list, kind);
}

/** Values that define their own equality. */
export interface Comparable {
  equals(other: unknown): boolean;
}

/** The index of the first item that equals a value, or -1. Each comparison costs 1. */
export function indexIn(all: readonly unknown[], wanted: unknown): number {
  return all.findIndex((one) => {
    spend(1);
    return same(one, wanted);
  });
}

/** Whether each of some values is among all. */
export function contains(all: readonly unknown[], some: readonly unknown[]): boolean {
  return some.every((one) => indexIn(all, one) !== -1);
}

/** Most texts differ in their length, their first or their last letters: to see that costs nothing. */
function mayBeEqual(a: string, b: string): boolean {
  const { length } = a;
  if (length !== b.length) return false;
  for (const at of [0, length - 1, length - 2, length - 3, length - 4])
    if (at >= 0 && at < length && a.charCodeAt(at) !== b.charCodeAt(at)) return false;
  return true;
}

/**
 * Whether two values of an expression are equal. If the left one is a list of type `set` or `map`, order is irrelevant:
 * kubernetes/apiserver pkg/cel/common/values.go (v1.34).
 */
export function same(a: unknown, b: unknown): boolean {
  if (typeof a === "string" && typeof b === "string") {
    if (!mayBeEqual(a, b)) return false;
    spendOn(a.length);
    return a === b;
  }
  if (a === b) return true;
  if (isNumber(a) || isNumber(b)) return isNumber(a) && isNumber(b) && numberOf(a) == numberOf(b);
  if (isList(a)) return isList(b) && sameLists(a, b);
  if (a instanceof Uint8Array) {
    spendOn(a.length);
    return b instanceof Uint8Array && a.length === b.length && a.every((byte, index) => byte === b[index]);
  }
  if (a instanceof Date) return b instanceof Date && a.getTime() === b.getTime();
  if (isDuration(a)) return isDuration(b) && String(a) === String(b);
  if (a instanceof Optional)
    return b instanceof Optional && (a.hasValue() ? b.hasValue() && same(a.value(), b.value()) : !b.hasValue());
  if (isComparable(a)) return a.equals(b);
  const [some, others] = [mapOf(a), mapOf(b)];
  if (some === undefined || others === undefined)
    return some === undefined && others === undefined && equalJson(a, b) && Object(a) !== a;
  if (some.size !== others.size) return false;
  spend(some.size * traversal);
  return [...some].every(([key, value]) => others.has(key) && same(value, others.get(key)));
}

function sameLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  spend(a.length * traversal);
  const kind = kinds.get(a);
  if (kind === undefined) return a.every((item, index) => same(item, b[index]));
  if (kind.kind === "set") return among(a, b);
  const known = new Map(a.map((item) => [keyOf(item, kind.keys), item]));
  return b.every((item) => {
    const key = keyOf(item, kind.keys);
    return known.has(key) && same(known.get(key), item);
  });
}

/** Whether each of some values is among all. Scalars are looked up in a hash table. */
function among(all: readonly unknown[], some: readonly unknown[]): boolean {
  const known = new Set(all.map(scalarKey));
  if (!known.has(undefined)) return some.every((one) => known.has(scalarKey(one)));
  return contains(all, some);
}

/**
 * The concatenation of two lists. A list of type `set` gets only items that it lacks; in a list of type `map`, items of
 * the other list replace those with the same keys.
 */
export function concatenate(a: readonly unknown[], b: readonly unknown[]): readonly unknown[] {
  const kind = kinds.get(a);
  spend((a.length + b.length) * traversal);
  if (kind === undefined) return [...a, ...b];
  const result = [...a];
  if (kind.kind === "set") {
    const known = new Set(a.map(scalarKey));
    const isScalar = !known.has(undefined);
    for (const one of b) {
      const key = scalarKey(one);
      const isThere = isScalar && key !== undefined ? known.has(key) : indexIn(result, one) !== -1;
      if (!isThere) result.push(one);
      known.add(key);
    }
  } else {
    const places = new Map(a.map((item, index) => [keyOf(item, kind.keys), index]));
    for (const one of b) {
      const key = keyOf(one, kind.keys);
      const place = places.get(key);
      if (place === undefined) places.set(key, result.push(one) - 1);
      else result[place] = one;
    }
  }
  markList(result, kind);
  return result;
}

/** Equal scalars have equal keys; other values have none. */
function scalarKey(value: unknown): string | undefined {
  if (isNumber(value)) return `number:${numberOf(value)}`;
  if (typeof value === "string") spendOn(value.length);
  return typeof value === "string" || typeof value === "boolean" || value === null
    ? `${typeof value}:${value}`
    : undefined;
}

/** What tells an item of a list of type `map` from the others. */
function keyOf(item: unknown, keys: readonly string[]): string {
  spend(1);
  const fields = mapOf(item);
  return JSON.stringify(keys.map((key) => scalarKey(fields?.get(key)) ?? ""));
}

/** Integers, unsigned integers and floating-point numbers. */
function isNumber(value: unknown): value is bigint | number | { valueOf(): bigint } {
  return typeof value === "bigint" || typeof value === "number" || typeof value?.valueOf() === "bigint";
}

function numberOf(value: bigint | number | { valueOf(): bigint }): bigint | number {
  return value.valueOf();
}

function isComparable(value: unknown): value is Comparable {
  return typeof value === "object" && value !== null && "equals" in value && typeof value.equals === "function";
}

/** Whether a value is a duration, of this text if one is given. The library keeps its class to itself. */
export function isDuration(value: unknown, text?: string): boolean {
  if (Object.prototype.toString.call(value) !== "[object google.protobuf.Duration]") return false;
  return text === undefined || String(value as Date) === text;
}

/** A map of an expression: a Map, or a plain object that the library made. */
export function mapOf(value: unknown): ReadonlyMap<unknown, unknown> | undefined {
  if (value instanceof Map) return value;
  const plain = typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return plain ? new Map(Object.entries(value)) : undefined;
}
