import { existsSync } from "node:fs";
import { McoError } from "../api/errors.ts";
import type { ImageTrees } from "../host/directory/directory-host.ts";

/** OS images that lie unpacked in a folder, by digest. */
export function imageTrees(folder: string): ImageTrees {
  return {
    async treeOf(image) {
      const digest = /@sha256:([0-9a-f]{64})$/.exec(image)?.[1];
      const tree = `${folder}/sha256-${digest}`;
      if (digest === undefined || !existsSync(`${tree}.complete`)) throw new McoError("MCO_HOST_IMAGE_UNKNOWN", { image });
      return tree;
    },
  };
}
