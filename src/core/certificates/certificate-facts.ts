import { decodeContents } from "../../ignition/data-url.ts";
import { type Element, children, elementAt, nameOf, partsOf } from "./der.ts";

/** Facts about a certificate: its subject, its issuer and its validity period. */
export interface CertificateFacts {
  /** Distinguished names in RFC 2253 form, the most specific part first: `CN=a,O=b`. */
  readonly subject: string;
  readonly signer: string;
  /** Of the subject; empty where it has none. */
  readonly commonName: string;
  /** ISO 8601, to the second. */
  readonly notBefore: string;
  readonly notAfter: string;
}

/** One block of a PEM text, unchanged. */
export interface PemBlock {
  readonly label: string;
  /** From `-----BEGIN` to the end of the line `-----END`, followed by a line feed. */
  readonly text: string;
  /** `undefined`: the text between the lines is not base64. */
  readonly der: Uint8Array | undefined;
}

/** All blocks of a PEM text, whatever their label; text between them is dropped. */
export function pemBlocks(text: string): readonly PemBlock[] {
  return [...text.matchAll(/-----BEGIN ([^\n-]+)-----\r?\n([\s\S]*?)-----END \1-----/g)].map(
    ([whole, label = "", body = ""]) => ({
      label,
      text: `${whole.replaceAll("\r", "")}\n`,
      der: decoded(body.replaceAll(/\s/g, "")),
    }),
  );
}

function decoded(base64: string): Uint8Array | undefined {
  const contents = decodeContents({ source: `data:;base64,${base64}` });
  return contents.verdict === "decoded" ? contents.bytes : undefined;
}

/** A certificate of a bundle. */
export interface BundledCertificate extends CertificateFacts {
  /** Its PEM block. */
  readonly pem: string;
}

/** The readable certificates of a bundle, in its order; other blocks and broken ones are skipped. */
export function certificatesOf(bundle: string): readonly BundledCertificate[] {
  return pemBlocks(bundle).flatMap(({ label, der, text }) => {
    const facts = label === "CERTIFICATE" && der !== undefined ? certificateFacts(der) : undefined;
    return facts === undefined ? [] : [{ ...facts, pem: text }];
  });
}

const tags = { version: 0xa0, utcTime: 0x17 } as const;

/** RFC 5280, 4.1.2.5: two-digit years range from 1950 to 2049. */
function timeOf(element: Element | undefined): string | undefined {
  const text = String.fromCharCode(...(element?.contents ?? []));
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
      .find(({ type }) => type === "CN")?.value ?? "";
  return { subject: nameOf(subject), signer: nameOf(issuer), commonName, notBefore, notAfter };
}
