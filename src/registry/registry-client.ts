import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { McoError } from "../api/errors.ts";
import { isLoopbackHost } from "../core/image-reference.ts";
import type { Clock } from "../ports/clock.ts";
import { type AuthFile, type Credentials, credentialsFor } from "./auth-file.ts";
import { parseChallenges } from "./challenge.ts";
import { acceptedManifests, imageLimits } from "./manifest.ts";
import { type Trust, type Wire, WireFailure, type WireRequest, type WireResponse } from "./wire.ts";

export interface RegistryClientOptions {
  readonly wire: Wire;
  readonly clock: Clock;
  readonly auth: AuthFile;
  /** PEM texts of `certs.d/<host>/*.crt`. */
  readonly certificates: (host: string) => Promise<readonly string[]>;
  /** Time without {@link progressBytes} of a body, or without an answer, after which a connection counts as dead. */
  readonly quietMs?: number;
}

/** A repository at a place. */
export interface Repository {
  readonly host: string;
  readonly path: string;
  /** Plain HTTP and unverified TLS will do. */
  readonly insecure: boolean;
}

/** The OCI distribution protocol. Failures are `MCO_IMAGE_*` whose facts say whether trying again can help (`retryable`). */
export interface RegistryClient {
  /** @param name a tag or a digest; the caller checks the digest. */
  manifest(repository: Repository, name: string, signal: AbortSignal): Promise<{ readonly bytes: Uint8Array; readonly mediaType: string | undefined }>;
  /** The bytes of a blob from `from` on, or from an earlier byte where the registry cannot begin in the middle. */
  blob(repository: Repository, digest: string, from: number, signal: AbortSignal): Promise<{ readonly from: number; readonly chunks: AsyncIterable<Uint8Array> }>;
  hasBlob(repository: Repository, digest: string, signal: AbortSignal): Promise<boolean>;
  putBlob(repository: Repository, digest: string, bytes: Uint8Array, signal: AbortSignal): Promise<void>;
  putManifest(repository: Repository, name: string, manifest: { readonly bytes: Uint8Array; readonly mediaType: string }, signal: AbortSignal): Promise<void>;
}

const defaultQuietMs = 30_000;
/** What must arrive within the quiet time: less is a registry that keeps a machine waiting for ever. */
export const progressBytes = 16 * 1024;
const maxRedirects = 5;
const maxErrorBytes = 64 * 1024;
const maxTokenBytes = 256 * 1024;
/** How long a token is used that does not say how long it lasts. Source: distribution docs/spec/auth/token.md (main). */
const tokenSeconds = 60;

type Action = "pull" | "pull,push";

interface Endpoint {
  readonly origin: string;
  readonly trust: Trust;
}

/** A request to a registry; the target is a path, or an address of the same registry. */
type Ask = Omit<WireRequest, "url" | "trust"> & { readonly target: string | URL };

/** What a registry accepted as an answer to its challenge. */
interface Authorization {
  readonly value: string;
  /** By the monotonic clock. */
  readonly untilMs: number;
}

export const digestOf = (bytes: Uint8Array): string => `sha256:${bytesToHex(sha256(bytes))}`;

