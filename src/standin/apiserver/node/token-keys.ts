import { createHash, createPrivateKey, createPublicKey, createSign, createVerify } from "node:crypto";
import type { TokenKeys } from "../access/service-account-tokens.ts";

/** Token keys of a private key in PEM: P-256 signs ES256, RSA signs RS256. Throws for any other key. */
export function pemTokenKeys(pem: string): TokenKeys {
  const key = createPrivateKey(pem);
  const algorithm = key.asymmetricKeyType === "ec" ? "ES256" : key.asymmetricKeyType === "rsa" ? "RS256" : undefined;
  if (algorithm === undefined)
    throw new TypeError(`a key of type ${key.asymmetricKeyType ?? "unknown"} cannot sign tokens`);
  const publicKey = createPublicKey(key);
  // JWTs carry the two numbers of an ECDSA signature side by side, not as DER (RFC 7518 §3.4).
  const encoding = algorithm === "ES256" ? ({ dsaEncoding: "ieee-p1363" } as const) : {};
  return {
    algorithm,
    keyId: createHash("sha256")
      .update(publicKey.export({ type: "spki", format: "der" }))
      .digest("base64url"),
    sign: (data) =>
      createSign("sha256")
        .update(data)
        .sign({ key, ...encoding }),
    // A P-256 signature has 64 bytes; Node.js throws at any other length.
    verify: (data, signature) =>
      (algorithm !== "ES256" || signature.length === 64) &&
      createVerify("sha256")
        .update(data)
        .verify({ key: publicKey, ...encoding }, signature),
  };
}
