/** Authorities that machines do not have yet, and since when they are the same (monotonic). */
export interface Changing {
  readonly bundle: string;
  readonly since: number;
}

export interface AuthorityFacts {
  /** PEM by which the API server proves itself; `undefined`: the cluster does not say. */
  readonly bundle: string | undefined;
  /** PEM that machines were given; `undefined`: none so far. */
  readonly handed: string | undefined;
  /** What the last pass saw. */
  readonly changing: Changing | undefined;
  /** Monotonic. */
  readonly now: number;
  /** How long a change must have lasted. */
  readonly waitMs: number;
}

export type AuthorityDecision =
  /** Machines have what counts, or nothing is known that counts. */
  | { readonly do: "nothing" }
  /** The authorities may change again: each change restarts kubelets. */
  | { readonly do: "wait"; readonly changing: Changing }
  | { readonly do: "handOver"; readonly bundle: string; readonly changing: Changing; readonly isFirst: boolean };

/** When machines get the authorities of the API server: the first ones at once, others when they have settled. */
export function decideAuthorities({ bundle, handed, changing, now, waitMs }: AuthorityFacts): AuthorityDecision {
  if (bundle === undefined || bundle === handed) return { do: "nothing" };
  const seen = changing?.bundle === bundle ? changing : { bundle, since: now };
  if (handed !== undefined && now - seen.since < waitMs) return { do: "wait", changing: seen };
  return { do: "handOver", bundle, changing: seen, isFirst: handed === undefined };
}
