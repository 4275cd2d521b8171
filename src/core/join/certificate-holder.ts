import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import { mostCertificates } from "../../api/kinds/node-binding.ts";
import { defined } from "../../api/schema/defined.ts";

/**
 * By whose certificate a node sends a request:
 *
 * - `holder`: by that of the machine that its name is bound to, or nothing says otherwise.
 * - `former`: by one that was not issued for that machine: of a machine that had the name before, for example.
 * - `unknown`: such a certificate was valid, and the API server does not say which one the request came with.
 */
export type CertificateHolder = "holder" | "former" | "unknown";

/** The key of spec.extra under which the API server records by which credential a request came. */
export const credentialKey = "authentication.kubernetes.io/credential-id";

/**
 * The certificate that a request was sent with: its SHA-256, in hexadecimal digits, as the API server records it
 * (k8s.io/apiserver pkg/authentication/request/x509, Kubernetes 1.32 and newer: `X509SHA256=<hex>`).
 *
 * @param extra spec.extra of a CertificateSigningRequest, which only the API server writes.
 * @returns `undefined`: the API server records none, or the requester has no certificate.
 */
export const certificateIn = (extra: Extra): string | undefined =>
  /^X509SHA256=([0-9a-f]{64})$/.exec(credentialIn(extra) ?? "")?.[1];

type Extra = Readonly<Record<string, readonly string[]>> | undefined;

/** The credential that a request was sent with, as the API server names it: of a token its id (`JTI=<uuid>`). */
export function credentialIn(extra: Extra): string | undefined {
  const values = extra === undefined || !Object.hasOwn(extra, credentialKey) ? [] : (extra[credentialKey] ?? []);
  return values.length === 1 ? values[0] : undefined;
}

/**
 * For how long the request of a machine's first certificate is kept, which shows that certificate before the binding lists it
 * (k8s.io/kubernetes pkg/controller/certificates/cleaner, v1.34).
 */
export const requestLifeMs = 60 * 60_000;

/**
 * @param credential as `credentialIn` reads it.
 * @param issued SHA-256 of certificates that were issued for the binding and that it may not list yet.
 * @param isNew the machine joined so recently that the request of its first certificate is still there.
 * @param askedAt when the request was made, in milliseconds since the epoch: a certificate that was good then may be over.
 */
export function holderOf(
  { certificates = [], formerExpiresAt }: Pick<NodeBinding["spec"], "certificates" | "formerExpiresAt">,
  {
    credential,
    issued,
    isNew,
    askedAt,
  }: {
    readonly credential: string | undefined;
    readonly issued: readonly string[];
    readonly isNew: boolean;
    readonly askedAt: number;
  },
): CertificateHolder {
  const isFormerGood = formerExpiresAt !== undefined && Date.parse(formerExpiresAt) > askedAt;
  if (credential === undefined) return isFormerGood ? "unknown" : "holder";
  if (certificates.includes(credential) || issued.includes(credential)) return "holder";
  // After an hour, a record without certificates is one that missed the first of them.
  return isFormerGood || certificates.length > 0 || isNew ? "former" : "holder";
}

/**
 * What a binding says with one certificate more; of the list the oldest go. The signer decides how long a certificate is
 * good, and the name is bound until its end.
 *
 * @param endsAt ISO 8601; `undefined`: not known.
 * @returns `undefined`: it says all of that already.
 */
export function withCertificate(
  { certificates = [], expiresAt }: Pick<NodeBinding["spec"], "certificates" | "expiresAt">,
  { sha256, endsAt }: { readonly sha256: string; readonly endsAt: string | undefined },
): Partial<Pick<NodeBinding["spec"], "certificates" | "expiresAt">> | undefined {
  const isListed = certificates.includes(sha256);
  const isLonger = endsAt !== undefined && Date.parse(endsAt) > Date.parse(expiresAt);
  if (isListed && !isLonger) return undefined;
  return {
    ...(isListed ? {} : { certificates: [...certificates, sha256].slice(-mostCertificates) }),
    ...(isLonger ? { expiresAt: endsAt } : {}),
  };
}

/**
 * What a binding says about certificates of a former machine when the machine with `publicKey` joins by its name.
 *
 * @param before the binding that it replaces.
 */
export function certificatesAfterJoin(
  before: NodeBinding["spec"] | undefined,
  publicKey: string,
  now: number,
): Pick<NodeBinding["spec"], "certificates" | "formerExpiresAt"> {
  if (before === undefined) return {};
  const { certificates, formerExpiresAt, expiresAt } = before;
  const isSame = before.publicKey === publicKey;
  const ends = [formerExpiresAt, isSame ? undefined : expiresAt].filter(
    (end): end is string => end !== undefined && Date.parse(end) > now,
  );
  const last = ends.toSorted((a, b) => Date.parse(a) - Date.parse(b)).at(-1);
  return {
    ...(isSame && certificates !== undefined ? { certificates } : {}),
    ...defined({ formerExpiresAt: last }),
  };
}
