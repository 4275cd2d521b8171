import { bytesToHex } from "@noble/hashes/utils.js";
import { textOf } from "../../ignition/data-url.ts";
import { type Element, children, elementAt, isStrictDer, latin1, partsOf } from "./der.ts";
import { readPem, strictBase64 } from "./pem.ts";

/** What a certificate request asks for, and the bytes that its signature covers. */
export interface CertificateRequestFacts {
  /** Of the subject, in its order; several are unusual, and code that trusts the subject must check for them. */
  readonly commonNames: readonly string[];
  readonly organizations: readonly string[];
  /** How many attributes of other types its subject has. */
  readonly otherAttributes: number;
  readonly dnsNames: readonly string[];
  /** As text: `10.0.0.1`, `fd00::1`. */
  readonly ipAddresses: readonly string[];
  readonly emailAddresses: readonly string[];
  readonly uris: readonly string[];
  /** Number of requested names of other kinds. */
  readonly otherNames: number;
  /** SubjectPublicKeyInfo, in DER. */
  readonly publicKey: Uint8Array;
  readonly signature: {
    /** Object identifier of the algorithm, its bytes in hexadecimal. */
    readonly algorithm: string;
    readonly over: Uint8Array;
    readonly bytes: Uint8Array;
  };
}

export type CertificateRequestReading =
  | { readonly verdict: "read"; readonly facts: CertificateRequestFacts }
  | { readonly verdict: "unreadable"; readonly reason: string };

const unreadable = (reason: string) => ({ verdict: "unreadable", reason }) as const;

/** DER, in hexadecimal: RFC 2985, 5.4.2 and RFC 5280, 4.2.1.6. */
const oids = { extensionRequest: "2a864886f70d01090e", subjectAltName: "551d11" } as const;
const tags = { sequence: 0x30, bitString: 0x03, octetString: 0x04, oid: 0x06, set: 0x31, attributes: 0xa0 } as const;
/** GeneralName, RFC 5280, 4.2.1.6. */
const nameTags = { email: 0x81, dns: 0x82, uri: 0x86, ip: 0x87 } as const;

/**
 * Reads `spec.request` of a CertificateSigningRequest: PEM of a PKCS #10 request (RFC 2986) in base64. No signature is
 * verified.
 *
 * Signers read the text with another reader than ours. Therefore it is accepted only in the one form that leaves no
 * choice: one block, with nothing before, behind or inside of it but base64, and DER in its only encoding.
 */
export function readCertificateRequest(base64: string): CertificateRequestReading {
  if (base64.length > mostRequestCharacters)
    return unreadable(`the request is longer than ${mostRequestCharacters} characters`);
  const bytes = strictBase64(base64);
  const text = bytes === undefined ? undefined : textOf(bytes);
  if (text === undefined) return unreadable("the request is not base64 of a text");
  const pem = readPem(text);
  if (pem.verdict === "unreadable") return unreadable(pem.problem);
  const [block, ...more] = pem.blocks;
  if (block === undefined || block.label !== label) return unreadable(`PEM block type must be ${label}`);
  if (more.length > 0) return unreadable(`the request has ${more.length + 1} PEM blocks; it must have one`);
  if (text !== block.text && text !== block.text.slice(0, -1))
    return unreadable("the request must be its PEM block alone: no text around it, no blanks, no carriage returns");
  const facts = certificateRequestFacts(block.der);
  return facts === undefined
    ? unreadable(`the block is no certificate request in DER, or names what a certificate of a node cannot hold`)
    : { verdict: "read", facts };
}

const label = "CERTIFICATE REQUEST";

/** Many times what a kubelet sends. Accounts that machines join with create requests of any size. */
export const mostRequestCharacters = 32 * 1024;

const none = new Uint8Array();

