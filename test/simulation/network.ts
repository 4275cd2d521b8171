import type { HttpHandler, HttpRequest, HttpResponse } from "../../src/ports/http.ts";
import type { Kernel } from "./kernel.ts";
import type { Life } from "./process.ts";

export interface NetworkFaults {
  /** Delay of one message, in milliseconds. */
  readonly delayMs: readonly [number, number];
  /** The delay of an occasional slow message. */
  readonly slowMs: readonly [number, number];
  readonly slow: number;
  /** Probabilities that a request never arrives, that its answer never arrives, and that a watch is cut at an event. */
  readonly loseRequest: number;
  readonly loseReply: number;
  readonly cutWatch: number;
  /** Probability that another client writes an object just before a conditional write arrives. */
  readonly conflict: number;
  /**
   * Probability, at an event, that a watch falls behind, and for how long. Half of these watches skip overtaken events.
   */
  readonly lagWatch: number;
  readonly lagMs: readonly [number, number];
  /** Probability, at an event, that a watch goes silent and stays open. */
  readonly stallWatch: number;
}

export const calm: NetworkFaults = {
  delayMs: [0.5, 3],
  slowMs: [0, 0],
  slow: 0,
  loseRequest: 0,
  loseReply: 0,
  cutWatch: 0,
  conflict: 0,
  lagWatch: 0,
  lagMs: [0, 0],
  stallWatch: 0,
};
export const stormy: NetworkFaults = {
  delayMs: [0.5, 20],
  slowMs: [200, 4000],
  slow: 0.02,
  loseRequest: 0.01,
  loseReply: 0.01,
  cutWatch: 0.004,
  conflict: 0.02,
  lagWatch: 0.004,
  lagMs: [1000, 20_000],
  stallWatch: 0.001,
};

/** The network faults that are counted. */
export type NetworkFault =
  | "request lost"
  | "reply lost"
  | "slow message"
  | "watch cut"
  | "conflict"
  | "lagging watch"
  | "coalesced watch"
  | "stalled watch"
  | "stale read";

/** A period in which a process saw less than the whole cluster. */
export interface Blindness {
  readonly from: number;
  /** `undefined`: the period has not ended. */
  to: number | undefined;
}

/**
 * The connection of one process to the API server: every request, answer and watch event is an event of its own,
 * delayed or lost at random. A lost answer leaves the request carried out. Events of one watch keep their order.
 */
