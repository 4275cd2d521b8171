import { pushAll } from "../../../../api/schema/push-all.ts";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { RE2JS } from "re2js";
import { Environment, Optional, type ParseResult, type RegisteredFunctionHandler } from "@marcbachmann/cel-js";
import { isCidr, isIPv4, isIPv6, isTimestamp, formats } from "../formats.ts";
import {
  type NameRule,
  labelName,
  labelValueProblems,
  qualifiedNameProblems,
  serviceName,
  subdomainName,
} from "./object-validation.ts";
import { equalJson, isList } from "../json-values.ts";
import { nano, parseQuantity } from "../../../../api/schema/quantities.ts";
import {
  allMatches,
  compilationSize,
  compileAlone,
  compiledSize,
  compileExpression,
  type Expression,
} from "../regular-expressions.ts";
import { paid, spend, spendOn, spendOnSearch, tooCostly, traversal } from "./cel-cost.ts";
import { type Comparable, concatenate, contains, indexIn, isDuration, mapOf, same } from "./cel-equality.ts";
import { addMacros } from "./cel-macros.ts";
import { compareSemver, normalizedSemver, parseSemver, Semver } from "./cel-semver.ts";

/**
 * The functions that Kubernetes adds to CEL, without `authorizer`: kubernetes/apiserver pkg/cel/environment/base.go and
 * pkg/cel/library (v1.34). New definitions on such a server may use those of 1.33: Kubernetes accepts a function one
 * release after it was introduced. The environment declares no variables; to compile an expression, clone it and declare
 * them.
 *
 * @param use `check`: functions have the types that Kubernetes declares, as far as the library can tell them apart;
 *   `run`: their arguments are dynamic, since values have no declared types there.
 */
export function kubernetesEnvironment(use: "check" | "run"): Environment {
  const env = new Environment({
    enableOptionalTypes: true,
    homogeneousAggregateLiterals: use === "check",
    // What runs is the expression with the names of our functions and what it costs in it.
    limits: use === "check" ? { maxAstNodes: 20_000, maxDepth: 100 } : { maxAstNodes: 80_000, maxDepth: 300 },
  });
  addMacros(env);
  addSizes(env);
  addSearches(env);
  const declared = paying(env);
  addStrings(declared);
  addTimes(declared);
  addConversions(declared);
  addLists(declared, use);
  addOptionals(declared);
  addNamedFormats(declared);
  addAddresses(declared);
  addQuantities(declared);
  addVersions(declared);
  addOperators(env);
  const named = env.clone();
  named.registerConstant("net", "map<string, type>", {
    IP: env.evaluate("type(ip('::1'))"),
    CIDR: env.evaluate("type(cidr('::/0'))"),
  });
  return named;
}

/** What an environment may be told. */
interface Declarations {
  registerFunction(signature: string, handler: RegisteredFunctionHandler): void;
  registerOperator(signature: string, handler: (a: unknown, b: unknown) => unknown): void;
  registerType(name: string, type: { readonly ctor: NewableFunction; readonly fields: Record<string, string> }): void;
  registerConstant(name: string, type: string, value: unknown): void;
}

/** An environment whose functions pay for the texts that they get. */
function paying(env: Environment): Declarations {
  return {
    registerFunction: (signature, handler) => env.registerFunction(signature, paid(handler), { async: false }),
    registerOperator: (signature, handler) => env.registerOperator(signature, handler),
    registerType: (name, type) => env.registerType(name, type),
    registerConstant: (name, type, value) => env.registerConstant(name, type, value),
  };
}

const kubernetesFunctions = new Set(
  `has size contains startsWith endsWith matches all exists exists_one existsOne map filter transformList transformMap
   transformMapEntry getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes
   getMonth getSeconds bool bytes double duration dyn int string timestamp type uint charAt format indexOf join
   lastIndexOf lowerAscii quote replace split substring trim upperAscii find findAll isURL url getScheme getHost
   getHostname getPort getEscapedPath getQuery isSorted sum min max equivalent intersects none of ofNonZeroValue unwrap
   hasValue value or orValue optMap optFlatMap unwrapOpt first last named validate dns1123Label dns1123Subdomain
   dns1035Label dns1123LabelPrefix dns1123SubdomainPrefix dns1035LabelPrefix qualifiedName labelValue uri uuid byte date
   datetime isIP ip isCanonical isCIDR cidr family isLoopback isUnspecified isLinkLocalUnicast isLinkLocalMulticast
   isGlobalUnicast prefixLength masked containsIP containsCIDR isQuantity quantity isGreaterThan isLessThan compareTo sign
   isInteger asInteger asApproximateFloat add sub isSemver semver major minor patch`.split(/\s+/),
);

/** Whether Kubernetes has a function or macro of this name. The library has more. */
export const isKubernetesFunction = (name: string): boolean => kubernetesFunctions.has(name);

/** The functions that replace operators and map literals: the library turns the keys of a literal into strings. */
export const operatorFunctions = {
  "==": "kubernetesEqual",
  "+": "kubernetesAdd",
  in: "kubernetesIn",
  "<": "kubernetesLess",
  "<=": "kubernetesLessOrEqual",
  ">": "kubernetesGreater",
  ">=": "kubernetesGreaterOrEqual",
  map: "kubernetesMap",
} as const;

/**
 * The functions that replace methods of the library, which passes RE2 patterns to JavaScript, counts UTF-16 units, changes
 * the case of letters outside ASCII, and computes the day of the year in the local time zone.
 */
export const methodFunctions: Readonly<Record<string, string>> = {
  matches: "kubernetesMatches",
  lowerAscii: "kubernetesLowerAscii",
  upperAscii: "kubernetesUpperAscii",
  indexOf: "kubernetesIndexOf",
  lastIndexOf: "kubernetesLastIndexOf",
  substring: "kubernetesSubstring",
  trim: "kubernetesTrim",
  getDayOfYear: "kubernetesDayOfYear",
  contains: "kubernetesContains",
  startsWith: "kubernetesStartsWith",
  endsWith: "kubernetesEndsWith",
  split: "kubernetesSplit",
  join: "kubernetesJoin",
  size: "kubernetesSize",
};

/** The functions that replace conversions of the library, which parses strings that Go does not. */
export const globalFunctions: Readonly<Record<string, string>> = {
  timestamp: "kubernetesTimestamp",
  string: "kubernetesString",
  int: "kubernetesInt",
  double: "kubernetesDouble",
  duration: "kubernetesDuration",
  bytes: "kubernetesBytes",
  size: "kubernetesSize",
};

