/**
 * One HTTP exchange as data. The API server answers it and the client's transport sends it. The composition root
 * connects the two over a socket, within one process, or through the simulation's unreliable network.
 */
export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** Path with query, as on the request line. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /**
   * Bytes of the answer that its reader takes. A transport that meets a longer one reads no further, closes the
   * connection, and rejects with {@link AnswerTooLong}. Streams are the reader's own concern.
   */
  readonly mostBytes?: number;
}

/** An answer with more bytes than its reader takes. */
export class AnswerTooLong extends Error {
  override readonly name = "AnswerTooLong";

  constructor(mostBytes: number) {
    super(`the answer has more than ${mostBytes} bytes`);
  }
}

export interface HttpResponse {
  readonly status: number;
  /** Names in lower case. A repeated header (`warning`) is a list. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** A stream for watches and followed logs: yields chunks as they arrive, ends when the iterator returns. */
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array>;
}

/** Answers one request. Rejects only for a bug or when `signal` aborts; refusals are responses. */
export type HttpHandler = (request: HttpRequest, signal: AbortSignal) => Promise<HttpResponse>;
