import { McoError } from "../../api/errors.ts";
import type { ClusterObjects } from "../../core/preview/plan-cluster.ts";
import { type OSImageFacts, osReleasePath, parseOsRelease, runtimePaths } from "../../core/preview/os-image-demands.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import type { Clock } from "../../ports/clock.ts";
import { systemClock } from "../../ports/node/index.ts";
import type { ImageStore } from "../../registry/image-store.ts";
import { clusterImages } from "../cluster-images.ts";
import { architecture } from "../pull-options.ts";

/** A plan waits no longer for one OS image: its layers are fetched, which takes longer than asking for its size. */
const waitMs = 5 * 60_000;

/** What can be read of an OS image with the cluster's own credentials, authorities and mirrors. */
export async function readOSImage(
  image: string,
  kube: KubeClient,
  objects: ClusterObjects,
  signal: AbortSignal,
): Promise<OSImageFacts> {
  const images = await clusterImages(kube, objects);
  try {
    return await osImageFactsIn(images.store(architecture()), image, systemClock, signal);
  } finally {
    images.close();
  }
}

/** The facts of an OS image that can be read within five minutes, whatever its registry sends. */
export async function osImageFactsIn(
  store: Pick<ImageStore, "readFiles" | "hasFiles">,
  image: string,
  clock: Pick<Clock, "deadline">,
  signal: AbortSignal,
): Promise<OSImageFacts> {
  const deadline = clock.deadline(waitMs, signal);
  try {
    const release = (await store.readFiles(image, [osReleasePath], deadline.signal)).get(osReleasePath);
    return {
      verdict: "read",
      osRelease: release === undefined ? {} : parseOsRelease(new TextDecoder().decode(release)),
      files: await store.hasFiles(image, runtimePaths, deadline.signal),
    };
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
