import { McoError } from "../api/errors.ts";
import { isLoopbackHost } from "../core/images/image-reference.ts";
import { redactText } from "../core/text/redact.ts";
import type { Clock } from "../ports/clock.ts";
import { type AuthFile, type RegistryCredentials, credentialsFor } from "./auth-file.ts";
import { parseChallenges } from "./challenge.ts";
import { type WatchedWire, sendWatched } from "./watched-wire.ts";
import type { ProxySettings, StreamedBody, Trust, Wire, WireRequest, WireResponse } from "./wire.ts";

export interface RegistryClientOptions {
  readonly wire: Wire;
  readonly clock: Clock;
  readonly auth: AuthFile;
  /** PEM texts of `certs.d/<host>/*.crt`. */
  readonly certificates: (host: string) => Promise<readonly string[]>;
  readonly proxy?: ProxySettings | undefined;
  /** Time without 16 KiB of a body, or without an answer, after which a connection counts as dead. */
  readonly quietMs?: number;
}

/** A repository at a place. */
export interface Repository {
  readonly host: string;
  readonly path: string;
  /** Plain HTTP and unverified TLS are allowed. */
  readonly insecure: boolean;
}

const defaultQuietMs = 30_000;
const maxRedirects = 5;
const maxErrorBytes = 64 * 1024;
const maxTokenBytes = 256 * 1024;
/** A body in memory is handed to the connection in parts of this size, so that its progress can be seen. */
const partBytes = 256 * 1024;
/** Limits of the registry's message about a rejected push. */
const maxSaidCharacters = 200;
/**
 * Lifetime of a token that does not state its own. Source: distribution docs/spec/auth/token.md (main).
 */
const tokenSeconds = 60;

/** As the scope of a token spells it. Source: distribution docs/spec/auth/scope.md (main). */
export type Action = "pull" | "pull,push" | "delete";

export interface Endpoint {
  readonly origin: string;
  readonly trust: Trust;
}

/** A request to a registry; the target is a path, or an address of the same registry. */
export type Ask = Omit<WireRequest, "url" | "trust"> & {
  readonly target: string | URL;
  /** Path of a repository that is read from as well. */
  readonly alsoPulls?: string;
};

/** An answer, and whether the registry itself gave it: what a redirect leads to, or a token service, is somebody else. */
export interface RegistryAnswer extends WireResponse {
  readonly from: "registry" | "elsewhere";
}

/** What a registry accepted as an answer to its challenge. */
interface Authorization {
  readonly value: string;
  /** By the monotonic clock. */
  readonly untilMs: number;
}

/**
 * Sends requests to registries: finds how to reach a registry, answers its challenges and follows its redirects. Endpoints and tokens are kept for as long as the client lives.
 */
export class RegistryExchange {
  readonly #options: RegistryClientOptions;
  /** By host and whether it may be insecure. */
  readonly #endpoints = new Map<string, Promise<Endpoint>>();
  /** By origin and scopes. */
  readonly #authorizations = new Map<string, Authorization>();

  constructor(options: RegistryClientOptions) {
    this.#options = options;
  }

  /** Sends one request; the answer's body is watched for progress too. */
  #send(request: WireRequest, signal: AbortSignal): Promise<WireResponse> {
    const { host } = request.url;
    const { body, ...rest } = request;
    const isLarge = body instanceof Uint8Array && body.length > partBytes;
    const watched: WatchedWire = {
      wire: this.#options.wire,
      clock: this.#options.clock,
      quietMs: this.#options.quietMs ?? defaultQuietMs,
      failureOf: (failure) =>
        unreachable(
          host,
          failure.message,
          failure.kind === "unreachable",
          { kind: failure.kind, ...(failure.issuer === undefined ? {} : { issuer: failure.issuer }) },
          failure,
        ),
    };
    const sent = {
      ...rest,
      ...(body === undefined ? {} : { body: isLarge ? inParts(body) : body }),
      ...(this.#options.proxy === undefined ? {} : { proxy: this.#options.proxy }),
    };
    return sendWatched(watched, sent, signal);
  }

