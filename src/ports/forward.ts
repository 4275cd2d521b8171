import type { Logger } from "./logger.ts";

export interface ForwardOptions {
  /** A loopback address. */
  readonly host: string;
  readonly port: number;
  /**
   * Where a connection may be led, asked for each. The first one that takes it has it; every connection begins with the
   * next one.
   */
  readonly to: () => readonly { readonly host: string; readonly port: number }[];
  readonly log: Logger;
}

/**
 * Leads TCP connections on until `signal` aborts, without a look at what they carry; whoever takes one sees the address
 * that it came from. A connection that nobody takes is closed. Resolves when it listens.
 */
export type Forward = (options: ForwardOptions, signal: AbortSignal) => Promise<{ readonly port: number }>;
