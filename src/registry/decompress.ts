import type { Transform } from "node:stream";
import { constants, createGunzip, createZstdDecompress } from "node:zlib";
import { McoError } from "../api/errors.ts";
import { type Compression, invalidImage } from "./manifest.ts";

/**
 * Largest window of zstd, as a power of two: what container engines write at their highest level of compression
 * (klauspost/compress zstd/encoder_options.go, v1.18), and a quarter of what a decoder takes by itself. All of it is held
 * for as long as a layer is read.
 */
const zstdWindowLog = 25;

/** What decompresses a layer. */
export const decompressor = (compression: Exclude<Compression, "none">): Transform =>
  compression === "gzip"
    ? createGunzip()
    : createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: zstdWindowLog } });

/** A failure of {@link decompressor} as one of the image; `undefined` for another failure. */
export function decompressionFailure(error: unknown, digest: string): McoError | undefined {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (error instanceof McoError || !/^(Z_|ZSTD_|ERR_ZSTD|ERR_ZLIB|ERR_BUFFER_TOO_LARGE)/.test(code)) return undefined;
  return code === "ZSTD_error_frameParameter_windowTooLarge"
    ? invalidImage("a layer takes too much memory to decompress", { digest, limitBytes: 2 ** zstdWindowLog })
    : invalidImage("a layer is not compressed as its manifest says", { digest, reason: code });
}
