import type { JournalLine } from "../api/books/journal-line.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { appendLines, ringLimits } from "../core/books/journal.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { type Random, backedOff } from "../ports/random.ts";
import type { KubeClient } from "./kube-client.ts";
import { KubeError, isConflict } from "./kube-error.ts";

/** When lines are sent to the API server. */
export interface SendingRules {
  /** How many milliseconds a line of its own may wait. */
  readonly patienceMs: (line: JournalLine) => number;
  /** Minimum interval between two appends. */
  readonly gapMs: number;
}

/**
 * A node's journal: sends failures and the turning points of an update (the target was seen, the machine is up again,
 * the end) at once; the reboot flushes it by `settle`. Lines in between wait for the next turning point. Outside of an
 * update, lines wait up to ten seconds.
 */
export const nodeSending: SendingRules = {
  patienceMs({ chapter, path, mark, reason }) {
    if (mark === "fail" || mark === "retry" || (mark === "begin" && (chapter === "Degraded" || chapter === "Drift")))
      return 1000;
    if (chapter !== "Update") return 10_000;
    if (path === "Requested" || path === "Updated" || (path === "PostAction/Rebooted" && reason === "Rebooted"))
      return 1000;
    return 300_000;
  },
  gapMs: 1000,
};

/** The journal of a component that serves many nodes: at most one append in ten seconds. */
export const componentSending: SendingRules = { patienceMs: () => 10_000, gapMs: 10_000 };

export interface JournalWriter {
  /**
   * Takes lines in the order in which they were written, and sends the boundary lines when due. Never throws, never
   * waits.
   */
  offer(lines: readonly JournalLine[], patienceMs?: number): void;
  /** Tries once to send the waiting lines; resolves after the attempt, or when the signal aborts. */
  send(signal: AbortSignal): Promise<void>;
  /** Boundary lines that wait, and those that were dropped because too many waited. */
  readonly counts: { readonly waiting: number; readonly dropped: number };
  /** Stops sending. */
  stop(): void;
}

export interface JournalWriterOptions {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Name of the MachineStateJournal. The operator creates it, never the writer. */
  readonly name: string;
  /** Field manager. */
  readonly owner: string;
  readonly rules: SendingRules;
}

const retry = { firstMs: 2000, lastMs: 60_000, spread: 0.2 };
/** Between checks for a journal that does not exist yet: it is created with the MachineConfigNode, or never. */
const absent = { firstMs: 15_000, lastMs: 300_000, spread: 0.2 };
/** Between attempts after a persistent refusal, such as a missing permission. */
const refusedMs = 300_000;
const mostConflicts = 8;
/**
 * This many waiting lines are sent before they are due, but not sooner than this many milliseconds after the last
 * append.
 */
const mostLines = 100;
const fullGapMs = 1000;

/**
 * Appends lines to one MachineStateJournal. Each boundary line, identified by writer, boot and number, is appended
 * once, whatever requests are lost. The patch holds only new lines and the resourceVersion that was read, so a stale
 * read fails and is repeated. An absent journal, a missing permission and an unavailable server are logged only; they
 * do not fail the caller's work.
 */
