import { type Element, children, elementAt, latin1, nameOf, isStrictDer, partsOf } from "./der.ts";
import { readPem } from "./pem.ts";

/** Facts about a certificate: its subject, its issuer and its validity period. */
export interface CertificateFacts {
  /** Distinguished names in RFC 2253 form, the most specific part first: `CN=a,O=b`. */
  readonly subject: string;
  readonly signer: string;
  /** Of the subject, the last one as Go reads it (`crypto/x509/pkix` FillFromRDNSequence); empty where it has none. */
  readonly commonName: string;
  /** ISO 8601, to the second. */
  readonly notBefore: string;
  readonly notAfter: string;
}

/** A certificate of a bundle. */
export interface BundledCertificate extends CertificateFacts {
  /** Its PEM block. */
  readonly pem: string;
}

export type BundleReading =
  | { readonly verdict: "read"; readonly certificates: readonly BundledCertificate[] }
  | {
      readonly verdict: "unreadable";
      /** A sentence without a final full stop. */
      readonly problem: string;
    };

/**
 * The certificates of a bundle, in its order. Text between blocks and blocks of other labels are passed over, as Go
 * does it (`crypto/x509` AppendCertsFromPEM); a block that cannot be read makes the whole bundle unreadable, so that no
 * authority is believed, or lost, unseen.
 */
export function readBundle(bundle: string): BundleReading {
  const pem = readPem(bundle);
  if (pem.verdict === "unreadable") return pem;
  const certificates: BundledCertificate[] = [];
  for (const [index, { label, der, text }] of pem.blocks.entries()) {
    if (label !== "CERTIFICATE") continue;
    const facts = certificateFacts(der);
    if (facts === undefined)
      return { verdict: "unreadable", problem: `block ${index + 1} is labelled CERTIFICATE and holds none` };
    certificates.push({ ...facts, pem: text });
  }
  return { verdict: "read", certificates };
}

/** The same where a bundle that cannot be read counts as an empty one: its writer or its user reports the problem. */
export function certificatesOf(bundle: string): readonly BundledCertificate[] {
  const reading = readBundle(bundle);
  return reading.verdict === "read" ? reading.certificates : [];
}

/** Why a bundle cannot be trusted; `undefined`: it can be read and holds a certificate. */
export function bundleProblem(bundle: string): string | undefined {
  const reading = readBundle(bundle);
  if (reading.verdict === "unreadable") return `cannot be read as certificates: ${reading.problem}`;
  return reading.certificates.length === 0 ? "holds no certificate: it must be PEM" : undefined;
}

const tags = { version: 0xa0, utcTime: 0x17 } as const;

/** RFC 5280, 4.1.2.5: two-digit years range from 1950 to 2049. */
function timeOf(element: Element | undefined): string | undefined {
  const text = latin1(element?.contents ?? new Uint8Array());
  const [, year = "", rest = ""] =
    (element?.tag === tags.utcTime ? /^(\d\d)(\d{10})Z$/ : /^(\d{4})(\d{10})Z$/).exec(text) ?? [];
  if (year === "") return undefined;
  const whole = year.length === 4 ? year : `${Number(year) < 50 ? "20" : "19"}${year}`;
  const [month, day, hour, minute, second] = rest.match(/\d\d/g) ?? [];
  return `${whole}-${month}-${day}T${hour}:${minute}:${second}Z`;
}

/**
 * Reads facts from an X.509 certificate for display; it verifies nothing.
 *
 * @param der RFC 5280, section 4.1.
 * @returns `undefined` if the bytes are not a certificate.
 */
export function certificateFacts(der: Uint8Array): CertificateFacts | undefined {
  if (!isStrictDer(der)) return undefined;
  const certificate = elementAt(der, 0);
  const [body] = children(certificate?.contents ?? new Uint8Array());
  const fields = children(body?.contents ?? new Uint8Array());
  // Certificates of version 1 omit the version.
  const [, , issuer, validity, subject] = fields[0]?.tag === tags.version ? fields.slice(1) : fields;
  const [from, until] = children(validity?.contents ?? new Uint8Array());
  const notBefore = timeOf(from);
  const notAfter = timeOf(until);
  if (notBefore === undefined || notAfter === undefined) return undefined;
  const commonName =
    partsOf(subject)
      .flat()
      .findLast(({ type }) => type === "CN")?.value ?? "";
  return { subject: nameOf(subject), signer: nameOf(issuer), commonName, notBefore, notAfter };
}
