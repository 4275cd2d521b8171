import { type FSWatcher, watch } from "node:fs";
import { basename, dirname } from "node:path";

/** After it looked for the folders to watch, it does not do so again for this long. */
export const watchPauseMs = 250;

export interface WatchOptions {
  /** Where a path of the machine lies for us. */
  readonly locate: (path: string) => Promise<string>;
  /** Whether the machine has something at a path. */
  readonly exists: (path: string) => Promise<boolean>;
  /** Passes {@link watchPauseMs}, or less once the signal aborts. */
  readonly pause: (signal: AbortSignal) => Promise<void>;
}

/**
 * Watches paths of a machine, through folders that come and go: each path by the nearest folder above it that is there.
 *
 * Users of the machine own some of these folders, and can make any number of events: an event costs what it touches, and
 * the folders are looked for one time after the other, with a pause.
 */
export function watchPaths(
  paths: readonly string[],
  onChange: (path: string) => void,
  { locate, exists, pause }: WatchOptions,
): () => void {
  const watchers = new Map<string, FSWatcher>();
  const stop = new AbortController();
  const isStopped = () => stop.signal.aborted;
  const below = pathsBelow(paths);
  let arming: "not" | "now" | "again" = "not";

  async function arm(): Promise<void> {
    if (arming !== "not") {
      arming = "again";
      return;
    }
    do {
      arming = "now";
      // What vanished in between is an event of its own.
      await armOnce().catch(() => undefined);
      await pause(stop.signal).catch(() => undefined);
    } while (wantsAgain() && !isStopped());
    arming = "not";
  }

  const wantsAgain = () => arming === "again";

  async function armOnce(): Promise<void> {
    const wanted = new Set<string>();
    for (const path of new Set(paths.map((each) => dirname(each)))) {
      let folder = path;
      while (folder.length > 1 && !(await exists(folder))) folder = dirname(folder);
      wanted.add(folder);
    }
    if (isStopped()) return;
    for (const [folder, watcher] of watchers) {
      if (wanted.has(folder)) continue;
      watcher.close();
      watchers.delete(folder);
    }
    for (const folder of wanted) {
      if (watchers.has(folder)) continue;
      const real = await locate(folder);
      if (isStopped() || watchers.has(folder)) continue;
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
    if (!isStopped() && first !== undefined) onChange(first);
  }

  function onEvent(folder: string, name: string | undefined): void {
    const names = below.get(folder);
    const touched = name === undefined ? [...(names?.values() ?? [])].flat() : (names?.get(name) ?? []);
    for (const path of touched) onChange(path);
    if (touched.some((path) => dirname(path) !== folder) || name === undefined || name === basename(folder)) {
      // A folder came or went: watches below it are new or dead.
      for (const [other, watcher] of watchers) {
        if (other === folder || !other.startsWith(`${folder}/`)) continue;
        watcher.close();
        watchers.delete(other);
      }
      void arm();
    }
  }

  void arm();
  return () => {
    stop.abort(new Error("the watch is stopped"));
    for (const watcher of watchers.values()) watcher.close();
    watchers.clear();
  };
}

/** Folder → name in it → the paths that have this name, or are below it. */
function pathsBelow(paths: readonly string[]): ReadonlyMap<string, ReadonlyMap<string, readonly string[]>> {
  const below = new Map<string, Map<string, string[]>>();
  for (const path of new Set(paths))
    for (let at = path; at.length > 1; at = dirname(at)) {
      const names = below.get(dirname(at)) ?? new Map<string, string[]>();
      below.set(dirname(at), names);
      const known = names.get(basename(at)) ?? [];
      names.set(basename(at), known);
      known.push(path);
    }
  return below;
}
