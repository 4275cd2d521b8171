import type { UserInfo } from "../schema/contract.ts";

/** One request on its way through the server. */
export interface Exchange {
  readonly user: UserInfo;
  readonly signal: AbortSignal;
  /** Texts for `Warning` headers, in order. */
  readonly warnings: string[];
  /** Waits for the next turn of the user: long work lets others go on in between. */
  readonly turn: () => Promise<void>;
}
