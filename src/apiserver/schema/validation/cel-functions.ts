import type { RE2JS } from "re2js";
import { Environment, Optional } from "@marcbachmann/cel-js";
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
import { nano, parseQuantity } from "../../../api/schema/quantities.ts";
import { allMatches, compileExpression } from "../regular-expressions.ts";

/**
 * The functions that Kubernetes adds to CEL (kubernetes/apiserver pkg/cel/library (master)), without `authorizer`. The
 * environment declares no variables; to compile an expression, clone it and declare them.
 */
export function kubernetesEnvironment(): Environment {
  const env = new Environment({
    enableOptionalTypes: true,
    homogeneousAggregateLiterals: false,
    limits: { maxAstNodes: 20_000, maxDepth: 100 },
  });
  addStrings(env);
  addLists(env);
  addNamedFormats(env);
  addAddresses(env);
  addQuantities(env);
  return env;
}

/** Replaces `matches`, whose expressions the library passes to JavaScript unchanged. */
export const matchesName = "kubernetesMatches";

/** No result grows beyond this many characters or items. */
const resultLimit = 1_000_000;

function bounded<T extends string | readonly unknown[]>(value: T): T {
  if (value.length > resultLimit) throw new Error("operation cancelled: actual cost limit exceeded");
  return value;
}

/** Comparisons of one function that compares each item of a list with each of another. */
const mostComparisons = 20_000_000;

function comparable(some: readonly unknown[], others: readonly unknown[]): void {
  if (some.length * others.length > mostComparisons) throw new Error("operation cancelled: actual cost limit exceeded");
}

function expression(pattern: string): RE2JS {
  const compiled = compileExpression(pattern);
  if (compiled.verdict === "refused") throw new Error(compiled.message);
  return compiled.expression;
}

function addStrings(env: Environment): void {
  env.registerFunction(`string.${matchesName}(string): bool`, (text: string, pattern: string) =>
    expression(pattern).test(text),
  );
  env.registerFunction("matches(string, string): bool", (text: string, pattern: string) =>
    expression(pattern).test(text),
  );
  env.registerFunction(
    "string.find(string): string",
    (text: string, pattern: string) => allMatches(expression(pattern), text, 1)[0] ?? "",
  );
  env.registerFunction("string.findAll(string): list<string>", (text: string, pattern: string) =>
    findAll(text, pattern, Infinity),
  );
  env.registerFunction("string.findAll(string, int): list<string>", (text: string, pattern: string, limit: bigint) =>
    findAll(text, pattern, limit < 0n ? Infinity : Number(limit)),
  );
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
  env.registerFunction("string.reverse(): string", (text: string) => Array.from(text).toReversed().join(""));
  env.registerFunction("string.format(list<dyn>): string", (text: string, values: readonly unknown[]) =>
    bounded(format(text, values)),
  );
  env.registerFunction("isURL(string): bool", (text: string) => parseUrl(text) !== undefined);
  env.registerType("kubernetes.URL", { ctor: KubernetesUrl, fields: {} });
  env.registerFunction("url(string): kubernetes.URL", (text: string) => {
    const url = parseUrl(text);
    if (url === undefined) throw new Error(`URL parse error during conversion from string: ${text}`);
    return new KubernetesUrl(url);
  });
  env.registerFunction("kubernetes.URL.getScheme(): string", ({ url }: KubernetesUrl) => url.scheme);
  env.registerFunction("kubernetes.URL.getHost(): string", ({ url }: KubernetesUrl) => url.host);
  env.registerFunction("kubernetes.URL.getHostname(): string", ({ url }: KubernetesUrl) =>
    url.host.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1"),
  );
  env.registerFunction(
    "kubernetes.URL.getPort(): string",
    ({ url }: KubernetesUrl) => /:(\d+)$/.exec(url.host)?.[1] ?? "",
  );
  env.registerFunction("kubernetes.URL.getEscapedPath(): string", ({ url }: KubernetesUrl) => url.path);
  env.registerFunction("kubernetes.URL.getQuery(): map<string, list<string>>", ({ url }: KubernetesUrl) => {
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

function findAll(text: string, pattern: string, limit: number): string[] {
  return [...allMatches(expression(pattern), text, limit)];
}

function replace(text: string, old: string, by: string, count: number): string {
  const pieces = text.split(old);
  if (pieces.length - 1 <= count) return bounded(pieces.join(by));
  return bounded([...pieces.slice(0, count), pieces.slice(count).join(old)].join(by));
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
      switch (verb) {
        case "d":
          if (typeof value !== "bigint" && typeof value !== "number")
            throw new Error("error during formatting: decimal clause can only be used on integers");
          return String(value);
        case "f":
          return Number(value).toFixed(precision === undefined ? 6 : Number(precision));
        case "e":
          return Number(value).toExponential(precision === undefined ? 6 : Number(precision));
        case "b":
          return typeof value === "boolean" ? (value ? "1" : "0") : BigInt(value as bigint).toString(2);
        case "o":
          return BigInt(value as bigint).toString(8);
        case "x":
        case "X": {
          const hex =
            typeof value === "string"
              ? [...new TextEncoder().encode(value)].map((byte) => byte.toString(16).padStart(2, "0")).join("")
              : BigInt(value as bigint).toString(16);
          return verb === "X" ? hex.toUpperCase() : hex;
        }
        default:
          return printValue(value);
      }
    },
  );
}

function printValue(value: unknown): string {
  if (typeof value === "string") return value;
  if (isList(value)) return `[${value.map(printValue).join(", ")}]`;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Map)
    return `{${[...value].map(([key, inner]) => `${printValue(key)}: ${printValue(inner)}`).join(", ")}}`;
  if (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
    return `{${Object.entries(value)
      .map(([key, inner]) => `${key}: ${printValue(inner)}`)
      .join(", ")}}`;
  }
  return String(value);
}

