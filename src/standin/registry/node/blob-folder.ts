import { createHash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../../ports/clock.ts";
import type { BlobFolder } from "../parts.ts";
import { orUndefined } from "../../../ports/absent-file.ts";

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  await folder.sync().finally(() => folder.close());
}

async function grown(
  file: FileHandle,
  chunks: AsyncIterable<Uint8Array>,
  limitBytes: number,
): Promise<number | "tooLarge"> {
  let { size } = await file.stat();
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > limitBytes) return "tooLarge";
    await file.appendFile(chunk);
  }
  return size;
}

async function digestIn(file: FileHandle): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false })) hash.update(chunk as Buffer);
  return `sha256:${hash.digest("hex")}`;
}

/** `blobs/<hex>` and `uploads/<id>` below a folder that one process owns. */
export async function blobFolder(folder: string, clock: Clock): Promise<BlobFolder> {
  const [blobs, uploads] = [join(folder, "blobs"), join(folder, "uploads")];
  for (const path of [blobs, uploads]) await mkdir(path, { recursive: true, mode: 0o700 });
  const hexOf = (digest: string) => /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1] ?? "none";
  const blobAt = (digest: string) => join(blobs, hexOf(digest));
  const uploadAt = (id: string) => join(uploads, /^[0-9a-f-]{36}$/.exec(id)?.[0] ?? "none");
  /** Uploads that a call has: a descriptor that outlived the comparison of the digest could change the blob. */
  const taken = new Set<string>();
  async function alone<T>(id: string, work: () => Promise<T>): Promise<T | "busy"> {
    if (taken.has(id)) return "busy";
    taken.add(id);
    try {
      return await work();
    } finally {
      taken.delete(id);
    }
  }
  async function withUpload<T>(id: string, flags: number, work: (file: FileHandle) => Promise<T>): Promise<T | "gone"> {
    const file = await orUndefined(open(uploadAt(id), flags | constants.O_APPEND | constants.O_NOFOLLOW));
    if (file === undefined) return "gone";
    return work(file).finally(() => file.close());
  }

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
    append: (id, chunks, limitBytes) =>
      alone(id, () => withUpload(id, constants.O_WRONLY, (file) => grown(file, chunks, limitBytes))),
    finish: (id, digest, last, limitBytes) =>
      alone(id, async () => {
        const hashed = await withUpload(id, constants.O_RDWR, async (file) => {
          const size = await grown(file, last, limitBytes);
          if (size === "tooLarge") return size;
          await file.sync();
          return { digest: await digestIn(file) };
        });
        if (typeof hashed === "string") return hashed;
        if (hashed.digest !== digest) {
          await rm(uploadAt(id), { force: true });
          return "other";
        }
        await rename(uploadAt(id), blobAt(digest));
        await syncFolder(blobs);
        return "done";
      }),
    abandon: (id) =>
      alone(id, async () => {
        await rm(uploadAt(id), { force: true });
        return "done" as const;
      }),
    async abandonOlderThan(milliseconds) {
      for (const name of await readdir(uploads)) {
        const at = (await orUndefined(stat(join(uploads, name))))?.mtimeMs;
        if (at !== undefined && clock.now() - at > milliseconds)
          await alone(name, () => rm(join(uploads, name), { force: true }));
      }
    },
  };
}
