import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { X509CertificateGenerator } from "@peculiar/x509";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** A certificate that signs itself, in PEM. `name`: `CN=first`. */
export async function selfSigned(
  name: string,
  validity: { readonly notBefore?: Date; readonly notAfter?: Date } = {},
): Promise<string> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const { notBefore = new Date("2025-01-01T00:00:00Z"), notAfter = new Date("2035-01-01T00:00:00Z") } = validity;
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    name,
    notBefore,
    notAfter,
    signingAlgorithm: algorithm,
    keys,
  });
  return `${certificate.toString("pem")}\n`;
}
