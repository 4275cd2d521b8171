import type { Chapter } from "../../api/books/machine-state-chapter.ts";
import type { BookKind } from "../../api/books/report-table.ts";

/** How long chapters of one kind of book are kept. */
export interface Retention {
  /** How many of the newest closed chapters are kept, */
  readonly chapters: number;
  /** and the maximum age since their end. */
  readonly days: number;
  /** How long a book is kept after its subject has disappeared; absent: forever. */
  readonly daysAfterEnd?: number;
}

export const defaultRetention: Readonly<Record<BookKind, Retention>> = {
  cluster: { chapters: 100, days: 365 },
  pool: { chapters: 30, days: 180, daysAfterEnd: 30 },
  node: { chapters: 5, days: 180, daysAfterEnd: 7 },
  build: { chapters: 10, days: 90, daysAfterEnd: 30 },
};

/** The fields of a chapter that retention depends on. */
export type KeptChapter = Pick<Chapter, "number" | "state" | "startedAt" | "endedAt" | "outcome">;

const dayMs = 86_400_000;

export type Pruning =
  | { readonly prune: "chapters"; readonly numbers: readonly number[] }
  /** The subject of the book has been gone for long enough. */
  | { readonly prune: "book" };

/**
 * Which chapters of a book are deleted. Open chapters are never deleted, nor is the newest one that did not succeed: it
 * is the one to investigate.
 *
 * @param now milliseconds since the epoch.
 * @param subjectGoneAt RFC 3339: when the book's subject disappeared; `undefined`: it exists.
 */
export function pruneBook(
  chapters: readonly KeptChapter[],
  retention: Retention,
  now: number,
  subjectGoneAt?: string,
): Pruning {
  if (
    subjectGoneAt !== undefined &&
    retention.daysAfterEnd !== undefined &&
    now - Date.parse(subjectGoneAt) >= retention.daysAfterEnd * dayMs
  )
    return { prune: "book" };
  const ended = chapters.filter(({ state }) => state !== "Open").sort((a, b) => b.number - a.number);
  const newestFailure = ended.find(({ outcome }) => outcome !== "Succeeded");
  const tooOld = ({ endedAt, startedAt }: KeptChapter) =>
    now - Date.parse(endedAt ?? startedAt) > retention.days * dayMs;
  const numbers = ended
    .filter((chapter, index) => chapter !== newestFailure && (index >= retention.chapters || tooOld(chapter)))
    .map(({ number }) => number);
  return { prune: "chapters", numbers: numbers.reverse() };
}
