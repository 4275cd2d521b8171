import { invalidImage } from "./manifest.ts";

export interface TarEntry {
  /** As it stands in the archive. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link" | "hardLink" | "other";
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly sizeBytes: number;
  /** Of links. */
  readonly target: string;
  /** Of files; unread contents are skipped. */
  readonly contents: AsyncIterable<Uint8Array>;
}

const blockBytes = 512;
/** A long name, or the headers of one entry. */
const maxExtraBytes = 1024 * 1024;
const maxPathLength = 4096;
/** Headers before an entry that belong to it: other writers make four at most. */
const maxHeaders = 16;

const kinds: Readonly<Record<string, TarEntry["kind"]>> = {
  "0": "file",
  "\0": "file",
  "7": "file",
  "1": "hardLink",
  "2": "link",
  "3": "other",
  "4": "other",
  "5": "folder",
  "6": "other",
};

const broken = (problem: string) => invalidImage(`a layer is no proper tar archive: ${problem}`);

/** Gives bytes of a stream in the portions that are asked for. */
class Portions {
  private readonly source: AsyncIterator<Uint8Array>;
  private rest: Uint8Array = new Uint8Array();

  constructor(source: AsyncIterable<Uint8Array>) {
    this.source = source[Symbol.asyncIterator]();
  }

  /** Up to `limit` bytes as they come; `undefined` at the end. */
  async some(limit: number): Promise<Uint8Array | undefined> {
    while (this.rest.length === 0) {
      const next = await this.source.next();
      if (next.done === true) return undefined;
      this.rest = next.value;
    }
    const part = this.rest.subarray(0, limit);
    this.rest = this.rest.subarray(part.length);
    return part;
  }

  /** Exactly `length` bytes; `undefined` when the stream ends before the first. */
  async exactly(length: number): Promise<Uint8Array | undefined> {
    const bytes = new Uint8Array(length);
    for (let filled = 0; filled < length;) {
      const part = await this.some(length - filled);
      if (part === undefined) {
        if (filled === 0) return undefined;
        throw broken("it ends in the middle");
      }
      bytes.set(part, filled);
      filled += part.length;
    }
    return bytes;
  }

  async skip(length: number): Promise<void> {
    for (let left = length; left > 0;) {
      const part = await this.some(left);
      if (part === undefined) throw broken("it ends in the middle");
      left -= part.length;
    }
  }
}

/** What headers before an entry say of it. */
interface Extended {
  /** Records of one extended header of POSIX; `undefined`: there was none. */
  readonly records: Readonly<Record<string, string>> | undefined;
  /** Long names of GNU. */
  readonly name: string | undefined;
  readonly target: string | undefined;
}

const plain: Extended = { records: undefined, name: undefined, target: undefined };

/**
 * Reads a tar archive: ustar, with the long names of GNU and the extended headers of POSIX. The stream is read to its
 * end, beyond the archive's own, since a digest is of all of it. Source of the format: POSIX.1-2024 pax, tar(5).
 *
 * Container engines read layers by Go's archive/tar. This reader reads the same entries, or refuses: sparse files, and
 * headers of which readers take one or the other.
 *
 * @throws McoError `MCO_IMAGE_INVALID`
 */
export async function* readTar(stream: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const portions = new Portions(stream);
  let before = plain;
  let headers = 0;
  for (;;) {
    const header = await portions.exactly(blockBytes);
    if (header === undefined) return;
    if (isZero(header)) break;
    if (!hasChecksum(header)) throw broken("a header's checksum is wrong");
    checkNumbers(header);
    const type = String.fromCharCode(header[156] ?? 0);
    const declared = numberIn(header, 124, 12);
    if (type === "x" || type === "g" || type === "L" || type === "K") {
      headers += 1;
      if (headers > maxHeaders) throw broken("an entry has too many headers");
      before = withHeader(before, type, await extraIn(portions, declared));
      continue;
    }
    const { entry, sizeBytes } = entryIn(header, type, declared, before);
    before = plain;
    headers = 0;
    const body = bodyOf(portions, sizeBytes);
    yield { ...entry, sizeBytes, contents: body.chunks() };
    await portions.skip(body.left() + paddingOf(sizeBytes));
  }
  const second = await portions.exactly(blockBytes);
  if (second !== undefined && !isZero(second)) throw broken("it goes on after a block of its end");
  while ((await portions.some(Number.MAX_SAFE_INTEGER)) !== undefined);
}

