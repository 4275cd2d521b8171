import { leastOf } from "../api/schema/extremes.ts";
import type { JournalLine } from "../api/books/journal-line.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { appendLines, ringLimits } from "../core/books/journal.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { type Random, backedOff } from "../ports/random.ts";
import { whenAborted } from "../ports/when-aborted.ts";
import type { KubeClient } from "./kube-client.ts";
import { KubeError, isConflict } from "./kube-error.ts";

/** When lines are sent to the API server. */
export interface SendingRules {
  /** How many milliseconds a line may wait. */
  readonly patienceMs: (line: JournalLine) => number;
  /** Minimum interval between two appends. */
  readonly gapMs: number;
}

/**
 * A node's journal: sends failures and the turning points of an update (the target was seen, the machine is up again,
 * the end) at once; the reboot flushes it by `flush`. Lines in between wait for the next turning point. Outside of an
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
/**
 * Between attempts that nothing in this process can help: the journal does not exist yet (it is created with the
 * MachineConfigNode, or never), or the server refuses, as it does without a permission or while a token is replaced.
 */
const hopeless = { firstMs: 15_000, lastMs: 300_000, spread: 0.2 };
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
export const createJournalWriter = (options: JournalWriterOptions): JournalWriter => new LineSender(options);

interface WaitingLine {
  readonly line: JournalLine;
  /** In monotonic milliseconds. */
  readonly dueAt: number;
}

/** What the writer remembers between two appends. Times are in monotonic milliseconds. */
interface SenderMemory {
  waiting: WaitingLine[];
  /** How many boundary lines were dropped because too many waited. */
  dropped: number;
  /** The journal as the last response had it; `undefined`: it has to be read first. */
  known: MachineStateJournal | undefined;
  /** The next append. */
  due: { readonly at: number; readonly cancel: () => void } | undefined;
  /** The earliest time of the next append. */
  notBefore: number;
  /** The same, while {@link mostLines} or more lines wait. */
  fullNotBefore: number;
  /** Failed attempts in a row. */
  failures: number;
  /** The append that is under way. */
  sending: Promise<void> | undefined;
  stopped: boolean;
  /** The kind of fault that was logged last; empty: none since the last success. */
  logged: "" | "absent" | "refused" | "away";
}

