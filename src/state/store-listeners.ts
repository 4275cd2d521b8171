import type { Chapter } from "../api/books/machine-state-chapter.ts";
import { type ChapterFilter, type StoreChange, matchesFilter } from "./book-store.ts";

/** Those who follow a store of this process. */
export class StoreListeners {
  readonly #listeners = new Set<(change: StoreChange, chapter: Chapter) => void>();

  notify(change: StoreChange, chapter: Chapter): void {
    for (const listener of this.#listeners) listener(change, chapter);
  }

  /** Listens from the call on, not from the first read. */
  follow(filter: ChapterFilter, signal: AbortSignal): AsyncIterable<StoreChange> {
    const waiting: StoreChange[] = [];
    let wake: () => void = () => undefined;
    const listener = (change: StoreChange, chapter: Chapter) => {
      if (!matchesFilter(chapter, filter)) return;
      waiting.push(change);
      wake();
    };
    const listeners = this.#listeners;
    listeners.add(listener);
    signal.addEventListener(
      "abort",
      () => {
        listeners.delete(listener);
        wake();
      },
      { once: true },
    );
    return (async function* () {
      for (;;) {
        yield* waiting.splice(0);
        if (signal.aborted) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (waiting.length > 0 || signal.aborted) resolve();
        });
      }
    })();
  }
}
