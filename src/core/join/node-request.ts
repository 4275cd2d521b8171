import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { strFromU8 } from "fflate";
import type { CertificateSigningRequest } from "../../api/foreign/kubernetes.ts";
import { type NodeBinding, mostCertificates } from "../../api/kinds/node-binding.ts";
import { joinNamespace, nodeIdentity, objects, signers } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { decodeBase64 } from "../../ignition/data-url.ts";
import { certificateFacts } from "../certificates/certificate-facts.ts";
import { readCertificateRequest } from "../certificates/certificate-request-facts.ts";
import { readPem } from "../certificates/pem.ts";
import {
  type CertificateHolder,
  type IssuedCertificates,
  certificateIn,
  holderOf,
  requestLifeMs,
} from "./certificate-holder.ts";
import { joinedAt } from "./join-places.ts";
import type { CsrReason } from "./judge-csr.ts";
import { type KubeletRequest, boundedRequest, namedNode } from "./kubelet-request.ts";
import { readOncePerObject } from "../text/read-once.ts";

const hasCondition = ({ status }: CertificateSigningRequest, type: string) =>
  conditionOf(status?.conditions, type)?.status === "True";

const approvalOf = ({ status }: CertificateSigningRequest) => conditionOf(status?.conditions, "Approved");

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

/** Whether a request of a node was sent by a certificate that the binding of its name lists for the machine that has it. */
export function isSentByHolder({ spec }: CertificateSigningRequest, binding: NodeBinding | undefined): boolean {
  return (
    binding !== undefined &&
    spec.username === `${nodeIdentity.userPrefix}${binding.metadata.name}` &&
    listedOwner(certificateIn(spec.extra), binding) === "holder"
  );
}

/** Whether an administrator approved a joining machine by hand. */
export const isByHand = (request: CertificateSigningRequest): boolean =>
  isApproved(request) &&
  poolOfRequester(request) !== undefined &&
  request.spec.signerName === signers.kubeletClient &&
  approvalOf(request)?.reason !== ("NodeJoins" satisfies CsrReason);

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

/**
 * Whether a request was for a client certificate of the key that a name is bound to, and nothing else tells who sent it. A node
 * can send the request of another machine again: then the certificate by which it came says whose it is.
 */
const isForKey = (request: CertificateSigningRequest, binding: NodeBinding) =>
  request.spec.signerName === signers.kubeletClient &&
  readRequest(request)?.publicKey === binding.spec.publicKey &&
  (certificateIn(request.spec.extra) === undefined || !isOfNode(request));

const isOfNode = ({ spec }: CertificateSigningRequest) => spec.username?.startsWith(nodeIdentity.userPrefix) === true;

/** Certificates that were issued to the machines of a name, those that its binding lists included. */
export interface CertificateLines {
  /** To the machine that has the name. */
  readonly holder: IssuedCertificates;
  /** To machines that had it before. */
  readonly former: IssuedCertificates;
}

export const noLines: CertificateLines = { holder: new Map(), former: new Map() };

/**
 * Follows the certificates of a name from one to the next: a machine has each that was issued on a request sent with one
 * that it has. Not only the suite approves renewals of nodes, so that a binding may list them later.
 *
 * @param requests all about the node: it may have thousands.
 */
export function certificateLines(
  binding: NodeBinding,
  requests: readonly CertificateSigningRequest[],
): CertificateLines {
  const { certificates = [], formerCertificates = [] } = binding.spec;
  const bySender = new Map<string, IssuedCertificate[]>();
  const forKey: IssuedCertificate[] = [];
  for (const request of requests) {
    const issued = request.spec.signerName === signers.kubeletClient ? issuedIn(request) : undefined;
    if (issued === undefined) continue;
    const sender = certificateIn(request.spec.extra);
    if (isForKey(request, binding)) forKey.push(issued);
    else if (sender !== undefined) {
      const sent = bySender.get(sender);
      if (sent === undefined) bySender.set(sender, [issued]);
      else sent.push(issued);
    }
  }
  const follow = (first: readonly (readonly [string, string | undefined])[]): IssuedCertificates => {
    const line = new Map(first);
    // Iteration comes to what is added meanwhile.
    for (const sender of line.keys())
      for (const { sha256, endsAt } of bySender.get(sender) ?? []) if (!line.has(sha256)) line.set(sha256, endsAt);
    return line;
  };
  return {
    holder: follow([
      ...certificates.map((sha256) => [sha256, undefined] as const),
      ...forKey.map(({ sha256, endsAt }) => [sha256, endsAt] as const),
    ]),
    former: follow(formerCertificates.map(({ sha256, expiresAt }) => [sha256, expiresAt] as const)),
  };
}