interface ParsedUrl {
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;
}

class KubernetesUrl {
  readonly url: ParsedUrl;
  constructor(url: ParsedUrl) {
    this.url = url;
  }
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

function addLists(env: Environment): void {
  env.registerFunction("list.isSorted(): bool", (values: readonly unknown[]) =>
    values.every((value, index) => index === 0 || compare(values[index - 1], value) <= 0),
  );
  env.registerFunction("list.sum(): dyn", (values: readonly unknown[]) => {
    if (values.every((value) => typeof value === "bigint")) return values.reduce((sum, value) => sum + value, 0n);
    return values.map(Number).reduce((sum, value) => sum + value, 0);
  });
  env.registerFunction("list.min(): dyn", (values: readonly unknown[]) => extreme(values, -1));
  env.registerFunction("list.max(): dyn", (values: readonly unknown[]) => extreme(values, 1));
  env.registerFunction("list.indexOf(dyn): int", (values: readonly unknown[], wanted: unknown) =>
    BigInt(values.findIndex((value) => same(value, wanted))),
  );
  env.registerFunction("list.lastIndexOf(dyn): int", (values: readonly unknown[], wanted: unknown) =>
    BigInt(values.findLastIndex((value) => same(value, wanted))),
  );
  env.registerFunction("list.distinct(): list<dyn>", (values: readonly unknown[]) => {
    comparable(values, values);
    return values.filter((value, index) => values.findIndex((other) => same(value, other)) === index);
  });
  env.registerFunction("list.reverse(): list<dyn>", (values: readonly unknown[]) => values.toReversed());
  env.registerFunction("list.sort(): list<dyn>", (values: readonly unknown[]) => values.toSorted(compare));
  env.registerFunction("list.slice(int, int): list<dyn>", (values: readonly unknown[], from: bigint, to: bigint) =>
    values.slice(Number(from), Number(to)),
  );
  env.registerFunction("list.flatten(): list<dyn>", (values: readonly unknown[]) => bounded(values.flat()));
  env.registerType("kubernetes.Sets", { ctor: Sets, fields: {} });
  env.registerConstant("sets", "kubernetes.Sets", new Sets());
  env.registerFunction(
    "kubernetes.Sets.contains(list, list): bool",
    (_sets: Sets, all: readonly unknown[], some: readonly unknown[]) => contains(all, some),
  );
  env.registerFunction(
    "kubernetes.Sets.equivalent(list, list): bool",
    (_sets: Sets, a: readonly unknown[], b: readonly unknown[]) => contains(a, b) && contains(b, a),
  );
  env.registerFunction(
    "kubernetes.Sets.intersects(list, list): bool",
    (_sets: Sets, a: readonly unknown[], b: readonly unknown[]) => {
      comparable(a, b);
      return a.some((one) => b.some((other) => same(one, other)));
    },
  );
}

class Sets {}

function contains(all: readonly unknown[], some: readonly unknown[]): boolean {
  comparable(all, some);
  return some.every((one) => all.some((other) => same(one, other)));
}

/** Whether two values of an expression are equal: those of JSON, times, durations, quantities and addresses. */
function same(a: unknown, b: unknown): boolean {
  if ((typeof a === "bigint" && typeof b === "number") || (typeof a === "number" && typeof b === "bigint"))
    return Number(a) === Number(b);
  if (isList(a)) return isList(b) && a.length === b.length && a.every((item, index) => same(item, b[index]));
  if (a instanceof Date) return b instanceof Date && a.getTime() === b.getTime();
  if (isDuration(a)) return isDuration(b) && String(a) === String(b);
  const [some, others] = [mapOf(a), mapOf(b)];
  if (some === undefined || others === undefined) return equalJson(a, b);
  return (
    some.size === others.size && [...some].every(([key, value]) => others.has(key) && same(value, others.get(key)))
  );
}

/** The library keeps its class to itself; the text of a duration is exact. */
function isDuration(value: unknown): boolean {
  return Object.prototype.toString.call(value) === "[object google.protobuf.Duration]";
}

/** A map of an expression: a Map, or a plain object if it stands in the text. */
function mapOf(value: unknown): ReadonlyMap<unknown, unknown> | undefined {
  if (value instanceof Map) return value;
  const plain = typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return plain ? new Map(Object.entries(value)) : undefined;
}

function compare(a: unknown, b: unknown): number {
  if (a instanceof Date && b instanceof Date) return a.getTime() - b.getTime();
  const [left, right] = [a as string, b as string];
  return left < right ? -1 : left > right ? 1 : 0;
}

function extreme(values: readonly unknown[], sign: number): unknown {
  if (values.length === 0) throw new Error(`${sign < 0 ? "min" : "max"} called on empty list`);
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

function addNamedFormats(env: Environment): void {
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
class Address {
  readonly value: bigint;
  readonly bits: 32 | 128;
  constructor(value: bigint, bits: 32 | 128) {
    this.value = value;
    this.bits = bits;
  }
}

class AddressBlock {
  readonly address: Address;
  readonly length: number;
  constructor(address: Address, length: number) {
    this.address = address;
    this.length = length;
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
    groups.push(...Array.from({ length: 8 - groups.length - end.length }, () => "0"), ...end);
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

function addAddresses(env: Environment): void {
  env.registerType("net.IP", { ctor: Address, fields: {} });
  env.registerType("net.CIDR", { ctor: AddressBlock, fields: {} });
  env.registerFunction("isIP(string): bool", (text: string) => parseAddress(text) !== undefined);
  env.registerFunction("ip(string): net.IP", address);
  env.registerFunction("isCIDR(string): bool", (text: string) => parseBlock(text) !== undefined);
  env.registerFunction("cidr(string): net.CIDR", block);
  env.registerFunction("string(net.IP): string", printAddress);
  env.registerFunction("string(net.CIDR): string", (one: AddressBlock) => `${printAddress(one.address)}/${one.length}`);
  env.registerOperator("net.IP == net.IP", (a: Address, b: Address) => a.bits === b.bits && a.value === b.value);
  env.registerOperator(
    "net.CIDR == net.CIDR",
    (a: AddressBlock, b: AddressBlock) =>
      a.length === b.length && a.address.value === b.address.value && a.address.bits === b.address.bits,
  );
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

class Quantity {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

function addQuantities(env: Environment): void {
  env.registerType("kubernetes.Quantity", { ctor: Quantity, fields: {} });
  env.registerFunction("isQuantity(string): bool", (text: string) => parseQuantity(text) !== undefined);
  env.registerFunction("quantity(string): kubernetes.Quantity", (text: string) => {
    const nanos = parseQuantity(text);
    if (nanos === undefined)
      throw new Error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    return new Quantity(nanos);
  });
  env.registerOperator("kubernetes.Quantity == kubernetes.Quantity", (a: Quantity, b: Quantity) => a.nanos === b.nanos);
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
  env.registerFunction("kubernetes.Quantity.sign(): int", ({ nanos }: Quantity) =>
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
