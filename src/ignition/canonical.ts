import { isRecord } from "./shape.ts";

/**
 * The form in which a config is stored, hashed and served: empty lists and empty structs left out, everything else as
 * it is, explicit `false`, 0 and "" included. Takes any config whose values are normalised as `types.ts` says.
 * Items of lists stay even when they are empty, and so do the structs named in `keptWhenEmpty`.
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

/** Whether two plain values are the same, key order aside. A missing field differs from an empty list. */
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
