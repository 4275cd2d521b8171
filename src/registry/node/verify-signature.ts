import { type KeyObject, createPublicKey, verify } from "node:crypto";
import {
  type FoundSignature,
  type KeyVerdict,
  type SignatureKey,
  type VerifySignature,
  mostKeyCharacters,
} from "../../core/images/signature-policy.ts";

/** Smallest RSA key that is believed. Source: NIST SP 800-131A. */
const minRsaBits = 2048;
const curves = ["prime256v1", "secp384r1"];

type Usable = { readonly key: KeyObject } | { readonly unusable: string };

/**
 * A verifier for keys of a policy: ECDSA on P-256 and P-384, RSA (PKCS #1 v1.5), each over SHA-256, and Ed25519: what
 * container engines accept of sigstore signatures. Source: containers/image signature/internal/sigstore_payload.go
 * (main).
 *
 * Each key is read when it is needed first, and signatures are verified on a thread of their own.
 *
 * @param keys the keys that may be asked for. @param read text of a file on the machine.
 */
export async function signatureVerifier(
  keys: readonly SignatureKey[],
  read: (path: string) => Promise<string | undefined>,
): Promise<VerifySignature> {
  const wanted = new Set(keys.map(nameOf));
  const known = new Map<string, Usable>();
  return async (key, found): Promise<KeyVerdict> => {
    const name = nameOf(key);
    const before = known.get(name);
    const reading = before ?? (wanted.has(name) ? await usable(key, read) : { unusable: "the key was not read" });
    known.set(name, reading);
    if ("unusable" in reading) return reading;
    return (await holds(reading.key, found)) ? "valid" : "invalid";
  };
}

const holds = (key: KeyObject, { payload, signature }: FoundSignature): Promise<boolean> =>
  new Promise((resolve) => {
    const algorithm = key.asymmetricKeyType === "ed25519" ? null : "sha256";
    verify(algorithm, payload, key, signature, (error, isValid) => resolve(error === null && isValid));
  });

const nameOf = (key: SignatureKey) => ("path" in key ? `path ${key.path}` : `pem ${key.pem}`);

async function usable(key: SignatureKey, read: (path: string) => Promise<string | undefined>): Promise<Usable> {
  const what = "path" in key ? `the key ${key.path}` : "the key in the policy";
  const pem = "path" in key ? await read(key.path) : key.pem;
  if (pem === undefined) return { unusable: `${what} cannot be read` };
  if (pem.length > mostKeyCharacters) return { unusable: `${what} has more than ${mostKeyCharacters} characters` };
  let parsed: KeyObject;
  try {
    if (!pem.includes("PUBLIC KEY")) return { unusable: `${what} is no public key` };
    parsed = createPublicKey(pem);
  } catch {
    return { unusable: `${what} is no public key` };
  }
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = parsed;
  const supported =
    type === "ed25519" ||
    (type === "ec" && curves.includes(details?.namedCurve ?? "")) ||
    (type === "rsa" && (details?.modulusLength ?? 0) >= minRsaBits);
  return supported ? { key: parsed } : { unusable: `${what} is of a kind that is not supported` };
}
