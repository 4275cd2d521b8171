import "reflect-metadata";
import { describe, expect, test } from "vitest";
import { signingRequest } from "../../../test/support/test-pki.ts";
import { readCertificateRequest } from "./certificate-request-facts.ts";

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
