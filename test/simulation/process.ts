import { clockFrom } from "../../src/ports/clock.ts";
import type { Ports } from "../../src/ports/index.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import type { Kernel } from "./kernel.ts";
import type { Blindness } from "./network.ts";

/** A new promise each time: one that all dead processes waited for would keep every simulation in memory. */
const never = () => new Promise<never>(() => undefined);

/**
 * One life of a process. Killing it is as sudden as a power cut: none of its code affects anything any more, whatever
 * promise was about to run, because everything that it can reach first checks that it lives.
 */
export class Life {
  readonly name: string;
  readonly kernel: Kernel;
  readonly ports: Ports;
  /** When one of its watches was behind. */
  readonly blindness: Blindness[] = [];
  readonly #stopping = new AbortController();
  #alive = true;

  constructor(kernel: Kernel, name: string) {
    this.kernel = kernel;
    this.name = name;
    const clock = clockFrom({
      now: () => kernel.clock.now(),
      monotonic: () => kernel.clock.monotonic(),
      after: (delay, run) =>
        kernel.schedule(delay, `${name}: timer`, () => {
          if (this.#alive) run();
        }),
    });
    this.ports = { clock, random: kernel.random, log: silentLogger, journal: memoryJournal(200) };
  }

  get alive(): boolean {
    return this.#alive;
  }

  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Ends the process at once. Its code may still run in this tick, but reaches nothing. */
  kill(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.kernel.note(`${this.name}: killed`);
    for (const blind of this.blindness) blind.to ??= this.kernel.now;
    this.#stopping.abort(new Error("killed"));
  }

  /** The result of `work` while the process lives; a dead process waits without end. */
  async guard<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#alive) return never();
    const result = await work();
    return this.#alive ? result : never();
  }

  /** An object whose methods do nothing once the process is dead; calls `point` before and after each of them. */
  wrap<T extends object>(target: T, path: string, point: (effect: string, when: "before" | "after") => void): T {
    return new Proxy(target, {
      get: (object, property, receiver) => {
        const value: unknown = Reflect.get(object, property, receiver);
        if (typeof value === "object" && value !== null) return this.wrap(value, `${path}.${String(property)}`, point);
        if (typeof value !== "function") return value;
        return (...args: unknown[]): unknown => {
          if (!this.#alive) return never();
          const effect = `${path}.${String(property)}`;
          point(effect, "before");
          if (!this.#alive) return never();
          const result: unknown = (value as (...rest: unknown[]) => unknown).apply(object, args);
          if (!(result instanceof Promise)) return result;
          return this.guard(async () => {
            const settled: unknown = await result;
            point(effect, "after");
            return settled;
          });
        };
      },
    });
  }
}
