/** One request as a registry sees it. Names of headers are in lower case. */
export interface RegistryRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body as it arrives; unread bytes are discarded. */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface RegistryResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array>;
}

/** Rejects for a bug, a full disk, or a client that disconnected. */
export type RegistryHandler = (request: RegistryRequest, signal: AbortSignal) => Promise<RegistryResponse>;

/** `busy`: another call has the upload; `gone`: there is none of this id. */
export type UploadProblem = "busy" | "gone" | "tooLarge";

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
  /**
   * Appends to an upload, unless it would become larger than `limitBytes`. One call at a time has an upload: others are
   * answered `busy`.
   *
   * @returns its size in bytes, or why it has not grown; after `tooLarge` a part of the chunks may be in it.
   */
  append(id: string, chunks: AsyncIterable<Uint8Array>, limitBytes: number): Promise<number | UploadProblem>;
  /**
   * Appends the last chunks and makes an upload the blob of this digest, atomically and durably: nothing gets into it
   * between the comparison and the end. The upload is gone after `done` and `other`.
   */
  finish(
    id: string,
    digest: string,
    last: AsyncIterable<Uint8Array>,
    limitBytes: number,
  ): Promise<"done" | "other" | UploadProblem>;
  /** `busy`: it stays. */
  abandon(id: string): Promise<"done" | "busy">;
  /** Uploads that have not grown since. */
  abandonOlderThan(milliseconds: number): Promise<void>;
}
