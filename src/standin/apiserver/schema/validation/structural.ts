import { pushAll } from "../../../../api/schema/push-all.ts";
import { canonicalJson } from "../../../../core/text/canonical-json.ts";
import { type Budget, objectLimit } from "./cel-cost.ts";
import { compileRules, type CompiledRules } from "./cel.ts";
import type { DecodedValues } from "./cel-values.ts";
import { canonicalise, undecodable } from "../merge/canonicalise.ts";
import type { CompiledSchema, FieldError, KubeObject, Schema } from "../contract.ts";
import { duplicate, invalid, notSupported, required, tooLong, tooMany, typeInvalid } from "../field-errors.ts";
import { formats } from "../formats.ts";
import { cloneJson, equalJson, isList, isObject, type JsonObject } from "../json-values.ts";
import { compileExpression, type Expression } from "../regular-expressions.ts";
import { objectMeta, rootSchema } from "../schema-parts.ts";
import { own } from "../../../../api/schema/own.ts";

/** What a server says beside the errors of an object whose rules it did not evaluate because of them. */
const rulesNotChecked =
  "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

/**
 * Prepares a schema for use. Every node of the schema is processed once, here; afterwards validating an object costs in
 * proportion to its own size. The metadata of the object is always that of Kubernetes.
 */
export function compileSchema(schema: Schema): CompiledSchema {
  const full = rootSchema(schema);
  const root = compileNode(full);
  return {
    applyDefaults(object) {
      canonicalise(full, object);
      fillDefaults(root, object);
    },
    undecodable(object) {
      const problem = undecodable(full, object);
      return problem?.replace("struct field ", `struct field ${object.kind}.`);
    },
    prune(object) {
      const dropped: Dropped = { paths: [], characters: 0 };
      pruneValue(root, object, [], dropped);
      return dropped.paths.toSorted();
    },
    validate(object, before) {
      return validateObject(root, object, before);
    },
  };
}

/** Whether `value`, standing alone, obeys `schema`: for defaults in schemas. */
export function validateFragment(schema: Schema, value: unknown, path: string): readonly FieldError[] {
  const walk: Walk = { steps: path === "" ? [] : [path], findings: [], work: { left: mostChecks } };
  check(compileNode(schema), value, walk);
  return [...walk.findings.map(({ error }) => error), ...unfinished(walk)];
}

interface Node {
  readonly schema: Schema;
  readonly properties: ReadonlyMap<string, Node> | undefined;
  readonly additional: Node | "any" | undefined;
  readonly items: Node | undefined;
  readonly keepsUnknown: boolean;
  readonly required: readonly string[];
  /** Names of properties that have a default. */
  readonly defaults: readonly { readonly name: string; readonly value: unknown }[];
  readonly pattern: Expression | undefined;
  readonly allowed: Allowed | undefined;
  readonly allOf: readonly Node[];
  readonly anyOf: readonly Node[];
  readonly oneOf: readonly Node[];
  readonly not: Node | undefined;
  readonly rules: CompiledRules | undefined;
  /** Rules here or below. */
  readonly hasRules: boolean;
}

/** The values of an enum. */
interface Allowed {
  readonly canonical: ReadonlySet<string>;
  /** Whether any is a list or an object. */
  readonly hasParts: boolean;
  /** As refusals name them. */
  readonly words: readonly string[];
}

const hasParts = (value: unknown): boolean => isList(value) || isObject(value);

const allowedBy = (values: readonly unknown[]): Allowed => ({
  canonical: new Set(values.map(canonicalJson)),
  hasParts: values.some(hasParts),
  words: values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))),
});

const isAllowed = ({ canonical, hasParts: withParts }: Allowed, value: unknown, { work }: Walk): boolean =>
  (withParts || !hasParts(value)) && canonical.has(canonicalOf(value, work));

/** A hundred thousand enums of one definition may ask for the same value. */
function canonicalOf(value: unknown, work: Walk["work"]): string {
  if (!hasParts(value)) return canonicalJson(value);
  const last = work.canonical;
  const known = last !== undefined && last.of === value ? last : { of: value, text: canonicalJson(value) };
  work.canonical = known;
  return known.text;
}

