import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
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
});
