import { createHash } from "node:crypto";
import * as fs from "node:fs/promises";
import { constants } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { McoError } from "../../api/errors.ts";
import type { BlobStore } from "../blob-store.ts";
import { decompressionFailure, decompressor } from "../decompress.ts";
import { invalidImage } from "../manifest.ts";
import type { PulledLayer } from "../pull-image.ts";
import { type TarEntry, readTar } from "../tar.ts";
import { orUndefined } from "../../ports/absent-file.ts";
import { eachAtOnce } from "../../ports/each-at-once.ts";

/** Limits for the contents of an image. */
export interface UnpackLimits {
  readonly entries: number;
  readonly totalBytes: number;
}

export const defaultUnpackLimits: UnpackLimits = { entries: 1_000_000, totalBytes: 32 * 1024 ** 3 };

/**
 * Paths that belong to the machine, whatever its image holds: /var, /run and the homes are links of its deployment, the
 * others are mounted. Source of the rule: ostree-ext src/tar/write.rs (main).
 */
const machinesOwn: readonly string[] = ["dev", "home", "proc", "root", "run", "sys", "tmp", "var"];

/** What a machine makes something in, or takes over as its own: as a link it would be done elsewhere. */
const systemFolders = ["usr", "usr/etc"] as const;

/** One more means to chown(2) that the owner stays. */
const mostOwner = 0xffff_fffe;
const mostPathShown = 200;

const whiteout = ".wh.";
const opaque = ".wh..wh..opq";

/** Files synced at once. */
const syncsAtOnce = 8;

/** Mode and owner of a file or folder. */
export interface LayerOwner {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/**
 * Unpacks the layers of an image over each other in a folder without other writers, and makes the result durable. /etc
 * becomes /usr/etc, the defaults that a machine's own /etc is merged with. Each layer means what it means to an overlay
 * file system: an entry hides what lower layers have at its path, and a path that leads through a link of a lower layer
 * does not follow it, but hides it. So no entry can reach outside of the folder. Devices are omitted. As root, files
 * get their owners; without root, this user owns everything and can read it.
 *
 * @returns the mode and owner of each file and folder that could not get its own: none as root.
 * @throws McoError `MCO_IMAGE_INVALID`, `MCO_IMAGE_DIGEST_MISMATCH`
 */
export async function unpackLayers(
  layers: readonly PulledLayer[],
  store: Pick<BlobStore, "open">,
  target: string,
  signal: AbortSignal,
  limits: UnpackLimits = defaultUnpackLimits,
): Promise<Readonly<Record<string, LayerOwner>>> {
  await fs.mkdir(target, { mode: 0o700 });
  const tree = treeWriter(target, limits);
  for (const layer of layers) {
    const hash = createHash("sha256");
    const counted = async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        tree.count(chunk.length);
        yield chunk;
      }
    };
    const apply = async (chunks: AsyncIterable<Uint8Array>) => {
      tree.beginLayer();
      for await (const entry of readTar(counted(chunks))) {
        signal.throwIfAborted();
        await tree.add(entry);
      }
    };
    const source = Readable.from(store.open(layer.digest), { objectMode: false });
    try {
      if (layer.compression === "none") await pipeline(source, apply, { signal });
      else await pipeline(source, decompressor(layer.compression), apply, { signal });
    } catch (error) {
      signal.throwIfAborted();
      if ((error as NodeJS.ErrnoException).code === "ENAMETOOLONG")
        throw invalidImage("a path of a layer is too long", { digest: layer.digest });
      throw decompressionFailure(error, layer.digest) ?? error;
    }
    const diffId = `sha256:${hash.digest("hex")}`;
    if (diffId !== layer.diffId)
      throw new McoError("MCO_IMAGE_DIGEST_MISMATCH", {
        digest: layer.digest,
        problem: "unpacked, a layer is another than its config says",
        diffId,
        expected: layer.diffId,
        retryable: false,
      });
  }
  return tree.finish(signal);
}

/** The folder that holds a path; empty for those at the top. */
const aboveOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")));

