import { pushAll } from "../../../../api/schema/push-all.ts";
import { canonicalJson } from "../../../../core/text/canonical-json.ts";
import { clipText } from "../../../../core/text/clip-text.ts";
import { andMore } from "../../../../core/text/list-text.ts";
import { emptyObject } from "./canonicalise.ts";
import {
  type ApplyResult,
  type ApplyServerSide,
  type KubeObject,
  type ManagedFieldsEntry,
  type Schema,
  type TrackUpdate,
  written,
} from "../contract.ts";
import {
  compareValues,
  difference,
  elementOf,
  emptySet,
  equalSets,
  fieldOf,
  fieldsOf,
  intersection,
  isEmpty,
  parseFieldsV1,
  printElement,
  printFieldsV1,
  printPaths,
  shapeOf,
  union,
  unionOf,
  type Comparison,
  type FieldSet,
} from "./field-set.ts";
import { firstTexts } from "../first-texts.ts";
import {
  cloneJson,
  equalJson,
  goText,
  isList,
  isObject,
  jsonDepth,
  maxJsonDepth,
  textAt,
  type JsonObject,
} from "../json-values.ts";
import { rootSchema } from "../schema-parts.ts";
import { own } from "../../../../api/schema/own.ts";

/** One writer and its fields. */
interface Manager {
  readonly entry: Omit<ManagedFieldsEntry, "fieldsV1" | "fieldsType">;
  readonly set: FieldSet;
}

/** By identity: name, operation, subresource, and for updates the version. */
type Managers = Map<string, Manager>;

/**
 * kubernetes/apimachinery pkg/util/managedfields/internal (master): fieldmanager.go, managedfieldsupdater.go,
 * capmanagers.go
 */
const maxUpdateManagers = 10;
const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * Rewrites `after.metadata.managedFields` for a create, update or patch: what changed now belongs to the writer. The
 * managed fields that the writer sent count when they are readable; `[]` and `[{}]` reset them.
 */
export const trackUpdate: TrackUpdate = (before, after, schema, by) => {
  const root = rootSchema(schema);
  const sent = after.metadata.managedFields;
  const live = before?.metadata.managedFields;
  const managers = by.subresource !== undefined && by.subresource !== "" ? decode(live) : decodeSent(sent, live);
  // An object without managers keeps none until it is applied: skipNonAppliedManager in the same place.
  if (before !== undefined && managers.size === 0) {
    delete after.metadata.managedFields;
    return;
  }
  const comparison = compareObjects(before, after, root);
  takeAway(managers, comparison, undefined);
  const entry = {
    manager: by.manager,
    operation: "Update" as const,
    apiVersion: after.apiVersion,
    ...(by.subresource === undefined || by.subresource === "" ? {} : { subresource: by.subresource }),
  };
  const id = identity(entry);
  const changed = union(comparison.added, comparison.modified);
  if (!isEmpty(changed)) {
    const mine = managers.get(id);
    managers.set(id, {
      entry: { ...entry, time: by.time },
      set: mine === undefined ? changed : union(mine.set, changed),
    });
  }
  capUpdateManagers(managers);
  write(after, managers);
};

/** Whether the fields of an object can be determined: every value has the type of its schema. */
export function fitsTypes(object: KubeObject, schema: Schema): boolean {
  return typeProblems(object, rootSchema(schema), "", "allowed").length === 0;
}

/**
 * Merges the applied fields into the live object and makes the applier the owner of exactly these. Fields that it
 * applied before and no longer names are removed unless another manager owns them. Never changes its input. When
 * nothing changes the managed fields keep their times, so that equal objects mean: nothing to store.
 */
