/** One request as a registry sees it. Names of headers are in lower case. */
export interface RegistryRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body as it comes; what is not read is thrown away. */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface RegistryResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array>;
}

/** Rejects for a bug, a full disk, or a client that went away. */
export type RegistryHandler = (request: RegistryRequest, signal: AbortSignal) => Promise<RegistryResponse>;

/**
 * Contents by digest, and those that are on their way, on a disk. Nothing lies under a digest that was not compared
 * with it.
 */
export interface BlobFolder {
  /** `undefined`: it is not there. */
  sizeOf(digest: string): Promise<number | undefined>;
  /** Bytes `from` to `to`, the last one included. */
  read(digest: string, from: number, to: number): AsyncIterable<Uint8Array>;
  remove(digest: string): Promise<void>;
  /** Refreshes its time, because it is in use. */
  touch(digest: string): Promise<void>;
  /** Digests of the stored blobs, with the time of each in milliseconds. */
  list(): Promise<readonly { readonly digest: string; readonly modifiedMs: number }[]>;
  begin(upload: string): Promise<void>;
  /** `undefined`: there is no such upload. */
  uploaded(upload: string): Promise<number | undefined>;
  /** Appends to an upload, unless it would become larger than `limitBytes`. @returns its size, or `tooLarge`. */
  append(upload: string, chunks: AsyncIterable<Uint8Array>, limitBytes: number): Promise<number | "tooLarge">;
  /**
   * Makes an upload the blob of this digest, atomically and durably; `false` where it is another. The upload is gone in
   * both cases.
   */
  finish(upload: string, digest: string): Promise<boolean>;
  abandon(upload: string): Promise<void>;
  /** Uploads that have not grown since. */
  abandonOlderThan(milliseconds: number): Promise<void>;
}
