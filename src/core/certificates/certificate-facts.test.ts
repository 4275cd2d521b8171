import { describe, expect, test } from "vitest";
import { selfSigned } from "../../../test/support/self-signed.ts";
import { certificateFacts, certificatesOf, pemBlocks } from "./certificate-facts.ts";

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

  test("is read to its end, whatever else stands in it [certificates-certificate-facts-1]", async () => {
    const good = await selfSigned("CN=good");
    const key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    const broken = "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n";
    const empty = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";
    const cut = good.replace(/\n[A-Za-z0-9+/=]+\n-----END/, "\n-----END");
    expect(
      certificatesOf([key, broken, empty, cut, good, "-----BEGIN CERTIFICATE-----\nAAAA"].join("")).map(
        ({ commonName }) => commonName,
      ),
    ).toEqual(["good"]);
    expect(certificatesOf("")).toEqual([]);
  });

  test("may have line ends of another system", async () => {
    const good = await selfSigned("CN=good");
    expect(certificatesOf(good.replaceAll("\n", "\r\n")).map(({ pem }) => pem)).toEqual([good]);
  });

  test("a certificate cut short anywhere is none, and nothing worse", async () => {
    const der = pemBlocks(await selfSigned("CN=good"))[0]?.der ?? new Uint8Array();
    expect(certificateFacts(der)?.commonName).toBe("good");
    for (let length = 0; length < der.length; length += 1)
      expect(certificateFacts(der.subarray(0, length))).toBeUndefined();
  });
});