class LineSender implements JournalWriter {
  readonly #options: JournalWriterOptions;
  readonly #memory: SenderMemory = {
    waiting: [],
    dropped: 0,
    known: undefined,
    due: undefined,
    notBefore: 0,
    fullNotBefore: 0,
    failures: 0,
    sending: undefined,
    stopped: false,
    logged: "",
  };

  constructor(options: JournalWriterOptions) {
    this.#options = options;
  }

  offer(lines: readonly JournalLine[], patienceMs?: number): void {
    const { clock, rules } = this.#options;
    const memory = this.#memory;
    const now = clock.monotonic();
    for (const line of lines)
      if (line.level === "boundary") memory.waiting.push({ line, dueAt: now + (patienceMs ?? rules.patienceMs(line)) });
    // The ring would drop more than this at once; the file has all lines.
    if (memory.waiting.length > ringLimits.lines) {
      memory.dropped += memory.waiting.length - ringLimits.lines;
      memory.waiting = memory.waiting.slice(-ringLimits.lines);
    }
    this.#plan();
  }

  async send(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    // A send in progress may have started without the newest lines.
    const sent = Promise.resolve(this.#memory.sending).then(() => this.#trySending(signal));
    await Promise.race([sent, whenAborted(signal)]);
  }

  get counts(): JournalWriter["counts"] {
    return { waiting: this.#memory.waiting.length, dropped: this.#memory.dropped };
  }

  stop(): void {
    this.#memory.stopped = true;
    this.#memory.due?.cancel();
    this.#memory.due = undefined;
  }

  /** Plans the next append for the time at which the first line is due. */
  #plan(): void {
    const { clock } = this.#options;
    const memory = this.#memory;
    if (memory.stopped || memory.waiting.length === 0) return;
    // A large roll-out fills the ring in less time: waiting lines would be lost.
    const isFull = memory.waiting.length >= mostLines && memory.failures === 0;
    const at = isFull
      ? Math.max(memory.fullNotBefore, clock.monotonic())
      : Math.max(memory.notBefore, leastOf(memory.waiting.map(({ dueAt }) => dueAt)));
    if (memory.due !== undefined && memory.due.at === at) return;
    memory.due?.cancel();
    memory.due = {
      at,
      cancel: clock.after(at - clock.monotonic(), () => {
        memory.due = undefined;
        void this.#trySending(undefined);
      }),
    };
  }

  #trySending(signal: AbortSignal | undefined): Promise<void> {
    const memory = this.#memory;
    if (memory.stopped || memory.waiting.length === 0) return Promise.resolve();
    memory.sending ??= this.#attempt(signal);
    return memory.sending;
  }

  async #attempt(signal: AbortSignal | undefined): Promise<void> {
    const { clock, random, name, rules } = this.#options;
    const memory = this.#memory;
    let waitMs = rules.gapMs;
    try {
      const result = await this.#append(signal);
      memory.failures = result === "absent" ? memory.failures + 1 : 0;
      if (result === "absent") {
        waitMs = backedOff(random, memory.failures, hopeless);
        this.#note(
          "absent",
          { journal: name },
          "the MachineStateJournal does not exist yet; lines wait until the operator creates it",
        );
      } else memory.logged = "";
    } catch (error) {
      memory.failures += 1;
      const refused = isLastingRefusal(error);
      waitMs = backedOff(random, memory.failures, refused ? hopeless : retry);
      if (!memory.stopped && signal?.aborted !== true)
        this.#note(
          refused ? "refused" : "away",
          { error, journal: name, waiting: memory.waiting.length },
          "journal lines could not be sent yet; they wait",
        );
    } finally {
      memory.sending = undefined;
      memory.notBefore = clock.monotonic() + waitMs;
      memory.fullNotBefore = clock.monotonic() + fullGapMs;
      this.#plan();
    }
  }

  async #append(signal: AbortSignal | undefined): Promise<"absent" | "done"> {
    const { kube, name, owner } = this.#options;
    const memory = this.#memory;
    const options = { owner, ...(signal === undefined ? {} : { signal }) };
    for (let conflicts = 0; ; conflicts += 1) {
      memory.known ??= await kube.get(MachineStateJournal, { name }, options);
      if (memory.known === undefined) return "absent";
      const taken = [...memory.waiting];
      const change = appendLines(
        memory.known.spec,
        taken.map(({ line }) => line),
      );
      if (change === undefined) {
        this.#forget(taken);
        return "done";
      }
      const version = {
        op: "replace" as const,
        path: "/metadata/resourceVersion",
        value: memory.known.metadata.resourceVersion,
      };
      try {
        memory.known = await kube.patch(
          MachineStateJournal,
          { name },
          { type: "json", operations: [version, ...change.operations] },
          options,
        );
        this.#forget(taken);
        return "done";
      } catch (error) {
        // Whatever the result: the next attempt reads the current journal.
        memory.known = undefined;
        if (!isConflict(error) || conflicts >= mostConflicts) throw error;
      }
    }
  }

  #forget(lines: readonly WaitingLine[]): void {
    const sent = new Set(lines);
    this.#memory.waiting = this.#memory.waiting.filter((one) => !sent.has(one));
  }

  /** Logs each kind of fault once, until it is over. */
  #note(kind: Exclude<SenderMemory["logged"], "">, fields: Readonly<Record<string, unknown>>, message: string): void {
    if (this.#memory.logged === kind) return;
    this.#memory.logged = kind;
    this.#options.log.warn(fields, message);
  }
}

/** Whether a refusal, such as a missing permission, is likely to persist. */
const isLastingRefusal = (error: unknown): boolean =>
  error instanceof KubeError &&
  error.httpStatus >= 400 &&
  error.httpStatus < 500 &&
  error.httpStatus !== 409 &&
  error.httpStatus !== 429 &&
  error.httpStatus !== 404;
