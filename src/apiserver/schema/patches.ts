import type { JsonPatch, MergePatch, PatchResult, Schema, StrategicMergePatch } from "./contract.ts";
import { cloneJson, equalJson, isList, isObject, type JsonObject } from "./json-values.ts";
import { rootSchema } from "./schema-parts.ts";

/** kubernetes/apiserver pkg/endpoints/handlers/patch.go (master) */
const maxJsonPatchOperations = 10_000;

/** RFC 6902. All operations or none; the object given is not changed. */
export const jsonPatch: JsonPatch = (object, operations) => {
  if (!isList(operations)) return malformed(`error decoding patch: json: cannot unmarshal ${goType(operations)} into Go value of type []handlers.jsonPatchOp`);
  if (operations.length > maxJsonPatchOperations) {
    return {
      verdict: "refused",
      status: 413,
      reason: "RequestEntityTooLarge",
      message: `The allowed maximum operations in a JSON patch is ${maxJsonPatchOperations}, got ${operations.length}`,
    };
  }
  let current: unknown = cloneJson(object);
  for (const operation of operations) {
    if (!isObject(operation)) return malformed("error decoding patch: json: cannot unmarshal operation into Go value of type jsonpatch.Operation");
    const result = applyOperation(current, operation);
    if ("problem" in result) return unprocessable();
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
export const strategicMergePatch: StrategicMergePatch = (object, patch, schema) => {
  if (!isObject(patch)) return malformed(`json: cannot unmarshal ${isList(patch) ? "array" : goType(patch)} into Go value of type map[string]interface {}`);
  const result = mergeObject(isObject(object) ? object : {}, patch, rootSchema(schema));
  if (!("problem" in result)) return { verdict: "patched", object: result.value };
  // The real server takes an item without its key for a failure of its own.
  return result.problem.includes("does not contain declared merge key") ? { verdict: "refused", status: 500, reason: "", message: result.problem } : malformed(result.problem);
};

type Step = { readonly value: unknown } | { readonly problem: string };

function malformed(message: string): PatchResult {
  return { verdict: "refused", status: 400, reason: "BadRequest", message };
}

/** Why a patch does not fit is not said: the real server's answer drops it. */
function unprocessable(): PatchResult {
  return { verdict: "refused", status: 422, reason: "Invalid", message: "the server rejected our request due to an error in our request" };
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

function applyOperation(document: unknown, operation: JsonObject): Step {
  const { op, path } = operation;
  const steps = parsePointer(path);
  if (steps === undefined) return { problem: `${String(op)} operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value` };
  const where = String(path);
  switch (op) {
    case "add":
      if (!("value" in operation)) return { problem: `add operation does not apply: missing value` };
      return insert(document, steps, cloneJson(operation["value"]), "add", where);
    case "replace":
      // A field that is not there is set all the same, as the library of the real server does it; a list is not grown.
      return steps.length === 0 ? { value: cloneJson(operation["value"]) } : insert(document, steps, cloneJson(operation["value"]), "replace", where);
    case "remove":
      return remove(document, steps, where);
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
      if (from === undefined || source === absent) return { problem: `${op} operation does not apply: doc is missing from path: ${String(operation["from"])}: missing value` };
      const value = cloneJson(source);
      if (op === "copy") return insert(document, steps, value, op, where);
      const without = remove(document, from, String(operation["from"]));
      return "problem" in without ? without : insert(without.value, steps, value, op, where);
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

function insert(document: unknown, steps: readonly string[], value: unknown, op: string, path: string): Step {
  const last = steps.at(-1);
  if (last === undefined) return { value };
  const parent = lookUp(document, steps.slice(0, -1));
  if (isList(parent)) {
    const index = last === "-" && op !== "replace" ? parent.length : listIndex(last, parent.length);
    if (index === undefined) return { problem: `${op} operation does not apply: doc is missing path: ${path}: invalid index referenced` };
    parent.splice(index, op === "replace" ? 1 : 0, value);
    return { value: document };
  }
  if (!isObject(parent)) return { problem: `${op} operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value` };
  if (last !== "__proto__") parent[last] = value;
  return { value: document };
}

function remove(document: unknown, steps: readonly string[], path: string): Step {
  const last = steps.at(-1);
  const parent = last === undefined ? absent : lookUp(document, steps.slice(0, -1));
  if (isList(parent) && last !== undefined) {
    const index = listIndex(last, parent.length - 1);
    if (index === undefined) return { problem: `remove operation does not apply: doc is missing path: ${path}: invalid index referenced` };
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

const directive = { patch: "$patch", retain: "$retainKeys", order: "$setElementOrder/", deletePrimitives: "$deleteFromPrimitiveList/" } as const;

function fieldSchema(schema: Schema | undefined, key: string): Schema | undefined {
  const property = schema?.properties?.[key];
  if (property !== undefined) return property;
  return isObject(schema?.additionalProperties) ? (schema.additionalProperties as Schema) : undefined;
}

function strategies(schema: Schema | undefined): readonly string[] {
  return (schema?.["x-kubernetes-patch-strategy"] ?? "").split(",");
}

function mergeKeyOf(schema: Schema | undefined): string | undefined {
  return schema?.["x-kubernetes-patch-merge-key"] ?? schema?.["x-kubernetes-list-map-keys"]?.[0];
}

function mergeObject(original: JsonObject, patch: JsonObject, schema: Schema | undefined): Step {
  const marker = patch[directive.patch];
  if (marker !== undefined) {
    if (marker === "replace") {
      const { [directive.patch]: _marker, ...rest } = patch;
      return { value: cloneJson(rest) };
    }
    if (marker === "delete") return { value: {} };
    if (marker !== "merge") return { problem: `unknown patch type found: ${JSON.stringify(marker)}` };
  }
  const result: JsonObject = { ...original };
  const retained = patch[directive.retain];
  if (retained !== undefined) {
    if (!isList(retained)) return { problem: "invalid patch format of retainKeys" };
    for (const key of Object.keys(result)) if (!retained.includes(key)) delete result[key];
  }
  for (const key of Object.keys(patch)) {
    if (key === directive.patch || key === directive.retain || key === "__proto__" || key.startsWith(directive.order)) continue;
    if (key.startsWith(directive.deletePrimitives)) {
      const field = key.slice(directive.deletePrimitives.length);
      const unwanted = patch[key];
      if (!isList(unwanted)) return { problem: "invalid patch format of primitive list" };
      const current = result[field];
      // Items that the same patch adds are added afterwards.
      if (isList(current)) result[field] = current.filter((item) => !unwanted.some((one) => equalJson(one, item)));
    }
  }
  for (const key of Object.keys(patch)) {
    if (key.startsWith("$") && (key === directive.patch || key === directive.retain || key.startsWith(directive.order) || key.startsWith(directive.deletePrimitives))) continue;
    if (key === "__proto__") continue;
    const value = patch[key];
    if (value === null) {
      delete result[key];
      continue;
    }
    const inner = fieldSchema(schema, key);
    const current = result[key];
    if (isObject(value)) {
      // A field that is replaced as a whole says so in its strategy.
      const step = isObject(current) && !strategies(inner).includes("replace") ? mergeObject(current, value, inner) : mergeObject({}, value, inner);
      if ("problem" in step) return step;
      if (value[directive.patch] === "delete") delete result[key];
      else result[key] = step.value;
    } else if (isList(value)) {
      const step = mergeList(isList(current) ? current : [], value, inner, patch[`${directive.order}${key}`]);
      if ("problem" in step) return step;
      result[key] = step.value;
    } else result[key] = value;
  }
  // An order without a change to the list still sorts it.
  for (const key of Object.keys(patch)) {
    if (!key.startsWith(directive.order)) continue;
    const field = key.slice(directive.order.length);
    const current = result[field];
    if (field in patch || !isList(current)) continue;
    const step = mergeList(current, [], fieldSchema(schema, field), patch[key]);
    if ("problem" in step) return step;
    result[field] = step.value;
  }
  return { value: result };
}

function mergeList(original: readonly unknown[], patch: readonly unknown[], schema: Schema | undefined, order: unknown): Step {
  if (!strategies(schema).includes("merge")) return { value: stripDirectives(patch) };
  if (order !== undefined && !isList(order)) return { problem: "invalid patch format of setElementOrder list" };
  const sample = patch[0] ?? original[0];
  if (!isObject(sample)) {
    const result = [...original];
    for (const item of patch) if (!result.some((one) => equalJson(one, item))) result.push(item);
    return { value: ordered(result, order ?? patch, original, (item) => JSON.stringify(item)) };
  }
  const mergeKey = mergeKeyOf(schema);
  if (mergeKey === undefined) return { problem: "this type of list has no merge key" };
  const keyOf = (item: unknown): string => JSON.stringify(isObject(item) ? item[mergeKey] : item) ?? "";
  if (patch.some((item) => isObject(item) && item[directive.patch] === "replace")) {
    return { value: stripDirectives(patch.filter((item) => !(isObject(item) && item[directive.patch] === "replace" && Object.keys(item).length === 1))) };
  }
  let result: unknown[] = [...original];
  for (const item of patch) {
    if (!isObject(item)) return { problem: "error when applying patch: list items must be objects" };
    if (item[mergeKey] === undefined) return { problem: `map: ${printMap(item)} does not contain declared merge key: ${mergeKey}` };
    const key = keyOf(item);
    if (item[directive.patch] === "delete") {
      result = result.filter((one) => keyOf(one) !== key);
      continue;
    }
    const index = result.findIndex((one) => keyOf(one) === key);
    const current = index === -1 ? {} : result[index];
    const step = mergeObject(isObject(current) ? current : {}, item, schema?.items);
    if ("problem" in step) return step;
    if (index === -1) result.push(step.value);
    else result[index] = step.value;
  }
  // Without an order of its own, a patch has that of its items: new ones come first.
  return { value: ordered(result, order ?? patch, original, keyOf) };
}

/** Items that `order` names come in its order; the server's own keep their places among them. */
function ordered(items: readonly unknown[], order: readonly unknown[], original: readonly unknown[], keyOf: (item: unknown) => string): unknown[] {
  const places = new Map(order.map((item, index) => [keyOf(item), index]));
  const named = items.filter((item) => places.has(keyOf(item))).toSorted((a, b) => (places.get(keyOf(a)) ?? 0) - (places.get(keyOf(b)) ?? 0));
  const others = items.filter((item) => !places.has(keyOf(item)));
  const before = new Map(original.map((item, index) => [keyOf(item), index]));
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

function stripDirectives(value: unknown): unknown {
  if (isList(value)) return value.filter((item) => !(isObject(item) && item[directive.patch] === "delete")).map(stripDirectives);
  if (!isObject(value)) return value;
  const result: JsonObject = {};
  for (const key of Object.keys(value)) {
    if (key === "__proto__" || key === directive.patch || key === directive.retain || key.startsWith(directive.order) || key.startsWith(directive.deletePrimitives)) continue;
    if (value[key] !== null) result[key] = stripDirectives(value[key]);
  }
  return result;
}

function printMap(value: JsonObject): string {
  return `map[${Object.keys(value)
    .toSorted()
    .map((key) => `${key}:${isObject(value[key]) ? printMap(value[key]) : String(value[key])}`)
    .join(" ")}]`;
}
