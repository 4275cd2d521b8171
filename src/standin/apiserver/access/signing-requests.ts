import { signers } from "../../../api/names.ts";
import {
  readCertificateRequest,
  type CertificateRequestFacts,
} from "../../../core/certificates/certificate-request-facts.ts";
import type { KubeObject } from "../schema/contract.ts";
import { textAt } from "../schema/json-values.ts";

/** How CertificateSigningRequests are stored. */
export const signingRequests = "certificatesigningrequests.certificates.k8s.io";

/** Signers of kubelets' certificates. */
export const kubeletSigners: ReadonlySet<string> = new Set([signers.kubeletClient, signers.kubeletServing]);

/** The content of a certificate request; `undefined` if it cannot be read, which admission refuses. */
export function askedBy(object: KubeObject | undefined): CertificateRequestFacts | undefined {
  const reading = readCertificateRequest(textAt(object, "spec", "request"));
  return reading.verdict === "read" ? reading.facts : undefined;
}
