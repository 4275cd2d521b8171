import { execFileSync } from "node:child_process";
import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type TarEntry, readTar, writeTar } from "../../../src/registry/tar.ts";
import { runs } from "./runs.ts";
import { type GoReaders, goReadersProgram, startGoReaders } from "../../support/go-readers.ts";

const program = goReadersProgram();
const sample = runs(300, 20000);
const { numRuns } = sample;

const block = 512;

/** The sum of a header's bytes, its own field counted as blanks: POSIX.1-2024 pax. */
function withChecksum(header: Uint8Array): void {
  header.fill(0x20, 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.set(new TextEncoder().encode(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
}

interface Read {
  readonly name: string;
  readonly kind: TarEntry["kind"];
  readonly target: string;
  readonly contents: string;
}

/** `undefined`: it is refused. */
async function ours(archive: Uint8Array): Promise<readonly Read[] | undefined> {
  const entries: Read[] = [];
  try {
    for await (const { path, kind, target, contents } of readTar(
      (async function* () {
        yield archive;
      })(),
    )) {
      const chunks: Uint8Array[] = [];
      if (kind === "file") for await (const chunk of contents) chunks.push(Uint8Array.from(chunk));
      entries.push({ name: path, kind, target, contents: Buffer.concat(chunks).toString("base64") });
    }
    return entries;
  } catch {
    return undefined;
  }
}

const goKinds: Readonly<Record<string, TarEntry["kind"]>> = {
  "0": "file",
  "7": "file",
  "1": "hardLink",
  "2": "link",
  "5": "folder",
};

const meaningOf = (read: readonly Read[]) =>
  read.map(({ name, contents, kind, target }) => [
    name,
    kind,
    contents,
    kind === "link" || kind === "hardLink" ? target : "",
  ]);

/** Go shows global headers as entries; nothing is made of them. */
const meaningToGo = (entries: readonly { name: string; type: string; contents: string; linkname: string }[]) =>
  entries
    .filter(({ type }) => type !== "g")
    .map(({ name, type, contents, linkname }) => [
      name,
      goKinds[type] ?? "other",
      goKinds[type] === "file" ? contents : "",
      ["1", "2"].includes(type) ? linkname : "",
    ]);

interface Part {
  readonly type: string;
  readonly name: string;
  /** What follows the header, in whole blocks. */
  readonly text: string;
  /** What the header's field of the size holds: 12 characters. */
  readonly size: string;
  readonly uid: string;
  readonly prefix: string;
  readonly isStar: boolean;
}

const records = (list: readonly (readonly [string, string])[]) =>
  list
    .map(([key, value]) => {
      const rest = ` ${key}=${value}\n`;
      const length = rest.length + String(rest.length + 2).length;
      return `${length}${rest}`;
    })
    .join("");
const octal = (value: number) => `${value.toString(8).padStart(11, "0")}\0`;
const paddedBody = (text: string) => {
  const padded = new Uint8Array(Math.ceil(text.length / block) * block);
  padded.set(Buffer.from(text, "latin1"));
  return padded;
};

const anyRecord = fc.oneof(
  fc.tuple(fc.constantFrom("path", "linkpath"), fc.constantFrom("p", "q/r", "")),
  fc.tuple(fc.constant("size"), fc.constantFrom("0", "3", "512", "")),
  fc.tuple(fc.constantFrom("uid", "comment", "GNU.sparse.name", "GNU.sparse.major"), fc.constantFrom("1", "")),
);
const header = { uid: "0000000\0", prefix: "", isStar: false };
const anySpecial = fc.oneof(
  fc
    .tuple(fc.constantFrom("x", "x", "g"), fc.array(anyRecord, { minLength: 1, maxLength: 3 }))
    .map(([type, list]) => ({ ...header, type, name: "pax", text: records(list) })),
  fc
    .tuple(fc.constantFrom("L", "K"), fc.constantFrom("long", "long\0", "lo\0ng"))
    .map(([type, text]) => ({ ...header, type, name: "././@LongLink", text })),
);
const anyPart: fc.Arbitrary<Part> = fc.oneof(
  anySpecial.map((each) => ({ ...each, size: octal(each.text.length) })),
  fc
    .record({
      type: fc.constantFrom("0", "0", "\0", "1", "2", "5", "6", "7"),
      name: fc.constantFrom("a", "b/", "c/d"),
      text: fc.constantFrom("", "", "abc", "d".repeat(block)),
      declared: fc.constantFrom<number | undefined>(undefined, undefined, undefined, 0, 3, block),
      size: fc.constantFrom("", "", "", " 3         ", "0000000\0 12\0", "0 3        \0", "000000003 \0"),
      uid: fc.constantFrom(header.uid, "1\0 2   \0", "  12\0\0\0\0"),
      prefix: fc.constantFrom("", "", "pre", "p".repeat(131)),
      isStar: fc.boolean(),
    })
    .map(({ text, declared, size, ...each }) => ({
      ...each,
      text,
      size: size === "" ? octal(declared ?? text.length) : size,
    })),
);
/** Fields of a header by their place and length: POSIX.1-2024 pax, GNU tar's and star's beside it (tar(5)). */
const fieldsOfHeader = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  linkname: [157, 100],
  magic: [257, 6],
  version: [263, 2],
  user: [265, 32],
  group: [297, 32],
  major: [329, 8],
  minor: [337, 8],
  prefix: [345, 155],
  rest: [500, 12],
} as const;
type FieldOfHeader = keyof typeof fieldsOfHeader;

/** What a number's field may hold: octal in every form, base 256, and none at all. */
const anyNumber = fc.oneof(
  fc.constantFrom(
    "0",
    "0000000\0",
    "00000000012\0",
    "12 ",
    " 12\0",
    "\0",
    "",
    "1\x002",
    "-1",
    "8",
    "0x1",
    "+1",
    "1_0",
    "１",
  ),
  fc.nat(1024).map((value) => value.toString(8)),
  fc.constantFrom("\x80\0\0\0\0\0\0\x01", "\x80\0\0\0\0\0\0\0\0\0\0\x03", "\xff\xff\xff\xff\xff\xff\xff\xff", "\x80"),
  fc.string({ unit: "binary-ascii", maxLength: 12 }),
);
const anyName = fc.oneof(
  fc.constantFrom("a", "b/", "./c", "../d", "/e", "a//b", "f\0g", "", "\xff", "é", "x".repeat(100), "y/".repeat(50)),
  fc.string({ unit: "binary-ascii", maxLength: 100 }),
);
const anyOfField: Readonly<Record<FieldOfHeader, fc.Arbitrary<string>>> = {
  name: anyName,
  mode: anyNumber,
  uid: anyNumber,
  gid: anyNumber,
  size: anyNumber,
  mtime: anyNumber,
  checksum: fc.constantFrom("right", "right", "right", "signed", "short", "0"),
  type: fc.oneof(
    fc.constantFrom(..."01234567\0xgLKSVDMNAXs".split("")),
    fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 1 }),
  ),
  linkname: anyName,
  magic: fc.constantFrom("ustar\0", "ustar\0", "ustar ", "USTAR\0", "\0\0\0\0\0\0", "ustar", "ustar0"),
  version: fc.constantFrom("00", "00", " \0", "\0\0", "01"),
  user: anyName,
  group: anyName,
  major: anyNumber,
  minor: anyNumber,
  prefix: fc.oneof(fc.constantFrom("", "", "pre", "pre/", "/", "\0a"), anyName),
  rest: fc.constantFrom("", "", "", "\0\0\0\0\0\0\0\0tar\0", "x"),
};
/** What most headers hold, so that readers agree about some. */
const commonHeader: Readonly<Record<FieldOfHeader, string>> = {
  name: "a",
  mode: "0000644\0",
  uid: "0000000\0",
  gid: "0000000\0",
  size: octal(0),
  mtime: octal(0),
  checksum: "right",
  type: "0",
  linkname: "",
  magic: "ustar\0",
  version: "00",
  user: "",
  group: "",
  major: "",
  minor: "",
  prefix: "",
  rest: "",
};

