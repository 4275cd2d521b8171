/** A signal that follows another one until it is released. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Aborts the signal itself. */
  abort(reason: unknown): void;
  /** Ends the link: the parent no longer references the signal or its listeners. */
  release(): void;
}

/**
 * A signal that aborts with `parent`, or by itself. In place of `AbortSignal.any`: Node.js keeps a composite signal with
 * listeners alive until it aborts, and with it everything that the listeners refer to, so that a signal made for each
 * request of a process that never ends is never freed.
 */
export function linkedSignal(parent: AbortSignal): LinkedSignal {
  const own = new AbortController();
  const follow = () => own.abort(parent.reason);
  if (parent.aborted) follow();
  else parent.addEventListener("abort", follow, { once: true });
  const release = () => parent.removeEventListener("abort", follow);
  return {
    signal: own.signal,
    abort(reason) {
      release();
      own.abort(reason);
    },
    release,
  };
}
