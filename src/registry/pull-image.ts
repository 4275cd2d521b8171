import { McoError } from "../api/errors.ts";
import {
  type ImageReference,
  parseImageReference,
  printImageReference,
  repositoryOf,
} from "../core/images/image-reference.ts";
import { type PullSource, parseRegistriesConf, pullSources } from "../core/images/registries-conf.ts";
import {
  type SignaturePolicy,
  type VerifySignature,
  judgeImage,
  keysToVerify,
  parseSignaturePolicy,
} from "../core/images/signature-policy.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import type { BlobStore, WantedBlob } from "./blob-store.ts";
import {
  type Compression,
  type Descriptor,
  type ImageIndex,
  type ImageManifest,
  diffIdsOf,
  manifestFacts,
  invalidImage,
  layersOf,
  manifestFor,
  parseManifest,
} from "./manifest.ts";
import { type RegistryClient, type Repository, digestOf } from "./registry-client.ts";
import { isRetryable, retried } from "./retries.ts";
import { findSignatures } from "./sigstore-attachments.ts";
import { eachAtOnce } from "../ports/each-at-once.ts";

export interface PullOptions {
  readonly client: RegistryClient;
  readonly store: BlobStore;
  readonly clock: Clock;
  readonly random: Random;
  /** Of the machine: `amd64`, `arm64`. */
  readonly architecture: string;
  /** Text of policy.json. */
  readonly policy: string | undefined;
  /** Text of registries.conf. */
  readonly registries: string | undefined;
  /** Checks signatures with the keys of the policy, once they were read. */
  readonly verifier: (keys: ReturnType<typeof keysToVerify>) => Promise<VerifySignature>;
}

export interface PulledLayer extends Descriptor {
  readonly compression: Compression;
  /** Digest of the layer when it is unpacked. */
  readonly diffId: string;
}

/** An image that lies whole in the store, and that the policy accepts. */
export interface PulledImage {
  readonly image: string;
  readonly digest: string;
  /** Of the index that led to it. */
  readonly indexDigest: string | undefined;
  readonly layers: readonly PulledLayer[];
  readonly labels: Readonly<Record<string, string>>;
  /** Everything in the store that it is made of. */
  readonly blobs: readonly string[];
}

/** Layers that are fetched at once. */
const layersAtOnce = 3;

/** @throws McoError `MCO_IMAGE_INVALID` */
export function readReference(image: string): ImageReference {
  const reading = parseImageReference(image);
  if (reading.verdict === "refused")
    throw invalidImage(`the reference cannot be read: ${reading.problem}`, { image: image.slice(0, 512) });
  return reading.reference;
}

/** @throws McoError `MCO_IMAGE_REFUSED` */
function readPolicy(text: string | undefined, image: string): SignaturePolicy {
  if (text === undefined)
    throw new McoError("MCO_IMAGE_REFUSED", { image, problem: "the machine has no policy.json", retryable: false });
  const reading = parseSignaturePolicy(text);
  if (reading.verdict === "refused")
    throw new McoError("MCO_IMAGE_REFUSED", {
      image,
      problem: `policy.json cannot be read: ${reading.problem}`,
      retryable: false,
    });
  return reading.policy;
}

/** The places to look for an image, in this order. @throws McoError `MCO_IMAGE_REFUSED`, `MCO_IMAGE_INVALID` */
export function readSources(text: string | undefined, reference: ImageReference, image: string): readonly PullSource[] {
  const conf = text === undefined ? undefined : parseRegistriesConf(text);
  if (text !== undefined && conf === undefined)
    throw new McoError("MCO_IMAGE_REFUSED", { image, problem: "registries.conf cannot be read", retryable: false });
  const found = pullSources(conf, reference);
  if (found.verdict === "refused")
    throw new McoError("MCO_IMAGE_REFUSED", { image, problem: found.problem, retryable: false });
  return found.sources;
}

/**
 * Pulls an image into the store: verifies every byte by digest, and the whole image by the policy. It tries the mirrors
 * in their order, then the place that the image names. If one of them fails, the next one continues where the last one
 * broke off.
 *
 * @throws McoError `MCO_IMAGE_*`; fact `retryable` states whether a retry could succeed.
 */
export async function pullImage(image: string, options: PullOptions, signal: AbortSignal): Promise<PulledImage> {
  const reference = readReference(image);
  const policy = readPolicy(options.policy, image);
  if (keysToVerify(policy, reference).length === 0)
    await admit(image, policy, reference, [], undefined, options, signal);
  return fromSources(
    image,
    reference,
    options,
    (pull, repository) => pullFrom(pull, repository, policy, signal),
    signal,
  );
}

