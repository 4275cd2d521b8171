import { McoError } from "../../api/errors.ts";
import { digestPattern, parseImageReference } from "../../core/images/image-reference.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { Random } from "../../ports/random.ts";
import { imageLimits, parseManifest } from "../../registry/manifest.ts";
import { digestOf } from "../../registry/registry-client.ts";
import type { BlobFolder, RegistryHandler, RegistryRequest, RegistryResponse, UploadProblem } from "./parts.ts";
import { type Access, registryAccess, service } from "./registry-access.ts";
import type { DeriveKey, RegistryRight, RegistryUser } from "./registry-users.ts";

export interface RegistryServerOptions {
  /** Holds everything: repositories here, contents in `blobs`. */
  readonly folder: string;
  readonly files: Files;
  readonly blobs: BlobFolder;
  readonly clock: Clock;
  readonly random: Random;
  readonly users: readonly RegistryUser[];
  readonly deriveKey: DeriveKey;
}

/**
 * While this file exists in its folder, the registry refuses pushes with the file's status and message. For drills.
 */
export const refusePushesFile = "refuse-pushes";

const maxBlobBytes = 8 * 1024 ** 3;
const maxTags = 1000;
/** A pushed blob without a manifest may belong to one that is still to come. */
const graceMs = 3_600_000;

type Code =
  | "BLOB_UNKNOWN"
  | "BLOB_UPLOAD_UNKNOWN"
  | "BLOB_UPLOAD_INVALID"
  | "DENIED"
  | "DIGEST_INVALID"
  | "MANIFEST_BLOB_UNKNOWN"
  | "MANIFEST_INVALID"
  | "MANIFEST_UNKNOWN"
  | "NAME_INVALID"
  | "NAME_UNKNOWN"
  | "SIZE_INVALID"
  | "TOOMANYREQUESTS"
  | "UNAUTHORIZED"
  | "UNAVAILABLE"
  | "UNSUPPORTED";

const errorOf = (
  status: number,
  code: Code,
  message: string,
  headers: RegistryResponse["headers"] = {},
): RegistryResponse => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify({ errors: [{ code, message }] }),
});
const empty = (status: number, headers: RegistryResponse["headers"] = {}): RegistryResponse => ({
  status,
  headers: { "content-length": "0", ...headers },
  body: "",
});
const busy = () => errorOf(429, "TOOMANYREQUESTS", "too many passwords are being checked", { "retry-after": "1" });
const unknownUpload = () => errorOf(404, "BLOB_UPLOAD_UNKNOWN", "there is no such upload");
const uploadRefused: Readonly<Record<UploadProblem, () => RegistryResponse>> = {
  busy: () => errorOf(409, "BLOB_UPLOAD_INVALID", "another request has this upload: send one after the other"),
  gone: unknownUpload,
  tooLarge: () => errorOf(413, "SIZE_INVALID", "the blob is too large"),
};
const isTag = (name: string) => /^\w[\w.-]{0,127}$/.test(name);
const route = /^\/v2\/(.{1,255}?)\/(manifests|blobs\/uploads|blobs|tags)\/([^/]{0,200})$/;

/**
 * A registry of the OCI distribution protocol, with the parts of it that one machine needs. Manifests and links to
 * blobs are in `repositories/<path>/{_manifests,_blobs,_tags}`, each written at once or not at all; contents are shared
 * between repositories.
 */
export function registryServer(options: RegistryServerOptions): RegistryHandler & { collectGarbage(): Promise<void> } {
  const server = new RegistryServer(options);
  return Object.assign((request: RegistryRequest) => server.handle(request), {
    collectGarbage: () => server.collectGarbage(),
  });
}

class RegistryServer {
  readonly #options: RegistryServerOptions;
  readonly #files: Files;
  readonly #blobs: BlobFolder;
  readonly #access: ReturnType<typeof registryAccess>;

  constructor(options: RegistryServerOptions) {
    this.#options = options;
    this.#files = options.files;
    this.#blobs = options.blobs;
    this.#access = registryAccess(options);
  }

