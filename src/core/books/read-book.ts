import type { MachineStateBook } from "../../api/books/machine-state-book.ts";
import type { MachineStateChapter } from "../../api/books/machine-state-chapter.ts";
import type { MachineStateJournal } from "../../api/books/machine-state-journal.ts";
import type { ReadBook, ReadChapter } from "./book-text.ts";
import { type ChapterRecord, closedChapters, foldBook, isIn, linesOfChapter } from "./fold-book.ts";
import { admittedLines, bookOfJournal, isKnown } from "./journal.ts";
import { inOrderOfBoots, lineKey } from "./order-lines.ts";
import { defined } from "../../api/schema/defined.ts";

/** The inputs of a reader: stored books and chapters, if any, and the journals. */
export interface StoredBooks {
  readonly books: readonly Pick<MachineStateBook, "spec">[];
  readonly chapters: readonly Pick<MachineStateChapter, "spec">[];
  readonly journals: readonly Pick<MachineStateJournal, "metadata" | "spec">[];
}

/**
 * One book: the stored chapters, followed by newer journal lines. The result is the same with and without stored books,
 * as far as the journals reach.
 *
 * @param now milliseconds since the epoch
 */
export function readBook({ books, chapters, journals }: StoredBooks, book: string, now: number): ReadBook {
  const kept = chapters.flatMap(({ spec }) => (spec.book === book ? [spec] : [])).sort((a, b) => a.number - b.number);
  const index = books.find(({ spec }) => spec.book === book)?.spec;
  const closed = kept.filter(({ state }) => state === "Closed");
  const open = kept.filter(({ state }) => state !== "Closed");
  const admitted = journals.flatMap((journal) => admittedLines(journal).lines.filter((line) => line.book === book));
  // Of chapters that were thrown away the journals may still have lines.
  const isGone = (line: (typeof admitted)[number]) =>
    index !== undefined &&
    isKnown(index.through, line) &&
    !open.some(({ chapter, run }) => chapter === line.chapter && (line.run === undefined || line.run === run));
  // What came late stands in another chapter, and once.
  const late = new Set(
    kept.flatMap(({ entries }) => entries.flatMap((entry) => (entry.late === undefined ? [] : [lineKey(entry)]))),
  );
  // The index is older than the chapters: lines of closed ones are not put in order with those that are left.
  const ended = closedChapters(kept);
  const isStored = (line: (typeof admitted)[number]) => ended.some((chapter) => isIn(chapter, line));
  const fresh = admitted.filter((line) => !isGone(line) && !isStored(line) && !late.has(lineKey(line)));
  const records = foldBook(book, inOrderOfBoots([...open.flatMap(linesOfChapter), ...fresh], admitted), {
    now,
    closed: ended,
  });
  let last = Math.max(index?.lastNumber ?? 0, kept.at(-1)?.number ?? 0);
  const inBook = new Set<number>();
  const beyond = records.map((record): ReadChapter => {
    const same = open.find(
      ({ number, chapter, run }) => chapter === record.chapter && run === record.run && !inBook.has(number),
    );
    if (same === undefined) {
      last += 1;
      return { ...record, number: last, kept: false };
    }
    inBook.add(same.number);
    const isNew = fresh.some(
      (line) => line.chapter === same.chapter && (line.run ?? same.run) === same.run && !isKnown(same.through, line),
    );
    // Lines that the book has folded away cannot be folded again.
    return isNew || same.dropped === 0 ? goneOn(same, record) : { ...same, kept: true };
  });
  const silent = open
    .filter(({ number }) => !inBook.has(number))
    .map((chapter): ReadChapter => ({ ...chapter, kept: true }));
  return {
    book,
    chapters: [...closed.map((chapter): ReadChapter => ({ ...chapter, kept: true })), ...silent, ...beyond].sort(
      (a, b) => a.number - b.number,
    ),
    prunedThrough: index?.prunedThrough ?? 0,
    foreign: journals.reduce(
      (sum, journal) => sum + (bookOfJournal(journal.metadata.name) === book ? admittedLines(journal).foreign : 0),
      0,
    ),
  };
}

/**
 * A stored chapter with what its lines say by now. Of the stored one only that stays which no line says: what it left
 * out, and what is known to be lost.
 */
function goneOn({ number, folded, missed }: MachineStateChapter["spec"], record: ChapterRecord): ReadChapter {
  const leftOut = { ...defined({ folded, missed }) };
  return { ...leftOut, ...record, number, kept: true };
}

/** Names of all stored or reported books, sorted: the cluster, pools, nodes, builds. */
export function bookNames({ books, chapters, journals }: StoredBooks): readonly string[] {
  const names = new Set([
    ...books.map(({ spec }) => spec.book),
    ...chapters.map(({ spec }) => spec.book),
    ...journals.flatMap((journal) => admittedLines(journal).lines.map(({ book }) => book)),
  ]);
  const rank = (book: string) => ["cluster", "pool", "node", "build"].indexOf(book.split("/", 1)[0] ?? "");
  return [...names].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b, "en", { numeric: true }));
}

/** Several books at once; each line and chapter is looked at once, however many books there are. */
export function readBooks(
  storedBooks: StoredBooks,
  names: Iterable<string>,
  now: number,
): ReadonlyMap<string, ReadBook> {
  const of = new Map<
    string,
    {
      books: StoredBooks["books"][number][];
      chapters: StoredBooks["chapters"][number][];
      journals: StoredBooks["journals"][number][];
    }
  >();
  const bookObjects = (book: string) => {
    const known = of.get(book) ?? { books: [], chapters: [], journals: [] };
    of.set(book, known);
    return known;
  };
  for (const book of storedBooks.books) bookObjects(book.spec.book).books.push(book);
  for (const chapter of storedBooks.chapters) bookObjects(chapter.spec.book).chapters.push(chapter);
  for (const journal of storedBooks.journals) {
    const own = bookOfJournal(journal.metadata.name);
    if (own !== undefined) {
      bookObjects(own).journals.push(journal);
      continue;
    }
    const byBook = new Map<string, (typeof journal.spec.lines)[number][]>();
    for (const line of journal.spec.lines) {
      const lines = byBook.get(line.book);
      if (lines === undefined) byBook.set(line.book, [line]);
      else lines.push(line);
    }
    for (const [book, lines] of byBook)
      bookObjects(book).journals.push({ metadata: journal.metadata, spec: { ...journal.spec, lines } });
  }
  return new Map([...names].map((name) => [name, readBook(bookObjects(name), name, now)]));
}
