import { McoError } from "../../api/errors.ts";
import type { ClusterObjects } from "../../core/preview/plan-cluster.ts";
import {
  type ExtensionFacts,
  type OSImageFacts,
  extensionPackagesPath,
  osReleasePath,
  parseExtensionPackages,
  parseOsRelease,
  runtimePaths,
} from "../../core/preview/os-image-demands.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import type { Clock } from "../../ports/clock.ts";
import { systemClock } from "../../ports/node/index.ts";
import type { ImageStore } from "../../registry/image-store.ts";
import { clusterImages } from "../cluster-images.ts";
import { architecture } from "../pull-options.ts";

/** A plan waits no longer for one OS image: its layers are fetched, which takes longer than asking for its size. */
const waitMs = 5 * 60_000;

/** The inputs of a reading: images are read with the cluster's own credentials, authorities and mirrors. */
interface Around {
  readonly kube: KubeClient;
  readonly objects: ClusterObjects;
  readonly signal: AbortSignal;
}

/** What can be read of an OS image. */
export const readOSImage = (image: string, around: Around): Promise<OSImageFacts> =>
  withStore(around, (store) => osImageFactsIn(store, image, systemClock, around.signal));

/** What can be read of an image with extensions. */
export const readExtensionsImage = (image: string, around: Around): Promise<ExtensionFacts> =>
  withStore(around, (store) => extensionFactsIn(store, image, systemClock, around.signal));

async function withStore<T>({ kube, objects }: Around, read: (store: ImageStore) => Promise<T>): Promise<T> {
  const images = await clusterImages(kube, objects);
  try {
    return await read(images.store(architecture()));
  } finally {
    images.close();
  }
}

/** The facts of an OS image that can be read within five minutes, whatever its registry sends. */
export const osImageFactsIn = (
  store: Pick<ImageStore, "readFiles" | "hasFiles">,
  image: string,
  clock: Pick<Clock, "deadline">,
  signal: AbortSignal,
): Promise<OSImageFacts> =>
  inTime(clock, signal, async (until) => {
    const release = await textIn(store, image, osReleasePath, until);
    return {
      verdict: "read",
      osRelease: release === undefined ? {} : parseOsRelease(release),
      files: await store.hasFiles(image, runtimePaths, until),
    };
  });

/** The packages of an image with extensions, likewise. */
export const extensionFactsIn = (
  store: Pick<ImageStore, "readFiles">,
  image: string,
  clock: Pick<Clock, "deadline">,
  signal: AbortSignal,
): Promise<ExtensionFacts> =>
  inTime(clock, signal, async (until) =>
    parseExtensionPackages(await textIn(store, image, extensionPackagesPath, until)),
  );

async function textIn(
  store: Pick<ImageStore, "readFiles">,
  image: string,
  path: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const contents = (await store.readFiles(image, [path], signal)).get(path);
  return contents === undefined ? undefined : new TextDecoder().decode(contents);
}

/** The reading of an image, or why it cannot be used, or did not come. */
async function inTime<T>(
  clock: Pick<Clock, "deadline">,
  signal: AbortSignal,
  read: (until: AbortSignal) => Promise<T>,
): Promise<T | { readonly verdict: "unread"; readonly problem: string }> {
  const deadline = clock.deadline(waitMs, signal);
  try {
    return await read(deadline.signal);
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.signal.aborted)
      return { verdict: "unread", problem: `its registry did not send it within ${waitMs / 1000} seconds` };
    if (!(error instanceof McoError) || !error.code.startsWith("MCO_IMAGE_")) throw error;
    const { problem } = error.facts;
    return { verdict: "unread", problem: typeof problem === "string" ? problem : error.message };
  } finally {
    deadline.cancel();
  }
}