  endpointOf({ host, insecure }: Repository, signal: AbortSignal): Promise<Endpoint> {
    const key = `${host} ${insecure}`;
    const known = this.#endpoints.get(key);
    if (known !== undefined) return known;
    const found = this.#findEndpoint(host, insecure, signal);
    this.#endpoints.set(key, found);
    found.catch(() => this.#endpoints.delete(key));
    return found;
  }

  /**
   * Uses plain HTTP only for this machine itself and where registries.conf allows it, and only after TLS failed.
   */
  async #findEndpoint(host: string, insecure: boolean, signal: AbortSignal): Promise<Endpoint> {
    const authorities = await this.#options.certificates(host);
    const trust: Trust = { authorities, unverified: insecure };
    const secure = { origin: `https://${host === "docker.io" ? "registry-1.docker.io" : host}`, trust };
    const mayBePlain = insecure || (isLoopbackHost(host) && authorities.length === 0);
    if (!mayBePlain) return secure;
    try {
      await discard(
        await this.#send({ method: "GET", url: new URL("/v2/", secure.origin), headers: {}, trust }, signal),
      );
      return secure;
    } catch (error) {
      if (!(error instanceof McoError) || error.facts["kind"] !== "notTls") throw error;
      return { origin: `http://${host}`, trust };
    }
  }

  /** Sends a request with the authorization that the registry asks for, and follows its redirects. */
  async exchange(
    repository: Repository,
    action: Action,
    { alsoPulls, ...request }: Ask,
    signal: AbortSignal,
  ): Promise<RegistryAnswer> {
    const { host } = repository;
    const endpoint = await this.endpointOf(repository, signal);
    const scopes = [
      `repository:${repository.path}:${action}`,
      ...(alsoPulls === undefined ? [] : [`repository:${alsoPulls}:pull`]),
    ];
    const key = `${endpoint.origin} ${scopes.join(" ")}`;
    for (let asked = false; ; asked = true) {
      const known = this.#authorizations.get(key);
      const authorization =
        known !== undefined && known.untilMs > this.#options.clock.monotonic() ? known.value : undefined;
      const { response, home } = await this.#follow(endpoint, request, authorization, signal);
      // Do not answer the challenge of a redirect's target: the credentials are for the registry only.
      if (response.status !== 401 || asked || !home) return { ...response, from: home ? "registry" : "elsewhere" };
      const challenge = response.headers["www-authenticate"] ?? "";
      await discard(response);
      this.#authorizations.set(key, await this.#answer(repository, endpoint, action, scopes, challenge, host, signal));
    }
  }