/** Whether a text is a regular expression. */
export const isExpression = (text: string): boolean => compileExpression(text).verdict === "compiled";

/** Types of Kubernetes and of CEL that may be compared with null. */
const nullable = [
  "google.protobuf.Timestamp",
  "google.protobuf.Duration",
  "kubernetes.URL",
  "kubernetes.Quantity",
  "kubernetes.Semver",
  "net.IP",
  "net.CIDR",
];

/** The library's addition, for everything but lists. */
const plus = ofTwo("a + b");

/** The library's comparisons, for everything but texts and integers. */
const orders = [
  ["<", ofTwo("a < b"), (order: number) => order < 0],
  ["<=", ofTwo("a <= b"), (order: number) => order <= 0],
  [">", ofTwo("a > b"), (order: number) => order > 0],
  [">=", ofTwo("a >= b"), (order: number) => order >= 0],
] as const;

function ofTwo(expression: string): ParseResult {
  return new Environment().registerVariable("a", "dyn").registerVariable("b", "dyn").parse(expression);
}

function addOperators(env: Environment): void {
  for (const type of nullable) env.registerOperator(`${type} == null`, () => false);
  env.registerOperator("optional<A> == optional<A>", same);
  env.registerFunction(`${operatorFunctions["=="]}(dyn, dyn): bool`, same);
  env.registerFunction(`${operatorFunctions["+"]}(dyn, dyn): dyn`, (a: unknown, b: unknown): unknown =>
    isList(a) && isList(b) ? bounded(concatenate(a, b)) : sumOf(a, b),
  );
  for (const [operator, library, holds] of orders)
    env.registerFunction(`${operatorFunctions[operator]}(dyn, dyn): bool`, (a: unknown, b: unknown): unknown => {
      const isPlain = (typeof a === "string" || typeof a === "bigint") && typeof a === typeof b;
      return isPlain ? holds(compare(a, b)) : library({ a, b });
    });
  env.registerFunction(`${operatorFunctions.in}(dyn, dyn): bool`, (item: unknown, all: unknown) => {
    if (isList(all)) return indexIn(all, item) !== -1;
    const map = mapOf(all);
    if (map === undefined) throw new Error("no such overload");
    return map.has(item);
  });
  env.registerFunction(
    `${operatorFunctions.map}(list<dyn>): map<dyn, dyn>`,
    (entries: readonly (readonly [unknown, unknown])[]) => new Map(entries),
  );
}

/** No result grows beyond this many characters, bytes or items. */
const resultLimit = 1_000_000;

function bounded<T extends readonly unknown[]>(value: T): T {
  if (value.length > resultLimit) throw new Error(tooCostly);
  return value;
}

const lengthOf = (value: unknown): number =>
  typeof value === "string" || value instanceof Uint8Array ? value.length : 0;

/** A sum of other things than lists. Texts and bytes are paid before they are made. */
function sumOf(a: unknown, b: unknown): unknown {
  const length = lengthOf(a) + lengthOf(b);
  spendOn(length);
  if (length > resultLimit) throw new Error(tooCostly);
  return plus({ a, b });
}

/** The patterns that stand in one rule, as far as they are compiled: the rule keeps them. */
export type LiteralPatterns = Map<string, Expression>;

/** Of the rule that is being evaluated: evaluation is synchronous. */
let literalPatterns: LiteralPatterns = new Map();

/** Evaluates a rule whose patterns are compiled once. */
export function withLiteralPatterns<T>(patterns: LiteralPatterns, work: () => T): T {
  const outer = literalPatterns;
  literalPatterns = patterns;
  try {
    return work();
  } finally {
    literalPatterns = outer;
  }
}

function literalPattern(pattern: string): Expression {
  const known = literalPatterns.get(pattern) ?? compileAlone(pattern);
  literalPatterns.set(pattern, known);
  return known;
}

function expressionOf(compiled: Expression): RE2JS {
  if (compiled.verdict === "refused") throw new Error(compiled.message);
  return compiled.expression;
}

/** A size costs less than other functions of a text: kube-apiserver takes 1 for it, however long the text is. */
function addSizes(env: Environment): void {
  const name = globalFunctions["size"];
  const ofText = (text: string): bigint => {
    spend(text.length / 100);
    let count = 0;
    for (const _letter of text) count++;
    return BigInt(count);
  };
  const ofItems = (items: { readonly length: number }): bigint => BigInt(items.length);
  const ofMap = (map: unknown): bigint => BigInt(mapOf(map)?.size ?? 0);
  for (const [type, size] of [
    ["string", ofText],
    ["bytes", ofItems],
    ["list", ofItems],
    ["map", ofMap],
  ] as const) {
    env.registerFunction(`${name}(${type}): int`, size);
    env.registerFunction(`${type}.${name}(): int`, size);
  }
}

/** The functions for a pattern that does not stand in the rule: each time, it is paid as if it were compiled. */
export const givenPatterns = {
  matches: "kubernetesMatchesGiven",
  find: "kubernetesFindGiven",
  findAll: "kubernetesFindAllGiven",
} as const satisfies Readonly<Record<string, string>>;

/** What a search costs depends on both texts. */
function addSearches(env: Environment): void {
  const matches = methodFunctions["matches"];
  addSearchesBy(env, { function: "matches", matches, find: "find", findAll: "findAll" }, (text, pattern) => {
    spendOnSearch(text, pattern.length);
    return literalPattern(pattern);
  });
  addSearchesBy(env, { function: givenPatterns.matches, ...givenPatterns }, (text, pattern) => {
    spend(compilationSize(pattern) + 1);
    spendOnSearch(text, pattern.length + compiledSize(pattern));
    return compileExpression(pattern);
  });
  env.registerFunction("string.kubernetesContains(string): bool", (text: string, wanted: string) => {
    spend(Math.ceil(text.length * traversal) * Math.ceil(wanted.length * traversal));
    return text.includes(wanted);
  });
}

