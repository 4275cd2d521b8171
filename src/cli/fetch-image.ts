import { McoError } from "../api/errors.ts";
import type { PullSettings } from "../host/directory/pull-settings.ts";
import type { ImageLayer } from "../host/pod-images.ts";
import type { Clock } from "../ports/clock.ts";
import { systemFiles, systemRandom } from "../ports/node/index.ts";
import type { BlobStore } from "../registry/blob-store.ts";
import { imageStore } from "../registry/image-store.ts";
import { folderStore } from "../registry/node/folder-store.ts";
import { httpsWire } from "../registry/node/https-wire.ts";
import { pullImage } from "../registry/pull-image.ts";
import { architecture, pullOptions } from "./pull-options.ts";

/** The layers of an image for this machine, asked of its registry. @throws McoError `MCO_IMAGE_…` */
export async function inspectedLayers(
  image: string,
  settings: PullSettings,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly ImageLayer[]> {
  const wire = httpsWire();
  try {
    const store = imageStore({
      wire: wire.send,
      clock,
      random: systemRandom,
      auth: { pull: settings.auth, push: undefined },
      certificates: (host) => settings.certificates(host),
      registries: settings.registries,
      architecture: architecture(),
    });
    const found = await store.inspect(image, signal);
    if (found.is === "image") return found.layers.map(({ digest, sizeBytes }) => ({ digest, sizeBytes }));
    const { problem } = found;
    switch (found.is) {
      case "absent":
        throw new McoError("MCO_IMAGE_ABSENT", { image, problem, retryable: false });
      case "denied":
        throw new McoError("MCO_IMAGE_UNAUTHORIZED", { image, problem, retryable: false });
      case "unreachable":
        throw new McoError("MCO_IMAGE_UNREACHABLE", { image, problem, retryable: true });
    }
  } finally {
    wire.close();
  }
}

/** Pulls an image into a folder. @returns what it is made of, and what removes everything else. */
export async function pulledInto(
  folder: string,
  image: string,
  settings: PullSettings,
  clock: Clock,
  signal: AbortSignal,
): Promise<{ readonly blobs: readonly string[]; readonly keep: BlobStore["keep"] }> {
  const wire = httpsWire();
  try {
    const store = folderStore(folder, { clock, random: systemRandom, files: systemFiles });
    const options = { ...pullOptions(settings, clock, wire), store, architecture: architecture() };
    const { blobs } = await pullImage(image, options, signal);
    return { blobs, keep: (digests, graceMs) => store.keep(digests, graceMs) };
  } finally {
    wire.close();
  }
}
