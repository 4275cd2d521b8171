import { leastOf } from "../../api/schema/extremes.ts";
import * as fs from "node:fs/promises";
import type { Stats } from "node:fs";
import { basename, dirname, join, posix } from "node:path";
import { McoError } from "../../api/errors.ts";
import { type HostEntry, type HostFiles, type HostWrite, type Ownership, isImages, isUnreadable } from "../host.ts";
import type { Clock } from "../../ports/clock.ts";
import { sameEntry } from "../same-entry.ts";
import type { Disk } from "./disk.ts";
import {
  absentIsDone,
  createTemporary,
  eachOf,
  linkTemporary,
  readJson,
  removeTree,
  statIfThere,
  storeJson,
  temporaryOf,
  unlinkBoth,
} from "./durable-writes.ts";
import { type DiskHold, asNamed, heldInside } from "./held-disk.ts";
import type { Gift, Owners } from "./ownership.ts";
import { asFailure, namingFailure } from "./name-failure.ts";
import { readRegular } from "./read-regular.ts";
import { isSafeFolder } from "./root-folder.ts";
import { watchPaths, watchPauseMs } from "./watch-paths.ts";

export interface RootFilesOptions {
  /** Where a path of the machine lies for us; its last component is not followed. */
  readonly locate: (path: string) => Promise<string>;
  readonly disk: Disk;
  /** How what is read is held while it is. */
  readonly hold: DiskHold;
  readonly owners: Owners;
  /** By which a watch pauses; without it, it does not. */
  readonly clock?: Pick<Clock, "sleep"> | undefined;
  /** Where to keep {@link MadeRecord}; its folder is there, or made by this, before something is written. */
  readonly recordPath: () => Promise<string>;
}

/**
 * Temporary entries created by writes. Written before the disk is changed, so that it never says less than there is: a
 * name in it may be absent, and the next pass then removes it.
 */
interface MadeRecord {
  readonly v: 1;
  /** Folders that a write made: they go away when they are empty again. */
  readonly folders: readonly string[];
  /**
   * Paths of the machine that the last pass wrote: what lies under the temporary name of one was left by a killed
   * process.
   */
  readonly written: readonly string[];
}

const nothingMade: MadeRecord = { v: 1, folders: [], written: [] };
const plainFolder: Ownership = { mode: 0o755, uid: 0, gid: 0 };

/** A folder that is not there yet, and a path that needs it. */
interface Missing {
  readonly path: string;
  readonly own: Ownership;
}

export interface RootFiles extends HostFiles {
  /**
   * Clears away what a process left that was killed in a write: unfinished names, and folders that nothing came into.
   */
  recover(): Promise<void>;
}

