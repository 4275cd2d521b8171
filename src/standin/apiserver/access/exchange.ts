import type { Share, UserInfo } from "../schema/contract.ts";

/** One request on its way through the server. */
export interface Exchange {
  readonly user: UserInfo;
  readonly signal: AbortSignal;
  /** Texts for `Warning` headers, in order. */
  readonly warnings: string[];
  /** Waits for the next turn of the user: long work lets others go on in between. */
  readonly turn: () => Promise<void>;
}

/** A request whose sender's share of the server is known. */
export interface CallerExchange extends Exchange {
  /** The share of the user who sent it, also if that user impersonates another. */
  readonly share: Share;
}

/** How users share the loop that answers all of them. */
export interface UserTurns {
  /** Waits for the first turn of a request; `tooMany`: too many others of its share wait. Rejects once `signal` aborts. */
  begin(share: Share, signal: AbortSignal): Promise<"begun" | "tooMany">;
  /** Waits for a further turn of a request that has begun. Rejects once `signal` aborts. */
  goOn(share: Share, signal: AbortSignal): Promise<void>;
}

/** How the server's own work takes turns with that of users. */
export interface OwnTurns {
  /** Waits for the next turn. Rejects once `signal` aborts. */
  turn(): Promise<void>;
  /** Aborts when the server closes. */
  readonly signal: AbortSignal;
}

/**
 * Where nobody takes turns, nobody has waited: a request is carried out as soon as it arrives, whether its caller is still
 * there or not.
 */
export const noTurns: UserTurns = { begin: () => Promise.resolve("begun"), goOn: () => Promise.resolve() };
