/** Enough to see where a wait was stuck, and short enough to read in a list of failures. */
const defaultLimit = 600;

/** The keys that come first when only the beginning of an object is shown. */
const first = ["status", "code", "text", "spec", "metadata"];

const rank = (key: string) => (first.includes(key) ? first.indexOf(key) : first.length);
const noise = new Set(["managedFields", "uid", "creationTimestamp", "resourceVersion"]);

/** A value as JSON, cut to `limit` characters; of a Kubernetes object the status comes first. */
export function shown(value: unknown, limit = defaultLimit): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`.slice(0, limit);
  const ordered =
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => rank(a) - rank(b)))
      : value;
  const text = JSON.stringify(ordered, (key, each: unknown) => (noise.has(key) ? undefined : each)) ?? "nothing";
  return text.length <= limit ? text : `${text.slice(0, limit)}…`;
}

/** The failure of a wait: what did not happen, how long the test waited, and what it saw last. */
export const notWithin = (seconds: number, what: string, last: unknown, limit?: number): Error =>
  new Error(`not within ${seconds} s: ${what}; last seen: ${shown(last, limit)}`);