/** @param pay charges for a search, and then compiles its pattern. */
function addSearchesBy(
  env: Environment,
  names: Readonly<Record<"function" | "matches" | "find" | "findAll", string | undefined>>,
  pay: (text: string, pattern: string) => Expression,
): void {
  const test = (text: string, pattern: string): boolean => expressionOf(pay(text, pattern)).test(text);
  const search = (text: string, pattern: string, limit: bigint): readonly string[] =>
    allMatches(expressionOf(pay(text, pattern)), text, limit < 0n ? Infinity : Number(limit));
  env.registerFunction(`${names.function}(string, string): bool`, test);
  env.registerFunction(`string.${names.matches}(string): bool`, test);
  env.registerFunction(
    `string.${names.find}(string): string`,
    (text: string, pattern: string) => search(text, pattern, 1n)[0] ?? "",
  );
  env.registerFunction(`string.${names.findAll}(string): list<string>`, (text: string, pattern: string) =>
    search(text, pattern, -1n),
  );
  env.registerFunction(`string.${names.findAll}(string, int): list<string>`, search);
}

function addStrings(env: Declarations): void {
  env.registerFunction("string.kubernetesLowerAscii(): string", (text: string) =>
    text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()),
  );
  env.registerFunction("string.kubernetesUpperAscii(): string", (text: string) =>
    text.replace(/[a-z]+/g, (letters) => letters.toUpperCase()),
  );
  env.registerFunction("string.kubernetesTrim(): string", trim);
  const [find, findLast] = ["string.kubernetesIndexOf", "string.kubernetesLastIndexOf"];
  env.registerFunction(`${find}(string): int`, (text: string, wanted: string) => indexOf(text, wanted, 0n));
  env.registerFunction(`${find}(string, int): int`, indexOf);
  env.registerFunction(`${findLast}(string): int`, (text: string, wanted: string) =>
    lastIndexOf(text, wanted, undefined),
  );
  env.registerFunction(`${findLast}(string, int): int`, lastIndexOf);
  env.registerFunction("string.kubernetesSubstring(int): string", (text: string, from: bigint) =>
    substring(text, from, undefined),
  );
  env.registerFunction("string.kubernetesSubstring(int, int): string", substring);
  env.registerFunction("string.kubernetesStartsWith(string): bool", (text: string, start: string) =>
    text.startsWith(start),
  );
  env.registerFunction("string.kubernetesEndsWith(string): bool", (text: string, end: string) => text.endsWith(end));
  env.registerFunction("string.kubernetesSplit(string): list<string>", (text: string, by: string) =>
    splitAt(text, by, -1n),
  );
  env.registerFunction("string.kubernetesSplit(string, int): list<string>", splitAt);
  env.registerFunction("list.kubernetesJoin(): string", (parts: readonly unknown[]) => join(parts, ""));
  env.registerFunction("list.kubernetesJoin(string): string", join);
  env.registerFunction("string.charAt(int): string", (text: string, index: bigint) => {
    const letters = Array.from(text);
    if (index < 0n || index > BigInt(letters.length)) throw new Error(`index out of range: ${index}`);
    return letters[Number(index)] ?? "";
  });
  env.registerFunction("string.replace(string, string): string", (text: string, old: string, by: string) =>
    replace(text, old, by, Infinity),
  );
  env.registerFunction(
    "string.replace(string, string, int): string",
    (text: string, old: string, by: string, count: bigint) =>
      replace(text, old, by, count < 0n ? Infinity : Number(count)),
  );
  env.registerType("kubernetes.Strings", { ctor: Strings, fields: {} });
  env.registerConstant("strings", "kubernetes.Strings", new Strings());
  env.registerFunction("kubernetes.Strings.quote(string): string", (_strings: Strings, text: string) => quote(text));
  env.registerFunction("string.format(list<dyn>): string", format);
  env.registerFunction("isURL(string): bool", (text: string) => parseUrl(text) !== undefined);
  env.registerType("kubernetes.URL", { ctor: KubernetesUrl, fields: {} });
  env.registerFunction("url(string): kubernetes.URL", (text: string) => {
    const url = parseUrl(text);
    if (url === undefined) throw new Error(`URL parse error during conversion from string: ${text}`);
    return new KubernetesUrl(url);
  });
  env.registerOperator("kubernetes.URL == kubernetes.URL", same);
  env.registerFunction("kubernetes.URL.getScheme(): string", ({ url }: KubernetesUrl) => url.scheme);
  env.registerFunction("kubernetes.URL.getHost(): string", ({ url }: KubernetesUrl) => url.host);
  env.registerFunction("kubernetes.URL.getHostname(): string", ({ place }: KubernetesUrl) => place.hostname);
  env.registerFunction("kubernetes.URL.getPort(): string", ({ place }: KubernetesUrl) => place.port);
  env.registerFunction("kubernetes.URL.getEscapedPath(): string", ({ url }: KubernetesUrl) => url.path);
  env.registerFunction("kubernetes.URL.getQuery(): map<string, list<string>>", ({ url }: KubernetesUrl) => {
    spendOn(url.query.length);
    const query = new Map<string, string[]>();
    for (const pair of url.query.split("&")) {
      if (pair === "") continue;
      const [key = "", ...value] = pair.split("=").map(decodeURIComponent);
      const known = query.get(key);
      if (known === undefined) query.set(key, [value.join("=")]);
      else known.push(value.join("="));
    }
    return query;
  });
}

/** The parts of a text, as Go's strings.SplitN has them; a negative limit is none. */
function splitAt(text: string, by: string, limit: bigint): readonly string[] {
  if (limit === 0n) return [];
  const parts = by === "" ? Array.from(text) : text.split(by);
  spendOn(parts.length);
  if (limit < 0n || BigInt(parts.length) <= limit) return parts;
  const last = Number(limit) - 1;
  return [...parts.slice(0, last), parts.slice(last).join(by)];
}

function join(parts: readonly unknown[], by: string): string {
  let length = by.length * parts.length;
  for (const part of parts) {
    if (typeof part !== "string") throw new Error("no such overload: join");
    length += part.length;
  }
  spendOn(parts.length + length);
  if (length > resultLimit) throw new Error(tooCostly);
  return parts.join(by);
}

