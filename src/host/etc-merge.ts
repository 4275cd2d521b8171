/**
 * The 3-way merge of /etc that ostree makes when a deployment is finalised (ostreedev/ostree, ostree-admin-deploy(1)):
 * what the machine changed against the old image's defaults is carried over, everything else takes the new defaults.
 *
 * Entries are opaque; `same` compares two of them. Paths are those of files, links and folders.
 *
 * @returns path → the entry that the new /etc has.
 */
export function mergeEtc<Entry>(
  trees: {
    readonly oldDefaults: ReadonlyMap<string, Entry>;
    readonly current: ReadonlyMap<string, Entry>;
    readonly newDefaults: ReadonlyMap<string, Entry>;
  },
  same: (a: Entry, b: Entry) => boolean,
): ReadonlyMap<string, Entry> {
  const merged = new Map(trees.newDefaults);
  for (const [path, entry] of trees.current) {
    const shipped = trees.oldDefaults.get(path);
    if (shipped === undefined || !same(shipped, entry)) merged.set(path, entry);
  }
  for (const path of trees.oldDefaults.keys()) if (!trees.current.has(path)) merged.delete(path);
  return merged;
}
