import { type FSWatcher, watch } from "node:fs";
import { basename, dirname } from "node:path";

/**
 * Watches paths of a machine, through folders that come and go: each path by the nearest folder above it that is there.
 *
 * @param locate where a path of the machine lies for us.
 * @param exists whether the machine has something at a path.
 */
export function watchPaths(
  paths: readonly string[],
  onChange: (path: string) => void,
  locate: (path: string) => Promise<string>,
  exists: (path: string) => Promise<boolean>,
): () => void {
  const watchers = new Map<string, FSWatcher>();
  let stopped = false;
  const belowOf = (folder: string) => paths.filter((path) => path.startsWith(`${folder}/`));

  async function arm(): Promise<void> {
    const wanted = new Set<string>();
    for (const path of paths) {
      let folder = dirname(path);
      while (folder.length > 1 && !(await exists(folder))) folder = dirname(folder);
      wanted.add(folder);
    }
    if (stopped) return;
    for (const [folder, watcher] of watchers) {
      if (wanted.has(folder)) continue;
      watcher.close();
      watchers.delete(folder);
    }
    for (const folder of wanted) {
      if (watchers.has(folder)) continue;
      const real = await locate(folder);
      if (stopped || watchers.has(folder)) continue;
      try {
        const watcher = watch(real, (_kind, name) => onEvent(folder, name ?? undefined));
        watcher.on("error", () => {
          watchers.delete(folder);
          watcher.close();
        });
        watchers.set(folder, watcher);
      } catch {
        // It vanished in between; the event on its parent arms again.
      }
    }
    // Nothing else reports changes from before the watch began.
    const [first] = paths;
    if (!stopped && first !== undefined) onChange(first);
  }

  function onEvent(folder: string, name: string | undefined): void {
    const touched =
      name === undefined
        ? belowOf(folder)
        : paths.filter((path) =>
            dirname(path) === folder ? basename(path) === name : path.startsWith(`${folder}/${name}/`),
          );
    for (const path of touched) onChange(path);
    if (touched.some((path) => dirname(path) !== folder) || name === undefined || name === basename(folder)) {
      // A folder came or went: watches below it are new or dead.
      for (const [other, watcher] of watchers) {
        if (other === folder || !other.startsWith(`${folder}/`)) continue;
        watcher.close();
        watchers.delete(other);
      }
      void arm().catch(() => undefined);
    }
  }

  void arm().catch(() => undefined);
  return () => {
    stopped = true;
    for (const watcher of watchers.values()) watcher.close();
    watchers.clear();
  };
}