/** What Go's unicode.IsSpace takes for white space. */
const isSpace = (unit: string): boolean =>
  /[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/.test(unit);

/** Character by character: an expression for white space at the end looks at each run of it many times. */
function trim(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isSpace(text.charAt(start))) start++;
  while (end > start && isSpace(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

/** The index of a substring, in code points. */
function indexOf(text: string, wanted: string, from: bigint): bigint {
  const letters = Array.from(text);
  if (wanted === "") return from;
  if (from < 0n || from >= BigInt(letters.length)) {
    if (from === 0n) return -1n;
    throw new Error(`index out of range: ${from}`);
  }
  const start = letters.slice(0, Number(from)).join("").length;
  const found = text.indexOf(wanted, start);
  return found === -1 ? -1n : BigInt(Array.from(text.slice(0, found)).length);
}

function lastIndexOf(text: string, wanted: string, until: bigint | undefined): bigint {
  const letters = Array.from(text);
  const last = until ?? BigInt(letters.length);
  if (wanted === "") return last;
  if (until !== undefined && (last < 0n || last >= BigInt(letters.length)))
    throw new Error(`index out of range: ${last}`);
  const found = text.lastIndexOf(wanted, letters.slice(0, Number(last)).join("").length);
  return found === -1 ? -1n : BigInt(Array.from(text.slice(0, found)).length);
}

function substring(text: string, from: bigint, to: bigint | undefined): string {
  const letters = Array.from(text);
  const end = to ?? BigInt(letters.length);
  if (from < 0n || from > BigInt(letters.length)) throw new Error(`index out of range: ${from}`);
  if (end < 0n || end > BigInt(letters.length)) throw new Error(`index out of range: ${end}`);
  if (from > end) throw new Error(`invalid substring range. start: ${from}, end: ${end}`);
  return letters.slice(Number(from), Number(end)).join("");
}

class Strings {}

const escapes: Readonly<Record<string, string>> = {
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

/** A text between quotation marks, as CEL's string extension writes it. */
export const quote = (text: string): string =>
  `"${Array.from(text.toWellFormed(), (letter) => escapes[letter] ?? letter).join("")}"`;

function addTimes(env: Declarations): void {
  const [timestamp, duration] = ["google.protobuf.Timestamp", "google.protobuf.Duration"];
  env.registerFunction(`timestamp(${timestamp}): ${timestamp}`, (time: Date) => time);
  env.registerFunction(`kubernetesTimestamp(dyn): ${timestamp}`, timeOf);
  env.registerFunction(`${timestamp}.kubernetesDayOfYear(): int`, (time: Date) =>
    dayOf(time.getUTCFullYear(), time.getUTCMonth(), time.getUTCDate()),
  );
  env.registerFunction(`${timestamp}.kubernetesDayOfYear(string): int`, dayOfYear);
  env.registerFunction(`duration(${duration}): ${duration}`, (length: unknown) => length);
  const durationOf = new Environment().registerVariable("text", "string").parse("duration(text)");
  env.registerFunction(`kubernetesDuration(dyn): ${duration}`, (length: unknown): unknown => {
    if (typeof length !== "string") return length;
    if (length.length > longestDuration) throw new Error("type conversion error from 'string' to 'duration'");
    return durationOf({ text: length });
  });
  env.registerFunction(`string(${timestamp}): string`, printTime);
  env.registerFunction(`string(${duration}): string`, String);
  env.registerFunction(`int(${timestamp}): int`, (time: Date) => BigInt(Math.floor(time.getTime() / 1000)));
}

/** The library takes the square of a longer one's length. */
const longestDuration = 1_000;

/** Conversions: strings are parsed as Go's strconv parses them. */
function addConversions(env: Declarations): void {
  const run = (name: string): ParseResult => new Environment().registerVariable("given", "dyn").parse(`${name}(given)`);
  const [double, own] = [run("double"), run("string")];
  env.registerFunction("kubernetesString(dyn): string", (given: unknown): string => {
    if (typeof given === "boolean" || typeof given === "bigint") return String(given);
    if (given instanceof Address) return printAddress(given);
    if (given instanceof AddressBlock) return `${printAddress(given.address)}/${given.length}`;
    if (typeof given === "number" || typeof given === "string") return printValue(given);
    if (given instanceof Uint8Array) return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(given);
    if (given instanceof Date) return printTime(given);
    const text: unknown = isDuration(given) ? String(given as Date) : own({ given });
    if (typeof text !== "string") throw new Error("no such overload: string");
    return text;
  });
  env.registerFunction("kubernetesBytes(string): bytes", (given: string) => new TextEncoder().encode(given));
  env.registerFunction("kubernetesBytes(bytes): bytes", (given: Uint8Array) => given);
  env.registerFunction("int(uint): int", (given: { valueOf(): bigint }) => given.valueOf());
  env.registerFunction("kubernetesInt(dyn): int", (given: unknown): unknown => {
    if (given instanceof Date) return BigInt(Math.floor(given.getTime() / 1000));
    const number: unknown = given?.valueOf();
    if (typeof number === "bigint" && number < 2n ** 63n) return number;
    if (typeof number === "number" && Math.abs(number) < 2 ** 63) return BigInt(Math.trunc(number));
    if (typeof number === "bigint" || typeof number === "number") throw new Error("integer overflow");
    if (typeof given !== "string") throw new Error("no such overload: int");
    return intOf(given);
  });
  env.registerFunction("kubernetesDouble(dyn): double", (given: unknown): unknown => {
    if (typeof given === "string" && !/^[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|inf|infinity|nan)$/i.test(given))
      throw new Error("type conversion error from 'string' to 'double'");
    return double({ given });
  });
}

/** The whole number of 64 bits that a string holds. @throws Error if it holds none. */
function intOf(text: string): bigint {
  const [, sign = "", digits] = /^([-+]?)0*(\d{1,19})$/.exec(text) ?? [];
  const number = digits === undefined ? undefined : BigInt(`${sign === "-" ? "-" : ""}${digits}`);
  if (number === undefined || number >= 2n ** 63n || number < -(2n ** 63n))
    throw new Error("type conversion error from 'string' to 'int'");
  return number;
}

/** The years 1 to 9999. */
const [earliest, latest] = [Date.parse("0001-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59.999Z")];

function timeOf(given: unknown): Date {
  if (given instanceof Date) return given;
  if (typeof given === "string") {
    if (!isTimestamp(given)) throw new Error("type conversion error from 'string' to 'google.protobuf.Timestamp'");
    return new Date(Date.parse(given));
  }
  if (typeof given !== "bigint") throw new Error("no such overload: timestamp");
  const time = Number(given) * 1000;
  if (time < earliest || time > latest) throw new Error("timestamp overflow");
  return new Date(time);
}

const dayOf = (year: number, month: number, day: number): bigint =>
  BigInt(Math.round((Date.UTC(year, month, day) - Date.UTC(year, 0, 1)) / 86_400_000));

/** From 0, in a time zone. */
function dayOfYear(time: Date, zone: string): bigint {
  const parts = new Intl.DateTimeFormat("en-US", { timeZone: zone, year: "numeric", month: "numeric", day: "numeric" });
  const part = (type: string): number =>
    Number(parts.formatToParts(time).find((one) => one.type === type)?.value ?? Number.NaN);
  const [year, month, day] = [part("year"), part("month"), part("day")];
  return dayOf(year, month - 1, day);
}

function replace(text: string, old: string, by: string, count: number): string {
  const pieces = text.split(old);
  const [first, rest] = pieces.length - 1 <= count ? [pieces, []] : [pieces.slice(0, count), pieces.slice(count)];
  return join(rest.length === 0 ? first : [...first, rest.join(old)], by);
}

/** `%s %d %f %x %%` of CEL's string extension. */
function format(text: string, values: readonly unknown[]): string {
  let next = 0;
  return text.replaceAll(
    /%(?:\.(\d+))?([sdfeboxX%])/g,
    (_whole: string, precision: string | undefined, verb: string) => {
      if (verb === "%") return "%";
      if (next >= values.length) throw new Error(`index ${next} out of range`);
      const value = values[next++];
      const whole = (): bigint => {
        const number: unknown = value?.valueOf();
        if (typeof number !== "bigint")
          throw new Error(`error during formatting: clause %${verb} can only be used on whole numbers`);
        return number;
      };
      switch (verb) {
        case "d":
          return printed(String(whole()));
        case "f":
          return printed(printFixed(Number(value), Number(precision ?? 6)));
        case "e":
          return printed(printScientific(Number(value), Number(precision ?? 6)));
        case "b":
          return typeof value === "boolean" ? (value ? "1" : "0") : printed(whole().toString(2));
        case "o":
          return printed(whole().toString(8));
        case "x":
        case "X": {
          spendOn(2 * lengthOf(value));
          const bytes = typeof value === "string" ? new TextEncoder().encode(value) : value;
          const hex = bytes instanceof Uint8Array ? bytesToHex(bytes) : whole().toString(16);
          return verb === "X" ? hex.toUpperCase() : hex;
        }
        default:
          return printValue(value);
      }
    },
  );
}

/** The digits of a number, which are paid: a format of few characters may ask for many of them. */
function printed(digits: string): string {
  spendOn(digits.length);
  return digits;
}

/** A value as `%s` prints it: google/cel-go ext/formatting.go (v0.26). What is printed is paid as it goes. */
function printValue(value: unknown): string {
  if (typeof value === "string") spendOn(value.length);
  if (typeof value === "string") return value;
  if (typeof value === "number") return printNumber(value);
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : printItem(value);
}

/** A value as it is printed inside a list or a map. */
function printItem(value: unknown): string {
  spend(0.5 + lengthOf(value) * traversal);
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return value.toFixed(6);
  if (isList(value)) return `[${value.map(printItem).join(", ")}]`;
  if (value instanceof Uint8Array) return `b${JSON.stringify(new TextDecoder().decode(value))}`;
  if (value instanceof Date) return printTime(value);
  const map = mapOf(value);
  // Integers, booleans, null, types and durations convert to strings by themselves.
  if (map === undefined) return String(value as bigint).replace(/^Type<(.*)>$/, "$1");
  return `{${[...map]
    .map(([key, item]) => `${printItem(key)}:${printItem(item)}`)
    .toSorted()
    .join(", ")}}`;
}

const printTime = (time: Date): string => time.toISOString().replace(/\.?0*Z$/, "Z");

/** A floating-point number as Go's strconv formats it with `g` and the shortest precision. */
function printNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
  const [digits = "", power = "0"] = value.toExponential().split("e");
  const exponent = Number(power);
  if (value === 0 || (exponent >= -4 && exponent < 6)) return String(value);
  return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

/** A number with a fixed count of decimals and with commas between thousands, as in English. */
const printFixed = (value: number, precision: number): string =>
  value
    .toFixed(precision)
    .replace(/\B(?=(?:\d{3})+(?:\.|$))/g, (_comma, at: number, text: string) =>
      text.includes(".") && at > text.indexOf(".") ? "" : ",",
    );

/** Scientific notation, as in `1.5×10⁰³`. */
function printScientific(value: number, precision: number): string {
  const [digits = "", power = "0"] = value.toExponential(precision).split("e");
  const raised = String(Math.abs(Number(power)))
    .padStart(2, "0")
    .replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)] ?? digit);
  return `${digits}×10${Number(power) < 0 ? "⁻" : ""}${raised}`;
}

interface ParsedUrl {
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;
}

class KubernetesUrl implements Comparable {
  readonly url: ParsedUrl;
  #place: ReturnType<typeof placeOf> | undefined;
  constructor(url: ParsedUrl) {
    this.url = url;
  }
  /** The parts of its host. They are told apart once: the name may be long, and is asked for at the price of a call. */
  get place(): ReturnType<typeof placeOf> {
    return (this.#place ??= placeOf(this.url.host));
  }
  equals(other: unknown): boolean {
    return other instanceof KubernetesUrl && equalJson(this.url, other.url);
  }
}

/** The name or address of a host, and its port, which may be empty. */
function placeOf(host: string): { readonly hostname: string; readonly port: string } {
  const port = /:(\d*)$/.exec(host);
  const name = port === null ? host : host.slice(0, port.index);
  return { hostname: name.startsWith("[") ? name.slice(1, -1) : name, port: port?.[1] ?? "" };
}

/** As Go's url.ParseRequestURI: absolute, or an absolute path. */
function parseUrl(text: string): ParsedUrl | undefined {
  // Control characters are what the expression is about.
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u0020\u007F]/.test(text) || /%(?![0-9A-Fa-f]{2})/.test(text)) return undefined;
  const whole = /^(?:([A-Za-z][-A-Za-z0-9+.]*):)?(\/\/[^/?]*)?([^?]*)(?:\?(.*))?$/.exec(text);
  if (whole === null) return undefined;
  const [, scheme = "", authority = "", path = "", query = ""] = whole;
  if (scheme === "" && !text.startsWith("/")) return undefined;
  const host = authority.slice(2).replace(/^[^@]*@/, "");
  if (!/^(?:\[[0-9A-Fa-f:.%]+\]|[^:[\]<>"^`{|}\\]*)(?::\d*)?$/.test(host)) return undefined;
  return { scheme: scheme.toLowerCase(), host, path, query };
}

/** Types of items that have an order. */
const ordered = [
  "int",
  "uint",
  "double",
  "bool",
  "string",
  "bytes",
  "google.protobuf.Duration",
  "google.protobuf.Timestamp",
];
const added = ["int", "uint", "double", "google.protobuf.Duration"];

function addLists(env: Declarations, use: "check" | "run"): void {
  const isSorted = (values: readonly unknown[]): boolean =>
    values.every((value, index) => {
      spend(1);
      return index === 0 || compare(values[index - 1], value) <= 0;
    });
  const min = (values: readonly unknown[]): unknown => extreme(values, -1);
  const max = (values: readonly unknown[]): unknown => extreme(values, 1);
  const sum = (values: readonly unknown[]): unknown => {
    spend(values.length);
    return values.length === 0 ? 0n : values.reduce((total, value): unknown => plus({ a: total, b: value }));
  };
  if (use === "check") {
    for (const type of ordered) {
      env.registerFunction(`list<${type}>.isSorted(): bool`, isSorted);
      env.registerFunction(`list<${type}>.min(): ${type}`, min);
      env.registerFunction(`list<${type}>.max(): ${type}`, max);
    }
    for (const type of added) env.registerFunction(`list<${type}>.sum(): ${type}`, sum);
    env.registerFunction("list<A>.indexOf(A): int", () => 0n);
    env.registerFunction("list<A>.lastIndexOf(A): int", () => 0n);
  } else {
    env.registerFunction("list.isSorted(): bool", isSorted);
    env.registerFunction("list.min(): dyn", min);
    env.registerFunction("list.max(): dyn", max);
    env.registerFunction("list.sum(): dyn", sum);
    env.registerFunction("list.kubernetesIndexOf(dyn): int", (values: readonly unknown[], wanted: unknown) =>
      BigInt(indexIn(values, wanted)),
    );
    env.registerFunction("list.kubernetesLastIndexOf(dyn): int", (values: readonly unknown[], wanted: unknown) => {
      const found = values.findLastIndex((one) => {
        spend(1);
        return same(one, wanted);
      });
      return BigInt(found);
    });
  }
  env.registerType("kubernetes.Sets", { ctor: Sets, fields: {} });
  env.registerConstant("sets", "kubernetes.Sets", new Sets());
  for (const name of ["contains", methodFunctions["contains"]])
    env.registerFunction(
      `kubernetes.Sets.${name}(list, list): bool`,
      (_sets: Sets, all: readonly unknown[], some: readonly unknown[]) => contains(all, some),
    );
  env.registerFunction(
    "kubernetes.Sets.equivalent(list, list): bool",
    (_sets: Sets, a: readonly unknown[], b: readonly unknown[]) => contains(a, b) && contains(b, a),
  );
  env.registerFunction(
    "kubernetes.Sets.intersects(list, list): bool",
    (_sets: Sets, a: readonly unknown[], b: readonly unknown[]) => a.some((one) => indexIn(b, one) !== -1),
  );
}

class Sets {}

/** google/cel-go cel/library.go (v0.26). */
function addOptionals(env: Declarations): void {
  const values = (all: readonly Optional[]): readonly unknown[] => {
    spendOn(all.length);
    return all.flatMap((one) => (one.hasValue() ? [one.value()] : []));
  };
  const at = (all: readonly unknown[], index: number): Optional =>
    all.length === 0 ? Optional.none() : Optional.of(all.at(index));
  env.registerFunction("OptionalNamespace.ofNonZeroValue(A): optional<A>", (_optional: unknown, value: unknown) =>
    isZero(value) ? Optional.none() : Optional.of(value),
  );
  env.registerFunction("OptionalNamespace.unwrap(list<optional<A>>): list<A>", (_optional: unknown, all: Optional[]) =>
    values(all),
  );
  env.registerFunction("list<optional<A>>.unwrapOpt(): list<A>", values);
  env.registerFunction("list<A>.first(): optional<A>", (all: readonly unknown[]) => at(all, 0));
  env.registerFunction("list<A>.last(): optional<A>", (all: readonly unknown[]) => at(all, -1));
  // On a receiver of unknown type, the library infers the common result type of all functions of that name. One more
  // function makes that type dyn; without it, the type parameter A remains, and A has no fields.
  env.registerType("kubernetes.Unknown", { ctor: Unknown, fields: {} });
  for (const name of ["value", "first", "last", "unwrapOpt"])
    env.registerFunction(`kubernetes.Unknown.${name}(): dyn`, () => undefined);
}

class Unknown {}

function isZero(value: unknown): boolean {
  if (isList(value) || value instanceof Uint8Array) return value.length === 0;
  const map = mapOf(value);
  if (map !== undefined) return map.size === 0;
  return value === null || value === false || value === "" || same(value, 0n) || isDuration(value, "0s");
}

function compare(a: unknown, b: unknown): number {
  if (a instanceof Date && b instanceof Date) return a.getTime() - b.getTime();
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    spendOn(Math.min(a.length, b.length));
    return Buffer.compare(a, b);
  }
  if (typeof a === "string" && typeof b === "string") return compareTexts(a, b);
  const [left, right] = [a as bigint, b as bigint];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The order of two texts by their code points, which is also that of their bytes. */
function compareTexts(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  spendOn(shorter);
  if (a === b) return 0;
  let at = 0;
  while (at < shorter && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  // Where one of them ends, or in the second half of a pair whose first half they share: code units decide.
  return (a.codePointAt(at) ?? -1) - (b.codePointAt(at) ?? -1);
}

function extreme(values: readonly unknown[], sign: number): unknown {
  if (values.length === 0) throw new Error(`${sign < 0 ? "min" : "max"} called on empty list`);
  spend(values.length);
  return values.reduce((best, value) => (compare(value, best) * sign > 0 ? value : best));
}

class FormatNamespace {}

class NamedFormat {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** A prefix may end with the dash before what is generated. */
const prefixOf =
  (rule: NameRule): NameRule =>
  (text) =>
    rule(text.length > 1 && text.endsWith("-") ? `${text.slice(0, -2)}a` : text);

/** kubernetes/apiserver pkg/cel/library/format.go (v0.34): the rules of metadata, by these names. */
const namedFormats: Readonly<Record<string, NameRule>> = {
  dns1123Label: labelName,
  dns1123Subdomain: subdomainName,
  dns1035Label: serviceName,
  dns1123LabelPrefix: prefixOf(labelName),
  dns1123SubdomainPrefix: prefixOf(subdomainName),
  dns1035LabelPrefix: prefixOf(serviceName),
  qualifiedName: qualifiedNameProblems,
  labelValue: labelValueProblems,
  uri: (text) => (parseUrl(text) === undefined ? ["must be a valid URI"] : []),
  uuid: (text) => (formats["uuid"]?.(text) === true ? [] : ["does not match the UUID format"]),
  byte: (text) => (formats["byte"]?.(text) === true ? [] : ["invalid base64"]),
  date: (text) => (formats["date"]?.(text) === true ? [] : ["invalid date"]),
  datetime: (text) => (isTimestamp(text) ? [] : ["invalid datetime"]),
};

function addNamedFormats(env: Declarations): void {
  env.registerType("kubernetes.FormatNamespace", { ctor: FormatNamespace, fields: {} });
  env.registerType("kubernetes.NamedFormat", { ctor: NamedFormat, fields: {} });
  env.registerConstant("format", "kubernetes.FormatNamespace", new FormatNamespace());
  for (const name of Object.keys(namedFormats))
    env.registerFunction(`kubernetes.FormatNamespace.${name}(): kubernetes.NamedFormat`, () => new NamedFormat(name));
  env.registerFunction(
    "kubernetes.FormatNamespace.named(string): optional<kubernetes.NamedFormat>",
    (_format: FormatNamespace, name: string) =>
      Object.hasOwn(namedFormats, name) ? Optional.of(new NamedFormat(name)) : Optional.none(),
  );
  env.registerFunction(
    "kubernetes.NamedFormat.validate(string): optional<list<string>>",
    ({ name }: NamedFormat, text: string) => {
      const problems = namedFormats[name]?.(text) ?? [];
      return problems.length === 0 ? Optional.none() : Optional.of(problems);
    },
  );
}

/** An address as a number; `bits` 32 or 128 identifies the family. */
class Address implements Comparable {
  readonly value: bigint;
  readonly bits: 32 | 128;
  constructor(value: bigint, bits: 32 | 128) {
    this.value = value;
    this.bits = bits;
  }
  equals(other: unknown): boolean {
    return other instanceof Address && other.bits === this.bits && other.value === this.value;
  }
}

class AddressBlock implements Comparable {
  readonly address: Address;
  readonly length: number;
  constructor(address: Address, length: number) {
    this.address = address;
    this.length = length;
  }
  equals(other: unknown): boolean {
    return other instanceof AddressBlock && other.length === this.length && other.address.equals(this.address);
  }
}

function parseAddress(text: string): Address | undefined {
  if (isIPv4(text))
    return new Address(
      text.split(".").reduce((value, part) => value * 256n + BigInt(part), 0n),
      32,
    );
  if (!isIPv6(text) || text.includes(".")) return undefined;
  const [head = "", tail] = text.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const end = tail === "" ? [] : tail.split(":");
    pushAll(groups, [...Array.from({ length: 8 - groups.length - end.length }, () => "0"), ...end]);
  }
  return new Address(
    groups.reduce((value, group) => value * 65_536n + BigInt(`0x${group}`), 0n),
    128,
  );
}

function address(text: string): Address {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw new Error(`IP Address "${text}" parse error during conversion from string`);
  return parsed;
}

function parseBlock(text: string): AddressBlock | undefined {
  if (!isCidr(text)) return undefined;
  const [base = "", length = ""] = text.split("/");
  const parsed = parseAddress(base);
  return parsed === undefined ? undefined : new AddressBlock(parsed, Number(length));
}

function block(text: string): AddressBlock {
  const parsed = parseBlock(text);
  if (parsed === undefined)
    throw new Error(`network address parse error during conversion from string: invalid CIDR address: ${text}`);
  return parsed;
}

function masked({ value, bits }: Address, length: number): bigint {
  const rest = BigInt(bits - length);
  return (value >> rest) << rest;
}

function holds(outer: AddressBlock, { value, bits }: Address): boolean {
  return (
    outer.address.bits === bits &&
    masked(new Address(value, bits), outer.length) === masked(outer.address, outer.length)
  );
}

/** The form of RFC 5952. */
function printAddress({ value, bits }: Address): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => ((value >> shift) & 255n).toString()).join(".");
  const groups = Array.from({ length: 8 }, (_, index) => ((value >> BigInt((7 - index) * 16)) & 65_535n).toString(16));
  const runs = [...groups.join(":").matchAll(/(?:\b0(?::|$)){2,}/g)].map(([run]) => run);
  const longest = runs.toSorted((a, b) => b.length - a.length)[0];
  if (longest === undefined) return groups.join(":");
  const text = groups.join(":");
  const start = text.search(new RegExp(`(?:^|:)${longest.replace(/:$/, "")}(?::|$)`));
  const before = text.slice(0, start).replace(/:$/, "");
  const after = text.slice(start + (text[start] === ":" ? 1 : 0) + longest.length).replace(/^:/, "");
  return `${before}::${after}`;
}

class IpFunctions {}

function addAddresses(env: Declarations): void {
  env.registerType("net.IP", { ctor: Address, fields: {} });
  env.registerType("net.CIDR", { ctor: AddressBlock, fields: {} });
  env.registerFunction("isIP(string): bool", (text: string) => parseAddress(text) !== undefined);
  env.registerFunction("ip(string): net.IP", address);
  env.registerFunction("isCIDR(string): bool", (text: string) => parseBlock(text) !== undefined);
  env.registerFunction("cidr(string): net.CIDR", block);
  env.registerFunction("string(net.IP): string", printAddress);
  env.registerFunction("string(net.CIDR): string", (one: AddressBlock) => `${printAddress(one.address)}/${one.length}`);
  env.registerOperator("net.IP == net.IP", same);
  env.registerOperator("net.CIDR == net.CIDR", same);
  env.registerType("kubernetes.IpFunctions", { ctor: IpFunctions, fields: {} });
  env.registerConstant("ip", "kubernetes.IpFunctions", new IpFunctions());
  env.registerFunction("kubernetes.IpFunctions.isCanonical(string): bool", (_ip: IpFunctions, text: string) => {
    return printAddress(address(text)) === text;
  });
  env.registerFunction("net.IP.family(): int", ({ bits }: Address) => (bits === 32 ? 4n : 6n));
  env.registerFunction("net.IP.isLoopback(): bool", (one: Address) =>
    one.bits === 32 ? one.value >> 24n === 127n : one.value === 1n,
  );
  env.registerFunction("net.IP.isUnspecified(): bool", ({ value }: Address) => value === 0n);
  env.registerFunction("net.IP.isLinkLocalUnicast(): bool", (one: Address) =>
    one.bits === 32 ? one.value >> 16n === 0xa9_fen : one.value >> 118n === 0x3_fan,
  );
  env.registerFunction("net.IP.isLinkLocalMulticast(): bool", (one: Address) =>
    one.bits === 32 ? one.value >> 8n === 0xe0_00_00n : one.value >> 112n === 0xff_02n,
  );
  env.registerFunction("net.IP.isGlobalUnicast(): bool", (one: Address) => {
    if (one.value === 0n) return false;
    if (one.bits === 32)
      return (
        one.value >> 24n !== 127n &&
        one.value >> 28n !== 0xen &&
        one.value >> 16n !== 0xa9_fen &&
        one.value !== 0xff_ff_ff_ffn
      );
    return one.value !== 1n && one.value >> 120n !== 0xffn && one.value >> 118n !== 0x3_fan;
  });
  env.registerFunction("net.CIDR.ip(): net.IP", (one: AddressBlock) => one.address);
  env.registerFunction("net.CIDR.prefixLength(): int", ({ length }: AddressBlock) => BigInt(length));
  env.registerFunction(
    "net.CIDR.masked(): net.CIDR",
    (one: AddressBlock) => new AddressBlock(new Address(masked(one.address, one.length), one.address.bits), one.length),
  );
  env.registerFunction("net.CIDR.containsIP(net.IP): bool", holds);
  env.registerFunction("net.CIDR.containsIP(string): bool", (outer: AddressBlock, text: string) =>
    holds(outer, address(text)),
  );
  env.registerFunction(
    "net.CIDR.containsCIDR(net.CIDR): bool",
    (outer: AddressBlock, inner: AddressBlock) => inner.length >= outer.length && holds(outer, inner.address),
  );
  env.registerFunction("net.CIDR.containsCIDR(string): bool", (outer: AddressBlock, text: string) => {
    const inner = block(text);
    return inner.length >= outer.length && holds(outer, inner.address);
  });
}

class Quantity implements Comparable {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
  equals(other: unknown): boolean {
    return other instanceof Quantity && other.nanos === this.nanos;
  }
}

function addQuantities(env: Declarations): void {
  env.registerType("kubernetes.Quantity", { ctor: Quantity, fields: {} });
  env.registerFunction("isQuantity(string): bool", (text: string) => parseQuantity(text) !== undefined);
  env.registerFunction("quantity(string): kubernetes.Quantity", (text: string) => {
    const nanos = parseQuantity(text);
    if (nanos === undefined)
      throw new Error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    return new Quantity(nanos);
  });
  env.registerOperator("kubernetes.Quantity == kubernetes.Quantity", same);
  env.registerFunction(
    "kubernetes.Quantity.isGreaterThan(kubernetes.Quantity): bool",
    (a: Quantity, b: Quantity) => a.nanos > b.nanos,
  );
  env.registerFunction(
    "kubernetes.Quantity.isLessThan(kubernetes.Quantity): bool",
    (a: Quantity, b: Quantity) => a.nanos < b.nanos,
  );
  env.registerFunction("kubernetes.Quantity.compareTo(kubernetes.Quantity): int", (a: Quantity, b: Quantity) =>
    a.nanos < b.nanos ? -1n : a.nanos > b.nanos ? 1n : 0n,
  );
  env.registerFunction("sign(kubernetes.Quantity): int", ({ nanos }: Quantity) =>
    nanos < 0n ? -1n : nanos > 0n ? 1n : 0n,
  );
  env.registerFunction("kubernetes.Quantity.isInteger(): bool", ({ nanos }: Quantity) => nanos % nano === 0n);
  env.registerFunction("kubernetes.Quantity.asInteger(): int", ({ nanos }: Quantity) => {
    if (nanos % nano !== 0n) throw new Error("cannot convert value to integer");
    return nanos / nano;
  });
  env.registerFunction(
    "kubernetes.Quantity.asApproximateFloat(): double",
    ({ nanos }: Quantity) => Number(nanos) / Number(nano),
  );
  env.registerFunction(
    "kubernetes.Quantity.add(kubernetes.Quantity): kubernetes.Quantity",
    (a: Quantity, b: Quantity) => new Quantity(a.nanos + b.nanos),
  );
  env.registerFunction(
    "kubernetes.Quantity.add(int): kubernetes.Quantity",
    (a: Quantity, b: bigint) => new Quantity(a.nanos + b * nano),
  );
  env.registerFunction(
    "kubernetes.Quantity.sub(kubernetes.Quantity): kubernetes.Quantity",
    (a: Quantity, b: Quantity) => new Quantity(a.nanos - b.nanos),
  );
  env.registerFunction(
    "kubernetes.Quantity.sub(int): kubernetes.Quantity",
    (a: Quantity, b: bigint) => new Quantity(a.nanos - b * nano),
  );
}

function addVersions(env: Declarations): void {
  const read = (text: string, normalize: boolean): Semver | undefined =>
    parseSemver(normalize ? normalizedSemver(text) : text);
  const semver = (text: string, normalize: boolean): Semver => {
    const version = read(text, normalize);
    if (version === undefined) throw new Error(`invalid semantic version: ${text}`);
    return version;
  };
  env.registerType("kubernetes.Semver", { ctor: Semver, fields: {} });
  env.registerFunction("semver(string): kubernetes.Semver", (text: string) => semver(text, false));
  env.registerFunction("semver(string, bool): kubernetes.Semver", semver);
  env.registerFunction("isSemver(string): bool", (text: string) => read(text, false) !== undefined);
  env.registerFunction(
    "isSemver(string, bool): bool",
    (text: string, normalize: boolean) => read(text, normalize) !== undefined,
  );
  env.registerOperator("kubernetes.Semver == kubernetes.Semver", same);
  for (const [index, name] of ["major", "minor", "patch"].entries())
    env.registerFunction(`kubernetes.Semver.${name}(): int`, ({ numbers }: Semver) => numbers[index]);
  const semvers = "(kubernetes.Semver)";
  env.registerFunction(
    `kubernetes.Semver.isGreaterThan${semvers}: bool`,
    (a: Semver, b: Semver) => compareSemver(a, b) > 0n,
  );
  env.registerFunction(
    `kubernetes.Semver.isLessThan${semvers}: bool`,
    (a: Semver, b: Semver) => compareSemver(a, b) < 0n,
  );
  env.registerFunction(`kubernetes.Semver.compareTo${semvers}: int`, compareSemver);
}