/** The files of a machine whose root file system is in a folder of this machine. */
export function rootFiles({ locate, disk, hold, owners, recordPath, clock }: RootFilesOptions): RootFiles {
  let recovered: Promise<void> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  /**
   * Folders that this process has flushed: what is not there in one of them was not just removed by one that was
   * killed.
   */
  const flushed = new Set<string>();

  /** One change of the disk after the other: they share a record. Failures of the system become ours, with the path. */
  function change<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const turn = last.then(async () => {
      try {
        signal.throwIfAborted();
        recovered ??= recover().catch((error: unknown) => {
          recovered = undefined;
          throw error;
        });
        await recovered;
        return await work();
      } catch (error) {
        throw asFailure(path, error);
      }
    });
    last = turn.catch(() => undefined);
    return turn;
  }

  async function recover(): Promise<void> {
    const at = await recordPath();
    const record = await readJson(at, nothingMade);
    const temporaries: string[] = [];
    for (const path of record.written)
      await namingFailure(path, async () => {
        const temporary = temporaryOf(await locate(path));
        temporaries.push(temporary);
        const stat = await statIfThere(temporary);
        if (stat?.isDirectory() === true) await removeTree(disk, temporary);
        else if (stat !== undefined) await disk.unlink(temporary);
      });
    // What has its name already may not have been flushed: then a power cut would take it back from who finds it in
    // place now.
    for (const folder of new Set(temporaries.map((temporary) => dirname(temporary))))
      await disk.sync(folder).catch(absentIsDone);
    const folders = await withoutEmpty(record.folders, [...record.folders].sort().reverse());
    if (record.written.length > 0 || folders.length < record.folders.length)
      await storeJson(disk, at, { v: 1, folders, written: [] } satisfies MadeRecord);
  }

  /** Removes those of `candidates` that are empty, deepest first. @returns the folders that are still ours. */
  async function withoutEmpty(folders: readonly string[], candidates: readonly string[]): Promise<readonly string[]> {
    const gone = new Set<string>();
    const touched = new Set<string>();
    for (const folder of candidates) {
      const real = await locate(folder);
      const names = await namesIn(real);
      if (names !== undefined && names.length > 0) continue;
      if (names !== undefined) {
        await disk.rmdir(real);
        touched.add(dirname(real));
      }
      touched.delete(real);
      gone.add(folder);
    }
    for (const real of touched) await disk.sync(real);
    return folders.filter((folder) => !gone.has(folder));
  }

  const read = async (path: string): Promise<HostEntry | undefined> => entryAt(await locate(path), owners, hold);

  /** `undefined`: there is no such folder. */
  const namesIn = async (real: string): Promise<readonly string[] | undefined> =>
    (await heldInside(hold)(real, (at) => fs.readdir(at)).catch(absentIsDone)) ?? undefined;

  /** Folders above `path` that are not there, the topmost first. */
  async function missingAbove(path: string): Promise<readonly string[]> {
    const missing: string[] = [];
    for (
      let folder = dirname(path);
      folder.length > 1 && (await statIfThere(await locate(folder))) === undefined;
      folder = dirname(folder)
    )
      missing.unshift(folder);
    return missing;
  }

  /**
   * Makes folders, each with its owner from the moment that it has its name. Those below another new one are made
   * inside it while it still has a temporary one.
   *
   * @returns the folders of ours in which names have come.
   */
  async function makeFolders(missing: ReadonlyMap<string, Missing>): Promise<readonly string[]> {
    const chains = new Map<string, [string, Missing][]>();
    // Those above come first.
    for (const [folder, wanted] of [...missing].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const chain = chains.get(dirname(folder)) ?? [];
      chains.set(folder, chain);
      chain.push([folder, wanted]);
    }
    const touched: string[] = [];
    for (const chain of new Set(chains.values())) {
      const [top = "", { path } = { path: "" }] = chain[0] ?? [];
      touched.push(await namingFailure(path, () => makeFolder(top, chain)));
    }
    return touched;
  }

  /** @returns the folder in which the name has come. */
  async function makeFolder(top: string, chain: readonly (readonly [string, Missing])[]): Promise<string> {
    const real = await locate(top);
    const temporary = temporaryOf(real);
    const gifts: Gift[] = chain.map(([folder, { path, own }]) => ({
      at: temporary + folder.slice(top.length),
      as: real + folder.slice(top.length),
      path,
      kind: "folder",
      own,
    }));
    try {
      if (owners.areReal) await makeGiven(temporary, gifts);
      else {
        for (const { at } of gifts) await disk.mkdir(at);
        await owners.give(gifts);
      }
      for (const { at } of [...gifts].reverse()) await disk.sync(at);
      await disk.rename(temporary, real);
    } catch (error) {
      await removeTree(disk, temporary).catch(() => undefined);
      throw error;
    }
    return dirname(real);
  }

  /** Each is given away when all below it are: until then nobody else can put something in the place of one. */
  async function makeGiven(top: string, gifts: readonly Gift[]): Promise<void> {
    const below = new Map<string, Gift[]>();
    for (const gift of gifts) {
      const known = below.get(dirname(gift.at)) ?? [];
      below.set(dirname(gift.at), known);
      known.push(gift);
    }
    const make = async (gift: Gift, at: string): Promise<void> => {
      const inside = below.get(gift.at);
      if (inside === undefined) return disk.mkdir(at, gift.own);
      return disk.mkdir(at, gift.own, async (held) => {
        for (const each of inside) await make(each, join(held, basename(each.at)));
      });
    };
    for (const gift of below.get(dirname(top)) ?? []) await make(gift, gift.at);
  }

  /** Whether nobody but root can change a folder above a path of ours. */
  async function isOfRootAlone(real: string): Promise<boolean> {
    const roots = await Promise.all(["/", "/var", "/run"].map(locate));
    for (let at = dirname(real); !roots.includes(at) && at !== dirname(at); at = dirname(at))
      if (!isSafeFolder(await fs.lstat(at))) return false;
    return true;
  }

  /**
   * Gives a folder that is there already. In a folder that a user can change it may be any other one of that folder: there
   * it must be that user's, or belong to the new owner.
   */
  async function giveFolder(path: string, before: Ownership, own: Ownership): Promise<void> {
    const real = await locate(path);
    const given = { mode: own.mode, uid: own.uid, gid: own.gid };
    if (!owners.areReal) return owners.give([{ at: real, as: real, kind: "folder", own: given }]);
    const ofUser = [own.uid, (await fs.lstat(dirname(real))).uid].filter((uid) => uid !== 0);
    if (!(await isOfRootAlone(real)) && !ofUser.includes(before.uid))
      throw new McoError("MCO_HOST_UNSAFE_PATH", { path, owner: before.uid });
    await disk.give(real, given, before.uid);
  }

  const beWritable = (path: string) => {
    if (isImages(path)) throw new McoError("MCO_HOST_READ_ONLY", { path });
  };

  /** One pass over the disk for all of them: what is missing, contents, names. */
  async function writePass(writes: readonly HostWrite[], signal: AbortSignal): Promise<void> {
    const todo = new Map<string, HostWrite>();
    for (const write of writes)
      await namingFailure(write.path, async () => {
        const real = await locate(write.path);
        if (sameEntry(await read(write.path).catch(unreadableIsOther), write.entry)) todo.delete(real);
        else todo.set(real, write);
      });
    if (todo.size === 0) return;
    const missing = new Map<string, Missing>();
    for (const { path, folder } of todo.values())
      for (const each of await namingFailure(path, () => missingAbove(path)))
        if (!missing.has(each)) missing.set(each, { path, own: folder ?? plainFolder });
    await remember(
      [...missing.keys()],
      [...todo.values()].map(({ path }) => path),
    );
    /** Folders of ours, each with a path below it. */
    const touched = new Map<string, string>();
    for (const folder of await makeFolders(missing)) touched.set(folder, writes[0]?.path ?? "");
    const temporaries = [...todo].map(([real, { path, entry }]) => ({
      real,
      path,
      temporary: temporaryOf(real),
      entry,
    }));
    try {
      await eachOf(temporaries, ({ path, temporary, entry }) =>
        namingFailure(path, () =>
          entry.kind === "link"
            ? linkTemporary(disk, temporary, entry.target)
            : createTemporary(disk, temporary, entry.contents, owners.areReal ? entry : undefined),
        ),
      );
      await owners.give(
        temporaries.flatMap(({ real, path, temporary, entry }) =>
          entry.kind === "link" || owners.areReal
            ? []
            : [{ at: temporary, as: real, path, kind: "file", own: entry } as const],
        ),
      );
      await eachOf(temporaries, async ({ path, temporary, entry }) => {
        if (entry.kind === "file") await namingFailure(path, () => disk.sync(temporary));
      });
      signal.throwIfAborted();
      for (const { real, path, temporary } of temporaries) {
        await namingFailure(path, () => disk.rename(temporary, real));
        touched.set(dirname(real), path);
      }
    } catch (error) {
      // What could not be cleared away now, the next process does.
      for (const { temporary } of temporaries) await disk.unlink(temporary).catch(() => undefined);
      throw error;
    } finally {
      await eachOf([...touched], ([folder, path]) => namingFailure(path, () => disk.sync(folder)));
    }
  }

  async function remember(folders: readonly string[], paths: readonly string[]): Promise<void> {
    const at = await recordPath();
    const record = await readJson(at, nothingMade);
    const all = new Set(folders);
    const tops = folders.filter((folder) => !all.has(dirname(folder)));
    await storeJson(disk, at, {
      v: 1,
      folders: [...new Set([...record.folders, ...folders])],
      written: [...tops, ...paths],
    } satisfies MadeRecord);
  }

  return {
    recover: () => (recovered = recover()),
    read: (path) => read(path).catch((error: unknown) => Promise.reject(asFailure(path, error))),
    write: (writes, signal) =>
      change(writes[0]?.path ?? "", signal, async () => {
        for (const { path } of writes) beWritable(path);
        await writePass(writes, signal);
      }),
    makeFolder: (path, own, signal) =>
      change(path, signal, async () => {
        beWritable(path);
        const before = await read(path);
        if (before?.kind === "folder" && sameEntry(before, { kind: "folder", ...own })) return;
        if (before === undefined) {
          const above = await missingAbove(path);
          await remember(above, [path]);
          const touched = await makeFolders(
            new Map([...above.map((folder) => [folder, { path, own: plainFolder }] as const), [path, { path, own }]]),
          );
          for (const folder of touched) await disk.sync(folder);
          return;
        }
        if (before.kind !== "folder")
          throw new McoError("MCO_HOST_COMMAND_FAILED", {
            path,
            problem: `a ${before.kind} is where the folder is to be`,
          });
        await giveFolder(path, before, own);
        await disk.sync(await locate(path));
      }),
    remove: (path, signal) =>
      change(path, signal, async () => {
        beWritable(path);
        const real = await locate(path);
        const removed = await unlinkBoth(disk, real);
        const at = await recordPath();
        const record = await readJson(at, nothingMade);
        const candidates: string[] = [];
        for (let folder = dirname(path); record.folders.includes(folder); folder = dirname(folder))
          candidates.push(folder);
        const folders = await withoutEmpty(record.folders, candidates);
        // Where its folder went away with it, that was flushed.
        const parent = dirname(real);
        if ((removed || !flushed.has(parent)) && (await statIfThere(parent)) !== undefined) await disk.sync(parent);
        flushed.add(parent);
        if (folders.length < record.folders.length)
          await storeJson(disk, at, { ...record, folders } satisfies MadeRecord);
      }),
    placeOf: async (folder) => dirname(await locate(posix.join(folder, "x"))),
    async madeFolder(path) {
      const { folders } = await readJson(await recordPath(), nothingMade);
      if (!folders.includes(path)) return undefined;
      return namesIn(await locate(path));
    },
    async freeBytes() {
      const free = await Promise.all(["/etc/.", "/var/."].map(async (folder) => fs.statfs(await locate(folder))));
      return leastOf(free.map(({ bavail, bsize }) => bavail * bsize));
    },
    async vendor(path) {
      if (!path.startsWith("/etc/")) return undefined;
      return read(posix.join("/usr", path)).catch((error: unknown) => Promise.reject(asFailure(path, error)));
    },
    watch: (paths, onChange) =>
      watchPaths(paths, onChange, {
        locate,
        exists: async (path) => (await statIfThere(await locate(path))) !== undefined,
        pause: (signal) => clock?.sleep(watchPauseMs, signal) ?? Promise.resolve(),
      }),
  };
}

/** What is at a path of ours. A file is read from the descriptor whose owner and mode are reported. */
export async function entryAt(real: string, owners: Owners, hold: DiskHold = asNamed): Promise<HostEntry | undefined> {
  const ownOf = (stat: Stats) =>
    owners.of(real, { ino: stat.ino, mode: stat.mode & 0o7777, uid: stat.uid, gid: stat.gid });
  const entry = await hold(real, async (at): Promise<HostEntry | undefined> => {
    const named = await statIfThere(at);
    if (named === undefined) return undefined;
    if (named.isSymbolicLink()) return { kind: "link", target: await fs.readlink(at) };
    if (named.isDirectory()) return { kind: "folder", ...(await ownOf(named)) };
    // Opening a device can do something already.
    if (!named.isFile()) throw new McoError("MCO_HOST_NO_FILE", { path: real });
    const { contents, stat } = await readRegular(at, { name: real });
    return { kind: "file", contents, ...(await ownOf(stat)) };
  }).catch(absentIsDone);
  return entry ?? undefined;
}

/** What is too large to be compared, or no file, is not what is to be there. */
function unreadableIsOther(error: unknown): undefined {
  if (!isUnreadable(error)) throw error;
}
