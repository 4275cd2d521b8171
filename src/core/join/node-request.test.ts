import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { strToU8 } from "fflate";
import { describe, expect, test } from "vitest";
import type { CertificateSigningRequest } from "../../api/foreign/kubernetes.ts";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import { nodeIdentity, signers } from "../../api/names.ts";
import { credentialKey } from "./certificate-holder.ts";
import { requestCertificate } from "../../kube/certificates.ts";
import { certificateLines, holderOfRequest, ownerOfIssued, readRequest } from "./node-request.ts";

const end = "2031-01-01T00:00:00Z";
const idOf = (certificate: string) => bytesToHex(sha256(strToU8(certificate)));
/** Not a certificate, but a block of one. */
const pem = (certificate: string) =>
  btoa(`-----BEGIN CERTIFICATE-----\n${btoa(certificate)}\n-----END CERTIFICATE-----\n`);

/** A request that was sent with one certificate, and was granted another one by an approver that is not the suite's. */
const renewed = (by: string, to: string, signerName: string = signers.kubeletClient) =>
  ({
    metadata: { name: to, creationTimestamp: "2030-02-01T00:00:00Z" },
    spec: {
      username: "system:node:w",
      signerName,
      request: "",
      usages: [],
      extra: { [credentialKey]: [`X509SHA256=${idOf(by)}`] },
    },
    status: { certificate: pem(to), conditions: [{ type: "Approved", status: "True", reason: "AutoApproved" }] },
  }) as unknown as CertificateSigningRequest;

const binding = {
  metadata: { name: "w", uid: "u", creationTimestamp: "2030-01-01T00:00:00Z" },
  spec: {
    pool: "worker",
    publicKey: "a".repeat(64),
    expiresAt: end,
    certificates: [idOf("holder-1")],
    formerCertificates: [{ sha256: idOf("former-1"), expiresAt: end }],
  },
} as unknown as NodeBinding;
const requests = [
  renewed("former-2", "former-3"),
  renewed("holder-2", "holder-3"),
  renewed("holder-1", "holder-2"),
  renewed("former-1", "former-2"),
  renewed("stranger-1", "stranger-2"),
  renewed("holder-1", "serving", signers.kubeletServing),
];

describe("the certificates of a name, in whatever order they are seen", () => {
  test("each is its machine's by the one that it was requested with [join-node-request-1]", () => {
    const { holder, former } = certificateLines(binding, requests);
    expect([...holder.keys()].toSorted()).toEqual(["holder-1", "holder-2", "holder-3"].map(idOf).toSorted());
    expect([...former.keys()].toSorted()).toEqual(["former-1", "former-2", "former-3"].map(idOf).toSorted());
  });

  test.for([
    { by: "holder-3", is: "holder", sender: "holder" },
    { by: "former-3", is: "former", sender: "former" },
    { by: "stranger-2", is: "stranger", sender: "former" },
  ] as const)("a certificate that $by requests is of the $is [join-node-request-2]", ({ by, is, sender }) => {
    const request = renewed(by, "next");
    expect(ownerOfIssued(request, binding, certificateLines(binding, requests))).toBe(is);
    expect(holderOfRequest(request, binding, () => requests, Date.parse(end))).toBe(sender);
  });

  test("a request that another machine sent again for the key of the holder is that machine's [join-node-request-4]", async () => {
    const { request: text } = await requestCertificate({
      commonName: "system:node:w",
      organizations: [nodeIdentity.group],
    });
    const sentAgain = (by: string) => ({
      ...renewed(by, "again"),
      spec: { ...renewed(by, "again").spec, request: btoa(text) },
    });
    const publicKey = readRequest(sentAgain("stranger-1"))?.publicKey ?? expect.fail();
    const bound = { ...binding, spec: { ...binding.spec, publicKey } };
    for (const [by, is] of [
      ["stranger-1", "stranger"],
      ["former-1", "former"],
      ["holder-1", "holder"],
    ] as const) {
      const all = [...requests, sentAgain(by)];
      expect(certificateLines(bound, all).holder.has(idOf("again"))).toBe(is === "holder");
      expect(ownerOfIssued(sentAgain(by), bound, certificateLines(bound, all))).toBe(is);
    }
    // The machine's first request comes by the account that it joins with.
    const first = sentAgain("stranger-1");
    const joining = { ...first, spec: { ...first.spec, username: "system:serviceaccount:x:y", extra: {} } };
    expect(ownerOfIssued(joining, bound, certificateLines(bound, [joining]))).toBe("holder");
  });

  test("of a certificate to serve with nothing is known [join-node-request-3]", () => {
    const request = renewed("holder-1", "serving", signers.kubeletServing);
    expect(ownerOfIssued(request, binding, certificateLines(binding, requests))).toBe("nobody");
  });
});
