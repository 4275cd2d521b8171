import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { kubernetes } from "../api/kubernetes.ts";
import { group, labels, namespace } from "../api/names.ts";
import { type KubeObject, type Resource, timestampOf } from "../api/object.ts";
import { encodeDataUrl } from "../ignition/index.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import { type HostRecord, ports } from "./layout.ts";

/** A credential with which machines of one pool get their configuration; of its text only a hash is kept. */
type ProvisioningToken = KubeObject & { readonly spec: { readonly pool: string; readonly tokenHash: string; readonly expiresAt?: string; readonly maxUses?: number } };

const provisioningToken: Resource<ProvisioningToken> = { apiVersion: `${group}/v1alpha1`, group, version: "v1alpha1", kind: "ProvisioningToken", plural: "provisioningtokens", namespaced: false };

/** Where the config server's authority is published. */
const serverCa = { name: "machine-config-server-ca", key: "ca-bundle.crt" } as const;
/** Every Ignition that sends headers reads this version. */
const pointerVersion = "3.2.0";
const lifeMs = 7 * 86_400_000;
const tokenLetters = "abcdefghijklmnopqrstuvwxyz0123456789";

/** Letters and digits, each as likely as the others. */
function word(random: Random, length: number): string {
  let text = "";
  while (text.length < length) for (const byte of random.bytes(length)) if (byte < 252 && text.length < length) text += tokenLetters[byte % 36] ?? "";
  return text;
}

/**
 * What an empty machine is given: where its configuration is, whom to believe there, and a token for one answer. `undefined`
 * where nobody has published a config server's authority.
 *
 * @param address of the config server.
 */
export async function issuePointer(kube: KubeClient, { name, pool }: Pick<HostRecord, "name" | "pool">, { address, clock, random }: { readonly address: string; readonly clock: Clock; readonly random: Random }, signal: AbortSignal): Promise<string | undefined> {
  const ca = (await kube.get(kubernetes.ConfigMap, { name: serverCa.name, namespace }, { signal }))?.data?.[serverCa.key];
  if (ca === undefined || ca === "") return undefined;
  const before = await kube.list(provisioningToken, { labelSelector: `${labels.hostname}=${name}` }, { signal });
  const [id, secret] = [word(random, 10), word(random, 32)];
  const spec = { pool, tokenHash: bytesToHex(sha256(utf8ToBytes(secret))), expiresAt: timestampOf(clock.now() + lifeMs), maxUses: 1 };
  await kube.create(provisioningToken, { apiVersion: provisioningToken.apiVersion, kind: provisioningToken.kind, metadata: { name: id, labels: { [labels.hostname]: name } }, spec }, { signal });
  for (const { metadata } of before.items) await kube.delete(provisioningToken, metadata, { signal });
  const pointer = {
    ignition: {
      version: pointerVersion,
      config: { merge: [{ source: `https://${address}:${ports.configServer}/config/${pool}`, httpHeaders: [{ name: "Authorization", value: `Bearer ${id}.${secret}` }] }] },
      security: { tls: { certificateAuthorities: [{ source: encodeDataUrl(ca) }] } },
    },
  };
  return `${JSON.stringify(pointer)}\n`;
}
