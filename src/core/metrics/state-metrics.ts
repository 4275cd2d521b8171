import type { Chapter } from "../../api/books/machine-state-chapter.ts";
import { bookKindOf } from "../../api/books/report-table.ts";
import type { ReportedCondition } from "../operator/health.ts";
import type { MetricFamily, Sample } from "./metrics.ts";

/** The fields of a stored chapter that are measured. */
export interface StoredChapter {
  readonly kind: string;
  readonly chapter: string;
  readonly state: Chapter["state"];
  readonly pool: string;
  /** RFC 3339 */
  readonly startedAt: string;
  readonly bytes: number;
}

/** Series of one counter: root on a machine chooses the words of its book. */
const mostSeries = 2000;

/** Counts what the state process stores; counters start at zero with the process. */
export class StateMeter {
  readonly #closed = new Map<string, { readonly labels: Sample["labels"]; value: number }>();
  readonly #foreign = new Map<string, number>();
  readonly #lag = new Map<string, number>();
  readonly #overdue = new Map<string, number>();

  closed({
    book,
    chapter,
    outcome = "Unknown",
    reason = "",
    pool = "",
  }: Pick<Chapter, "book" | "chapter" | "outcome" | "reason" | "pool">): void {
    const labels = { book_kind: bookKindOf(book) ?? "", chapter, outcome, reason, pool };
    const known = this.#closed.get(JSON.stringify(labels));
    const counted =
      known === undefined && this.#closed.size >= mostSeries
        ? { ...labels, chapter: "other", reason: "other", pool: "" }
        : labels;
    const key = JSON.stringify(counted);
    const one = this.#closed.get(key) ?? { labels: counted, value: 0 };
    one.value += 1;
    this.#closed.set(key, one);
  }

  foreign(component: string, lines: number): void {
    this.#foreign.set(component, (this.#foreign.get(component) ?? 0) + lines);
  }

  /** Machines of a pool that were served and have not joined in time. */
  overdue(pool: string, machines: number): void {
    this.#overdue.set(pool, machines);
  }

  heard(component: string, lagMs: number): void {
    this.#lag.set(component, lagMs / 1000);
  }

  /** @param now milliseconds since the epoch. */
  families(
    now: number,
    stored: Iterable<StoredChapter>,
    health: readonly ReportedCondition[],
  ): readonly MetricFamily[] {
    const chapters = new Map<string, { labels: Sample["labels"]; value: number }>();
    const bytes = new Map<string, { labels: Sample["labels"]; value: number }>();
    const ages = new Map<string, { labels: Sample["labels"]; value: number }>();
    const add = (to: typeof chapters, labels: Sample["labels"], value: (before: number) => number) => {
      const key = JSON.stringify(labels);
      to.set(key, { labels, value: value(to.get(key)?.value ?? 0) });
    };
    for (const { kind, chapter, state, pool, startedAt, bytes: size } of stored) {
      add(chapters, { kind, state }, (before) => before + 1);
      add(bytes, { kind, state }, (before) => before + size);
      // The chapter of a component's life stays open for as long as the component runs.
      if (state === "Open" && kind !== "cluster")
        add(ages, { book_kind: kind, chapter, pool }, (before) =>
          Math.max(before, Math.floor((now - Date.parse(startedAt)) / 1000)),
        );
    }
    const byComponent = (map: ReadonlyMap<string, number>) =>
      [...map].map(([component, value]) => ({ labels: { component }, value }));
    return [
      {
        name: "mco_chapters_total",
        help: "Chapters that were closed, by how they ended.",
        type: "counter",
        labels: ["book_kind", "chapter", "outcome", "reason", "pool"],
        samples: [...this.#closed.values()],
      },
      {
        name: "mco_open_chapter_age_seconds",
        help: "How long the oldest open chapter of its kind has been open, of books of nodes, pools and builds.",
        type: "gauge",
        labels: ["book_kind", "chapter", "pool"],
        samples: [...ages.values()],
      },
      {
        name: "mco_library_chapters",
        help: "Chapters that are stored.",
        type: "gauge",
        labels: ["kind", "state"],
        samples: [...chapters.values()],
      },
      {
        name: "mco_library_bytes",
        help: "Their size as JSON.",
        type: "gauge",
        labels: ["kind", "state"],
        samples: [...bytes.values()],
      },
      {
        name: "mco_journal_lag_seconds",
        help: "How old the newest line of a writer was when it was last read.",
        type: "gauge",
        labels: ["component"],
        samples: byComponent(this.#lag),
      },
      {
        name: "mco_journal_foreign_lines_total",
        help: "Journal lines about objects that are not their writer's, which were left out.",
        type: "counter",
        labels: ["component"],
        samples: byComponent(this.#foreign),
      },
      {
        name: "mco_join_overdue",
        help: "Machines that were given a configuration of the pool to join with and have not joined in time.",
        type: "gauge",
        labels: ["pool"],
        samples: [...this.#overdue].map(([pool, value]) => ({ labels: { pool }, value })),
      },
      {
        name: "mco_health",
        help: "What the conditions of MachineConfiguration cluster say of the suite's parts: 1 True, 0 False, -1 Unknown.",
        type: "gauge",
        labels: ["component"],
        samples: health
          .filter(({ type }) => type !== "UpdateProgressing")
          .map(({ type, status }) => ({
            labels: { component: type.replace(/Healthy$/, "") },
            value: status === "True" ? 1 : status === "False" ? 0 : -1,
          })),
      },
    ];
  }
}