/** A header of which any number of fields are written freely, and what follows it. */
const anyFreeHeader = fc
  .record({
    fields: fc.record(anyOfField, { requiredKeys: [] }) as fc.Arbitrary<Partial<Record<FieldOfHeader, string>>>,
    chosen: fc.array(fc.constantFrom(...(Object.keys(fieldsOfHeader) as FieldOfHeader[])), { maxLength: 4 }),
    isWhole: fc.boolean(),
    body: fc.constantFrom("", "", "abc", "d".repeat(block), "e".repeat(block + 1)),
    isSized: fc.boolean(),
  })
  .map(({ fields, chosen, isWhole, body, isSized }) => {
    const free = Object.entries(fields).filter(([name]) => isWhole || chosen.includes(name as FieldOfHeader));
    const written = { ...commonHeader, size: octal(body.length), ...Object.fromEntries(free) };
    return freeBlocks(isSized ? { ...written, size: octal(body.length) } : written, body);
  });

function freeBlocks(fields: Readonly<Record<FieldOfHeader, string>>, body: string): Uint8Array {
  const bytes = new Uint8Array(block);
  for (const [name, [at, length]] of Object.entries(fieldsOfHeader) as [FieldOfHeader, readonly [number, number]][])
    if (name !== "checksum") bytes.set(Buffer.from(fields[name], "latin1").subarray(0, length), at);
  withChecksum(bytes);
  const [sum] = [bytes.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 0x20 : byte), 0)];
  const signed = bytes.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 0x20 : (byte << 24) >> 24), 0);
  const texts: Readonly<Record<string, string>> = {
    signed: `${Math.abs(signed).toString(8).padStart(6, "0")}\0 `,
    short: `${sum.toString(8)}\0`,
    "0": "0000000\0",
  };
  const text = texts[fields.checksum];
  if (text !== undefined) bytes.fill(0, 148, 156).set(Buffer.from(text, "latin1").subarray(0, 8), 148);
  return Buffer.concat([bytes, paddedBody(body)]);
}

