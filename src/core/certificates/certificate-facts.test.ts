import { describe, expect, test } from "vitest";
import { selfSigned } from "../../../test/support/self-signed.ts";
import { certificateFacts, certificatesOf, readBundle } from "./certificate-facts.ts";
import { readPem } from "./pem.ts";

describe("a bundle", () => {
  test("returns subject, expiry and text of every certificate, in order", async () => {
    const [first, second] = [
      await selfSigned("C=DE, O=Some one, CN=kube-apiserver-to-kubelet-signer"),
      await selfSigned("O=a\\, b\\+c, CN=späte", { notAfter: new Date("2060-02-03T04:05:06Z") }),
    ];
    const found = certificatesOf(`# a comment\n${first}text between\n${second}`);
    expect(found.map(({ commonName, subject, signer }) => [commonName, subject, signer])).toEqual([
      [
        "kube-apiserver-to-kubelet-signer",
        "CN=kube-apiserver-to-kubelet-signer,O=Some one,C=DE",
        "CN=kube-apiserver-to-kubelet-signer,O=Some one,C=DE",
      ],
      ["späte", "CN=späte,O=a\\, b\\+c", "CN=späte,O=a\\, b\\+c"],
    ]);
    expect(found.map(({ notBefore, notAfter }) => [notBefore, notAfter])).toEqual([
      ["2025-01-01T00:00:00Z", "2035-01-01T00:00:00Z"],
      ["2025-01-01T00:00:00Z", "2060-02-03T04:05:06Z"],
    ]);
    expect(found.map(({ pem }) => pem)).toEqual([first, second]);
  });

  test("may hold text and blocks of other labels, which are passed over", async () => {
    const good = await selfSigned("CN=good");
    const key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    expect(certificatesOf(`Bag Attributes: 1\n${key}text\n${good}# end`).map(({ commonName }) => commonName)).toEqual([
      "good",
    ]);
    expect(readBundle("")).toEqual({ verdict: "read", certificates: [] });
  });

  test.for([
    {
      title: "is no base64",
      block: "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n",
      says: /line 2/,
    },
    { title: "is empty", block: "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", says: /block 1/ },
    { title: "has no end", block: "-----BEGIN CERTIFICATE-----\nAAAA\n", says: /line 1/ },
    {
      title: "has headers",
      block: "-----BEGIN CERTIFICATE-----\nA: b\n\nAAAA\n-----END CERTIFICATE-----\n",
      says: /header/,
    },
    { title: "ends another block", block: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END X-----\n", says: /line 3/ },
    { title: "is cut", block: "-----BEGIN CERTIFICATE\nAAAA\n-----END CERTIFICATE-----\n", says: /line 1/ },
  ])(
    "one block that $title makes the whole bundle unreadable, with the place [certificates-certificate-facts-1]",
    async ({ block, says }) => {
      const good = await selfSigned("CN=good");
      const reading = readBundle(block + good);
      expect(reading).toEqual({ verdict: "unreadable", problem: expect.stringMatching(says) as string });
      expect(readBundle(good + block).verdict).toBe("unreadable");
      expect(certificatesOf(good + block)).toEqual([]);
    },
  );

  test("may have line ends of another system", async () => {
    const good = await selfSigned("CN=good");
    expect(certificatesOf(good.replaceAll("\n", "\r\n")).map(({ pem }) => pem)).toEqual([good]);
  });

  test("a certificate cut short anywhere is none, and nothing worse", async () => {
    const pem = readPem(await selfSigned("CN=good"));
    const der = (pem.verdict === "read" ? pem.blocks[0]?.der : undefined) ?? new Uint8Array();
    expect(certificateFacts(der)?.commonName).toBe("good");
    for (let length = 0; length < der.length; length += 1)
      expect(certificateFacts(der.subarray(0, length))).toBeUndefined();
  });

  test.for([
    ["a name of another alphabet", 0x14, 200_000],
    ["a name of two-byte characters", 0x1e, 400_000],
    ["a time", 0x17, 200_000],
  ] as const)(
    "%s may be longer than one call takes arguments [certificates-certificate-facts-2]",
    ([, tag, length]) => {
      const long = der(tag, new Uint8Array(length).fill(0x61));
      const name = der(
        0x30,
        der(0x31, der(0x30, der(0x06, Uint8Array.of(0x55, 0x04, 0x03)), tag === 0x17 ? utf8 : long)),
      );
      const time = der(0x17, new TextEncoder().encode("250101000000Z"));
      const times = der(0x30, tag === 0x17 ? long : time, time);
      const facts = certificateFacts(der(0x30, der(0x30, der(0x02, Uint8Array.of(1)), der(0x30), name, times, name)));
      expect(facts?.commonName.length).toBe(tag === 0x17 ? undefined : 200_000);
    },
  );
});

/** One element of DER. */
function der(tag: number, ...contents: readonly Uint8Array[]): Uint8Array {
  const length = contents.reduce((sum, part) => sum + part.length, 0);
  const digits = length.toString(16);
  const inBytes = Buffer.from(digits.padStart(digits.length + (digits.length % 2), "0"), "hex");
  const head = length < 0x80 ? [length] : [0x80 + inBytes.length, ...inBytes];
  return Uint8Array.from(Buffer.concat([Uint8Array.of(tag, ...head), ...contents]));
}

const utf8 = der(0x0c, new TextEncoder().encode("a"));
