import { conditionOf } from "../../src/api/schema/object.ts";
import type { AgreementSnapshot } from "../support/agreement.ts";

/** An estimated end of a roll-out, and when it really ended; times in milliseconds since the epoch. */
export interface ScoredEstimate {
  readonly pool: string;
  /** When it was given. */
  readonly at: number;
  readonly earliest: number;
  readonly likely: number;
  readonly latest: number;
  /** From how many updates. */
  readonly updates: number;
  readonly ended: number;
}

type Pending = Omit<ScoredEstimate, "ended"> & { readonly target: string };

/** Holds what `mco explain` says of the end of roll-outs against their ends. */
export class EstimateScore {
  readonly scored: ScoredEstimate[] = [];
  /** Estimates for targets that a newer one overtook: nothing can be said of them. */
  overtaken = 0;
  #pending: readonly Pending[] = [];

  sample({ now, pools, explained }: AgreementSnapshot): void {
    const left: Pending[] = [];
    for (const estimate of this.#pending) {
      const pool = pools.find(({ metadata }) => metadata.name === estimate.pool);
      const updated = conditionOf(
        pool?.status?.conditions as { type: string; status?: string; lastTransitionTime?: string }[] | undefined,
        "Updated",
      );
      if (pool?.spec.configuration?.name !== estimate.target) this.overtaken += 1;
      else if (updated?.status === "True" && pool.status?.configuration?.name === estimate.target) {
        const { target: _target, ...given } = estimate;
        this.scored.push({
          ...given,
          ended: Math.max(estimate.at, Date.parse(updated.lastTransitionTime ?? "") || now),
        });
      } else left.push(estimate);
    }
    this.#pending = left;
    for (const { json } of explained ?? []) {
      const pool = pools.find(({ metadata }) => `pool/${metadata.name}` === json.subject);
      if (json.likelyEnd === undefined || pool === undefined) continue;
      const { earliest, likely, latest, updates } = json.likelyEnd;
      this.#pending = [
        ...this.#pending,
        {
          pool: pool.metadata.name,
          target: pool.spec.configuration?.name ?? "",
          at: now,
          earliest: Date.parse(earliest),
          likely: Date.parse(likely),
          latest: Date.parse(latest),
          updates,
        },
      ];
    }
  }
}