/** Keywords with a meaning to some reader (POSIX.1-2024 pax, tar(5)), and any others. */
const anyKeyword = fc.oneof(
  fc.constantFrom(
    "path",
    "linkpath",
    "size",
    "uid",
    "gid",
    "uname",
    "gname",
    "mtime",
    "atime",
    "ctime",
    "charset",
    "comment",
    "hdrcharset",
    "realtime.a",
    "security.b",
    "SCHILY.xattr.user.a",
    "SCHILY.dev",
    "LIBARCHIVE.creationtime",
  ),
  fc.constantFrom("mtime", "atime", "ctime", "path", "uname"),
  fc.constantFrom("", "\0", "a\0b", "path\0", "\0path", " path", "path ", "PATH", "\xff", "a\nb", "7 path"),
  fc
    .tuple(
      fc.constantFrom("GNU.sparse."),
      fc.constantFrom("name", "major", "minor", "offset", "numbytes", "numblocks", "map", "size", "realsize", ""),
    )
    .map((parts) => parts.join("")),
  fc.string({ unit: "binary-ascii", maxLength: 8 }),
);
const anyValue = fc.oneof(
  fc.constantFrom("p", "q/r", "b/", "1", "0", "3", "512", "1700000000", "1700000000.25", "-1.5", "7."),
  fc.constantFrom("", "abc", "-", "+1", "1e9", ".5", "1.2.3", "1.x", " 1", "1 ", "0x1", "1_0", "1,2", "--1", "-0"),
  fc.constantFrom(
    "9".repeat(15),
    "9".repeat(18),
    "9".repeat(19),
    "9".repeat(40),
    `1.${"9".repeat(40)}`,
    "0".repeat(30),
  ),
  fc.constantFrom("a\0b", "\0", "a=b", "a\nb", "\xff", "\xc3\xa9", "\n", "5 a=\n", "x".repeat(300)),
  fc.string({ unit: "binary-ascii", maxLength: 12 }),
  fc.double().map(String),
);
/** A text in the place of a record's length, which counts itself: most often the right one. */
const anyLength = fc.oneof(
  { weight: 12, arbitrary: fc.constant((right: number) => String(right)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ...["0", "+", "-", " ", "\0", "0000000", "\t"].map((before) => (right: number) => `${before}${right}`),
      ...["\0", "\0\0", " ", ".", "_"].map((after) => (right: number) => `${right}${after}`),
      (right: number) => `0x${right.toString(16)}`,
      () => "",
    ),
  },
  { weight: 1, arbitrary: fc.integer({ min: -12, max: 12 }).map((by) => (right: number) => String(right + by)) },
  { weight: 1, arbitrary: fc.string({ unit: "binary-ascii", maxLength: 4 }).map((text) => () => text) },
);
const anyFreeRecord = fc
  .tuple(anyLength, anyKeyword, anyValue, fc.constantFrom(...Array<string>(12).fill("\n"), "", "\0", "\n\n"))
  .map(([lengthOf, key, value, end]) => {
    const rest = ` ${key}=${value}${end}`;
    // Of all that stands there: what is before the digits, or behind them, counts as well.
    let length = rest.length;
    for (let turn = 0; turn < 3; turn += 1) length = lengthOf(length).length + rest.length;
    return `${lengthOf(length)}${rest}`;
  });
