import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import type { Clock } from "../../../ports/clock.ts";
import type { Random } from "../../../ports/random.ts";
import { decodeBase64Url, decodeBase64UrlBytes, encodeBase64Url } from "../http/base64url.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import type { KubeObject, UserInfo } from "../schema/contract.ts";
import { isObject } from "../schema/json-values.ts";

/** Signs and checks tokens. Both are synchronous, so that a request is decided in one go. */
export interface TokenKeys {
  readonly algorithm: "ES256" | "RS256" | "HS256";
  readonly keyId: string;
  sign(data: Uint8Array): Uint8Array;
  verify(data: Uint8Array, signature: Uint8Array): boolean;
}

/** Keys without a key pair: for tests and the simulation, where nothing else verifies the tokens. */
export function sharedSecretKeys(secret: Uint8Array): TokenKeys {
  const sign = (data: Uint8Array) => hmac(sha256, secret, data);
  return {
    algorithm: "HS256",
    keyId: "shared",
    sign,
    verify(data, signature) {
      const expected = sign(data);
      let difference = expected.length ^ signature.length;
      for (const [index, byte] of expected.entries()) difference |= byte ^ (signature[index] ?? 0);
      return difference === 0;
    },
  };
}

export interface TokenIssuerOptions {
  readonly keys: TokenKeys;
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly live: LiveObjects;
  readonly clock: Clock;
  readonly random: Random;
}

export interface TokenRequestOptions {
  readonly serviceAccount: KubeObject;
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
  readonly pod: KubeObject | undefined;
  readonly secret: KubeObject | undefined;
  /** The object that the token is bound to without a pod. */
  readonly node?: KubeObject | undefined;
}

export type TokenCheck =
  | { readonly verdict: "valid"; readonly user: UserInfo; readonly audiences: readonly string[] }
  | { readonly verdict: "invalid"; readonly reason: string };

/** Tokens of service accounts: JWTs as `k8s.io/kubernetes pkg/serviceaccount/claims.go (master)` makes them. */
export interface TokenIssuer {
  readonly audiences: readonly string[];
  issue(request: TokenRequestOptions): { readonly token: string; readonly expiresAtMs: number };
  /** Whether {@link check} found its signature good before, and need not verify it. */
  isVerified(token: string): boolean;
  /** `audiences`: the token must be for one of them; empty means the server's own. */
  check(token: string, audiences: readonly string[]): TokenCheck;
}

