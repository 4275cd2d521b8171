import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { strFromU8 } from "fflate";
import type { CertificateSigningRequest } from "../../api/foreign/kubernetes.ts";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import { joinNamespace, objects, signers } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { decodeBase64 } from "../../ignition/data-url.ts";
import { certificateFacts } from "../certificates/certificate-facts.ts";
import { readCertificateRequest } from "../certificates/certificate-request-facts.ts";
import { readPem } from "../certificates/pem.ts";
import { type CertificateHolder, certificateIn, holderOf, requestLifeMs } from "./certificate-holder.ts";
import { joinedAt } from "./join-places.ts";
import type { CsrReason } from "./judge-csr.ts";
import { type KubeletRequest, boundedRequest, namedNode } from "./kubelet-request.ts";
import { readOncePerObject } from "../text/read-once.ts";

const hasCondition = ({ status }: CertificateSigningRequest, type: string) =>
  conditionOf(status?.conditions, type)?.status === "True";

/** Whether a request was approved. */
export const isApproved = (request: CertificateSigningRequest): boolean => hasCondition(request, "Approved");

/** Whether nobody has decided a request yet. */
export const isOpen = (request: CertificateSigningRequest): boolean =>
  !["Approved", "Denied", "Failed"].some((type) => hasCondition(request, type));

/** A parsed request. */
export interface RequestReading {
  readonly asked: KubeletRequest;
  /** SHA-256 of its public key, in hexadecimal digits. */
  readonly publicKey: string;
}

/**
 * Parses a request; `undefined`: it cannot be read. It does so once per object, since a request is read at each change of what
 * it waits for.
 */
export const readRequest = readOncePerObject(({ spec }: CertificateSigningRequest): RequestReading | undefined => {
  const reading = readCertificateRequest(spec.request);
  return reading.verdict === "read"
    ? {
        asked: boundedRequest({ signer: spec.signerName, usages: spec.usages ?? [], asked: reading.facts }),
        publicKey: bytesToHex(sha256(reading.facts.publicKey)),
      }
    : undefined;
});

/** The node that a request is about. */
export function nodeOfRequest(request: CertificateSigningRequest): string | undefined {
  const reading = readRequest(request);
  return reading === undefined ? undefined : namedNode(reading.asked);
}

/** The pool of the account that a machine joins with; `undefined` for other requesters. */
export function poolOfRequester({ spec }: CertificateSigningRequest): string | undefined {
  const accounts = `system:serviceaccount:${joinNamespace}:${objects.nodeBootstrapperPrefix}`;
  return spec.username?.startsWith(accounts) === true ? spec.username.slice(accounts.length) : undefined;
}

/** Whether an administrator approved a joining machine by hand. */
export const isByHand = (request: CertificateSigningRequest): boolean =>
  isApproved(request) &&
  poolOfRequester(request) !== undefined &&
  request.spec.signerName === signers.kubeletClient &&
  conditionOf(request.status?.conditions, "Approved")?.reason !== ("NodeJoins" satisfies CsrReason);

/** A certificate that was issued. */
export interface IssuedCertificate {
  /** SHA-256, in hexadecimal digits. */
  readonly sha256: string;
  /** ISO 8601; `undefined`: it cannot be read. */
  readonly endsAt: string | undefined;
}

/**
 * The certificate that a request was granted; the signer puts it before those that certify it. It is read once per object: the
 * certificates of a node are compared with each of its requests.
 */
export const issuedIn = readOncePerObject(({ status }: CertificateSigningRequest): IssuedCertificate | undefined => {
  const text = status?.certificate ?? "";
  const reading = readPem(strFromU8(decodeBase64(text)));
  const [first] = reading.verdict === "read" ? reading.blocks.filter(({ label }) => label === "CERTIFICATE") : [];
  return first === undefined
    ? undefined
    : { sha256: bytesToHex(sha256(first.der)), endsAt: certificateFacts(first.der)?.notAfter };
});

const createdAt = ({ metadata }: CertificateSigningRequest) => metadata.creationTimestamp ?? "";

/** Whether a request was for a client certificate of the key that a name is bound to. */
const isForKey = (request: CertificateSigningRequest, binding: NodeBinding) =>
  request.spec.signerName === signers.kubeletClient && readRequest(request)?.publicKey === binding.spec.publicKey;

/**
 * Whether a request was for a client certificate of the machine that has a name, maybe for a key that it has replaced since.
 * While a certificate of a former machine was valid, the keys of the two could not be told apart. A request that is older than
 * the join is of a machine that had the name before.
 */
export const isOfBoundMachine = (request: CertificateSigningRequest, binding: NodeBinding): boolean =>
  isForKey(request, binding) ||
  (request.spec.signerName === signers.kubeletClient &&
    createdAt(request) > joinedAt(binding) &&
    holderOf(binding.spec, {
      credential: undefined,
      issued: [],
      isNew: false,
      askedAt: Date.parse(createdAt(request)),
    }) === "holder");

/**
 * By whose certificate a request was sent. The record of a certificate may follow later than the request that is sent with
 * it: issued ones count at once.
 *
 * @param listRequests lists all requests about the node: it may have thousands.
 */
export function holderOfRequest(
  request: CertificateSigningRequest,
  binding: NodeBinding,
  listRequests: () => readonly CertificateSigningRequest[],
  now: number,
): CertificateHolder {
  const credential = certificateIn(request.spec.extra);
  // A machine is a node only after it joined. Where the certificate tells, clocks that differ must not.
  if (credential === undefined && createdAt(request) < joinedAt(binding)) return "former";
  const issued =
    credential === undefined || binding.spec.certificates?.includes(credential) === true
      ? []
      : listRequests().flatMap((other) => (isForKey(other, binding) ? (issuedIn(other)?.sha256 ?? []) : []));
  const isNew = Date.parse(joinedAt(binding)) > now - requestLifeMs;
  return holderOf(binding.spec, { credential, issued, isNew, askedAt: Date.parse(createdAt(request)) });
}
