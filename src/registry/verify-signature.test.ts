import { type KeyObject, generateKeyPairSync, sign } from "node:crypto";
import { expect, test } from "vitest";
import { signatureVerifier } from "./node/verify-signature.ts";

const payload = Buffer.from("what was signed");
const pem = (key: KeyObject): string =>
  key.export(key.type === "public" ? { type: "spki", format: "pem" } : { type: "pkcs8", format: "pem" }).toString();
const verdict = async (text: string, signature: Uint8Array, signed: Uint8Array = payload) =>
  (await signatureVerifier([{ pem: text }], async () => undefined))({ pem: text }, { payload: signed, signature });

test.for([
  ["P-256", () => generateKeyPairSync("ec", { namedCurve: "P-256" })],
  ["P-384", () => generateKeyPairSync("ec", { namedCurve: "P-384" })],
  ["RSA", () => generateKeyPairSync("rsa", { modulusLength: 2048 })],
  ["Ed25519", () => generateKeyPairSync("ed25519")],
] satisfies readonly (readonly [string, () => { readonly publicKey: KeyObject; readonly privateKey: KeyObject }])[])(
  "%s: a signature holds for its key and its text, and for no other",
  async ([name, generate]) => {
    const { publicKey, privateKey } = generate();
    const signature = sign(name === "Ed25519" ? null : "sha256", payload, privateKey);
    expect(await verdict(pem(publicKey), signature)).toBe("valid");
    expect(await verdict(pem(publicKey), signature, Buffer.from("something else"))).toBe("invalid");
    expect(await verdict(pem(generate().publicKey), signature)).toBe("invalid");
    expect(await verdict(pem(publicKey), Buffer.from("no signature"))).toBe("invalid");
    expect(await verdict(pem(publicKey), new Uint8Array())).toBe("invalid");
  },
);

test.for([
  ["P-521", () => pem(generateKeyPairSync("ec", { namedCurve: "P-521" }).publicKey), "kind that is not supported"],
  [
    "a short RSA key",
    () => pem(generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey),
    "kind that is not supported",
  ],
  ["X25519", () => pem(generateKeyPairSync("x25519").publicKey), "kind that is not supported"],
  ["a private key", () => pem(generateKeyPairSync("ed25519").privateKey), "no public key"],
  ["nonsense", () => "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "no public key"],
] satisfies readonly (readonly [string, () => string, string])[])(
  "%s is no key of a policy",
  async ([, text, problem]) => {
    expect(await verdict(text(), new Uint8Array(64))).toEqual({ unusable: expect.stringContaining(problem) as string });
  },
);

test("a key that is not there is named", async () => {
  const key = { path: "/etc/pki/os.pub" };
  const verify = await signatureVerifier([key], async () => undefined);
  expect(await verify(key, { payload, signature: payload })).toEqual({
    unusable: "the key /etc/pki/os.pub cannot be read",
  });
});

test("verifying lets other work of the process go on, and each key is read once [verify-signature-1]", async () => {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-384" });
  const signature = sign("sha256", payload, privateKey);
  const key = { path: "/etc/pki/os.pub" };
  let reads = 0;
  const verify = await signatureVerifier([key, key], async () => {
    reads += 1;
    return pem(publicKey);
  });
  let turns = 0;
  const turn = (): void => {
    turns += 1;
    timer = setImmediate(turn);
  };
  let timer = setImmediate(turn);
  try {
    for (let i = 0; i < 50; i++) expect(await verify(key, { payload, signature })).toBe("valid");
  } finally {
    clearImmediate(timer);
  }
  expect(turns).toBeGreaterThan(20);
  expect(reads).toBe(1);
});
