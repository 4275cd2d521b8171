import type { Part } from "../schema/contract.ts";
import type { Watcher } from "./watch-stream.ts";

/** Characters of selectors that watches keep; a parsed one takes up to fifty times its text. */
export interface SelectorLimits {
  /** Each watch has so many for nothing: what kubelets and controllers ask for is shorter. */
  readonly ofEach: number;
  /** Of one user, by whose part of the server it takes. */
  readonly ofOne: Readonly<Record<Part, number>>;
  /** Of all users of a part. */
  readonly ofAll: Readonly<Record<Part, number>>;
}

const kibi = 1024;
export const selectorLimits: SelectorLimits = {
  ofEach: 512,
  ofOne: { others: 512 * kibi, nodes: 64 * kibi, cluster: 2048 * kibi },
  ofAll: { others: 2048 * kibi, nodes: 1024 * kibi, cluster: 4096 * kibi },
};

/** Counts what the selectors of open watches take: such a watch lives for an hour, whether anything changes or not. */
export class LongSelectors {
  readonly #limits: SelectorLimits;
  readonly #ofOne = new Map<string, number>();
  readonly #ofAll: Record<Part, number> = { others: 0, nodes: 0, cluster: 0 };

  constructor(limits: SelectorLimits) {
    this.#limits = limits;
  }

  /** @returns what gives the room of the watch back; `undefined`: there is none. */
  take({ of, part }: Watcher, characters: number): (() => void) | undefined {
    const counted = Math.max(0, characters - this.#limits.ofEach);
    const own = (this.#ofOne.get(of) ?? 0) + counted;
    const all = this.#ofAll[part] + counted;
    if (counted > 0 && (own > this.#limits.ofOne[part] || all > this.#limits.ofAll[part])) return undefined;
    this.#count(of, part, counted);
    let held = counted;
    return () => {
      this.#count(of, part, -held);
      held = 0;
    };
  }

  #count(of: string, part: Part, characters: number): void {
    this.#ofAll[part] += characters;
    const own = (this.#ofOne.get(of) ?? 0) + characters;
    if (own === 0) this.#ofOne.delete(of);
    else this.#ofOne.set(of, own);
  }
}