/**
 * Checks that the machine's policy accepts an image whose contents are already in the store.
 *
 * @param digests of its manifest, and of the index that led to it. @throws McoError as {@link pullImage}.
 */
export async function admitImage(
  image: string,
  digests: readonly string[],
  options: Omit<PullOptions, "store" | "architecture">,
  signal: AbortSignal,
): Promise<void> {
  const reference = readReference(image);
  const policy = readPolicy(options.policy, image);
  if (keysToVerify(policy, reference).length === 0)
    return admit(image, policy, reference, digests, undefined, options, signal);
  return fromSources(
    image,
    reference,
    options,
    (_, repository) => admit(image, policy, reference, digests, repository, options, signal),
    signal,
  );
}

/** The known facts about an image while its locations are tried. */
interface Pull<Options> {
  readonly image: string;
  readonly reference: ImageReference;
  readonly options: Options;
  /** The digest of a tag: resolved once. */
  digest: string | undefined;
  received: number;
  /** Blobs that a place gave wrong from their first byte on: once is bad luck. */
  readonly wrongBefore: Set<string>;
}

async function fromSources<T, Options extends Pick<PullOptions, "clock" | "random" | "registries">>(
  image: string,
  reference: ImageReference,
  options: Options,
  attempt: (pull: Pull<Options>, repository: Repository) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const sources = readSources(options.registries, reference, image);
  const pull: Pull<Options> = {
    image,
    reference,
    options,
    digest: reference.digest,
    received: 0,
    wrongBefore: new Set(),
  };
  const failures = new Map<PullSource, McoError>();
  const everywhere = async (): Promise<T> => {
    for (const source of sources) {
      const earlier = failures.get(source);
      if (earlier !== undefined && !isRetryable(earlier)) continue;
      try {
        return await attempt(pull, {
          host: source.reference.host,
          path: source.reference.path,
          insecure: source.insecure,
        });
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof McoError)) throw error;
        failures.set(source, error);
      }
    }
    throw whatFailed(image, sources, failures);
  };
  return retried(everywhere, { ...options, received: () => pull.received }, signal);
}

/**
 * One failure for all places: that of the last one, which the image itself names, together with the mirrors' messages.
 */
function whatFailed(
  image: string,
  sources: readonly PullSource[],
  failures: ReadonlyMap<PullSource, McoError>,
): McoError {
  const all = sources.flatMap((source) => {
    const error = failures.get(source);
    return error === undefined ? [] : [{ from: repositoryOf(source.reference), error }];
  });
  const last = all.at(-1);
  if (last === undefined) throw new Error("bug: no place was asked for the image");
  const mirrors = all
    .slice(0, -1)
    .map(({ from, error }) => ({ from, code: error.code, problem: error.facts["problem"] }));
  return new McoError(
    last.error.code,
    {
      image,
      ...last.error.facts,
      ...(mirrors.length === 0 ? {} : { mirrors }),
      retryable: all.some(({ error }) => isRetryable(error)),
    },
    { cause: last.error },
  );
}

async function pullFrom(
  pull: Pull<PullOptions>,
  repository: Repository,
  policy: SignaturePolicy,
  signal: AbortSignal,
): Promise<PulledImage> {
  const { image, reference, options } = pull;
  const { store, architecture } = options;
  const top = await manifestOf(pull, repository, signal);
  let digest = top.digest;
  let manifest: ImageManifest | ImageIndex = top.manifest;
  if (manifest.kind === "index") {
    const chosen = manifestFor(manifest, architecture);
    digest = chosen.digest;
    manifest = (await manifestByDigest(pull, repository, digest, signal)).manifest;
    if (manifest.kind === "index") throw invalidImage("its index leads to another index", { digest });
  }
  const indexDigest = digest === top.digest ? undefined : top.digest;
  const layers = layersOf(manifest);
  if (keysToVerify(policy, reference).length > 0)
    await admit(
      image,
      policy,
      reference,
      indexDigest === undefined ? [digest] : [digest, indexDigest],
      repository,
      options,
      signal,
    );

  await receive(pull, repository, manifest.config, signal);
  const config = (await store.read(manifest.config.digest)) ?? new Uint8Array();
  const diffIds = diffIdsOf(config);
  const facts = manifestFacts(config);
  if (facts.architecture !== "" && facts.architecture !== architecture)
    throw invalidImage("it is for another kind of machines", {
      architecture: facts.architecture.slice(0, 64),
      machine: architecture,
    });
  if (diffIds.length !== layers.length)
    throw invalidImage("its config speaks of another number of layers than its manifest", {
      layers: layers.length,
      diffIds: diffIds.length,
    });
  await eachUntilFailure(layers, layersAtOnce, signal, (layer, until) => receive(pull, repository, layer, until));
  return {
    image,
    digest,
    indexDigest,
    labels: facts.labels,
    layers: layers.map((layer, i) => ({ ...layer, diffId: diffIds[i] ?? "" })),
    blobs: [
      ...new Set([
        ...(indexDigest === undefined ? [] : [indexDigest]),
        digest,
        manifest.config.digest,
        ...layers.map((layer) => layer.digest),
      ]),
    ],
  };
}

