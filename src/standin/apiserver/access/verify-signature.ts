import { bytesToHex } from "@noble/hashes/utils.js";
import type { CertificateRequestFacts } from "../../../core/certificates/certificate-request-facts.ts";
import { children, elementAt } from "../../../core/certificates/der.ts";

type Scheme = { readonly name: "ECDSA" | "RSASSA-PKCS1-v1_5"; readonly hash: string } | { readonly name: "Ed25519" };

/** Object identifiers of signatures, in hexadecimal: RFC 5758, 3.2; RFC 8017, A.2.4; RFC 8410, 3. */
const schemes: Readonly<Record<string, Scheme>> = {
  "2a8648ce3d040302": { name: "ECDSA", hash: "SHA-256" },
  "2a8648ce3d040303": { name: "ECDSA", hash: "SHA-384" },
  "2a8648ce3d040304": { name: "ECDSA", hash: "SHA-512" },
  "2a864886f70d01010b": { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
  "2a864886f70d01010c": { name: "RSASSA-PKCS1-v1_5", hash: "SHA-384" },
  "2a864886f70d01010d": { name: "RSASSA-PKCS1-v1_5", hash: "SHA-512" },
  "2b6570": { name: "Ed25519" },
};

/** Curves and how many bytes a number of theirs has: RFC 5480, 2.1.1.1. */
const curves: Readonly<Record<string, { readonly name: string; readonly sizeBytes: number }>> = {
  "2a8648ce3d030107": { name: "P-256", sizeBytes: 32 },
  "2b81040022": { name: "P-384", sizeBytes: 48 },
  "2b81040023": { name: "P-521", sizeBytes: 66 },
};

/**
 * Whether a request for a certificate was signed with the key that it is for. What is signed in no known way is not.
 */
export async function verifySignature({
  publicKey,
  signature,
}: Pick<CertificateRequestFacts, "publicKey" | "signature">): Promise<boolean> {
  const scheme = schemes[signature.algorithm];
  if (scheme === undefined) return false;
  const [algorithm] = children(elementAt(publicKey, 0)?.contents ?? new Uint8Array());
  const curve = curves[bytesToHex(children(algorithm?.contents ?? new Uint8Array())[1]?.contents ?? new Uint8Array())];
  if (scheme.name === "ECDSA" && curve === undefined) return false;
  const kind = { ...scheme, ...(scheme.name === "ECDSA" ? { namedCurve: curve?.name ?? "" } : {}) };
  const bytes = scheme.name === "ECDSA" ? numbersOf(signature.bytes, curve?.sizeBytes ?? 0) : signature.bytes;
  try {
    const key = await crypto.subtle.importKey("spki", Uint8Array.from(publicKey), kind, false, ["verify"]);
    return await crypto.subtle.verify(kind, key, Uint8Array.from(bytes), Uint8Array.from(signature.over));
  } catch {
    // A key of another kind than the signature says, or a point that is not on the curve.
    return false;
  }
}

/** ECDSA signatures are two numbers in DER (RFC 3279, 2.2.3), and two numbers of the curve's size to Web Crypto. */
function numbersOf(der: Uint8Array, sizeBytes: number): Uint8Array {
  const numbers = children(elementAt(der, 0)?.contents ?? new Uint8Array()).slice(0, 2);
  const raw = new Uint8Array(2 * sizeBytes);
  for (const [index, { contents }] of numbers.entries()) {
    const digits = contents.subarray(Math.max(0, contents.length - sizeBytes));
    raw.set(digits, (index + 1) * sizeBytes - digits.length);
  }
  return raw;
}
