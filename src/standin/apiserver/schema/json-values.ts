/** A JSON object. */
export type JsonObject = Record<string, unknown>;

/** Whether `value` is a JSON object (no list, no null). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `Array.isArray` whose elements are `unknown`. */
export function isList(value: unknown): value is unknown[] {
  return Array.isArray(value);
}

/** A deep copy of a JSON value. A key `__proto__` is dropped: assigning it would change the prototype. */
export function cloneJson<T>(value: T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (isList(value)) return value.map(copy);
  if (!isObject(value)) return value;
  const result: JsonObject = {};
  for (const key of Object.keys(value)) if (key !== "__proto__") result[key] = copy(value[key]);
  return result;
}

/** Deep equality of JSON values; the order of keys does not count. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isList(a)) return isList(b) && a.length === b.length && a.every((item, index) => equalJson(item, b[index]));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && equalJson(a[key], b[key]));
}

/** How deep objects and lists of a body or an object may be nested. */
export const maxJsonDepth = 1000;

/** How deep objects and lists are nested in a value, which may be deeper than a call stack. */
export function jsonDepth(value: unknown): number {
  let depth = -1;
  for (let level: readonly unknown[] = [value]; level.length > 0; depth += 1)
    level = level.flatMap((one) => (typeof one === "object" && one !== null ? (Object.values(one) as unknown[]) : []));
  return depth;
}

/** The value below `path`, or undefined where a step is absent. Numbers step into lists. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current = value;
  for (const step of path) {
    if (typeof step === "number") current = isList(current) ? current[step] : undefined;
    else current = isObject(current) && Object.hasOwn(current, step) ? current[step] : undefined;
    if (current === undefined) return undefined;
  }
  return current;
}

/** Like `at`, with absent and other types read as the empty value. */
export function textAt(value: unknown, ...path: readonly (string | number)[]): string {
  const found = at(value, ...path);
  return typeof found === "string" ? found : "";
}

/** Like `at`, with absent and other types read as the empty value. */
export function numberAt(value: unknown, ...path: readonly (string | number)[]): number {
  const found = at(value, ...path);
  return typeof found === "number" ? found : 0;
}

/** Like `at`, with absent and other types read as the empty value. */
export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const found = at(value, ...path);
  return isList(found) ? found : [];
}

/** Like `at`, with absent and other types read as the empty value. */
export function objectAt(value: unknown, ...path: readonly (string | number)[]): JsonObject {
  const found = at(value, ...path);
  return isObject(found) ? found : {};
}

/** A value as Go prints it with `%v`: `map[a:1]`, `[1 2]`. */
export function goText(value: unknown): string {
  if (value === null) return "<nil>";
  if (isList(value)) return `[${value.map(goText).join(" ")}]`;
  if (isObject(value))
    return `map[${Object.keys(value)
      .toSorted()
      .map((key) => `${key}:${goText(value[key])}`)
      .join(" ")}]`;
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Characters of a value as JSON; more than `most` when there are more, however many: counting ends there. Shared
 * values, as a YAML alias creates them, count each time.
 */
export function jsonLength(value: unknown, most: number): number {
  let length = 0;
  const count = (part: unknown): void => {
    if (length > most) return;
    if (isList(part)) {
      length += 2 + Math.max(0, part.length - 1);
      for (const item of part) {
        if (length > most) return;
        count(item);
      }
    } else if (isObject(part)) {
      length += 2;
      for (const key in part) {
        if (length > most) return;
        length += key.length + 4;
        count(part[key]);
      }
    } else length += typeof part === "string" ? part.length + 2 : String(part).length;
  };
  count(value);
  return length;
}