  /** Follows redirects. Only the registry itself gets the authorization; redirect targets do not. */
  async #follow(
    endpoint: Endpoint,
    { target, ...request }: Ask,
    authorization: string | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly response: WireResponse; readonly home: boolean }> {
    let url = new URL(target, endpoint.origin);
    for (let hops = 0; ; hops += 1) {
      const home = url.origin === new URL(endpoint.origin).origin;
      const trust = home
        ? endpoint.trust
        : { authorities: await this.#options.certificates(url.host), unverified: endpoint.trust.unverified };
      const headers = home && authorization !== undefined ? { ...request.headers, authorization } : request.headers;
      const response = await this.#send({ ...request, url, headers, trust }, signal);
      const { location } = response.headers;
      if (
        ![301, 302, 303, 307, 308].includes(response.status) ||
        location === undefined ||
        (request.method !== "GET" && request.method !== "HEAD")
      )
        return { response, home };
      await discard(response);
      if (hops >= maxRedirects) throw unreachable(url.host, "it redirects in circles", false);
      const next = URL.parse(location, url.href);
      if (next === null || !["http:", "https:"].includes(next.protocol) || next.username !== "" || next.password !== "")
        throw unreachable(url.host, "it redirects to an invalid address", false);
      if (url.protocol === "https:" && next.protocol === "http:")
        throw unreachable(url.host, "it redirects from TLS to plain HTTP", false);
      url = next;
    }
  }

  async #answer(
    repository: Repository,
    endpoint: Endpoint,
    action: Action,
    scopes: readonly string[],
    header: string,
    host: string,
    signal: AbortSignal,
  ): Promise<Authorization> {
    const credentials = credentialsFor(this.#options.auth, repository);
    const unauthorized = (problem: string) =>
      new McoError("MCO_IMAGE_UNAUTHORIZED", { host, repository: repository.path, problem, retryable: false });
    const challenges = parseChallenges(header);
    if (credentials?.kind === "registryToken") return { value: `Bearer ${credentials.token}`, untilMs: Infinity };
    const bearer = challenges.find(
      ({ scheme, parameters }) => scheme === "bearer" && parameters["realm"] !== undefined,
    );
    if (bearer !== undefined)
      return this.#token(repository, endpoint, action, scopes, bearer.parameters, credentials, signal);
    if (credentials === undefined) throw unauthorized("it asks for credentials, and the auth file has none for it");
    if (!challenges.some(({ scheme }) => scheme === "basic") || credentials.kind !== "password")
      throw unauthorized("it asks for a kind of credentials that the auth file does not have");
    return { value: basic(credentials), untilMs: Infinity };
  }

  /** Source of the flow: distribution docs/spec/auth/token.md and oauth.md (main). */
  async #token(
    repository: Repository,
    endpoint: Endpoint,
    action: Action,
    scopes: readonly string[],
    { realm = "", service }: Readonly<Record<string, string>>,
    credentials: RegistryCredentials | undefined,
    signal: AbortSignal,
  ): Promise<Authorization> {
    const url = URL.parse(realm);
    const { host } = repository;
    if (url === null || !["http:", "https:"].includes(url.protocol))
      throw unreachable(host, "its token service has no address", false);
    if (url.protocol === "http:" && new URL(endpoint.origin).protocol === "https:")
      throw unreachable(host, "its token service does not speak TLS", false);
    const trust: Trust = {
      authorities: [...new Set([...(await this.#options.certificates(url.host)), ...endpoint.trust.authorities])],
      unverified: endpoint.trust.unverified,
    };
    const response = await this.#send(tokenRequest(url, trust, scopes, service, credentials), signal);
    if (response.status !== 200) throw await refusalOf({ ...response, from: "elsewhere" }, repository, action, "token");
    const began = this.#options.clock.monotonic();
    const { value, seconds } = tokenIn(await readBody(response, maxTokenBytes, "the token", url.host), url.host);
    return { value: `Bearer ${value}`, untilMs: began + seconds * 900 };
  }
}

export const unreachable = (
  host: string,
  problem: string,
  retryable: boolean,
  facts: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): McoError =>
  new McoError("MCO_IMAGE_UNREACHABLE", { host, problem, ...facts, retryable }, cause === undefined ? {} : { cause });

/** Reads a body of at most `limit` bytes; `what` names it in errors. */
export async function readBody(response: WireResponse, limit: number, what: string, host: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.chunks) {
    size += chunk.length;
    if (size > limit)
      throw new McoError("MCO_IMAGE_INVALID", {
        host,
        problem: `${what} is too large`,
        limitBytes: limit,
        retryable: false,
      });
    chunks.push(chunk);
  }
  const declared = Number(response.headers["content-length"] ?? size);
  if (declared > size) throw unreachable(host, `${what} broke off`, true);
  return Buffer.concat(chunks);
}

/** Drains a body so that the connection can be reused; closes the connection if the body is large. */
export async function discard(response: WireResponse): Promise<Uint8Array> {
  const kept: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of response.chunks) {
      size += chunk.length;
      if (size > maxErrorBytes) break;
      kept.push(chunk);
    }
  } catch (error) {
    if (!(error instanceof McoError)) throw error; // The status is what matters.
  }
  return Buffer.concat(kept);
}