function treeWriter(target: string, limits: UnpackLimits) {
  const mayChown = process.geteuid?.() === 0;
  /** What files are to have that could not be given it. */
  const owed = new Map<string, LayerOwner>();
  /** Folders of the tree, each known to be one and no link, with what becomes of them in the end. */
  const folders = new Map<string, LayerOwner>();
  /** Paths of which something is known, by the folder that holds them. */
  const known = new Map<string, Set<string>>();
  /** Paths that the current layer has created: it hides only the paths of lower layers. */
  let made = new Set<string>();
  /** Folders in which the current layer has hidden all of lower ones. */
  let cleared = new Set<string>();
  let entries = 0;
  let bytes = 0;

  const at = (parts: readonly string[]) => join(target, ...parts);

  const lstat = (parts: readonly string[]) => orUndefined(fs.lstat(at(parts)));

  function beBelowLimit(count: number): void {
    if (count > limits.entries) throw invalidImage("its layers have too many entries", { limit: limits.entries });
  }

  function know(path: string): void {
    const above = aboveOf(path);
    const names = known.get(above);
    if (names === undefined) known.set(above, new Set([path]));
    else names.add(path);
  }

  /** Forgets a path and all below it. */
  function forget(path: string): void {
    known.get(aboveOf(path))?.delete(path);
    const gone = [path];
    for (let next = gone.pop(); next !== undefined; next = gone.pop()) {
      folders.delete(next);
      owed.delete(next);
      for (const name of known.get(next) ?? []) gone.push(name);
      known.delete(next);
    }
  }

  async function remove(parts: readonly string[]): Promise<void> {
    forget(parts.join("/"));
    await fs.rm(at(parts), { recursive: true, force: true });
  }

  /** Creates a new entry at a path: usually the path does not exist, and nothing has to be removed. */
  async function replacing<T>(parts: readonly string[], make: () => Promise<T>): Promise<T> {
    try {
      return await make();
    } catch (error) {
      // A link in its place is refused as one (ELOOP) or as a name that exists.
      if (!["EEXIST", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
    await remove(parts);
    return make();
  }

  /** Makes every folder on the way, in place of whatever else is there. */
  async function makeFolders(parts: readonly string[]): Promise<void> {
    const missing: string[] = [];
    // Where the layer has made a folder, it has made those above it.
    for (let path = parts.join("/"); path !== "" && !(made.has(path) && folders.has(path)); path = aboveOf(path))
      missing.unshift(path);
    for (const path of missing) {
      made.add(path);
      if (folders.has(path)) continue;
      // One entry may name many that it lies in.
      beBelowLimit(folders.size + 1);
      const here = path.split("/");
      await replacing(here, () => fs.mkdir(at(here), { mode: 0o700 }));
      folders.set(path, { mode: 0o755, uid: 0, gid: 0 });
      know(path);
    }
  }

  /** Whether every folder on the way is there and no link. */
  const leadsThere = (parts: readonly string[]) => parts.length < 2 || folders.has(parts.slice(0, -1).join("/"));

  /** Hides what lower layers have in a folder; once, since none of it comes back. */
  async function hideBelow(parts: readonly string[]): Promise<void> {
    const path = parts.join("/");
    if (cleared.has(path)) return;
    cleared.add(path);
    for (const name of await fs.readdir(at(parts))) {
      const child = [...parts, name];
      if (!made.has(child.join("/"))) await remove(child);
      else if (folders.has(child.join("/"))) await hideBelow(child);
    }
  }

  /**
   * Sets mode and owner of an open file or folder. Without root it sets the mode bits that this user needs, and records the
   * rest. No file is set-user-id or set-group-id: users of this machine may reach the tree, whose programs nothing runs here.
   */
  async function give(
    handle: fs.FileHandle,
    path: string,
    { mode, uid, gid }: LayerOwner,
    ours: number,
  ): Promise<void> {
    const isFile = (await handle.stat()).isFile();
    const possible = mayChown ? mode & (isFile ? 0o1777 : 0o7777) : (mode & 0o777) | ours;
    if (mayChown) await handle.chown(uid, gid);
    else if (uid !== 0 || gid !== 0 || mode !== possible) {
      owed.set(path, { mode, uid, gid });
      know(path);
    }
    await handle.chmod(possible); // After chown, which takes the set-user-id bit away.
  }

  async function writeFile(parts: readonly string[], entry: TarEntry): Promise<void> {
    const handle = await replacing(parts, () =>
      fs.open(at(parts), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600),
    );
    try {
      for await (const chunk of entry.contents)
        for (let written = 0; written < chunk.length;) written += (await handle.write(chunk, written)).bytesWritten;
      await give(handle, parts.join("/"), entry, 0o600);
    } finally {
      await handle.close();
    }
  }

  return {
    beginLayer() {
      made = new Set();
      cleared = new Set();
    },

    /** Bytes of archives, unpacked. */
    count(length: number) {
      bytes += length;
      if (bytes > limits.totalBytes)
        throw invalidImage("its layers are too large when unpacked", { limitBytes: limits.totalBytes });
    },

    async add(entry: TarEntry): Promise<void> {
      entries += 1;
      beBelowLimit(entries);
      if (entry.uid > mostOwner || entry.gid > mostOwner)
        throw invalidImage("an owner of a layer is none of Linux", { path: entry.path.slice(0, mostPathShown) });
      const parts = partsOf(entry.path);
      const name = parts.at(-1);
      if (name === undefined || entry.kind === "other" || machinesOwn.includes(parts[0] ?? "")) return;
      const parent = parts.slice(0, -1);
      if (name === opaque) {
        if (parent.length > 0) await makeFolders(parent);
        await hideBelow(parent);
        return;
      }
      if (name.startsWith(`${whiteout}${whiteout}`)) return; // Notes of an overlay file system to itself.
      if (name.startsWith(whiteout)) {
        const hidden = partsOf([...parent, name.slice(whiteout.length)].join("/"));
        if (hidden.length !== parts.length && hidden.length !== parts.length + 1)
          throw invalidImage("a layer hides an invalid path", { path: entry.path });
        if (!leadsThere(hidden)) return;
        if (!made.has(hidden.join("/"))) await remove(hidden);
        else if (folders.has(hidden.join("/"))) await hideBelow(hidden);
        return;
      }
      // `etc` itself has become `usr/etc`: only a link of that name remains, and the tree does not need it.
      if (entry.kind === "link" && parts.join("/") === "usr/etc") return;
      if (entry.kind === "folder") {
        await makeFolders(parts);
        folders.set(parts.join("/"), entry);
        return;
      }
      await makeFolders(parent);
      if (entry.kind === "hardLink") {
        const from = partsOf(entry.target);
        const there = leadsThere(from) ? await lstat(from) : undefined;
        if (there === undefined || there.isDirectory())
          throw invalidImage("a layer has a hard link to a path that is no file of the image", {
            path: entry.path,
            target: entry.target,
          });
        if (from.join("/") === parts.join("/")) return;
        await replacing(parts, () => fs.link(at(from), at(parts)));
        const own = owed.get(from.join("/"));
        if (own !== undefined) {
          owed.set(parts.join("/"), own);
          know(parts.join("/"));
        }
      } else if (entry.kind === "file") await writeFile(parts, entry);
      else {
        if (entry.target === "") throw invalidImage("a layer has a link to nowhere", { path: entry.path });
        await replacing(parts, () => fs.symlink(entry.target, at(parts)));
        if (mayChown) await fs.lchown(at(parts), entry.uid, entry.gid);
      }
      made.add(parts.join("/"));
    },

    /** Gives folders their owners and modes, deepest first, and makes everything durable. */
    async finish(signal: AbortSignal): Promise<Readonly<Record<string, LayerOwner>>> {
      for (const path of systemFolders)
        if ((await lstat(path.split("/")))?.isDirectory() === false)
          throw invalidImage(`its /${path} is no folder`, { path });
      for (const folder of [...folders.keys(), ""]) await syncFiles(join(target, folder), signal);
      for (const [folder, own] of [...folders].toSorted(([a], [b]) => (a < b ? 1 : -1))) {
        const handle = await fs.open(
          join(target, folder),
          constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW,
        );
        try {
          await give(handle, folder, own, 0o700);
          await handle.sync();
        } finally {
          await handle.close();
        }
      }
      await fs.chmod(target, 0o755);
      return Object.fromEntries(owed);
    },
  };
}

/**
 * The path of an entry as the parts of a path below the tree. @throws McoError `MCO_IMAGE_INVALID` when it leads out.
 */
function partsOf(path: string): readonly string[] {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw invalidImage("a layer has a path that leads out of the image", { path });
  return parts[0] === "etc" ? ["usr", ...parts] : parts;
}

async function syncFiles(folder: string, signal: AbortSignal): Promise<void> {
  const files = (await fs.readdir(folder, { withFileTypes: true })).filter((entry) => entry.isFile());
  await eachAtOnce(files, syncsAtOnce, async ({ name }) => {
    signal.throwIfAborted();
    const handle = await fs.open(join(folder, name), constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  });
}
