import type { Part } from "../schema/contract.ts";

/**
 * Events that a watcher may leave unread before it is cut off; it then lists or resumes, as after any lost connection.
 */
export const defaultBacklog = 1_000;
/** The same in characters, for kinds whose objects are large. */
const backlogCharacters = 32 * 1024 * 1024;

/** Whose watch it is, and of which part of the server it takes. */
export interface Watcher {
  readonly of: string;
  readonly part: Part;
}

/** Characters that watchers may leave unread together. */
export interface UnreadLimits {
  /** Of one user, by whose part of the server it takes. */
  readonly ofOne: Readonly<Record<Part, number>>;
  /** Of all users of a part. */
  readonly ofAll: Readonly<Record<Part, number>>;
}

const mebi = 1024 * 1024;
export const unreadLimits: UnreadLimits = {
  ofOne: { others: 32 * mebi, nodes: 8 * mebi, cluster: 64 * mebi },
  ofAll: { others: 64 * mebi, nodes: 32 * mebi, cluster: 128 * mebi },
};

/** Counts what watchers have left unread. Beyond a limit, the watch that holds the most ends. */
export class UnreadLines {
  readonly #limits: UnreadLimits;
  readonly #ofOne = new Map<string, number>();
  readonly #ofAll: Record<Part, number> = { others: 0, nodes: 0, cluster: 0 };
  readonly #streams = new Set<WatchStream>();

  constructor(limits: UnreadLimits) {
    this.#limits = limits;
  }

  /** A watch has so many characters more unread; it may be the one that ends. */
  add(stream: WatchStream, characters: number): void {
    const { of, part } = stream.share;
    this.#streams.add(stream);
    this.#count(stream.share, characters);
    while ((this.#ofOne.get(of) ?? 0) > this.#limits.ofOne[part]) this.#most((each) => each.share.of === of)?.drop();
    while (this.#ofAll[part] > this.#limits.ofAll[part]) this.#most((each) => each.share.part === part)?.drop();
  }

  /** A watch has nothing unread any more. */
  clear(stream: WatchStream, characters: number): void {
    this.#streams.delete(stream);
    this.#count(stream.share, -characters);
  }

  #count({ of, part }: Watcher, characters: number): void {
    this.#ofAll[part] += characters;
    const own = (this.#ofOne.get(of) ?? 0) + characters;
    if (own === 0) this.#ofOne.delete(of);
    else this.#ofOne.set(of, own);
  }

  #most(is: (stream: WatchStream) => boolean): WatchStream | undefined {
    let most: WatchStream | undefined;
    for (const stream of this.#streams) if (is(stream) && stream.unread > (most?.unread ?? 0)) most = stream;
    return most;
  }
}

/**
 * Lines of a watch between their writer (inside a write to the store, so it can never wait) and their reader. Waiting
 * lines are handed over in one piece.
 */
export class WatchStream implements AsyncIterable<string> {
  readonly share: Watcher;
  readonly #backlog: number;
  readonly #lines: UnreadLines;
  readonly #onEnd: () => void;
  #waiting: string[] = [];
  #unreadCharacters = 0;
  #state: "open" | "ending" | "ended" = "open";
  #wake: (() => void) | undefined;

  constructor(
    { share, backlog, unread }: { readonly share: Watcher; readonly backlog: number; readonly unread: UnreadLines },
    onEnd: () => void,
  ) {
    this.share = share;
    this.#backlog = backlog;
    this.#lines = unread;
    this.#onEnd = onEnd;
  }

  /** Characters that its reader has left. */
  get unread(): number {
    return this.#unreadCharacters;
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** A slow reader loses the stream, not our memory. */
  push(line: string): void {
    if (this.#state !== "open") return;
    if (this.#waiting.length >= this.#backlog || this.#unreadCharacters + line.length > backlogCharacters) {
      this.drop();
      return;
    }
    this.#unreadCharacters += line.length;
    this.#waiting.push(line);
    this.#lines.add(this, line.length);
    this.#wakeReader();
  }

  /** Ends without what is waiting: the reader lists or resumes, as after any lost connection. */
  drop(): void {
    this.#take();
    this.end();
  }

  /** The lines that are waiting, which are read or thrown away. */
  #take(): readonly string[] {
    const lines = this.#waiting;
    this.#waiting = [];
    if (this.#unreadCharacters > 0) this.#lines.clear(this, this.#unreadCharacters);
    this.#unreadCharacters = 0;
    return lines;
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
        if (this.#waiting.length > 0) return { done: false, value: this.#take().join("") };
        this.#state = "ended";
        return { done: true, value: undefined };
      },
      return: () => {
        this.drop();
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
