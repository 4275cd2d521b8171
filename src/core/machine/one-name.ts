import type { NodeConfig, WantedEntry } from "../config/node-config.ts";
import type { OriginalEntry, Originals } from "./observed-content.ts";

/** Where names of entries come from. Through links above it, an entry can have several names. */
interface Named {
  readonly target: NodeConfig;
  readonly previous: NodeConfig | undefined;
  readonly originals: Originals;
}

export interface UnderOneName extends Omit<Named, "target"> {
  /** Names in the target of one entry: no machine can have both. */
  readonly twice: readonly (readonly string[])[];
}

/**
 * Gives each entry of a machine one name: that of the target, so that an entry which another configuration names otherwise is
 * neither a new one nor one that goes, and its original is what was there before either.
 *
 * @param places path → where the entry lies once links above it are followed; of every path in `named`
 */
export function underOneName(
  places: ReadonlyMap<string, string>,
  { target, previous, originals }: Named,
): UnderOneName {
  const names = new Map<string, string[]>();
  for (const path of [
    ...target.entries.keys(),
    ...(previous?.entries.keys() ?? []),
    ...Object.keys(originals.paths).sort(),
  ]) {
    const place = places.get(path) ?? path;
    const known = names.get(place);
    if (known === undefined) names.set(place, [path]);
    else if (!known.includes(path)) known.push(path);
  }
  const others = new Map<string, string>();
  const twice: (readonly string[])[] = [];
  for (const [name = "", ...more] of names.values()) {
    for (const other of more) others.set(other, name);
    const wanted = [name, ...more].filter((path) => target.entries.has(path));
    if (wanted.length > 1) twice.push(wanted);
  }
  if (others.size === 0) return { previous, originals, twice };
  return {
    previous: previous === undefined ? undefined : { ...previous, entries: renamed(previous.entries, others) },
    originals: {
      ...originals,
      paths: originalsRenamed(originals.paths, others, previous),
      ...(originals.notKept === undefined
        ? {}
        : { notKept: [...new Set(originals.notKept.map((path) => others.get(path) ?? path))] }),
    },
    twice,
  };
}

function renamed(
  entries: ReadonlyMap<string, WantedEntry>,
  others: ReadonlyMap<string, string>,
): ReadonlyMap<string, WantedEntry> {
  const under = new Map<string, WantedEntry>();
  for (const [path, wanted] of entries) under.set(others.get(path) ?? path, wanted);
  return under;
}

/** If an entry has two recorded originals, the later one is the content of an earlier configuration. */
function originalsRenamed(
  paths: Originals["paths"],
  others: ReadonlyMap<string, string>,
  previous: NodeConfig | undefined,
): Originals["paths"] {
  const brought = new Set(
    [...(previous?.entries.values() ?? [])].flatMap((wanted) => (wanted.kind === "file" ? [wanted.digest] : [])),
  );
  const isOurs = (original: OriginalEntry | null) => original?.kind === "file" && brought.has(original.digest);
  const under: Record<string, OriginalEntry | null> = {};
  for (const [path, original] of Object.entries(paths)) {
    const name = others.get(path) ?? path;
    const known = under[name];
    if (known === undefined || (known !== null && (original === null || (isOurs(known) && !isOurs(original)))))
      under[name] = original;
  }
  return under;
}
