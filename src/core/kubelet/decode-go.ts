import { isQuantity, isShortQuantity } from "../../api/schema/quantities.ts";
import { clipText } from "../text/clip-text.ts";
import { goDurationText, parseGoDuration } from "./go-duration.ts";
import type { GoStruct, GoType, ScalarType } from "./kubelet-fields.ts";
import { firstMembers, hasMembers, keysOf, mapItems, mapValues } from "./map-items.ts";

export interface FieldProblem {
  /** `evictionHard.memory.available`, `registerWithTaints[0].key` */
  readonly path: string;
  readonly reason: string;
  /** It stands for the problems of a list or a map that are not reported one by one; the path is that of the list. */
  readonly isRest?: true;
}

/**
 * A decoded value: absent members are absent, numbers are numbers (whole ones also where they stand for a quantity),
 * durations are texts as Go prints them.
 */
export type Decoded = Readonly<Record<string, unknown>>;

export interface Decoding {
  /** With problems in a list or a map, the values of that are as they were. */
  readonly value: Decoded;
  /** What a Go program refuses; of a list or a map the first {@link mostOfList}, and how many there are beside them. */
  readonly problems: readonly FieldProblem[];
  /** Paths of fields that it does not know, and ignores: the first {@link mostUnknown}, sorted. */
  readonly unknown: readonly string[];
  /** How many unknown fields there are beside these. */
  readonly moreUnknown: number;
}

/**
 * Decodes a JSON value into a struct as Go does (encoding/json, and the decoders of Kubernetes' own types): names count
 * with their case, `null` leaves a value unset where its type permits, numbers must fit, nothing is converted.
 */
export function decodeGo(value: unknown, type: GoStruct): Decoding {
  const found: Findings = { problems: [], unknown: [], moreUnknown: 0, place: [], listed: undefined };
  const decoded = decodeValue(value, type, found);
  const { problems, unknown, moreUnknown } = found;
  return { value: (decoded ?? {}) as Decoded, problems, unknown: unknown.toSorted(), moreUnknown };
}

interface Findings {
  readonly problems: FieldProblem[];
  readonly unknown: string[];
  moreUnknown: number;
  /**
   * The names and indices that lead to the value at work. Its text is made where something is said of the value, because
   * a list may have thousands of items.
   */
  readonly place: (string | number)[];
  /** How many problems the list or map at work has, with those of lists in it; `undefined`: the value is in none. */
  listed: number | undefined;
}

/** Problems of a list or a map that are reported one by one. */
export const mostOfList = 100;
/** Problems of a list or a map that are counted: what is behind them is not looked at, since it is refused anyway. */
export const mostCounted = 10_000;
/** What is said of the others. */
export function restOf(path: string, count: number): FieldProblem {
  const number = count + mostOfList < mostCounted ? String(count) : `at least ${mostCounted - mostOfList}`;
  return { path, reason: `has ${number} more problems like these`, isRest: true };
}
/** Keys of maps are any text, and each problem below one repeats it. */
const longestStep = 253;

const pathOf = ({ place }: Findings): string =>
  place.reduce<string>((path, at) => {
    if (typeof at === "number") return `${path}[${at}]`;
    const step = clipText(at, longestStep);
    return path === "" ? step : `${path}.${step}`;
  }, "");

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether a value decodes to itself, as most values by far do: texts, true or false, numbers, and lists of texts. */
function isPlain(value: unknown, type: GoType): boolean {
  switch (typeof value) {
    case "string":
      return type === "string" || (type === "quantity" && isShortQuantity(value));
    case "boolean":
      return type === "bool" || type === "*bool";
    case "number":
      return type === "quantity"
        ? isWhole(value, "int64")
        : (type === "int32" || type === "uint32" || type === "int64") && isWhole(value, type);
    default:
      return isTextList(value, type);
  }
}

const isTextList = (value: unknown, type: GoType): boolean =>
  typeof type !== "string" &&
  "list" in type &&
  type.list === "string" &&
  Array.isArray(value) &&
  value.every((item) => typeof item === "string");

/**
 * Decodes a value at the place of the findings. A value that decodes to itself is not copied.
 *
 * @returns `undefined` for a value that is not set.
 */
const decodeValue = (value: unknown, type: GoType, found: Findings): unknown =>
  isPlain(value, type) ? value : decodeOther(value, type, found);

