import { buffer } from "node:stream/consumers";
import { constants, createZstdCompress, gzipSync, zstdCompressSync } from "node:zlib";

/** An entry of an archive as a test wants it, however hostile. */
export interface BuiltEntry {
  readonly path: string;
  /** `0` file (default), `1` hard link, `2` link, `3` device, `5` folder. */
  readonly type?: string;
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly target?: string;
  readonly contents?: string;
}

function block(entry: BuiltEntry, size: number): Buffer {
  const header = Buffer.alloc(512);
  const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, "0")}\0`;
  header.write(entry.path, 0, 100);
  header.write(octal(entry.mode ?? (entry.type === "5" ? 0o755 : 0o644), 8), 100);
  header.write(octal(entry.uid ?? 0, 8), 108);
  header.write(octal(entry.gid ?? 0, 8), 116);
  header.write(octal(size, 12), 124);
  header.write(octal(0, 12), 136);
  header.write(" ".repeat(8), 148);
  header.write(entry.type ?? "0", 156);
  header.write(entry.target ?? "", 157, 100);
  header.write("ustar\x0000", 257);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, "0")}\0 `,
    148,
  );
  return header;
}

/** A tar archive of these entries, in this order. */
export function tarOf(...entries: readonly BuiltEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const contents = Buffer.from(entry.contents ?? "");
    return [block(entry, contents.length), contents, Buffer.alloc((512 - (contents.length % 512)) % 512)];
  });
  return Buffer.concat([...parts, Buffer.alloc(1024)]);
}

export const gzippedLayer = (...entries: readonly BuiltEntry[]) => {
  const plain = tarOf(...entries);
  return { bytes: gzipSync(plain), plain };
};

export const zstdLayer = (...entries: readonly BuiltEntry[]) => {
  const plain = tarOf(...entries);
  return { bytes: zstdCompressSync(plain), plain, mediaType: "application/vnd.oci.image.layer.v1.tar+zstd" };
};

const paxRecord = (key: string, value: string): string => {
  const rest = ` ${key}=${value}\n`;
  const digits = String(rest.length + String(rest.length).length).length;
  return `${rest.length + digits}${rest}`;
};

/** The extended header that gives the next entry this value. */
export const paxHeader = (key: string, value: string): BuiltEntry => ({
  path: "pax",
  type: "x",
  contents: paxRecord(key, value),
});

/** A layer whose decompression takes a window of 2 to the power of `windowLog`, whatever its size. */
export async function windowedLayer(windowLog: number, ...entries: readonly BuiltEntry[]) {
  const plain = tarOf(...entries);
  const compressor = createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: windowLog } });
  // Its size is not known when it begins, so that its header says how large the window is.
  compressor.write(plain.subarray(0, 512), () => compressor.end(plain.subarray(512)));
  return { bytes: await buffer(compressor), plain, mediaType: "application/vnd.oci.image.layer.v1.tar+zstd" };
}