export const applyServerSide: ApplyServerSide = (request) => {
  const { applied, live } = request;
  if (applied.metadata.managedFields !== undefined && applied.metadata.managedFields.length > 0) {
    return { verdict: "refused", status: 400, message: "metadata.managedFields must be nil" };
  }
  const root = rootSchema(request.schema);
  const problems = typeProblems(applied, root, "");
  if (problems.length > 0) {
    const { texts, left } = firstTexts(problems, (one) => one);
    const lines = [...texts, ...(left === 0 ? [] : [andMore(left)])];
    const all = problems.length === 1 ? (lines[0] ?? "") : ["errors:", ...lines.map((one) => `  ${one}`)].join("\n");
    return {
      verdict: "refused",
      status: 500,
      message: `failed to create typed patch object (${request.name}; ${applied.apiVersion.includes("/") ? "" : "/"}${applied.apiVersion}, Kind=${applied.kind}): ${all}`,
    };
  }
  const first = attempt(request, root, request.force, undefined);
  const result =
    first.verdict === "conflict" && request.manager === "kubectl"
      ? attempt(request, root, false, allowedByLastApplied(live, root))
      : first;
  // Update kubectl's own annotation, so that a later client-side apply compares with the last applied configuration.
  if (
    result.verdict === "applied" &&
    request.manager === "kubectl" &&
    live?.metadata.annotations?.[lastAppliedAnnotation] !== undefined
  ) {
    const annotations = result.object.metadata.annotations ?? {};
    if (annotations[lastAppliedAnnotation] !== undefined) {
      const wanted = cloneJson(applied);
      if (wanted.metadata.annotations !== undefined) delete wanted.metadata.annotations[lastAppliedAnnotation];
      annotations[lastAppliedAnnotation] = `${JSON.stringify(wanted)}\n`;
    }
  }
  return result;
};

type Request = Parameters<ApplyServerSide>[0];

function attempt(request: Request, root: Schema, force: boolean, allowed: FieldSet | undefined): ApplyResult {
  const { live, applied } = request;
  const managers = decode(live?.metadata.managedFields);
  if (live !== undefined && managers.size === 0) adopt(managers, live, root, request.time);
  const entry = {
    manager: request.manager,
    operation: "Apply" as const,
    apiVersion: applied.apiVersion,
    ...(request.subresource === undefined || request.subresource === "" ? {} : { subresource: request.subresource }),
  };
  const id = identity(entry);
  const previous = managers.get(id);
  const wanted = (request.reset ?? []).reduce(withoutPath, withoutMeta(fieldsOf(applied, root)));
  const base = live === undefined ? undefined : withoutManagedFields(live);
  const merged = mergeValues(base, withoutManagedFields(applied), root) as KubeObject;
  managers.delete(id);
  const others = unionOf([wanted, ...[...managers.values()].map(({ set }) => set)]);
  const object =
    previous === undefined ? merged : (removeUnclaimed(merged, root, previous.set, others, true) as KubeObject);
  const { added, removed, modified } = compareObjects(live, object, root);
  const unreset = (set: FieldSet) => (request.reset ?? []).reduce(withoutPath, set);
  const comparison: Comparison = { added: unreset(added), removed: unreset(removed), modified: unreset(modified) };
  const conflicts = conflictsWith(managers, comparison, allowed);
  if (conflicts.length > 0 && !force) return conflictOf(conflicts);
  takeAway(managers, comparison, id);
  const same = live !== undefined && equalJson(withoutManagedFields(live), object);
  // A manager that changes nothing keeps its time, as in managedfields/internal/managedfieldsupdater.go.
  const { time: before, ...timeless } = {
    ...entry,
    ...(previous?.entry.time === undefined ? {} : { time: previous.entry.time }),
  };
  const time = same ? before : request.time;
  if (!isEmpty(wanted))
    managers.set(id, { entry: { ...timeless, ...(time === undefined ? {} : { time }) }, set: wanted });
  const unchanged =
    same &&
    previous !== undefined &&
    previous.entry.apiVersion === applied.apiVersion &&
    equalSets(previous.set, wanted);
  if (unchanged) return { verdict: "applied", object: cloneJson(live) };
  write(object, managers);
  return { verdict: "applied", object };
}

