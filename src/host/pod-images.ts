/** A part of an image, as a registry sends it. */
export interface ImageLayer {
  readonly digest: string;
  readonly sizeBytes: number;
}

/** Bytes of the disk that images lie on. */
export interface ImageSpace {
  readonly freeBytes: number;
  /** What has to stay free: with less, the kubelet evicts pods. */
  readonly reserveBytes: number;
}

/**
 * The images of pods on one machine, in the store of its container engine; the operating system's are
 * {@link import("./host.ts").HostOs}'s. Images are named by their digest. As of a Host, every verb may be repeated, and
 * none decides anything.
 */
export interface PodImages {
  /** Whether the image lies in the store whole. */
  has(image: string, signal: AbortSignal): Promise<boolean>;
  /**
   * The layers of an image for this machine's architecture, asked of the registry or its mirrors.
   *
   * @throws McoError `MCO_IMAGE_…`, with `facts.retryable` for whether a retry can help.
   */
  layersOf(image: string, signal: AbortSignal): Promise<readonly ImageLayer[]>;
  /**
   * Brings an image into the store, verified: digest, the machine's signature policy, architecture. What an interrupted
   * pull has brought is not fetched again.
   *
   * @throws McoError `MCO_IMAGE_…`, with `facts.retryable` for whether a retry can help.
   */
  pull(image: string, signal: AbortSignal): Promise<void>;
  /** `undefined`: it cannot be found out. */
  space(signal: AbortSignal): Promise<ImageSpace | undefined>;
}
