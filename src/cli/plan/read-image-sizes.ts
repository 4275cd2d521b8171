import { McoError } from "../../api/errors.ts";
import { parseImageReference } from "../../core/images/image-reference.ts";
import type { ImageSize } from "../../core/preview/size-pinned-images.ts";
import type { Clock } from "../../ports/clock.ts";
import { eachAtOnce } from "../../ports/each-at-once.ts";
import type { ImageStore } from "../../registry/image-store.ts";

const imagesAtOnce = 8;
/** A plan waits no longer for registries. */
const waitMs = 60_000;
/** A registry that has not answered so often is not asked again. */
const mostUnanswered = 2;

/**
 * The sizes of images, as registries or their mirrors name them. What cannot be found out has a reason, and never keeps
 * the others from being asked for.
 *
 * @param images by digest, each once.
 */
export async function readImageSizes(
  images: readonly string[],
  store: Pick<ImageStore, "inspect">,
  clock: Pick<Clock, "deadline">,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ImageSize>> {
  const sizes = new Map<string, ImageSize>();
  const unanswered = new Map<string, number>();
  const deadline = clock.deadline(waitMs, signal);
  try {
    await eachAtOnce(images, imagesAtOnce, async (image) => {
      const host = hostOf(image);
      if ((unanswered.get(host) ?? 0) >= mostUnanswered)
        return void sizes.set(image, { verdict: "unread", problem: `${host} did not answer for the images before it` });
      const { size, isUnanswered } = await sizeOf(image, store, deadline.signal, signal);
      if (isUnanswered) unanswered.set(host, (unanswered.get(host) ?? 0) + 1);
      sizes.set(image, size);
    });
  } finally {
    deadline.cancel();
  }
  return sizes;
}

/** The registry that a name of an image begins with. */
function hostOf(image: string): string {
  const read = parseImageReference(image);
  return read.verdict === "reference" ? read.reference.host : image;
}

async function sizeOf(
  image: string,
  store: Pick<ImageStore, "inspect">,
  until: AbortSignal,
  signal: AbortSignal,
): Promise<{ readonly size: ImageSize; readonly isUnanswered: boolean }> {
  try {
    const found = await store.inspect(image, until);
    return found.is === "image"
      ? { size: { verdict: "read", layers: found.layers }, isUnanswered: false }
      : { size: { verdict: "unread", problem: found.problem }, isUnanswered: found.is === "unreachable" };
  } catch (error) {
    signal.throwIfAborted();
    if (until.aborted)
      return {
        size: { verdict: "unread", problem: `no answer within ${waitMs / 1000} seconds` },
        isUnanswered: true,
      };
    if (!(error instanceof McoError) || !error.code.startsWith("MCO_IMAGE_")) throw error;
    const { problem } = error.facts;
    return {
      size: { verdict: "unread", problem: typeof problem === "string" ? problem : error.message },
      isUnanswered: false,
    };
  }
}
