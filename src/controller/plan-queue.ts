import type { Clock } from "../ports/clock.ts";
import type { HttpResponse } from "../ports/http.ts";
import type { Thread } from "../ports/threads.ts";

/** From the planner's thread. */
export type PlannerMessage =
  | { readonly is: "ready" }
  | { readonly is: "answer"; readonly id: number; readonly response: HttpResponse };

/** To the planner's thread. */
export interface ReviewMessage {
  readonly id: number;
  readonly body: string | Uint8Array;
}

interface Job {
  readonly id: number;
  readonly body: string | Uint8Array;
  readonly answer: (response: HttpResponse) => void;
}

/** What the queue remembers between two messages. */
interface QueueMemory {
  nextId: number;
  /** Absent: the planner is not ready. */
  planner: Thread | undefined;
  /** In order of arrival. The listener limits requests under way, and so their number. */
  readonly waiting: Job[];
  /** What the planner works on, and how its time limit is lifted. */
  running: { readonly job: Job; readonly lift: () => void } | undefined;
}

const unavailable = (why: string): HttpResponse => ({
  status: 503,
  headers: { "content-type": "text/plain", "retry-after": "1" },
  body: `${why}\n`,
});

/**
 * Hands reviews to the planner's thread, one at a time, and ends the thread if one of them takes longer than its limit:
 * a loop that never returns cannot be stopped from within.
 */
export class PlanQueue {
  readonly #clock: Clock;
  readonly #mostMs: number;
  readonly #memory: QueueMemory = { nextId: 1, planner: undefined, waiting: [], running: undefined };

  constructor(clock: Clock, mostMs: number) {
    this.#clock = clock;
    this.#mostMs = mostMs;
  }

  get isReady(): boolean {
    return this.#memory.planner !== undefined;
  }

  /** The answer to a review; 503 where the planner is not ready, or ends. */
  review(body: string | Uint8Array, signal: AbortSignal): Promise<HttpResponse> {
    const memory = this.#memory;
    if (!this.isReady) return Promise.resolve(unavailable("the planner of changes is not ready"));
    return new Promise((resolve) => {
      const job: Job = { id: memory.nextId++, body, answer: resolve };
      memory.waiting.push(job);
      const forget = () => {
        const at = memory.waiting.indexOf(job);
        if (at >= 0) memory.waiting.splice(at, 1);
        resolve(unavailable("the client went away"));
      };
      signal.addEventListener("abort", forget, { once: true });
      this.#next();
    });
  }

  /** Takes a message of a planner. */
  hear(planner: Thread, message: PlannerMessage): void {
    const memory = this.#memory;
    switch (message.is) {
      case "ready":
        memory.planner = planner;
        this.#next();
        return;
      case "answer":
        if (memory.running?.job.id !== message.id) return;
        memory.running.lift();
        memory.running.job.answer(message.response);
        memory.running = undefined;
        this.#next();
        return;
    }
  }

  /**
   * The planner has ended: its current review gets no answer. Waiting reviews stay, for the next planner or until their
   * time limit.
   */
  plannerEnded(why: string): void {
    const memory = this.#memory;
    memory.running?.lift();
    memory.running?.job.answer(unavailable(why));
    memory.running = undefined;
    memory.planner = undefined;
  }

  #next(): void {
    const memory = this.#memory;
    const { planner } = memory;
    if (planner === undefined || memory.running !== undefined) return;
    const job = memory.waiting.shift();
    if (job === undefined) return;
    // Its answer may already have been a 503, from the listener's own limit; the thread is stuck all the same.
    const giveUp = () => {
      memory.planner = undefined;
      planner.end();
    };
    memory.running = { job, lift: this.#clock.after(this.#mostMs, giveUp) };
    planner.send({ id: job.id, body: job.body } satisfies ReviewMessage);
  }
}
