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

export type ServerHandler = (request: HttpRequest, client: ClientIdentity | undefined, signal: AbortSignal) => Promise<HttpResponse>;

/** Serves HTTPS until `signal` aborts; on loopback addresses only, unless `network` says so. Resolves when it listens. */
export type Listen = (options: { readonly host: string; readonly port: number; readonly network?: boolean; readonly tls: TlsFiles }, handle: ServerHandler, signal: AbortSignal) => Promise<{ readonly port: number }>;

/**
 * Serves HTTP without TLS until `signal` aborts, on a loopback address; elsewhere only where `network` says so, for answers that
 * anybody may have. Resolves when it listens.
 */
export type ListenPlain = (options: { readonly host: string; readonly port: number; readonly network?: boolean }, handle: ServerHandler, signal: AbortSignal) => Promise<{ readonly port: number }>;