const isZero = (block: Uint8Array) => block.every((byte) => byte === 0);

/**
 * Whether all numbers of a header are some, also those that nothing is made of here: where one is none, other readers end
 * (golang/go src/archive/tar/reader.go, master).
 */
function checkNumbers(header: Uint8Array): void {
  for (const field of [100, 108, 116]) numberIn(header, field, 8);
  for (const field of [124, 136]) numberIn(header, field, 12);
  const magic = String.fromCharCode(...header.subarray(257, 265));
  const isPosix = magic.startsWith("ustar\0");
  const isGnu = magic === "ustar  \0";
  if (isPosix || isGnu) for (const device of [329, 337]) numberIn(header, device, 8);
  if (isPosix && isStar(header)) for (const time of [476, 488]) numberIn(header, time, 12);
  // If they are no times, some readers take a prefix to be there.
  if (isGnu) for (const time of [345, 357]) if (header[time] !== 0) numberIn(header, time, 12);
}

/** Contents of a header that belongs to the entry after it. */
async function extraIn(portions: Portions, sizeBytes: number): Promise<Uint8Array> {
  if (sizeBytes > maxExtraBytes) throw broken("a header is too large");
  const bytes = (await portions.exactly(sizeBytes)) ?? new Uint8Array();
  if (bytes.length < sizeBytes) throw broken("it ends in the middle");
  await portions.skip(paddingOf(sizeBytes));
  return bytes;
}

function withHeader(before: Extended, type: "x" | "g" | "L" | "K", bytes: Uint8Array): Extended {
  // An empty one leaves what the header has (golang/go src/archive/tar/reader.go, master).
  const long = () => textIn(bytes, 0, bytes.length) || undefined;
  if (type === "L") return { ...before, name: long() };
  if (type === "K") return { ...before, target: long() };
  const records = recordsIn(bytes);
  if (type === "x") {
    if (before.records !== undefined) throw broken("an entry has two extended headers");
    return { ...before, records };
  }
  // Nothing is made of a global header; Go forgets what came before it, and others do not.
  if (before !== plain) throw broken("a global header stands between an entry and its own headers");
  return plain;
}

function entryIn(
  header: Uint8Array,
  type: string,
  declared: number,
  { records = {}, name: longName, target: longTarget }: Extended,
): { readonly entry: Omit<TarEntry, "sizeBytes" | "contents">; readonly sizeBytes: number } {
  if (type === "S") throw broken("sparse files are not supported");
  const { path: recordedPath, linkpath, size, uid, gid } = records;
  if (both(longName, recordedPath) || both(longTarget, linkpath)) throw broken("an entry has two long names");
  const prefix = textIn(header, 257, 6) === "ustar" ? textIn(header, 345, isStar(header) ? 131 : 155) : "";
  const name = textIn(header, 0, 100);
  const path = longName ?? recordedPath ?? (prefix === "" ? name : `${prefix}/${name}`);
  const target = longTarget ?? linkpath ?? textIn(header, 157, 100);
  if (path.length > maxPathLength || target.length > maxPathLength) throw broken("a path is too long");
  if (path.includes("\0") || target.includes("\0")) throw broken("a path holds a NUL");
  const named = kinds[type];
  if (named === undefined) throw broken(`it has an entry of the unknown type ${JSON.stringify(type)}`);
  // Readers differ in what such a file is: GNU tar makes a folder of it, and Go's archive/tar a file.
  if (named === "file" && type !== "\0" && path.endsWith("/")) throw broken("the name of a file ends with a slash");
  // Old archives mark folders by their name alone.
  const kind = named === "file" && path.endsWith("/") ? "folder" : named;
  return {
    entry: {
      path,
      kind,
      mode: numberIn(header, 100, 8) & 0o7777,
      uid: decimal(uid) ?? numberIn(header, 108, 8),
      gid: decimal(gid) ?? numberIn(header, 116, 8),
      target,
    },
    // Others have no contents, whatever their header says (golang/go src/archive/tar/reader.go, master).
    sizeBytes: kind === "file" ? (decimal(size) ?? declared) : 0,
  };
}

