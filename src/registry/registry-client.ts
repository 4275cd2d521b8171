import { type WatchedWire, sendWatched } from "./watched-wire.ts";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { McoError } from "../api/errors.ts";
import { isLoopbackHost } from "../core/images/image-reference.ts";
import { redactText } from "../core/text/redact.ts";
import type { Clock } from "../ports/clock.ts";
import { type AuthFile, type Credentials, credentialsFor } from "./auth-file.ts";
import { parseChallenges } from "./challenge.ts";
import { acceptedManifests, imageLimits } from "./manifest.ts";
import {
  type ProxySettings,
  type StreamedBody,
  type Trust,
  type Wire,
  type WireRequest,
  type WireResponse,
} from "./wire.ts";

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
  /** Plain HTTP and unverified TLS will do. */
  readonly insecure: boolean;
}

/**
 * The OCI distribution protocol. Failures are `MCO_IMAGE_*` whose facts say whether trying again can help
 * (`retryable`), what was being done (`action`: pull, push or delete), and where a registry answered, its `status`.
 */
export interface RegistryClient {
  /** @param name a tag or a digest; the caller checks the digest. */
  manifest(
    repository: Repository,
    name: string,
    signal: AbortSignal,
  ): Promise<{ readonly bytes: Uint8Array; readonly mediaType: string | undefined }>;
  /** Whether there is a manifest of this name, with the rights of a pull. */
  hasManifest(repository: Repository, name: string, signal: AbortSignal): Promise<boolean>;
  /** The bytes of a blob from `from` on, or from an earlier byte where the registry cannot begin in the middle. */
  blob(
    repository: Repository,
    digest: string,
    from: number,
    signal: AbortSignal,
  ): Promise<{ readonly from: number; readonly chunks: AsyncIterable<Uint8Array> }>;
  hasBlob(repository: Repository, digest: string, signal: AbortSignal): Promise<boolean>;
  putBlob(repository: Repository, digest: string, bytes: Uint8Array | StreamedBody, signal: AbortSignal): Promise<void>;
  /** Makes a blob of another repository of the same registry one of this; `false` where the registry does not. */
  mountBlob(repository: Repository, digest: string, from: Repository, signal: AbortSignal): Promise<boolean>;
  putManifest(
    repository: Repository,
    name: string,
    manifest: { readonly bytes: Uint8Array; readonly mediaType: string },
    signal: AbortSignal,
  ): Promise<void>;
  /** @returns the registry's answer: `unsupported` if it never deletes. */
  deleteManifest(
    repository: Repository,
    digest: string,
    signal: AbortSignal,
  ): Promise<"deleted" | "absent" | "unsupported">;
  /** Begins an upload and takes it back: nothing is stored. Rejects where the registry would not take one. */
  tryPush(repository: Repository, signal: AbortSignal): Promise<void>;
  /** Tags of a repository; the first ones where there are many. */
  tags(repository: Repository, signal: AbortSignal): Promise<readonly string[]>;
  /** Whether the registry accepts these credentials, or requests without any. */
  isOpen(repository: Repository, signal: AbortSignal): Promise<boolean>;
}

const defaultQuietMs = 30_000;
const maxRedirects = 5;
const maxErrorBytes = 64 * 1024;
const maxTokenBytes = 256 * 1024;
const maxListBytes = 1024 * 1024;
/** A body in memory is handed to the connection in parts of this size, so that its progress can be seen. */
const partBytes = 256 * 1024;
/** Limits of the registry's message about a rejected push. */
const maxSaidCharacters = 200;
/**
 * How long a token is used that does not say how long it lasts. Source: distribution docs/spec/auth/token.md (main).
 */
const tokenSeconds = 60;

/** As the scope of a token spells it. Source: distribution docs/spec/auth/scope.md (main). */
type Action = "pull" | "pull,push" | "delete";

interface Endpoint {
  readonly origin: string;
  readonly trust: Trust;
}

