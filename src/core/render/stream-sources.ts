/** Images that a source of streams names, before anything of them is read. */
export type NamedImages =
  | { readonly verdict: "named"; readonly images: readonly string[] }
  | { readonly verdict: "refused"; readonly problem: string };

/** Where a release payload keeps its list of images. */
export const imageReferencesPath = "/release-manifests/image-references";
/** Tags of a payload that are OS images: openshift/machine-config-operator pkg/osimagestream (main). */
const osTag = /^(rhel|stream)[\w.-]*-coreos[\w.-]*$/;
const mostTags = 200;

interface Tag {
  readonly name?: unknown;
  readonly from?: { readonly kind?: unknown; readonly name?: unknown };
}

/**
 * The OS images and images with extensions that an ImageStream names: its tags of kind DockerImage that are called as
 * OS images are.
 *
 * @param text JSON, as in a release payload.
 */
export function imagesOfImageStream(text: string): NamedImages {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return { verdict: "refused", problem: "it is no JSON" };
  }
  const tags: unknown = (read as { readonly spec?: { readonly tags?: unknown } } | null)?.spec?.tags;
  if (!Array.isArray(tags)) return { verdict: "refused", problem: "it is no ImageStream: spec.tags is no list" };
  const images = (tags as readonly Tag[]).flatMap((tag) => {
    const { name, from } = tag;
    return typeof name === "string" && osTag.test(name) && from?.kind === "DockerImage" && typeof from.name === "string"
      ? [from.name]
      : [];
  });
  return images.length > mostTags
    ? { verdict: "refused", problem: `it names ${images.length} OS images, and ${mostTags} are read at most` }
    : { verdict: "named", images: [...new Set(images)] };
}
