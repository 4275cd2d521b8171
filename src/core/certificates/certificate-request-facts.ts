import { bytesToHex } from "@noble/hashes/utils.js";
import { pemBlocks } from "./certificate-facts.ts";
import { decodeContents, textOf } from "../../ignition/data-url.ts";
import { type Element, children, elementAt, partsOf } from "./der.ts";

/** What a certificate request asks for, and the bytes that its signature covers. */
export interface CertificateRequestFacts {
  /** Of the subject, in its order; several are unusual, and code that trusts the subject must check for them. */
  readonly commonNames: readonly string[];
  readonly organizations: readonly string[];
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
const tags = { sequence: 0x30, bitString: 0x03, octetString: 0x04, attributes: 0xa0 } as const;
/** GeneralName, RFC 5280, 4.2.1.6. */
const nameTags = { email: 0x81, dns: 0x82, uri: 0x86, ip: 0x87 } as const;

/**
 * Reads `spec.request` of a CertificateSigningRequest: PEM of a PKCS #10 request (RFC 2986) in base64. It
 * verifies nothing.
 */
export function readCertificateRequest(base64: string): CertificateRequestReading {
  const contents = decodeContents({ source: `data:;base64,${base64}` });
  const text = contents.verdict === "decoded" ? textOf(contents.bytes) : undefined;
  const block = pemBlocks(text ?? "").find(({ der }) => der !== undefined);
  if (block?.der === undefined || block.label !== "CERTIFICATE REQUEST")
    return unreadable("PEM block type must be CERTIFICATE REQUEST");
  const facts = certificateRequestFacts(block.der);
  return facts === undefined ? unreadable("the block is no certificate request") : { verdict: "read", facts };
}

const none = new Uint8Array();

/** @param der CertificationRequest, RFC 2986, 4.2. `undefined` if the bytes are no request. */
export function certificateRequestFacts(der: Uint8Array): CertificateRequestFacts | undefined {
  const request = elementAt(der, 0);
  if (request?.tag !== tags.sequence || request.end !== der.length) return undefined;
  const [info, algorithm, signature] = children(request.contents);
  const [, subject, publicKey, attributes] = children(info?.contents ?? none);
  if (
    info === undefined ||
    subject?.tag !== tags.sequence ||
    publicKey?.tag !== tags.sequence ||
    signature?.tag !== tags.bitString
  )
    return undefined;
  const parts = partsOf(subject).flat();
  const asked = attributes?.tag === tags.attributes ? alternativeNames(attributes) : [];
  const named = (tag: number) =>
    asked.filter((name) => name.tag === tag).map(({ contents }) => String.fromCharCode(...contents));
  const known: ReadonlySet<number> = new Set(Object.values(nameTags));
  return {
    commonNames: parts.filter(({ type }) => type === "CN").map(({ value }) => value),
    organizations: parts.filter(({ type }) => type === "O").map(({ value }) => value),
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

/** GeneralNames of all subjectAltName extensions in the request. */
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
