import { annotations, imageLabels } from "../../api/names.ts";
import { isDigestPullspec, namedImage } from "../config/image-pair.ts";
import type { NodeConfig, ContentMode } from "../config/node-config.ts";

/**
 * An image that a machine boots instead of the one that its configuration names, and which parts of the configuration
 * it contains.
 */
export interface ImagePair {
  /** `repository@sha256:…` */
  readonly image: string;
  readonly content: ContentMode;
}

/** The target in the annotations of a Node. */
export type DesiredImage =
  | { readonly verdict: "none" }
  | { readonly verdict: "image"; readonly pair: ImagePair }
  | {
      readonly verdict: "refused";
      readonly reason: "ConflictingImageAnnotations" | "ImageNotDigest" | "ImageContentMismatch";
      readonly message: string;
    };

/**
 * Reads a machine's desired image. An image that does not declare its content, as others write it, contains no files.
 */
export function desiredImageOf(has: Readonly<Record<string, string>>): DesiredImage {
  const named = namedImage(has, "desired");
  if (named.verdict === "none") return named;
  if (named.verdict === "conflicting")
    return {
      verdict: "refused",
      reason: "ConflictingImageAnnotations",
      message: `${annotations.desiredImage} asks for ${named.image}, ${annotations.desiredOSImage} for ${named.older}; nothing is done before both are the same`,
    };
  const wanted = named.image;
  if (!isDigestPullspec(wanted))
    return {
      verdict: "refused",
      reason: "ImageNotDigest",
      message: `${wanted} does not name an image by its digest; nothing is done before ${annotations.desiredImage} has the form repository@sha256:…`,
    };
  const stated = has[annotations.desiredImageContent] ?? "";
  const content = stated === "" ? "os-only" : stated;
  if (content !== "full" && content !== "os-only")
    return {
      verdict: "refused",
      reason: "ImageContentMismatch",
      message: `${annotations.desiredImageContent} is ${content}, and an image is full or os-only`,
    };
  return { verdict: "image", pair: { image: wanted, content } };
}

/** In words: the annotation and the image's label disagree about its content. */
export const contentMismatch = ({ image, content }: ImagePair, says: string): string =>
  `${annotations.desiredImageContent} says ${content}, and the label ${imageLabels.content} of ${image} says ${says}; nothing is done before both are the same`;

/** The content that an image declares in its label; an image without the label contains no files. */
export const contentSaid = (label: string | undefined): string =>
  label === undefined || label === "" ? "os-only" : label;

/**
 * The configuration as a machine with this image applies it: packages and kernel come from the image, kernel arguments
 * from the configuration.
 */
export const withImage = (config: NodeConfig, pair: ImagePair | undefined): NodeConfig =>
  pair === undefined
    ? config
    : {
        ...config,
        osImage: pair.image,
        extensions: [],
        extensionsImage: "",
        kernelType: "default",
        imageContent: pair.content,
      };

/** The separate image of a configuration; `undefined` if it has none. */
export const pairOf = ({
  osImage,
  imageContent,
}: Pick<NodeConfig, "osImage" | "imageContent">): ImagePair | undefined =>
  imageContent === undefined ? undefined : { image: osImage, content: imageContent };

/** Whether two configurations are the same target: the same name, and the same separate image. */
export const sameTarget = (a: NodeConfig, b: NodeConfig): boolean =>
  a.name === b.name && samePair(pairOf(a), pairOf(b));

export const samePair = (a: ImagePair | undefined, b: ImagePair | undefined): boolean =>
  a?.image === b?.image && a?.content === b?.content;

/** Whether a configuration name and an image denote this target. */
export const isTargetOf = (
  named: { readonly target: string; readonly image?: string; readonly content?: ContentMode },
  config: NodeConfig,
): boolean =>
  named.target === config.name && named.image === pairOf(config)?.image && named.content === config.imageContent;

/** A target in words: its name, with its image. */
export const describeTarget = (config: NodeConfig): string =>
  config.imageContent === undefined ? config.name : `${config.name} with image ${config.osImage}`;
