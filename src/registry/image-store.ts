import { McoError } from "../api/errors.ts";
import { type ImageReference, printImageReference, repositoryOf } from "../core/images/image-reference.ts";
import type { PullSource } from "../core/images/registries-conf.ts";
import { acceptsAnything } from "../core/images/signature-policy.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import { type AuthFile, parseAuthFile } from "./auth-file.ts";
import { composeImage, parentFrom, type Addition, type ParentImage, type ParentLayer } from "./compose-image.ts";
import {
  type Descriptor,
  type ImageManifest,
  diffIdsOf,
  imageLimits,
  invalidImage,
  layersOf,
  manifestFacts,
  manifestFor,
  parseManifest,
} from "./manifest.ts";
import { type PullOptions, admitImage, eachUntilFailure, readReference, readSources } from "./pull-image.ts";
import { readImageFiles } from "./read-image-files.ts";
import { type RegistryClient, type Repository, digestOf, registryClient } from "./registry-client.ts";
import { isRetryable, retried } from "./retries.ts";
import type { ProxySettings, StreamedBody, Wire } from "./wire.ts";

/** The properties of an image without its layers. */
export interface ImageInfo {
  readonly is: "image";
  /** Of the manifest for the architecture that is asked for. */
  readonly digest: string;
  readonly architecture: string;
  /** Milliseconds since the epoch; 0 where it does not say. */
  readonly created: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly layers: readonly Descriptor[];
  /** Of the layers, unpacked. */
  readonly diffIds: readonly string[];
}

export interface MissingImage {
  readonly is: "absent" | "denied" | "unreachable";
  readonly problem: string;
}

export interface AppendRequest extends Addition {
  /** Pullspec of the parent. */
  readonly parent: string;
}