const compiledNodes = new WeakMap<Schema, Node>();

/** Shared parts of schemas (the pod template in five kinds) are compiled once. */
function compileNode(schema: Schema): Node {
  const known = compiledNodes.get(schema);
  if (known !== undefined) return known;
  const properties =
    schema.properties === undefined
      ? undefined
      : new Map(Object.entries(schema.properties).map(([name, property]) => [name, compileNode(property)]));
  const { additionalProperties } = schema;
  const additional =
    additionalProperties === true
      ? "any"
      : isObject(additionalProperties)
        ? compileNode(additionalProperties)
        : undefined;
  const items = schema.items === undefined ? undefined : compileNode(schema.items);
  const rules = compileRules(schema);
  const children = [
    ...(properties?.values() ?? []),
    ...(additional === undefined || additional === "any" ? [] : [additional]),
    ...(items === undefined ? [] : [items]),
  ];
  const node: Node = {
    schema,
    properties:
      schema["x-kubernetes-embedded-resource"] === true
        ? addEmbedded(properties ?? new Map<string, Node>())
        : properties,
    additional,
    items,
    keepsUnknown: schema["x-kubernetes-preserve-unknown-fields"] === true,
    required: schema.required ?? [],
    defaults: Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
      property.default === undefined ? [] : [{ name, value: property.default }],
    ),
    pattern: schema.pattern === undefined ? undefined : compileExpression(schema.pattern),
    allowed: schema.enum === undefined ? undefined : allowedBy(schema.enum),
    allOf: (schema.allOf ?? []).map(compileNode),
    anyOf: (schema.anyOf ?? []).map(compileNode),
    oneOf: (schema.oneOf ?? []).map(compileNode),
    not: schema.not === undefined ? undefined : compileNode(schema.not),
    rules,
    hasRules: rules !== undefined || children.some((one) => one.hasRules),
  };
  compiledNodes.set(schema, node);
  return node;
}

function addEmbedded(properties: Map<string, Node>): Map<string, Node> {
  for (const [name, schema] of Object.entries({
    apiVersion: { type: "string" },
    kind: { type: "string" },
  } satisfies Record<string, Schema>)) {
    if (!properties.has(name)) properties.set(name, compileNode(schema));
  }
  properties.set("metadata", compileNode(objectMeta));
  return properties;
}

/** Fills absent fields; an explicit null counts as absent unless the field is nullable. */
function fillDefaults(node: Node, value: unknown): void {
  if (isObject(value)) {
    for (const { name, value: fallback } of node.defaults) {
      const current = own(value, name);
      if (current === undefined || (current === null && node.properties?.get(name)?.schema.nullable !== true))
        value[name] = cloneJson(fallback);
    }
    for (const key of Object.keys(value)) {
      const child = childOf(node, key);
      if (child === undefined) continue;
      if (value[key] === null && child.schema.nullable !== true && !child.keepsUnknown) delete value[key];
      else fillDefaults(child, value[key]);
    }
  } else if (isList(value) && node.items !== undefined) {
    for (const item of value) fillDefaults(node.items, item);
  }
}

function childOf(node: Node, key: string): Node | undefined {
  const property = node.properties?.get(key);
  if (property !== undefined) return property;
  return node.additional === "any" ? undefined : node.additional;
}

/** Paths of dropped fields that are named, and characters of all of them: many may be below one long name. */
const mostDropped = { count: 10_000, characters: 1024 * 1024 } as const;

interface Dropped {
  readonly paths: string[];
  /** Of all paths. */
  characters: number;
}

function noteDropped(dropped: Dropped, steps: readonly Step[]): void {
  if (dropped.paths.length >= mostDropped.count || dropped.characters >= mostDropped.characters) return;
  const path = printPath(steps);
  dropped.paths.push(path);
  dropped.characters += path.length;
}

