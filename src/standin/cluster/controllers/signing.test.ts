import { describe, expect, test } from "vitest";
import { X509Certificate } from "node:crypto";
import { startCluster, skippableClock } from "../../../../test/support/controllers-harness.ts";
import { kubernetes } from "../../../api/foreign/kubernetes.ts";
import { signers } from "../../../api/names.ts";
import { certificateAuthority, requestCertificate } from "../../../kube/certificates.ts";
import { systemRandom } from "../../../ports/node/index.ts";
import { keptUntil } from "./signing-controller.ts";

const at = "2026-01-01T00:00:00Z";
const since = Date.parse(at);
const condition = (type: string) => ({ type, status: "True", lastUpdateTime: at });
const hour = 3_600_000;
const quarterHours =
  ({ clock }: Awaited<ReturnType<typeof startCluster>>) =>
  () =>
    Promise.resolve(clock.skip(hour / 4));

async function joinRequest(name: string, approve = true) {
  const authority = await certificateAuthority({ name: "ca", clock: skippableClock(), random: systemRandom });
  const cluster = await startCluster({ controllers: { authority } });
  const { request } = await requestCertificate({ commonName: "system:node:w0", organizations: ["system:nodes"] });
  const { kube } = cluster;
  await kube.create(kubernetes.CertificateSigningRequest, {
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { name },
    spec: {
      request: btoa(request),
      signerName: signers.kubeletClient,
      usages: ["digital signature", "client auth"],
      username: "",
      groups: [],
    },
    status: {},
  });
  if (approve)
    await kube.patch(
      kubernetes.CertificateSigningRequest,
      { name },
      { type: "merge", body: { status: { conditions: [{ type: "Approved", status: "True" }] } } },
      { subresource: "approval" },
    );
  return { cluster, authority };
}

describe("signing certificates of kubelets", () => {
  test("an approved request is signed by the cluster's authority, and deleted an hour later", async () => {
    const { cluster, authority } = await joinRequest("a");
    const signed = await cluster.until(
      kubernetes.CertificateSigningRequest,
      { name: "a" },
      (object) => object?.status?.certificate !== undefined,
    );
    const certificate = new X509Certificate(atob(signed?.status?.certificate ?? ""));
    expect(certificate.verify(new X509Certificate(authority.certificate).publicKey)).toBe(true);
    await cluster.whileTimeFlies(
      cluster.until(kubernetes.CertificateSigningRequest, { name: "a" }, (object) => object === undefined),
      quarterHours(cluster),
    );
  });

  test("an unapproved request is never signed", async () => {
    const { cluster } = await joinRequest("pending", false);
    const seen: unknown[] = [];
    // It is there until its day is over, and never has a certificate.
    await cluster.whileTimeFlies(
      cluster.until(
        kubernetes.CertificateSigningRequest,
        { name: "pending" },
        (object) => (object !== undefined && seen.push(object.status?.certificate), object === undefined),
      ),
      quarterHours(cluster),
    );
    expect(seen.filter((certificate) => certificate !== undefined)).toEqual([]);
  });

  test.for([
    { title: "a day when nothing was decided", status: {}, ms: 24 * hour },
    { title: "an hour when it was denied", status: { conditions: [condition("Denied")] }, ms: hour },
    { title: "an hour when it failed", status: { conditions: [condition("Approved"), condition("Failed")] }, ms: hour },
    {
      title: "an hour when it was signed",
      status: { conditions: [condition("Approved")], certificate: "eA==" },
      ms: hour,
    },
  ])("a request is kept for $title", ({ status, ms }) => {
    expect(keptUntil({ metadata: { name: "a", creationTimestamp: at }, status })).toBe(since + ms);
  });

  test("a request that is approved and not signed stays", () => {
    expect(
      keptUntil({ metadata: { name: "a", creationTimestamp: at }, status: { conditions: [condition("Approved")] } }),
    ).toBeUndefined();
  });
});
