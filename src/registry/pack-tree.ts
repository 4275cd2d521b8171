import { gzipSync } from "fflate";
import { type Descriptor, mediaTypes } from "./manifest.ts";
import { digestOf } from "./registry-client.ts";
import { type PlainEntry, writeTar } from "./tar.ts";

/** A file, or a link. */
export type TreeEntry =
  | { readonly contents: string | Uint8Array; readonly mode?: number }
  | { readonly target: string };

/** The contents of a machine's tree by absolute path, with /usr/etc for the defaults of /etc. */
export type FileTree = Readonly<Record<string, TreeEntry>>;

export interface PackedBlob {
  readonly mediaType: string;
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** An image with one layer. */
export interface PackedImage {
  readonly manifest: PackedBlob;
  readonly config: PackedBlob;
  readonly layer: PackedBlob;
}

/**
 * Packs a tree as an OCI image: sorted, without times, compressed by code that is the same on every machine (a system's
 * zlib is not). So the same tree has the same digest everywhere. /usr/etc becomes /etc, so that builds on the image
 * find the usual layout; unpacking reverts it.
 */
export function packTree(
  tree: FileTree,
  architecture: string,
  labels: Readonly<Record<string, string>> = {},
): PackedImage {
  const archive = writeTar(entriesOf(tree));
  const layer = blobOf(mediaTypes.ociLayerGzip, gzipSync(archive, { level: 9, mtime: 0 }));
  const config = jsonOf(mediaTypes.ociConfig, {
    architecture,
    os: "linux",
    created: "1970-01-01T00:00:00Z",
    config: Object.keys(labels).length === 0 ? {} : { Labels: labels },
    rootfs: { type: "layers", diff_ids: [digestOf(archive)] },
    history: [{ created: "1970-01-01T00:00:00Z" }],
  });
  const manifest = jsonOf(mediaTypes.ociManifest, {
    schemaVersion: 2,
    mediaType: mediaTypes.ociManifest,
    config: described(config),
    layers: [described(layer)],
  });
  return { manifest, config, layer };
}

function entriesOf(tree: FileTree): readonly PlainEntry[] {
  const files = Object.entries(tree).map(([absolute, entry]): PlainEntry => {
    const path = absolute.replace(/^\/usr\/etc\//, "/etc/").slice(1);
    return "target" in entry
      ? { path, kind: "link", mode: 0o777, target: entry.target }
      : { path, kind: "file", mode: entry.mode ?? 0o644, contents: Buffer.from(entry.contents) };
  });
  const folders = new Set<string>();
  for (const { path } of files)
    for (let end = path.indexOf("/"); end > 0; end = path.indexOf("/", end + 1)) folders.add(path.slice(0, end));
  const entries: PlainEntry[] = [
    ...[...folders].map((path) => ({ path, kind: "folder" as const, mode: 0o755 })),
    ...files,
  ];
  return entries.sort((a, b) => (a.path < b.path ? -1 : 1));
}

const blobOf = (mediaType: string, bytes: Uint8Array): PackedBlob => ({ mediaType, digest: digestOf(bytes), bytes });
const jsonOf = (mediaType: string, value: object) => blobOf(mediaType, Buffer.from(JSON.stringify(value), "utf8"));
const described = ({
  mediaType,
  digest,
  bytes,
}: PackedBlob): Omit<Descriptor, "annotations" | "sizeBytes"> & { readonly size: number } => ({
  mediaType,
  digest,
  size: bytes.length,
});
