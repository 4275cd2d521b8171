import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { McoError } from "../api/errors.ts";
import { withoutEnd } from "../core/text/without-end.ts";
import { decompressionFailure, decompressor } from "./decompress.ts";
import { type Compression, type Descriptor, invalidImage } from "./manifest.ts";
import { readTar } from "./tar.ts";

type Layer = Descriptor & { readonly compression: Compression };

/** Bounds of one call: a file, all files, what its layers together may be when they are unpacked, and their entries. */
const limits = { fileBytes: 1024 * 1024, paths: 64, unpackedBytes: 32 * 1024 ** 3, entries: 1_000_000 } as const;

const whiteout = ".wh.";

/** The entry of a layer at a path: contents, no file (`hidden`), or a link to a place in the same layer. */
type Finding =
  | { readonly is: "file"; readonly contents: Uint8Array }
  | { readonly is: "hidden" }
  | { readonly is: "hardLink"; readonly target: string };

/**
 * Reads files from an image's layers, from the topmost down, and no layer below the last one needed. A path resolves as
 * in an overlay file system: a whiteout hides it, and so does a higher entry that is not a folder. Links are not
 * followed, except hard links, of which encapsulated ostree commits consist.
 *
 * @param open the compressed bytes of a layer.
 * @param how `presence`: files of any size, as empty contents.
 * @param most bytes that are unpacked, and entries that are looked at, in all.
 * @throws McoError `MCO_IMAGE_INVALID`, `MCO_IMAGE_DIGEST_MISMATCH`, or what `open` throws.
 */
export async function readImageFiles(
  layers: readonly Layer[],
  open: (layer: Layer, signal: AbortSignal) => AsyncIterable<Uint8Array>,
  paths: readonly string[],
  signal: AbortSignal,
  how: "contents" | "presence" = "contents",
  most: { readonly unpackedBytes: number; readonly entries: number } = limits,
): Promise<ReadonlyMap<string, Uint8Array>> {
  if (paths.length > limits.paths) throw new Error(`bug: ${paths.length} files are asked for at once`);
  const files = new Map<string, Uint8Array>();
  const wanted = new Set(paths.map((path) => path.replace(/^\/+/, "")));
  const bounded = boundedTo(most.unpackedBytes);
  const countEntry = entriesUpTo(most.entries);
  for (const layer of layers.toReversed()) {
    if (wanted.size === 0) break;
    const found = await lookIn(layer, open, wanted, signal, how, bounded, countEntry);
    const links = new Set(
      [...found.values()].flatMap((finding) => (finding.is === "hardLink" ? [finding.target] : [])),
    );
    const targets =
      links.size === 0
        ? new Map<string, Finding>()
        : await lookIn(layer, open, links, signal, how, bounded, countEntry);
    for (const [path, finding] of found) {
      wanted.delete(path);
      const file = finding.is === "hardLink" ? targets.get(finding.target) : finding;
      if (file?.is === "file") files.set(`/${path}`, file.contents);
    }
  }
  return files;
}

async function lookIn(
  layer: Layer,
  open: (layer: Layer, signal: AbortSignal) => AsyncIterable<Uint8Array>,
  wanted: ReadonlySet<string>,
  signal: AbortSignal,
  how: "contents" | "presence",
  bounded: ReturnType<typeof boundedTo>,
  countEntry: () => void,
): Promise<ReadonlyMap<string, Finding>> {
  const found = new Map<string, Finding>();
  const hash = sha256.create();
  const hashed = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      yield chunk;
    }
  };
  const look = async (chunks: AsyncIterable<Uint8Array>) => {
    for await (const entry of readTar(bounded(chunks))) {
      countEntry();
      const path = withoutEnd(entry.path.replace(/^(\.?\/)+/, ""), "/");
      const name = path.slice(path.lastIndexOf("/") + 1);
      const folder = path.slice(0, Math.max(0, path.lastIndexOf("/")));
      if (name.startsWith(whiteout)) {
        const hidden =
          name === ".wh..wh..opq" ? folder : `${folder === "" ? "" : `${folder}/`}${name.slice(whiteout.length)}`;
        hideBelow(hidden, name !== ".wh..wh..opq");
        continue;
      }
      if (entry.kind !== "folder") hideBelow(path, false);
      if (!wanted.has(path)) continue;
      if (entry.kind === "file")
        found.set(path, {
          is: "file",
          contents: how === "presence" ? new Uint8Array() : await contentsOf(entry.contents, entry.sizeBytes, path),
        });
      else if (how === "presence" && entry.kind === "link") found.set(path, { is: "file", contents: new Uint8Array() });
      else if (entry.kind === "hardLink")
        found.set(path, { is: "hardLink", target: entry.target.replace(/^(\.?\/)+/, "") });
      else found.set(path, { is: "hidden" });
    }
  };
  /** The layer's own entry at a path takes precedence over its whiteouts, in whatever order they come. */
  function hideBelow(path: string, itself: boolean): void {
    for (const one of wanted)
      if (!found.has(one) && ((itself && one === path) || one.startsWith(path === "" ? "" : `${path}/`)))
        found.set(one, { is: "hidden" });
  }
  const source = Readable.from(hashed(open(layer, signal)), { objectMode: false });
  try {
    if (layer.compression === "none") await pipeline(source, look, { signal });
    else await pipeline(source, decompressor(layer.compression), look, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw decompressionFailure(error, layer.digest) ?? error;
  }
  const digest = `sha256:${bytesToHex(hash.digest())}`;
  if (digest !== layer.digest)
    throw new McoError("MCO_IMAGE_DIGEST_MISMATCH", {
      digest: layer.digest,
      problem: "a layer has another digest",
      retryable: false,
    });
  return found;
}

/** Passes chunks on, of all layers together no more than this: one small layer may be there many times. */
function boundedTo(mostBytes: number): (chunks: AsyncIterable<Uint8Array>) => AsyncGenerator<Uint8Array> {
  let size = 0;
  return async function* (chunks) {
    for await (const chunk of chunks) {
      size += chunk.length;
      if (size > mostBytes)
        throw invalidImage("its layers are too large when they are unpacked", { limitBytes: mostBytes });
      yield chunk;
    }
  };
}

/** Refuses the entry after so many, of all layers together: each takes some time, and few bytes when it is compressed. */
function entriesUpTo(most: number): () => void {
  let entries = 0;
  return () => {
    entries += 1;
    if (entries > most) throw invalidImage("its layers have too many entries", { limit: most });
  };
}

async function contentsOf(chunks: AsyncIterable<Uint8Array>, sizeBytes: number, path: string): Promise<Uint8Array> {
  if (sizeBytes > limits.fileBytes)
    throw invalidImage(`/${path} of it is too large`, { sizeBytes, limitBytes: limits.fileBytes });
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(Uint8Array.from(chunk));
  return Buffer.concat(parts);
}