/** Decodes a value that is not plain. */
function decodeOther(value: unknown, type: GoType, found: Findings): unknown {
  if (typeof type === "string") return decodeScalar(value, type, found);
  if (value === null || value === undefined) return undefined;
  if ("list" in type)
    return Array.isArray(value)
      ? decodeEach(() => mapItems(value, (item, i) => decodeItem(item, type.list, i, found), isFull(found)), found)
      : refuse(value, "a list", found);
  if (!isObject(value)) return refuse(value, "an object", found);
  if ("struct" in type) return decodeStruct(value, type, found);
  return decodeEach(
    () => mapValues(value, (item, key) => decodeItem(item, type.map, key, found), isFull(found)),
    found,
  );
}

/** Whether the list or map at work has as many problems as are counted. */
const isFull = (found: Findings) => (): boolean => found.listed !== undefined && found.listed >= mostCounted;

/** Decodes the items of a list or a map, and says how many problems there are that are not reported one by one. */
function decodeEach(decode: () => unknown, found: Findings): unknown {
  if (found.listed !== undefined) return decode();
  found.listed = 0;
  const decoded = decode();
  const unsaid = found.listed - mostOfList;
  found.listed = undefined;
  if (unsaid > 0) found.problems.push(restOf(pathOf(found), unsaid));
  return decoded;
}

/**
 * @returns `undefined`, or in a list or a map the value as it is: no use is made of what has a problem, and a large list
 * is not copied for it.
 */
function refuse(value: unknown, expected: string, found: Findings): unknown {
  if (isOnlyCounted(found)) return value;
  found.problems.push({ path: pathOf(found), reason: `must be ${expected}, not ${describe(value)}` });
  return found.listed === undefined ? undefined : value;
}

/** Counts a problem in a list or a map, and says whether that is all that is done about it. */
function isOnlyCounted(found: Findings): boolean {
  if (found.listed === undefined) return false;
  found.listed += 1;
  return found.listed > mostOfList;
}

/** Decodes an item of a list or a map: one that is not set has its zero value. */
function decodeItem(item: unknown, type: GoType, at: string | number, found: Findings): unknown {
  // None of these is said to have a problem, so that nothing needs to know their place.
  if (isPlain(item, type)) return item;
  if (typeof type !== "string" && "struct" in type && isObject(item) && !hasMembers(item)) return item;
  if (item === undefined || (item === null && type !== "duration")) return zeroItemOf(type);
  if (found.listed !== undefined && found.listed >= mostOfList) {
    if (typeof type === "string") return readScalar(item, plainOf(type)) ?? refuse(item, "", found);
    if (typeof item !== "object") return refuse(item, "", found);
  }
  return decodeAt(item, type, at, found) ?? zeroItemOf(type);
}

/** Decodes a value one step below the place of the findings. */
function decodeAt(value: unknown, type: GoType, at: string | number, found: Findings): unknown {
  if (isPlain(value, type)) return value;
  found.place.push(at);
  const decoded = decodeOther(value, type, found);
  found.place.pop();
  return decoded;
}

function decodeStruct(value: Decoded, type: GoStruct, found: Findings): Decoded {
  // Names of members are those of the type: none of them is a setter.
  let members: Record<string, unknown> | undefined;
  const names = namesOf(type);
  const keys = keysOf(value);
  if (keys.length === 0) return emptyStruct;
  let isEmpty = true;
  for (let i = 0; i < keys.length; i += 1) {
    const key = keys[i] ?? "";
    const member = names.has(key) ? type.struct[key] : undefined;
    if (member === undefined) {
      findUnknown(key, found);
      members ??= firstMembers(value, keys, i);
      continue;
    }
    const before = value[key];
    const decoded = decodeAt(before, member, key, found);
    if (decoded === undefined || decoded !== before) members ??= firstMembers(value, keys, i);
    if (decoded !== undefined) isEmpty = false;
    if (members !== undefined && decoded !== undefined) members[key] = decoded;
  }
  return isEmpty ? emptyStruct : (members ?? value);
}

const namesOfStructs = new WeakMap<GoStruct, ReadonlySet<string>>();

/** The names of a struct's members, in a form that costs little to ask for a hundred thousand others. */
function namesOf(type: GoStruct): ReadonlySet<string> {
  const known = namesOfStructs.get(type);
  if (known !== undefined) return known;
  const names = new Set(Object.keys(type.struct));
  namesOfStructs.set(type, names);
  return names;
}

