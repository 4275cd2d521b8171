import { constants, deflateRawSync, inflateRawSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyDeflate, bitWriter, costlyEmptyBlock } from "../../test/support/any-deflate.ts";
import { emptyOutput, inflate } from "./inflate.ts";

const ours = (bytes: Uint8Array, maxBytes = 1 << 24) => {
  const out = emptyOutput(maxBytes);
  const result = inflate(bytes, 0, out);
  return result.verdict === "inflated"
    ? { end: result.end, text: Buffer.from(out.bytes.subarray(0, out.length)).toString("latin1") }
    : result.verdict;
};

/** What zlib reads, and of how many bytes. */
const zlibs = (bytes: Uint8Array) => {
  try {
    const { buffer, engine } = inflateRawSync(bytes, { info: true }) as unknown as {
      readonly buffer: Buffer;
      readonly engine: { readonly bytesWritten: number };
    };
    return { end: engine.bytesWritten, text: buffer.toString("latin1") };
  } catch {
    return "broken";
  }
};

describe("inflate", () => {
  test("blocks that are written freely are refused where zlib refuses them, and give its bytes [ignition-inflate-1]", () => {
    const verdicts = { read: 0, refused: 0 };
    fc.assert(
      fc.property(anyDeflate, (bytes) => {
        const theirs = zlibs(bytes);
        verdicts[theirs === "broken" ? "refused" : "read"] += 1;
        expect(ours(bytes)).toEqual(theirs);
      }),
      { numRuns: 1000 },
    );
    expect(Math.min(verdicts.read, verdicts.refused)).toBeGreaterThan(80);
  });

  test("what zlib writes comes back, whatever its level and strategy [ignition-inflate-2]", () => {
    const text = fc.oneof(
      fc.uint8Array({ maxLength: 3000 }),
      fc
        .array(fc.constantFrom("abc", "d", "the same words ", "\n"), { maxLength: 3000 })
        .map((all) => Buffer.from(all.join(""))),
    );
    const strategy = fc.constantFrom(
      constants.Z_DEFAULT_STRATEGY,
      constants.Z_HUFFMAN_ONLY,
      constants.Z_RLE,
      constants.Z_FIXED,
    );
    fc.assert(
      fc.property(text, fc.constantFrom(0, 1, 6, 9), strategy, fc.nat(20), (bytes, level, how, behind) => {
        const stream = deflateRawSync(bytes, { level, strategy: how });
        expect(ours(Buffer.concat([stream, Buffer.alloc(behind, 7)]))).toEqual({
          end: stream.length,
          text: Buffer.from(bytes).toString("latin1"),
        });
      }),
    );
  });

  test("a stream stops at the bound, and not below it [ignition-inflate-3]", () => {
    const stream = deflateRawSync(Buffer.alloc(100_000));
    expect(ours(stream, 99_999)).toBe("tooLarge");
    expect(ours(stream, 100_000)).toMatchObject({ end: stream.length });
    for (const level of [0, 9]) expect(ours(deflateRawSync(Buffer.from("abc"), { level }), 2)).toBe("tooLarge");
  });

  test("blocks that give nothing cost little more than zlib takes for them [ignition-inflate-4]", () => {
    const out = bitWriter();
    for (let i = 0; i < 5000; i++) costlyEmptyBlock(out, i === 4999);
    const bytes = out.bytes();
    const time = (read: () => unknown) => {
      const before = process.cpuUsage();
      read();
      return process.cpuUsage(before).user;
    };
    expect(ours(bytes)).toEqual({ end: bytes.length, text: "" });
    const [mine, theirs] = [Math.min(...[1, 2, 3].map(() => time(() => ours(bytes)))), time(() => zlibs(bytes))];
    expect(mine).toBeLessThan(20 * Math.max(theirs, 10_000));
  });
});
