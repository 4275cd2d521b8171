import type { HttpRequest } from "../../../ports/http.ts";
import type { UserInfo } from "../schema/contract.ts";
import type { TokenIssuer } from "./service-account-tokens.ts";
import { Refusal, unauthorized } from "../schema/status.ts";

/** What is known of the caller before any header is read. */
export interface Peer {
  /** The authenticated user: a caller in this process. Headers are then ignored. */
  readonly user?: UserInfo;
  /**
   * Subject of a client certificate that the listener has checked against the client CA; `untrusted`: it is not of that
   * CA.
   */
  readonly certificate?:
    | {
        readonly commonName: string;
        readonly organizations: readonly string[];
        /** Of its DER form, in hex. */ readonly sha256?: string;
      }
    | "untrusted";
}

export const authenticated = "system:authenticated";
const unauthenticated = "system:unauthenticated";
export const anonymous: UserInfo = { name: "system:anonymous", groups: [unauthenticated] };

export interface AuthenticationOptions {
  readonly tokens: TokenIssuer | undefined;
  /** Token → user, for callers that have neither certificate nor service account. */
  readonly staticTokens: Readonly<Record<string, UserInfo>>;
  readonly anonymous: "allowed" | "refused";
}

/**
 * Characters of a token in a header. Those that this server issues for itself have two thousand at most, the names of an
 * account, a pod and a node included; one for many other audiences, which may be longer, can be reviewed.
 */
const longestToken = 4_096;

/** The token by which a request names its user; `undefined`: its connection does, or nothing. */
function tokenIn(request: Pick<HttpRequest, "headers">, peer: Peer): string | undefined {
  if (peer.user !== undefined || hasIdentity(peer.certificate)) return undefined;
  return /^bearer\s+(\S+)\s*$/i.exec(request.headers["authorization"] ?? "")?.[1];
}

/** Whether a request brings a token whose signature was not found good before: to verify one takes long. */
export function bringsUnverified(
  request: Pick<HttpRequest, "headers">,
  peer: Peer,
  { tokens, staticTokens }: Pick<AuthenticationOptions, "tokens" | "staticTokens">,
): boolean {
  const token = tokenIn(request, peer);
  if (token === undefined || token.length > longestToken || Object.hasOwn(staticTokens, token)) return false;
  return tokens?.isVerified(token) === false;
}

type Certificate = Exclude<Peer["certificate"], undefined | "untrusted">;
const hasIdentity = (certificate: Peer["certificate"]): certificate is Certificate =>
  certificate !== undefined && certificate !== "untrusted" && certificate.commonName !== "";

/** Authenticates the caller: by certificate, then by bearer token, else as anonymous. */
export function authenticate(
  request: Pick<HttpRequest, "headers">,
  peer: Peer,
  options: AuthenticationOptions,
): UserInfo | Refusal {
  if (peer.user !== undefined) return withGroup(peer.user);
  if (hasIdentity(peer.certificate)) {
    const { commonName, organizations, sha256 } = peer.certificate;
    // `k8s.io/apiserver pkg/authentication/request/x509/x509.go (master)` CommonNameUserConversion
    const extra =
      sha256 === undefined ? {} : { extra: { "authentication.kubernetes.io/credential-id": [`X509SHA256=${sha256}`] } };
    return withGroup({ name: commonName, groups: organizations, ...extra });
  }
  const header = request.headers["authorization"] ?? "";
  const token = tokenIn(request, peer);
  if (token !== undefined)
    return (token.length > longestToken ? undefined : userOfToken(token, [], options)?.user) ?? unauthorized();
  if (header !== "" || peer.certificate === "untrusted" || options.anonymous === "refused") return unauthorized();
  return anonymous;
}

/** The user of a token; `undefined` if the token is unknown. */
export function userOfToken(
  token: string,
  audiences: readonly string[],
  options: Pick<AuthenticationOptions, "tokens" | "staticTokens">,
): { readonly user: UserInfo; readonly audiences: readonly string[] } | undefined {
  const known = Object.hasOwn(options.staticTokens, token) ? options.staticTokens[token] : undefined;
  if (known !== undefined) return { user: withGroup(known), audiences: [] };
  const checked = options.tokens?.check(token, audiences);
  return checked?.verdict === "valid" ? checked : undefined;
}

function withGroup(user: UserInfo): UserInfo {
  if (user.name === anonymous.name || user.groups.includes(authenticated)) return user;
  return { ...user, groups: [...user.groups, authenticated] };
}

/** The user that the caller impersonates (`kubectl --as`): each attribute needs its own permission. */
export interface Impersonation {
  /** The user with all that follows from the name. */
  readonly user: UserInfo;
  /** Groups that the request names; the user has implied ones, too. */
  readonly groups: readonly string[];
}

/**
 * Reads the headers of impersonation as `k8s.io/apiserver pkg/endpoints/filters/impersonation.go (v0.34)` does.
 * `undefined`: the request names no user.
 */
export function impersonated(request: HttpRequest): Impersonation | undefined {
  const name = request.headers["impersonate-user"];
  if (name === undefined || name === "") return undefined;
  const given = (request.headers["impersonate-group"] ?? "")
    .split(",")
    .map((group) => group.trim())
    .filter((group) => group !== "");
  const account = /^system:serviceaccount:([^:]+):[^:]+$/.exec(name)?.[1];
  const implied =
    given.length === 0 && account !== undefined ? ["system:serviceaccounts", `system:serviceaccounts:${account}`] : [];
  const extra = Object.entries(request.headers).flatMap(([header, value]) => {
    const key = /^impersonate-extra-(.+)$/.exec(header)?.[1];
    return key === undefined ? [] : [[unescaped(key), value.split(",").map((one) => one.trim())] as const];
  });
  const uid = request.headers["impersonate-uid"];
  const user: UserInfo = {
    name,
    groups: [...given, ...implied],
    ...(uid === undefined || uid === "" ? {} : { uid }),
    ...(extra.length > 0 ? { extra: Object.fromEntries(extra) } : {}),
  };
  if (user.groups.includes(unauthenticated)) return { user, groups: given };
  return {
    user: name === anonymous.name ? { ...user, groups: [...user.groups, unauthenticated] } : withGroup(user),
    groups: given,
  };
}

/** A key that is escaped in a wrong way counts as it is. */
function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