function pruneValue(node: Node, value: unknown, steps: Step[], dropped: Dropped): void {
  if (isObject(value)) {
    for (const key of Object.keys(value)) {
      const child = childOf(node, key);
      if (child !== undefined) {
        const inner = value[key];
        if (typeof inner !== "object" || inner === null) continue;
        steps.push(key);
        pruneValue(child, inner, steps, dropped);
        steps.pop();
      } else if (key === "__proto__" || (!node.keepsUnknown && node.additional !== "any")) {
        // A node without any word on its type (an int-or-string, say) is left to validation.
        if (node.schema.type === undefined && node.properties === undefined) continue;
        steps.push(key);
        noteDropped(dropped, steps);
        steps.pop();
        delete value[key];
      }
    }
  } else if (isList(value) && node.items !== undefined) {
    const { items } = node;
    value.forEach((item, index) => {
      if (typeof item !== "object" || item === null) return;
      steps.push(index);
      pruneValue(items, item, steps, dropped);
      steps.pop();
    });
  }
}

type Step = string | number;

interface Finding {
  readonly steps: readonly Step[];
  readonly error: FieldError;
  /** A rule on the change itself, which an unchanged value does not excuse. */
  readonly transition?: boolean;
  /** Two of a set or a map. */
  readonly duplicate?: boolean;
}

interface Walk {
  readonly steps: Step[];
  readonly findings: Finding[];
  /** Of the whole object, with all alternatives. */
  readonly work: {
    left: number;
    /** Of the last list or object that an enum was asked about. */
    canonical?: { readonly of: unknown; readonly text: string };
  };
}

/**
 * Checks of a value by a part of a schema, for one object: parts that combine others are as many for each value below them
 * as a definition has room for. The largest object by a schema without such parts takes a tenth.
 */
const mostChecks = 20_000_000;

function unfinished({ work }: Pick<Walk, "work">): readonly FieldError[] {
  if (work.left > 0) return [];
  const problem = `validation takes more than ${mostChecks} steps: the schema combines too many parts for so many values`;
  return [invalid("<nil>", "", problem)];
}

/**
 * A problem whose texts are made when they are read: an object may have a hundred thousand, each with a value or a path of
 * a megabyte, and an answer lists a hundred.
 */
class FoundError implements FieldError {
  readonly reason: string;
  readonly #steps: readonly Step[];
  readonly #make: (path: string) => FieldError;

  constructor(reason: string, steps: readonly Step[], make: (path: string) => FieldError) {
    this.reason = reason;
    this.#steps = steps;
    this.#make = make;
  }

  get field(): string {
    return this.#make(printPath(this.#steps)).field;
  }

  get message(): string {
    return this.#make(printPath(this.#steps)).message;
  }
}

function printPath(steps: readonly Step[]): string {
  let path = "";
  for (const step of steps) path += typeof step === "number" ? `[${step}]` : path === "" ? step : `.${step}`;
  return path;
}

const blocking = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);

function validateObject(root: Node, object: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const walk: Walk = { steps: [], findings: [], work: { left: mostChecks } };
  check(root, object, walk);
  const tooMuch = unfinished(walk);
  if (tooMuch.length > 0) return tooMuch;
  let findings = [
    ...ratchet(
      root,
      walk.findings.filter(({ duplicate }) => duplicate !== true),
      object,
      before,
    ),
    ...newDuplicates(root, walk, before),
  ];
  if (root.hasRules) {
    if (findings.some(({ error }) => blocking.has(error.reason))) {
      findings = [
        ...findings,
        {
          steps: [],
          error: { ...invalid("<nil>", null, rulesNotChecked), isRest: true },
        },
      ];
    } else {
      const ruled: Walk = { steps: [], findings: [], work: walk.work };
      runRules(root, object, before, { walk: ruled, budget: { left: objectLimit }, decoded: new Map() });
      findings = [...findings, ...ratchet(root, ruled.findings, object, before)];
    }
  }
  const errors = findings.map(({ error }) => error);
  return [
    ...errors.filter((error) => error.reason === "FieldValueTypeInvalid"),
    ...errors.filter((error) => error.reason !== "FieldValueTypeInvalid"),
  ];
}

