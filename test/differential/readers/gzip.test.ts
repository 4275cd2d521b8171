import { crc32, deflateRawSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decodeContents } from "../../../src/ignition/data-url.ts";
import { emptyOutput, inflate } from "../../../src/ignition/inflate.ts";
import { anyDeflate } from "../../support/any-deflate.ts";
import { runs } from "./runs.ts";
import { type GoReaders, goReadersProgram, startGoReaders } from "../../support/go-readers.ts";

const program = goReadersProgram();
const sample = runs(200, 4000);
const { numRuns } = sample;

const ours = (bytes: Uint8Array) =>
  decodeContents({ source: `data:;base64,${Buffer.from(bytes).toString("base64")}`, compression: "gzip" });

/** Bits of a member's flags: RFC 1952. */
const flagBits = { text: 1, headerSum: 2, extra: 4, name: 8, comment: 16 } as const;
const u16 = (value: number) => Buffer.from([value & 0xff, (value >> 8) & 0xff]);
const u32 = (value: number) => Buffer.concat([u16(value), u16(value >>> 16)]);
/** A value of a field, and now and then another one. */
const mostly = <T>(usual: T, ...others: readonly T[]) =>
  fc.oneof({ weight: 12, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(usual, ...others) });

/** A member whose header and trailer are written field by field, whether they are right or not. */
const anyMember = fc
  .record({
    text: fc.constantFrom("", "abc", "d".repeat(3000)),
    magic: mostly(0x8b1f, 0x8b1e, 0, 0x1f8b),
    method: mostly(8, 0, 7, 9),
    flags: fc.oneof({ weight: 4, arbitrary: fc.nat(31) }, { weight: 1, arbitrary: fc.nat(255) }),
    time: fc.constantFrom(0, 1, 0xffffffff),
    more: fc.nat(255),
    system: fc.nat(255),
    extra: fc.uint8Array({ maxLength: 20 }),
    extraLength: mostly<number | undefined>(undefined, 0, 1, 0xffff),
    name: fc.constantFrom("", "a", "é", "n".repeat(600)),
    comment: fc.constantFrom("", "c", "\xff", "m".repeat(600)),
    hasEnds: mostly(true, false),
    headerSum: mostly<number | undefined>(undefined, 0, 0xffff),
    level: fc.constantFrom(0, 1, 9),
    sum: mostly<number | undefined>(undefined, 0, 1),
    size: mostly<number | undefined>(undefined, 0, 0xffffffff),
    cut: mostly(0, 1, 4, 8, 9),
  })
  .map((field) => {
    const has = (bit: keyof typeof flagBits) => (field.flags & flagBits[bit]) !== 0;
    const end = Buffer.from(field.hasEnds ? [0] : []);
    const header = Buffer.concat([
      u16(field.magic),
      Buffer.from([field.method, field.flags]),
      u32(field.time),
      Buffer.from([field.more, field.system]),
      ...(has("extra") ? [u16(field.extraLength ?? field.extra.length), field.extra] : []),
      ...(has("name") ? [Buffer.from(field.name, "latin1"), end] : []),
      ...(has("comment") ? [Buffer.from(field.comment, "latin1"), end] : []),
    ]);
    const text = Buffer.from(field.text);
    const member = Buffer.concat([
      header,
      ...(has("headerSum") ? [u16(field.headerSum ?? crc32(header))] : []),
      deflateRawSync(text, { level: field.level }),
      u32(field.sum ?? crc32(text)),
      u32(field.size ?? text.length),
    ]);
    return member.subarray(0, member.length - field.cut);
  });
/** What is behind the last member. */
const anyTail = fc
  .constantFrom("", "", "\0", "\0".repeat(512), "x", "\x1f", "\x1f\x8b")
  .map((text) => Buffer.from(text, "latin1"));

/** A member with the checksum and length of what its stream gives, or gave before it broke. */
function memberOf(stream: Uint8Array): Buffer {
  const out = emptyOutput(1 << 24);
  inflate(stream, 0, out);
  const text = out.bytes.subarray(0, out.length);
  return Buffer.concat([
    Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]),
    stream,
    u32(crc32(text)),
    u32(text.length),
  ]);
}

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

  test(
    "members whose fields are written freely are refused, or give the same bytes [readers-gzip-3]",
    { timeout: 300_000 },
    async () => {
      let both = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(anyMember, { minLength: 1, maxLength: 3 }), anyTail, async (members, tail) => {
          const archive = Buffer.concat([...members, tail]);
          const mine = ours(archive);
          if (mine.verdict !== "decoded") return;
          both += 1;
          const theirs = await go.ask("gzip", archive);
          expect(theirs.error).toBeUndefined();
          expect(Buffer.from(mine.bytes).toString("base64")).toBe(theirs.bytes ?? "");
        }),
        { ...sample, numRuns: numRuns * 5 },
      );
      expect(both).toBeGreaterThan(numRuns / 4);
    },
  );

  test(
    "deflate blocks that are written freely are refused where Go refuses them, and give its bytes [readers-gzip-4]",
    { timeout: 300_000 },
    async () => {
      let both = 0;
      await fc.assert(
        fc.asyncProperty(anyDeflate, async (stream) => {
          const archive = memberOf(stream);
          const mine = ours(archive);
          const theirs = await go.ask("gzip", archive);
          expect(mine.verdict === "decoded" ? Buffer.from(mine.bytes).toString("base64") : mine.verdict).toBe(
            theirs.error === undefined ? (theirs.bytes ?? "") : "refused",
          );
          if (mine.verdict === "decoded") both += 1;
        }),
        { ...sample, numRuns: numRuns * 5 },
      );
      expect(both).toBeGreaterThan(numRuns / 4);
    },
  );

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
        expect(theirs.error).toBeUndefined();
        expect(Buffer.from(mine.bytes).toString("base64")).toBe(theirs.bytes ?? "");
      }),
      { ...sample, numRuns: numRuns * 2 },
    );
  });
});