/** What an answer refuses. The registry's own words are shown, of others the status and a code. */
export async function refusalOf(
  response: RegistryAnswer,
  repository: Repository,
  action: Action,
  what: string,
): Promise<McoError> {
  const { status } = response;
  const doing = action === "pull,push" ? "push" : action;
  const body = await discard(response);
  const facts = {
    host: repository.host,
    repository: repository.path,
    action: doing,
    what,
    status,
    ...codeIn(body),
    ...(doing === "pull" || response.from === "elsewhere" ? {} : textIn(body)),
  };
  if (status === 401 || status === 403) return new McoError("MCO_IMAGE_UNAUTHORIZED", { ...facts, retryable: false });
  if (status === 404) return new McoError("MCO_IMAGE_ABSENT", { ...facts, retryable: false });
  const retryable = status === 408 || status === 429 || status >= 500;
  const seconds = Number(response.headers["retry-after"]);
  return new McoError("MCO_IMAGE_UNREACHABLE", {
    ...facts,
    ...(retryable && seconds > 0 ? { retryAfterMs: seconds * 1000 } : {}),
    retryable,
  });
}

/** An identity token is exchanged by POST; other credentials, or none, go with a GET. */
function tokenRequest(
  url: URL,
  trust: Trust,
  scopes: readonly string[],
  service: string | undefined,
  credentials: RegistryCredentials | undefined,
): WireRequest {
  if (credentials?.kind === "identityToken") {
    const form = new URLSearchParams({
      grant_type: "refresh_token",
      refresh_token: credentials.token,
      client_id: "mco",
      scope: scopes.join(" "),
      ...(service === undefined ? {} : { service }),
    });
    return {
      method: "POST",
      url,
      headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
      body: Buffer.from(form.toString()),
      trust,
    };
  }
  const target = new URL(url);
  if (service !== undefined) target.searchParams.set("service", service);
  for (const scope of scopes) target.searchParams.append("scope", scope);
  return {
    method: "GET",
    url: target,
    headers: {
      accept: "application/json",
      ...(credentials?.kind === "password" ? { authorization: basic(credentials) } : {}),
    },
    trust,
  };
}

/** The token in a token service's response, and how many seconds it lasts. */
function tokenIn(bytes: Uint8Array, host: string): { readonly value: string; readonly seconds: number } {
  let parsed: { readonly token?: unknown; readonly access_token?: unknown; readonly expires_in?: unknown };
  try {
    parsed = (JSON.parse(new TextDecoder().decode(bytes)) ?? {}) as typeof parsed;
  } catch {
    throw unreachable(host, "its token service gave no JSON", false); // No cause: it would quote the token.
  }
  const value = parsed.token ?? parsed.access_token;
  if (typeof value !== "string" || !/^[\x21-\x7e]+$/.test(value))
    throw unreachable(host, "its token service gave no token", false);
  const seconds = typeof parsed.expires_in === "number" && parsed.expires_in > 0 ? parsed.expires_in : tokenSeconds;
  return { value, seconds };
}

const inParts = (bytes: Uint8Array): StreamedBody => ({
  sizeBytes: bytes.length,
  async *open() {
    for (let at = 0; at < bytes.length; at += partBytes) yield bytes.subarray(at, at + partBytes);
  },
});

const basic = ({ user, password }: Extract<RegistryCredentials, { kind: "password" }>) =>
  `Basic ${Buffer.from(`${user}:${password}`, "utf8").toString("base64")}`;

/** The error code of a registry's response only: the message may quote anything. */
export function codeIn(body: Uint8Array): { readonly says?: string } {
  try {
    const code = (
      JSON.parse(new TextDecoder().decode(body)) as { readonly errors?: readonly { readonly code?: unknown }[] } | null
    )?.errors?.[0]?.code;
    return typeof code === "string" && /^[A-Z_]{1,40}$/.test(code) ? { says: code } : {};
  } catch {
    return {}; // Proxies may answer without JSON.
  }
}

/** A registry's message about a rejected push, since a user has to act on it: short, and without secrets. */
function textIn(body: Uint8Array): { readonly problem?: string } {
  const whole = new TextDecoder().decode(body.subarray(0, 16_384));
  let text = whole;
  try {
    const message = (JSON.parse(whole) as { readonly errors?: readonly { readonly message?: unknown }[] } | null)
      ?.errors?.[0]?.message;
    if (typeof message === "string") text = message;
  } catch {
    if (/^\s*</.test(text)) return {}; // A page for browsers.
  }
  const problem = redactText(text.replaceAll(/[\p{C}\s]+/gu, " ").trim()).slice(0, maxSaidCharacters);
  return problem === "" ? {} : { problem };
}
