/** Reads chosen files of an image: out of a folder with its tree, or out of an OCI layout, as buildah makes both. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { readLayout } from "../src/build-image/read-layout.ts";
import { readBelow } from "../src/ports/node/read-below.ts";
import type { ParentLayer } from "../src/registry/compose-image.ts";
import { readTar } from "../src/registry/tar.ts";

export interface ImageFiles {
  /** Digest of the image's manifest; absent for a tree, which has none. */
  readonly digest: string | undefined;
  /** Contents of the chosen files, by their paths in the image, without a slash at the beginning. */
  readonly files: ReadonlyMap<string, Buffer>;
}

/** Chooses files, by exact paths and by folders (with a slash at the end: what lies directly in them). */
export type Chosen = readonly string[];

const mostBytes = 64 * 1024 * 1024;
const whiteout = ".wh.";
const opaque = ".wh..wh..opq";

const isChosen = (path: string, chosen: Chosen) => chosen.includes(path) || chosen.includes(`${dirname(path)}/`);
const plain = (path: string) => path.replace(/^(\.?\/)+/, "").replace(/\/+$/, "");

/** @throws Error, or McoError `MCO_IMAGE_INVALID`, for what is no image, or has a link in the place of a chosen file. */
export async function imageFiles(place: string, chosen: Chosen): Promise<ImageFiles> {
  const at = resolve(place);
  if (!existsSync(join(at, "oci-layout"))) return { digest: undefined, files: await treeFiles(at, chosen) };
  const image = await readLayout(dirname(at), basename(at), readBelow);
  const files = new Map<string, Buffer>();
  for (const layer of image.layers) await applyLayer(files, layer, chosen);
  const index = JSON.parse(readFileSync(join(at, "index.json"), "utf8")) as {
    readonly manifests: readonly { readonly digest: string }[];
  };
  return { digest: index.manifests[0]?.digest, files };
}

async function treeFiles(root: string, chosen: Chosen): Promise<ReadonlyMap<string, Buffer>> {
  const paths = chosen.flatMap((path) => {
    if (!path.endsWith("/")) return existsSync(join(root, path)) ? [path] : [];
    const folder = join(root, path);
    return existsSync(folder) ? readdirSync(folder).map((name) => `${path}${name}`) : [];
  });
  const files = new Map<string, Buffer>();
  for (const path of paths) files.set(path, await buffer(readBelow(root, path, mostBytes)));
  return files;
}

/** What a layer takes away goes first: whiteouts are about the layers below. */
async function applyLayer(files: Map<string, Buffer>, layer: ParentLayer, chosen: Chosen): Promise<void> {
  const fresh = new Map<string, Buffer>();
  const gone: string[] = [];
  const emptied: string[] = [];
  await eachEntry(layer, async (entry) => {
    const path = plain(entry.path);
    const name = basename(path);
    if (name === opaque) emptied.push(dirname(path));
    else if (name.startsWith(whiteout)) gone.push(join(dirname(path), name.slice(whiteout.length)));
    else if (entry.kind !== "folder") {
      gone.push(path);
      if (!isChosen(path, chosen)) return;
      if (entry.kind !== "file") throw new Error(`${path} is a link in this image, and cannot be read`);
      if (entry.sizeBytes > mostBytes) throw new Error(`${path} has more than ${mostBytes} bytes`);
      fresh.set(path, await buffer(entry.contents));
    }
  });
  for (const path of files.keys())
    if (
      gone.some((one) => path === one || path.startsWith(`${one}/`)) ||
      emptied.some((one) => path.startsWith(`${one}/`))
    )
      files.delete(path);
  for (const [path, contents] of fresh) files.set(path, contents);
}

type Entry = ReturnType<typeof readTar> extends AsyncGenerator<infer E> ? E : never;

async function eachEntry(layer: ParentLayer, visit: (entry: Entry) => Promise<void>): Promise<void> {
  const { mediaType } = layer.descriptor;
  if (!/tar(\+gzip|\.gzip)?$/.test(mediaType)) throw new Error(`layers of the type ${mediaType} cannot be read`);
  const source = Readable.from(layer.open(new AbortController().signal), { objectMode: false });
  const read = async (chunks: AsyncIterable<Uint8Array>) => {
    for await (const entry of readTar(chunks)) await visit(entry);
  };
  if (mediaType.endsWith("gzip")) await pipeline(source, createGunzip(), read);
  else await pipeline(source, read);
}