export function tokenIssuer({ keys, issuer, audiences: own, live, clock, random }: TokenIssuerOptions): TokenIssuer {
  const bytes = (text: string) => new TextEncoder().encode(text);
  // The signature of a token does not change; most requests bring the same few tokens.
  const checked = new Map<string, Readonly<Record<string, unknown>>>();
  /** Why tokens are none of this server, by their digests: whoever sends one mostly sends it again. */
  const refused = new Map<string, string>();
  const rememberedLimit = 2_000;
  /** No header holds a longer token; one with many audiences, which is reviewed, may have millions of characters. */
  const keptCharacters = 16 * 1024;

  const remember = <T>(map: Map<string, T>, key: string, value: T): T => {
    if (map.size >= rememberedLimit) map.clear();
    map.set(key, value);
    return value;
  };

  function claimsOf(token: string): Readonly<Record<string, unknown>> | string {
    const known = checked.get(token);
    if (known !== undefined) return known;
    if (token.length > keptCharacters) return verifiedClaims(token);
    const digest = encodeBase64Url(sha256(bytes(token)));
    const why = refused.get(digest);
    if (why !== undefined) return why;
    const claims = verifiedClaims(token);
    return typeof claims === "string" ? remember(refused, digest, claims) : remember(checked, token, claims);
  }

  function verifiedClaims(token: string): Readonly<Record<string, unknown>> | string {
    const [head = "", body = "", signature = "", ...more] = token.split(".");
    const signed = decodeBase64UrlBytes(signature);
    if (more.length > 0 || signed === undefined || head === "" || body === "") return "not a token of this server";
    const header = json(head);
    if (header?.["alg"] !== keys.algorithm) return "signed with another algorithm";
    if (!keys.verify(bytes(`${head}.${body}`), signed)) return "signature does not match";
    const claims = json(body);
    return claims === undefined || claims["iss"] !== issuer ? "issued by another server" : claims;
  }

  function find(
    resource: string,
    namespace: string,
    reference: unknown,
  ): { readonly object: KubeObject } | "gone" | "notNamed" {
    if (!isObject(reference) || typeof reference["name"] !== "string") return "notNamed";
    const object = live.get({ resource, namespace, name: reference["name"] })?.object;
    return object === undefined || object.metadata.uid !== reference["uid"] ? "gone" : { object };
  }

  return {
    audiences: own,
    issue({ serviceAccount, audiences, expirationSeconds, pod, secret, node: boundNode }) {
      const now = Math.floor(clock.now() / 1_000);
      const namespace = serviceAccount.metadata.namespace ?? "";
      const reference = (object: KubeObject) => ({ name: object.metadata.name, uid: object.metadata.uid });
      const nodeName = isObject(pod?.["spec"]) ? pod["spec"]["nodeName"] : undefined;
      const node =
        boundNode ??
        (typeof nodeName === "string" && nodeName !== ""
          ? live.get({ resource: "nodes", namespace: "", name: nodeName })?.object
          : undefined);
      const claims = {
        aud: audiences.length > 0 ? audiences : own,
        exp: now + expirationSeconds,
        iat: now,
        iss: issuer,
        jti: random.uuid(),
        "kubernetes.io": {
          namespace,
          ...(node === undefined ? {} : { node: reference(node) }),
          ...(pod === undefined ? {} : { pod: reference(pod) }),
          ...(secret === undefined ? {} : { secret: reference(secret) }),
          serviceaccount: reference(serviceAccount),
        },
        nbf: now,
        sub: `system:serviceaccount:${namespace}:${serviceAccount.metadata.name ?? ""}`,
      };
      const text = `${encodeBase64Url(JSON.stringify({ alg: keys.algorithm, kid: keys.keyId }))}.${encodeBase64Url(JSON.stringify(claims))}`;
      return { token: `${text}.${encodeBase64Url(keys.sign(bytes(text)))}`, expiresAtMs: claims.exp * 1_000 };
    },
    isVerified: (token) => checked.has(token),
    check(token, wanted) {
      const refuse = (reason: string): TokenCheck => ({ verdict: "invalid", reason });
      const claims = claimsOf(token);
      if (typeof claims === "string") return refuse(claims);
      const now = clock.now() / 1_000;
      if (typeof claims["exp"] !== "number" || claims["exp"] <= now) return refuse("token has expired");
      // A minute for clocks that differ.
      if (typeof claims["nbf"] === "number" && claims["nbf"] > now + 60) return refuse("token is not valid yet");
      const meant = new Set<unknown>(Array.isArray(claims["aud"]) ? claims["aud"] : [claims["aud"]]);
      const asked = wanted.length > 0 ? wanted : own;
      const audiences = asked.filter((audience) => meant.has(audience));
      if (audiences.length === 0) return refuse("token audiences do not include any of the wanted ones");

      const bound = claims["kubernetes.io"];
      if (!isObject(bound) || typeof bound["namespace"] !== "string") return refuse("no Kubernetes claims");
      const namespace = bound["namespace"];
      const account = find("serviceaccounts", namespace, bound["serviceaccount"]);
      if (typeof account === "string") return refuse("the service account is gone");
      const pod = find("pods", namespace, bound["pod"]);
      if (pod === "gone") return refuse("the pod that the token is bound to is gone");
      const secret = find("secrets", namespace, bound["secret"]);
      if (secret === "gone") return refuse("the secret that the token is bound to is gone");
      // A pod's token names its node; a token that is bound to the node alone becomes invalid with it.
      const node = bound["node"];
      if (pod === "notNamed" && isObject(node) && find("nodes", "", node) === "gone")
        return refuse("the node that the token is bound to is gone");
      const name = account.object.metadata.name ?? "";
      const extra: Record<string, readonly string[]> = {
        "authentication.kubernetes.io/credential-id": [`JTI=${String(claims["jti"])}`],
      };
      if (typeof pod !== "string") {
        extra["authentication.kubernetes.io/pod-name"] = [pod.object.metadata.name ?? ""];
        extra["authentication.kubernetes.io/pod-uid"] = [pod.object.metadata.uid ?? ""];
      }
      if (isObject(node)) {
        extra["authentication.kubernetes.io/node-name"] = [String(node["name"])];
        extra["authentication.kubernetes.io/node-uid"] = [String(node["uid"])];
      }
      return {
        verdict: "valid",
        audiences,
        user: {
          name: `system:serviceaccount:${namespace}:${name}`,
          uid: account.object.metadata.uid ?? "",
          groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
          extra,
        },
      };
    },
  };
}

function json(part: string): Readonly<Record<string, unknown>> | undefined {
  const text = decodeBase64Url(part);
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
