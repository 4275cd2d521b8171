import type { JsonPatch, MergePatch, PatchResult, Schema, StrategicMergePatch } from "../contract.ts";
import { cloneJson, equalJson, goText, isList, isObject, jsonLength, type JsonObject } from "../json-values.ts";
import { rootSchema } from "../schema-parts.ts";
import { own } from "../../../../api/schema/own.ts";

/** kubernetes/apiserver pkg/endpoints/handlers/patch.go (master) */
const maxJsonPatchOperations = 10_000;
/**
 * The total size that the copies of a patch may add: kubernetes/apiserver pkg/server/config.go (v0.34)
 * JSONPatchMaxCopyBytes. Without it, thirty operations that each copy the whole object into itself make it a billion
 * times as large.
 */
const maxCopiedCharacters = 3 * 1024 * 1024;
/**
 * Items of lists that the operations of one patch may shift, all together: each one that is put before others shifts
 * these. As many operations as a patch may have find room in a list of 20,000 items.
 */
const maxShiftedItems = 200_000_000;
/**
 * Items that one strategic merge patch may go through again in lists of objects that it has merged into before, all together. Items
 * of one list with one merge key lead there; no client sends such.
 */
const maxRepeatedItems = 100_000;
/** Characters that these items may have, all together: each item is written as JSON to be compared with others. */
const maxRepeatedCharacters = 4 * 1024 * 1024;

/** RFC 6902. All operations or none; the object given is not changed. */
export const jsonPatch: JsonPatch = (object, operations) => {
  if (!isList(operations))
    return malformed(
      `error decoding patch: json: cannot unmarshal ${goType(operations)} into Go value of type []handlers.jsonPatchOp`,
    );
  if (operations.length > maxJsonPatchOperations) {
    return {
      verdict: "refused",
      status: 413,
      reason: "RequestEntityTooLarge",
      message: `The allowed maximum operations in a JSON patch is ${maxJsonPatchOperations}, got ${operations.length}`,
    };
  }
  let current: unknown = cloneJson(object);
  const budget: Budget = { copied: maxCopiedCharacters, shifted: maxShiftedItems };
  for (const operation of operations) {
    if (!isObject(operation))
      return malformed(
        "error decoding patch: json: cannot unmarshal operation into Go value of type jsonpatch.Operation",
      );
    const result = applyOperation(current, operation, budget);
    if ("problem" in result || budget.shifted < 0) return unprocessable();
    current = result.value;
  }
  return { verdict: "patched", object: current };
};

/** RFC 7386. The object given is not changed. */
export const mergePatch: MergePatch = (object, patch) => {
  if (!isObject(patch)) return malformed("error decoding patch: a merge patch must be an object");
  return { verdict: "patched", object: merged(object, patch) };
};

/**
 * Kubernetes' strategic merge: lists merge by the keys of the schema, `$patch`, `$setElementOrder/x`, `$retainKeys` and
 * `$deleteFromPrimitiveList/x` direct it. The object given is not changed.
 * kubernetes/apimachinery pkg/util/strategicpatch/patch.go (master)
 */
export const strategicMergePatch: StrategicMergePatch = (object, patch, schema) =>
  strategicMerge(object, patch, schema, { made: new Set(), copied: 0, repeated: 0, repeatedCharacters: 0, written: 0 });

/** The work of the merge of one patch so far. */
export interface MergeWork {
  /** Objects of the result that this merge made: nobody else has them, so that it changes them in place. */
  readonly made: Set<object>;
  /** Fields of the objects that it copied. */
  copied: number;
  /** Items of lists that it went through again. */
  repeated: number;
  /** Their characters. */
  repeatedCharacters: number;
  /** Characters of items that it wrote as JSON. */
  written: number;
}

/** `strategicMergePatch` that counts its work. */
export function strategicMerge(object: unknown, patch: unknown, schema: Schema, work: MergeWork): PatchResult {
  if (!isObject(patch))
    return malformed(
      `json: cannot unmarshal ${isList(patch) ? "array" : goType(patch)} into Go value of type map[string]interface {}`,
    );
  const result = mergeObject(isObject(object) ? object : {}, patch, rootSchema(schema), work);
  if (!("problem" in result)) return { verdict: "patched", object: result.value };
  const { problem, fault } = result;
  if (fault === "malformed") return malformed(problem);
  return fault === "tooLarge"
    ? { verdict: "refused", status: 413, reason: "RequestEntityTooLarge", message: problem }
    : // The real server reports every other error as an internal one.
      { verdict: "refused", status: 500, reason: "", message: problem };
}

