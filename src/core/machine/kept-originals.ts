import type { NodeConfig } from "../config/node-config.ts";
import type { OriginalEntry, Originals } from "./observed-content.ts";

/** What the running OS ships, by path. */
export type Shipped = ReadonlyMap<string, OriginalEntry>;

export function sameOriginal(a: OriginalEntry, b: OriginalEntry): boolean {
  if (a.kind === "link" || b.kind === "link") return a.kind === "link" && b.kind === "link" && a.target === b.target;
  return a.digest === b.digest && a.mode === b.mode && a.uid === b.uid && a.gid === b.gid;
}

/** The original to record. One that equals what the OS ships is marked: the OS that runs later decides what comes back. */
export const originalToRecord = (
  entry: OriginalEntry | null,
  shipped: OriginalEntry | undefined,
): OriginalEntry | null =>
  entry !== null && shipped !== undefined && sameOriginal(entry, shipped) ? { ...entry, shipped: true } : entry;

/**
 * What a machine keeps of the content that its configurations hide, in bytes, beside what the OS ships: of users, who could
 * otherwise fill the daemon's documents until they cannot be read any more, and of root.
 */
export const mostOriginalBytes = {
  ofUserFile: 1024 * 1024,
  ofUsers: 4 * 1024 * 1024,
  ofRoot: 32 * 1024 * 1024,
} as const;

/** The length of what a text in base64 stands for. */
const bytesOf = (entry: OriginalEntry | null): number =>
  entry?.kind === "file" && entry.shipped !== true ? Math.floor((entry.contents.length * 3) / 4) : 0;

const isOfUser = (entry: OriginalEntry | null): boolean => entry?.kind === "file" && entry.uid !== 0;

/**
 * The originals of paths with those that are newly found. What is too much is not kept, nor what cannot be read: such a
 * path counts as if nothing had been there, and is named.
 *
 * @returns the originals, and which of those that were found are not kept.
 */
export function withFound(
  originals: Originals,
  found: ReadonlyMap<string, OriginalEntry | null>,
  unreadable: Iterable<string> = [],
): { readonly originals: Originals; readonly notKept: readonly string[] } {
  const paths: Record<string, OriginalEntry | null> = { ...originals.paths };
  const notKept = new Set(unreadable);
  const bytes = { ofUsers: 0, ofRoot: 0 };
  const whose = (entry: OriginalEntry | null) => (isOfUser(entry) ? "ofUsers" : "ofRoot");
  for (const entry of Object.values(paths)) bytes[whose(entry)] += bytesOf(entry);
  for (const [path, entry] of found) {
    const more = bytesOf(entry);
    const all = bytes[whose(entry)] + more;
    const isTooMuch = all > mostOriginalBytes[whose(entry)] || (isOfUser(entry) && more > mostOriginalBytes.ofUserFile);
    if (more > 0 && isTooMuch) notKept.add(path);
    else bytes[whose(entry)] = all;
    paths[path] = notKept.has(path) ? null : entry;
  }
  if (notKept.size === 0) return { originals: { ...originals, paths }, notKept: [] };
  const names = new Set([...(originals.notKept ?? []), ...notKept]);
  return { originals: { ...originals, paths, notKept: [...names].sort() }, notKept: [...notKept] };
}

/** The originals without what is too much to be kept: an earlier release had no such bound. */
export const fittingOriginals = (originals: Originals): Originals =>
  withFound({ ...originals, paths: {} }, new Map(Object.entries(originals.paths))).originals;

/** Paths whose original is what the system ships. */
export const shippedPaths = ({ paths }: Originals): readonly string[] =>
  Object.entries(paths).flatMap(([path, original]) => (original?.shipped === true ? [path] : []));

/** The originals for the OS that runs, which may ship other files than the one on which they were recorded. */
export function originalsOnSystem(originals: Originals, shipped: Shipped): Originals {
  const now = shippedPaths(originals).map((path) => {
    const entry = shipped.get(path);
    return [path, entry === undefined ? null : ({ ...entry, shipped: true } as const)] as const;
  });
  return now.length === 0 ? originals : { ...originals, paths: { ...originals.paths, ...Object.fromEntries(now) } };
}

/** The originals if no image of ours hides anything: what the system ships. */
export function uncovered({ hidden = [], ...originals }: Originals, shipped: Shipped): Originals {
  const found = hidden.flatMap((path) => {
    const entry = shipped.get(path);
    return originals.paths[path] === null && entry !== undefined ? [[path, { ...entry, shipped: true }] as const] : [];
  });
  return { ...originals, paths: { ...originals.paths, ...Object.fromEntries(found) } };
}

/**
 * The originals of what a configuration manages.
 *
 * @param units those that it manages.
 */
export function originalsUnder(
  config: Pick<NodeConfig, "entries" | "passwords">,
  units: ReadonlySet<string>,
  { hidden = [], notKept = [], ...originals }: Originals,
): Originals {
  const keep = <T>(record: Readonly<Record<string, T>>, has: (key: string) => boolean) =>
    Object.fromEntries(Object.entries(record).filter(([key]) => has(key)));
  const covered = hidden.filter((path) => config.entries.has(path));
  const lost = notKept.filter((path) => config.entries.has(path));
  return {
    ...originals,
    paths: keep(originals.paths, (path) => config.entries.has(path)),
    ...(covered.length === 0 ? {} : { hidden: covered }),
    ...(lost.length === 0 ? {} : { notKept: lost }),
    enablement: keep(originals.enablement, (unit) => units.has(unit)),
    ...(originals.links === undefined ? {} : { links: keep(originals.links, (unit) => units.has(unit)) }),
    passwords: keep(originals.passwords, (user) => config.passwords.has(user)),
  };
}
