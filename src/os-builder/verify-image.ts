import { McoError } from "../api/errors.ts";
import { imageLabels } from "../api/names.ts";
import type { BuildFailure } from "../core/build/build-failures.ts";
import { classifyImageError } from "../core/build/build-failures.ts";
import type { Images } from "./images.ts";
import type { ContentMode } from "../core/config/node-config.ts";
import { defined } from "../api/schema/defined.ts";
import { clipText } from "../core/text/clip-text.ts";

export type Verification =
  | { readonly verdict: "good"; readonly facts: VerifiedImage }
  | { readonly verdict: "failed"; readonly failure: BuildFailure }
  /** The registry does not respond, so nothing is known about the image. */
  | { readonly verdict: "waits"; readonly message: string };

/** What is kept of a finished image. */
export interface VerifiedImage {
  readonly architecture: string;
  readonly layers: number;
  readonly bytes: number;
  /** Version of its kernel, if the image states it. */
  readonly kernel?: string;
}

/** Each of these marks an image as bootable. */
const bootable = ["ostree.bootable", "containers.bootc"] as const;
const kernelLabels = ["ostree.linux", "coreos.linux"] as const;

/** What is shown of a text that an image brings: a label may be as large as a manifest. */
const mostShown = 256;

const failed = (cause: string): Verification => ({
  verdict: "failed",
  failure: { class: "VerifyFailed", step: "verify", cause, excerpt: "" },
});

/**
 * Verifies a finished image as the nodes will: with their credentials, by its digest. Its labels must match the build.
 * `base`: the image that it was built on, if the registry can be asked whether that one is bootable at all.
 */
export async function verifyImage(
  image: string,
  expected: {
    readonly architecture: string;
    readonly mode: ContentMode;
    readonly baseDigest: string;
    readonly base?: string;
  },
  nodes: Images,
  signal: AbortSignal,
): Promise<Verification> {
  let found: Awaited<ReturnType<Images["inspect"]>>;
  try {
    found = await nodes.inspect(image, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof McoError)) throw error;
    return { verdict: "failed", failure: classifyImageError("verify", error) };
  }
  if (found.is === "unreachable")
    return {
      verdict: "waits",
      message: `the registry does not answer, so that ${image} cannot be verified: ${found.problem}`,
    };
  if (found.is === "denied") return failed(`nodes may not pull ${image}: ${found.problem}`);
  if (found.is !== "image") return failed(`the registry does not have ${image}`);
  if (found.architecture !== expected.architecture)
    return failed(
      `the image is for ${clipText(found.architecture, mostShown)}, and the nodes are ${expected.architecture}`,
    );
  const says = (label: string) => found.labels[label] ?? "";
  const shown = (label: string) => clipText(says(label), mostShown);
  if (says(imageLabels.content) !== expected.mode)
    return failed(
      `the image says ${imageLabels.content}=${shown(imageLabels.content)}, and ${expected.mode} was to be built`,
    );
  if (says(imageLabels.baseDigest) !== expected.baseDigest)
    return failed(`the image stands on ${shown(imageLabels.baseDigest)}, and ${expected.baseDigest} was asked for`);
  if (expected.base !== undefined && !bootable.some((label) => says(label) !== "")) {
    const base = await nodes.inspect(expected.base, signal).catch(() => undefined);
    if (base?.is === "image" && bootable.some((label) => (base.labels[label] ?? "") !== ""))
      return failed("the image does not say any more that it can be booted, as its base does");
  }
  const kernel = kernelLabels.map(shown).find((version) => version !== "");
  return {
    verdict: "good",
    facts: {
      architecture: found.architecture,
      layers: found.layers.length,
      bytes: found.layers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      ...defined({ kernel }),
    },
  };
}
