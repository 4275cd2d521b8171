import "reflect-metadata";
import { describe, expect, test } from "vitest";
import { signingRequest } from "../../../test/support/test-pki.ts";
import { readCertificateRequest } from "./certificate-request-facts.ts";

/** A request for one DNS name of any length. */
function unsignedRequest(name: string): string {
  const hex = (text: string) => Buffer.from(text, "hex");
  const element = (tag: number, ...parts: Buffer[]): Buffer => {
    const contents = Buffer.concat(parts);
    const length = hex(contents.length.toString(16).padStart(8, "0")).filter((_, i, all) =>
      all.subarray(0, i + 1).some((byte) => byte > 0),
    );
    const head = contents.length < 0x80 ? [tag, contents.length] : [tag, 0x80 + length.length, ...length];
    return Buffer.concat([Buffer.from(head), contents]);
  };
  const names = element(0x30, element(6, hex("551d11")), element(4, element(0x30, element(0x82, Buffer.from(name)))));
  const extensions = element(0x30, element(6, hex("2a864886f70d01090e")), element(0x31, element(0x30, names)));
  const key = element(0x30, element(0x30, element(6, hex("2b6570"))), element(3, Buffer.alloc(33)));
  const info = element(0x30, element(2, hex("00")), element(0x30), key, element(0xa0, extensions));
  const der = element(0x30, info, element(0x30, element(6, hex("2b6570"))), element(3, hex("00aa")));
  return base64(`-----BEGIN CERTIFICATE REQUEST-----\n${der.toString("base64")}\n-----END CERTIFICATE REQUEST-----\n`);
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

describe("readCertificateRequest", () => {
  test("says who is to be certified, and under which names", async () => {
    const names = [
      { type: "dns", value: "w0.example" },
      { type: "ip", value: "10.1.2.3" },
      { type: "ip", value: "fd00:0:0:1::7" },
      { type: "email", value: "a@b.c" },
      { type: "url", value: "spiffe://x/y" },
    ] as const;
    const reading = readCertificateRequest(
      await signingRequest("O=system:nodes,O=ünïcode,CN=system:node:w0", { names }),
    );
    expect(reading).toMatchObject({
      verdict: "read",
      facts: {
        commonNames: ["system:node:w0"],
        organizations: ["system:nodes", "ünïcode"],
        dnsNames: ["w0.example"],
        ipAddresses: ["10.1.2.3", "fd00:0:0:1::7"],
        emailAddresses: ["a@b.c"],
        uris: ["spiffe://x/y"],
        otherNames: 0,
      },
    });
  });

  test("asks for no names where none are asked for", async () => {
    expect(readCertificateRequest(await signingRequest("CN=a,CN=b"))).toMatchObject({
      facts: {
        commonNames: ["a", "b"],
        organizations: [],
        dnsNames: [],
        ipAddresses: [],
        signature: { algorithm: "2a8648ce3d040302" },
      },
    });
  });

  test.for([
    { title: "nothing", request: "" },
    { title: "no base64", request: "%%" },
    { title: "another block", request: base64("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n") },
    {
      title: "a block without a request",
      request: base64("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"),
    },
  ])("$title is no request", ({ request }) => {
    expect(readCertificateRequest(request).verdict).toBe("unreadable");
  });

  test("a request that is far too large is none, and does not end its reader [attack-joining-4]", () => {
    const request = unsignedRequest("a".repeat(600_000));
    expect(readCertificateRequest(request)).toMatchObject({ verdict: "unreadable" });
    expect(readCertificateRequest(unsignedRequest("a"))).toMatchObject({ facts: { dnsNames: ["a"] } });
  });

  test("a request that was cut short is none, wherever it was cut", async () => {
    const text = Buffer.from(await signingRequest("CN=a"), "base64").toString();
    const der = Buffer.from(text.replaceAll(/-----[^-]+-----|\s/g, ""), "base64");
    for (let length = 0; length < der.length; length += 1) {
      const cut = base64(
        `-----BEGIN CERTIFICATE REQUEST-----\n${der.subarray(0, length).toString("base64")}\n-----END CERTIFICATE REQUEST-----\n`,
      );
      expect(readCertificateRequest(cut).verdict, String(length)).toBe("unreadable");
    }
  });
});
