import { gzipSync } from "fflate";
import type { LayerEntry } from "../core/config/image-content.ts";
import { digestOf } from "./registry-client.ts";
import { type PlainEntry, writeTar } from "./tar.ts";

export interface PackedLayer {
  /** tar, compressed by gzip. */
  readonly bytes: Uint8Array;
  /** Of the tar archive. */
  readonly diffId: string;
  /** Of the compressed bytes. */
  readonly digest: string;
}

/**
 * Packs entries as a layer: sorted, owners by number, all of one age, compressed by code that is the same on every
 * machine. So the same entries give the same digest everywhere, in whatever order they come.
 *
 * @param createdSeconds age of every entry, in seconds since the epoch.
 */
export function packLayer(entries: readonly LayerEntry[], createdSeconds: number): PackedLayer {
  const plain = entries.map((entry): PlainEntry => ({
    mode: linkMode,
    ...entry,
    path: entry.path.replace(/^\/+/, ""),
  }));
  const archive = writeTar(plain.sort(byPath), Math.max(0, Math.floor(createdSeconds)));
  const bytes = gzipSync(archive, { level: 9, mtime: 0 });
  return { bytes, diffId: digestOf(archive), digest: digestOf(bytes) };
}

/** Links have no mode. */
const linkMode = 0o777;

/** By bytes, so that a folder precedes its contents. */
const byPath = (a: PlainEntry, b: PlainEntry): number =>
  Buffer.compare(Buffer.from(a.path, "utf8"), Buffer.from(b.path, "utf8"));