/** @param der CertificationRequest, RFC 2986, 4.2. `undefined` if the bytes are no request. */
export function certificateRequestFacts(der: Uint8Array): CertificateRequestFacts | undefined {
  const request = isStrictDer(der) ? elementAt(der, 0) : undefined;
  if (request?.tag !== tags.sequence) return undefined;
  const [info, algorithm, signature] = children(request.contents);
  const [, subject, publicKey, attributes] = children(info?.contents ?? none);
  if (
    info === undefined ||
    subject?.tag !== tags.sequence ||
    publicKey?.tag !== tags.sequence ||
    signature?.tag !== tags.bitString ||
    !isPlainName(subject)
  )
    return undefined;
  const parts = partsOf(subject).flat();
  const asked = attributes?.tag === tags.attributes ? alternativeNames(attributes) : [];
  if (asked.some(({ tag, contents }) => textTags.has(tag) && !isAscii(contents))) return undefined;
  const named = (tag: number) => asked.filter((name) => name.tag === tag).map(({ contents }) => latin1(contents));
  const known: ReadonlySet<number> = new Set(Object.values(nameTags));
  return {
    commonNames: parts.filter(({ type }) => type === "CN").map(({ value }) => value),
    organizations: parts.filter(({ type }) => type === "O").map(({ value }) => value),
    otherAttributes:
      children(subject.contents).flatMap(({ contents }) => children(contents)).length -
      parts.filter(({ type }) => type === "CN" || type === "O").length,
    dnsNames: named(nameTags.dns),
    ipAddresses: asked.filter(({ tag }) => tag === nameTags.ip).map(({ contents }) => addressText(contents)),
    emailAddresses: named(nameTags.email),
    uris: named(nameTags.uri),
    otherNames: asked.filter(({ tag }) => !known.has(tag)).length,
    publicKey: publicKey.whole,
    // The first byte of a bit string counts the unused bits of its last byte.
    signature: {
      algorithm: bytesToHex(children(algorithm?.contents ?? none)[0]?.contents ?? none),
      over: info.whole,
      bytes: signature.contents.subarray(1),
    },
  };
}

const stringTags = { utf8: 0x0c, printable: 0x13, ia5: 0x16 } as const;
const textTags: ReadonlySet<number> = new Set([nameTags.email, nameTags.dns, nameTags.uri]);

const isAscii = (bytes: Uint8Array) => bytes.every((byte) => byte > 0x20 && byte < 0x7f);

/**
 * Whether every value of a name is of a string type that all readers decode alike. They differ in the others: two bytes
 * or one for a character, Latin-1 or UTF-8.
 */
function isPlainName(name: Element): boolean {
  return children(name.contents).every(
    (set) =>
      set.tag === tags.set &&
      children(set.contents).every((attribute) => {
        const [type, value, ...more] = children(attribute.contents);
        if (attribute.tag !== tags.sequence || type?.tag !== tags.oid || value === undefined || more.length > 0)
          return false;
        const text = textOf(value.contents);
        switch (value.tag) {
          case stringTags.utf8:
            return text !== undefined;
          case stringTags.printable:
            return text !== undefined && /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(text);
          case stringTags.ia5:
            return value.contents.every((byte) => byte < 0x80);
          default:
            return false;
        }
      }),
  );
}

/** GeneralNames of every extension that asks for some. */
function alternativeNames(attributes: Element): readonly Element[] {
  const extensions = children(attributes.contents)
    .map(({ contents }) => children(contents))
    .filter(([type]) => bytesToHex(type?.contents ?? none) === oids.extensionRequest)
    .flatMap(([, values]) => children(values?.contents ?? none))
    .flatMap(({ contents }) => children(contents));
  return extensions.flatMap(({ contents }) => {
    const [type, ...rest] = children(contents);
    if (bytesToHex(type?.contents ?? none) !== oids.subjectAltName) return [];
    // The critical flag may stand between them.
    const value = rest.find(({ tag }) => tag === tags.octetString);
    return children(elementAt(value?.contents ?? none, 0)?.contents ?? none);
  });
}

/** IPv6 in RFC 5952 form; bytes of any other length are shown unchanged. */
function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  if (bytes.length !== 16) return `0x${bytesToHex(bytes)}`;
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((bytes[2 * index] ?? 0) * 256 + (bytes[2 * index + 1] ?? 0)).toString(16),
  ).join(":");
  const zeros = (groups.match(/(?<=^|:)0(?::0)+(?=:|$)/g) ?? []).toSorted((a, b) => b.length - a.length)[0];
  if (zeros === undefined) return groups;
  const at = groups.search(new RegExp(`(?<=^|:)${zeros}(?=:|$)`));
  return `${groups.slice(0, at).replace(/:$/, "")}::${groups.slice(at + zeros.length).replace(/^:/, "")}`;
}
