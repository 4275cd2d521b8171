import type { Part, Share } from "../schema/contract.ts";

/** How much users take of something: each of them, and all of a part together. */
export class ShareCounts {
  readonly #ofUsers = new Map<string, number>();
  readonly #ofParts: Record<Part, number> = { others: 0, nodes: 0, cluster: 0 };

  ofUser({ of }: Pick<Share, "of">): number {
    return this.#ofUsers.get(of) ?? 0;
  }

  ofPart({ part }: Pick<Share, "part">): number {
    return this.#ofParts[part];
  }

  /** What all take together. */
  get all(): number {
    const { others, nodes, cluster } = this.#ofParts;
    return others + nodes + cluster;
  }

  /** @param amount negative: it is given back. */
  add({ of, part }: Share, amount: number): void {
    this.#ofParts[part] += amount;
    const own = this.ofUser({ of }) + amount;
    if (own === 0) this.#ofUsers.delete(of);
    else this.#ofUsers.set(of, own);
  }

  /** @returns what gives the amount back, once. */
  take(share: Share, amount: number): () => void {
    this.add(share, amount);
    let isTaken = true;
    return () => {
      if (isTaken) this.add(share, -amount);
      isTaken = false;
    };
  }
}