/**
 * Lets a value pass that was stored when the schema was laxer, as long as the request leaves it as it is
 * (kubernetes/enhancements keps/sig-api-machinery/4008-crd-ratcheting).
 */
function ratchet(
  root: Node,
  findings: readonly Finding[],
  object: KubeObject,
  before: KubeObject | undefined,
): readonly Finding[] {
  if (before === undefined || findings.length === 0) return findings;
  const equal = rememberedEquality();
  return findings.filter(
    (finding) => finding.transition === true || !unchangedAt(root, finding.steps, object, before, equal),
  );
}

/**
 * Lists are ratcheted by another rule: where the old object had any item twice, anywhere, duplicates are not reported.
 * kubernetes/apiextensions-apiserver pkg/registry/customresource/strategy.go (v0.34)
 */
function newDuplicates(root: Node, { findings }: Walk, before: KubeObject | undefined): readonly Finding[] {
  const duplicates = findings.filter(({ duplicate }) => duplicate === true);
  if (duplicates.length === 0 || before === undefined) return duplicates;
  const old: Walk = { steps: [], findings: [], work: { left: mostChecks } };
  check(root, before, old);
  return old.findings.some(({ duplicate }) => duplicate === true) ? [] : duplicates;
}

type Equality = (a: unknown, b: unknown) => boolean;

/** Compares two values once, though many findings lie below them: otherwise the time is the square of their size. */
function rememberedEquality(): Equality {
  const known = new Map<unknown, Map<unknown, boolean>>();
  return (a, b) => {
    if (!isObject(a) && !isList(a)) return equalJson(a, b);
    const of = known.get(a) ?? new Map<unknown, boolean>();
    known.set(a, of);
    const result = of.get(b) ?? equalJson(a, b);
    of.set(b, result);
    return result;
  };
}

function unchangedAt(root: Node, steps: readonly Step[], object: unknown, before: unknown, equal: Equality): boolean {
  let node: Node | undefined = root;
  let now: unknown = object;
  let old: unknown = before;
  for (const step of steps) {
    if (typeof step === "number") {
      if (!isList(now) || !isList(old)) return false;
      const item: unknown = now[step];
      old = node === undefined ? undefined : correlate(node.schema, item, old);
      now = item;
      node = node?.items;
    } else {
      if (!isObject(now) || !isObject(old)) return false;
      if (!Object.hasOwn(now, step)) return false;
      now = now[step];
      old = Object.hasOwn(old, step) ? old[step] : undefined;
      node = node === undefined ? undefined : childOf(node, step);
    }
    if (old === undefined) return false;
    if (node?.schema["x-kubernetes-map-type"] !== "atomic" && equal(now, old)) return true;
  }
  return equal(now, old);
}

/** Items of a long list by their keys: such a list is not searched for each item of another. */
interface ItemsByKey {
  readonly keys: readonly string[];
  readonly items: ReadonlyMap<string, unknown>;
}
const itemsByKey = new WeakMap<readonly unknown[], ItemsByKey>();
/** Shorter lists are searched. */
const longList = 32;

/** The item of the old list that stands for `item`; only list maps know. */
function correlate(schema: Schema, item: unknown, old: readonly unknown[]): unknown {
  const keys = schema["x-kubernetes-list-type"] === "map" ? schema["x-kubernetes-list-map-keys"] : undefined;
  if (keys === undefined || !isObject(item)) return undefined;
  if (old.length < longList)
    return old.find((candidate) => isObject(candidate) && keys.every((key) => equalJson(candidate[key], item[key])));
  const keyOf = (one: JsonObject): string => canonicalJson(keys.map((key) => one[key]));
  let known = itemsByKey.get(old);
  if (known?.keys !== keys) {
    // Of equal keys the first counts.
    const items = new Map(
      old
        .filter(isObject)
        .toReversed()
        .map((one) => [keyOf(one), one]),
    );
    itemsByKey.set(old, (known = { keys, items }));
  }
  return known.items.get(keyOf(item));
}

