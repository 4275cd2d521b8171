import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { listMap } from "../schema/schema.ts";

/** How many images one set may name. Source: openshift/api machineconfiguration/v1/types_pinnedimageset.go (master). */
export const mostPinnedImages = 500;
/** How many sets one pool may have. Source: openshift/api machineconfiguration/v1/types.go (master). */
export const mostPinnedSets = 100;

/** CEL: the name before the digest is host[:port]/path. */
export const imageNameRule =
  "self.matches('^(localhost|[a-zA-Z0-9-]+([.][a-zA-Z0-9-]+)+|[a-zA-Z0-9.-]+:[0-9]{1,5})(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(@|$)')";

/**
 * The reference allows one folder between host and name; registries with nested projects have more, so that any number
 * is taken here.
 */
const imageName = Type.Unsafe<string>({
  type: "string",
  minLength: 1,
  maxLength: 447,
  description: "An image by its digest: host[:port]/path@sha256:….",
  "x-kubernetes-validations": [
    {
      rule: "self.matches('^[^@]*@sha256:[a-f0-9]{64}$')",
      message:
        "an image is pinned by its digest: write host/path@sha256: and 64 lowercase hexadecimal digits; skopeo inspect --format {{.Digest}} docker://IMAGE prints them",
    },
    {
      rule: imageNameRule,
      message:
        "the name before the @ is host[:port]/path, with the registry's host, in lower case and without a tag: registry.example.com/path@sha256:…",
    },
  ],
});

/** Source of names and limits: openshift/api machineconfiguration/v1/types_pinnedimageset.go (master). */
export const PinnedImageSet = defineResource({
  kind: "PinnedImageSet",
  plural: "pinnedimagesets",
  version: "v1",
  scope: "Cluster",
  description:
    "Images that the machines of the pools that select it fetch in advance, and that the kubelet does not remove.",
  spec: Type.Object({
    pinnedImages: listMap(["name"], Type.Object({ name: imageName }), {
      minItems: 1,
      maxItems: mostPinnedImages,
      description: "Images by digest, each once.",
    }),
  }),
});
export type PinnedImageSet = ResourceOf<typeof PinnedImageSet>;
