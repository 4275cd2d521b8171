/**
 * Everything that the state process reports, as a function for each happening: its lines in the book of the cluster, its
 * Events and all of their texts. Callers give the facts. The process is the keeper of the books, so that its lines go into
 * them without a journal: `lineOf` stamps them.
 */
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { type JournalEntryOf, reasonText } from "../api/books/report-table.ts";
import type { ReportedShortLineOf } from "../api/books/reports.ts";
import { type Join, overdueText } from "../core/books/judge-joins.ts";
import { type Happening, noticed } from "../kube/report.ts";
import type { ExpiredBook, LostLines } from "./book-indexes.ts";

type ClusterLine = ReportedShortLineOf<"cluster">;

export const gapText = ({ journal, lines }: LostLines): string =>
  `${lines} ${lines === 1 ? "line" : "lines"} of the journal ${journal} left it before they were read`;

export const linesLost = (lost: LostLines): ClusterLine => ({
  book: "cluster",
  mark: "end",
  reason: "Gap",
  message: gapText(lost),
  data: { book: lost.book, lines: lost.lines },
});

export const bookExpired = ({ book, subject: { kind, name }, goneAt, chapters }: ExpiredBook): ClusterLine => ({
  book: "cluster",
  mark: "end",
  path: `Gone/${book}`,
  reason: "SubjectGone",
  message: `the ${kind} ${name} has been gone since ${goneAt}; its book had ${chapters} chapters`,
  data: { book },
});

// Health

/** Chapters of the cluster's book about components. */
export type HealthChapter = Extract<JournalEntryOf<"cluster">, { readonly path: "Degraded" }>["chapter"];

/** @param reason of the chapter's section Degraded: the caller has it from one row of a table, which a test compares. */
export const componentDegraded = (chapter: HealthChapter, reason: string, message: string): ClusterLine =>
  ({
    book: "cluster",
    chapter,
    path: "Degraded",
    mark: "fail",
    reason,
    message,
  }) as ClusterLine;

export const componentRecovered = (chapter: HealthChapter, message: string): ClusterLine => ({
  book: "cluster",
  chapter,
  path: "Degraded",
  mark: "end",
  reason: "Recovered",
  message,
});

// Machines

export const joinOverdue = (pool: MachineConfigPool, join: Join): Happening =>
  noticed(pool, "JoinOverdue", `${overdueText(join)}; ${reasonText("JoinOverdue").next}`);
