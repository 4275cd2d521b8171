import { expect, test } from "vitest";
import type { CertificateSigningRequest } from "../../api/foreign/kubernetes.ts";
import { joinNamespace } from "../../api/names.ts";
import { trimRequest } from "./trim-request.ts";

const large = "x".repeat(1_400_000);
const requestOf = (username: string, request: string): CertificateSigningRequest => ({
  apiVersion: "certificates.k8s.io/v1",
  kind: "CertificateSigningRequest",
  metadata: { name: "csr-1", uid: "u", resourceVersion: "7", annotations: { large }, labels: { a: "b" } },
  spec: { request, signerName: "s", username, usages: ["client auth"], extra: { a: [large] } },
  status: { certificate: large, conditions: [{ type: "Approved", status: "True" }] },
});

test("large requests are not kept, so that a thousand of them do not end the approver [attack-requests-1]", () => {
  for (const username of ["system:node:w1", `system:serviceaccount:${joinNamespace}:node-bootstrapper-worker`]) {
    expect(JSON.stringify(trimRequest(requestOf(username, large))).length).toBeLessThan(1000);
    expect(trimRequest(requestOf(username, "LS0t"))).toEqual({
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { name: "csr-1", uid: "u", resourceVersion: "7" },
      spec: { request: "LS0t", signerName: "s", username, usages: ["client auth"] },
      status: { conditions: [{ type: "Approved", status: "True" }] },
    });
  }
  expect(trimRequest(requestOf("somebody", "LS0t")).spec.request).toBe("");
});

test("what tells whose certificate a request came with is kept [attack-requests-3]", () => {
  const request = requestOf("system:node:w1", "LS0t");
  const extra = { "authentication.kubernetes.io/credential-id": ["X509SHA256=aa"] };
  const trimmed = trimRequest({
    ...request,
    spec: { ...request.spec, extra: { ...extra, a: [large] } },
    status: { certificate: "LS0t" },
  });
  expect(trimmed.spec.extra).toEqual(extra);
  expect(trimmed.status).toEqual({ certificate: "LS0t" });
});