/**
 * Whether a binding can list another certificate of its machine, beside those that it lists, those that were issued to it, and
 * those that it will get by requests that were approved.
 *
 * @param requests all others about the node.
 * @param granted names of requests that are about to be approved.
 */
export function hasRoomForCertificate(
  binding: NodeBinding,
  requests: readonly CertificateSigningRequest[],
  { lines: { holder }, granted }: { readonly lines: CertificateLines; readonly granted: ReadonlySet<string> },
): boolean {
  const coming = requests.filter(
    (request) =>
      (isApproved(request) || granted.has(request.metadata.name)) &&
      issuedIn(request) === undefined &&
      isForKey(request, binding),
  );
  return holder.size + coming.length < mostCertificates;
}

/**
 * Whose a client certificate is that was issued on a request about a bound name, whoever approved it:
 *
 * - `holder`: of the machine that has the name, maybe for a key that it has replaced since.
 * - `former`: of a machine that had it before.
 * - `stranger`: of a machine that the binding does not know, and that was admitted by nobody whom it knows.
 * - `unknown`: of the holder or of a former machine: the API server does not say with which certificate it was requested.
 * - `nobody`: it is no client certificate, or it was requested before the holder joined.
 */
export type CertificateOwner = "holder" | "former" | "stranger" | "unknown" | "nobody";

/** Whose a certificate is, as the binding itself lists it; `undefined`: it is not listed. */
export function listedOwner(
  credential: string | undefined,
  { spec: { certificates = [], formerCertificates = [] } }: NodeBinding,
): "holder" | "former" | undefined {
  if (credential === undefined) return undefined;
  if (formerCertificates.some(({ sha256 }) => sha256 === credential)) return "former";
  return certificates.includes(credential) ? "holder" : undefined;
}

/** The reason in the approval of `kubectl certificate approve`: an administrator vouches for the machine. */
const byAdministrator = "KubectlApprove";

/** @param lines as `certificateLines` finds them. */
export function ownerOfIssued(
  request: CertificateSigningRequest,
  binding: NodeBinding,
  { holder, former }: CertificateLines,
): CertificateOwner {
  if (request.spec.signerName !== signers.kubeletClient) return "nobody";
  if (isForKey(request, binding)) return "holder";
  const credential = certificateIn(request.spec.extra);
  const listed = listedOwner(credential, binding);
  if (listed !== undefined) return listed;
  if (credential !== undefined && former.has(credential)) return "former";
  if (credential !== undefined && holder.has(credential)) return "holder";
  const isLater = createdAt(request) > joinedAt(binding);
  if (!isLater) return credential === undefined ? "nobody" : "stranger";
  if (credential !== undefined && approvalOf(request)?.reason === byAdministrator) return "holder";
  const askedAt = Date.parse(createdAt(request));
  const isNew = Date.parse(joinedAt(binding)) > askedAt - requestLifeMs;
  const whose = holderOf(binding.spec, { credential, issued: [], isNew, askedAt });
  if (whose === "former") return "stranger";
  return whose === "unknown" && poolOfRequester(request) !== undefined ? "nobody" : whose;
}

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
  const isListed = credential === undefined || binding.spec.certificates?.includes(credential) === true;
  const lines = isListed ? undefined : certificateLines(binding, listRequests());
  if (credential !== undefined && lines?.former.has(credential) === true) return "former";
  const isNew = Date.parse(joinedAt(binding)) > now - requestLifeMs;
  return holderOf(binding.spec, {
    credential,
    issued: [...(lines?.holder.keys() ?? [])],
    isNew,
    askedAt: Date.parse(createdAt(request)),
  });
}
