import type { Share } from "../schema/contract.ts";
import { ShareCounts } from "./share-counts.ts";
import type { WatcherLimits } from "./watch-stream.ts";

/** Characters of selectors that watches keep. */
export interface SelectorLimits extends WatcherLimits {
  /** Characters of each watch that do not count: kubelets and controllers use fewer. */
  readonly ofEach: number;
}

const kibi = 1024;
/** A parsed selector takes some sixty times its text in memory. */
export const selectorLimits: SelectorLimits = {
  ofEach: 512,
  ofOne: { others: 512 * kibi, nodes: 64 * kibi, cluster: 2048 * kibi },
  ofAll: { others: 2048 * kibi, nodes: 1024 * kibi, cluster: 4096 * kibi },
};

/** Counts what the selectors of open watches take: such a watch lives for an hour, whether anything changes or not. */
export class LongSelectors {
  readonly #limits: SelectorLimits;
  readonly #counts = new ShareCounts();

  constructor(limits: SelectorLimits) {
    this.#limits = limits;
  }

  /** @returns what gives the room of the watch back; `undefined`: there is none. */
  take(share: Share, characters: number): (() => void) | undefined {
    const { ofEach, ofOne, ofAll } = this.#limits;
    const counted = Math.max(0, characters - ofEach);
    const isFull =
      this.#counts.ofUser(share) + counted > ofOne[share.part] ||
      this.#counts.ofPart(share) + counted > ofAll[share.part];
    return counted > 0 && isFull ? undefined : this.#counts.take(share, counted);
  }
}
