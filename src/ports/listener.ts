import type { HttpRequest, HttpResponse } from "./http.ts";

export interface TlsFiles {
  /** PEM */
  readonly certificate: string;
  readonly key: string;
  /** If present, clients may present certificates of this CA. */
  readonly clientCa?: string;
}

/** Subject of the client's certificate, verified against the CA. */
export interface ClientIdentity {
  readonly commonName: string;
  readonly organizations: readonly string[];
}

export type ServerHandler = (
  request: HttpRequest,
  client: ClientIdentity | undefined,
  signal: AbortSignal,
  /** Address of the client; absent for a caller in this process. */
  from?: string,
) => Promise<HttpResponse>;

/** Limits of a listener that answers requests with bodies. What is refused gets 413, 429 or 503 and a sentence. */
export interface ListenLimits {
  readonly connections: number;
  readonly connectionsOfOneSource: number;
  /** Requests under way, from their headers to the end of their answers. */
  readonly requests: number;
  /** For the handshake, and for a request to arrive as a whole. */
  readonly arriveMs: number;
  /** For one request, from its headers to the end of its answer. */
  readonly requestMs: number;
  readonly bodyBytes: number;
  /** Requests that one source may send at once, and so many more each second. */
  readonly burst: number;
  readonly perSecond: number;
  /** The source that an address is counted as. */
  readonly sourceOf: (address: string) => string;
}

/**
 * Serves HTTPS until `signal` aborts; on loopback addresses only, unless `network` is set.
 * Resolves when listening.
 */
export type Listen = (
  options: {
    readonly host: string;
    readonly port: number;
    readonly network?: boolean;
    readonly tls: TlsFiles;
    readonly limits: ListenLimits;
  },
  handle: ServerHandler,
  signal: AbortSignal,
) => Promise<{ readonly port: number }>;

/**
 * Serves HTTP without TLS until `signal` aborts, on a loopback address. Set `network` to serve elsewhere, for public
 * answers only. Resolves when listening.
 */
export type ListenPlain = (
  options: {
    readonly host: string;
    readonly port: number;
    readonly network?: boolean;
    readonly limits: ListenLimits;
  },
  handle: ServerHandler,
  signal: AbortSignal,
) => Promise<{ readonly port: number }>;

/** One request for a configuration; the listener refuses bodies. */
export interface ConfigRequest {
  readonly method: string;
  /** As on the request line. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Address of the client. */
  readonly from: string;
  /** Subject of the client's certificate, verified against the client authority. */
  readonly client: ClientIdentity | undefined;
}

export interface ConfigAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as is and never modified, in one piece or several. If absent, the `content-length` header gives the length (HEAD requests). */
  readonly body?: Uint8Array | readonly Uint8Array[];
  /**
   * Called once. `whole`: the network has taken the whole answer. `broken`: the connection broke after the answer began:
   * the client may have all of it. `unsent`: it broke before the first byte.
   */
  readonly onEnd?: (how: "whole" | "broken" | "unsent") => void;
}

/** Bytes of a body. */
export const lengthOf = (body: NonNullable<ConfigAnswer["body"]>): number =>
  body instanceof Uint8Array ? body.length : body.reduce((sum, { length }) => sum + length, 0);

/** Never rejects. */
export type ConfigHandler = (request: ConfigRequest, signal: AbortSignal) => Promise<ConfigAnswer>;

/** Limits of a listener that everybody can reach. */
export interface ConfigListenLimits {
  readonly connections: number;
  readonly connectionsOfOneSource: number;
  /** For the request line and headers. */
  readonly headerBytes: number;
  readonly headers: number;
  /**
   * From the connection, or the end of the previous answer, to the end of the request headers; the handshake has the
   * same limit.
   */
  readonly headersMs: number;
  /** Between two requests of a connection. */
  readonly idleMs: number;
  /** For the client to receive an answer, plus one second for each {@link leastBytesPerSecond}. */
  readonly takeMs: number;
  readonly leastBytesPerSecond: number;
}

export interface ConfigListenOptions {
  readonly host: string;
  readonly port: number;
  readonly network?: boolean;
  readonly tls: TlsFiles;
  readonly settings: { readonly minVersion: "TLSv1.2" | "TLSv1.3"; readonly ciphers: readonly string[] };
  readonly limits: ConfigListenLimits;
  /** The source that an address is counted as: all addresses of one client are one source. */
  readonly sourceOf: (address: string) => string;
  /** Why a connection was refused before it was a request, as one word. */
  readonly onRefused: (why: string) => void;
}

export interface ConfigListener {
  readonly port: number;
  readonly connections: number;
  /**
   * Shows this certificate in later handshakes; existing connections stay. Throws if it is not a certificate, or if the
   * key does not match.
   */
  swap(tls: TlsFiles): void;
  /** Accepts no more connections; current answers have `graceMs` to end. Resolves when all connections are closed. */
  close(graceMs: number): Promise<void>;
}

/**
 * Serves configurations by HTTP/1.1 over TLS; on loopback addresses only, unless `network` is set. Resolves when
 * listening.
 */
export type ListenConfig = (options: ConfigListenOptions, handle: ConfigHandler) => Promise<ConfigListener>;
