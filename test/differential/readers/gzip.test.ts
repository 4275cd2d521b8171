import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decodeContents } from "../../../src/ignition/data-url.ts";
import { runs } from "./runs.ts";
import { type GoReaders, goReadersProgram, startGoReaders } from "../../support/go-readers.ts";

const program = goReadersProgram();
const sample = runs(200, 4000);
const { numRuns } = sample;

const ours = (bytes: Uint8Array) =>
  decodeContents({ source: `data:;base64,${Buffer.from(bytes).toString("base64")}`, compression: "gzip" });

/** Contents that a configuration says are gzip: Ignition on the machine decompresses them with Go. */
describe.skipIf(program === undefined)("gzip, as Go reads it", () => {
  let go: GoReaders;

  beforeAll(() => {
    go = startGoReaders(program ?? "");
  });
  afterAll(() => go.close());

  const texts = fc.oneof(fc.string({ maxLength: 200 }), fc.constantFrom("", "a".repeat(70_000)));
  const archives = fc
    .array(texts, { minLength: 1, maxLength: 3 })
    .map((members) => Buffer.concat(members.map((text) => gzipSync(text))));

  test("whole members, one or several, give the same bytes [readers-gzip-1]", { timeout: 300_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(archives, async (archive) => {
        const mine = ours(archive);
        const theirs = await go.ask("gzip", archive);
        expect(theirs.error).toBeUndefined();
        expect(mine.verdict === "decoded" ? Buffer.from(mine.bytes).toString("base64") : mine).toBe(theirs.bytes ?? "");
      }),
      sample,
    );
  });

  test("what Go refuses or reads otherwise is refused [readers-gzip-2]", { timeout: 300_000 }, async () => {
    const wounded = fc
      .tuple(
        archives,
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 2 }),
        fc.nat(3),
        fc.boolean(),
      )
      .map(([archive, changes, cut, isLonger]) => {
        const bytes = Uint8Array.from(archive);
        for (const [at, value] of changes) bytes[at % bytes.length] = value;
        return isLonger ? Buffer.concat([bytes, Buffer.alloc(cut, 1)]) : bytes.subarray(0, bytes.length - cut);
      });
    await fc.assert(
      fc.asyncProperty(wounded, async (archive) => {
        const mine = ours(archive);
        if (mine.verdict !== "decoded") return;
        const theirs = await go.ask("gzip", archive);
        // Our library takes a few code tables that Go refuses. What they give has the right checksum and length.
        if (theirs.error?.startsWith("flate: corrupt input") === true) return;
        expect(theirs.error).toBeUndefined();
        expect(Buffer.from(mine.bytes).toString("base64")).toBe(theirs.bytes ?? "");
      }),
      { ...sample, numRuns: numRuns * 2 },
    );
  });
});
