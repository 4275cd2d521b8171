import { leastOf } from "../../../api/schema/extremes.ts";
import { type CertificateSigningRequest, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { conditionOf } from "../../../api/schema/object.ts";
import { signers } from "../../../api/names.ts";
import { certificatesOf } from "../../../core/certificates/certificate-facts.ts";
import { readCertificateRequest } from "../../../core/certificates/certificate-request-facts.ts";
import { kubeletRequestProblem } from "../../../core/join/kubelet-request.ts";
import type { Authority } from "../../../kube/certificates.ts";
import { type Controller, watching } from "../../../kube/controller.ts";
import { done } from "../../../kube/outcome.ts";
import { timestamp } from "./timestamp.ts";

/** k8s.io/kubernetes cmd/kube-controller-manager --cluster-signing-duration (v1.34) */
const longestSeconds = 365 * 86_400;
const shortestSeconds = 600;
/** k8s.io/kubernetes pkg/controller/certificates/cleaner (v1.34) */
const keptMs = { decided: 3_600_000, pending: 86_400_000 } as const;

const signed: ReadonlySet<string> = new Set([signers.kubeletClient, signers.kubeletServing]);

/**
 * Signs approved requests for certificates of kubelets with the cluster's authority, marks requests that its signer
 * does not sign as failed, and removes requests that are no longer needed.
 */
export function signingController(authority: Authority | undefined): Controller {
  return {
    name: "signing",
    watches: [watching<CertificateSigningRequest>({ resource: kubernetes.CertificateSigningRequest })],
    owns: ["CertificateSigningRequest.status.certificate", "CertificateSigningRequest.deletion"],

    async reconcile(name, { caches, kube, clock, log, signal }) {
      const request = caches.of(kubernetes.CertificateSigningRequest).get(name);
      if (request === undefined || request.metadata.deletionTimestamp !== undefined) return done();
      const now = clock.now();
      const until = keptUntil(request);
      if (until !== undefined && until <= now) {
        await kube.delete(
          kubernetes.CertificateSigningRequest,
          { name },
          { ...(request.metadata.uid === undefined ? {} : { uid: request.metadata.uid }), signal },
        );
        return done();
      }
      if (authority !== undefined && isToBeSigned(request)) {
        const answer = await answerTo(request, authority);
        const status =
          "certificate" in answer
            ? answer
            : {
                conditions: [
                  ...(request.status?.conditions ?? []),
                  {
                    type: "Failed",
                    status: "True",
                    reason: "SignerValidationFailure",
                    message: answer.problem,
                    lastUpdateTime: timestamp(now),
                  },
                ],
              };
        await kube.patch(
          kubernetes.CertificateSigningRequest,
          { name },
          { type: "merge", body: { metadata: { resourceVersion: request.metadata.resourceVersion }, status } },
          { subresource: "status", signal },
        );
        log.info(
          { request: name, requester: request.spec.username, ...("problem" in answer ? answer : {}) },
          "problem" in answer ? "certificate request failed" : "certificate signed",
        );
      }
      return done(until === undefined ? undefined : (until - now) / 1000);
    },
  };
}

const is = (request: CertificateSigningRequest, type: string) =>
  conditionOf(request.status?.conditions, type)?.status === "True";

const isToBeSigned = (request: CertificateSigningRequest): boolean =>
  signed.has(request.spec.signerName) &&
  is(request, "Approved") &&
  !is(request, "Denied") &&
  !is(request, "Failed") &&
  (request.status?.certificate ?? "") === "";

type Answer = { readonly certificate: string } | { readonly problem: string };

async function answerTo({ spec }: CertificateSigningRequest, authority: Authority): Promise<Answer> {
  const reading = readCertificateRequest(spec.request);
  if (reading.verdict === "unreadable") return { problem: reading.reason };
  const { facts } = reading;
  const usages = spec.usages ?? [];
  const problem = kubeletRequestProblem({ signer: spec.signerName, usages, asked: facts });
  if (problem !== undefined) return { problem };
  const certificate = await authority.sign({
    request: atob(spec.request),
    commonName: facts.commonNames[0] ?? "",
    organizations: facts.organizations,
    dnsNames: facts.dnsNames,
    ipAddresses: facts.ipAddresses,
    usages,
    lifeSeconds: Math.min(longestSeconds, Math.max(shortestSeconds, spec.expirationSeconds ?? longestSeconds)),
  });
  return certificate === undefined
    ? { problem: "the request was not signed with its key" }
    : { certificate: btoa(certificate) };
}

/** When a request may be removed, in milliseconds since the epoch; `undefined` while unknown. */
export function keptUntil({
  metadata,
  status,
}: Pick<CertificateSigningRequest, "metadata" | "status">): number | undefined {
  const conditions = status?.conditions ?? [];
  const certificate = status?.certificate ?? "";
  const after = (time: string | undefined, ms: number) =>
    [Date.parse(time ?? "") + ms].filter((at) => !Number.isNaN(at));
  const moments = [
    ...(conditions.length === 0 ? after(metadata.creationTimestamp, keptMs.pending) : []),
    ...conditions.flatMap(({ type, lastUpdateTime }) =>
      type === "Denied" || type === "Failed" || (type === "Approved" && certificate !== "")
        ? after(lastUpdateTime, keptMs.decided)
        : [],
    ),
    ...(certificate === "" ? [] : certificatesOf(atob(certificate)).flatMap(({ notAfter }) => after(notAfter, 0))),
  ];
  return moments.length === 0 ? undefined : leastOf(moments);
}
