import { McoError } from "../api/errors.ts";
import type { CancelTimer, Clock } from "../ports/clock.ts";
import { linkedSignal } from "../ports/linked-signal.ts";
import { whenAborted } from "../ports/when-aborted.ts";

/** A search reads whole layers, as large as they are. */
const searchMs = 3_600_000;
/** Who still wants a search asks for it much more often than this, also where many pools wait for their turn. */
const unaskedMs = 600_000;
/** How long a pool waits for it before the builder does something else; whoever asks again does not wait. */
const patienceMs = 30_000;
const stillReading = "its layers are still being read";
const mostSearches = 16;
/** A pool reads a base image, and the parent of its next image. */
const mostOfPool = 2;

type Files = ReadonlyMap<string, Uint8Array>;
type Outcome = { readonly files: Files } | { readonly error: unknown };

interface Search {
  readonly outcome: Promise<Outcome>;
  /** The pools that asked for it, and the count of all questions when each did so last. */
  readonly askers: Map<string, number>;
  readonly end: (reason: Error) => void;
  isDone: boolean;
  cancelUnasked: CancelTimer;
}

/** What a search is for. */
export interface SearchedImage {
  readonly pool: string;
  readonly image: string;
  /** Equal for those who would find the same. */
  readonly key: string;
}

/** How a search is carried out. */
export type Read = (until: AbortSignal) => Promise<Files>;

/**
 * Searches for files in images. Each goes on while those who asked for it do something else, and ends when none of them has
 * asked for a while, or when its last pool asks for others: what a pool no longer wants takes no place.
 */
export class ImageSearches {
  readonly #clock: Clock;
  readonly #stop: AbortSignal;
  readonly #searches = new Map<string, Search>();
  #questions = 0;

  /** @param stop ends all searches. */
  constructor(clock: Clock, stop: AbortSignal) {
    this.#clock = clock;
    this.#stop = stop;
    const end = () => {
      for (const search of this.#searches.values()) search.cancelUnasked();
    };
    stop.addEventListener("abort", end, { once: true });
  }

  /** Begins a search, or joins the one that is under way. @throws McoError `MCO_IMAGE_UNREACHABLE` where it takes longer. */
  async find(wanted: SearchedImage, read: Read, signal: AbortSignal): Promise<Files> {
    const { key, image, pool } = wanted;
    const known = this.#searches.get(key);
    const hasAsked = known?.askers.has(pool) === true;
    this.#leaveOldest(pool, hasAsked ? mostOfPool : mostOfPool - 1);
    const search = known ?? this.#begin(wanted, read);
    this.#note(key, search, pool);
    if (hasAsked && !search.isDone) throw unreachable(image, stillReading);
    const patience = this.#clock.deadline(patienceMs, signal);
    try {
      const found = await Promise.race([search.outcome, whenAborted(patience.signal).then(() => undefined)]);
      signal.throwIfAborted();
      if (found === undefined) throw unreachable(image, stillReading);
      this.#forget(key, search);
      if ("error" in found) throw found.error;
      return found.files;
    } finally {
      patience.cancel();
    }
  }

  #begin({ key, image }: SearchedImage, read: Read): Search {
    if (this.#searches.size >= mostSearches) {
      const done = [...this.#searches].find(([, { isDone }]) => isDone);
      if (done === undefined) throw unreachable(image, `${mostSearches} other images are being read`);
      this.#forget(...done);
    }
    const ending = linkedSignal(this.#stop);
    const deadline = this.#clock.deadline(searchMs, ending.signal);
    const outcome = read(deadline.signal)
      .then(
        (files): Outcome => ({ files }),
        (error: unknown): Outcome => ({
          error:
            deadline.signal.aborted && !this.#stop.aborted
              ? unreachable(image, "the registry did not answer in time", error)
              : error,
        }),
      )
      .finally(() => {
        deadline.cancel();
        ending.release();
        search.isDone = true;
      });
    const search: Search = {
      outcome,
      askers: new Map(),
      end: (reason) => ending.abort(reason),
      isDone: false,
      cancelUnasked: () => {},
    };
    this.#searches.set(key, search);
    return search;
  }

  /** That a pool wants it now. */
  #note(key: string, search: Search, pool: string): void {
    this.#questions += 1;
    search.askers.set(pool, this.#questions);
    search.cancelUnasked();
    if (this.#stop.aborted) return;
    search.cancelUnasked = this.#clock.after(unaskedMs, () => this.#end(key, search));
  }

  /** A pool that asks for another image wants few of the former ones. */
  #leaveOldest(pool: string, most: number): void {
    const own = [...this.#searches].filter(([, { isDone, askers }]) => !isDone && askers.has(pool));
    own.sort(([, a], [, b]) => (a.askers.get(pool) ?? 0) - (b.askers.get(pool) ?? 0));
    for (const [key, search] of own.slice(0, Math.max(0, own.length - most))) {
      search.askers.delete(pool);
      if (search.askers.size === 0) this.#end(key, search);
    }
  }

  #end(key: string, search: Search): void {
    this.#forget(key, search);
    search.end(new Error("nobody asks for this search any more"));
  }

  #forget(key: string, search: Search): void {
    search.cancelUnasked();
    if (this.#searches.get(key) === search) this.#searches.delete(key);
  }
}

function unreachable(image: string, problem: string, cause?: unknown): McoError {
  return new McoError("MCO_IMAGE_UNREACHABLE", { image, problem, retryable: true }, { cause });
}
