import type { HttpHandler, HttpRequest, HttpResponse } from "../../src/ports/http.ts";
import type { Kernel } from "./kernel.ts";
import type { Life } from "./process.ts";

export interface NetworkFaults {
  /** Delay of one message, in milliseconds. */
  readonly delayMs: readonly [number, number];
  /** Now and then a message takes this long. */
  readonly slowMs: readonly [number, number];
  readonly slow: number;
  /** Chances that a request never arrives, that its answer never comes back, that a watch is cut at an event. */
  readonly loseRequest: number;
  readonly loseReply: number;
  readonly cutWatch: number;
}

export const calm: NetworkFaults = { delayMs: [0.5, 3], slowMs: [0, 0], slow: 0, loseRequest: 0, loseReply: 0, cutWatch: 0 };
export const stormy: NetworkFaults = { delayMs: [0.5, 20], slowMs: [200, 4000], slow: 0.02, loseRequest: 0.01, loseReply: 0.01, cutWatch: 0.004 };

/**
 * The way from one process to the API server: every request, answer and watch event is an event of its own, late or lost
 * as chance will have it. A lost answer leaves the request carried out. Events of one watch keep their order.
 */
export function simulatedTransport(options: { readonly life: Life; readonly kernel: Kernel; readonly faults: () => NetworkFaults; readonly server: () => HttpHandler }): HttpHandler {
  const { life, kernel } = options;
  const delay = () => {
    const faults = options.faults();
    return kernel.chance(faults.slow) ? kernel.between(...faults.slowMs) : kernel.between(...faults.delayMs);
  };
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
        return;
      }
      kernel.schedule(delay(), label(request), () => {
        if (gone.signal.aborted) return;
        void options
          .server()(request, gone.signal)
          .then((response) => {
            const isStream = typeof response.body === "object" && Symbol.asyncIterator in response.body;
            if (!isStream && kernel.chance(options.faults().loseReply)) {
              kernel.note(`${label(request)} answer lost`);
              return;
            }
            kernel.schedule(delay(), `${label(request)} ${response.status}`, () => {
              if (!life.alive || gone.signal.aborted) return;
              if (!isStream) signal.removeEventListener("abort", onAbort);
              resolve(isStream ? { ...response, body: lateStream(response.body as AsyncIterable<string | Uint8Array>, gone) } : response);
            });
          })
          .catch((error: unknown) => {
            kernel.schedule(delay(), `${label(request)} failed`, () => {
              if (life.alive && !gone.signal.aborted) reject(error as Error);
            });
          });
      });
    });

  async function* lateStream(source: AsyncIterable<string | Uint8Array>, gone: AbortController): AsyncIterable<string | Uint8Array> {
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
    void (async () => {
      try {
        for await (const chunk of source) {
          if (kernel.chance(options.faults().cutWatch)) {
            kernel.note(`${life.name}: watch cut`);
            gone.abort(new Error("the connection was cut"));
            break;
          }
          later(() => arrived.push(chunk), "watch event");
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
