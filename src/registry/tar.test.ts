import { execFileSync } from "node:child_process";
import { chmodSync, linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readTar, writeTar } from "./tar.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "mco-tar-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const longName = `${"folder/".repeat(20)}${"f".repeat(90)}.conf`;
const files: Readonly<Record<string, string>> = {
  "etc/a.conf": "a\n",
  "etc/empty": "",
  "usr/ümlaut ☃": "not ASCII",
  [longName]: "long",
  "usr/large": "x".repeat(100_000),
};

interface Read {
  readonly path: string;
  readonly kind: string;
  readonly mode: string;
  readonly target: string;
  readonly contents: string;
}

async function entriesOf(archive: Uint8Array): Promise<readonly Read[]> {
  async function* stream() {
    // In odd portions, as a network has them.
    for (let at = 0; at < archive.length; at += 777) yield archive.subarray(at, at + 777);
  }
  const read: Read[] = [];
  for await (const { path, kind, mode, target, contents } of readTar(stream())) {
    const parts: Uint8Array[] = [];
    for await (const part of contents) parts.push(part);
    read.push({ path, kind, mode: mode.toString(8), target, contents: Buffer.concat(parts).toString("utf8") });
  }
  return read.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** What GNU tar finds in an archive, by unpacking every file of it to its standard output. */
const contentsByTar = (archive: Uint8Array, path: string) =>
  execFileSync("tar", ["-xOf", "-", path], { input: archive, encoding: "utf8" });

const listedByTar = (archive: Uint8Array) =>
  execFileSync("tar", ["--quoting-style=literal", "--numeric-owner", "-tvf", "-"], { input: archive, encoding: "utf8" })
    .trimEnd()
    .split("\n")
    .map((line) => line.replace(/^(\S+) (\S+) +(\d+) \S+ \S+ (.*)$/, "$1 $2 $3 $4"));

describe("readTar", () => {
  test.for(["ustar", "gnu", "pax", "oldgnu"])(
    "finds in an archive of GNU tar (%s) what was put into it",
    async (format) => {
      const tree = join(folder, format);
      // A plain header splits a name at a slash and holds 255 characters of it.
      const packed = Object.entries(files).filter(([path]) => format !== "ustar" || path !== longName);
      for (const [path, text] of packed) {
        mkdirSync(dirname(join(tree, path)), { recursive: true });
        writeFileSync(join(tree, path), text);
        chmodSync(join(tree, path), 0o640);
      }
      symlinkSync("../usr/large", join(tree, "etc/link"));
      linkSync(join(tree, "etc/a.conf"), join(tree, "etc/z-hard"));
      const archive = execFileSync(
        "tar",
        [
          `--format=${format}`,
          "--sort=name",
          "-C",
          tree,
          "-cf",
          "-",
          "etc",
          "usr",
          ...(format === "ustar" ? [] : ["folder"]),
        ],
        { maxBuffer: 1 << 24 },
      );
      const read = await entriesOf(archive);

      const found = read
        .filter(({ kind }) => kind === "file")
        .map(({ path, mode, contents }) => [path, mode, contents]);
      expect(found).toEqual(
        packed.map(([path, text]) => [path, "640", text]).toSorted(([a = ""], [b = ""]) => (a < b ? -1 : 1)),
      );
      expect(read.find(({ kind }) => kind === "link")).toMatchObject({ path: "etc/link", target: "../usr/large" });
      expect(read.find(({ kind }) => kind === "hardLink")).toMatchObject({ path: "etc/z-hard", target: "etc/a.conf" });
    },
  );
});

describe("writeTar", () => {
  test("writes what GNU tar reads: names of any length, owners, links, folders", () => {
    const archive = writeTar(
      [
        { path: "etc", kind: "folder", mode: 0o755 },
        ...Object.entries(files).map(([path, text]) => ({
          path,
          kind: "file" as const,
          mode: 0o600,
          contents: Buffer.from(text),
        })),
        { path: "etc/link", kind: "link", mode: 0o777, target: `../${"t".repeat(150)}` },
        { path: "owned", kind: "file", mode: 0o644, uid: 3_000_000, gid: 1000, contents: Buffer.from("o") },
      ],
      1_700_000_000,
    );
    expect(listedByTar(archive)).toEqual([
      "drwxr-xr-x 0/0 0 etc/",
      ...Object.entries(files).map(([path, text]) => `-rw------- 0/0 ${Buffer.byteLength(text)} ${path}`),
      `lrwxrwxrwx 0/0 0 etc/link -> ../${"t".repeat(150)}`,
      "-rw-r--r-- 3000000/1000 1 owned",
    ]);
    for (const [path, text] of Object.entries(files)) expect(contentsByTar(archive, path)).toBe(text);
  });
});
