type Json = Readonly<Record<string, unknown>>;

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

const isRecord = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The JSON merge patch (RFC 7386) that makes `after` of `before`, or `undefined` when they say the same. Fields whose
 * value is `undefined` or `null` count as absent, as for Kubernetes; the order of fields does not matter.
 */
export function mergeDifference(before: unknown, after: unknown): unknown {
  if (isRecord(before) && isRecord(after)) {
    const patch: Record<string, unknown> = {};
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const difference = mergeDifference(before[key], after[key]);
      if (difference !== undefined) patch[key] = difference;
    }
    return Object.keys(patch).length === 0 ? undefined : patch;
  }
  if (isAbsent(after)) return isAbsent(before) ? undefined : null;
  if (Array.isArray(before) && Array.isArray(after)) {
    const [old, now]: [readonly unknown[], readonly unknown[]] = [before, after];
    return old.length === now.length && old.every((item, index) => mergeDifference(item, now[index]) === undefined)
      ? undefined
      : now;
  }
  return before === after ? undefined : after;
}

/** Whether two JSON values are equal. */
export const sameJson = (a: unknown, b: unknown): boolean => mergeDifference(a, b) === undefined;
