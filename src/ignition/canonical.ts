import { isRecord } from "./shape.ts";

/**
 * The form in which a config is stored, hashed and served: without empty lists and empty structs, everything else
 * unchanged, including explicit `false`, 0 and "". Accepts any config whose values are normalised as in `types.ts`.
 * Empty list items stay, and so do the structs in `keptWhenEmpty`.
 */
export function canonical<T extends object>(config: T, keptWhenEmpty: ReadonlySet<string> = none): T {
  return compacted(config, keptWhenEmpty) as T;
}

const none: ReadonlySet<string> = new Set();

function compacted(value: unknown, keptWhenEmpty: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((item) => compacted(item, keptWhenEmpty));
  if (!isRecord(value)) return value;
  const result: Record<string, unknown> = {};
  for (const name in value) {
    const field = value[name];
    if (field === undefined) continue;
    if (typeof field !== "object") {
      result[name] = field;
      continue;
    }
    const kept = compacted(field, keptWhenEmpty);
    if (!isVoid(kept) || keptWhenEmpty.has(name)) result[name] = kept;
  }
  return result;
}

const isVoid = (value: unknown): boolean => {
  if (Array.isArray(value)) return value.length === 0;
  if (!isRecord(value)) return value === undefined;
  for (const _ in value) return false;
  return true;
};

/** Whether two plain values are equal, regardless of key order. A missing field differs from an empty list. */
export function equalValues(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => equalValues(item, b[i]));
  if (!isRecord(a) || !isRecord(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && equalValues(a[name], b[name]))
  );
}
