import { McoError } from "../api/errors.ts";
import type { ImageTrees } from "../host/directory/directory-host.ts";
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../ports/node/index.ts";
import { type ImagesInUse, treeIn, recordOf, requestTree } from "./tree-record.ts";

export interface ImageTreesOptions {
  /** Without it no tree is ever removed. */
  readonly inUse?: ImagesInUse;
  readonly clock?: Clock;
}

/**
 * Unpacked OS images in a folder, by digest; others are pulled into it. Several processes may share the folder: two
 * that fetch the same image at once both end with the same tree. A pull removes trees that no machine has and that
 * nothing requested within the hour: between fetching and staging, only the request shows that a tree is needed.
 */
export function imageTrees(folder: string, { inUse, clock = systemClock }: ImageTreesOptions = {}): ImageTrees {
  return {
    async ownersIn(image) {
      const tree = treeIn(folder, image);
      const record = tree === undefined ? undefined : await recordOf(tree);
      return typeof record === "object" ? record.owners : {};
    },
    async labelsOf(image) {
      const tree = treeIn(folder, image);
      const record = tree === undefined ? undefined : await recordOf(tree);
      return typeof record === "object" ? (record.labels ?? {}) : {};
    },
    async treeOf(image) {
      const tree = treeIn(folder, image);
      if (tree === undefined || (await requestTree(tree, clock)) === undefined)
        throw new McoError("MCO_HOST_IMAGE_UNKNOWN", { image });
      return tree;
    },
    async fetch(image, settings, signal) {
      const tree = treeIn(folder, image);
      if (tree === undefined)
        throw new McoError("MCO_IMAGE_INVALID", {
          image,
          problem: "an OS image must be named by its digest: name@sha256:…",
          retryable: false,
        });
      const record = await requestTree(tree, clock);
      if (record === "born") return;
      // The pull code is loaded only when there is something to pull: an idle daemon does not carry it.
      const { fetchTree } = await import("./fetch-tree.ts");
      await fetchTree({ image, folder, tree, record, settings, inUse, clock }, signal);
    },
  };
}
