import { annotations, nodeStates } from "../../src/api/names.ts";
import { conditionOf } from "../../src/api/schema/object.ts";
import { poolOfNode } from "../../src/core/pool/pool-of-node.ts";
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
  /** Machines that had the target by then, and all of the pool. */
  readonly done: number;
  readonly total: number;
  /**
   * The estimate of a stopwatch: the time since the target was first seen, divided by the machines that have it, for each
   * that is left; `undefined`: none has it yet.
   */
  readonly naive: number | undefined;
  readonly ended: number;
}

type Pending = Omit<ScoredEstimate, "ended"> & { readonly target: string };
type Pool = AgreementSnapshot["pools"][number];

const targetOf = (pool: Pool): string => pool.spec.configuration?.name ?? "";

/** Holds what `mco explain` says of the end of roll-outs against their ends. */
export class EstimateScore {
  readonly scored: ScoredEstimate[] = [];
  /** Estimates for targets that a newer one overtook: nothing can be said of them. */
  overtaken = 0;
  #pending: readonly Pending[] = [];
  /** Pool → its target, and when it was first seen to be that. */
  readonly #began = new Map<string, { readonly target: string; readonly at: number }>();

  sample(snapshot: AgreementSnapshot): void {
    for (const pool of snapshot.pools) {
      const { name } = pool.metadata;
      if (this.#began.get(name)?.target !== targetOf(pool))
        this.#began.set(name, { target: targetOf(pool), at: snapshot.now });
    }
    this.#score(snapshot);
    this.#note(snapshot);
  }

  /** Scores what was foreseen of roll-outs that have ended since. */
  #score({ now, pools }: AgreementSnapshot): void {
    const left: Pending[] = [];
    for (const estimate of this.#pending) {
      const pool = pools.find(({ metadata }) => metadata.name === estimate.pool);
      const updated = conditionOf(
        pool?.status?.conditions as { type: string; status?: string; lastTransitionTime?: string }[] | undefined,
        "Updated",
      );
      if (pool === undefined || targetOf(pool) !== estimate.target) this.overtaken += 1;
      else if (updated?.status === "True" && pool.status?.configuration?.name === estimate.target) {
        const { target: _target, ...given } = estimate;
        this.scored.push({
          ...given,
          ended: Math.max(estimate.at, Date.parse(updated.lastTransitionTime ?? "") || now),
        });
      } else left.push(estimate);
    }
    this.#pending = left;
  }

  /** Keeps what is foreseen now. */
  #note(snapshot: AgreementSnapshot): void {
    const { now, pools, explained = [] } = snapshot;
    const noted = explained.flatMap(({ json }): readonly Pending[] => {
      const pool = pools.find(({ metadata }) => `pool/${metadata.name}` === json.subject);
      if (json.likelyEnd === undefined || pool === undefined) return [];
      const { earliest, likely, latest, updates } = json.likelyEnd;
      const { name } = pool.metadata;
      const { done, total } = counts(snapshot, pool);
      const elapsed = now - (this.#began.get(name)?.at ?? now);
      return [
        {
          pool: name,
          target: targetOf(pool),
          at: now,
          earliest: Date.parse(earliest),
          likely: Date.parse(likely),
          latest: Date.parse(latest),
          updates,
          done,
          total,
          naive: done === 0 ? undefined : now + (elapsed / done) * (total - done),
        },
      ];
    });
    this.#pending = [...this.#pending, ...noted];
  }
}

/** How many machines of a pool have its target, and how many it has. */
function counts({ pools, nodes }: AgreementSnapshot, pool: Pool): { readonly done: number; readonly total: number } {
  const members = nodes.filter((node) => {
    const membership = poolOfNode(node, pools);
    return membership.verdict === "member" && membership.pool === pool.metadata.name;
  });
  const isDone = members.filter(
    ({ metadata: { annotations: has = {} } }) =>
      has[annotations.currentConfig] === targetOf(pool) && has[annotations.state] === nodeStates.done,
  );
  return { done: isDone.length, total: members.length };
}
