import {
  type BookKind,
  type JournalEntry,
  type SectionOutcome,
  bookKindOf,
  sectionKeyOf,
} from "../../api/books/report-table.ts";
import { poolInRenderedName } from "../config/is-rendered.ts";
import { Histogram } from "./histogram.ts";
import type { MetricFamily } from "./metrics.ts";

/** Maximum number of open sections; the oldest are forgotten. */
const mostOpen = 10_000;

/** The fields of a line that a meter reads. */
export type MeteredLine = Pick<JournalEntry, "mark"> & {
  readonly book: string;
  readonly chapter: string;
  readonly path: string;
  readonly reason: string;
  readonly run?: string | undefined;
  readonly outcome?: SectionOutcome | undefined;
  readonly data?: JournalEntry["data"] | undefined;
};

/**
 * Measures the duration of this process's steps from the lines that it reports. It does not need the state process.
 */
export class SectionMeter {
  readonly #seconds = new Histogram(
    "mco_section_duration_seconds",
    "How long a step of an update, a first boot or a build took, measured by the process that did it.",
    ["book_kind", "path", "outcome", "pool"],
  );
  /** Section → when it began, in milliseconds. */
  readonly #open = new Map<string, number>();
  readonly #mismatches = new Map<string, number>();

  /** @param at milliseconds of one clock for all calls. */
  take(line: MeteredLine, at: number): void {
    const kind = bookKindOf(line.book);
    if (kind === undefined) return;
    if (line.reason === "StateMismatch") this.#mismatches.set("node", (this.#mismatches.get("node") ?? 0) + 1);
    const key = keyOf(line);
    switch (line.mark) {
      case "begin":
        if (!this.#open.has(key)) this.#began(key, at);
        return;
      case "end":
      case "fail": {
        const began = this.#open.get(key);
        if (began === undefined) return;
        this.#open.delete(key);
        const outcome = line.outcome ?? (line.mark === "fail" ? "Failed" : "Succeeded");
        this.#seconds.observe(
          {
            book_kind: kind,
            path: sectionKeyOf(kind, line.chapter, line.path) ?? "other",
            outcome,
            pool: poolOf(kind, line),
          },
          (at - began) / 1000,
        );
        return;
      }
      case "skip":
        this.#open.delete(key);
        return;
      case "retry":
      case "note":
        return;
    }
  }

  /**
   * Takes lines that this writer reported before it restarted: its open sections end now, above all a reboot.
   *
   * @param now milliseconds since the epoch
   * @param at the same time by the clock of `take`
   */
  recall(lines: Iterable<MeteredLine & { readonly at: number }>, now: number, at: number): void {
    for (const line of lines) {
      if (line.mark === "begin") this.began(line, at - Math.max(0, now - line.at));
      else if (line.mark !== "note" && line.mark !== "retry") this.#open.delete(keyOf(line));
    }
  }

  /** A section began whose beginning another writer reports. */
  began(line: Pick<MeteredLine, "book" | "chapter" | "path" | "run">, at: number): void {
    const key = keyOf(line);
    if (!this.#open.has(key)) this.#began(key, at);
  }

  #began(key: string, at: number): void {
    const oldest = this.#open.keys().next();
    if (this.#open.size >= mostOpen && oldest.done !== true) this.#open.delete(oldest.value);
    this.#open.set(key, at);
  }

  families(): readonly MetricFamily[] {
    return [this.#seconds.family()];
  }

  /** Sections that only the controller observes. */
  mismatchFamilies(): readonly MetricFamily[] {
    return [
      {
        name: "mco_state_mismatch_total",
        help: "How often two sources were found to say different things of a machine.",
        type: "counter",
        labels: ["kind"],
        samples: [...this.#mismatches].map(([kind, value]) => ({ labels: { kind }, value })),
      },
    ];
  }
}

/** Characters of a run: a machine's request, of which its Node may hold 256 Ki, is one. */
const longestRun = 253;

const keyOf = ({ book, chapter, run = "", path }: Pick<MeteredLine, "book" | "chapter" | "path" | "run">) =>
  `${book}\n${chapter}\n${run.slice(0, longestRun)}\n${path}`;

function poolOf(kind: BookKind, { book, run, data }: MeteredLine): string {
  if (kind === "pool") return book.slice("pool/".length);
  const pool = data?.["pool"];
  return pool !== undefined ? String(pool) : (poolInRenderedName((run ?? "").slice(0, longestRun)) ?? "");
}

/** Lines that a writer could not add to its journal. */
export const journalFamilies = (component: string, dropped: number): readonly MetricFamily[] => [
  {
    name: "mco_journal_dropped_total",
    help: "Boundary lines of the story that are in no journal object: there were too many, or the process ended.",
    type: "counter",
    labels: ["component"],
    samples: [{ labels: { component }, value: dropped }],
  },
];
