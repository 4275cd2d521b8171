import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { createGunzip } from "node:zlib";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { hostPaths } from "../api/names.ts";
import { parentFrom, type ParentImage, type ParentLayer } from "../registry/compose-image.ts";
import {
  type Descriptor,
  imageLimits,
  invalidImage,
  layersOf,
  mediaTypes,
  parseManifest,
} from "../registry/manifest.ts";
import { readTar } from "../registry/tar.ts";
import { own } from "../api/schema/own.ts";

/**
 * Contents of a regular file below a folder: no link is followed on the way from the folder to the file.
 *
 * @throws McoError `MCO_IMAGE_INVALID` where there is no such file, or one of more bytes.
 */
export type ReadBelow = (folder: string, path: string, mostBytes: number) => AsyncIterable<Uint8Array>;

const indexBytes = 1024 * 1024;

/**
 * Reads an image out of an OCI layout (opencontainers/image-spec image-layout.md, main). Steps may have written the
 * layout: nothing but its blobs is read, each has the size and digest that it is named with, and sizes are bounded.
 *
 * @throws McoError `MCO_IMAGE_INVALID`
 */
export async function readLayout(folder: string, layout: string, readBelow: ReadBelow): Promise<ParentImage> {
  const index = parseManifest(await joined(readBelow(folder, `${layout}/index.json`, indexBytes)));
  const [only, ...more] = index.kind === "index" ? index.manifests : [];
  if (only === undefined || more.length > 0) throw invalidImage("the build's output is not one image");
  const blob = (descriptor: BlobDescriptor) => verifiedBlob(folder, layout, descriptor, readBelow);
  const bytes = await joined(blob(bounded(only, imageLimits.manifestBytes)));
  const manifest = parseManifest(bytes);
  if (manifest.kind !== "image") throw invalidImage("the build's output has no manifest");
  const layers = new Map(layersOf(manifest).map((layer) => [layer.digest, layer]));
  const config = await joined(blob(bounded(manifest.config, imageLimits.configBytes)));
  return parentFrom(bytes, config, (digest) => {
    const layer = layers.get(digest);
    if (layer === undefined) throw new Error("bug: a layer that is not in its manifest");
    return { open: () => blob(layer) };
  });
}

type BlobDescriptor = Pick<Descriptor, "digest" | "sizeBytes">;

function bounded(descriptor: BlobDescriptor, mostBytes: number): BlobDescriptor {
  if (descriptor.sizeBytes > mostBytes)
    throw invalidImage("a part of the build's output is too large", {
      sizeBytes: descriptor.sizeBytes,
      limitBytes: mostBytes,
    });
  return descriptor;
}

/** Reads a blob, and throws at its end, or as soon as it is too long, where it is not what it is named. */
async function* verifiedBlob(
  folder: string,
  layout: string,
  { digest, sizeBytes }: BlobDescriptor,
  readBelow: ReadBelow,
): AsyncGenerator<Uint8Array> {
  const [, hex] = /^sha256:([0-9a-f]{64})$/.exec(digest) ?? [];
  if (hex === undefined) throw invalidImage("a part of the build's output has no SHA-256 digest");
  const hash = sha256.create();
  let seen = 0;
  for await (const chunk of readBelow(folder, `${layout}/blobs/sha256/${hex}`, sizeBytes)) {
    hash.update(chunk);
    seen += chunk.length;
    yield chunk;
  }
  if (seen !== sizeBytes || bytesToHex(hash.digest()) !== hex)
    throw invalidImage("a part of the build's output does not match its digest and size", { digest });
}

async function joined(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

/** Names of layers in the form of manifest that buildah writes. */
const ociTypes: Readonly<Record<string, string>> = {
  "application/vnd.docker.image.rootfs.diff.tar": "application/vnd.oci.image.layer.v1.tar",
  "application/vnd.docker.image.rootfs.diff.tar.gzip": mediaTypes.ociLayerGzip,
  "application/vnd.docker.image.rootfs.diff.tar.zstd": "application/vnd.oci.image.layer.v1.tar+zstd",
};

/** Labels and annotations by which a builder signs its work, and those that reveal this machine's store. */
const signature = "io.buildah.version";

type Json = Readonly<Record<string, unknown>>;
const objectIn = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};

/**
 * The built image as if it had been built directly on the base in its registry: the base's layers are the registry's
 * own, byte for byte, since a builder packs them again; and nothing reveals the builder.
 */
export function onBase(
  built: ParentImage,
  base: ParentImage,
  baseName: { readonly repository: string; readonly digest: string },
): ParentImage {
  const ofBase = new Map(base.layers.map((layer) => [layer.diffId, layer]));
  const { [signature]: _, ...labels } = objectIn(objectIn(built.config["config"])["Labels"]);
  const history = Array.isArray(built.config["history"]) ? (built.config["history"] as readonly Json[]) : [];
  return {
    ...built,
    annotations: {
      "org.opencontainers.image.base.name": baseName.repository,
      "org.opencontainers.image.base.digest": baseName.digest,
    },
    config: {
      ...built.config,
      config: { ...objectIn(built.config["config"]), Labels: labels },
      history: history.map(({ comment: _comment, ...entry }) => entry),
    },
    layers: built.layers.map((layer) => {
      const known = ofBase.get(layer.diffId);
      return known === undefined
        ? layer
        : {
            ...known,
            descriptor: {
              ...known.descriptor,
              mediaType: own(ociTypes, known.descriptor.mediaType) ?? known.descriptor.mediaType,
            },
          };
    }),
  };
}

/**
 * Replaces the layer that buildah made when it unpacked the configuration for custom steps by the configuration's own
 * layer: the same files, and the same bytes on every machine.
 *
 * @param diffIds layers of the base, which are not read.
 */
export async function withOwnLayer(
  built: ParentImage,
  layer: { readonly bytes: Uint8Array; readonly diffId: string; readonly digest: string },
  diffIds: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<ParentImage> {
  const layers: ParentLayer[] = [...built.layers];
  for (const [index, candidate] of built.layers.entries()) {
    if (diffIds.has(candidate.diffId) || !(await holds(candidate, hostPaths.payload.slice(1), signal))) continue;
    layers[index] = {
      descriptor: { mediaType: mediaTypes.ociLayerGzip, digest: layer.digest, size: layer.bytes.length },
      diffId: layer.diffId,
      async *open() {
        yield layer.bytes;
      },
    };
    const rootfs = { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) };
    return { ...built, config: { ...built.config, rootfs }, layers };
  }
  return built;
}

async function holds(layer: ParentLayer, path: string, signal: AbortSignal): Promise<boolean> {
  let found = false;
  const look = async (chunks: AsyncIterable<Uint8Array>) => {
    for await (const entry of readTar(chunks)) found ||= entry.path.replace(/^(\.?\/)+/, "") === path;
  };
  const source = Readable.from(layer.open(signal), { objectMode: false });
  if (layer.descriptor.mediaType.endsWith("gzip")) await pipeline(source, createGunzip(), look, { signal });
  else await pipeline(source, look, { signal });
  return found;
}