const anyRecords = fc.oneof(
  { weight: 8, arbitrary: fc.array(anyFreeRecord, { maxLength: 3 }).map((list) => list.join("")) },
  { weight: 1, arbitrary: fc.string({ unit: "binary-ascii", maxLength: 24 }) },
);
/** An extended header of free records, and mostly what it belongs to. */
const anyFreeExtended = fc
  .tuple(fc.constantFrom("x", "x", "g"), anyRecords, fc.constantFrom(true, true, true, false))
  .map(([type, text, isFollowed]): readonly Part[] => [
    { ...header, type, name: "pax", text, size: octal(text.length) },
    ...(isFollowed ? [{ ...header, type: "0", name: "a", text: "abc", size: octal(3) }] : []),
  ]);

const zeros = (count: number) => new Uint8Array(count * block);
const late: Part = { ...header, type: "0", name: "late", size: octal(0), text: "" };
/** Blocks of zeros, and whether an entry is behind them. */
const anyEnd = fc.record({ blocks: fc.constantFrom(2, 2, 1, 0), isLate: fc.boolean() });

function blocksOf({ type, name, text, size, uid, prefix, isStar }: Part): Uint8Array {
  const bytes = new Uint8Array(block);
  const put = (text: string, at: number) => bytes.set(Buffer.from(text, "latin1"), at);
  put(name, 0);
  put("0000644\0", 100);
  put(uid, 108);
  put("0000000\0", 116);
  put(size, 124);
  put(octal(0), 136);
  put(type, 156);
  put(["1", "2"].includes(type) ? "target" : "", 157);
  put("ustar\x0000", 257);
  put(prefix, 345);
  if (isStar) {
    put("00000000001\0", 476);
    put("00000000001\0", 488);
    put("tar\0", 508);
  }
  withChecksum(bytes);
  return Buffer.concat([bytes, paddedBody(text)]);
}