/** Unknown fields that are named: an object may have a hundred thousand, and is warned of a hundred things in all. */
const mostUnknown = 50;

function findUnknown(key: string, found: Findings): void {
  if (found.unknown.length === mostUnknown) {
    found.moreUnknown += 1;
    return;
  }
  found.place.push(key);
  found.unknown.push(pathOf(found));
  found.place.pop();
}

/** A struct or a map without members: all are the same one, because a list may have hundreds of thousands. */
export const emptyStruct: Decoded = Object.freeze({});

/** The value of a member that is not set; `undefined`: a pointer. */
export function zeroOf(type: GoType): unknown {
  if (typeof type !== "string")
    return "list" in type ? [] : "struct" in type && type.isPointer === true ? undefined : emptyStruct;
  if (type === "string") return "";
  if (type.charAt(0) === "*" || type === "time") return undefined;
  if (type === "bool") return false;
  if (type === "quantity") return "0";
  if (type === "duration") return "0s";
  return 0;
}

/** The value of an item that is not set: a list or a map is `null`, as Go writes it where it leaves out nothing. */
export const zeroItemOf = (type: GoType): unknown =>
  typeof type !== "string" && !("struct" in type) ? null : zeroOf(type);

const describe = (value: unknown): string =>
  value === null
    ? "null"
    : Array.isArray(value)
      ? "a list"
      : typeof value === "object"
        ? "an object"
        : shortJson(value);
/** A value as JSON, of a long one the beginning. */
export const shortJson = (value: unknown) => {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
};

/** The largest numbers that each type holds; of 64 bits only what JSON readers keep exactly. */
const ranges = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
  int64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
} as const;

const isWhole = (value: number, type: keyof typeof ranges): boolean =>
  Number.isInteger(value) && value >= ranges[type][0] && value <= ranges[type][1];

function decodeScalar(value: unknown, type: ScalarType | `*${ScalarType}`, found: Findings): unknown {
  if (value === undefined) return undefined;
  // A duration reads its own null, and finds no text in it.
  if (value === null && type !== "duration") return undefined;
  const plain = plainOf(type);
  return readScalar(value, plain) ?? refuse(value, expectedOf(plain), found);
}

const plainOf = (type: ScalarType | `*${ScalarType}`): ScalarType =>
  (type.charAt(0) === "*" ? type.slice(1) : type) as ScalarType;

/** @returns `undefined` for a value that its type does not take. */
function readScalar(value: unknown, type: ScalarType): unknown {
  switch (type) {
    case "bool":
      return typeof value === "boolean" ? value : undefined;
    case "string":
      return typeof value === "string" ? value : undefined;
    case "float64":
      return typeof value === "number" ? value : undefined;
    case "int32":
    case "uint32":
    case "int64":
      return typeof value === "number" && isWhole(value, type) ? value : undefined;
    case "duration":
      return decodeDuration(value);
    case "timeOrDuration":
      return typeof value === "number" && Number.isSafeInteger(value) ? value : decodeDuration(value);
    case "quantity": {
      const text = typeof value === "number" ? String(value) : value;
      return typeof text === "string" && isQuantity(text.trim()) ? text.trim() : undefined;
    }
    case "time":
      return typeof value === "string" && isTime(value) ? value : undefined;
  }
}

/** What a type takes, for the sentence that refuses another value. */
function expectedOf(type: ScalarType): string {
  switch (type) {
    case "bool":
      return "true or false";
    case "string":
      return "a text";
    case "float64":
      return "a number";
    case "int32":
    case "uint32":
    case "int64":
      return `a whole number from ${ranges[type].join(" to ")}`;
    case "duration":
      return 'a duration, as "10s" or "1h30m"';
    case "timeOrDuration":
      return 'a duration, as "5s", or a number of nanoseconds';
    case "quantity":
      return 'a quantity, as "500m" or "1Gi"';
    case "time":
      return "a time, as 2026-01-02T03:04:05Z";
  }
}

function decodeDuration(value: unknown): string | undefined {
  const nanoseconds = typeof value === "string" ? parseGoDuration(value) : undefined;
  return nanoseconds === undefined ? undefined : goDurationText(nanoseconds);
}

/** RFC 3339, as Go reads it. */
const isTime = (text: string): boolean =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[-+]\d\d:\d\d)$/.test(text) &&
  !Number.isNaN(Date.parse(text.replace(",", ".")));
