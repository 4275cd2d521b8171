import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { McoError } from "../api/errors.ts";
import { acceptedManifests, imageLimits } from "./manifest.ts";
import {
  type Action,
  type Ask,
  type RegistryClientOptions,
  RegistryExchange,
  type RegistryAnswer,
  type Repository,
  codeIn,
  discard,
  readBody,
  refusalOf,
  unreachable,
} from "./registry-exchange.ts";
import type { StreamedBody } from "./wire.ts";

export type { RegistryClientOptions, Repository } from "./registry-exchange.ts";

/**
 * The OCI distribution protocol. Failures are `MCO_IMAGE_*` whose facts say whether a retry can help (`retryable`),
 * what the client was doing (`action`: pull, push or delete), and, if a registry answered, its `status`.
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
  /** Mounts a blob from another repository of the same registry; `false` if the registry does not mount it. */
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
  /** Begins an upload and cancels it: nothing is stored. Rejects if the registry refuses the upload. */
  tryPush(repository: Repository, signal: AbortSignal): Promise<void>;
  /** Tags of a repository; the first ones where there are many. */
  tags(repository: Repository, signal: AbortSignal): Promise<readonly string[]>;
  /** Whether the registry accepts these credentials, or requests without any. */
  isOpen(repository: Repository, signal: AbortSignal): Promise<boolean>;
}

const maxListBytes = 1024 * 1024;

export const digestOf = (bytes: Uint8Array): string => `sha256:${bytesToHex(sha256(bytes))}`;

export const registryClient = (options: RegistryClientOptions): RegistryClient =>
  new DistributionClient(new RegistryExchange(options));

/** The verbs of the protocol. Source: distribution docs/spec/api.md (main). */
class DistributionClient implements RegistryClient {
  readonly #registry: RegistryExchange;

  constructor(registry: RegistryExchange) {
    this.#registry = registry;
  }

  async manifest(
    repository: Repository,
    name: string,
    signal: AbortSignal,
  ): Promise<{ readonly bytes: Uint8Array; readonly mediaType: string | undefined }> {
    const response = await this.#pulled(repository, `manifests/${name}`, { accept: acceptedManifests }, signal);
    if (response.status !== 200) throw await refusalOf(response, repository, "pull", `manifest ${name}`);
    return {
      bytes: await readBody(response, imageLimits.manifestBytes, "the manifest", repository.host),
      mediaType: response.headers["content-type"],
    };
  }

  hasManifest(repository: Repository, name: string, signal: AbortSignal): Promise<boolean> {
    return this.#finds(repository, "pull", `manifests/${name}`, { accept: acceptedManifests }, signal);
  }

  async blob(
    repository: Repository,
    digest: string,
    from: number,
    signal: AbortSignal,
  ): Promise<{ readonly from: number; readonly chunks: AsyncIterable<Uint8Array> }> {
    const target = `blobs/${digest}`;
    let response = await this.#pulled(repository, target, from > 0 ? { range: `bytes=${from}-` } : {}, signal);
    if (response.status === 416) {
      await discard(response);
      response = await this.#pulled(repository, target, {}, signal);
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
  }

  hasBlob(repository: Repository, digest: string, signal: AbortSignal): Promise<boolean> {
    return this.#finds(repository, "pull,push", `blobs/${digest}`, {}, signal);
  }

  async putBlob(
    repository: Repository,
    digest: string,
    body: Uint8Array | StreamedBody,
    signal: AbortSignal,
  ): Promise<void> {
    const what = `blob ${digest}`;
    const { place } = await this.#beginUpload(repository, undefined, what, signal);
    if (place === undefined) throw new Error("bug: an upload that was not begun");
    place.searchParams.set("digest", digest);
    const response = await this.#pushed(
      repository,
      { method: "PUT", target: place, headers: { "content-type": "application/octet-stream" }, body },
      signal,
    );
    if (response.status !== 201) throw await refusalOf(response, repository, "pull,push", what);
    await discard(response);
  }

