import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { type Secret, kubernetes } from "../api/foreign/kubernetes.ts";
import { fieldManagers, labels, namespace } from "../api/names.ts";
import { certificateAuthority } from "../kube/certificates.ts";
import type { Context } from "../kube/controller.ts";
import { ours } from "./cluster-sources.ts";

const addressesAnnotation = "machineconfiguration.openshift.io/certificate-addresses";
const expiresAnnotation = "machineconfiguration.openshift.io/certificate-expires";
/** Half of a certificate's life (see certificates.ts): it is replaced long before anyone minds. */
const replaceAfterMs = 180 * 86_400_000;

/** Addresses of the machines of the control plane. */
export const controlPlaneAddresses = ({ caches }: Context): readonly string[] =>
  caches
    .of(kubernetes.Node)
    .list()
    .filter(
      (node) =>
        node.metadata.labels?.[labels.masterRole] !== undefined ||
        node.metadata.labels?.[labels.controlPlaneRole] !== undefined,
    )
    .flatMap((node) =>
      (node.status?.addresses ?? []).filter(({ type }) => type === "InternalIP").map(({ address }) => address),
    )
    .sort();

/**
 * The Secret with which a component serves on the addresses of the control plane: made once, and made again when it is
 * half through its life or a control-plane machine has an address that it does not vouch for.
 *
 * @returns `undefined` while no control-plane machine has an address.
 */
export async function servingSecret(
  { component, secret }: { readonly component: string; readonly secret: string },
  context: Context,
): Promise<{ readonly hash: string } | undefined> {
  const addresses = controlPlaneAddresses(context);
  if (addresses.length === 0) return undefined;
  const existing =
    context.caches.of(kubernetes.Secret, ours).get(`${namespace}/${secret}`) ??
    (await context.kube.get(kubernetes.Secret, { name: secret, namespace }, context));
  const covered = new Set((existing?.metadata.annotations?.[addressesAnnotation] ?? "").split(","));
  const fresh = Date.parse(existing?.metadata.annotations?.[expiresAnnotation] ?? "") > context.clock.now();
  const hashOf = ({ data }: Secret) => bytesToHex(sha256(utf8ToBytes(data?.["tls.crt"] ?? ""))).slice(0, 16);
  if (existing?.data?.["tls.crt"] !== undefined && fresh && addresses.every((address) => covered.has(address)))
    return { hash: hashOf(existing) };

  const authority = await certificateAuthority({ name: `${component}-ca`, ...context });
  const pair = await authority.issue({
    commonName: component,
    usage: "server",
    hosts: [...addresses, `${component}.${namespace}.svc`],
  });
  const made = await context.kube.apply(
    kubernetes.Secret,
    {
      metadata: {
        name: secret,
        namespace,
        annotations: {
          [addressesAnnotation]: addresses.join(","),
          [expiresAnnotation]: new Date(context.clock.now() + replaceAfterMs).toISOString(),
        },
      },
      type: "kubernetes.io/tls",
      data: { "tls.crt": btoa(pair.certificate), "tls.key": btoa(pair.key), "ca.crt": btoa(authority.certificate) },
    },
    { owner: fieldManagers.operator, signal: context.signal },
  );
  return { hash: hashOf(made) };
}
