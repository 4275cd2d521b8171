/** One GET of a whole document. */
export interface Download {
  /** `https:` or `http:`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** PEM: authorities to trust besides those of the machine. */
  readonly authorities: readonly string[];
  /** Trusts `authorities` alone, for servers of the cluster. */
  readonly onlyAuthorities?: boolean;
  /** Time limit for the first byte of the answer. */
  readonly headersTimeoutMs: number;
  readonly maxBytes: number;
}

export interface Downloaded {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/**
 * Resolves with any answer of the server; rejects if the server is unreachable or untrusted, or the answer too long.
 */
export type Downloader = (what: Download, signal: AbortSignal) => Promise<Downloaded>;
