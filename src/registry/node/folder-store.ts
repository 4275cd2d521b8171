import { createHash } from "node:crypto";
import { type FileHandle, constants, mkdir, open, readFile, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { McoError } from "../../api/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { Random } from "../../ports/random.ts";
import type { BlobStore, Incoming, WantedBlob } from "../blob-store.ts";
import { isRunning, processWord } from "./process-identity.ts";
import { orUndefined } from "../../ports/absent-file.ts";

/**
 * How often a blob that another process fetches is checked, and how long it may make no progress before we fetch it
 * ourselves.
 */
const lookMs = 250;
const stillMs = 10_000;

const hexOf = (digest: string) => {
  const hex = /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1];
  if (hex === undefined) throw new Error(`bug: ${digest.slice(0, 80)} is no sha256 digest`);
  return hex;
};

/**
 * A store in a folder: `blobs/<hex>`, and `partial/<hex>~<owner>` for incomplete blobs. The owner is a process, or the
 * word `free`: a partial blob without a live owner is taken over by renaming it, which only one process can do. So
 * nothing has to be cleaned up after a killed process, and no lock is left behind.
 */
export function folderStore(
  folder: string,
  { files, clock, random }: { readonly files: Files; readonly clock: Clock; readonly random: Random },
): BlobStore {
  const blobs = join(folder, "blobs");
  const partial = join(folder, "partial");
  const pathOf = (digest: string) => join(blobs, hexOf(digest));
  // Two stores of one process are as strange to each other as those of two.
  const instance = random.uuid();
  const ownerOf = async () => `${await processWord()}-${instance}`;
  /** Blobs that this store itself is fetching. */
  const underWay = new Map<string, Promise<void>>();

  const mismatch = (digest: string, resumed: boolean, problem: string) =>
    new McoError("MCO_IMAGE_DIGEST_MISMATCH", { digest, problem, resumed });

  async function has(digest: string): Promise<boolean> {
    const path = pathOf(digest);
    if ((await orUndefined(stat(path))) === undefined) return false;
    const now = new Date(clock.now());
    await orUndefined(utimes(path, now, now)); // For `keep`.
    return true;
  }

  async function takeOver(hex: string, own: string): Promise<void> {
    const candidates: { readonly path: string; readonly size: number }[] = [];
    for (const name of await readdir(partial)) {
      if (!name.startsWith(`${hex}~`)) continue;
      const owner = name.slice(hex.length + 1);
      if (!owner.startsWith("free") && (await isRunning(owner))) continue;
      const size = (await orUndefined(stat(join(partial, name))))?.size;
      if (size !== undefined) candidates.push({ path: join(partial, name), size });
    }
    candidates.sort((a, b) => b.size - a.size);
    for (const { path } of candidates) {
      if ((await orUndefined(stat(own))) === undefined) await orUndefined(rename(path, own));
      else await rm(path, { force: true });
    }
  }

  /** Bytes of this blob that another living process has so far; `undefined` when none fetches it. */
  async function elsewhere(hex: string, identity: string): Promise<number | undefined> {
    for (const name of await readdir(partial)) {
      const owner = name.slice(hex.length + 1);
      if (name.startsWith(`${hex}~`) && owner !== identity && !owner.startsWith("free") && (await isRunning(owner)))
        return (await orUndefined(stat(join(partial, name))))?.size;
    }
    return undefined;
  }

  /** Waits as long as another process gets on with it. */
  async function awaitOthers(digest: string, identity: string, signal: AbortSignal): Promise<boolean> {
    let size = -1;
    let since = clock.monotonic();
    for (;;) {
      if (await has(digest)) return true;
      const now = await elsewhere(hexOf(digest), identity);
      if (now === undefined) return has(digest);
      if (now !== size) {
        size = now;
        since = clock.monotonic();
      }
      if (clock.monotonic() - since >= stillMs) return false;
      await clock.sleep(lookMs, signal);
    }
  }

  async function receiveAlone(
    { digest, sizeBytes }: WantedBlob,
    fetch: (from: number) => Promise<Incoming>,
    signal: AbortSignal,
  ): Promise<void> {
    if (await has(digest)) return;
    await mkdir(partial, { recursive: true, mode: 0o700 });
    await mkdir(blobs, { recursive: true, mode: 0o700 });
    const identity = await ownerOf();
    if (await awaitOthers(digest, identity, signal)) return;
    const own = join(partial, `${hexOf(digest)}~${identity}`);
    await takeOver(hexOf(digest), own);
    const handle = await open(own, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    let whole = false;
    try {
      whole = await fill(handle, { digest, sizeBytes }, fetch, signal);
    } finally {
      await handle.close();
      if (!whole) await orUndefined(rename(own, join(partial, `${hexOf(digest)}~free-${random.uuid()}`)));
    }
    await rename(own, pathOf(digest));
    await syncFolder(blobs);
  }

  async function fill(
    handle: FileHandle,
    { digest, sizeBytes }: WantedBlob,
    fetch: (from: number) => Promise<Incoming>,
    signal: AbortSignal,
  ): Promise<boolean> {
    let hash = createHash("sha256");
    let position = (await handle.stat()).size;
    if (position > sizeBytes) await handle.truncate((position = 0));
    const reread = async (length: number) => {
      hash = createHash("sha256");
      if (length > 0)
        for await (const chunk of handle.createReadStream({ start: 0, end: length - 1, autoClose: false }))
          hash.update(chunk as Buffer);
    };
    const wrong = async (problem: string, resumed: boolean) => {
      await handle.truncate(0);
      throw mismatch(digest, resumed, problem);
    };
    await reread(position);
    let resumed = position > 0;
    if (position < sizeBytes || sizeBytes === 0) {
      const incoming = await fetch(position);
      signal.throwIfAborted();
      if (incoming.from !== position) await reread((position = incoming.from));
      resumed = incoming.from > 0;
      for await (const chunk of incoming.chunks) {
        signal.throwIfAborted();
        if (position + chunk.length > sizeBytes) return wrong("it is longer than its manifest says", resumed);
        await writeAll(handle, chunk, position);
        hash.update(chunk);
        position += chunk.length;
      }
      if (position < sizeBytes)
        throw new McoError("MCO_IMAGE_UNREACHABLE", {
          digest,
          problem: "a blob broke off",
          arrivedBytes: position,
          sizeBytes,
          retryable: true,
        });
    }
    await handle.truncate(sizeBytes);
    if (`sha256:${hash.digest("hex")}` !== digest) return wrong("its bytes are others", resumed);
    await handle.sync();
    return true;
  }

  return {
    has,
    async read(digest) {
      return (await has(digest)) ? orUndefined<Uint8Array>(readFile(pathOf(digest))) : undefined;
    },
    async *open(digest) {
      const handle = await open(pathOf(digest), constants.O_RDONLY | constants.O_NOFOLLOW);
      for await (const chunk of handle.createReadStream({ highWaterMark: 256 * 1024 })) yield chunk as Buffer;
    },
    async put(digest, bytes) {
      if (`sha256:${createHash("sha256").update(bytes).digest("hex")}` !== digest)
        throw mismatch(digest, false, "its bytes are others");
      if (!(await has(digest))) await files.write(pathOf(digest), bytes, { mode: 0o600 });
    },
    async receive(blob, fetch, signal) {
      // How the other one ends is heard by its own caller.
      for (let other = underWay.get(blob.digest); other !== undefined; other = underWay.get(blob.digest))
        await endOf(other, signal);
      const work = receiveAlone(blob, fetch, signal);
      underWay.set(blob.digest, work);
      try {
        await work;
      } finally {
        underWay.delete(blob.digest);
      }
    },
    async keep(digests, graceMs) {
      const kept = new Set([...digests].map(hexOf));
      for (const place of [blobs, partial]) {
        for (const name of (await orUndefined(readdir(place))) ?? []) {
          const [hex = "", owner] = name.split("~");
          if (kept.has(hex) || (owner !== undefined && !owner.startsWith("free") && (await isRunning(owner)))) continue;
          const path = join(place, name);
          const changed = (await orUndefined(stat(path)))?.mtimeMs;
          if (changed !== undefined && clock.now() - changed >= graceMs) await rm(path, { force: true });
        }
      }
    },
  };
}

/** Resolves when the work has ended, however; rejects when the signal aborts before. */
function endOf(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    const done = () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    };
    work.then(done, done);
  });
}

async function writeAll(handle: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < chunk.length;)
    written += (await handle.write(chunk, written, chunk.length - written, position + written)).bytesWritten;
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
