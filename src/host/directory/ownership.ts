import { lstat, readlink } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Ownership } from "../host.ts";
import type { Disk } from "./disk.ts";
import { readJson, storeJson } from "./durable-writes.ts";
import { namingFailure } from "./name-failure.ts";
import { own } from "../../api/schema/own.ts";
import { isAbsent } from "../../ports/absent-file.ts";

export interface Gift {
  /** The existing entry. */
  readonly at: string;
  /** The name that it gets later, where that is another one. */
  readonly as: string;
  /** The path of the machine that a failure names; its name here if absent. */
  readonly path?: string;
  readonly kind: "file" | "folder";
  readonly own: Ownership;
}

/** Whose files are, and with which permission bits, as the machine sees it. */
export interface Owners {
  of(path: string, stat: Ownership & { readonly ino: number }): Promise<Ownership>;
  /** They belong to the entries themselves, so that the disk makes these with them; else {@link give} records them. */
  readonly areReal: boolean;
  /**
   * Gives files and folders away, before they have their name. A crash in it leaves what has the names already as it
   * was.
   */
  give(gifts: readonly Gift[]): Promise<void>;
}

/** Those of the file system itself, which only root may change. */
export const realOwners = (disk: Disk): Owners => ({
  of: async (_path, { mode, uid, gid }) => ({ mode, uid, gid }),
  areReal: true,
  async give(gifts) {
    for (const { at, as, path, own } of gifts)
      await namingFailure(path ?? as, async () => {
        await disk.chown(at, own.uid, own.gid);
        await disk.chmod(at, own.mode);
      });
  },
});

interface OwnersRecord {
  readonly v: 1;
  /**
   * Path below the folder → who had what has, or is to have, this name. Known by inode, so that a rename decides which
   * of them counts.
   */
  readonly entries: Readonly<Record<string, readonly (Ownership & { readonly ino: number })[]>>;
}

/** Reads the record again only where there is another file: each process that writes it replaces it. */
function recordReader(recordPath: string): () => Promise<OwnersRecord> {
  let last: { readonly file: string; readonly record: OwnersRecord } | undefined;
  return async () => {
    const stat = await lstat(recordPath, { bigint: true }).catch((error: unknown) => {
      if (isAbsent(error)) return undefined;
      throw error;
    });
    // A record that is replaced after this is read as the next file, and then read again.
    const file = stat === undefined ? "" : [stat.dev, stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(" ");
    if (last?.file === file) return last.record;
    const record = await readJson<OwnersRecord>(recordPath, { v: 1, entries: {} });
    last = { file, record };
    return record;
  };
}

/**
 * Without root, files cannot change their owner: owner and mode are recorded beside the tree, so that merge and drift
 * mean the same. Unrecorded entries belong to root; our own permission to read and write stays whatever the mode says.
 */
export function recordedOwners(disk: Disk, folder: string, recordPath: string): Owners {
  /**
   * The name below the folder, whichever link of ours led to it: a file keeps its owner when the system that it belongs
   * to is booted.
   */
  const nameOf = async (path: string) => {
    const [first = "", ...rest] = relative(folder, path).split("/");
    const target = await readlink(join(folder, first)).catch(() => first);
    return join(target, ...rest);
  };
  const load = recordReader(recordPath);
  return {
    areReal: false,
    async of(path, { ino, mode }) {
      const known = own((await load()).entries, await nameOf(path))?.find((entry) => entry.ino === ino);
      return known === undefined ? { mode, uid: 0, gid: 0 } : { mode: known.mode, uid: known.uid, gid: known.gid };
    },
    async give(gifts) {
      if (gifts.length === 0) return;
      const entries = { ...(await load()).entries };
      for (const { at, as, path, kind, own: owner } of gifts) {
        await namingFailure(path ?? as, () =>
          disk.chmod(at, (owner.mode & 0o777) | (kind === "folder" ? 0o700 : 0o600)),
        );
        const { ino } = await lstat(at);
        const before = await lstat(as).catch(() => undefined);
        const name = await nameOf(as);
        entries[name] = [
          ...(own(entries, name)?.filter((entry) => entry.ino === before?.ino && entry.ino !== ino) ?? []),
          { ino, mode: owner.mode, uid: owner.uid, gid: owner.gid },
        ];
      }
      await storeJson(disk, recordPath, { v: 1, entries } satisfies OwnersRecord);
    },
  };
}
