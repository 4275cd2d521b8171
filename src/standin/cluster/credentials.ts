import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { Random } from "../../ports/random.ts";
import { type Addresses, type Layout, kubeletClientName, ports } from "./layout.ts";
import { type Authority, type KeyPair, certificateAuthority, storedPair } from "../../kube/certificates.ts";

export interface ClusterCredentials {
  readonly authority: Authority;
  readonly apiServer: KeyPair;
  readonly kubeletClient: KeyPair;
  /** PEM of the key that signs service-account tokens. */
  readonly tokenKey: string;
  readonly serverUrl: string;
}

const base64 = (text: string) => btoa(text);

export function kubeconfigText(options: {
  readonly server: string;
  readonly ca: string;
  readonly user: string;
  readonly pair: KeyPair;
}): string {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "mco",
    clusters: [{ name: "mco", cluster: { server: options.server, "certificate-authority-data": base64(options.ca) } }],
    users: [
      {
        name: options.user,
        user: {
          "client-certificate-data": base64(options.pair.certificate),
          "client-key-data": base64(options.pair.key),
        },
      },
    ],
    contexts: [{ name: "mco", context: { cluster: "mco", user: options.user, namespace: "default" } }],
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

export const clusterAuthority = "mco-cluster-ca";

/**
 * Certificate and key of the authority that everybody in the cluster is vouched for by; made where they are not there.
 */
export const clusterAuthorityPair = (
  files: Files,
  { pki }: Layout,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): Promise<KeyPair> =>
  storedPair(files, pki, "cluster-ca", () => certificateAuthority({ name: clusterAuthority, clock, random }));

/** Makes what the cluster's processes prove themselves with, once; a second call finds it. */
export async function clusterCredentials(options: {
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  readonly layout: Layout;
  readonly addresses: Addresses;
}): Promise<ClusterCredentials> {
  const { files, clock, random, layout, addresses } = options;
  const { pki } = layout;
  await files.makeDirectory(pki, { mode: 0o700 });
  const root = await clusterAuthorityPair(files, layout, { clock, random });
  const authority = await certificateAuthority({ name: clusterAuthority, clock, random, existing: root });
  const serverUrl = `https://${addresses.apiServer}:${ports.apiServer}`;
  const apiServer = await storedPair(files, pki, "apiserver", () =>
    authority.issue({
      commonName: "kube-apiserver",
      usage: "server",
      hosts: [
        addresses.apiServer,
        "127.0.0.1",
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
      ],
    }),
  );
  const kubeletClient = await storedPair(files, pki, "kubelet-client", () =>
    authority.issue({ commonName: kubeletClientName, usage: "client" }),
  );
  // Any P-256 key will do for signing tokens; its certificate is of no use to anyone.
  const tokens = await storedPair(files, pki, "tokens", () =>
    authority.issue({ commonName: "service-account-tokens", usage: "client" }),
  );
  const issuer = { authority, serverUrl };
  await writeKubeconfig(files, issuer, { name: "admin", organization: "system:masters", path: layout.kubeconfig });
  await writeKubeconfig(files, issuer, {
    name: "cluster-controllers",
    organization: "system:masters",
    path: `${pki}/cluster-controllers.kubeconfig`,
  });
  return { authority, apiServer, kubeletClient, tokenKey: tokens.key, serverUrl };
}

type Issuer = Pick<ClusterCredentials, "authority" | "serverUrl">;

/** Writes a kubeconfig with a client certificate of its own, unless it is there; returns its path. */
export async function writeKubeconfig(
  files: Files,
  { authority, serverUrl }: Issuer,
  who: { readonly name: string; readonly organization?: string; readonly path: string },
): Promise<string> {
  const { name, organization, path } = who;
  if ((await files.stat(path)) === undefined) {
    const pair = await authority.issue({
      commonName: name,
      organizations: organization === undefined ? [] : [organization],
      usage: "client",
    });
    await files.write(path, kubeconfigText({ server: serverUrl, ca: authority.certificate, user: name, pair }), {
      mode: 0o600,
    });
  }
  return path;
}

/** Makes a host's kubeconfig (as `system:node:<name>`) and the certificate that it serves logs with. */
export async function hostCredentials(
  files: Files,
  layout: Layout,
  credentials: Issuer,
  host: { readonly name: string; readonly address: string },
): Promise<void> {
  await writeKubeconfig(files, credentials, {
    name: `system:node:${host.name}`,
    organization: "system:nodes",
    path: `${layout.pki}/host-${host.name}.kubeconfig`,
  });
  await storedPair(files, layout.pki, `host-${host.name}`, () =>
    credentials.authority.issue({
      commonName: `system:node:${host.name}`,
      organizations: ["system:nodes"],
      usage: "server",
      hosts: [host.address, host.name],
    }),
  );
}
