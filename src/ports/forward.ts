import type { Logger } from "./logger.ts";

export interface ForwardOptions {
  /** A loopback address. */
  readonly host: string;
  readonly port: number;
  /**
   * Destinations of a connection, evaluated per connection. The first one that accepts it gets it; each new connection
   * starts with the next destination.
   */
  readonly to: () => readonly { readonly host: string; readonly port: number }[];
  /** Awaited for each connection before it is led on; a connection whose call rejects is closed. */
  readonly before?: () => Promise<void>;
  readonly log: Logger;
}

/**
 * Forwards TCP connections until `signal` aborts, without reading them; the destination sees the forwarder's address.
 * Closes a connection that no destination accepts. Resolves when listening.
 */
export type Forward = (options: ForwardOptions, signal: AbortSignal) => Promise<{ readonly port: number }>;
