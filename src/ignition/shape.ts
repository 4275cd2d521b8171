import { foldedName } from "./folded-name.ts";
import { pathTo, type Findings } from "./problem.ts";

/** How a value of some spec version is read: the counterpart of the reference's Go struct definitions. */
export type Shape = Scalar | ListShape | StructShape;

export interface Scalar {
  readonly kind: "string" | "int" | "bool";
  /**
   * `optional`: missing unless set. `zero`: always present, "" if not set. `omitZero`: cannot distinguish unset from
   * "", 0 or false, so those are missing.
   */
  readonly presence: "optional" | "zero" | "omitZero";
  readonly unsigned?: true;
}

export interface ListShape {
  readonly kind: "list";
  readonly of: Shape;
  /** How a merge treats the list; keyed lists must not contain a key twice. */
  readonly merge:
    | { readonly by: "append" }
    | {
        readonly by: "key";
        readonly group?: string;
        /** What the key is, for people: a field's name, or `value`. */ readonly key: string;
        readonly keyOf: (item: unknown) => string;
      };
}

export interface StructShape {
  readonly kind: "struct";
  readonly fields: ReadonlyMap<string, Shape>;
  /** Distinguishes an empty value from a missing one. */
  readonly pointer: boolean;
  /** Exact names are tried first, then these. */
  readonly folded: ReadonlyMap<string, string>;
}

export const string: Scalar = { kind: "string", presence: "optional" };
export const int: Scalar = { kind: "int", presence: "optional" };
export const bool: Scalar = { kind: "bool", presence: "optional" };
export const requiredString: Scalar = { kind: "string", presence: "zero" };
export const plainString: Scalar = { kind: "string", presence: "omitZero" };
export const plainInt: Scalar = { kind: "int", presence: "omitZero" };
export const plainBool: Scalar = { kind: "bool", presence: "omitZero" };
export const unsignedInt: Scalar = { kind: "int", presence: "optional", unsigned: true };
export const plainUnsignedInt: Scalar = { kind: "int", presence: "omitZero", unsigned: true };

export function struct(
  fields: Readonly<Record<string, Shape | undefined>>,
  options: { readonly pointer?: boolean } = {},
): StructShape {
  const present = Object.entries(fields).flatMap(([name, shape]) =>
    shape === undefined ? [] : [[name, shape] as const],
  );
  return {
    kind: "struct",
    fields: new Map(present),
    folded: new Map(present.map(([name]) => [name.toLowerCase(), name])),
    pointer: options.pointer ?? false,
  };
}

/** How the items of a keyed list are identified. */
export interface Key {
  readonly name: string;
  readonly of: (item: unknown) => string;
}

const itself: Key = { name: "value", of: String };

/** A list with unique keys; lists of the same `group` must not share a key either. */
export const keyed = (of: Shape, key: Key = itself, group?: string): ListShape => ({
  kind: "list",
  of,
  merge: { by: "key", key: key.name, keyOf: key.of, ...(group === undefined ? {} : { group }) },
});

export const appended = (of: Shape): ListShape => ({ kind: "list", of, merge: { by: "append" } });

/** The value of a field as text; "" when it is missing. */
export const textField = (name: string): Key => ({
  name,
  of: (item) => {
    const value = isRecord(item) ? item[name] : undefined;
    return typeof value === "string" ? value : "";
  },
});

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const nameOfType = (value: unknown): string =>
  Array.isArray(value)
    ? "a list"
    : value === null
      ? "null"
      : typeof value === "object"
        ? "an object"
        : `a ${typeof value}`;
const expectedType = {
  string: "a string",
  int: "a whole number",
  bool: "true or false",
  list: "a list",
  struct: "an object",
};

/**
 * Reads `value` as `shape`. Unknown fields are dropped with a warning; null counts as unset; wrong types are errors.
 * The result is normalised as in `types.ts`. Only fields of the shape are visited, so depth and work are bounded.
 */
export function read(value: unknown, shape: Shape, path: string, findings: Findings): unknown {
  switch (shape.kind) {
    case "struct":
      return (
        readStruct(value, shape, path, findings) ?? (shape.pointer && isRecord(value) ? readEmpty(shape) : undefined)
      );
    case "list": {
      if (value === undefined || value === null) return undefined;
      if (!Array.isArray(value)) return findings.error(path, `must be ${expectedType.list}, not ${nameOfType(value)}`);
      return value.map((item, i) => read(item, shape.of, pathTo(path, i), findings) ?? emptyOf(shape.of));
    }
    default:
      return readScalar(value, shape, path, findings);
  }
}

/** The value of a list item with nothing set. */
function emptyOf(shape: Shape): unknown {
  if (shape.kind === "list") return [];
  if (shape.kind === "struct") return readEmpty(shape);
  return shape.kind === "string" ? "" : shape.kind === "int" ? 0 : false;
}

function readEmpty(shape: StructShape): Record<string, unknown> {
  const empty: Record<string, unknown> = {};
  for (const [name, field] of shape.fields)
    if (field.kind !== "list" && field.kind !== "struct" && field.presence === "zero") empty[name] = "";
  return empty;
}

function readStruct(
  value: unknown,
  shape: StructShape,
  path: string,
  findings: Findings,
): Record<string, unknown> | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value)) {
    findings.error(path, `must be ${expectedType.struct}, not ${nameOfType(value)}`);
    return undefined;
  }
  const result = readEmpty(shape);
  // Which of two spellings counts depends on their order, and who wrote it last.
  const seen = new Set<string>();
  let isSet = false;
  for (const name of Object.keys(value)) {
    const field = shape.fields.get(name);
    const known = field === undefined ? shape.folded.get(foldedName(name)) : name;
    const fieldShape = field ?? (known === undefined ? undefined : shape.fields.get(known));
    if (field === undefined)
      findings.warning(
        pathTo(path, name),
        "is not a field of this spec version and has no effect",
        known === undefined ? undefined : `write ${known}`,
      );
    if (known === undefined || fieldShape === undefined) continue;
    if (seen.has(known)) findings.error(pathTo(path, name), `is a second spelling of ${known}`, "keep one of them");
    seen.add(known);
    const read_ = read(value[name], fieldShape, pathTo(path, known), findings);
    if (read_ === undefined) continue;
    result[known] = read_;
    isSet ||= read_ !== "" || !(fieldShape.kind === "string" && fieldShape.presence === "zero");
  }
  return isSet ? result : undefined;
}

function readScalar(
  value: unknown,
  shape: Scalar,
  path: string,
  findings: Findings,
): string | number | boolean | undefined {
  if (value === undefined || value === null) return undefined;
  const wrong = () => {
    findings.error(
      path,
      `must be ${expectedType[shape.kind]}, not ${typeof value === "number" ? String(value) : nameOfType(value)}`,
    );
    return undefined;
  };
  let result: string | number | boolean;
  if (shape.kind === "string") {
    if (typeof value !== "string") return wrong();
    result = value.toWellFormed();
  } else if (shape.kind === "bool") {
    if (typeof value !== "boolean") return wrong();
    result = value;
  } else {
    if (
      typeof value !== "number" ||
      !Number.isInteger(value) ||
      Math.abs(value) >= 2 ** 63 ||
      (shape.unsigned && value < 0)
    )
      return wrong();
    result = value;
  }
  return shape.presence === "omitZero" && (result === "" || result === 0 || result === false) ? undefined : result;
}
