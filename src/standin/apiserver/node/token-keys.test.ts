import { generateKeyPairSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { pemTokenKeys } from "./token-keys.ts";

const pem = { type: "pkcs8", format: "pem" } as const;
const keys = {
  ES256: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export(pem),
  RS256: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export(pem),
};

describe.each(Object.entries(keys))("token keys of %s", (algorithm, key) => {
  test("believe their own signature, and nothing else of whatever length", () => {
    const made = pemTokenKeys(String(key));
    expect(made.algorithm).toBe(algorithm);
    const data = new TextEncoder().encode("header.claims");
    const signature = made.sign(data);
    expect(made.verify(data, signature)).toBe(true);
    expect(made.verify(new TextEncoder().encode("header.other"), signature)).toBe(false);
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (other) => !made.verify(data, other)));
    for (const length of [signature.length - 1, signature.length + 1])
      expect(made.verify(data, new Uint8Array(length))).toBe(false);
  });
});
