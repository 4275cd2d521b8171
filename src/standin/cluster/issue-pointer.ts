import { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { labels, namespace, objects } from "../../api/names.ts";
import { pointerConfig } from "../../core/join/pointer-config.ts";
import { newToken } from "../../core/join/provisioning-token.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Random } from "../../ports/random.ts";
import { type HostRecord, ports } from "./layout.ts";

const authorityKey = "ca-bundle.crt";
/** A machine that cannot be reached for a while still finds its way. */
const lifeMs = 7 * 86_400_000;

/**
 * What an empty machine is given: the address of its configuration, the authority to trust there, and a token for one
 * answer. `undefined` if no config server's authority is published.
 *
 * @param address of the config server; `hostAddress` is the machine's own.
 */
export async function issuePointer(
  kube: KubeClient,
  { name, pool }: Pick<HostRecord, "name" | "pool">,
  {
    address,
    hostAddress,
    clock,
    random,
  }: { readonly address: string; readonly hostAddress: string; readonly clock: Clock; readonly random: Random },
  signal: AbortSignal,
): Promise<string | undefined> {
  const authorities = (await kube.get(kubernetes.ConfigMap, { name: objects.configServerCa, namespace }, { signal }))
    ?.data?.[authorityKey];
  if (authorities === undefined || authorities === "") return undefined;
  const before = await kube.list(ProvisioningToken, { labelSelector: `${labels.hostname}=${name}` }, { signal });
  const { text, object } = newToken(random, {
    pool,
    expiresAt: clock.now() + lifeMs,
    maxUses: 1,
    node: name,
    addresses: [hostAddress],
  });
  await kube.create(
    ProvisioningToken,
    { ...object, metadata: { ...object.metadata, labels: { ...object.metadata.labels, [labels.hostname]: name } } },
    { signal },
  );
  for (const { metadata } of before.items) await kube.delete(ProvisioningToken, metadata, { signal });
  return `${JSON.stringify(pointerConfig({ server: `${address}:${ports.configServer}`, pool, token: text, authorities }))}\n`;
}
