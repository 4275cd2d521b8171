import { gzipSync, strToU8 } from "fflate";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bitWriter, costlyEmptyBlock } from "../../test/support/any-deflate.ts";
import { bytesOf, decodeContents, encodeBase64, encodeDataUrl, parseDataUrl, textOf } from "./data-url.ts";
import { contentsReader } from "./held-contents.ts";

const text = (source: string, compression?: string) => {
  const contents = decodeContents(compression === undefined ? { source } : { source, compression });
  return contents.verdict === "decoded" ? textOf(contents.bytes) : contents.because;
};

describe("data URLs", () => {
  test.for([
    ["data:,", ""],
    ["data:,a%20b%0A", "a b\n"],
    ["data:;base64,aGk=", "hi"],
    ["data:;base64,aG\nk=", "hi"],
    ["data:text/plain;charset=utf-8;base64,aGk=", "hi"],
    ['data:text/plain;charset="utf-8",x', "x"],
    ["data:x-foo/bar,x", "x"],
    ["data:;charset=a,x", "x"],
    ["data:,%C3%A9", "é"],
  ] as const)("%s is read", ([source, contents]) => {
    expect(text(source)).toBe(contents);
  });

  test.for([
    "data:",
    "data",
    "DATA:,x",
    "data:;base64",
    "data:;base64,a",
    "data:;base64,a===",
    "data:;base64,====",
    "data:;base64,a b=",
    "data:,é",
    "data:,%",
    "data:,%g0",
    "data:, ",
    "data:,#",
    "data:foo/bar,x",
    "data:text,x",
    "data:;foo,x",
    "data:;base64;charset=a,x",
    "data:;charset=,x",
    "data:;charset=%zz,x",
    'data:;charset="a,x',
    "data:;=a,x",
    "data:text/é,x",
  ])("%s is refused", (source) => {
    expect(parseDataUrl(source).verdict).toBe("invalid");
    expect(decodeContents({ source }).verdict).toBe("refused");
  });

  test("bytes and texts come back as they went in", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const parsed = parseDataUrl(encodeDataUrl(bytes));
        expect(parsed.verdict === "parsed" ? bytesOf(parsed) : parsed).toEqual(bytes);
        expect(encodeBase64(bytes)).toBe(Buffer.from(bytes).toString("base64"));
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (value) => {
        expect(text(encodeDataUrl(value))).toBe(value.toWellFormed());
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (value) => {
        expect(text(`data:;base64,${encodeBase64(gzipSync(strToU8(value)))}`, "gzip")).toBe(value);
      }),
    );
  });

  test("any text is read or refused", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: "binary" })), (rest) =>
        ["parsed", "invalid"].includes(parseDataUrl(`data:${rest}`).verdict),
      ),
    );
  });
});

describe("decodeContents", () => {
  const gzipped = (bytes: Uint8Array) => ({ source: `data:;base64,${encodeBase64(bytes)}`, compression: "gzip" });

  test("absent contents are an empty file", () => {
    expect(decodeContents(undefined)).toEqual({ verdict: "decoded", bytes: new Uint8Array(0) });
    expect(decodeContents({ compression: "gzip" })).toEqual({ verdict: "decoded", bytes: new Uint8Array(0) });
  });

  test("remote sources are distinguished from broken ones", () => {
    expect(decodeContents({ source: "https://example.com/a" })).toMatchObject({ because: "remote" });
    expect(decodeContents({ source: "/etc/passwd" })).toMatchObject({ because: "invalid" });
    expect(decodeContents({ source: "data:,a", compression: "xz" })).toMatchObject({ because: "invalid" });
  });

  test("what is marked as gzip and is not, is refused", () => {
    expect(decodeContents({ source: "data:,plain", compression: "gzip" })).toMatchObject({ because: "invalid" });
    const good = gzipSync(strToU8("hello hello hello"));
    expect(decodeContents(gzipped(good.slice(0, -3)))).toMatchObject({ because: "invalid" });
    const flipped = good.slice();
    flipped[flipped.length - 6] = (flipped.at(-6) ?? 0) ^ 255;
    expect(decodeContents(gzipped(flipped))).toMatchObject({ because: "invalid" });
  });

  test("a compression bomb stops at the bound", () => {
    const bomb = gzipped(gzipSync(new Uint8Array(48 << 20)));
    const before = process.memoryUsage().arrayBuffers;
    expect(decodeContents(bomb, { maxBytes: 1 << 20 })).toMatchObject({ verdict: "refused", because: "tooLarge" });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 << 20);
  });

  test("contents beyond the bound are refused before they are decoded", () => {
    expect(decodeContents({ source: `data:,${"a".repeat(5000)}` }, { maxBytes: 100 })).toMatchObject({
      because: "tooLarge",
    });
    expect(decodeContents({ source: `data:,${"a".repeat(50_000_000)}` })).toMatchObject({ because: "tooLarge" });
  });

  test("bytes that are not UTF-8 have no text; a byte order mark stays", () => {
    expect(textOf(Uint8Array.of(0xff, 0xfe))).toBeUndefined();
    expect(textOf(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61))).toBe("\ufeffa");
    expect(textOf(strToU8("\ufffd"))).toBe("\ufffd");
  });
});

describe("contentsReader", () => {
  const gzip = (bytes: Uint8Array) => ({ compression: "gzip", source: encodeDataUrl(bytes) });
  const zeros = (bytes: number) => gzip(gzipSync(new Uint8Array(bytes)));

  test("what is compressed is bounded together, and refused unread once that is used up", () => {
    const read = contentsReader({ maxTotalBytes: 100_000 });
    expect(read(zeros(60_000)).verdict).toBe("decoded");
    expect(read(zeros(5_000_000))).toMatchObject({
      verdict: "refused",
      because: "tooLarge",
      reason: "the compressed contents of the config are larger than 100000 bytes together",
    });
    expect(read(zeros(10))).toMatchObject({ verdict: "refused", because: "tooLarge" });
    expect(read({ source: "data:,plain" }).verdict).toBe("decoded");
  });

  test.for([
    {
      title: "what is refused",
      member: (bytes: Uint8Array) => bytes.with(-6, (bytes.at(-6) ?? 0) ^ 1),
      because: "invalid",
    },
    { title: "what is whole", member: (bytes: Uint8Array) => bytes, because: undefined },
  ])("$title counts all the same [ignition-contents-1]", ({ member, because }) => {
    const read = contentsReader({ maxTotalBytes: 100_000 });
    const file = gzip(member(gzipSync(new Uint8Array(40_000))));
    for (const _ of [1, 2]) {
      const first = read(file);
      expect(first.verdict === "refused" ? first.because : undefined).toBe(because);
    }
    expect(read(file)).toMatchObject({ verdict: "refused", because: "tooLarge" });
  });

  test("contents that give nothing count for what goes in [ignition-contents-2]", () => {
    const out = bitWriter();
    for (let i = 0; i < 300; i++) costlyEmptyBlock(out, i === 299);
    const file = gzip(Uint8Array.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, ...out.bytes(), 0, 0, 0, 0, 0, 0, 0, 0]));
    const read = contentsReader({ maxTotalBytes: 100_000 });
    const verdicts = [1, 2, 3].map(() => read(file).verdict);
    expect(verdicts).toEqual(["decoded", "decoded", "refused"]);
  });
});
