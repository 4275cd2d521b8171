import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import { mostCertificates } from "../../api/kinds/node-binding.ts";

/**
 * By whose certificate a node sends a request:
 *
 * - `holder`: by that of the machine that its name is bound to, or nothing says otherwise.
 * - `former`: by one that was not issued for that machine: of a machine that had the name before, for example.
 * - `unknown`: such a certificate is valid, and the API server does not say which one the request came with.
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
 * @param credential as `credentialIn` reads it.
 * @param issued SHA-256 of certificates that were issued for the binding and that it may not list yet.
 * @param now milliseconds since the epoch.
 */
export function holderOf(
  { certificates = [], formerExpiresAt }: Pick<NodeBinding["spec"], "certificates" | "formerExpiresAt">,
  {
    credential,
    issued,
    now,
  }: { readonly credential: string | undefined; readonly issued: readonly string[]; readonly now: number },
): CertificateHolder {
  const isFormerGood = formerExpiresAt !== undefined && Date.parse(formerExpiresAt) > now;
  if (credential === undefined) return isFormerGood ? "unknown" : "holder";
  if (certificates.includes(credential) || issued.includes(credential)) return "holder";
  // A record without certificates is one that begins.
  return isFormerGood || certificates.length > 0 ? "former" : "holder";
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
    ...(last === undefined ? {} : { formerExpiresAt: last }),
  };
}
