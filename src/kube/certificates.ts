import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Random } from "../ports/random.ts";

type CryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const dayMs = 86_400_000;
/** Backdating: clients with a slow clock must not refuse a new certificate. */
const backdateMs = 300_000;
/** Long enough for a cluster on a laptop, short enough to bound the damage of a lost key. */
const lifeDays = { ca: 730, leaf: 365 } as const;

export interface RequestedKey {
  /** PEM of the PKCS #10 request. */
  readonly request: string;
  /** PEM, PKCS #8 */
  readonly key: string;
}

export interface KeyPair {
  /** PEM */
  readonly certificate: string;
  /** PEM, PKCS #8 */
  readonly key: string;
}

export interface Issue {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  /** `peer`: client and server, for a server that also connects to itself. */
  readonly usage: "client" | "server" | "peer";
  /** DNS names and addresses of the server. */
  readonly hosts?: readonly string[];
}

/** The contents of a certificate for a requester's own key. */
export interface SignOrder {
  /** PEM of the request; only its key is used. */
  readonly request: string;
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  /** Values of `spec.usages` of a CertificateSigningRequest. */
  readonly usages: readonly string[];
  readonly lifeSeconds: number;
}

export interface Authority extends KeyPair {
  issue(what: Issue): Promise<KeyPair>;
  /** A certificate (PEM) for the key of a request; `undefined` if the request was not signed with that key. */
  sign(order: SignOrder): Promise<string | undefined>;
}

function pem(label: string, data: ArrayBuffer): string {
  const base64 = btoa(String.fromCharCode(...new Uint8Array(data)));
  return `-----BEGIN ${label}-----\n${base64.replaceAll(/(.{64})/g, "$1\n").trimEnd()}\n-----END ${label}-----\n`;
}

const keyPem = async (key: CryptoKey) => pem("PRIVATE KEY", await crypto.subtle.exportKey("pkcs8", key));

function keyFromPem(text: string): Promise<CryptoKey> {
  const data = Uint8Array.from(atob(text.replaceAll(/-----[^-]+-----|\s/g, "")), (character) =>
    character.charCodeAt(0),
  );
  return crypto.subtle.importKey("pkcs8", data, algorithm, true, ["sign"]);
}

