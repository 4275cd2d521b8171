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
          expect(
            read.map(({ name, contents, kind, target }) => [
              name,
              kind,
              contents,
              kind === "link" || kind === "hardLink" ? target : "",
            ]),
          ).toEqual(
            (entries ?? [])
              .filter((entry) => entry.type !== "g")
              .map((entry) => [
                entry.name,
                goKinds[entry.type] ?? "other",
                goKinds[entry.type] === "file" ? entry.contents : "",
                ["1", "2"].includes(entry.type) ? entry.linkname : "",
              ]),
          );
        }),
        { ...sample, numRuns: numRuns * 10 },
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
