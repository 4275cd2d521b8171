/** Bytes from a registry, from `from` on. */
export interface Incoming {
  readonly from: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}

export interface WantedBlob {
  readonly digest: string;
  readonly sizeBytes: number;
}

/**
 * Contents by their digest, and the beginnings of contents that are still on their way. Several processes may share
 * one. Nothing lies under a digest that was not compared with it.
 */
export interface BlobStore {
  has(digest: string): Promise<boolean>;
  /** `undefined` when it is not there. For small contents: it is read whole. */
  read(digest: string): Promise<Uint8Array | undefined>;
  open(digest: string): AsyncIterable<Uint8Array>;
  /** Atomic and durable. @throws McoError `MCO_IMAGE_DIGEST_MISMATCH` */
  put(digest: string, bytes: Uint8Array): Promise<void>;
  /**
   * Gets the blob, and resumes where an earlier attempt ended, even one of another process. After an interruption the
   * received bytes stay.
   *
   * @param fetch gives the bytes from the asked position, or from an earlier one.
   * @throws McoError `MCO_IMAGE_DIGEST_MISMATCH`; fact `resumed` says whether bytes of an earlier attempt were among
   * them. In either case they are discarded.
   */
  receive(blob: WantedBlob, fetch: (from: number) => Promise<Incoming>, signal: AbortSignal): Promise<void>;
  /** Removes everything else, except blobs used within the last `graceMs`: a pull may rely on them. */
  keep(digests: ReadonlySet<string>, graceMs: number): Promise<void>;
}