export function createJournalWriter({
  kube,
  clock,
  random,
  log,
  name,
  owner,
  rules,
}: JournalWriterOptions): JournalWriter {
  /** With the time at which each line is due, in monotonic milliseconds. */
  let waiting: { readonly line: JournalLine; readonly dueAt: number }[] = [];
  let dropped = 0;
  /** From the last answer; `undefined`: read it first. */
  let known: MachineStateJournal | undefined;
  let due: { readonly at: number; readonly cancel: () => void } | undefined;
  let notBefore = 0;
  let fullNotBefore = 0;
  let failures = 0;
  let sending: Promise<void> | undefined;
  let stopped = false;
  let told = "";

  function plan(): void {
    if (stopped || waiting.length === 0) return;
    // A large roll-out fills the ring in less time: waiting lines would be lost.
    const isFull = waiting.length >= mostLines && failures === 0;
    const at = isFull
      ? Math.max(fullNotBefore, clock.monotonic())
      : Math.max(notBefore, Math.min(...waiting.map(({ dueAt }) => dueAt)));
    if (due !== undefined && due.at === at) return;
    due?.cancel();
    due = {
      at,
      cancel: clock.after(at - clock.monotonic(), () => {
        due = undefined;
        void trySending(undefined);
      }),
    };
  }

  async function append(signal: AbortSignal | undefined): Promise<"absent" | "done"> {
    const options = { owner, ...(signal === undefined ? {} : { signal }) };
    for (let conflicts = 0; ; conflicts += 1) {
      known ??= await kube.get(MachineStateJournal, { name }, options);
      if (known === undefined) return "absent";
      const taken = [...waiting];
      const change = appendLines(
        known.spec,
        taken.map(({ line }) => line),
      );
      const forget = () => {
        const sent = new Set(taken);
        waiting = waiting.filter((one) => !sent.has(one));
      };
      if (change === undefined) {
        forget();
        return "done";
      }
      const version = {
        op: "replace" as const,
        path: "/metadata/resourceVersion",
        value: known.metadata.resourceVersion,
      };
      try {
        known = await kube.patch(
          MachineStateJournal,
          { name },
          { type: "json", operations: [version, ...change.operations] },
          options,
        );
        forget();
        return "done";
      } catch (error) {
        // Whatever the result: the next attempt reads the current journal.
        known = undefined;
        if (!isConflict(error) || conflicts >= mostConflicts) throw error;
      }
    }
  }

  function trySending(signal: AbortSignal | undefined): Promise<void> {
    if (stopped || waiting.length === 0) return Promise.resolve();
    sending ??= (async () => {
      let again = rules.gapMs;
      try {
        const result = await append(signal);
        failures = result === "absent" ? failures + 1 : 0;
        if (result === "absent") {
          again = backedOff(random, failures, absent);
          note(
            "absent",
            { journal: name },
            "the journal is not there yet: story lines wait for the operator to make it",
          );
        } else told = "";
      } catch (error) {
        failures += 1;
        const refused =
          error instanceof KubeError &&
          error.httpStatus >= 400 &&
          error.httpStatus < 500 &&
          error.httpStatus !== 409 &&
          error.httpStatus !== 429 &&
          error.httpStatus !== 404;
        again = refused ? refusedMs : backedOff(random, failures, retry);
        if (!stopped && signal?.aborted !== true)
          note(
            refused ? "refused" : "away",
            { error, journal: name, waiting: waiting.length },
            "story lines are not in their journal yet; they wait",
          );
      } finally {
        sending = undefined;
        notBefore = clock.monotonic() + again;
        fullNotBefore = clock.monotonic() + fullGapMs;
        plan();
      }
    })();
    return sending;
  }

  /** Logs each kind of fault once, until it is over. */
  function note(kind: string, fields: Readonly<Record<string, unknown>>, message: string): void {
    if (told === kind) return;
    told = kind;
    log.warn(fields, message);
  }

  return {
    offer(lines, patienceMs) {
      const now = clock.monotonic();
      for (const line of lines)
        if (line.level === "boundary") waiting.push({ line, dueAt: now + (patienceMs ?? rules.patienceMs(line)) });
      // The ring would drop more than this at once; the file has all lines.
      if (waiting.length > ringLimits.lines) {
        dropped += waiting.length - ringLimits.lines;
        waiting = waiting.slice(-ringLimits.lines);
      }
      plan();
    },
    async send(signal) {
      if (signal.aborted) return;
      const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      // A send in progress may have started without the newest lines.
      await Promise.race([Promise.resolve(sending).then(() => trySending(signal)), aborted]);
    },
    get counts() {
      return { waiting: waiting.length, dropped };
    },
    stop() {
      stopped = true;
      due?.cancel();
      due = undefined;
    },
  };
}
