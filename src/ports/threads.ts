/** A thread of this process, with an event loop and a heap of its own. It ends with the process. */
export interface Thread {
  /** Sends a copy of a message; nothing happens if the thread has ended. */
  send(message: unknown): void;
  /** Ends the thread, whatever it does at the time. */
  end(): void;
  /** Resolves when the thread has ended: with its failure, or `undefined` if it ended by itself or by {@link end}. */
  readonly ended: Promise<Error | undefined>;
}

export interface ThreadOptions {
  /** Which part of the program it runs. */
  readonly name: string;
  /** Plain data, which is copied. */
  readonly data: unknown;
  /** The heap at which the thread is ended, in MiB. */
  readonly heapMb: number;
  readonly onMessage: (message: unknown) => void;
}

export type StartThread = (options: ThreadOptions) => Thread;

/** The other end, in the thread. */
export interface ParentThread {
  send(message: unknown): void;
  /** Calls `handle` with each message. */
  listen(handle: (message: unknown) => void): void;
}
