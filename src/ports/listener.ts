import type { HttpRequest, HttpResponse } from "./http.ts";

export interface TlsFiles {
  /** PEM */
  readonly certificate: string;
  readonly key: string;
  /** When given, clients may show certificates of this CA. */
  readonly clientCa?: string;
}

/** Subject of the certificate that a client showed and that its CA vouches for. */
export interface ClientIdentity {
  readonly commonName: string;
  readonly organizations: readonly string[];
}

export type ServerHandler = (
  request: HttpRequest,
  client: ClientIdentity | undefined,
  signal: AbortSignal,
) => Promise<HttpResponse>;

/**
 * Serves HTTPS until `signal` aborts; on loopback addresses only, unless `network` says so. Resolves when it listens.
 */
export type Listen = (
  options: { readonly host: string; readonly port: number; readonly network?: boolean; readonly tls: TlsFiles },
  handle: ServerHandler,
  signal: AbortSignal,
) => Promise<{ readonly port: number }>;

/**
 * Serves HTTP without TLS until `signal` aborts, on a loopback address; elsewhere only where `network` says so, for
 * answers that anybody may have. Resolves when it listens.
 */
export type ListenPlain = (
  options: { readonly host: string; readonly port: number; readonly network?: boolean },
  handle: ServerHandler,
  signal: AbortSignal,
) => Promise<{ readonly port: number }>;

/** One request for a configuration; what it has of a body is refused before anybody sees it. */
export interface ConfigRequest {
  readonly method: string;
  /** As on the request line. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Address of who asks. */
  readonly from: string;
  /** Subject of the certificate that was shown and that the authority for clients vouches for. */
  readonly client: ClientIdentity | undefined;
}

export interface ConfigAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Handed over as it is, and never changed meanwhile. Absent: `content-length` of the headers stands for what was not
   * asked for.
   */
  readonly body?: Uint8Array;
  /** Called once: the answer was handed over to the network whole, or its connection broke before. */
  readonly onEnd?: (how: "whole" | "broken") => void;
}

/** Never rejects. */
export type ConfigHandler = (request: ConfigRequest, signal: AbortSignal) => Promise<ConfigAnswer>;

/** Bounds of a listener that anybody can reach. */
export interface ConfigListenLimits {
  readonly connections: number;
  readonly connectionsOfOneSource: number;
  /** Of a request's line and headers. */
  readonly headerBytes: number;
  readonly headers: number;
  /**
   * From the connection, or from the last answer's end, to the end of a request's headers; the handshake has the same
   * time.
   */
  readonly headersMs: number;
  /** Between two requests of a connection. */
  readonly idleMs: number;
  /** For an answer to be taken, beside one second for each {@link leastBytesPerSecond}. */
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
  /** What was turned away before it was a request, in a word. */
  readonly onRefused: (why: string) => void;
}

export interface ConfigListener {
  readonly port: number;
  readonly connections: number;
  /**
   * From now on handshakes show this certificate; connections that there are stay. Throws where it is none, or its key
   * is another's.
   */
  swap(tls: TlsFiles): void;
  /** Takes no more connections; answers under way have `graceMs` to end. Resolves when all connections are gone. */
  close(graceMs: number): Promise<void>;
}

/**
 * Serves configurations by HTTP/1.1 over TLS; on loopback addresses only, unless `network` says so. Resolves when it
 * listens.
 */
export type ListenConfig = (options: ConfigListenOptions, handle: ConfigHandler) => Promise<ConfigListener>;