  async handle(request: RegistryRequest): Promise<RegistryResponse> {
    const url = URL.parse(request.target, "http://registry");
    if (url === null) return errorOf(400, "NAME_INVALID", "the target is no path");
    if (url.pathname === "/token" && request.method === "GET") return this.#tokenAnswer(request, url);
    const who = await this.#access.of(request.headers["authorization"]);
    if (who.verdict === "busy") return busy();
    if (url.pathname === "/v2/")
      return who.verdict === "yes"
        ? { status: 200, headers: { "content-type": "application/json" }, body: "{}" }
        : this.#challenge(request, undefined);
    const [, path = "", kind, name = ""] = route.exec(decoded(url.pathname)) ?? [];
    if (kind === undefined) return errorOf(404, "NAME_UNKNOWN", "there is nothing at this path");
    const reading = parseImageReference(`registry:1/${path}`);
    if (reading.verdict === "refused" || reading.reference.path !== path)
      return errorOf(400, "NAME_INVALID", "the path is no name of a repository");
    const needs: RegistryRight =
      request.method === "GET" || request.method === "HEAD"
        ? "pull"
        : request.method === "DELETE" && kind !== "blobs/uploads"
          ? "delete"
          : "push";
    const refusal = this.#refused(request, who, path, kind === "blobs/uploads" ? "push" : needs);
    if (refusal !== undefined) return refusal;
    if (needs === "push") {
      const drill = await this.#files.readText(`${this.#options.folder}/${refusePushesFile}`);
      if (drill !== undefined) return drilled(drill);
    }
    if (kind === "manifests") return this.#manifests(request, path, name);
    if (kind === "tags" && name === "list" && request.method === "GET") return this.#tags(path, url);
    if (kind === "blobs") return this.#oneBlob(request, path, name);
    if (kind === "blobs/uploads") return this.#uploads(request, path, name, url, who);
    return errorOf(404, "UNSUPPORTED", "this registry cannot do that");
  }

