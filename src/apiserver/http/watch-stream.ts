/**
 * Events that a watcher may leave unread before it is cut off; it then lists or resumes, as after any lost connection.
 */
export const defaultBacklog = 1_000;
/** The same in characters, for kinds whose objects are large. */
const backlogCharacters = 32 * 1024 * 1024;

/**
 * Lines of a watch between their writer (inside a write to the store, so it can never wait) and their reader. Waiting
 * lines are handed over in one piece.
 */
export class WatchStream implements AsyncIterable<string> {
  readonly #backlog: number;
  readonly #onEnd: () => void;
  #waiting: string[] = [];
  #unreadCharacters = 0;
  #state: "open" | "ending" | "ended" = "open";
  #wake: (() => void) | undefined;

  constructor(backlog: number, onEnd: () => void) {
    this.#backlog = backlog;
    this.#onEnd = onEnd;
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** A slow reader loses the stream, not our memory. */
  push(line: string): void {
    if (this.#state !== "open") return;
    this.#unreadCharacters += line.length;
    if (this.#waiting.length >= this.#backlog || this.#unreadCharacters > backlogCharacters) {
      this.#waiting = [];
      this.end();
      return;
    }
    this.#waiting.push(line);
    this.#wakeReader();
  }

  /** The initial lines of the watch, of any length, before any other. */
  begin(text: string): void {
    if (this.#state !== "open" || text === "") return;
    this.#waiting.push(text);
    this.#wakeReader();
  }

  /** No more lines: the reader gets what is waiting, then the end. */
  end(): void {
    if (this.#state !== "open") return;
    this.#state = "ending";
    this.#onEnd();
    this.#wakeReader();
  }

  [Symbol.asyncIterator](): AsyncIterator<string> {
    return {
      next: async () => {
        while (this.#waiting.length === 0 && this.#state === "open") {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
        if (this.#waiting.length > 0) {
          const value = this.#waiting.join("");
          this.#waiting = [];
          this.#unreadCharacters = 0;
          return { done: false, value };
        }
        this.#state = "ended";
        return { done: true, value: undefined };
      },
      return: () => {
        this.#waiting = [];
        this.end();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  #wakeReader(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
