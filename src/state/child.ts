import type { JournalLine } from "../api/books/journal-line.ts";
import type { Chapter } from "../api/books/machine-state-chapter.ts";
import { McoError } from "../api/errors.ts";
import type { BootstrapFacts, ReportedCondition } from "../core/operator/health.ts";
import type { StateChild, StateSettings } from "../core/operator/state-settings.ts";
import { type Controller, type RunOptions, type Watch, runControllers } from "../kube/controller.ts";
import type { EventRecorder } from "../kube/event-recorder.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import type { Ports } from "../ports/index.ts";
import type { BookStore } from "./book-store.ts";

/** What children get from their parent. They share nothing else. */
export interface ChildContext extends Ports {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  readonly store: BookStore;
  readonly version: string;
  readonly settings: () => StateSettings;
  /**
   * Milliseconds since the epoch at which a previous process last did the child's work; it has seen all earlier lines.
   */
  readonly aliveAt: number;
  /** Adds a line to the cluster's book. */
  readonly report: (line: JournalLine) => void;
  readonly reported: () => readonly JournalLine[];
  /** Called on each new line; returns a function that stops it. */
  readonly onReported: (listener: () => void) => () => void;
  /** Called when the settings have changed; returns the way to stop it. */
  readonly onSettings: (listener: () => void) => () => void;
  readonly up: () => void;
  readonly notify: (news: ChildNews) => void;
  /** Writes conditions of MachineConfiguration `cluster`. */
  readonly writeHealth: (reported: readonly ReportedCondition[], signal: AbortSignal) => Promise<void>;
}

export type ChildNews =
  | { readonly is: "closed"; readonly chapter: Chapter }
  | { readonly is: "gap"; readonly of: string; readonly message: string }
  | { readonly is: "foreign"; readonly component: string; readonly lines: number }
  | { readonly is: "overdue"; readonly pool: string; readonly machines: number }
  | { readonly is: "heard"; readonly component: string; readonly lagMs: number }
  | { readonly is: "bootstrap"; readonly facts: BootstrapFacts }
  /** A book that cannot be written, or that can again (`why` is absent). */
  | { readonly is: "stuck"; readonly key: string; readonly why?: string };

export interface ChildMetrics {
  /** What the child remembers of stored chapters. */
  readonly kept: Iterable<{
    readonly kind: string;
    readonly chapter: string;
    readonly state: Chapter["state"];
    readonly pool: string;
    readonly startedAt: string;
    readonly bytes: number;
  }>;
}

/** A part of the state process that runs, fails and is switched on and off independently. */
export interface KeeperChild {
  readonly name: StateChild;
  /** Runs until `signal` aborts. Rejects on a failure; the parent then starts a new one. */
  run(context: ChildContext, signal: AbortSignal): Promise<void>;
  metrics?(): ChildMetrics;
}

/**
 * Runs one controller as a child: the queue retries failures of the API server; any other failure is a bug and ends this
 * child only.
 */
export async function runAsChild(
  make: (fail: (error: unknown) => void) => Controller,
  context: ChildContext,
  signal: AbortSignal,
  options: Partial<Pick<RunOptions, "onSynced" | "coalesceMs">> = {},
): Promise<void> {
  const stopping = new AbortController();
  const onAbort = () => stopping.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  let bug: { readonly error: unknown } | undefined;
  const fail = (error: unknown) => {
    if (stopping.signal.aborted) return;
    bug = { error };
    stopping.abort(error);
  };
  const given = make(fail);
  const guard =
    <A extends readonly unknown[], R>(work: (...args: A) => R, otherwise: R) =>
    (...args: A): R => {
      try {
        return work(...args);
      } catch (error) {
        fail(error);
        return otherwise;
      }
    };
  const [first, ...rest] = given.watches.map((watch): Watch =>
    watch.concerns === undefined ? watch : { ...watch, concerns: guard(watch.concerns, []) },
  );
  if (first === undefined) throw new Error("bug: a child without a watch");
  const controller: Controller = {
    ...given,
    watches: [first, ...rest],
    async reconcile(key, inner) {
      try {
        const outcome = await given.reconcile(key, inner);
        context.notify({ is: "stuck", key });
        return outcome;
      } catch (error) {
        if (inner.signal.aborted) throw error;
        if (error instanceof McoError) context.notify({ is: "stuck", key, why: error.message });
        else fail(error);
        throw error;
      }
    },
  };
  const { clock, random, log, journal, events } = context;
  try {
    await runControllers(
      [controller],
      {
        clock,
        random,
        log,
        journal,
        events,
        kube: context.kube.within(stopping.signal),
        ...(options.coalesceMs === undefined ? {} : { coalesceMs: options.coalesceMs }),
        onSynced: (caches) => {
          options.onSynced?.(caches);
          context.up();
        },
      },
      stopping.signal,
    );
  } finally {
    signal.removeEventListener("abort", onAbort);
    stopping.abort(new Error("the child has ended"));
  }
  if (bug !== undefined) throw bug.error;
}
