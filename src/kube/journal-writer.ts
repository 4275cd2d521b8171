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
  /** How many milliseconds a line may wait, by itself. */
  readonly patienceMs: (line: JournalLine) => number;
  /** Between two appends, at least. */
  readonly gapMs: number;
}

/**
 * A node's journal: what an update came to is sent at its turning points (the target was seen, the machine is up again,
 * the end) and whatever failed at once; the reboot itself asks for it by `settle`. What lies between may wait, since it
 * comes with the next turning point. Outside of an update ten seconds are soon enough.
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

/** The journal of a component that many nodes share: at most one append in ten seconds. */
export const componentSending: SendingRules = { patienceMs: () => 10_000, gapMs: 10_000 };

export interface JournalWriter {
  /**
   * Takes lines in the order in which they were written, and sends the boundary lines of them when it is time. Never
   * throws, never waits.
   */
  offer(lines: readonly JournalLine[], patienceMs?: number): void;
  /** Tries once to send what waits; resolves when that was tried, or when the signal aborts. */
  send(signal: AbortSignal): Promise<void>;
  /** Boundary lines that wait, and those that were given up because too many waited. */
  readonly counts: { readonly waiting: number; readonly dropped: number };
  /** Nothing is sent any more. */
  stop(): void;
}

export interface JournalWriterOptions {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Name of the MachineStateJournal. Whoever reads this did not make it: the operator does. */
  readonly name: string;
  /** Field manager. */
  readonly owner: string;
  readonly rules: SendingRules;
}

const retry = { firstMs: 2000, lastMs: 60_000, spread: 0.2 };
/** Between looks for a journal that nobody has made yet: it comes with the MachineConfigNode, or not at all. */
const absent = { firstMs: 15_000, lastMs: 300_000, spread: 0.2 };
/** Between tries of what the server refuses for a reason of its own, such as a right that is missing. */
const refusedMs = 300_000;
const mostConflicts = 8;
/** So many lines are sent before their time, and so many milliseconds after the last ones at the earliest. */
const mostLines = 100;
const fullGapMs = 1000;

/**
 * Appends lines to one MachineStateJournal: each boundary line once, by writer, boot and number, whatever is lost on
 * the way. The body holds new lines only, and the version that was read, so that a stale read is refused and read
 * again. A journal that is absent, a right that is missing and a server that is away are noted in the log: they are no
 * fault of anybody's work.
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
  /** With the moment at which each has waited long enough, in monotonic milliseconds. */
  let waiting: { readonly line: JournalLine; readonly dueAt: number }[] = [];
  let dropped = 0;
  /** As the last answer left it; `undefined`: it has to be read. */
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
    // A large roll-out fills the ring in less time than that: what waits would be lost.
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
        // Whatever became of it: the next look reads what is there.
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

  /** Once for each kind of trouble, until it is over. */
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
      // More than the ring holds would never be seen in it; the file has them all.
      if (waiting.length > ringLimits.lines) {
        dropped += waiting.length - ringLimits.lines;
        waiting = waiting.slice(-ringLimits.lines);
      }
      plan();
    },
    async send(signal) {
      if (signal.aborted) return;
      const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      // One that is under way may have begun without the newest lines.
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
