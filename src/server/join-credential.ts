import { McoError } from "../api/errors.ts";
import { joinNamespace, objects } from "../api/names.ts";
import { decodeBase64 } from "../ignition/data-url.ts";
import { isRecord } from "../ignition/shape.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import type { JoinCredential } from "./config-source.ts";

/**
 * The account by which a machine that joins asks for its first certificate, and by whose name it is known which pool it
 * joins.
 */
export const bootstrapperOf = (pool: string): string => `${objects.nodeBootstrapperPrefix}${pool}`;

/** How long a credential is good that machines are given: they install themselves meanwhile. */
const lifeSeconds = 3600;

/**
 * Requests a token of a pool's account for one machine (TokenRequest). Its id is the claim `jti`, which the API server records
 * in `spec.extra` of a request that is sent with the token (k8s.io/kubernetes pkg/serviceaccount/claims.go; since 1.30).
 *
 * @throws McoError where the API server gives tokens no ids: nothing would tell the machines of a pool apart.
 */
export async function mintCredential(kube: KubeClient, pool: string, signal: AbortSignal): Promise<JoinCredential> {
  const body = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { expirationSeconds: lifeSeconds },
  };
  const target = `/api/v1/namespaces/${joinNamespace}/serviceaccounts/${encodeURIComponent(bootstrapperOf(pool))}/token`;
  const answer = (await kube.request(
    { method: "POST", target, headers: { "content-type": "application/json" }, body: JSON.stringify(body) },
    { signal },
  )) as { readonly status?: { readonly token?: string } };
  const token = answer.status?.token ?? "";
  const id = idOf(token);
  if (id === undefined) throw new McoError("MCO_JOIN_CREDENTIAL", { account: bootstrapperOf(pool) });
  return { token, id: `JTI=${id}` };
}

function idOf(token: string): string | undefined {
  // Each character is one that neither JSON nor a data URL writes in another way.
  const claims = /^[\w-]+\.([\w-]+)\.[\w-]+$/.exec(token)?.[1];
  if (claims === undefined) return undefined;
  const base64 = claims.replaceAll("-", "+").replaceAll("_", "/");
  const parsed: unknown = JSON.parse(
    new TextDecoder().decode(decodeBase64(base64.padEnd(Math.ceil(base64.length / 4) * 4, "="))),
  );
  const id = isRecord(parsed) ? parsed["jti"] : undefined;
  return typeof id === "string" && id !== "" ? id : undefined;
}
