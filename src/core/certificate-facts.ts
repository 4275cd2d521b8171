import { decodeContents, textOf } from "../ignition/data-url.ts";

/** What is read of a certificate: enough to say whose it is and until when it is good. */
export interface CertificateFacts {
  /** Distinguished names as RFC 2253 writes them, the most special part first: `CN=a,O=b`. */
  readonly subject: string;
  readonly signer: string;
  /** Of the subject; empty where it has none. */
  readonly commonName: string;
  /** ISO 8601, to the second. */
  readonly notBefore: string;
  readonly notAfter: string;
}

/** One block of a PEM text, as it stands there. */
export interface PemBlock {
  readonly label: string;
  /** From `-----BEGIN` to the end of the line `-----END`, with a line feed behind it. */
  readonly text: string;
  /** `undefined`: what stands between the lines is no base64. */
  readonly der: Uint8Array | undefined;
}

/** All blocks of a PEM text, of whatever label; what stands between them is left out. */
export function pemBlocks(text: string): readonly PemBlock[] {
  return [...text.matchAll(/-----BEGIN ([^\n-]+)-----\r?\n([\s\S]*?)-----END \1-----/g)].map(([whole, label = "", body = ""]) => ({ label, text: `${whole.replaceAll("\r", "")}\n`, der: decoded(body.replaceAll(/\s/g, "")) }));
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

/** The certificates of a bundle that can be read, in its order; other blocks, and broken ones, are passed over. */
export function certificatesOf(bundle: string): readonly BundledCertificate[] {
  return pemBlocks(bundle).flatMap(({ label, der, text }) => {
    const facts = label === "CERTIFICATE" && der !== undefined ? certificateFacts(der) : undefined;
    return facts === undefined ? [] : [{ ...facts, pem: text }];
  });
}

/** One element of DER: its tag, its contents, and where the next one begins. */
interface Element {
  readonly tag: number;
  readonly contents: Uint8Array;
  readonly end: number;
}

function elementAt(bytes: Uint8Array, at: number): Element | undefined {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined) return undefined;
  let length = first;
  let begin = at + 2;
  if (first >= 0x80) {
    const count = first & 0x7f;
    // Lengths of more than four bytes belong to nothing that is a certificate.
    if (count === 0 || count > 4) return undefined;
    length = 0;
    for (const byte of bytes.subarray(begin, begin + count)) length = length * 256 + byte;
    begin += count;
  }
  const end = begin + length;
  return end > bytes.length ? undefined : { tag, contents: bytes.subarray(begin, end), end };
}

function children(bytes: Uint8Array): readonly Element[] {
  const found: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    const element = elementAt(bytes, at);
    if (element === undefined) return found;
    found.push(element);
    at = element.end;
  }
  return found;
}

const tags = { version: 0xa0, utcTime: 0x17, bmpString: 0x1e } as const;
/** Last number of 2.5.4.x → what it is called: RFC 2253, 2.3, and Go's crypto/x509/pkix (master), after which the reference writes names. */
const attributeNames: Readonly<Record<number, string>> = { 3: "CN", 5: "SERIALNUMBER", 6: "C", 7: "L", 8: "ST", 9: "STREET", 10: "O", 11: "OU", 17: "POSTALCODE" };

/** Parts of a name in the order of the certificate, each with what it is called; those of other kinds are left out. */
function partsOf(name: Element | undefined): readonly (readonly { readonly type: string; readonly value: string }[])[] {
  return children(name?.contents ?? new Uint8Array()).map((set) =>
    children(set.contents).flatMap((attribute) => {
      const [type, value] = children(attribute.contents);
      const [a, b, last = -1, ...more] = type?.contents ?? [];
      const called = a === 0x55 && b === 0x04 && more.length === 0 ? attributeNames[last] : undefined;
      if (called === undefined || value === undefined) return [];
      // Names are UTF-8 or a part of ASCII in practice; UTF-16 (BMPString) is two bytes a character.
      const bytes = value.tag === tags.bmpString ? value.contents.filter((_, index) => index % 2 === 1) : value.contents;
      return [{ type: called, value: textOf(bytes) ?? String.fromCharCode(...bytes) }];
    }),
  );
}

const escaped = (value: string) => value.replaceAll(/[,+"\\<>;]|^[ #]|(?<=.) $/g, "\\$&");

function nameOf(name: Element | undefined): string {
  return partsOf(name)
    .filter((set) => set.length > 0)
    .toReversed()
    .map((set) => set.map(({ type, value }) => `${type}=${escaped(value)}`).join("+"))
    .join(",");
}

/** RFC 5280, 4.1.2.5: years of two digits are those from 1950 to 2049. */
function timeOf(element: Element | undefined): string | undefined {
  const text = String.fromCharCode(...(element?.contents ?? []));
  const [, year = "", rest = ""] = (element?.tag === tags.utcTime ? /^(\d\d)(\d{10})Z$/ : /^(\d{4})(\d{10})Z$/).exec(text) ?? [];
  if (year === "") return undefined;
  const whole = year.length === 4 ? year : `${Number(year) < 50 ? "20" : "19"}${year}`;
  const [month, day, hour, minute, second] = rest.match(/\d\d/g) ?? [];
  return `${whole}-${month}-${day}T${hour}:${minute}:${second}Z`;
}

/**
 * Reads an X.509 certificate as far as facts about it are shown; nothing is verified.
 *
 * @param der RFC 5280, section 4.1.
 * @returns `undefined` for what is no certificate.
 */
export function certificateFacts(der: Uint8Array): CertificateFacts | undefined {
  const certificate = elementAt(der, 0);
  const [body] = children(certificate?.contents ?? new Uint8Array());
  const fields = children(body?.contents ?? new Uint8Array());
  // The version is left out of certificates of version 1.
  const [, , issuer, validity, subject] = fields[0]?.tag === tags.version ? fields.slice(1) : fields;
  const [from, until] = children(validity?.contents ?? new Uint8Array());
  const notBefore = timeOf(from);
  const notAfter = timeOf(until);
  if (notBefore === undefined || notAfter === undefined) return undefined;
  const commonName = partsOf(subject).flat().find(({ type }) => type === "CN")?.value ?? "";
  return { subject: nameOf(subject), signer: nameOf(issuer), commonName, notBefore, notAfter };
}