export function registryClient(options: RegistryClientOptions): RegistryClient {
  const { wire, clock } = options;
  const quietMs = options.quietMs ?? defaultQuietMs;
  const endpoints = new Map<string, Promise<Endpoint>>();
  const authorizations = new Map<string, Authorization>();

  const unreachable = (host: string, problem: string, retryable: boolean, facts: Readonly<Record<string, unknown>> = {}, cause?: unknown) => new McoError("MCO_IMAGE_UNREACHABLE", { host, problem, ...facts, retryable }, cause === undefined ? {} : { cause });

  /** Sends one request; the answer's body is watched for progress too. */
  async function send(request: WireRequest, signal: AbortSignal): Promise<WireResponse> {
    const { host } = request.url;
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    const release = () => signal.removeEventListener("abort", onAbort);
    let left = quietMs;
    /** Waits for the other side, no longer than the quiet time in all since it last got on. */
    async function waited<T>(work: () => Promise<T>): Promise<T> {
      const began = clock.monotonic();
      const cancel = clock.after(left, () => stop.abort(new WireFailure("unreachable", `no progress within ${quietMs} ms`)));
      try {
        return await work();
      } finally {
        cancel();
        left = Math.max(0, left - (clock.monotonic() - began));
      }
    }
    const failed = (error: unknown) => {
      release();
      signal.throwIfAborted();
      if (!(error instanceof WireFailure)) throw error;
      throw unreachable(host, error.message, error.kind === "unreachable", { kind: error.kind }, error);
    };
    async function* watched(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      const iterator = chunks[Symbol.asyncIterator]();
      let since = 0;
      try {
        for (;;) {
          const next = await waited(() => iterator.next());
          if (next.done === true) return;
          since += next.value.length;
          if (since >= progressBytes) {
            since = 0;
            left = quietMs;
          }
          yield next.value;
        }
      } catch (error) {
        failed(error);
      } finally {
        release();
        await iterator.return?.();
      }
    }
    try {
      const response = await waited(() => wire(request, stop.signal));
      left = quietMs;
      return { ...response, chunks: watched(response.chunks) };
    } catch (error) {
      return failed(error);
    }
  }

  async function read(response: WireResponse, limit: number, what: string, host: string): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.chunks) {
      size += chunk.length;
      if (size > limit) throw new McoError("MCO_IMAGE_INVALID", { host, problem: `${what} is too large`, limitBytes: limit, retryable: false });
      chunks.push(chunk);
    }
    const declared = Number(response.headers["content-length"] ?? size);
    if (declared > size) throw unreachable(host, `${what} broke off`, true);
    return Buffer.concat(chunks);
  }

  /** Reads what is left, so that the connection can be used again, or closes it when that is much. */
  async function discard(response: WireResponse): Promise<Uint8Array> {
    const kept: Uint8Array[] = [];
    let size = 0;
    try {
      for await (const chunk of response.chunks) {
        size += chunk.length;
        if (size > maxErrorBytes) break;
        kept.push(chunk);
      }
    } catch (error) {
      if (!(error instanceof McoError)) throw error; // The status has said what matters.
    }
    return Buffer.concat(kept);
  }

  function endpointOf({ host, insecure }: Repository, signal: AbortSignal): Promise<Endpoint> {
    const key = `${host} ${insecure}`;
    const known = endpoints.get(key);
    if (known !== undefined) return known;
    const found = findEndpoint(host, insecure, signal);
    endpoints.set(key, found);
    found.catch(() => endpoints.delete(key));
    return found;
  }

  /** Plain HTTP is spoken only with this machine itself and where registries.conf puts up with it; and only after TLS was tried. */
  async function findEndpoint(host: string, insecure: boolean, signal: AbortSignal): Promise<Endpoint> {
    const authorities = await options.certificates(host);
    const trust: Trust = { authorities, unverified: insecure };
    const secure = { origin: `https://${host === "docker.io" ? "registry-1.docker.io" : host}`, trust };
    const mayBePlain = insecure || (isLoopbackHost(host) && authorities.length === 0);
    if (!mayBePlain) return secure;
    try {
      await discard(await send({ method: "GET", url: new URL("/v2/", secure.origin), headers: {}, trust }, signal));
      return secure;
    } catch (error) {
      if (!(error instanceof McoError) || error.facts["kind"] !== "notTls") throw error;
      return { origin: `http://${host}`, trust };
    }
  }

  /** As {@link send}, with what the registry wants to see of us, and following where it points. */
  async function exchange(repository: Repository, action: Action, request: Ask, signal: AbortSignal): Promise<WireResponse> {
    const { host } = repository;
    const endpoint = await endpointOf(repository, signal);
    const key = `${endpoint.origin}/${repository.path} ${action}`;
    for (let asked = false; ; asked = true) {
      const known = authorizations.get(key);
      const authorization = known !== undefined && known.untilMs > clock.monotonic() ? known.value : undefined;
      const { response, home } = await follow(endpoint, request, authorization, signal);
      // Somebody whom the registry sent us to gets no answer: it would be the one for the registry.
      if (response.status !== 401 || asked || !home) return response;
      const challenge = response.headers["www-authenticate"] ?? "";
      await discard(response);
      authorizations.set(key, await answer(repository, endpoint, action, challenge, host, signal));
    }
  }

  /** Only the registry itself is shown who we are: wherever it sends us, we come without. */
  async function follow(endpoint: Endpoint, { target, ...request }: Ask, authorization: string | undefined, signal: AbortSignal): Promise<{ readonly response: WireResponse; readonly home: boolean }> {
    let url = new URL(target, endpoint.origin);
    for (let hops = 0; ; hops += 1) {
      const home = url.origin === new URL(endpoint.origin).origin;
      const trust = home ? endpoint.trust : { authorities: await options.certificates(url.host), unverified: endpoint.trust.unverified };
      const headers = home && authorization !== undefined ? { ...request.headers, authorization } : request.headers;
      const response = await send({ ...request, url, headers, trust }, signal);
      const { location } = response.headers;
      if (![301, 302, 303, 307, 308].includes(response.status) || location === undefined || (request.method !== "GET" && request.method !== "HEAD")) return { response, home };
      await discard(response);
      if (hops >= maxRedirects) throw unreachable(url.host, "it redirects in circles", false);
      const next = URL.parse(location, url.href);
      if (next === null || !["http:", "https:"].includes(next.protocol) || next.username !== "" || next.password !== "") throw unreachable(url.host, "it redirects to what is no address", false);
      if (url.protocol === "https:" && next.protocol === "http:") throw unreachable(url.host, "it redirects from TLS to plain HTTP", false);
      url = next;
    }
  }

  async function answer(repository: Repository, endpoint: Endpoint, action: Action, header: string, host: string, signal: AbortSignal): Promise<Authorization> {
    const credentials = credentialsFor(options.auth, repository);
    const unauthorized = (problem: string) => new McoError("MCO_IMAGE_UNAUTHORIZED", { host, repository: repository.path, problem, retryable: false });
    const challenges = parseChallenges(header);
    if (credentials?.kind === "registryToken") return { value: `Bearer ${credentials.token}`, untilMs: Infinity };
    const bearer = challenges.find(({ scheme, parameters }) => scheme === "bearer" && parameters["realm"] !== undefined);
    if (bearer !== undefined) return token(repository, endpoint, action, bearer.parameters, credentials, signal);
    if (credentials === undefined) throw unauthorized("it asks for credentials, and the auth file has none for it");
    if (!challenges.some(({ scheme }) => scheme === "basic") || credentials.kind !== "password") throw unauthorized("it asks for a kind of credentials that the auth file does not have");
    return { value: basic(credentials), untilMs: Infinity };
  }

  /** Source of the flow: distribution docs/spec/auth/token.md and oauth.md (main). */
  async function token(repository: Repository, endpoint: Endpoint, action: Action, { realm = "", service }: Readonly<Record<string, string>>, credentials: Credentials | undefined, signal: AbortSignal): Promise<Authorization> {
    const url = URL.parse(realm);
    const { host } = repository;
    if (url === null || !["http:", "https:"].includes(url.protocol)) throw unreachable(host, "its token service has no address", false);
    if (url.protocol === "http:" && new URL(endpoint.origin).protocol === "https:") throw unreachable(host, "its token service does not speak TLS", false);
    const scope = `repository:${repository.path}:${action}`;
    const trust: Trust = { authorities: [...new Set([...(await options.certificates(url.host)), ...endpoint.trust.authorities])], unverified: endpoint.trust.unverified };
    let response: WireResponse;
    if (credentials?.kind === "identityToken") {
      const form = new URLSearchParams({ grant_type: "refresh_token", refresh_token: credentials.token, client_id: "mco", scope, ...(service === undefined ? {} : { service }) });
      response = await send({ method: "POST", url, headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" }, body: Buffer.from(form.toString()), trust }, signal);
    } else {
      if (service !== undefined) url.searchParams.set("service", service);
      url.searchParams.set("scope", scope);
      response = await send({ method: "GET", url, headers: { accept: "application/json", ...(credentials?.kind === "password" ? { authorization: basic(credentials) } : {}) }, trust }, signal);
    }
    if (response.status !== 200) throw await refusalOf(response, repository, "token");
    const began = clock.monotonic();
    const text = new TextDecoder().decode(await read(response, maxTokenBytes, "the token", url.host));
    let parsed: { readonly token?: unknown; readonly access_token?: unknown; readonly expires_in?: unknown };
    try {
      parsed = (JSON.parse(text) ?? {}) as typeof parsed;
    } catch {
      throw unreachable(url.host, "its token service gave no JSON", false); // No cause: it would quote the token.
    }
    const value = parsed.token ?? parsed.access_token;
    if (typeof value !== "string" || !/^[\x21-\x7e]+$/.test(value)) throw unreachable(url.host, "its token service gave no token", false);
    const seconds = typeof parsed.expires_in === "number" && parsed.expires_in > 0 ? parsed.expires_in : tokenSeconds;
    return { value: `Bearer ${value}`, untilMs: began + seconds * 900 };
  }

  async function refusalOf(response: WireResponse, repository: Repository, what: string): Promise<McoError> {
    const { status } = response;
    const body = await discard(response);
    const facts = { host: repository.host, repository: repository.path, what, status, ...codeIn(body) };
    if (status === 401 || status === 403) return new McoError("MCO_IMAGE_UNAUTHORIZED", { ...facts, retryable: false });
    if (status === 404) return new McoError("MCO_IMAGE_ABSENT", { ...facts, retryable: false });
    const retryable = status === 408 || status === 429 || status >= 500;
    const seconds = Number(response.headers["retry-after"]);
    return new McoError("MCO_IMAGE_UNREACHABLE", { ...facts, ...(retryable && seconds > 0 ? { retryAfterMs: seconds * 1000 } : {}), retryable });
  }

  const pulled = (repository: Repository, target: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) => exchange(repository, "pull", { method: "GET", target: `/v2/${repository.path}/${target}`, headers: { "accept-encoding": "identity", ...headers } }, signal);

  return {
    async manifest(repository, name, signal) {
      const response = await pulled(repository, `manifests/${name}`, { accept: acceptedManifests }, signal);
      if (response.status !== 200) throw await refusalOf(response, repository, `manifest ${name}`);
      return { bytes: await read(response, imageLimits.manifestBytes, "the manifest", repository.host), mediaType: response.headers["content-type"] };
    },

    async blob(repository, digest, from, signal) {
      const target = `blobs/${digest}`;
      let response = await pulled(repository, target, from > 0 ? { range: `bytes=${from}-` } : {}, signal);
      if (response.status === 416) {
        await discard(response);
        response = await pulled(repository, target, {}, signal);
      }
      const start = response.status === 206 ? Number(/^bytes ([0-9]+)-/.exec(response.headers["content-range"] ?? "")?.[1] ?? NaN) : 0;
      if (response.status === 206 && !(start <= from)) {
        await discard(response);
        throw unreachable(repository.host, "it gave another part of a blob than was asked for", true);
      }
      if (response.status !== 200 && response.status !== 206) throw await refusalOf(response, repository, `blob ${digest}`);
      return { from: start, chunks: response.chunks };
    },

    async hasBlob(repository, digest, signal) {
      const response = await exchange(repository, "pull,push", { method: "HEAD", target: `/v2/${repository.path}/blobs/${digest}`, headers: {} }, signal);
      if (response.status === 200 || response.status === 404) {
        await discard(response);
        return response.status === 200;
      }
      throw await refusalOf(response, repository, `blob ${digest}`);
    },

    async putBlob(repository, digest, bytes, signal) {
      const begun = await exchange(repository, "pull,push", { method: "POST", target: `/v2/${repository.path}/blobs/uploads/`, headers: {}, body: new Uint8Array() }, signal);
      if (begun.status !== 202) throw await refusalOf(begun, repository, `blob ${digest}`);
      await discard(begun);
      const { origin } = await endpointOf(repository, signal);
      const place = URL.parse(begun.headers["location"] ?? "", origin);
      if (place === null || place.origin !== new URL(origin).origin) throw unreachable(repository.host, "it wants a blob to be sent elsewhere", false);
      place.searchParams.set("digest", digest);
      const response = await exchange(repository, "pull,push", { method: "PUT", target: place, headers: { "content-type": "application/octet-stream" }, body: bytes }, signal);
      if (response.status !== 201) throw await refusalOf(response, repository, `blob ${digest}`);
      await discard(response);
    },

    async putManifest(repository, name, { bytes, mediaType }, signal) {
      const response = await exchange(repository, "pull,push", { method: "PUT", target: `/v2/${repository.path}/manifests/${name}`, headers: { "content-type": mediaType }, body: bytes }, signal);
      if (response.status !== 201) throw await refusalOf(response, repository, `manifest ${name}`);
      await discard(response);
    },
  };
}

const basic = ({ user, password }: Extract<Credentials, { kind: "password" }>) => `Basic ${Buffer.from(`${user}:${password}`, "utf8").toString("base64")}`;

/** The error code of a registry's answer, and nothing else of it: what it says may quote anything. */
function codeIn(body: Uint8Array): { readonly says?: string } {
  try {
    const code = (JSON.parse(new TextDecoder().decode(body)) as { readonly errors?: readonly { readonly code?: unknown }[] } | null)?.errors?.[0]?.code;
    return typeof code === "string" && /^[A-Z_]{1,40}$/.test(code) ? { says: code } : {};
  } catch {
    return {}; // Not every server in between answers with JSON.
  }
}