/** Images in registries: inspected, composed, deleted. Failures are `MCO_IMAGE_*` with the fact `retryable`. */
export interface ImageStore {
  /**
   * The pullspec by digest, of an image that the policy accepts by the name that is given. Without a policy, or with one
   * that accepts whatever has this name, no registry is queried for one that has a digest already.
   */
  resolve(image: string, signal: AbortSignal): Promise<string>;
  /** With the pull credentials. Rejects for an image whose content cannot be used (`MCO_IMAGE_INVALID`). */
  inspect(image: string, signal: AbortSignal): Promise<ImageInfo | MissingImage>;
  /**
   * Contents of files by their absolute paths, from the topmost layer that has them; missing paths and other entries
   * are left out.
   */
  readFiles(image: string, paths: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, Uint8Array>>;
  /** Those of the paths at which the image has a file, of any size. */
  hasFiles(image: string, paths: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>>;
  /** An image as the parent of other images. */
  parentOf(image: string, signal: AbortSignal): Promise<ParentImage>;
  /** As {@link publish}, on an image of a registry. */
  append(request: AppendRequest, signal: AbortSignal): Promise<{ readonly digest: string }>;
  /**
   * Makes an image from a parent and pushes it: one manifest, with the parent's layers as they are and the new layer on top.
   * Skips blobs that the registry already has. The same parent and addition give the same digest, so that it is safe to
   * repeat.
   */
  publish(parent: ParentImage, addition: Addition, signal: AbortSignal): Promise<{ readonly digest: string }>;
  /** @param image by digest: other tags of the digest go with it. */
  delete(image: string, signal: AbortSignal): Promise<"deleted" | "absent" | "denied" | "unsupported">;
  /** Whether the push credentials give access to a repository; nothing is stored. */
  mayPush(repository: string, signal: AbortSignal): Promise<"yes" | "denied" | "unreachable">;
  /** Whether it can be read without credentials. */
  isWorldReadable(repository: string, signal: AbortSignal): Promise<boolean>;
}

/** The credentials and rules for reading images. */
export interface ImageStoreSettings {
  /** Texts of auth files. */
  readonly auth: { readonly pull: string | undefined; readonly push: string | undefined };
  /** PEM texts by host. */
  readonly certificates: (host: string) => Promise<readonly string[]>;
  /** Text of registries.conf. */
  readonly registries?: string | undefined;
  /** Text of policy.json. Without one, or without a verifier, every image is accepted. */
  readonly policy?: string | undefined;
  /** Of the machines that run the images: `amd64`, `arm64`. */
  readonly architecture: string;
  readonly proxy?: ProxySettings | undefined;
}

export interface ImageStoreOptions extends ImageStoreSettings {
  readonly wire: Wire;
  readonly clock: Clock;
  readonly random: Random;
  readonly verifier?: PullOptions["verifier"];
  readonly quietMs?: number;
}

/** Failures in a row of one step; the caller retries the whole operation later. */
const failuresInARow = 3;
const layersAtOnce = 3;

interface Found {
  readonly place: Repository;
  readonly digest: string;
  readonly indexDigest: string | undefined;
  readonly bytes: Uint8Array;
  readonly manifest: ImageManifest;
  readonly config: Uint8Array;
}

export const imageStore = (options: ImageStoreOptions): ImageStore => new RegistryImages(options);

class RegistryImages implements ImageStore {
  readonly #options: ImageStoreOptions;
  readonly #chance: Parameters<typeof retried>[1];
  /** With the pull credentials. */
  readonly #puller: RegistryClient;
  /** With the push credentials. */
  readonly #pusher: RegistryClient;
  /** With both: a parent may be in the target's registry, which the pull credentials may not cover. */
  readonly #reader: RegistryClient;

  constructor(options: ImageStoreOptions) {
    this.#options = options;
    this.#chance = { clock: options.clock, random: options.random, limit: failuresInARow };
    const pullAuth = parseAuthFile(options.auth.pull);
    const pushAuth = parseAuthFile(options.auth.push);
    this.#puller = this.#clientFor(pullAuth);
    this.#pusher = this.#clientFor(pushAuth);
    this.#reader = this.#clientFor(new Map([...pushAuth, ...pullAuth]));
  }

  async resolve(image: string, signal: AbortSignal): Promise<string> {
    const reference = readReference(image);
    if (reference.digest !== undefined && !this.#isJudged(reference)) return printImageReference(reference);
    const { digest, digests } = await this.#atSources(
      image,
      async (place, { digest: named, tag }) => {
        const top = await manifestAt(this.#puller, place, named ?? tag ?? "latest", signal);
        const read = parseManifest(top.bytes, top.mediaType);
        const own = read.kind === "image" ? [] : [manifestFor(read, this.#options.architecture).digest];
        return { digest: top.digest, digests: [...own, top.digest] };
      },
      signal,
    );
    await this.#admit(this.#puller, image, digests, signal);
    return reference.digest === undefined ? `${repositoryOf(reference)}@${digest}` : printImageReference(reference);
  }

  async inspect(image: string, signal: AbortSignal): Promise<ImageInfo | MissingImage> {
    let found: Found;
    try {
      found = await this.#find(this.#puller, image, signal);
    } catch (error) {
      const missing = missingOf(error);
      if (missing === undefined) throw error;
      return missing;
    }
    return {
      is: "image",
      digest: found.digest,
      ...manifestFacts(found.config),
      layers: found.manifest.layers,
      diffIds: diffIdsOf(found.config),
    };
  }

  async readFiles(
    image: string,
    paths: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Uint8Array>> {
    return this.#readFiles(image, paths, "contents", signal);
  }

  async hasFiles(image: string, paths: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    return new Set((await this.#readFiles(image, paths, "presence", signal)).keys());
  }

  async #readFiles(
    image: string,
    paths: readonly string[],
    how: "contents" | "presence",
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Uint8Array>> {
    const found = await this.#find(this.#reader, image, signal);
    return readImageFiles(
      layersOf(found.manifest),
      (layer, until) => this.#layerAt(found.place, layer, until),
      paths,
      signal,
      how,
    );
  }

  async append({ parent, ...addition }: AppendRequest, signal: AbortSignal): Promise<{ readonly digest: string }> {
    return this.publish(await this.parentOf(parent, signal), addition, signal);
  }

  async delete(image: string, signal: AbortSignal): Promise<"deleted" | "absent" | "denied" | "unsupported"> {
    const { digest, ...reference } = readReference(image);
    if (digest === undefined) throw invalidImage("only an image that is named by its digest is deleted", { image });
    try {
      return await retried(
        () => this.#pusher.deleteManifest(this.#targetOf(repositoryOf(reference)), digest, signal),
        this.#chance,
        signal,
      );
    } catch (error) {
      if (error instanceof McoError && error.code === "MCO_IMAGE_UNAUTHORIZED") return "denied";
      throw error;
    }
  }

  async mayPush(repository: string, signal: AbortSignal): Promise<"yes" | "denied" | "unreachable"> {
    try {
      await retried(() => this.#pusher.tryPush(this.#targetOf(repository), signal), this.#chance, signal);
      return "yes";
    } catch (error) {
      const missing = missingOf(error);
      if (missing === undefined) throw error;
      return missing.is === "unreachable" ? "unreachable" : "denied";
    }
  }

  async isWorldReadable(repository: string, signal: AbortSignal): Promise<boolean> {
    const anybody = this.#clientFor(new Map());
    const target = this.#targetOf(repository);
    try {
      await anybody.tags(target, signal);
      return true;
    } catch (error) {
      const missing = missingOf(error);
      // A missing repository will be as public as the registry.
      if (missing?.is === "absent") return anybody.isOpen(target, signal);
      if (missing?.is === "denied") return false;
      throw error;
    }
  }

  async parentOf(image: string, signal: AbortSignal): Promise<ParentImage> {
    const found = await this.#find(this.#reader, image, signal);
    const digests = found.indexDigest === undefined ? [found.digest] : [found.digest, found.indexDigest];
    await this.#admit(this.#reader, image, digests, signal);
    const layers = layersOf(found.manifest);
    return parentFrom(found.bytes, found.config, (digest) => {
      const layer = layers.find((one) => one.digest === digest);
      if (layer === undefined) throw new Error("bug: a layer that is not in its manifest");
      return { repository: found.place, open: (until) => this.#layerAt(found.place, layer, until) };
    });
  }

  async publish(parent: ParentImage, addition: Addition, signal: AbortSignal): Promise<{ readonly digest: string }> {
    const target = this.#targetOf(addition.repository);
    const { manifest, config, kept, layer } = composeImage(parent, addition);
    const pushing = (work: () => Promise<void>) => retried(() => onlyBrokenLines(work), this.#chance, signal);
    await eachUntilFailure(kept, layersAtOnce, signal, (one, until) => pushing(() => this.#bring(one, target, until)));
    for (const { digest, bytes } of [...(layer === undefined ? [] : [layer]), config])
      await pushing(async () => {
        if (!(await this.#pusher.hasBlob(target, digest, signal)))
          await this.#pusher.putBlob(target, digest, bytes, signal);
      });
    await pushing(() => this.#pusher.putManifest(target, addition.tag, manifest, signal));
    return { digest: manifest.digest };
  }

  #isJudged(reference: ImageReference): boolean {
    return this.#options.verifier !== undefined && !acceptsAnything(this.#options.policy, reference);
  }

  /** Rejects for an image that the policy does not accept. */
  async #admit(client: RegistryClient, image: string, digests: readonly string[], signal: AbortSignal): Promise<void> {
    const { clock, random, policy, registries, verifier } = this.#options;
    if (policy !== undefined && verifier !== undefined)
      await admitImage(image, digests, { client, clock, random, policy, registries, verifier }, signal);
  }

  /** Copies a layer to the target: mounts it from the same registry, or streams it. */
  async #bring(layer: ParentLayer, target: Repository, signal: AbortSignal): Promise<void> {
    const { digest, size } = layer.descriptor;
    if (await this.#pusher.hasBlob(target, digest, signal)) return;
    const from = layer.repository;
    if (
      from !== undefined &&
      from.host === target.host &&
      from.path !== target.path &&
      (await this.#pusher.mountBlob(target, digest, from, signal))
    )
      return;
    const body: StreamedBody = { sizeBytes: size, open: () => layer.open(signal) };
    await this.#pusher.putBlob(target, digest, body, signal);
  }

  /** Manifest and configuration of an image for our architecture. */
  async #find(client: RegistryClient, image: string, signal: AbortSignal): Promise<Found> {
    return this.#atSources(
      image,
      async (place, reference) => {
        const top = await manifestAt(client, place, reference.digest ?? reference.tag ?? "latest", signal);
        const read = parseManifest(top.bytes, top.mediaType);
        const own =
          read.kind === "image"
            ? top
            : await manifestAt(client, place, manifestFor(read, this.#options.architecture).digest, signal);
        const manifest = read.kind === "image" ? read : parseManifest(own.bytes, own.mediaType);
        if (manifest.kind === "index") throw invalidImage("its index leads to another index", { digest: own.digest });
        return {
          place,
          digest: own.digest,
          indexDigest: own === top ? undefined : top.digest,
          bytes: own.bytes,
          manifest,
          config: await smallBlob(client, place, manifest.config, signal),
        };
      },
      signal,
    );
  }

  /** Tries every source of an image in order; rejects with the last failure. */
  async #atSources<T>(
    image: string,
    work: (place: Repository, reference: ImageReference) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const sources = readSources(this.#options.registries, readReference(image), image);
    return retried(
      async () => {
        let last: unknown;
        for (const source of sources) {
          try {
            return await work(placeOf(source), source.reference);
          } catch (error) {
            signal.throwIfAborted();
            if (!(error instanceof McoError)) throw error;
            last = new McoError(
              error.code,
              {
                image,
                ...error.facts,
                retryable: isRetryable(error) || (last instanceof McoError && isRetryable(last)),
              },
              { cause: error },
            );
          }
        }
        throw last;
      },
      this.#chance,
      signal,
    );
  }

  /** The bytes of a layer, and none beyond; a broken connection is resumed where it broke. */
  async *#layerAt(
    place: Repository,
    { digest, sizeBytes }: Descriptor,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    let position = 0;
    for (let failures = 0; position < sizeBytes;) {
      const began = position;
      try {
        const { from, chunks } = await this.#reader.blob(place, digest, position, signal);
        let skip = position - from;
        for await (const chunk of chunks) {
          const rest = chunk.subarray(Math.min(skip, chunk.length));
          skip -= chunk.length - rest.length;
          position += rest.length;
          if (position > sizeBytes) throw mismatch(place, digest);
          if (rest.length > 0) yield rest;
        }
        if (position < sizeBytes && position === began)
          throw new McoError("MCO_IMAGE_UNREACHABLE", {
            host: place.host,
            repository: place.path,
            problem: "a layer broke off",
            retryable: true,
          });
      } catch (error) {
        signal.throwIfAborted();
        failures = position > began ? 1 : failures + 1;
        if (!isRetryable(error) || failures >= failuresInARow) throw error;
        await this.#options.clock.sleep(1000 * failures, signal);
      }
    }
  }

  #targetOf(repository: string): Repository {
    const [source] = readSources(this.#options.registries, readReference(repository), repository).slice(-1);
    if (source === undefined) throw new Error("bug: a repository without a place");
    const { host, path } = readReference(repository);
    return { host, path, insecure: source.insecure };
  }

  #clientFor(auth: AuthFile): RegistryClient {
    const { wire, clock, certificates, proxy, quietMs } = this.#options;
    return registryClient({ wire, clock, certificates, auth, proxy, ...(quietMs === undefined ? {} : { quietMs }) });
  }
}

async function manifestAt(
  client: RegistryClient,
  place: Repository,
  name: string,
  signal: AbortSignal,
): Promise<{ readonly bytes: Uint8Array; readonly digest: string; readonly mediaType: string | undefined }> {
  const sent = await client.manifest(place, name, signal);
  const digest = digestOf(sent.bytes);
  if (name.startsWith("sha256:") && digest !== name) throw mismatch(place, name);
  return { bytes: sent.bytes, digest, mediaType: sent.mediaType };
}

async function smallBlob(
  client: RegistryClient,
  place: Repository,
  { digest, sizeBytes }: Descriptor,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const { from, chunks } = await client.blob(place, digest, 0, signal);
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > Math.min(sizeBytes, imageLimits.configBytes)) throw mismatch(place, digest);
    parts.push(chunk);
  }
  const bytes = Buffer.concat(parts);
  if (from !== 0 || digestOf(bytes) !== digest) throw mismatch(place, digest);
  return bytes;
}

const placeOf = ({ reference: { host, path }, insecure }: PullSource): Repository => ({ host, path, insecure });

const mismatch = ({ host, path }: Repository, digest: string) =>
  new McoError("MCO_IMAGE_DIGEST_MISMATCH", {
    host,
    repository: path,
    digest,
    problem: "what came has another digest",
    retryable: false,
  });

/**
 * Does not retry a registry that refuses for now: the caller retries later, after a longer delay.
 */
async function onlyBrokenLines(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof McoError) || error.facts["status"] === undefined) throw error;
    throw new McoError(
      error.code,
      { ...error.facts, retryable: false, laterMayHelp: isRetryable(error) },
      { cause: error },
    );
  }
}

function missingOf(error: unknown): MissingImage | undefined {
  if (!(error instanceof McoError)) return undefined;
  const { status, problem, says } = error.facts;
  const words = [typeof status === "number" ? `the registry answered ${status}` : undefined, says, problem].filter(
    (word) => typeof word === "string",
  );
  const text = words.length === 0 ? error.message : words.join(": ");
  if (error.code === "MCO_IMAGE_ABSENT") return { is: "absent", problem: text };
  if (error.code === "MCO_IMAGE_UNAUTHORIZED") return { is: "denied", problem: text };
  return error.code === "MCO_IMAGE_UNREACHABLE" ? { is: "unreachable", problem: text } : undefined;
}