function report(walk: Walk, reason: string, make: (path: string) => FieldError): void {
  const steps = [...walk.steps];
  walk.findings.push({ steps, error: new FoundError(reason, steps, make) });
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (isList(value)) return "array";
  if (typeof value === "number") return isWhole(value) ? "integer" : "number";
  return typeof value;
}

/**
 * Beyond 64 bits a number is no integer. Formats check nothing more: the real server checks `int32` only on values with
 * bounds of their own, and reports the bounds first (kube-openapi pkg/validation/validate).
 */
function isWhole(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && Math.abs(value) <= 2 ** 63;
}

function hasType(schema: Schema, value: unknown): boolean {
  if (schema["x-kubernetes-int-or-string"] === true)
    return typeof value === "string" || (typeof value === "number" && Number.isInteger(value));
  switch (schema.type) {
    case "object":
      return isObject(value);
    case "array":
      return isList(value);
    case "integer":
      return isWhole(value);
    case "number":
      return typeof value === "number";
    case "string":
      return typeof value === "string";
    case "boolean":
      return typeof value === "boolean";
    case undefined:
      return true;
    default:
      return false;
  }
}

function check(node: Node, value: unknown, walk: Walk): void {
  if (walk.work.left <= 0) return;
  walk.work.left -= 1;
  const { schema } = node;
  if (value === null && schema.nullable === true) return;
  if (!hasType(schema, value)) {
    const wanted = schema["x-kubernetes-int-or-string"] === true ? "integer,string" : (schema.type ?? "");
    report(walk, "FieldValueTypeInvalid", (path) =>
      typeInvalid(
        path,
        typeName(value),
        `${path} in body must be of type ${wanted}: ${JSON.stringify(typeName(value))}`,
      ),
    );
    if (schema["x-kubernetes-int-or-string"] === true) checkCombinations(node, value, walk);
    return;
  }
  if (node.allowed !== undefined && !isAllowed(node.allowed, value, walk)) {
    const { words } = node.allowed;
    report(walk, "FieldValueNotSupported", (path) => notSupported(path, value, words));
  }
  if (typeof value === "string") checkString(node, value, walk);
  else if (typeof value === "number") checkNumber(schema, value, walk);
  else if (isList(value)) checkList(node, value, walk);
  else if (isObject(value)) checkObject(node, value, walk);
  if (node.allOf.length + node.anyOf.length + node.oneOf.length > 0 || node.not !== undefined)
    checkCombinations(node, value, walk);
}

/** Of length and pattern, the first that is not obeyed is told (k8s.io/kube-openapi pkg/validation/validate/validator.go, master). */
function checkString({ schema, pattern }: Node, value: string, walk: Walk): void {
  const { maxLength, minLength } = schema;
  if (maxLength !== undefined && hasMoreCharacters(value, maxLength)) {
    report(walk, "FieldValueTooLong", (path) => tooLong(path, maxLength));
  } else if (minLength !== undefined && !hasMoreCharacters(value, minLength - 1)) {
    report(walk, "FieldValueInvalid", (path) =>
      invalid(path, value, `${path} in body should be at least ${minLength} chars long`),
    );
  } else if (pattern?.verdict === "compiled" && !pattern.test(value)) {
    report(walk, "FieldValueInvalid", (path) =>
      invalid(path, value, `${path} in body should match '${schema.pattern}'`),
    );
  }
  if (
    schema.format !== undefined &&
    Object.hasOwn(formats, schema.format) &&
    formats[schema.format]?.(value) === false
  ) {
    report(walk, "FieldValueTypeInvalid", (path) =>
      typeInvalid(path, value, `${path} in body must be of type ${schema.format}: ${JSON.stringify(value)}`),
    );
  }
}

/** Whether a text has more than so many characters, each of which is one or two units: only then are they counted. */
function hasMoreCharacters(text: string, count: number): boolean {
  if (text.length <= count) return false;
  if (text.length > 2 * count) return true;
  let characters = 0;
  for (const _ of text) characters += 1;
  return characters > count;
}

