import { utf8ToBytes } from "@noble/hashes/utils.js";
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
 * What a machine keeps of the content that its configurations hide, in bytes of files: of users, who could otherwise fill the
 * daemon's documents until they cannot be read any more, of root, and of what the OS ships, which it has anyway.
 */
export const mostOriginalBytes = {
  ofUserFile: 1024 * 1024,
  ofUsers: 4 * 1024 * 1024,
  ofRoot: 32 * 1024 * 1024,
  /** Of their targets: nothing says whose a link is. */
  ofLinks: 4 * 1024 * 1024,
  ofOs: 2 * 1024 * 1024,
  /**
   * Of the text of all of them, which has paths, owners and links, too, and contents in base64. What {@link mostOriginalsText}
   * has beside is for units and accounts.
   */
  ofText: 60 * 1024 * 1024,
} as const;

/** The largest document of originals, in bytes. */
export const mostOriginalsText = 64 * 1024 * 1024;

export type OriginalLimits = Readonly<Record<keyof typeof mostOriginalBytes, number>>;

/** Of a file the length of what its text in base64 stands for, of a link that of its target in a document. */
function contentBytesOf(entry: OriginalEntry | null): number {
  if (entry === null) return 0;
  if (entry.kind === "link") return textBytes(entry.target);
  const padding = /=*$/.exec(entry.contents.slice(-2))?.[0].length ?? 0;
  return Math.floor((entry.contents.length * 3) / 4) - padding;
}

const bytesOf = (entry: OriginalEntry | null): number => (entry?.shipped === true ? 0 : contentBytesOf(entry));

const isOfUser = (entry: OriginalEntry | null): boolean => entry?.kind === "file" && entry.uid !== 0;

const whose = (entry: OriginalEntry | null) =>
  entry?.kind === "link" ? "ofLinks" : isOfUser(entry) ? "ofUsers" : "ofRoot";

const textBytes = (value: unknown): number => utf8ToBytes(JSON.stringify(value)).length;

/** The bytes of a path and its original in a document, without the contents of what the OS ships. */
function textBytesOf(path: string, entry: OriginalEntry | null): number {
  // The path of what is not kept stands in a list, too.
  const around =
    entry === null ? [path, null, path] : [path, entry.kind === "file" ? { ...entry, contents: "" } : entry];
  const contents = entry?.kind === "file" && entry.shipped !== true ? entry.contents.length : 0;
  return textBytes(around) + contents;
}

/**
 * The originals of paths with those that are newly found, the smallest ones first. What is too much is not kept, nor what
 * cannot be read: such a path counts as if nothing had been there, and is named.
 *
 * @returns the originals, and which of those that were found are not kept.
 */
export function withFound(
  originals: Originals,
  found: ReadonlyMap<string, OriginalEntry | null>,
  unreadable: Iterable<string> = [],
  most: OriginalLimits = mostOriginalBytes,
): { readonly originals: Originals; readonly notKept: readonly string[] } {
  const paths: Record<string, OriginalEntry | null> = { ...originals.paths };
  const notKept = new Set(unreadable);
  const bytes = { ofUsers: 0, ofRoot: 0, ofLinks: 0 };
  let text = 0;
  for (const [path, entry] of Object.entries(paths)) {
    bytes[whose(entry)] += bytesOf(entry);
    text += textBytesOf(path, entry);
  }
  // What no bound leaves out comes first: the names of the paths.
  for (const path of found.keys()) text += textBytesOf(path, null);
  const mostText = most.ofText - Math.ceil((most.ofOs * 4) / 3);
  for (const [path, entry] of [...found].sort(([, a], [, b]) => bytesOf(a) - bytesOf(b))) {
    const more = bytesOf(entry);
    const all = bytes[whose(entry)] + more;
    const allText = text + textBytesOf(path, entry) - textBytesOf(path, null);
    const isTooMuch =
      (more > 0 && all > most[whose(entry)]) ||
      (isOfUser(entry) && more > most.ofUserFile) ||
      (allText > mostText && allText > text);
    if (entry?.shipped !== true && isTooMuch) notKept.add(path);
    if (!notKept.has(path)) {
      bytes[whose(entry)] = all;
      text = allText;
    }
    paths[path] = notKept.has(path) ? null : entry;
  }
  if (notKept.size === 0) return { originals: { ...originals, paths }, notKept: [] };
  const names = new Set([...(originals.notKept ?? []), ...notKept]);
  return { originals: { ...originals, paths, notKept: [...names].sort() }, notKept: [...notKept] };
}

/** The originals without what is too much to be kept: an earlier release had no such bound. */
export const fittingOriginals = (originals: Originals): Originals =>
  originalsToStore(withFound({ ...originals, paths: {} }, new Map(Object.entries(originals.paths))).originals);

/**
 * The originals as a document holds them: without large contents of the OS. A machine that runs what an OS ships reads them
 * there, as with those that an image of ours hides; it knows in {@link uncovered} that there are some.
 */
export function originalsToStore(originals: Originals, most: OriginalLimits = mostOriginalBytes): Originals {
  const shipped = Object.entries(originals.paths).filter(([, entry]) => entry?.shipped === true);
  let bytes = 0;
  const large = shipped
    .sort(([, a], [, b]) => contentBytesOf(a) - contentBytesOf(b))
    .flatMap(([path, entry]) => ((bytes += contentBytesOf(entry)) > most.ofOs ? [path] : []));
  if (large.length === 0) return originals;
  return {
    ...originals,
    paths: { ...originals.paths, ...Object.fromEntries(large.map((path) => [path, null])) },
    hidden: [...new Set([...(originals.hidden ?? []), ...large])].sort(),
  };
}

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
