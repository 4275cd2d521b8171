import { McoError } from "../../api/errors.ts";
import type { ClusterObjects } from "../../core/preview/plan-cluster.ts";
import { type OSImageFacts, osReleasePath, parseOsRelease, runtimePaths } from "../../core/preview/os-image-demands.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { clusterImages } from "../cluster-images.ts";
import { architecture } from "../pull-options.ts";

/** What can be read of an OS image with the cluster's own credentials, authorities and mirrors. */
export async function readOSImage(
  image: string,
  kube: KubeClient,
  objects: ClusterObjects,
  signal: AbortSignal,
): Promise<OSImageFacts> {
  const images = await clusterImages(kube, objects);
  const store = images.store(architecture());
  try {
    const release = (await store.readFiles(image, [osReleasePath], signal)).get(osReleasePath);
    return {
      verdict: "read",
      osRelease: release === undefined ? {} : parseOsRelease(new TextDecoder().decode(release)),
      files: await store.hasFiles(image, runtimePaths, signal),
    };
  } catch (error) {
    if (!(error instanceof McoError) || !error.code.startsWith("MCO_IMAGE_")) throw error;
    const { problem } = error.facts;
    return { verdict: "unread", problem: typeof problem === "string" ? problem : error.message };
  } finally {
    images.close();
  }
}