function checkNumber(schema: Schema, value: number, walk: Walk): void {
  const { minimum, maximum, multipleOf } = schema;
  if (maximum !== undefined && (schema.exclusiveMaximum === true ? value >= maximum : value > maximum)) {
    const words = schema.exclusiveMaximum === true ? "should be less than" : "should be less than or equal to";
    report(walk, "FieldValueInvalid", (path) => invalid(path, value, `${path} in body ${words} ${maximum}`));
  }
  if (minimum !== undefined && (schema.exclusiveMinimum === true ? value <= minimum : value < minimum)) {
    const words = schema.exclusiveMinimum === true ? "should be greater than" : "should be greater than or equal to";
    report(walk, "FieldValueInvalid", (path) => invalid(path, value, `${path} in body ${words} ${minimum}`));
  }
  if (multipleOf !== undefined && !Number.isInteger(value / multipleOf)) {
    report(walk, "FieldValueInvalid", (path) =>
      invalid(path, value, `${path} in body should be a multiple of ${multipleOf}`),
    );
  }
}

function checkList(node: Node, value: readonly unknown[], walk: Walk): void {
  const { schema, items } = node;
  if (schema.maxItems !== undefined && value.length > schema.maxItems) {
    const { maxItems } = schema;
    report(walk, "FieldValueTooMany", (path) => tooMany(path, value.length, maxItems));
    // A value that is too long is not searched: the bound keeps the cost down.
    return;
  }
  if (schema.minItems !== undefined && value.length < schema.minItems) {
    report(walk, "FieldValueInvalid", (path) =>
      invalid(path, value.length, `${path} in body should have at least ${schema.minItems} items`),
    );
  }
  if (items !== undefined) {
    for (let index = 0; index < value.length; index++) {
      walk.steps.push(index);
      check(items, value[index], walk);
      walk.steps.pop();
    }
  }
  checkUniqueness(schema, value, walk);
}

/** `uniqueItems: false` on a list map marks the built-in lists in which Kubernetes tolerates equal keys. */
function checkUniqueness(schema: Schema, value: readonly unknown[], walk: Walk): void {
  const type = schema["x-kubernetes-list-type"];
  if (
    value.length < 2 ||
    (type !== "set" && type !== "map" && schema.uniqueItems !== true) ||
    (type === "map" && schema.uniqueItems === false)
  )
    return;
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const seen = new Map<string, number>();
  value.forEach((item, index) => {
    let identity: unknown = item;
    if (type === "map") {
      if (!isObject(item)) return;
      const key: JsonObject = {};
      for (const name of keys) if (item[name] !== undefined) key[name] = item[name];
      identity = key;
    }
    const text = typeof identity === "string" ? identity : canonicalJson(identity);
    const times = seen.get(text) ?? 0;
    seen.set(text, times + 1);
    // The second one is reported, and no third.
    if (times === 1)
      walk.findings.push({
        steps: [...walk.steps, index],
        error: duplicate(printPath([...walk.steps, index]), identity),
        duplicate: true,
      });
  });
}

function checkObject(node: Node, value: JsonObject, walk: Walk): void {
  const { schema } = node;
  for (const name of node.required) {
    if (own(value, name) !== undefined) continue;
    walk.steps.push(name);
    report(walk, "FieldValueRequired", (path) => required(path));
    walk.steps.pop();
  }
  if (schema["x-kubernetes-embedded-resource"] === true) checkEmbedded(value, walk);
  const bounded = schema.maxProperties !== undefined || schema.minProperties !== undefined;
  const count = bounded ? Object.keys(value).length : 0;
  if (schema.maxProperties !== undefined && count > schema.maxProperties) {
    const { maxProperties } = schema;
    report(walk, "FieldValueTooMany", (path) => tooMany(path, count, maxProperties));
  }
  if (schema.minProperties !== undefined && count < schema.minProperties) {
    report(walk, "FieldValueInvalid", (path) =>
      invalid(path, count, `${path} in body should have at least ${schema.minProperties} properties`),
    );
  }
  for (const key in value) {
    const child = childOf(node, key);
    if (child === undefined) continue;
    const inner = value[key];
    if (inner === undefined) continue;
    walk.steps.push(key);
    check(child, inner, walk);
    walk.steps.pop();
  }
}