function withoutPath(set: FieldSet, path: readonly string[]): FieldSet {
  const [first, ...rest] = path;
  const inner = set.children.get(`f:${first ?? ""}`);
  if (inner === undefined) return set;
  const children = new Map(set.children);
  const kept = rest.length === 0 ? emptySet() : withoutPath(inner, rest);
  if (isEmpty(kept)) children.delete(`f:${first ?? ""}`);
  else children.set(`f:${first ?? ""}`, kept);
  return { member: set.member, children };
}

/**
 * Schema violations of an applied configuration, in the words of kubernetes-sigs/structured-merge-diff
 * typed/validate.go (v6.3). Fields that the schema does not know cannot be owned.
 */
function typeProblems(
  value: unknown,
  schema: Schema | undefined,
  path: string,
  duplicates: "refused" | "allowed" = "refused",
): string[] {
  if (value === null || schema === undefined) return [];
  const problem = (text: string) => [`${path === "" ? "" : `${path}: `}${text}`];
  // A definition's int-or-string is published without a type, and then anything will do.
  if (schema["x-kubernetes-int-or-string"] === true)
    return schema[written] !== undefined && (isObject(value) || isList(value))
      ? problem(`expected any scalar, got ${goPointer(value)}`)
      : [];
  switch (schema.type) {
    case "object": {
      if (!isObject(value)) return problem(`expected map, got ${goPointer(value)}`);
      const open =
        schema["x-kubernetes-preserve-unknown-fields"] === true ||
        schema.additionalProperties === true ||
        schema["x-kubernetes-embedded-resource"] === true;
      return Object.keys(value)
        .toSorted()
        .flatMap((key) => {
          const field = fieldOf(schema, key);
          if (field.schema !== undefined) return typeProblems(value[key], field.schema, `${path}.${key}`, duplicates);
          return open ? [] : [`${path}.${key}: field not declared in schema`];
        });
    }
    case "array":
      return isList(value)
        ? itemProblems(value, schema, path, problem, duplicates)
        : problem(`expected list, got ${goPointer(value)}`);
    case "string":
      return typeof value === "string"
        ? []
        : problem(`expected string, got &value.valueUnstructured{Value:${goValue(value)}}`);
    case "integer":
    case "number":
      return typeof value === "number" ? [] : problem(`expected numeric (int or float), got ${goType(value)}`);
    case "boolean":
      return typeof value === "boolean" ? [] : problem(`expected boolean, got ${goPointer(value)}`);
    default:
      return [];
  }
}

function itemProblems(
  value: readonly unknown[],
  schema: Schema,
  path: string,
  problem: (text: string) => string[],
  duplicates: "refused" | "allowed",
): string[] {
  const shape = shapeOf(value, schema);
  const found: string[] = [];
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    let element = `[${index}]`;
    if (shape.kind === "set" || shape.kind === "listMap") {
      const odd = oddItem(item, shape);
      if (odd !== undefined) return [...found, ...problem(`element ${index}: ${odd}`)];
      element = printElement(elementOf(item, shape));
      if (seen.has(element) && duplicates === "refused")
        pushAll(found, problem(`duplicate entries for key ${element}`));
      seen.add(element);
    }
    pushAll(found, typeProblems(item, schema.items, `${path}${element}`, duplicates));
  }
  return found;
}

/** Why an item cannot be identified. */
function oddItem(
  item: unknown,
  shape: Extract<ReturnType<typeof shapeOf>, { kind: "listMap" | "set" }>,
): string | undefined {
  if (shape.kind === "set") {
    if (isObject(item)) return "associative list without keys has an element that's a map type";
    if (isList(item)) return "not supported: associative list with lists as elements";
    return item === null ? "associative list without keys has an element that's an explicit null" : undefined;
  }
  if (item === null) return "associative list with keys may not have a null element";
  if (!isObject(item)) return "associative list with keys may not have non-map elements";
  // Fields of built-in types that are always written have their empty value as default.
  const { items } = shape.schema;
  if (
    shape.keys.some(
      (key) =>
        (item[key] ?? items?.properties?.[key]?.default) !== undefined || items?.[written]?.get(key) === "always",
    )
  )
    return undefined;
  return `associative list with keys has an element that omits all key fields [${shape.keys.map((key) => JSON.stringify(key)).join(" ")}] (and doesn't have default values for any key fields)`;
}