  async #tokenAnswer(request: RegistryRequest, url: URL): Promise<RegistryResponse> {
    const given = await this.#access.token(request.headers["authorization"], url.searchParams.getAll("scope"));
    if (given === "busy") return busy();
    if (given === "unknown")
      return errorOf(401, "UNAUTHORIZED", "the name or the password is wrong", {
        "www-authenticate": `Basic realm="${service}"`,
      });
    return {
      status: 200,
      headers: { "content-type": "application/json", "cache-control": "no-store" },
      body: JSON.stringify({ token: given.token, access_token: given.token, expires_in: given.expiresIn }),
    };
  }

  #challenge({ headers }: RegistryRequest, scope: string | undefined): RegistryResponse {
    const host = /^[A-Za-z0-9.:[\]-]{1,255}$/.test(headers["host"] ?? "") ? headers["host"] : "localhost";
    const bearer = `Bearer realm="https://${host}/token",service="${service}"${scope === undefined ? "" : `,scope="${scope}"`}`;
    return errorOf(401, "UNAUTHORIZED", "name and password, or a token, are asked for", {
      "www-authenticate": [bearer, `Basic realm="${service}"`],
    });
  }

  #refused(request: RegistryRequest, who: Access, path: string, right: RegistryRight): RegistryResponse | undefined {
    if (who.verdict === "yes" && who.grant(path, right)) return undefined;
    const scope = `repository:${path}:${right === "push" ? "pull,push" : right}`;
    // A token may cover less than its user's rights, so the client may ask for another one; a password covers all.
    const isFinal = who.verdict === "yes" && /^basic /i.test(request.headers["authorization"] ?? "");
    return isFinal ? errorOf(403, "DENIED", `this user may not ${right} here`) : this.#challenge(request, scope);
  }

  async #manifests(request: RegistryRequest, path: string, name: string): Promise<RegistryResponse> {
    if (!digestPattern.test(name) && !isTag(name))
      return errorOf(400, "MANIFEST_INVALID", "neither a tag nor a sha256 digest");
    if (request.method === "PUT") return this.#putManifest(request, path, name);
    const digest = digestPattern.test(name) ? name : ((await this.#files.readText(this.#tagOf(path, name))) ?? "");
    const mediaType = digest === "" ? undefined : await this.#files.readText(this.#manifestOf(path, digest));
    const size = mediaType === undefined ? undefined : await this.#blobs.sizeOf(digest);
    if (mediaType === undefined || size === undefined)
      return errorOf(404, "MANIFEST_UNKNOWN", "there is no such manifest");
    if (request.method === "DELETE") return this.#deleteManifest(path, digest);
    const headers = { "content-type": mediaType, "content-length": String(size), "docker-content-digest": digest };
    if (request.method === "HEAD") return { status: 200, headers, body: "" };
    return request.method === "GET"
      ? { status: 200, headers, body: this.#blobs.read(digest, 0, size - 1) }
      : errorOf(405, "UNSUPPORTED", "manifests know GET, HEAD, PUT and DELETE");
  }

  async #putManifest(request: RegistryRequest, path: string, name: string): Promise<RegistryResponse> {
    const bytes = await small(request.body);
    if (bytes === undefined) return errorOf(413, "SIZE_INVALID", "the manifest is too large");
    const digest = digestOf(bytes);
    if (digestPattern.test(name) && name !== digest)
      return errorOf(400, "DIGEST_INVALID", "the manifest has another digest");
    let manifest: ReturnType<typeof parseManifest>;
    try {
      manifest = parseManifest(bytes, request.headers["content-type"]);
    } catch (error) {
      if (!(error instanceof McoError)) throw error;
      return errorOf(400, "MANIFEST_INVALID", String(error.facts["problem"]));
    }
    const parts = manifest.kind === "image" ? [manifest.config, ...manifest.layers] : [];
    for (const part of parts)
      if (!(await this.#isLinked(path, part.digest)))
        return errorOf(400, "MANIFEST_BLOB_UNKNOWN", `${part.digest} is not in this repository`);
    for (const part of manifest.kind === "index" ? manifest.manifests : [])
      if ((await this.#files.stat(this.#manifestOf(path, part.digest))) === undefined)
        return errorOf(400, "MANIFEST_BLOB_UNKNOWN", `${part.digest} is not in this repository`);
    const upload = this.#options.random.uuid();
    await this.#blobs.begin(upload);
    await this.#blobs.finish(upload, digest, once(bytes), imageLimits.manifestBytes);
    await this.#files.write(
      this.#manifestOf(path, digest),
      request.headers["content-type"] ?? "application/vnd.oci.image.manifest.v1+json",
    );
    if (name !== digest) await this.#files.write(this.#tagOf(path, name), digest);
    return empty(201, { location: `/v2/${path}/manifests/${digest}`, "docker-content-digest": digest });
  }

  /** Deletes a manifest with all of its tags; its blobs are deleted when nothing else uses them. */
  async #deleteManifest(path: string, digest: string): Promise<RegistryResponse> {
    await this.#files.remove(this.#manifestOf(path, digest));
    for (const tag of await this.#files.list(`${this.#repositoryAt(path)}/_tags`))
      if ((await this.#files.readText(this.#tagOf(path, tag))) === digest)
        await this.#files.remove(this.#tagOf(path, tag));
    await this.collectGarbage();
    return empty(202);
  }

  async #tags(path: string, url: URL): Promise<RegistryResponse> {
    if ((await this.#files.stat(this.#repositoryAt(path))) === undefined)
      return errorOf(404, "NAME_UNKNOWN", "there is no such repository");
    const asked = Number(url.searchParams.get("n") ?? maxTags);
    const last = url.searchParams.get("last") ?? "";
    const all = (await this.#files.list(`${this.#repositoryAt(path)}/_tags`)).filter((tag) => isTag(tag) && tag > last);
    return {
      status: 200,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        name: path,
        tags: all.slice(0, Number.isInteger(asked) && asked > 0 ? Math.min(asked, maxTags) : maxTags),
      }),
    };
  }

  async #oneBlob(request: RegistryRequest, path: string, digest: string): Promise<RegistryResponse> {
    const size = (await this.#isLinked(path, digest)) ? await this.#blobs.sizeOf(digest) : undefined;
    if (size === undefined) return errorOf(404, "BLOB_UNKNOWN", "there is no such blob");
    if (request.method === "DELETE") {
      await this.#files.remove(this.#linkOf(path, digest));
      return empty(202);
    }
    const headers = {
      "content-type": "application/octet-stream",
      "docker-content-digest": digest,
      "accept-ranges": "bytes",
    };
    if (request.method === "HEAD") {
      // The client may be about to push a manifest with this blob.
      await this.#blobs.touch(digest);
      return { status: 200, headers: { ...headers, "content-length": String(size) }, body: "" };
    }
    if (request.method !== "GET") return errorOf(405, "UNSUPPORTED", "blobs know GET, HEAD and DELETE");
    const [, first, final] = /^bytes=(\d{1,15})-(\d{0,15})$/.exec(request.headers["range"] ?? "") ?? [];
    const from = Number(first ?? 0);
    const to = Math.min(size - 1, final === undefined || final === "" ? size - 1 : Number(final));
    if (first !== undefined && (from > to || from >= size)) return empty(416, { "content-range": `bytes */${size}` });
    const part = first === undefined ? {} : { "content-range": `bytes ${from}-${to}/${size}` };
    return {
      status: first === undefined ? 200 : 206,
      headers: { ...headers, ...part, "content-length": String(to - from + 1) },
      body: size === 0 ? "" : this.#blobs.read(digest, from, to),
    };
  }

  async #uploads(
    request: RegistryRequest,
    path: string,
    upload: string,
    url: URL,
    who: Access,
  ): Promise<RegistryResponse> {
    const digest = url.searchParams.get("digest") ?? undefined;
    if (request.method === "POST" && upload === "") {
      const [mount, from] = [url.searchParams.get("mount"), url.searchParams.get("from")];
      const mayRead =
        from !== null &&
        parseImageReference(`registry:1/${from}`).verdict === "reference" &&
        who.verdict === "yes" &&
        who.grant(from, "pull");
      if (mount !== null && mayRead && (await this.#isLinked(from, mount))) return this.#linked(path, mount);
      const begun = this.#options.random.uuid();
      await this.#blobs.begin(begun);
      return digest === undefined ? progress(202, path, begun, 0) : this.#finish(request, path, begun, digest);
    }
    const size = /^[0-9a-f-]{36}$/.test(upload) ? await this.#blobs.uploaded(upload) : undefined;
    if (size === undefined) return unknownUpload();
    switch (request.method) {
      case "GET":
        return progress(204, path, upload, size);
      case "DELETE":
        return (await this.#blobs.abandon(upload)) === "busy" ? uploadRefused.busy() : empty(204);
      case "PATCH": {
        const begins = /^(\d{1,15})-\d{1,15}$/.exec(request.headers["content-range"] ?? "")?.[1];
        if (begins !== undefined && Number(begins) !== size)
          return errorOf(416, "BLOB_UPLOAD_INVALID", `the upload continues at ${size}`);
        const now = await this.#blobs.append(upload, request.body, maxBlobBytes);
        return typeof now === "number" ? progress(202, path, upload, now) : uploadRefused[now]();
      }
      case "PUT":
        return digest === undefined
          ? errorOf(400, "DIGEST_INVALID", "an upload ends with a digest")
          : this.#finish(request, path, upload, digest);
      default:
        return errorOf(405, "UNSUPPORTED", "uploads know GET, PATCH, PUT and DELETE");
    }
  }

  async #finish(request: RegistryRequest, path: string, upload: string, digest: string): Promise<RegistryResponse> {
    if (!digestPattern.test(digest)) return errorOf(400, "DIGEST_INVALID", "the digest is not sha256");
    const ended = await this.#blobs.finish(upload, digest, request.body, maxBlobBytes);
    if (ended === "done") return this.#linked(path, digest);
    return ended === "other" ? errorOf(400, "DIGEST_INVALID", "the blob has another digest") : uploadRefused[ended]();
  }

  async #linked(path: string, digest: string): Promise<RegistryResponse> {
    await this.#blobs.touch(digest);
    await this.#files.write(this.#linkOf(path, digest), "");
    return empty(201, { location: `/v2/${path}/blobs/${digest}`, "docker-content-digest": digest });
  }

  /** Removes blobs that no manifest of any repository has, and links to them, once they are old enough. */
  async collectGarbage(): Promise<void> {
    await this.#blobs.abandonOlderThan(graceMs);
    const used = new Set<string>();
    const repositories = await this.#repositoriesBelow("");
    for (const path of repositories)
      for (const hex of await this.#files.list(`${this.#repositoryAt(path)}/_manifests`)) {
        const digest = `sha256:${hex}`;
        const size = await this.#blobs.sizeOf(digest);
        if (size === undefined) continue;
        const bytes = await small(this.#blobs.read(digest, 0, size - 1));
        const manifest = bytes === undefined ? undefined : parseManifest(bytes);
        for (const one of [
          digest,
          ...(manifest?.kind === "image"
            ? [manifest.config.digest, ...manifest.layers.map((layer) => layer.digest)]
            : []),
        ])
          used.add(one);
      }
    for (const { digest, modifiedMs } of await this.#blobs.list()) {
      if (used.has(digest) || this.#options.clock.now() - modifiedMs < graceMs) continue;
      for (const path of repositories) await this.#files.remove(this.#linkOf(path, digest));
      await this.#blobs.remove(digest);
    }
  }

  async #repositoriesBelow(path: string): Promise<readonly string[]> {
    const names = await this.#files.list(`${this.#options.folder}/repositories/${path}`);
    const below = await Promise.all(
      names
        .filter((name) => !name.startsWith("_"))
        .map((name) => this.#repositoriesBelow(path === "" ? name : `${path}/${name}`)),
    );
    return [...(names.some((name) => name.startsWith("_")) ? [path] : []), ...below.flat()];
  }

  #repositoryAt(path: string): string {
    return `${this.#options.folder}/repositories/${path}`;
  }

  #linkOf(path: string, digest: string): string {
    return `${this.#repositoryAt(path)}/_blobs/${digest.slice("sha256:".length)}`;
  }

  #manifestOf(path: string, digest: string): string {
    return `${this.#repositoryAt(path)}/_manifests/${digest.slice("sha256:".length)}`;
  }

  #tagOf(path: string, tag: string): string {
    return `${this.#repositoryAt(path)}/_tags/${tag}`;
  }

  async #isLinked(path: string, digest: string): Promise<boolean> {
    return (
      digestPattern.test(digest) &&
      (await this.#files.stat(this.#linkOf(path, digest))) !== undefined &&
      (await this.#blobs.sizeOf(digest)) !== undefined
    );
  }
}

const progress = (status: number, path: string, upload: string, size: number) =>
  empty(status, {
    location: `/v2/${path}/blobs/uploads/${upload}`,
    range: `0-${Math.max(0, size - 1)}`,
    "docker-upload-uuid": upload,
  });

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** `503 the registry is being maintained` */
function drilled(text: string): RegistryResponse {
  const [, status = "503", says = ""] = /^\s*([45]\d\d)\s*([^\n]{0,200})/.exec(text) ?? [];
  return errorOf(
    Number(status),
    Number(status) === 403 ? "DENIED" : "UNAVAILABLE",
    says === "" ? "pushes are refused for now" : says,
  );
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function small(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > imageLimits.manifestBytes) return undefined;
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}