  async mountBlob(repository: Repository, digest: string, from: Repository, signal: AbortSignal): Promise<boolean> {
    const { status, place } = await this.#beginUpload(
      repository,
      { digest, from: from.path },
      `blob ${digest}`,
      signal,
    );
    await this.#endUpload(repository, place, signal);
    return status === 201;
  }

  async putManifest(
    repository: Repository,
    name: string,
    { bytes, mediaType }: { readonly bytes: Uint8Array; readonly mediaType: string },
    signal: AbortSignal,
  ): Promise<void> {
    const response = await this.#pushed(
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
  }

  async deleteManifest(
    repository: Repository,
    digest: string,
    signal: AbortSignal,
  ): Promise<"deleted" | "absent" | "unsupported"> {
    const response = await this.#registry.exchange(
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
  }

  async tryPush(repository: Repository, signal: AbortSignal): Promise<void> {
    const { place } = await this.#beginUpload(repository, undefined, "upload", signal);
    await this.#endUpload(repository, place, signal);
  }

  async tags(repository: Repository, signal: AbortSignal): Promise<readonly string[]> {
    const response = await this.#pulled(repository, "tags/list", {}, signal);
    if (response.status !== 200) throw await refusalOf(response, repository, "pull", "tags");
    return tagsIn(await readBody(response, maxListBytes, "the list of tags", repository.host), repository.host);
  }

  async isOpen(repository: Repository, signal: AbortSignal): Promise<boolean> {
    try {
      const response = await this.#registry.exchange(
        repository,
        "pull",
        { method: "GET", target: "/v2/", headers: {} },
        signal,
      );
      await discard(response);
      return response.status === 200;
    } catch (error) {
      if (error instanceof McoError && error.code === "MCO_IMAGE_UNAUTHORIZED") return false;
      throw error;
    }
  }

  #pulled(
    repository: Repository,
    target: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<RegistryAnswer> {
    return this.#registry.exchange(
      repository,
      "pull",
      { method: "GET", target: at(repository, target), headers: { "accept-encoding": "identity", ...headers } },
      signal,
    );
  }

  #pushed(repository: Repository, request: Ask, signal: AbortSignal): Promise<RegistryAnswer> {
    return this.#registry.exchange(repository, "pull,push", request, signal);
  }

  /** Whether a HEAD request finds something. */
  async #finds(
    repository: Repository,
    action: Action,
    target: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const response = await this.#registry.exchange(
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
  async #beginUpload(
    repository: Repository,
    mount: { readonly digest: string; readonly from: string } | undefined,
    what: string,
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly place: URL | undefined }> {
    const query =
      mount === undefined ? "" : `?mount=${encodeURIComponent(mount.digest)}&from=${encodeURIComponent(mount.from)}`;
    const begun = await this.#pushed(
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
    const { origin } = await this.#registry.endpointOf(repository, signal);
    const place = URL.parse(begun.headers["location"] ?? "", origin);
    if (place === null || place.origin !== new URL(origin).origin)
      throw unreachable(repository.host, "it wants a blob to be sent elsewhere", false);
    return { status: 202, place };
  }

  /** Cancels an upload. The registry cleans up uploads that remain, so the response does not matter. */
  async #endUpload(repository: Repository, place: URL | undefined, signal: AbortSignal): Promise<void> {
    if (place !== undefined)
      await discard(await this.#pushed(repository, { method: "DELETE", target: place, headers: {} }, signal));
  }
}

const at = ({ path }: Repository, target: string) => `/v2/${path}/${target}`;

function tagsIn(bytes: Uint8Array, host: string): readonly string[] {
  try {
    const { tags } = (JSON.parse(new TextDecoder().decode(bytes)) ?? {}) as { readonly tags?: unknown };
    return Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [];
  } catch (cause) {
    throw unreachable(host, "its list of tags is not JSON", false, {}, cause);
  }
}