function goPointer(value: unknown): string {
  return `&{${goText(value)}}`;
}

function goValue(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (isList(value)) return `[]interface {}{${value.map(goValue).join(", ")}}`;
  if (isObject(value))
    return `map[string]interface {}{${Object.keys(value)
      .toSorted()
      .map((key) => `${JSON.stringify(key)}:${goValue(value[key])}`)
      .join(", ")}}`;
  return String(value);
}

function goType(value: unknown): string {
  if (isList(value)) return "[]interface {}";
  if (isObject(value)) return "map[string]interface {}";
  return typeof value === "boolean" ? "bool" : "string";
}

function identity({ manager, operation, apiVersion, subresource }: ManagedFieldsEntry): string {
  return JSON.stringify([
    manager ?? "",
    operation ?? "",
    subresource ?? "",
    operation === "Apply" ? "" : (apiVersion ?? ""),
  ]);
}

function decode(entries: readonly ManagedFieldsEntry[] | undefined): Managers {
  const found = new Map<string, { entry: Manager["entry"]; readonly sets: FieldSet[] }>();
  for (const entry of entries ?? []) {
    if (!isObject(entry) || (entry.operation !== "Apply" && entry.operation !== "Update") || !isObject(entry.fieldsV1))
      continue;
    const { fieldsV1, fieldsType: _type, ...rest } = entry;
    const id = identity(entry);
    const set = parseFieldsV1(fieldsV1);
    const duplicate = found.get(id);
    if (duplicate === undefined) found.set(id, { entry: rest, sets: [set] });
    else {
      duplicate.entry = rest;
      duplicate.sets.push(set);
    }
  }
  return new Map([...found].map(([id, { entry, sets }]) => [id, { entry, set: unionOf(sets) }]));
}

/** As kubernetes/apimachinery pkg/util/managedfields/internal/fieldmanager.go (master), decodeLiveOrNew. */
function decodeSent(
  sent: readonly ManagedFieldsEntry[] | undefined,
  live: readonly ManagedFieldsEntry[] | undefined,
): Managers {
  const [only] = sent ?? [];
  if (sent?.length === 0 || (sent?.length === 1 && isObject(only) && Object.keys(only).length === 0)) return new Map();
  const readable = (sent ?? []).every(
    (entry) =>
      isObject(entry) &&
      (entry.operation === "Apply" || entry.operation === "Update") &&
      (entry.fieldsType ?? "FieldsV1") === "FieldsV1",
  );
  const managers = readable ? decode(sent) : new Map<string, Manager>();
  return managers.size > 0 ? managers : decode(live);
}

