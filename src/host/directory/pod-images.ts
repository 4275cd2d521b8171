import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { hostPaths } from "../../api/names.ts";
import type { ImageLayer, PodImages } from "../pod-images.ts";
import { heldBelow } from "./held-disk.ts";
import { type PullSettings, pullSettings } from "./pull-settings.ts";
import { machineMounts, resolveInRoot } from "./root-folder.ts";

/** Images in a folder of a machine: what a container engine would keep there, without unpacking it. */
export interface ImageFolder {
  has(image: string): Promise<boolean>;
  layersOf(image: string, settings: PullSettings, signal: AbortSignal): Promise<readonly ImageLayer[]>;
  /** @param isPinned images that are not removed, however long nothing asked for them. */
  pull(image: string, settings: PullSettings, isPinned: (image: string) => boolean, signal: AbortSignal): Promise<void>;
}

/** Machines in folders share the disk of their host, on which no kubelet watches what is free. */
const reserveBytes = 256 * 1024 * 1024;

/**
 * Folder of the images of a machine in a folder. It lies beside the machine's own file system, in which links may lead
 * elsewhere and names of blobs may be taken.
 */
export const podImageFolder = (directory: string): string => join(directory, "pod-images");

/** The images of pods on a machine in a folder. */
export function directoryPodImages({
  directory,
  folder,
}: {
  readonly directory: string;
  readonly folder: ImageFolder;
}): PodImages {
  const mounts = machineMounts(directory);
  const root = join(directory, "rootfs");
  const locate = (path: string) => resolveInRoot(root, path, mounts, true);
  const settings = () => pullSettings(locate, heldBelow(...Object.values(mounts), root));
  return {
    has: (image) => folder.has(image),
    layersOf: async (image, signal) => folder.layersOf(image, await settings(), signal),
    async pull(image, signal) {
      const own = await settings();
      const list = (await own.file(hostPaths.pinnedImages)) ?? "";
      await folder.pull(image, own, (one) => list.includes(JSON.stringify(one)), signal);
    },
    async space() {
      const { bavail, bsize } = await statfs(directory);
      return { freeBytes: bavail * bsize, reserveBytes };
    },
  };
}
