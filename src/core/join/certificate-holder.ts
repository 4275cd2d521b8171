import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import { mostCertificates, mostFormerCertificates } from "../../api/kinds/node-binding.ts";
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
 * @param credential as `certificateIn` reads it.
 * @param issued SHA-256 of certificates that were issued for the binding and that it may not list yet.
 * @param isNew the machine joined so recently that the request of its first certificate is still there.
 * @param askedAt when the request was made, in milliseconds since the epoch: a certificate that was good then may be over.
 */
export function holderOf(
  {
    certificates = [],
    formerCertificates = [],
    formerExpiresAt,
  }: Pick<NodeBinding["spec"], "certificates" | "formerCertificates" | "formerExpiresAt">,
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
  if (formerCertificates.some(({ sha256 }) => sha256 === credential)) return "former";
  if (certificates.includes(credential) || issued.includes(credential)) return "holder";
  // After an hour, a record without certificates is one that missed the first of them.
  return isFormerGood || certificates.length > 0 || isNew ? "former" : "holder";
}

/** SHA-256 of certificates that were issued to a machine, each with its end if that is known. */
export type IssuedCertificates = ReadonlyMap<string, string | undefined>;

/**
 * What a binding says with one certificate more. Of the list the one that was not used for longest goes. The signer decides how
 * long a certificate is good, and the name is bound until its end.
 *
 * @param endsAt ISO 8601; `undefined`: not known.
 * @param sentWith the certificate that it was requested with; `undefined`: not known.
 * @returns `undefined`: it says all of that already.
 */
export function withCertificate(
  { certificates = [], expiresAt }: Pick<NodeBinding["spec"], "certificates" | "expiresAt">,
  { sha256, endsAt }: { readonly sha256: string; readonly endsAt: string | undefined },
  sentWith: string | undefined,
): Partial<Pick<NodeBinding["spec"], "certificates" | "expiresAt">> | undefined {
  const isListed = certificates.includes(sha256);
  const isLonger = endsAt !== undefined && Date.parse(endsAt) > Date.parse(expiresAt);
  if (isListed && !isLonger) return undefined;
  return {
    ...(isListed ? {} : { certificates: [...usedLast(certificates, sentWith), sha256].slice(-mostCertificates) }),
    ...(isLonger ? { expiresAt: endsAt } : {}),
  };
}

/** A certificate is moved to the end of its list. */
const usedLast = (certificates: readonly string[], used: string | undefined): readonly string[] =>
  certificates.toSorted((a, b) => Number(a === used) - Number(b === used));

/**
 * The change of a binding by one certificate more of a machine that had the name before. Certificates that had ended when it was
 * requested leave the list, and then the oldest.
 *
 * @param isSure whether its machine is known to be a former one; otherwise its end alone is noted.
 * @returns `undefined`: it says all of that already.
 */
export function withFormerCertificate(
  { formerCertificates = [], formerExpiresAt }: Pick<NodeBinding["spec"], "formerCertificates" | "formerExpiresAt">,
  { sha256, endsAt }: { readonly sha256: string; readonly endsAt: string | undefined },
  { isSure, askedAt }: { readonly isSure: boolean; readonly askedAt: number },
): Partial<Pick<NodeBinding["spec"], "formerCertificates" | "formerExpiresAt">> | undefined {
  const end = endsAt ?? formerExpiresAt;
  const isNew = isSure && end !== undefined && formerCertificates.every((one) => one.sha256 !== sha256);
  const isLonger =
    endsAt !== undefined && (formerExpiresAt === undefined || Date.parse(endsAt) > Date.parse(formerExpiresAt));
  if (!isNew && !isLonger) return undefined;
  return {
    ...(isNew ? { formerCertificates: listed([...formerCertificates, { sha256, expiresAt: end }], askedAt) } : {}),
    ...(isLonger ? { formerExpiresAt: endsAt } : {}),
  };
}

type FormerCertificates = NonNullable<NodeBinding["spec"]["formerCertificates"]>;

const listed = (all: FormerCertificates, now: number): FormerCertificates =>
  all.filter(({ expiresAt }) => Date.parse(expiresAt) > now).slice(-mostFormerCertificates);

/**
 * What a binding says about certificates of former machines when the machine with `publicKey` joins by its name. It is one
 * write with that of the new key: at no time is the name another machine's, and the former certificate not listed.
 *
 * @param before the binding that it replaces.
 * @param issued certificates that were issued to its machine, of which it may not list all yet.
 */
export function certificatesAfterJoin(
  before: NodeBinding["spec"] | undefined,
  publicKey: string,
  issued: IssuedCertificates,
  now: number,
): Pick<NodeBinding["spec"], "certificates" | "formerCertificates" | "formerExpiresAt" | "exclusive"> {
  if (before === undefined) return {};
  const { certificates = [], formerCertificates = [], formerExpiresAt, expiresAt, exclusive = false } = before;
  const isSame = before.publicKey === publicKey;
  const own = isSame
    ? []
    : [...new Set([...certificates, ...issued.keys()])]
        .filter((sha256) => formerCertificates.every((one) => one.sha256 !== sha256))
        .map((sha256) => ({ sha256, expiresAt: laterOf(expiresAt, issued.get(sha256)) }));
  const former = listed([...formerCertificates, ...own], now);
  const ends = [formerExpiresAt, isSame ? undefined : expiresAt, ...own.map((one) => one.expiresAt)].filter(
    (end): end is string => end !== undefined && Date.parse(end) > now,
  );
  const last = ends.toSorted((a, b) => Date.parse(a) - Date.parse(b)).at(-1);
  return {
    ...(isSame && before.certificates !== undefined ? { certificates } : {}),
    ...(former.length > 0 ? { formerCertificates: former } : {}),
    ...defined({ formerExpiresAt: last }),
    ...(last !== undefined && (exclusive || !isSame) ? { exclusive: true } : {}),
  };
}

const laterOf = (one: string, other: string | undefined): string =>
  other !== undefined && Date.parse(other) > Date.parse(one) ? other : one;