function write(object: KubeObject, managers: Managers): void {
  const entries = [...managers.values()]
    .filter(({ set }) => !isEmpty(set))
    .map(({ entry, set }): ManagedFieldsEntry => {
      const { manager, operation, apiVersion, time, subresource } = entry;
      return {
        ...(manager === undefined ? {} : { manager }),
        ...(operation === undefined ? {} : { operation }),
        ...(apiVersion === undefined ? {} : { apiVersion }),
        ...(time === undefined ? {} : { time }),
        fieldsType: "FieldsV1",
        fieldsV1: printFieldsV1(set),
        ...(subresource === undefined ? {} : { subresource }),
      };
    });
  const rank = (entry: ManagedFieldsEntry): string =>
    [entry.operation, entry.time, entry.manager, entry.apiVersion, entry.subresource]
      .map((part) => part ?? "")
      .join("\u0000");
  if (entries.length === 0) delete object.metadata.managedFields;
  else object.metadata.managedFields = entries.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

/** The oldest of too many updaters become one, `ancient-changes`. */
function capUpdateManagers(managers: Managers): void {
  const updaters = [...managers.entries()].filter(([, { entry }]) => entry.operation === "Update");
  if (updaters.length <= maxUpdateManagers) return;
  const sorted = updaters.toSorted(([, a], [, b]) => ((a.entry.time ?? "") < (b.entry.time ?? "") ? -1 : 1));
  const buckets = new Map<string, { entry: Manager["entry"]; readonly sets: FieldSet[] }>();
  for (const [id, { entry, set }] of sorted.slice(0, updaters.length - maxUpdateManagers + 1)) {
    managers.delete(id);
    const bucket = {
      manager: "ancient-changes",
      operation: "Update" as const,
      ...(entry.apiVersion === undefined ? {} : { apiVersion: entry.apiVersion }),
    };
    const bucketId = identity(bucket);
    const sets = buckets.get(bucketId)?.sets ?? [];
    sets.push(set);
    buckets.set(bucketId, { entry: { ...bucket, ...(entry.time === undefined ? {} : { time: entry.time }) }, sets });
  }
  for (const [id, { entry, sets }] of buckets) {
    const mine = managers.get(id);
    managers.set(id, { entry, set: unionOf(mine === undefined ? sets : [mine.set, ...sets]) });
  }
}

/** The content of an object before the first apply belongs to a manager of that name. */
function adopt(managers: Managers, live: KubeObject, root: Schema, time: string): void {
  const entry = { manager: "before-first-apply", operation: "Update" as const, apiVersion: live.apiVersion, time };
  const set = withoutMeta(fieldsOf(withoutManagedFields(live), root));
  if (!isEmpty(set)) managers.set(identity(entry), { entry, set });
}

const unownedMeta = new Set([
  "f:name",
  "f:namespace",
  "f:creationTimestamp",
  "f:selfLink",
  "f:uid",
  "f:clusterName",
  "f:generation",
  "f:managedFields",
  "f:resourceVersion",
  "f:deletionTimestamp",
  "f:deletionGracePeriodSeconds",
]);

/** No manager owns fields that the server sets. */
function withoutMeta(set: FieldSet): FieldSet {
  const result: FieldSet = { member: false, children: new Map(set.children) };
  result.children.delete("f:apiVersion");
  result.children.delete("f:kind");
  const metadata = result.children.get("f:metadata");
  if (metadata !== undefined) {
    const kept: FieldSet = {
      member: false,
      children: new Map([...metadata.children].filter(([key]) => !unownedMeta.has(key))),
    };
    if (isEmpty(kept)) result.children.delete("f:metadata");
    else result.children.set("f:metadata", kept);
  }
  return result;
}

function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _fields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function compareObjects(before: KubeObject | undefined, after: KubeObject, root: Schema): Comparison {
  const comparison = compareValues(
    before === undefined ? { metadata: {}, ...emptyObject(root) } : withoutManagedFields(before),
    withoutManagedFields(after),
    root,
  );
  return {
    added: withoutMeta(comparison.added),
    removed: comparison.removed,
    modified: withoutMeta(comparison.modified),
  };
}

interface Conflict {
  readonly manager: Manager;
  readonly paths: readonly string[];
}

function conflictsWith(managers: Managers, { added, modified }: Comparison, allowed: FieldSet | undefined): Conflict[] {
  const changed = union(modified, added);
  const conflicts: Conflict[] = [];
  for (const manager of managers.values()) {
    const both = intersection(manager.set, changed);
    const paths = printPaths(allowed === undefined ? both : difference(both, allowed));
    if (paths.length > 0) conflicts.push({ manager, paths });
  }
  return conflicts;
}

/** Changed fields lose their other owners, removed fields all owners. */
function takeAway(managers: Managers, { added, modified, removed }: Comparison, except: string | undefined): void {
  const gone = union(union(added, modified), removed);
  if (isEmpty(gone)) return;
  for (const [id, { entry, set }] of managers) {
    if (id === except) continue;
    const rest = difference(set, gone);
    if (isEmpty(rest)) managers.delete(id);
    else managers.set(id, { entry, set: rest });
  }
}

/** Characters of a manager's name in the message of a conflict. */
const longestManager = 1024;

/** kubernetes/apimachinery pkg/util/managedfields/internal/conflict.go (master) */
function conflictOf(conflicts: readonly Conflict[]): ApplyResult {
  const all = conflicts
    .map(({ manager, paths }) => ({ manager: clipText(printManager(manager), longestManager), paths }))
    .toSorted((a, b) => (a.manager < b.manager ? -1 : 1))
    .flatMap(({ manager, paths }) => paths.map((field) => ({ manager, field })));
  const { texts, left } = firstTexts(all, ({ field }) => field);
  const shown = texts.map((field, index) => ({ manager: all[index]?.manager ?? "", field }));
  const causes = shown.map(({ manager, field }) => ({
    reason: "FieldManagerConflict" as const,
    field,
    message: `conflict with ${manager}`,
  }));
  const [only] = causes;
  if (all.length === 1 && only !== undefined)
    return { verdict: "conflict", message: `Apply failed with 1 conflict: ${only.message}: ${only.field}`, causes };
  const lines = shown.flatMap(({ manager, field }, index) => [
    ...(shown[index - 1]?.manager === manager ? [] : [`conflicts with ${manager}:`]),
    `- ${field}`,
  ]);
  const rest = left === 0 ? [] : [andMore(left)];
  const message = `Apply failed with ${all.length} conflicts: ${[...lines, ...rest].join("\n")}`;
  return { verdict: "conflict", message, causes };
}

function printManager({ entry }: Manager): string {
  let text = JSON.stringify(entry.manager ?? "");
  if (entry.subresource !== undefined && entry.subresource !== "")
    text += ` with subresource ${JSON.stringify(entry.subresource)}`;
  if (entry.operation === "Update") text += ` using ${entry.apiVersion ?? ""}`;
  return text;
}

/**
 * Fields that kubectl set by client-side apply and that have not changed since: server-side apply by kubectl takes them
 * over without force.
 */
function allowedByLastApplied(live: KubeObject | undefined, root: Schema): FieldSet {
  const text = textAt(live, "metadata", "annotations", lastAppliedAnnotation);
  if (live === undefined || text === "") return emptySet();
  let last: unknown;
  try {
    last = JSON.parse(text);
  } catch {
    return emptySet();
  }
  // An author of the object writes any JSON into the annotation.
  if (!isObject(last) || jsonDepth(last) > maxJsonDepth) return emptySet();
  const { modified, removed } = compareValues(last, live, root);
  return difference(difference(fieldsOf(last, root), modified), removed);
}

/** Merges `applied` over the live value. Neither is modified. */
function mergeValues(live: unknown, applied: unknown, schema: Schema | undefined): unknown {
  if (live === undefined) return cloneJson(applied);
  if (applied === undefined) return cloneJson(live);
  const shape = shapeOf(applied, schema);
  if (shape.kind === "map" && isObject(live) && isObject(applied)) {
    const result: JsonObject = {};
    for (const key of Object.keys(live))
      if (key !== "__proto__") result[key] = mergeValues(live[key], own(applied, key), fieldOf(schema, key).schema);
    for (const key of Object.keys(applied))
      if (key !== "__proto__" && !Object.hasOwn(live, key)) result[key] = cloneJson(applied[key]);
    return result;
  }
  if ((shape.kind === "listMap" || shape.kind === "set") && isList(live) && isList(applied))
    return mergeLists(live, applied, shape);
  return cloneJson(applied);
}

/**
 * The applied order wins; items that only the live list has stay behind the item they followed, as
 * kubernetes-sigs/structured-merge-diff typed/merge.go (v6.3), visitListItems, places them.
 */
function mergeLists(
  live: readonly unknown[],
  applied: readonly unknown[],
  shape: Parameters<typeof elementOf>[1],
): unknown[] {
  const liveKeys = live.map((item) => elementOf(item, shape));
  const byKey = new Map<string, unknown>();
  // A duplicate is replaced, not merged.
  for (const [index, key] of liveKeys.entries()) byKey.set(key, byKey.has(key) ? undefined : live[index]);
  const appliedKeys = applied.map((item) => elementOf(item, shape));
  const wanted = new Set(appliedKeys);
  const shared = appliedKeys.filter((key) => byKey.has(key));
  let next = 0;
  const done = new Set<string>();
  const result: unknown[] = [];
  let l = 0;
  let a = 0;
  const take = (key: string): void => {
    result.push(
      shape.kind === "set" ? cloneJson(applied[a]) : mergeValues(byKey.get(key), applied[a], shape.schema.items),
    );
    done.add(key);
    if (shared[next] === key) next++;
    a++;
  };
  while (l < live.length || a < applied.length) {
    const liveKey = liveKeys[l];
    const key = appliedKeys[a];
    if (liveKey !== undefined && liveKey === key) {
      take(key);
      l++;
    } else if (liveKey !== undefined && !wanted.has(liveKey)) {
      result.push(cloneJson(live[l]));
      l++;
    } else if (liveKey !== undefined && key !== undefined && next < shared.length && shared[next] !== liveKey) {
      // Its turn comes later.
      l++;
    } else {
      if (liveKey !== undefined && (done.has(liveKey) || key === undefined)) l++;
      if (key !== undefined) take(key);
    }
  }
  return result;
}

/**
 * Removes the fields that the manager owned (`last`) and that no manager claims any more. A container without claimed
 * fields is removed as a whole, including its defaults.
 */
function removeUnclaimed(
  value: unknown,
  schema: Schema | undefined,
  last: FieldSet,
  claimed: FieldSet,
  isRoot: boolean,
): unknown {
  const shape = shapeOf(value, schema);
  if (shape.kind === "map" && isObject(value)) {
    const result: JsonObject = {};
    for (const key of Object.keys(value)) {
      const element = `f:${key}`;
      const mine = last.children.get(element);
      const theirs = claimed.children.get(element);
      const inner = fieldOf(schema, key).schema;
      if (mine === undefined) result[key] = value[key];
      else if (isRoot && key === "metadata")
        result[key] = removeUnclaimed(value[key], inner, mine, theirs ?? emptySet(), false);
      else if (theirs !== undefined) result[key] = removeUnclaimed(value[key], inner, mine, theirs, false);
    }
    return result;
  }
  if ((shape.kind === "listMap" || shape.kind === "set") && isList(value)) {
    return value.flatMap((item): unknown[] => {
      const element = elementOf(item, shape);
      const mine = last.children.get(element);
      const theirs = claimed.children.get(element);
      if (mine === undefined) return [item];
      if (theirs === undefined) return [];
      if (shape.kind === "set") return [item];
      const rest = removeUnclaimed(item, shape.schema.items, mine, theirs, false);
      // An item that others keep alive keeps its key.
      if (isObject(rest) && isObject(item))
        for (const key of shape.keys) if (item[key] !== undefined) rest[key] = item[key];
      return [rest];
    });
  }
  return value;
}

/** The set of fields as text, for tests and comparisons. */
export function printOwnership(object: KubeObject): Readonly<Record<string, string>> {
  const result: Record<string, string> = {};
  for (const entry of object.metadata.managedFields ?? []) {
    result[
      `${entry.manager ?? ""}/${entry.operation ?? ""}${entry.subresource === undefined ? "" : `/${entry.subresource}`}`
    ] = canonicalJson(entry.fieldsV1);
  }
  return result;
}
