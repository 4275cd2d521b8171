import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import type { PackedImage } from "./pack-tree.ts";
import type { RegistryClient, Repository } from "./registry-client.ts";
import { retried } from "./retries.ts";

/** Sends an image to a repository, with or without a tag. Existing blobs are not sent again. Safe to repeat. */
export async function pushImage(
  image: PackedImage,
  to: Repository & { readonly tag?: string },
  { client, ...chance }: { readonly client: RegistryClient; readonly clock: Clock; readonly random: Random },
  signal: AbortSignal,
): Promise<void> {
  const send = async () => {
    for (const { digest, bytes } of [image.layer, image.config])
      if (!(await client.hasBlob(to, digest, signal))) await client.putBlob(to, digest, bytes, signal);
    await client.putManifest(to, to.tag ?? image.manifest.digest, image.manifest, signal);
  };
  await retried(send, chance, signal);
}
