import { type Output, emptyOutput, inflate } from "./inflate.ts";

/** The result of {@link gunzip}, and what it took, whatever it led to: bytes that were written, and the input in such bytes. */
export type Gunzipped = (
  | { readonly verdict: "read"; readonly bytes: Uint8Array }
  | { readonly verdict: "broken" | "tooLarge" }
) & { readonly written: number; readonly read: number };

/** What a byte that is read costs at most, in bytes that are written. */
const inputWeight = 8;

const trailerBytes = 8;

/**
 * Reads one member of gzip or several, as Go's `compress/gzip` does: each with its checksum and length, nothing between them
 * and nothing behind the last. Time is in proportion to `written` and `read`, and memory to `maxBytes` at most.
 */
export function gunzip(bytes: Uint8Array, maxBytes: number): Gunzipped {
  const out = emptyOutput(maxBytes);
  const read = inputWeight * bytes.length;
  let at = 0;
  do {
    const next = readMember(bytes, at, out);
    if (next === "broken") return { verdict: next, written: out.length, read };
    if (next === "tooLarge") return { verdict: next, written: maxBytes, read };
    at = next;
  } while (at < bytes.length);
  return { verdict: "read", bytes: out.bytes.slice(0, out.length), written: out.length, read };
}

/** Appends the bytes of the member that begins at `start`, and returns where it ends. */
function readMember(bytes: Uint8Array, start: number, out: Output): number | "broken" | "tooLarge" {
  const header = headerBytes(bytes, start);
  if (header === undefined) return "broken";
  const from = out.length;
  const stream = inflate(bytes, start + header, out);
  if (stream.verdict !== "inflated") return stream.verdict;
  const end = stream.end + trailerBytes;
  if (end > bytes.length) return "broken";
  const isWhole =
    u32(bytes, stream.end) === crc32(out.bytes.subarray(from, out.length)) &&
    u32(bytes, stream.end + 4) === out.length - from;
  return isWhole ? end : "broken";
}

const u16 = (bytes: Uint8Array, at: number): number => (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
const u32 = (bytes: Uint8Array, at: number): number => (u16(bytes, at) | (u16(bytes, at + 2) << 16)) >>> 0;

/** Bytes of a name or a comment in the header of a member, with the NUL behind it. */
const mostTextBytes = 512;

/** The length of a member's header, if Go reads it: golang/go src/compress/gzip/gunzip.go (master). */
function headerBytes(bytes: Uint8Array, start: number): number | undefined {
  if (u16(bytes, start) !== 0x8b1f || bytes[start + 2] !== 8) return undefined;
  const flags = bytes[start + 3] ?? 0;
  let at = start + 10;
  if ((flags & 4) !== 0) at += 2 + u16(bytes, at);
  for (const bit of [8, 16]) {
    if ((flags & bit) === 0) continue;
    const length = bytes.subarray(at, at + mostTextBytes).indexOf(0);
    if (length < 0) return undefined;
    at += length + 1;
  }
  if ((flags & 2) !== 0) {
    if (u16(bytes, at) !== (crc32(bytes.subarray(start, at)) & 0xffff)) return undefined;
    at += 2;
  }
  return at > bytes.length ? undefined : at - start;
}

/** The checksums of a byte, of a byte with one behind it that is 0, and so on: one table of 256 behind the other. */
const crcTables = (() => {
  const tables = new Uint32Array(4 * 256);
  for (let n = 0; n < 256; n++) {
    let c = n;
    for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
    tables[n] = c;
  }
  for (let n = 256; n < tables.length; n++) {
    const before = tables[n - 256] ?? 0;
    tables[n] = (tables[before & 255] ?? 0) ^ (before >>> 8);
  }
  return tables;
})();

/** The checksum of gzip, taken of four bytes at once. */
function crc32(bytes: Uint8Array): number {
  const ofTable = (table: number, byte: number) => crcTables[table * 256 + (byte & 255)] ?? 0;
  let crc = -1;
  let at = 0;
  for (; at + 4 <= bytes.length; at += 4) {
    crc ^= u16(bytes, at) | (u16(bytes, at + 2) << 16);
    crc = ofTable(3, crc) ^ ofTable(2, crc >>> 8) ^ ofTable(1, crc >>> 16) ^ ofTable(0, crc >>> 24);
  }
  for (; at < bytes.length; at++) crc = ofTable(0, crc ^ (bytes[at] ?? 0)) ^ (crc >>> 8);
  return ~crc >>> 0;
}
