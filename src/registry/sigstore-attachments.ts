import { McoError } from "../api/errors.ts";
import type { FoundSignature } from "../core/images/signature-policy.ts";
import { parseManifest } from "./manifest.ts";
import { type RegistryClient, type Repository, digestOf } from "./registry-client.ts";

/** Source: sigstore/cosign specs/SIGNATURE_SPEC.md (main). */
const payloadType = "application/vnd.dev.cosign.simplesigning.v1+json";
const signatureAnnotation = "dev.cosignproject.cosign/signature";

/** The most signatures that are read of one manifest. */
const maxSignatures = 64;
const maxPayloadBytes = 64 * 1024;

/** The tag under which the signatures of a manifest lie. */
export const signatureTag = (digest: string): string => `${digest.replace(":", "-")}.sig`;

/** The signatures beside an image in its repository, each once. None of them is verified yet. */
export async function findSignatures(
  client: RegistryClient,
  repository: Repository,
  digests: readonly string[],
  signal: AbortSignal,
): Promise<readonly FoundSignature[]> {
  const found = new Map<string, FoundSignature>();
  for (const digest of digests) {
    const sent = await ifThere(client.manifest(repository, signatureTag(digest), signal));
    if (sent === undefined) continue;
    const manifest = parseManifest(sent.bytes, sent.mediaType);
    for (const layer of manifest.kind === "image" ? manifest.layers.slice(0, maxSignatures) : []) {
      const signature = layer.annotations[signatureAnnotation];
      if (layer.mediaType !== payloadType || signature === undefined || layer.sizeBytes > maxPayloadBytes) continue;
      const key = `${layer.digest} ${signature}`;
      if (found.has(key)) continue;
      const payload = await readBlob(client, repository, layer.digest, layer.sizeBytes, signal);
      found.set(key, { payload, signature: Buffer.from(signature, "base64") });
    }
  }
  return [...found.values()];
}

async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof McoError && error.code === "MCO_IMAGE_ABSENT") return undefined;
    throw error;
  }
}

async function readBlob(
  client: RegistryClient,
  repository: Repository,
  digest: string,
  sizeBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (await client.blob(repository, digest, 0, signal)).chunks) {
    size += chunk.length;
    if (size > sizeBytes) break;
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks);
  if (size < sizeBytes)
    throw new McoError("MCO_IMAGE_UNREACHABLE", {
      host: repository.host,
      problem: "a signature broke off",
      digest,
      retryable: true,
    });
  if (size > sizeBytes || digestOf(bytes) !== digest)
    throw new McoError("MCO_IMAGE_DIGEST_MISMATCH", { host: repository.host, digest, retryable: false });
  return bytes;
}
