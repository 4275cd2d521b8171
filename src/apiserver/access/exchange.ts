import type { UserInfo } from "../schema/contract.ts";

/** One request on its way through the server. */
export interface Exchange {
  readonly user: UserInfo;
  readonly signal: AbortSignal;
  /** Texts for `Warning` headers, in order. */
  readonly warnings: string[];
}
