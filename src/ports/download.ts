/** One GET of a whole document. */
export interface Download {
  /** `https:` or `http:`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** PEM; who vouches for the server, beside those that the machine believes in anyway. */
  readonly authorities: readonly string[];
  /** The server begins to answer within this time. */
  readonly headersTimeoutMs: number;
  readonly maxBytes: number;
}

export interface Downloaded {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Resolves with whatever the server answers; rejects when it cannot be reached, is not believed, or says too much. */
export type Downloader = (what: Download, signal: AbortSignal) => Promise<Downloaded>;
