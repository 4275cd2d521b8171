import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../ports/clock.ts";
import type { BlobFolder } from "../server/parts.ts";
import { orUndefined } from "../../ports/absent-file.ts";

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  await folder.sync().finally(() => folder.close());
}

/** `blobs/<hex>` and `uploads/<id>` below a folder that one process owns. */
export async function blobFolder(folder: string, clock: Clock): Promise<BlobFolder> {
  const [blobs, uploads] = [join(folder, "blobs"), join(folder, "uploads")];
  for (const path of [blobs, uploads]) await mkdir(path, { recursive: true, mode: 0o700 });
  const hexOf = (digest: string) => /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1] ?? "none";
  const blobAt = (digest: string) => join(blobs, hexOf(digest));
  const uploadAt = (id: string) => join(uploads, /^[0-9a-f-]{36}$/.exec(id)?.[0] ?? "none");

  return {
    sizeOf: async (digest) => (await orUndefined(stat(blobAt(digest))))?.size,
    read: (digest, from, to) => createReadStream(blobAt(digest), { start: from, end: to }),
    remove: (digest) => rm(blobAt(digest), { force: true }),
    async touch(digest) {
      const now = new Date(clock.now());
      await orUndefined(utimes(blobAt(digest), now, now));
    },
    async list() {
      const found = await Promise.all(
        (await readdir(blobs)).map(async (hex) => ({
          digest: `sha256:${hex}`,
          modifiedMs: (await orUndefined(stat(join(blobs, hex))))?.mtimeMs,
        })),
      );
      return found.flatMap(({ digest, modifiedMs }) => (modifiedMs === undefined ? [] : [{ digest, modifiedMs }]));
    },
    async begin(id) {
      await (await open(uploadAt(id), "wx", 0o600)).close();
    },
    uploaded: async (id) => (await orUndefined(stat(uploadAt(id))))?.size,
    async append(id, chunks, limitBytes) {
      const file = await open(uploadAt(id), "a");
      try {
        let { size } = await file.stat();
        for await (const chunk of chunks) {
          size += chunk.length;
          if (size > limitBytes) return "tooLarge";
          await file.appendFile(chunk);
        }
        return size;
      } finally {
        await file.close();
      }
    },
    async finish(id, digest) {
      const hash = createHash("sha256");
      const file = await open(uploadAt(id), "r+");
      try {
        for await (const chunk of file.createReadStream({ autoClose: false })) hash.update(chunk as Buffer);
        await file.sync();
      } finally {
        await file.close();
      }
      if (`sha256:${hash.digest("hex")}` !== digest) {
        await rm(uploadAt(id), { force: true });
        return false;
      }
      await rename(uploadAt(id), blobAt(digest));
      await syncFolder(blobs);
      return true;
    },
    abandon: (id) => rm(uploadAt(id), { force: true }),
    async abandonOlderThan(milliseconds) {
      for (const name of await readdir(uploads)) {
        const at = (await orUndefined(stat(join(uploads, name))))?.mtimeMs;
        if (at !== undefined && clock.now() - at > milliseconds) await rm(join(uploads, name), { force: true });
      }
    },
  };
}
