import type { Clock } from "../ports/clock.ts";
import { type StreamedBody, type WireRequest, type WireResponse, WireFailure } from "./wire.ts";

/** The least progress within the quiet time: with less, a registry would keep a machine waiting forever. */
export const progressBytes = 16 * 1024;

/** How long the other side may send nothing. The time runs only while the client waits, and restarts with progress. */
class QuietTime {
  readonly #clock: Clock;
  readonly #quietMs: number;
  readonly #onOver: () => void;
  #leftMs: number;
  #beganMs = 0;
  #cancel = () => {};

  constructor(clock: Clock, quietMs: number, onOver: () => void) {
    this.#clock = clock;
    this.#quietMs = quietMs;
    this.#onOver = onOver;
    this.#leftMs = quietMs;
  }

  /** The other side got on. */
  refill(): void {
    this.#leftMs = this.#quietMs;
  }

  arm(): void {
    this.#cancel();
    this.#beganMs = this.#clock.monotonic();
    this.#cancel = this.#clock.after(this.#leftMs, this.#onOver);
  }

  /** Waits for the other side, no longer than the quiet time in all since it last got on. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.arm();
    try {
      return await work();
    } finally {
      this.#cancel();
      this.#leftMs = Math.max(0, this.#leftMs - (this.#clock.monotonic() - this.#beganMs));
    }
  }
}

export interface WatchedWire {
  readonly wire: (request: WireRequest, signal: AbortSignal) => Promise<WireResponse>;
  readonly clock: Clock;
  readonly quietMs: number;
  /** The report of a connection failure. Any other error is rethrown unchanged. */
  readonly failureOf: (failure: WireFailure) => Error;
}

/**
 * Sends one request and ends it when the other side makes no progress: while it takes the body, while it is waited for,
 * and while its answer is read.
 */
export async function sendWatched(
  { wire, clock, quietMs, failureOf }: WatchedWire,
  request: WireRequest,
  signal: AbortSignal,
): Promise<WireResponse> {
  const stop = new AbortController();
  const onAbort = () => stop.abort(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  const release = () => signal.removeEventListener("abort", onAbort);
  const quiet = new QuietTime(clock, quietMs, () =>
    stop.abort(new WireFailure("unreachable", `no progress within ${quietMs} ms`)),
  );
  const failed = (error: unknown): Error => {
    release();
    signal.throwIfAborted();
    if (!(error instanceof WireFailure)) throw error;
    return failureOf(error);
  };

  async function* watched(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const iterator = chunks[Symbol.asyncIterator]();
    let since = 0;
    try {
      for (;;) {
        const next = await quiet.during(() => iterator.next());
        if (next.done === true) return;
        since += next.value.length;
        if (since >= progressBytes) {
          since = 0;
          quiet.refill();
        }
        yield next.value;
      }
    } catch (error) {
      throw failed(error);
    } finally {
      release();
      await iterator.return?.();
    }
  }

  try {
    const { body, ...rest } = request;
    const watchedBody = body === undefined || body instanceof Uint8Array ? body : sentWatched(body, quiet);
    const sent = { ...rest, ...(watchedBody === undefined ? {} : { body: watchedBody }) };
    const response = await quiet.during(() => wire(sent, stop.signal));
    quiet.refill();
    return { ...response, chunks: watched(response.chunks) };
  } catch (error) {
    throw failed(error);
  }
}

/** Sent parts of a body count as progress too. */
const sentWatched = (body: StreamedBody, quiet: QuietTime): StreamedBody => ({
  sizeBytes: body.sizeBytes,
  async *open() {
    for await (const chunk of body.open()) {
      yield chunk;
      quiet.refill();
      quiet.arm();
    }
  },
});