async function manifestOf(
  pull: Pull<PullOptions>,
  repository: Repository,
  signal: AbortSignal,
): Promise<{ readonly digest: string; readonly manifest: ImageManifest | ImageIndex }> {
  if (pull.digest !== undefined) return manifestByDigest(pull, repository, pull.digest, signal);
  const sent = await pull.options.client.manifest(repository, pull.reference.tag ?? "latest", signal);
  const digest = digestOf(sent.bytes);
  const manifest = parseManifest(sent.bytes, sent.mediaType);
  await pull.options.store.put(digest, sent.bytes);
  pull.digest = digest;
  return { digest, manifest };
}

async function manifestByDigest(
  pull: Pull<PullOptions>,
  repository: Repository,
  digest: string,
  signal: AbortSignal,
): Promise<{ readonly digest: string; readonly manifest: ImageManifest | ImageIndex }> {
  const { client, store } = pull.options;
  const known = await store.read(digest);
  if (known !== undefined) return { digest, manifest: parseManifest(known) };
  const sent = await client.manifest(repository, digest, signal);
  await judged(pull, repository, digest, () => store.put(digest, sent.bytes));
  return { digest, manifest: parseManifest(sent.bytes, sent.mediaType) };
}

async function receive(
  pull: Pull<PullOptions>,
  repository: Repository,
  blob: WantedBlob,
  signal: AbortSignal,
): Promise<void> {
  const { client, store } = pull.options;
  const counted = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      pull.received += chunk.length;
      yield chunk;
    }
  };
  const fetch = async (from: number) => {
    const incoming = await client.blob(repository, blob.digest, from, signal);
    return { from: incoming.from, chunks: counted(incoming.chunks) };
  };
  await judged(pull, repository, blob.digest, () => store.receive(blob, fetch, signal));
}

/** Wrong bytes are asked for again once, from the first one on. */
async function judged(
  pull: Pull<PullOptions>,
  repository: Repository,
  digest: string,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof McoError) || error.code !== "MCO_IMAGE_DIGEST_MISMATCH") throw error;
    const key = `${repositoryOf(repository)}@${digest}`;
    const retryable = error.facts["resumed"] === true || !pull.wrongBefore.has(key);
    if (error.facts["resumed"] !== true) pull.wrongBefore.add(key);
    throw new McoError(
      error.code,
      { ...error.facts, host: repository.host, repository: repository.path, retryable },
      { cause: error },
    );
  }
}

/** @param repository where to look for signatures; `undefined` if the policy requires none. */
async function admit(
  image: string,
  policy: SignaturePolicy,
  reference: ImageReference,
  digests: readonly string[],
  repository: Repository | undefined,
  { client, verifier }: Pick<PullOptions, "client" | "verifier">,
  signal: AbortSignal,
): Promise<void> {
  const keys = keysToVerify(policy, reference);
  const found = repository === undefined ? [] : await findSignatures(client, repository, digests, signal);
  const verify = await verifier(keys);
  const verdict = await judgeImage(policy, { reference, digests }, found, (key, signature) => {
    signal.throwIfAborted();
    return verify(key, signature);
  });
  if (verdict.verdict === "refused")
    throw new McoError("MCO_IMAGE_REFUSED", {
      image: printImageReference(reference),
      scope: verdict.scope,
      requirement: verdict.requirement,
      problem: verdict.problem,
      asked: image,
      retryable: false,
    });
}

/** Runs `work` for every item, a few at once. The first failure ends the others, and all have ended when this does. */
export async function eachUntilFailure<T>(
  items: readonly T[],
  atOnce: number,
  signal: AbortSignal,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const onAbort = () => stop.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await eachAtOnce(items, atOnce, async (item) => {
      try {
        await work(item, stop.signal);
      } catch (error) {
        stop.abort(error);
        throw error;
      }
    });
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