function checkEmbedded(value: JsonObject, walk: Walk): void {
  for (const name of ["apiVersion", "kind"]) {
    if (value[name] !== undefined && value[name] !== "") continue;
    walk.steps.push(name);
    report(walk, "FieldValueRequired", (path) => required(path));
    walk.steps.pop();
  }
}

function passes(node: Node, value: unknown, { work }: Walk): boolean {
  const walk: Walk = { steps: [], findings: [], work };
  check(node, value, walk);
  return walk.findings.length === 0;
}

/** Looks for an alternative that a value obeys. `none` has the findings of the first one, at `steps`. */
function firstPassing(
  parts: readonly Node[],
  value: unknown,
  { steps, work }: Walk,
): { readonly verdict: "one" } | { readonly verdict: "none"; readonly findings: readonly Finding[] } {
  let findings: readonly Finding[] | undefined;
  for (const part of parts) {
    const walk: Walk = { steps: [...steps], findings: [], work };
    check(part, value, walk);
    if (walk.findings.length === 0) return { verdict: "one" };
    findings ??= walk.findings;
  }
  return findings === undefined ? { verdict: "one" } : { verdict: "none", findings };
}

function checkCombinations(node: Node, value: unknown, walk: Walk): void {
  for (const part of node.allOf) check(part, value, walk);
  // Each alternative is tried once: within alternatives, twice would be many times.
  const tried = firstPassing(node.anyOf, value, walk);
  if (tried.verdict === "none") {
    report(walk, "FieldValueInvalid", (path) => ({
      ...invalid("", "", `${JSON.stringify(path)} must validate at least one schema (anyOf)`),
      field: "<nil>",
    }));
    // The closest alternative is reported; here they are alike.
    pushAll(walk.findings, tried.findings);
  }
  if (node.oneOf.length > 0) {
    const valid = node.oneOf.filter((part) => passes(part, value, walk)).length;
    if (valid !== 1) {
      const found = valid === 0 ? "Found none valid" : `Found ${valid} valid alternatives`;
      report(walk, "FieldValueInvalid", (path) =>
        invalid("<nil>", "", `${JSON.stringify(path)} must validate one and only one schema (oneOf). ${found}`),
      );
    }
  }
  if (node.not !== undefined && passes(node.not, value, walk)) {
    report(walk, "FieldValueInvalid", (path) =>
      invalid("<nil>", "", `${JSON.stringify(path)} must not validate the schema (not)`),
    );
  }
}

interface RuledWalk {
  readonly walk: Walk;
  readonly budget: Budget;
  /** Values of the object, each decoded once for the rules of all levels above it. */
  readonly decoded: DecodedValues;
}

function runRules(node: Node, value: unknown, old: unknown, ruled: RuledWalk): void {
  if (!node.hasRules || value === null) return;
  const { walk, budget, decoded } = ruled;
  if (node.rules !== undefined) {
    for (const { error, steps, transition } of node.rules.run(value, old, printPath(walk.steps), budget, decoded)) {
      walk.findings.push({ steps: [...walk.steps, ...steps], error, transition });
    }
  }
  if (isObject(value)) {
    for (const key in value) {
      const child = childOf(node, key);
      if (child?.hasRules !== true) continue;
      walk.steps.push(key);
      runRules(child, value[key], isObject(old) ? own(old, key) : undefined, ruled);
      walk.steps.pop();
    }
  } else if (isList(value) && node.items?.hasRules === true) {
    const { items } = node;
    value.forEach((item, index) => {
      walk.steps.push(index);
      runRules(items, item, isList(old) ? correlate(node.schema, item, old) : undefined, ruled);
      walk.steps.pop();
    });
  }
}