const both = (long: string | undefined, recorded: string | undefined) =>
  long !== undefined && recorded !== undefined && long !== recorded;

/** The older form of Joerg Schilling's star has times at the end of the prefix. */
const isStar = (header: Uint8Array) => String.fromCharCode(...header.subarray(508, 512)) === "tar\0";

function bodyOf(
  portions: Portions,
  sizeBytes: number,
): { readonly chunks: () => AsyncIterable<Uint8Array>; readonly left: () => number } {
  let left = sizeBytes;
  async function* chunks() {
    while (left > 0) {
      const part = await portions.some(left);
      if (part === undefined) throw broken("it ends in the middle");
      left -= part.length;
      yield part;
    }
  }
  return { chunks, left: () => left };
}

const paddingOf = (size: number) => (blockBytes - (size % blockBytes)) % blockBytes;

function textIn(bytes: Uint8Array, from: number, length: number): string {
  const field = bytes.subarray(from, from + length);
  const end = field.indexOf(0);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(end < 0 ? field : field.subarray(0, end));
  } catch {
    throw broken("a name is not UTF-8");
  }
}

/** Octal digits up to a NUL, blanks and NULs around them, or, where they do not suffice, a binary number marked by its first bit. */
function numberIn(header: Uint8Array, from: number, length: number): number {
  const field = header.subarray(from, from + length);
  if (((field[0] ?? 0) & 0x80) !== 0) {
    const value = field.subarray(1).reduce((sum, byte) => sum * 256 + byte, (field[0] ?? 0) & 0x7f);
    if (!Number.isSafeInteger(value)) throw broken("a number is too large");
    return value;
  }
  const [digits = ""] = String.fromCharCode(...field)
    .replaceAll(/^[\0 ]+|[\0 ]+$/g, "")
    .split("\0");
  if (!/^[0-7]*$/.test(digits)) throw broken("a number is none");
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}

function decimal(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[0-9]{1,15}$/.test(text)) throw broken("a number is none");
  return Number(text);
}

function hasChecksum(header: Uint8Array): boolean {
  const sum = header.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 32 : byte), 0);
  return sum === numberIn(header, 148, 8);
}

/** Keywords whose values are read here, and those whose values other readers want to be some. */
const usedKeywords: ReadonlySet<string> = new Set(["path", "linkpath", "size", "uid", "gid"]);
const nameKeywords: ReadonlySet<string> = new Set(["path", "linkpath", "uname", "gname"]);
const timeKeywords: ReadonlySet<string> = new Set(["mtime", "atime", "ctime"]);
/** Seconds since the epoch that a 64-bit number can hold. */
const recordedTime = /^[+-]?[0-9]{1,18}(\.[0-9]*)?$/;

/**
 * `<length> <key>=<value>\n`, where the length counts itself. A record that Go refuses is refused, also where nothing is
 * made of it (golang/go src/archive/tar/strconv.go, `parsePAXRecord` and `parsePAXTime`, master).
 */
function recordsIn(bytes: Uint8Array): Readonly<Record<string, string>> {
  const records: Record<string, string> = {};
  for (let at = 0; at < bytes.length;) {
    const space = bytes.indexOf(32, at);
    const digits = space < 0 || space - at > 7 ? "" : latin1(bytes.subarray(at, space));
    const length = /^[0-9]+$/.test(digits) ? Number(digits) : NaN;
    const equals = bytes.indexOf(61, space);
    if (
      !Number.isSafeInteger(length) ||
      length <= space - at ||
      at + length > bytes.length ||
      equals <= space + 1 ||
      equals >= at + length ||
      bytes[at + length - 1] !== 10
    )
      throw broken("an extended header cannot be read");
    const keyword = bytes.subarray(space + 1, equals);
    if (keyword.includes(0)) throw broken("a keyword holds a NUL");
    const key = latin1(keyword.subarray(0, 128));
    const value = bytes.subarray(equals + 1, at + length - 1);
    if (key.startsWith("GNU.sparse.")) throw broken("sparse files are not supported");
    if (nameKeywords.has(key) && value.includes(0)) throw broken("a name holds a NUL");
    if (timeKeywords.has(key) && value.length > 0 && !recordedTime.test(latin1(value))) throw broken("a time is none");
    // Attributes may hold any bytes, and are not used.
    if (usedKeywords.has(key)) {
      if (value.includes(0)) throw broken("a number holds a NUL");
      // An empty value leaves what the header has (golang/go src/archive/tar/reader.go, master).
      if (value.length === 0) delete records[key];
      else records[key] = textIn(value, 0, value.length);
    }
    at += length;
  }
  return records;
}

