import { isQuantity } from "../../api/schema/quantities.ts";
import { goDurationText, parseGoDuration } from "./go-duration.ts";
import type { GoStruct, GoType, ScalarType } from "./kubelet-fields.ts";
import { mapItems, mapValues } from "./map-items.ts";

export interface FieldProblem {
  /** `evictionHard.memory.available`, `registerWithTaints[0].key` */
  readonly path: string;
  readonly reason: string;
}

/** A decoded value: absent members are absent, numbers are numbers, durations are texts as Go prints them. */
export type Decoded = Readonly<Record<string, unknown>>;

export interface Decoding {
  readonly value: Decoded;
  /** What a Go program refuses. */
  readonly problems: readonly FieldProblem[];
  /** Paths of fields that it does not know, and ignores; sorted. */
  readonly unknown: readonly string[];
}

/**
 * Decodes a JSON value into a struct as Go does (encoding/json, and the decoders of Kubernetes' own types): names count
 * with their case, `null` leaves a value unset where its type permits, numbers must fit, nothing is converted.
 */
export function decodeGo(value: unknown, type: GoStruct): Decoding {
  const problems: FieldProblem[] = [];
  const unknown: string[] = [];
  const decoded = decodeValue(value, type, undefined, { problems, unknown });
  return { value: (decoded ?? {}) as Decoded, problems, unknown: unknown.toSorted() };
}

interface Findings {
  readonly problems: FieldProblem[];
  readonly unknown: string[];
}

/** Where a value is; its text is made where something is said of it, because a list may have thousands of items. */
interface Place {
  readonly within: Place | undefined;
  /** A name of a member or a key, or an index. */
  readonly at: string | number;
}

const pathOf = ({ within, at }: Place): string =>
  typeof at === "number"
    ? `${within === undefined ? "" : pathOf(within)}[${at}]`
    : within === undefined
      ? at
      : `${pathOf(within)}.${at}`;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Whether a value is a text, true or false, or a list of texts, as its type says: most values by far, which decode to
 * themselves.
 */
const isPlain = (value: unknown, type: GoType): boolean =>
  typeof value === "string" || typeof value === "boolean"
    ? type === (typeof value === "string" ? "string" : "bool")
    : typeof type !== "string" &&
      "list" in type &&
      type.list === "string" &&
      Array.isArray(value) &&
      value.every((item) => typeof item === "string");

/**
 * Decodes a value below a place. A value that decodes to itself is not copied.
 *
 * @returns `undefined` for a value that is not set.
 */
function decodeValue(value: unknown, type: GoType, place: Place | undefined, found: Findings): unknown {
  if (isPlain(value, type)) return value;
  const refuse = (expected: string) => {
    const path = place === undefined ? "" : pathOf(place);
    found.problems.push({ path, reason: `must be ${expected}, not ${describe(value)}` });
    return undefined;
  };
  if (typeof type === "string") return decodeScalar(value, type, refuse);
  if (value === null || value === undefined) return undefined;
  if ("list" in type) {
    if (!Array.isArray(value)) return refuse("a list");
    return mapItems(value, (item, i) => decodeItem(item, type.list, { within: place, at: i }, found));
  }
  if (!isObject(value)) return refuse("an object");
  if ("struct" in type) return decodeStruct(value, type, place, found);
  return mapValues(value, (item, key) => decodeItem(item, type.map, { within: place, at: key }, found));
}

/** Decodes an item of a list or a map: one that is not set has its zero value. */
const decodeItem = (item: unknown, type: GoType, place: Place, found: Findings): unknown =>
  decodeValue(item, type, place, found) ?? zeroOf(type);

function decodeStruct(value: Decoded, type: GoStruct, place: Place | undefined, found: Findings): Decoded {
  // Names of members are those of the type: none of them is a setter.
  const members: Record<string, unknown> = {};
  let isSame = true;
  for (const key of Object.keys(value)) {
    const at = { within: place, at: key };
    const member = Object.hasOwn(type.struct, key) ? type.struct[key] : undefined;
    const decoded = member && decodeValue(value[key], member, at, found);
    if (member === undefined) found.unknown.push(pathOf(at));
    if (decoded !== undefined) members[key] = decoded;
    isSame &&= decoded === value[key] && decoded !== undefined;
  }
  return isSame ? value : members;
}

/** The value of a member that is not set; `undefined`: a pointer. */
export function zeroOf(type: GoType): unknown {
  if (typeof type !== "string")
    return "list" in type ? [] : "struct" in type && type.isPointer === true ? undefined : {};
  if (type.startsWith("*") || type === "time") return undefined;
  if (type === "bool") return false;
  if (type === "quantity") return "0";
  if (type === "duration") return "0s";
  return type === "string" ? "" : 0;
}

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

function decodeScalar(value: unknown, type: ScalarType | `*${ScalarType}`, refuse: (expected: string) => undefined) {
  const plain = type.replace("*", "") as ScalarType;
  if (value === undefined) return undefined;
  // A duration reads its own null, and finds no text in it.
  if (value === null) return type === "duration" ? refuse('a duration, as "10s" or "1h30m"') : undefined;
  switch (plain) {
    case "bool":
      return typeof value === "boolean" ? value : refuse("true or false");
    case "string":
      return typeof value === "string" ? value : refuse("a text");
    case "float64":
      return typeof value === "number" ? value : refuse("a number");
    case "int32":
    case "uint32":
    case "int64": {
      const [least, most] = ranges[plain];
      return typeof value === "number" && Number.isInteger(value) && value >= least && value <= most
        ? value
        : refuse(`a whole number from ${least} to ${most}`);
    }
    case "duration":
      return decodeDuration(value) ?? refuse('a duration, as "10s" or "1h30m"');
    case "timeOrDuration": {
      if (typeof value === "number" && Number.isSafeInteger(value)) return value;
      return decodeDuration(value) ?? refuse('a duration, as "5s", or a number of nanoseconds');
    }
    case "quantity": {
      const text = typeof value === "number" ? String(value) : value;
      return typeof text === "string" && isQuantity(text.trim())
        ? text.trim()
        : refuse('a quantity, as "500m" or "1Gi"');
    }
    case "time":
      return typeof value === "string" && isTime(value) ? value : refuse("a time, as 2026-01-02T03:04:05Z");
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