type Step =
  | { readonly value: unknown }
  | {
      readonly problem: string;
      /** `malformed`: the patch itself is wrong, whatever it is applied to. */
      readonly fault?: "malformed" | "tooLarge";
    };

const malformedPart = (part: string): Step => ({ problem: `invalid patch format of ${part}`, fault: "malformed" });

const tooRepetitive = ({ repeated }: MergeWork): Step => ({
  problem: `The items of a list in a patch that have the same merge key lead to more than ${repeated > maxRepeatedItems ? `${maxRepeatedItems} items` : `${maxRepeatedCharacters} characters`} of other lists`,
  fault: "tooLarge",
});

function malformed(message: string): PatchResult {
  return { verdict: "refused", status: 400, reason: "BadRequest", message };
}

/** The reason why a patch does not fit is not reported: the real server's answer drops it. */
function unprocessable(): PatchResult {
  return {
    verdict: "refused",
    status: 422,
    reason: "Invalid",
    message: "the server rejected our request due to an error in our request",
  };
}

function goType(value: unknown): string {
  if (isObject(value)) return "object";
  return value === null ? "null" : typeof value;
}

function parsePointer(pointer: unknown): string[] | undefined {
  if (pointer === "") return [];
  if (typeof pointer !== "string" || !pointer.startsWith("/")) return undefined;
  return pointer
    .slice(1)
    .split("/")
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** What the operations of one patch may still do. */
interface Budget {
  /** Characters that copies add. */
  copied: number;
  /** Items of lists that change their places. */
  shifted: number;
}

function applyOperation(document: unknown, operation: JsonObject, budget: Budget): Step {
  const { op, path } = operation;
  const steps = parsePointer(path);
  if (steps === undefined)
    return {
      problem: `${String(op)} operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value`,
    };
  const where = String(path);
  switch (op) {
    case "add":
      if (!("value" in operation)) return { problem: `add operation does not apply: missing value` };
      return insert(document, steps, cloneJson(operation["value"]), "add", where, budget);
    case "replace":
      // A missing field is set nevertheless, as in the real server's library; a list does not grow.
      return steps.length === 0
        ? { value: cloneJson(operation["value"]) }
        : insert(document, steps, cloneJson(operation["value"]), "replace", where, budget);
    case "remove":
      return remove(document, steps, where, budget);
    case "test": {
      const found = lookUp(document, steps);
      // As in Kubernetes' library, an absent field passes the test for null.
      const value = operation["value"] ?? null;
      if (equalJson(found === absent ? null : found, value)) return { value: document };
      return { problem: `testing value ${where} failed: test failed` };
    }
    case "move":
    case "copy": {
      const from = parsePointer(operation["from"]);
      const source = from === undefined ? absent : lookUp(document, from);
      if (from === undefined || source === absent)
        return {
          problem: `${op} operation does not apply: doc is missing from path: ${String(operation["from"])}: missing value`,
        };
      if (op === "copy") {
        budget.copied -= jsonLength(source, budget.copied);
        return budget.copied < 0
          ? { problem: "Unable to complete the copy, the accumulated size increase of copy exceeds the limit" }
          : insert(document, steps, cloneJson(source), op, where, budget);
      }
      const without = remove(document, from, String(operation["from"]), budget);
      return "problem" in without ? without : insert(without.value, steps, source, op, where, budget);
    }
    default:
      return { problem: `Unexpected kind: ${String(op)}` };
  }
}

const absent: unique symbol = Symbol("absent");

function listIndex(step: string, length: number): number | undefined {
  if (!/^(?:0|[1-9]\d*)$/.test(step)) return undefined;
  const index = Number(step);
  return index <= length ? index : undefined;
}

function lookUp(document: unknown, steps: readonly string[]): unknown {
  let current = document;
  for (const step of steps) {
    if (isList(current)) {
      const index = listIndex(step, current.length - 1);
      if (index === undefined) return absent;
      current = current[index];
    } else if (isObject(current) && Object.hasOwn(current, step)) current = current[step];
    else return absent;
  }
  return current;
}

function insert(
  document: unknown,
  steps: readonly string[],
  value: unknown,
  op: string,
  path: string,
  budget: Budget,
): Step {
  const last = steps.at(-1);
  if (last === undefined) return { value };
  const parent = lookUp(document, steps.slice(0, -1));
  if (isList(parent)) {
    const index = last === "-" && op !== "replace" ? parent.length : listIndex(last, parent.length);
    if (index === undefined)
      return { problem: `${op} operation does not apply: doc is missing path: ${path}: invalid index referenced` };
    if (op !== "replace") budget.shifted -= parent.length - index;
    parent.splice(index, op === "replace" ? 1 : 0, value);
    return { value: document };
  }
  if (!isObject(parent))
    return { problem: `${op} operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value` };
  if (last !== "__proto__") parent[last] = value;
  return { value: document };
}

function remove(document: unknown, steps: readonly string[], path: string, budget: Budget): Step {
  const last = steps.at(-1);
  const parent = last === undefined ? absent : lookUp(document, steps.slice(0, -1));
  if (isList(parent) && last !== undefined) {
    const index = listIndex(last, parent.length - 1);
    if (index === undefined)
      return { problem: `remove operation does not apply: doc is missing path: ${path}: invalid index referenced` };
    budget.shifted -= parent.length - index;
    parent.splice(index, 1);
    return { value: document };
  }
  if (!isObject(parent) || last === undefined || !Object.hasOwn(parent, last)) {
    return { problem: `remove operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value` };
  }
  delete parent[last];
  return { value: document };
}

function merged(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return cloneJson(patch);
  const result: JsonObject = isObject(target) ? { ...target } : {};
  for (const key of Object.keys(patch)) {
    if (key === "__proto__") continue;
    if (patch[key] === null) delete result[key];
    else result[key] = merged(result[key], patch[key]);
  }
  return result;
}

const directive = {
  patch: "$patch",
  retain: "$retainKeys",
  order: "$setElementOrder/",
  deletePrimitives: "$deleteFromPrimitiveList/",
} as const;

function fieldSchema(schema: Schema | undefined, key: string): Schema | undefined {
  const property = own(schema?.properties, key);
  if (property !== undefined) return property;
  return isObject(schema?.additionalProperties) ? (schema.additionalProperties as Schema) : undefined;
}

function strategies(schema: Schema | undefined): readonly string[] {
  return (schema?.["x-kubernetes-patch-strategy"] ?? "").split(",");
}

function mergeKeyOf(schema: Schema | undefined): string | undefined {
  return schema?.["x-kubernetes-patch-merge-key"] ?? schema?.["x-kubernetes-list-map-keys"]?.[0];
}

/** Where a patch meets a list. */
interface Visit {
  readonly work: MergeWork;
  /** An earlier item of the patch has led to the object with this list. */
  readonly isRepeated: boolean;
}

interface ListVisit extends Visit {
  /** The order that the patch gives the list. */
  readonly order: unknown;
}

/** Counts that the merge goes through `list`; false: it went through too many again. */
function mayGoThrough(list: readonly unknown[], { work, isRepeated }: Visit): boolean {
  if (!isRepeated) return true;
  work.repeated += list.length;
  if (work.repeated > maxRepeatedItems) return false;
  work.repeatedCharacters += jsonLength(list, maxRepeatedCharacters - work.repeatedCharacters);
  return work.repeatedCharacters <= maxRepeatedCharacters;
}

/** The object that a merge may change: a copy, or `original` if this merge made it. */
function changeable(original: JsonObject, work: MergeWork): JsonObject {
  if (work.made.has(original)) return original;
  const copy = { ...original };
  work.copied += Object.keys(copy).length;
  work.made.add(copy);
  return copy;
}

function mergeObject(original: JsonObject, patch: JsonObject, schema: Schema | undefined, work: MergeWork): Step {
  const marker = patch[directive.patch];
  if (marker !== undefined) {
    if (marker === "replace") {
      const { [directive.patch]: _marker, ...rest } = patch;
      return { value: cloneJson(rest) };
    }
    return marker === "delete"
      ? { value: {} }
      : { problem: `unknown patch type: ${goText(marker)} in map: ${goText(patch)}` };
  }
  const visit: Visit = { work, isRepeated: work.made.has(original) };
  const result = changeable(original, work);
  const retained = patch[directive.retain];
  if (retained !== undefined) {
    const kept = new Set(isList(retained) ? retained : []);
    const unretained = (key: string) => isList(retained) && !kept.has(key);
    const named = Object.keys(patch).filter(
      (key) =>
        patch[key] !== null &&
        key !== directive.retain &&
        !key.startsWith(directive.deletePrimitives) &&
        !key.startsWith(directive.order),
    );
    if (!isList(retained) || named.some(unretained)) return malformedPart("retainKeys");
    for (const key of Object.keys(result)) if (unretained(key)) delete result[key];
  }
  for (const key of Object.keys(patch)) {
    if (!key.startsWith(directive.deletePrimitives)) continue;
    const field = key.slice(directive.deletePrimitives.length);
    const unwanted = patch[key];
    if (!isList(unwanted)) return malformedPart("primitive list");
    const current = result[field];
    // Items that the same patch adds are added afterwards.
    const keyOf = keysFor(work);
    const gone = new Set(unwanted.map(keyOf));
    if (isList(current) && !mayGoThrough(current, visit)) return tooRepetitive(work);
    if (isList(current)) result[field] = current.filter((item) => !gone.has(keyOf(item)));
  }
  for (const key of Object.keys(patch)) {
    if (
      key === directive.retain ||
      key.startsWith(directive.order) ||
      key.startsWith(directive.deletePrimitives) ||
      key === "__proto__"
    )
      continue;
    const order = patch[`${directive.order}${key}`];
    const step = mergeField(result[key], patch[key], fieldSchema(schema, key), { ...visit, order });
    if ("problem" in step) return step;
    if (step.value === undefined) delete result[key];
    else result[key] = step.value;
  }
  // An order without a change to the list still sorts it.
  for (const key of Object.keys(patch)) {
    if (!key.startsWith(directive.order)) continue;
    const field = key.slice(directive.order.length);
    const current = result[field];
    if (field in patch || !isList(current)) continue;
    const step = mergeList(current, [], fieldSchema(schema, field), { ...visit, order: patch[key] });
    if ("problem" in step) return step;
    result[field] = step.value;
  }
  return { value: result };
}

/**
 * The result of a patch for one field; undefined: the field is removed. Directives are dropped only if no value
 * existed.
 */
function mergeField(current: unknown, patch: unknown, schema: Schema | undefined, visit: ListVisit): Step {
  if (patch === null) return { value: undefined };
  if (isObject(current) && isObject(patch))
    return strategies(schema).includes("replace")
      ? { value: cloneJson(patch) }
      : mergeObject(current, patch, schema, visit.work);
  if (isList(current) && isList(patch))
    return strategies(schema).includes("merge")
      ? mergeList(current, patch, schema, visit)
      : { value: cloneJson(patch) };
  const fresh = stripDirectives(patch);
  return isList(fresh) && visit.order !== undefined && strategies(schema).includes("merge")
    ? mergeList([], fresh, schema, visit)
    : { value: fresh };
}

/** Equal values have equal keys, but for the order of an object's fields, which primitive lists do not hold. */
const keysFor =
  (work: MergeWork) =>
  (value: unknown): string => {
    const key = JSON.stringify(value) ?? "";
    work.written += key.length;
    return key;
  };

function mergeList(
  original: readonly unknown[],
  patch: readonly unknown[],
  schema: Schema | undefined,
  visit: ListVisit,
): Step {
  const { order, work } = visit;
  if (!mayGoThrough(original, visit)) return tooRepetitive(work);
  const jsonKey = keysFor(work);
  if (order !== undefined && !isList(order)) return malformedPart("setElementOrder list");
  const sample = patch[0] ?? original[0];
  if (!isObject(sample)) {
    const result = [...original];
    const known = new Set(original.map(jsonKey));
    for (const item of patch) {
      if (!known.has(jsonKey(item))) result.push(item);
      known.add(jsonKey(item));
    }
    return { value: ordered(result, order ?? patch, placesIn(original, jsonKey), jsonKey) };
  }
  const mergeKey = mergeKeyOf(schema);
  if (mergeKey === undefined) return { problem: "this type of list has no merge key" };
  const keyOf = (item: unknown): string => jsonKey(isObject(item) ? item[mergeKey] : item);
  const items: JsonObject[] = [];
  const deleted = new Set<string>();
  let result: unknown[] = [...original];
  let replaced = false;
  // Directives are applied first, regardless of their position.
  for (const item of patch) {
    if (!isObject(item)) return { problem: `list element types are not identical: ${goText([original, patch])}` };
    const marker = item[directive.patch];
    if (marker === undefined) items.push(item);
    else if (marker === "replace") replaced = true;
    else if (marker !== "delete")
      return {
        problem:
          marker === "merge"
            ? "merging lists cannot yet be specified in the patch"
            : `unknown patch type: ${goText(marker)} in map: ${goText(item)}`,
      };
    else if (item[mergeKey] === undefined)
      return { problem: `map: ${goText(item)} does not contain declared merge key: ${mergeKey}` };
    else deleted.add(keyOf(item));
  }
  if (deleted.size > 0) result = result.filter((one) => !deleted.has(keyOf(one)));
  const kept = replaced ? items : result;
  result = [...kept];
  const before = placesIn(kept, keyOf);
  /** The first item of each key. */
  const places = new Map<string, number>();
  for (const [index, item] of result.entries()) if (!places.has(keyOf(item))) places.set(keyOf(item), index);
  for (const item of replaced ? [] : items) {
    if (item[mergeKey] === undefined)
      return { problem: `map: ${goText(item)} does not contain declared merge key: ${mergeKey}` };
    const index = places.get(keyOf(item));
    const current = index === undefined ? undefined : result[index];
    if (index === undefined || !isObject(current)) {
      if (index === undefined) places.set(keyOf(item), result.length);
      result.push(cloneJson(item));
      continue;
    }
    const step = mergeObject(current, item, schema?.items, work);
    if ("problem" in step) return step;
    result[index] = step.value;
  }
  // A patch without an order directive uses the order of its items: new ones come first.
  return { value: ordered(result, order ?? (replaced ? [] : items), before, keyOf) };
}

/** The last place of each key. */
const placesIn = (items: readonly unknown[], keyOf: (item: unknown) => string): ReadonlyMap<string, number> =>
  new Map(items.map((item, index) => [keyOf(item), index]));

/**
 * Items in `order` follow its order; the server's other items keep their positions among them.
 *
 * @param before the places that items had before the merge, by their keys.
 */
function ordered(
  items: readonly unknown[],
  order: readonly unknown[],
  before: ReadonlyMap<string, number>,
  keyOf: (item: unknown) => string,
): unknown[] {
  const places = placesIn(order, keyOf);
  const named = items
    .filter((item) => places.has(keyOf(item)))
    .toSorted((a, b) => (places.get(keyOf(a)) ?? 0) - (places.get(keyOf(b)) ?? 0));
  const others = items.filter((item) => !places.has(keyOf(item)));
  const result: unknown[] = [];
  let next = 0;
  for (const other of others) {
    // As upstream: a server-only item stands before the first named one that stood behind it.
    const position = before.get(keyOf(other)) ?? Infinity;
    while (next < named.length && (before.get(keyOf(named[next])) ?? -1) < position) result.push(named[next++]);
    result.push(other);
  }
  return [...result, ...named.slice(next)];
}

/** The value of a patch if none existed before; undefined: none. */
function stripDirectives(value: unknown): unknown {
  if (isList(value)) return value.map(stripDirectives).filter((item) => item !== undefined);
  if (!isObject(value)) return value;
  if (directive.patch in value) return undefined;
  const result: JsonObject = {};
  for (const key of Object.keys(value)) {
    const inner = key === "__proto__" || value[key] === null ? undefined : stripDirectives(value[key]);
    if (inner !== undefined) result[key] = inner;
  }
  return result;
}
