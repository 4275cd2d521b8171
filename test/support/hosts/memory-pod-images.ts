import { McoError } from "../../../src/api/errors.ts";
import type { ImageLayer, ImageSpace, PodImages } from "../../../src/host/pod-images.ts";

export interface MemoryPodImagesOptions {
  /** What the registry has, by name: the layers of each image. */
  readonly registry: Readonly<Record<string, readonly ImageLayer[]>>;
  readonly space?: ImageSpace;
  /** Called before each change of the store. */
  readonly onEffect?: (what: string) => void;
  /** Called before each exchange with the registry; it may wait, and reject. */
  readonly onRequest?: (image: string, signal: AbortSignal) => Promise<void>;
}

export interface MemoryPodImages extends PodImages {
  /** What lies in the store. */
  readonly stored: Set<string>;
  /** Every pull that was begun. */
  readonly pulls: string[];
}

/** The images of a machine's engine, in memory, with a registry beside it. */
export function memoryPodImages({ registry, space, onEffect, onRequest }: MemoryPodImagesOptions): MemoryPodImages {
  const stored = new Set<string>();
  const pulls: string[] = [];
  const asked = async (image: string, signal: AbortSignal): Promise<readonly ImageLayer[]> => {
    signal.throwIfAborted();
    await onRequest?.(image, signal);
    signal.throwIfAborted();
    const layers = registry[image];
    if (layers === undefined) throw new McoError("MCO_IMAGE_ABSENT", { image, retryable: false });
    return layers;
  };
  return {
    stored,
    pulls,
    has: (image) => Promise.resolve(stored.has(image)),
    layersOf: asked,
    async pull(image, signal) {
      pulls.push(image);
      await asked(image, signal);
      onEffect?.(`pull ${image}`);
      stored.add(image);
    },
    space: () => Promise.resolve(space),
  };
}