/** A request to a registry; the target is a path, or an address of the same registry. */
type Ask = Omit<WireRequest, "url" | "trust"> & {
  readonly target: string | URL;
  /** Path of a repository that is read from as well. */
  readonly alsoPulls?: string;
};

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

  const unreachable = (
    host: string,
    problem: string,
    retryable: boolean,
    facts: Readonly<Record<string, unknown>> = {},
    cause?: unknown,
  ) =>
    new McoError("MCO_IMAGE_UNREACHABLE", { host, problem, ...facts, retryable }, cause === undefined ? {} : { cause });

  /** Sends one request; the answer's body is watched for progress too. */
  function send(request: WireRequest, signal: AbortSignal): Promise<WireResponse> {
    const { host } = request.url;
    const { body, ...rest } = request;
    const isLarge = body instanceof Uint8Array && body.length > partBytes;
    const watched: WatchedWire = {
      wire,
      clock,
      quietMs,
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
      ...(options.proxy === undefined ? {} : { proxy: options.proxy }),
    };
    return sendWatched(watched, sent, signal);
  }

  async function read(response: WireResponse, limit: number, what: string, host: string): Promise<Uint8Array> {
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

  /**
   * Plain HTTP is spoken only with this machine itself and where registries.conf puts up with it; and only after TLS
   * was tried.
   */
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
  async function exchange(
    repository: Repository,
    action: Action,
    { alsoPulls, ...request }: Ask,
    signal: AbortSignal,
  ): Promise<WireResponse> {
    const { host } = repository;
    const endpoint = await endpointOf(repository, signal);
    const scopes = [
      `repository:${repository.path}:${action}`,
      ...(alsoPulls === undefined ? [] : [`repository:${alsoPulls}:pull`]),
    ];
    const key = `${endpoint.origin} ${scopes.join(" ")}`;
    for (let asked = false; ; asked = true) {
      const known = authorizations.get(key);
      const authorization = known !== undefined && known.untilMs > clock.monotonic() ? known.value : undefined;
      const { response, home } = await follow(endpoint, request, authorization, signal);
      // Do not answer the challenge of a redirect's target: the credentials are for the registry only.
      if (response.status !== 401 || asked || !home) return response;
      const challenge = response.headers["www-authenticate"] ?? "";
      await discard(response);
      authorizations.set(key, await answer(repository, endpoint, action, scopes, challenge, host, signal));
    }
  }

  /** Only the registry itself is shown who we are: wherever it sends us, we come without. */
  async function follow(
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
        : { authorities: await options.certificates(url.host), unverified: endpoint.trust.unverified };
      const headers = home && authorization !== undefined ? { ...request.headers, authorization } : request.headers;
      const response = await send({ ...request, url, headers, trust }, signal);
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
        throw unreachable(url.host, "it redirects to what is no address", false);
      if (url.protocol === "https:" && next.protocol === "http:")
        throw unreachable(url.host, "it redirects from TLS to plain HTTP", false);
      url = next;
    }
  }

  async function answer(
    repository: Repository,
    endpoint: Endpoint,
    action: Action,
    scopes: readonly string[],
    header: string,
    host: string,
    signal: AbortSignal,
  ): Promise<Authorization> {
    const credentials = credentialsFor(options.auth, repository);
    const unauthorized = (problem: string) =>
      new McoError("MCO_IMAGE_UNAUTHORIZED", { host, repository: repository.path, problem, retryable: false });
    const challenges = parseChallenges(header);
    if (credentials?.kind === "registryToken") return { value: `Bearer ${credentials.token}`, untilMs: Infinity };
    const bearer = challenges.find(
      ({ scheme, parameters }) => scheme === "bearer" && parameters["realm"] !== undefined,
    );
    if (bearer !== undefined)
      return token(repository, endpoint, action, scopes, bearer.parameters, credentials, signal);
    if (credentials === undefined) throw unauthorized("it asks for credentials, and the auth file has none for it");
    if (!challenges.some(({ scheme }) => scheme === "basic") || credentials.kind !== "password")
      throw unauthorized("it asks for a kind of credentials that the auth file does not have");
    return { value: basic(credentials), untilMs: Infinity };
  }

  /** Source of the flow: distribution docs/spec/auth/token.md and oauth.md (main). */
  async function token(
    repository: Repository,
    endpoint: Endpoint,
    action: Action,
    scopes: readonly string[],
    { realm = "", service }: Readonly<Record<string, string>>,
    credentials: Credentials | undefined,
    signal: AbortSignal,
  ): Promise<Authorization> {
    const url = URL.parse(realm);
    const { host } = repository;
    if (url === null || !["http:", "https:"].includes(url.protocol))
      throw unreachable(host, "its token service has no address", false);
    if (url.protocol === "http:" && new URL(endpoint.origin).protocol === "https:")
      throw unreachable(host, "its token service does not speak TLS", false);
    const trust: Trust = {
      authorities: [...new Set([...(await options.certificates(url.host)), ...endpoint.trust.authorities])],
      unverified: endpoint.trust.unverified,
    };
    let response: WireResponse;
    if (credentials?.kind === "identityToken") {
      const form = new URLSearchParams({
        grant_type: "refresh_token",
        refresh_token: credentials.token,
        client_id: "mco",
        scope: scopes.join(" "),
        ...(service === undefined ? {} : { service }),
      });
      response = await send(
        {
          method: "POST",
          url,
          headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
          body: Buffer.from(form.toString()),
          trust,
        },
        signal,
      );
    } else {
      if (service !== undefined) url.searchParams.set("service", service);
      for (const scope of scopes) url.searchParams.append("scope", scope);
      response = await send(
        {
          method: "GET",
          url,
          headers: {
            accept: "application/json",
            ...(credentials?.kind === "password" ? { authorization: basic(credentials) } : {}),
          },
          trust,
        },
        signal,
      );
    }
    if (response.status !== 200) throw await refusalOf(response, repository, action, "token");
    const began = clock.monotonic();
    const text = new TextDecoder().decode(await read(response, maxTokenBytes, "the token", url.host));
    let parsed: { readonly token?: unknown; readonly access_token?: unknown; readonly expires_in?: unknown };
    try {
      parsed = (JSON.parse(text) ?? {}) as typeof parsed;
    } catch {
      throw unreachable(url.host, "its token service gave no JSON", false); // No cause: it would quote the token.
    }
    const value = parsed.token ?? parsed.access_token;
    if (typeof value !== "string" || !/^[\x21-\x7e]+$/.test(value))
      throw unreachable(url.host, "its token service gave no token", false);
    const seconds = typeof parsed.expires_in === "number" && parsed.expires_in > 0 ? parsed.expires_in : tokenSeconds;
    return { value: `Bearer ${value}`, untilMs: began + seconds * 900 };
  }

  async function refusalOf(
    response: WireResponse,
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
      ...(doing === "pull" ? {} : textIn(body)),
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

  const at = ({ path }: Repository, target: string) => `/v2/${path}/${target}`;
  const pulled = (
    repository: Repository,
    target: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ) =>
    exchange(
      repository,
      "pull",
      { method: "GET", target: at(repository, target), headers: { "accept-encoding": "identity", ...headers } },
      signal,
    );
  const pushed = (repository: Repository, request: Ask, signal: AbortSignal) =>
    exchange(repository, "pull,push", request, signal);

  /** Whether a HEAD request finds something. */
  async function finds(
    repository: Repository,
    action: Action,
    target: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const response = await exchange(
      repository,
      action,
      { method: "HEAD", target: at(repository, target), headers },
      signal,
    );
    if (response.status !== 200 && response.status !== 404)
      throw await refusalOf(response, repository, action, target.replace("s/", " "));
    await discard(response);
    return response.status === 200;
  }

  /** Begins an upload and returns the address for the next part. */
  async function beginUpload(
    repository: Repository,
    mount: { readonly digest: string; readonly from: string } | undefined,
    what: string,
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly place: URL | undefined }> {
    const query =
      mount === undefined ? "" : `?mount=${encodeURIComponent(mount.digest)}&from=${encodeURIComponent(mount.from)}`;
    const begun = await pushed(
      repository,
      {
        method: "POST",
        target: at(repository, `blobs/uploads/${query}`),
        headers: {},
        body: new Uint8Array(),
        ...(mount === undefined ? {} : { alsoPulls: mount.from }),
      },
      signal,
    );
    if (begun.status !== 202 && !(begun.status === 201 && mount !== undefined))
      throw await refusalOf(begun, repository, "pull,push", what);
    await discard(begun);
    if (begun.status === 201) return { status: 201, place: undefined };
    const { origin } = await endpointOf(repository, signal);
    const place = URL.parse(begun.headers["location"] ?? "", origin);
    if (place === null || place.origin !== new URL(origin).origin)
      throw unreachable(repository.host, "it wants a blob to be sent elsewhere", false);
    return { status: 202, place };
  }

  /** Takes an upload back. One that stays is the registry's to clear away, so nothing depends on its answer. */
  async function endUpload(repository: Repository, place: URL | undefined, signal: AbortSignal): Promise<void> {
    if (place !== undefined)
      await discard(await pushed(repository, { method: "DELETE", target: place, headers: {} }, signal));
  }

  return {
    async manifest(repository, name, signal) {
      const response = await pulled(repository, `manifests/${name}`, { accept: acceptedManifests }, signal);
      if (response.status !== 200) throw await refusalOf(response, repository, "pull", `manifest ${name}`);
      return {
        bytes: await read(response, imageLimits.manifestBytes, "the manifest", repository.host),
        mediaType: response.headers["content-type"],
      };
    },

    hasManifest: (repository, name, signal) =>
      finds(repository, "pull", `manifests/${name}`, { accept: acceptedManifests }, signal),

    async blob(repository, digest, from, signal) {
      const target = `blobs/${digest}`;
      let response = await pulled(repository, target, from > 0 ? { range: `bytes=${from}-` } : {}, signal);
      if (response.status === 416) {
        await discard(response);
        response = await pulled(repository, target, {}, signal);
      }
      const start =
        response.status === 206
          ? Number(/^bytes ([0-9]+)-/.exec(response.headers["content-range"] ?? "")?.[1] ?? NaN)
          : 0;
      if (response.status === 206 && !(start <= from)) {
        await discard(response);
        throw unreachable(repository.host, "it gave another part of a blob than was asked for", true);
      }
      if (response.status !== 200 && response.status !== 206)
        throw await refusalOf(response, repository, "pull", `blob ${digest}`);
      return { from: start, chunks: response.chunks };
    },

    hasBlob: (repository, digest, signal) => finds(repository, "pull,push", `blobs/${digest}`, {}, signal),

    async putBlob(repository, digest, body, signal) {
      const what = `blob ${digest}`;
      const { place } = await beginUpload(repository, undefined, what, signal);
      if (place === undefined) throw new Error("bug: an upload that was not begun");
      place.searchParams.set("digest", digest);
      const response = await pushed(
        repository,
        { method: "PUT", target: place, headers: { "content-type": "application/octet-stream" }, body },
        signal,
      );
      if (response.status !== 201) throw await refusalOf(response, repository, "pull,push", what);
      await discard(response);
    },

    async mountBlob(repository, digest, from, signal) {
      const { status, place } = await beginUpload(repository, { digest, from: from.path }, `blob ${digest}`, signal);
      await endUpload(repository, place, signal);
      return status === 201;
    },

    async putManifest(repository, name, { bytes, mediaType }, signal) {
      const response = await pushed(
        repository,
        {
          method: "PUT",
          target: at(repository, `manifests/${name}`),
          headers: { "content-type": mediaType },
          body: bytes,
        },
        signal,
      );
      if (response.status !== 201) throw await refusalOf(response, repository, "pull,push", `manifest ${name}`);
      await discard(response);
    },

    async deleteManifest(repository, digest, signal) {
      const response = await exchange(
        repository,
        "delete",
        { method: "DELETE", target: at(repository, `manifests/${digest}`), headers: {} },
        signal,
      );
      if (![200, 202, 404, 405].includes(response.status))
        throw await refusalOf(response, repository, "delete", `manifest ${digest}`);
      const body = await discard(response);
      if (response.status === 405 || codeIn(body).says === "UNSUPPORTED") return "unsupported";
      return response.status === 404 ? "absent" : "deleted";
    },

    async tryPush(repository, signal) {
      const { place } = await beginUpload(repository, undefined, "upload", signal);
      await endUpload(repository, place, signal);
    },

    async tags(repository, signal) {
      const response = await pulled(repository, "tags/list", {}, signal);
      if (response.status !== 200) throw await refusalOf(response, repository, "pull", "tags");
      return tagsIn(await read(response, maxListBytes, "the list of tags", repository.host), repository.host);
    },

    async isOpen(repository, signal) {
      try {
        const response = await exchange(repository, "pull", { method: "GET", target: "/v2/", headers: {} }, signal);
        await discard(response);
        return response.status === 200;
      } catch (error) {
        if (error instanceof McoError && error.code === "MCO_IMAGE_UNAUTHORIZED") return false;
        throw error;
      }
    },
  };

  function tagsIn(bytes: Uint8Array, host: string): readonly string[] {
    try {
      const { tags } = (JSON.parse(new TextDecoder().decode(bytes)) ?? {}) as { readonly tags?: unknown };
      return Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [];
    } catch (cause) {
      throw unreachable(host, "its list of tags is not JSON", false, {}, cause);
    }
  }
}

const inParts = (bytes: Uint8Array): StreamedBody => ({
  sizeBytes: bytes.length,
  async *open() {
    for (let at = 0; at < bytes.length; at += partBytes) yield bytes.subarray(at, at + partBytes);
  },
});

const basic = ({ user, password }: Extract<Credentials, { kind: "password" }>) =>
  `Basic ${Buffer.from(`${user}:${password}`, "utf8").toString("base64")}`;

/** The error code of a registry's answer, and nothing else of it: the message may quote anything. */
function codeIn(body: Uint8Array): { readonly says?: string } {
  try {
    const code = (
      JSON.parse(new TextDecoder().decode(body)) as { readonly errors?: readonly { readonly code?: unknown }[] } | null
    )?.errors?.[0]?.code;
    return typeof code === "string" && /^[A-Z_]{1,40}$/.test(code) ? { says: code } : {};
  } catch {
    return {}; // Not every server in between answers with JSON.
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
