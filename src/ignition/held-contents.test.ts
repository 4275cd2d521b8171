import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { decodeContents, encodeDataUrl } from "./data-url.ts";
import { contentsReader, heldText, mostTextCharacters } from "./held-contents.ts";
import type { Resource } from "./types.ts";

const gzip = (bytes: Uint8Array | string): Resource => ({
  compression: "gzip",
  source: encodeDataUrl(gzipSync(bytes, { level: 9 })),
});
const filled = (mebibytes: number, byte: number) => gzip(new Uint8Array(mebibytes * 1024 * 1024).fill(byte));

/** Seconds of processor time of this thread. */
function secondsOf(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  return process.threadCpuUsage(before).user / 1e6;
}

describe("what a config holds", () => {
  test("is decoded once, whoever reads it, and also from another object with the same source [ignition-held-contents-1]", () => {
    const files = [filled(15, 1), filled(15, 2)];
    const readAll = () => files.map((file) => contentsReader()(file).verdict);
    const first = secondsOf(readAll);
    expect(
      secondsOf(() => {
        for (let i = 0; i < 20; i++) expect(readAll()).toEqual(["decoded", "decoded"]);
        for (const file of files) expect(contentsReader()({ ...file })).toMatchObject({ sizeBytes: 15 * 1024 * 1024 });
      }),
    ).toBeLessThan(first / 2);
  });

  test("counts within the limit of a config as if it were decoded again [ignition-held-contents-2]", () => {
    const file = gzip(new Uint8Array(60_000));
    for (const _ of [1, 2]) {
      const read = contentsReader({ maxTotalBytes: 100_000 });
      expect([read(file), read(file), read(file)]).toMatchObject([
        { verdict: "decoded", sizeBytes: 60_000 },
        { verdict: "refused", because: "tooLarge" },
        { verdict: "refused", because: "tooLarge" },
      ]);
    }
    // What a small limit refused is good within a larger one.
    const large = gzip(new Uint8Array(200_000));
    expect(contentsReader({ maxTotalBytes: 100_000 })(large).verdict).toBe("refused");
    expect(contentsReader()(large)).toMatchObject({ verdict: "decoded", sizeBytes: 200_000 });
  });

  test("has the bytes and the digest that it has when it is decoded [ignition-held-contents-3]", () => {
    for (const resource of [gzip("abc"), { source: "data:,abc" }, {}, undefined]) {
      const held = contentsReader()(resource);
      const decoded = decodeContents(resource);
      expect(held.verdict === "decoded" && decoded.verdict === "decoded" && [...held.bytes()]).toEqual(
        decoded.verdict === "decoded" && [...decoded.bytes],
      );
    }
    const digests = [gzip("abc"), { source: "data:,abc" }].map((resource) => {
      const held = contentsReader()(resource);
      return held.verdict === "decoded" && held.digest;
    });
    expect(digests).toEqual(Array(2).fill("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
  });

  test("is parsed up to a number of characters, and decoded no further [ignition-held-contents-4]", () => {
    const text = (length: number, character = "a") => heldText(gzip(character.repeat(length)), mostTextCharacters);
    expect(text(mostTextCharacters)).toMatchObject({ verdict: "text" });
    expect(text(mostTextCharacters, "\u20ac")).toMatchObject({ verdict: "text" });
    expect(text(mostTextCharacters + 1)).toMatchObject({ verdict: "refused", because: "tooLarge" });
    const large = Array.from({ length: 20 }, (_, i) => filled(15, 32 + i));
    const seconds = secondsOf(() => {
      for (const file of large) expect(heldText(file, mostTextCharacters)).toMatchObject({ because: "tooLarge" });
    });
    expect(seconds).toBeLessThan(1);
  });
});
