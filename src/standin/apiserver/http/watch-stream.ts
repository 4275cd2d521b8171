import type { Part, Share } from "../schema/contract.ts";
import { ShareCounts } from "./share-counts.ts";

/**
 * Events that a watcher may leave unread before it is cut off; it then lists or resumes, as after any lost connection.
 */
export const defaultBacklog = 1_000;
/** The same in characters, for kinds whose objects are large. */
const backlogCharacters = 32 * 1024 * 1024;

/** How much watchers may take of something together. */
export interface WatcherLimits {
  /** Of one user, by whose part of the server it takes. */
  readonly ofOne: Readonly<Record<Part, number>>;
  /** Of all users of a part. */
  readonly ofAll: Readonly<Record<Part, number>>;
}

const mebi = 1024 * 1024;
/** Characters that they may leave unread. */
export const unreadLimits: WatcherLimits = {
  ofOne: { others: 32 * mebi, nodes: 8 * mebi, cluster: 64 * mebi },
  ofAll: { others: 64 * mebi, nodes: 32 * mebi, cluster: 128 * mebi },
};

/**
 * Counts what watchers have left unread. Beyond a limit, the watch that holds the most ends: of the user, or of the user of a
 * part who left the most in all watches together.
 */
export class UnreadLines {
  readonly #limits: WatcherLimits;
  readonly #counts = new ShareCounts();
  readonly #streams = new Set<WatchStream>();

  constructor(limits: WatcherLimits) {
    this.#limits = limits;
  }

  /** A watch has so many characters more unread; it may be the one that ends. */
  add(stream: WatchStream, characters: number): void {
    const { share } = stream;
    const { of, part } = share;
    this.#streams.add(stream);
    this.#counts.add(share, characters);
    while (this.#counts.ofUser(share) > this.#limits.ofOne[part]) this.#most(of)?.drop();
    while (this.#counts.ofPart(share) > this.#limits.ofAll[part]) this.#most(this.#heaviest(part))?.drop();
  }

  /** A watch has nothing unread any more. */
  clear(stream: WatchStream, characters: number): void {
    this.#streams.delete(stream);
    this.#counts.add(stream.share, -characters);
  }

  /** The watch of a user that has the most unread. */
  #most(user: string | undefined): WatchStream | undefined {
    let most: WatchStream | undefined;
    for (const stream of this.#streams)
      if (stream.share.of === user && stream.unread > (most?.unread ?? 0)) most = stream;
    return most;
  }

  /** The user of a part who left the most unread: thousands of short watches hide nobody behind one with a long line. */
  #heaviest(part: Part): string | undefined {
    let heaviest: Share | undefined;
    for (const { share } of this.#streams)
      if (share.part === part && (heaviest === undefined || this.#counts.ofUser(share) > this.#counts.ofUser(heaviest)))
        heaviest = share;
    return heaviest?.of;
  }
}

/**
 * Lines of a watch between their writer (inside a write to the store, so it can never wait) and their reader. Waiting
 * lines are handed over in one piece.
 */
export class WatchStream implements AsyncIterable<string> {
  readonly share: Share;
  readonly #backlog: number;
  readonly #lines: UnreadLines;
  readonly #onEnd: () => void;
  #waiting: string[] = [];
  #unreadCharacters = 0;
  #state: "open" | "ending" | "ended" = "open";
  #wake: (() => void) | undefined;

  constructor(
    { share, backlog, unread }: { readonly share: Share; readonly backlog: number; readonly unread: UnreadLines },
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
