/** How a registry is authenticated. */
export interface Trust {
  /** PEM: authorities beside the system's own. */
  readonly authorities: readonly string[];
  /** Accept any certificate. Only where the machine's registries.conf says `insecure`. */
  readonly unverified: boolean;
}

/**
 * Proxies by the scheme of the request, and hosts that need none (as in the environment variables of the same names).
 */
export interface ProxySettings {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

export interface WireRequest {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
  readonly url: URL;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | StreamedBody;
  readonly trust: Trust;
  readonly proxy?: ProxySettings;
}

/** A body that is not held in memory. */
export interface StreamedBody {
  readonly sizeBytes: number;
  /** The bytes from the first one on. Called again where the request is sent again. */
  open(): AsyncIterable<Uint8Array>;
}

export interface WireResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as it comes; leaving it early closes the connection. Breaking off throws a {@link WireFailure}. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/**
 * One HTTP exchange as it is: redirects and refusals are answers. Rejects with a {@link WireFailure}, or the signal's
 * reason.
 */
export type Wire = (request: WireRequest, signal: AbortSignal) => Promise<WireResponse>;

export class WireFailure extends Error {
  override readonly name = "WireFailure";
  /** `notTls`: it answered, but not in TLS. `untrusted`: its certificate is not believed. */
  readonly kind: "unreachable" | "notTls" | "untrusted";
  /** The issuer of an untrusted certificate. */
  readonly issuer: string | undefined;

  constructor(
    kind: "unreachable" | "notTls" | "untrusted",
    message: string,
    options?: { readonly cause?: unknown; readonly issuer?: string | undefined },
  ) {
    super(message, options);
    this.kind = kind;
    this.issuer = options?.issuer;
  }
}
