import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { imageByDigest } from "../schema/image-names.ts";
import { listMap } from "../schema/schema.ts";

/** How many images one set may name. Source: openshift/api machineconfiguration/v1/types_pinnedimageset.go (master). */
export const mostPinnedImages = 500;
/** How many sets one pool may have. Source: openshift/api machineconfiguration/v1/types.go (master). */
export const mostPinnedSets = 100;

/** Source of names and limits: openshift/api machineconfiguration/v1/types_pinnedimageset.go (master). */
export const PinnedImageSet = defineResource({
  kind: "PinnedImageSet",
  plural: "pinnedimagesets",
  version: "v1",
  scope: "Cluster",
  description:
    "Images that the machines of the pools that select it fetch in advance, and that the kubelet does not remove.",
  spec: Type.Object({
    pinnedImages: listMap(
      ["name"],
      Type.Object({ name: imageByDigest("An image by its digest: host[:port]/path@sha256:….") }),
      {
        minItems: 1,
        maxItems: mostPinnedImages,
        description: "Images by digest, each once.",
      },
    ),
  }),
});
export type PinnedImageSet = ResourceOf<typeof PinnedImageSet>;