const latin1 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

export interface PlainEntry {
  /** Without a slash at its beginning. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link";
  readonly mode: number;
  /** Numeric; root when absent. */
  readonly uid?: number;
  readonly gid?: number;
  /** Of files. */
  readonly contents?: Uint8Array;
  /** Of links. */
  readonly target?: string;
}

/** The largest values that the fields of a plain header can hold. */
const maxNameBytes = 100;
const maxOctal7 = 0o7777777;

/**
 * An archive of files, folders and links with one modification time: the same entries give the same bytes. Values that
 * a plain header cannot hold go into an extended one before it.
 *
 * @param seconds since the epoch.
 */
export function writeTar(entries: readonly PlainEntry[], seconds = 0): Uint8Array {
  const blocks: Uint8Array[] = [];
  for (const entry of entries) {
    const name = entry.kind === "folder" ? `${entry.path}/` : entry.path;
    const { uid = 0, gid = 0, target = "" } = entry;
    const extended = Object.entries({
      ...(gid > maxOctal7 ? { gid: String(gid) } : {}),
      ...(Buffer.byteLength(target) > maxNameBytes ? { linkpath: target } : {}),
      ...(Buffer.byteLength(name) > maxNameBytes ? { path: name } : {}),
      ...(uid > maxOctal7 ? { uid: String(uid) } : {}),
    });
    if (extended.length > 0) {
      const records = Buffer.from(extended.map(([key, value]) => recordOf(key, value)).join(""), "utf8");
      blocks.push(
        headerOf({
          name: "././@PaxHeader",
          type: "x",
          mode: 0o644,
          uid: 0,
          gid: 0,
          size: records.length,
          seconds,
          target: "",
        }),
        records,
        new Uint8Array(paddingOf(records.length)),
      );
    }
    const contents = entry.kind === "file" ? (entry.contents ?? new Uint8Array()) : new Uint8Array();
    blocks.push(
      headerOf({
        name,
        type: tarTypes[entry.kind],
        mode: entry.mode,
        uid,
        gid,
        size: contents.length,
        seconds,
        target,
      }),
      contents,
      new Uint8Array(paddingOf(contents.length)),
    );
  }
  return Buffer.concat([...blocks, new Uint8Array(2 * blockBytes)]);
}

const tarTypes = { file: "0", link: "2", folder: "5" } as const;

interface Header {
  readonly name: string;
  readonly type: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly seconds: number;
  readonly target: string;
}

function headerOf({ name, type, mode, uid, gid, size, seconds, target }: Header): Uint8Array {
  const header = new Uint8Array(blockBytes);
  const put = (text: string, at: number) => header.set(Buffer.from(text, "utf8").subarray(0, maxNameBytes), at);
  const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, "0")}\0`;
  put(name, 0);
  put(octal(mode, 8), 100);
  put(octal(Math.min(uid, maxOctal7), 8), 108);
  put(octal(Math.min(gid, maxOctal7), 8), 116);
  put(octal(size, 12), 124);
  put(octal(seconds, 12), 136);
  put(" ".repeat(8), 148);
  put(type, 156);
  put(target, 157);
  put("ustar\x0000", 257);
  if (uid === 0) put("root", 265);
  if (gid === 0) put("root", 297);
  put(octal(0, 8), 329);
  put(octal(0, 8), 337);
  put(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, "0")}\0 `,
    148,
  );
  return header;
}

/** A record of an extended header: its length counts itself. */
function recordOf(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  let length = bytes + String(bytes).length;
  if (String(length).length !== String(bytes).length) length = bytes + String(length).length;
  return `${length}${rest}`;
}