export function simulatedTransport(options: {
  readonly life: Life;
  readonly kernel: Kernel;
  readonly faults: () => NetworkFaults;
  readonly server: () => HttpHandler;
  readonly happened: (fault: NetworkFault) => void;
  readonly disturb: (target: string) => Promise<void>;
}): HttpHandler {
  const { life, kernel, happened } = options;
  const delay = () => {
    const faults = options.faults();
    if (!kernel.chance(faults.slow)) return kernel.between(...faults.delayMs);
    happened("slow message");
    return kernel.between(...faults.slowMs);
  };
  const isConditional = ({ method, body }: HttpRequest) =>
    (method === "PATCH" || method === "PUT") && typeof body === "string" && body.includes('"resourceVersion"');
  const label = (request: HttpRequest) => `${life.name}: ${request.method} ${request.target.replace(/\?.*/, "")}`;

  return (request, signal) =>
    new Promise<HttpResponse>((resolve, reject) => {
      if (!life.alive) return;
      const gone = new AbortController();
      const onAbort = () => {
        gone.abort(signal.reason);
        if (life.alive) reject(signal.reason as Error);
      };
      if (signal.aborted) {
        onAbort();
        return;
      }
      signal.addEventListener("abort", onAbort, { once: true });
      life.signal.addEventListener("abort", () => gone.abort(life.signal.reason), { once: true });
      if (kernel.chance(options.faults().loseRequest)) {
        kernel.note(`${label(request)} lost`);
        happened("request lost");
        return;
      }
      // A write now rests on what was seen until now.
      if (request.method !== "GET" && life.blindness.some(({ to }) => to === undefined)) happened("stale read");
      kernel.schedule(delay(), label(request), () => {
        if (gone.signal.aborted) return;
        const isOvertaken = isConditional(request) && kernel.chance(options.faults().conflict);
        void (isOvertaken ? options.disturb(request.target) : Promise.resolve())
          .then(() => options.server()(request, gone.signal))
          .then((response) => {
            if (response.status === 409 && isConditional(request)) happened("conflict");
            const isStream = typeof response.body === "object" && Symbol.asyncIterator in response.body;
            if (!isStream && kernel.chance(options.faults().loseReply)) {
              kernel.note(`${label(request)} answer lost`);
              happened("reply lost");
              return;
            }
            kernel.schedule(delay(), `${label(request)} ${response.status}`, () => {
              if (!life.alive || gone.signal.aborted) return;
              if (!isStream) signal.removeEventListener("abort", onAbort);
              resolve(
                isStream
                  ? { ...response, body: lateStream(response.body as AsyncIterable<string | Uint8Array>, gone) }
                  : response,
              );
            });
          })
          .catch((error: unknown) => {
            kernel.schedule(delay(), `${label(request)} failed`, () => {
              if (life.alive && !gone.signal.aborted) reject(error as Error);
            });
          });
      });
    });

  async function* lateStream(
    source: AsyncIterable<string | Uint8Array>,
    gone: AbortController,
  ): AsyncIterable<string | Uint8Array> {
    const arrived: (string | Uint8Array)[] = [];
    let ended = false;
    let wake: () => void = () => undefined;
    let lastAt = kernel.now;
    const later = (run: () => void, what: string) => {
      lastAt = Math.max(lastAt, kernel.now + delay());
      kernel.schedule(lastAt - kernel.now, `${life.name}: ${what}`, () => {
        run();
        wake();
      });
    };
    /** The events since the watch fell behind; `undefined` while it is not behind. */
    let held: string[] | undefined;
    let blind: Blindness | undefined;
    const hold = (chunk: string, what: NetworkFault) => {
      kernel.note(`${life.name}: ${what}`);
      happened(what);
      held = [chunk];
      blind = { from: kernel.now, to: undefined };
      life.blindness.push(blind);
    };
    const see = () => {
      if (blind !== undefined) blind.to ??= kernel.now;
    };
    const catchUp = () => {
      const all = held ?? [];
      held = undefined;
      see();
      const left = kernel.chance(0.5) ? coalesced(all) : all;
      if (left.length < all.length) happened("coalesced watch");
      for (const chunk of left) later(() => arrived.push(chunk), "watch event");
    };
    gone.signal.addEventListener("abort", see, { once: true });
    void (async () => {
      try {
        for await (const chunk of source) {
          const faults = options.faults();
          const line = typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk);
          if (kernel.chance(faults.cutWatch)) {
            kernel.note(`${life.name}: watch cut`);
            happened("watch cut");
            gone.abort(new Error("the connection was cut"));
            break;
          }
          if (held !== undefined) held.push(line);
          else if (kernel.chance(faults.stallWatch)) hold(line, "stalled watch");
          else if (kernel.chance(faults.lagWatch)) {
            hold(line, "lagging watch");
            kernel.schedule(kernel.between(...faults.lagMs), `${life.name}: watch catches up`, catchUp);
          } else later(() => arrived.push(chunk), "watch event");
        }
      } catch {
        // The server ended the stream: the reader sees its end.
      }
      later(() => {
        ended = true;
      }, "watch end");
    })();
    try {
      for (;;) {
        const chunk = arrived.shift();
        if (chunk !== undefined) yield chunk;
        else if (ended || gone.signal.aborted) return;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
            gone.signal.addEventListener("abort", () => resolve(), { once: true });
          });
      }
    } finally {
      gone.abort(new Error("the reader left"));
    }
  }
}

interface WatchLine {
  readonly type: string;
  readonly object: {
    readonly kind?: string;
    readonly metadata?: { readonly namespace?: string; readonly name?: string; readonly uid?: string };
  };
}

/** The same watch for a slow client: of the events about one object, only the last one. */
export function coalesced(chunks: readonly string[]): readonly string[] {
  const lines = chunks.flatMap((chunk) => chunk.split("\n").filter((line) => line !== ""));
  const last = new Map<string, { type: string; readonly line: WatchLine }>();
  for (const text of lines) {
    const line = JSON.parse(text) as WatchLine;
    const { kind, metadata } = line.object;
    const key =
      line.type === "BOOKMARK" ? "bookmark" : `${kind}/${metadata?.namespace}/${metadata?.name}/${metadata?.uid}`;
    const before = last.get(key);
    last.delete(key);
    // A client that never saw the object sees it for the first time.
    last.set(key, { type: before?.type === "ADDED" && line.type === "MODIFIED" ? "ADDED" : line.type, line });
  }
  return [...last.values()].map(({ type, line }) => `${JSON.stringify({ ...line, type })}\n`);
}