describe.skipIf(program === undefined)("tar archives, as Go reads them", () => {
  let go: GoReaders;
  let archive: Uint8Array;

  beforeAll(async () => {
    go = startGoReaders(program ?? "");
    archive = writeTar([
      { path: "etc", kind: "folder", mode: 0o755 },
      { path: "etc/hostname", kind: "file", mode: 0o644, contents: new TextEncoder().encode("worker-0\n") },
      { path: `etc/${"long-".repeat(40)}name`, kind: "file", mode: 0o600, contents: new Uint8Array(700).fill(65) },
      { path: "etc/link", kind: "link", mode: 0o777, target: "hostname" },
    ] as never);
  });
  afterAll(() => go.close());

  test(
    "an archive that both read has the same entries, with the same contents, under the same names [readers-tar-1]",
    { timeout: 300_000 },
    async () => {
      const headers = fc.nat(Math.floor(archive.length / block) - 1);
      const changes = fc.array(
        fc.tuple(
          headers,
          fc.nat(block - 1),
          fc.oneof(fc.nat(255), fc.constantFrom(0, 0x20, 0x30, 0x2f, 0x35, 0x78, 0x80)),
        ),
        { maxLength: 4 },
      );
      let both = 0;
      await fc.assert(
        fc.asyncProperty(changes, async (list) => {
          const changed = Uint8Array.from(archive);
          for (const [header, at, value] of list) {
            changed[header * block + at] = value;
            const bytes = changed.subarray(header * block, (header + 1) * block);
            // A block that is still a header gets its sum back, so that the change is what is read.
            if (Buffer.from(archive.subarray(header * block + 257, header * block + 262)).toString() === "ustar")
              withChecksum(bytes);
          }
          const read = await ours(changed);
          const { entries, error } = await go.ask("tar", changed);
          if (read === undefined || error !== undefined) return;
          both += 1;
          expect(
            read.map(({ name, contents, kind, target }) => ({
              name,
              contents,
              target: kind === "link" || kind === "hardLink" ? target : "",
            })),
          ).toEqual(
            // Go shows global headers as entries; nothing is made of them.
            (entries ?? [])
              .filter(({ type }) => type !== "g")
              .map(({ name, contents, type, linkname }) => ({
                name,
                contents: goKinds[type] === "file" ? contents : "",
                target: ["1", "2"].includes(type) ? linkname : "",
              })),
          );
        }),
        sample,
      );
      expect(both).toBeGreaterThan(numRuns / 20);
    },
  );

  test(
    "extended headers, long names, sizes of entries without contents and ends of archives mean what they mean to Go [readers-tar-2]",
    { timeout: 300_000 },
    async () => {
      let both = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(anyPart, { minLength: 1, maxLength: 6 }), anyEnd, async (parts, end) => {
          const given = Buffer.concat([
            ...parts.map(blocksOf),
            zeros(end.blocks),
            ...(end.isLate ? [blocksOf(late)] : []),
          ]);
          const read = await ours(given);
          if (read === undefined) return;
          const { entries, error } = await go.ask("tar", given);
          expect(error).toBeUndefined();
          both += 1;
          expect(meaningOf(read)).toEqual(meaningToGo(entries ?? []));
        }),
        { ...sample, numRuns: numRuns * 10 },
      );
      expect(both).toBeGreaterThan(numRuns);
    },
  );

  test(
    "headers whose fields are written freely are refused, or mean what they mean to Go [readers-tar-4]",
    { timeout: 300_000 },
    async () => {
      let both = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(anyFreeHeader, { minLength: 1, maxLength: 4 }), anyEnd, async (parts, end) => {
          const given = Buffer.concat([...parts, zeros(end.blocks), ...(end.isLate ? [blocksOf(late)] : [])]);
          const read = await ours(given);
          if (read === undefined) return;
          const { entries, error } = await go.ask("tar", given);
          expect(error).toBeUndefined();
          both += 1;
          expect(meaningOf(read)).toEqual(meaningToGo(entries ?? []));
        }),
        { ...sample, numRuns: numRuns * 10 },
      );
      expect(both).toBeGreaterThan(numRuns);
    },
  );

  test(
    "extended headers whose records are written freely are refused, or mean what they mean to Go [readers-tar-5]",
    { timeout: 300_000 },
    async () => {
      let both = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(anyFreeExtended, { minLength: 1, maxLength: 2 }), anyEnd, async (parts, end) => {
          const given = Buffer.concat([...parts.flat().map(blocksOf), zeros(end.blocks)]);
          const read = await ours(given);
          if (read === undefined) return;
          const { entries, error } = await go.ask("tar", given);
          expect(error).toBeUndefined();
          both += 1;
          expect(meaningOf(read)).toEqual(meaningToGo(entries ?? []));
        }),
        { ...sample, numRuns: numRuns * 20 },
      );
      expect(both).toBeGreaterThan(numRuns);
    },
  );

  test.for(["0.0", "0.1", "1.0", "gnu"])(
    "a sparse file of GNU tar's format %s is refused, where Go reads it [readers-tar-3]",
    async (format) => {
      const folder = await mkdtemp(join(tmpdir(), "mco-sparse-"));
      onTestFinished(() => rm(folder, { recursive: true }));
      await writeFile(join(folder, "sparse"), "end");
      await truncate(join(folder, "sparse"), 1024 * 1024);
      const how = format === "gnu" ? ["--format=gnu"] : ["--format=posix", `--sparse-version=${format}`];
      const sparse = execFileSync("tar", ["--sparse", ...how, "-C", folder, "-cf", "-", "sparse"]);
      expect(sparse.length).toBeLessThan(64 * 1024);
      expect((await go.ask("tar", sparse)).error).toBeUndefined();
      await expect(
        (async () => {
          for await (const _ of readTar(Readable.from([sparse])));
        })(),
      ).rejects.toMatchObject({
        code: "MCO_IMAGE_INVALID",
        facts: { problem: expect.stringContaining("sparse") as string },
      });
    },
  );
});