const serial = (random: Random) =>
  `00${[...random.bytes(15)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
const isAddress = (host: string) => /^[\d.]+$/.test(host) || host.includes(":");

/** Creates a certificate authority, or loads the one in `existing`. */
export async function certificateAuthority(options: {
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly existing?: KeyPair;
}): Promise<Authority> {
  const { clock, random } = options;
  const pair = options.existing ?? (await makeCa());
  const certificate = new x509.X509Certificate(pair.certificate);
  const signingKey = await keyFromPem(pair.key);

  async function makeCa(): Promise<KeyPair> {
    const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const made = await x509.X509CertificateGenerator.createSelfSigned({
      serialNumber: serial(random),
      name: `CN=${options.name}`,
      notBefore: new Date(clock.now() - backdateMs),
      notAfter: new Date(clock.now() + lifeDays.ca * dayMs),
      signingAlgorithm: algorithm,
      keys,
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return { certificate: `${made.toString("pem")}\n`, key: await keyPem(keys.privateKey) };
  }

  return {
    ...pair,
    async issue(what) {
      const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
      const subject = [
        { CN: [what.commonName] },
        ...(what.organizations ?? []).map((organization) => ({ O: [organization] })),
      ];
      const made = await x509.X509CertificateGenerator.create({
        serialNumber: serial(random),
        subject: new x509.Name(subject).toString(),
        issuer: certificate.subject,
        notBefore: new Date(clock.now() - backdateMs),
        notAfter: new Date(clock.now() + lifeDays.leaf * dayMs),
        signingAlgorithm: algorithm,
        publicKey: keys.publicKey,
        signingKey,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension([
            ...(what.usage === "client" ? [] : [x509.ExtendedKeyUsage.serverAuth]),
            ...(what.usage === "server" ? [] : [x509.ExtendedKeyUsage.clientAuth]),
          ]),
          await x509.AuthorityKeyIdentifierExtension.create(certificate),
          ...(what.hosts === undefined
            ? []
            : [
                new x509.SubjectAlternativeNameExtension(
                  what.hosts.map((value) => ({ type: isAddress(value) ? ("ip" as const) : ("dns" as const), value })),
                ),
              ]),
        ],
      });
      return { certificate: `${made.toString("pem")}\n`, key: await keyPem(keys.privateKey) };
    },
    async sign(order) {
      const request = new x509.Pkcs10CertificateRequest(order.request);
      if (!(await request.verify().catch(() => false))) return undefined;
      // A certificate must not outlive its authority.
      const until = Math.min(clock.now() + order.lifeSeconds * 1000, certificate.notAfter.getTime());
      const extended = order.usages.flatMap((usage) => extendedUsages[usage] ?? []);
      const names = [
        ...order.dnsNames.map((value) => ({ type: "dns" as const, value })),
        ...order.ipAddresses.map((value) => ({ type: "ip" as const, value })),
      ];
      const made = await x509.X509CertificateGenerator.create({
        serialNumber: serial(random),
        subject: new x509.Name([
          ...order.organizations.map((organization) => ({ O: [organization] })),
          { CN: [order.commonName] },
        ]).toString(),
        issuer: certificate.subject,
        notBefore: new Date(clock.now() - backdateMs),
        notAfter: new Date(until),
        signingAlgorithm: algorithm,
        publicKey: request.publicKey,
        signingKey,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(
            order.usages.reduce((flags, usage) => flags | (keyUsages[usage] ?? 0), 0),
            true,
          ),
          ...(extended.length === 0 ? [] : [new x509.ExtendedKeyUsageExtension(extended)]),
          await x509.AuthorityKeyIdentifierExtension.create(certificate),
          ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]),
        ],
      });
      return `${made.toString("pem")}\n`;
    },
  };
}

/** `spec.usages` of kubelet requests → key usages in the certificate. */
const keyUsages: Readonly<Record<string, number>> = {
  "digital signature": x509.KeyUsageFlags.digitalSignature,
  "key encipherment": x509.KeyUsageFlags.keyEncipherment,
};
const extendedUsages: Readonly<Record<string, string>> = {
  "client auth": x509.ExtendedKeyUsage.clientAuth,
  "server auth": x509.ExtendedKeyUsage.serverAuth,
};

/** Creates a key and requests a certificate for it, as a joining kubelet does. */
export async function requestCertificate(what: {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly hosts?: readonly string[];
}): Promise<RequestedKey> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: new x509.Name([
      ...what.organizations.map((organization) => ({ O: [organization] })),
      { CN: [what.commonName] },
    ]).toString(),
    keys,
    signingAlgorithm: algorithm,
    extensions:
      what.hosts === undefined
        ? []
        : [
            new x509.SubjectAlternativeNameExtension(
              what.hosts.map((value) => ({ type: isAddress(value) ? ("ip" as const) : ("dns" as const), value })),
            ),
          ],
  });
  return { request: `${request.toString("pem")}\n`, key: await keyPem(keys.privateKey) };
}

/** Reads a pair from `<folder>/<name>.{crt,key}`, or creates and stores it, the key readable by this user only. */
export async function storedPair(
  files: Files,
  folder: string,
  name: string,
  make: () => Promise<KeyPair>,
): Promise<KeyPair> {
  const certificate = await files.readText(`${folder}/${name}.crt`);
  const key = await files.readText(`${folder}/${name}.key`);
  if (certificate !== undefined && key !== undefined) return { certificate, key };
  const pair = await make();
  await files.write(`${folder}/${name}.key`, pair.key, { mode: 0o600 });
  await files.write(`${folder}/${name}.crt`, pair.certificate);
  return pair;
}
