import { createGunzip } from "node:zlib";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { McoError } from "../api/errors.ts";
import { hostPaths } from "../api/names.ts";
import type { Files } from "../ports/files.ts";
import { parentFrom, type ParentImage, type ParentLayer } from "../registry/compose-image.ts";
import { mediaTypes, parseManifest } from "../registry/manifest.ts";
import { readTar } from "../registry/tar.ts";

/** A file that is too large to be held in memory. */
export type OpenFile = (path: string) => AsyncIterable<Uint8Array>;

const blobPath = (folder: string, digest: string) => `${folder}/blobs/${digest.replace(":", "/")}`;

/**
 * Reads an image out of an OCI layout (opencontainers/image-spec image-layout.md, main).
 *
 * @throws McoError `MCO_IMAGE_INVALID`
 */
export async function readLayout(
  folder: string,
  files: Pick<Files, "read" | "readText">,
  open: OpenFile,
): Promise<ParentImage> {
  const missing = (what: string) =>
    new McoError("MCO_IMAGE_INVALID", { problem: `what was built has no ${what}`, retryable: false });
  const index = parseManifest(Buffer.from((await files.readText(`${folder}/index.json`)) ?? ""));
  const digest = index.kind === "index" ? index.manifests.at(-1)?.digest : undefined;
  const bytes = digest === undefined ? undefined : await files.read(blobPath(folder, digest));
  if (bytes === undefined) throw missing("manifest");
  const manifest = parseManifest(bytes);
  const config = manifest.kind === "image" ? await files.read(blobPath(folder, manifest.config.digest)) : undefined;
  if (config === undefined) throw missing("configuration");
  return parentFrom(bytes, config, (layer) => ({ open: () => open(blobPath(folder, layer)) }));
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
  const own = new Map(base.layers.map((layer) => [layer.diffId, layer]));
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
      const known = own.get(layer.diffId);
      return known === undefined
        ? layer
        : {
            ...known,
            descriptor: {
              ...known.descriptor,
              mediaType: ociTypes[known.descriptor.mediaType] ?? known.descriptor.mediaType,
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
