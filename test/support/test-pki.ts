import "reflect-metadata";
import { webcrypto } from "node:crypto";
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
  type X509Certificate,
} from "@peculiar/x509";

export interface Identity {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate authority that lives as long as a test. */
export interface TestAuthority {
  readonly certificate: string;
  server(address: string): Promise<Identity>;
  client(commonName: string, organizations: readonly string[]): Promise<Identity>;
  /** A P-256 key in PEM that signs tokens. */
  signingKey(): Promise<string>;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const hour = 3_600_000;

export async function testAuthority(): Promise<TestAuthority> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const from = new Date(Date.now() - hour);
  const until = new Date(Date.now() + 24 * hour);
  let serial = 1;
  const root = await X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    name: "CN=test-ca",
    notBefore: from,
    notAfter: until,
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 1, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.digitalSignature, true),
    ],
  });
  const keyPem = async (key: webcrypto.CryptoKey) =>
    PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");
  const pem = (certificate: X509Certificate) => `${certificate.toString("pem")}\n`;

  async function issue(
    subject: string,
    usage: string,
    extensions: SubjectAlternativeNameExtension[] = [],
  ): Promise<Identity> {
    const own = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    serial += 1;
    const certificate = await X509CertificateGenerator.create({
      serialNumber: serial.toString(16).padStart(2, "0"),
      subject,
      issuer: root.subject,
      notBefore: from,
      notAfter: until,
      signingAlgorithm: algorithm,
      publicKey: own.publicKey,
      signingKey: keys.privateKey,
      extensions: [new ExtendedKeyUsageExtension([usage]), ...extensions],
    });
    return { certificate: pem(certificate), key: await keyPem(own.privateKey) };
  }

  return {
    certificate: pem(root),
    server: (address) =>
      issue("CN=apiserver", ExtendedKeyUsage.serverAuth, [
        new SubjectAlternativeNameExtension([{ type: "ip", value: address }]),
      ]),
    client: (commonName, organizations) =>
      issue([`CN=${commonName}`, ...organizations.map((one) => `O=${one}`)].join(", "), ExtendedKeyUsage.clientAuth),
    signingKey: async () =>
      keyPem((await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"])).privateKey),
  };
}

/** A certificate request in the form of `spec.request` of a CertificateSigningRequest. */
export async function signingRequest(
  subject: string,
  more: {
    readonly names?: readonly { readonly type: "dns" | "ip" | "email" | "url"; readonly value: string }[];
    readonly curve?: "P-256" | "P-384" | "P-521";
  } = {},
): Promise<string> {
  const own = { ...algorithm, namedCurve: more.curve ?? "P-256" };
  const keys = await webcrypto.subtle.generateKey(own, true, ["sign", "verify"]);
  const extensions = more.names === undefined ? [] : [new SubjectAlternativeNameExtension([...more.names])];
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: subject,
    keys,
    signingAlgorithm: own,
    extensions,
  });
  return Buffer.from(request.toString("pem")).toString("base64");
}
