import { describe, expect, test } from "vitest";
import { selfSigned } from "../../../test/support/self-signed.ts";
import { certificateFacts, certificatesOf, readBundle } from "./certificate-facts.ts";
import { readPem } from "./pem.ts";

describe("a bundle", () => {
  test("tells of every certificate whose it is and until when it is good, in its order, and gives each back as it stands", async () => {
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
});
