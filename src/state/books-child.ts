import type { JournalLine } from "../api/books/journal-line.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { type BookKind, bookKindOf } from "../api/books/report-table.ts";
import { journals } from "../api/names.ts";
import { defined } from "../api/schema/defined.ts";
import { type LineStamp, journalOfNode, lineOf, linesForBook } from "../core/books/journal.ts";
import type { StateChild } from "../core/operator/state-settings.ts";
import { type Caches, type Controller, type Watch, watching } from "../kube/controller.ts";
import type { Selection } from "../kube/kube-client.ts";
import { type Outcome, done } from "../kube/outcome.ts";
import { type Report, createReport } from "../kube/report.ts";
import type { ObjectChange } from "../kube/watch-cache.ts";
import { BookIndexes } from "./book-indexes.ts";
import { bootstrapFactsOf } from "./bootstrap-facts.ts";
import { type ChildContext, type ChildMetrics, type KeeperChild, runAsChild } from "./child.ts";
import { JournalReader } from "./journal-reader.ts";
import { reportIndexNews } from "./report-index-news.ts";

const cluster = "cluster";
/** Selects one journal. */
export const journalSelection = (name: string): Selection => ({ fieldSelector: `metadata.name=${name}` });
/** The name of the subject of a book. */
export const nameInBook = (book: string) => book.slice(book.indexOf("/") + 1);

/** The part that differs between the children that keep books. */
interface StoredBooks {
  readonly name: StateChild;
  readonly kinds: readonly BookKind[];
  /** Journals that are read; `undefined`: all. */
  readonly journals: readonly string[] | undefined;
  /** The book that reports lost lines of a journal; `undefined`: another child handles it. */
  readonly missedIn: (journal: string) => string | undefined;
  readonly others: readonly Watch[];
  /** Books that lines of others concern. */
  readonly alsoConcerned?: (lines: readonly JournalLine[]) => readonly string[];
  /** Observations about a book's subject when a pass reads the book. */
  readonly look: (book: string, world: ObservedCluster) => ObservedBook;
}

/** The cluster as a pass over a book observes it. */
export interface ObservedCluster {
  readonly caches: Caches;
  readonly report: Report;
  readonly notify: ChildContext["notify"];
  readonly now: number;
  /** Makes lines from observed objects. */
  readonly seen: (line: Parameters<typeof lineOf>[0], at: number) => JournalLine;
}

/** Observations about the subject of a book. */
export interface ObservedBook {
  /** `undefined`: it has no subject that could go. */
  readonly subject: { readonly is: "there"; readonly uid: string | undefined } | { readonly is: "gone" } | undefined;
  readonly pool?: string;
  readonly lines: readonly JournalLine[];
  readonly againMs?: number;
}

/** A child that keeps the books of some kinds. */
export class BooksChild implements KeeperChild {
  readonly name: StateChild;
  readonly #storedBooks: StoredBooks;
  #bookIndexes: BookIndexes | undefined;

  constructor(storedBooks: StoredBooks) {
    this.name = storedBooks.name;
    this.#storedBooks = storedBooks;
  }

  async run(context: ChildContext, signal: AbortSignal): Promise<void> {
    const storedBooks = this.#storedBooks;
    const stamp = stampsOf(this.name, context);
    const bookIndexes = await BookIndexes.open(
      {
        store: context.store,
        kinds: storedBooks.kinds,
        clock: context.clock,
        retention: () => context.settings().retention,
        report: (news) => reportIndexNews(news, stamp(context.clock.now()), context),
        onClosed: (chapter) => context.notify({ is: "closed", chapter }),
      },
      signal,
    );
    this.#bookIndexes = bookIndexes;
    const run: BooksRun = { storedBooks, context, bookIndexes, stamp };
    await runAsChild(() => booksController(run), context, signal);
  }

  metrics(): ChildMetrics {
    const bookIndexes = this.#bookIndexes;
    return {
      kept: (function* () {
        for (const { kind, summary, bytes } of bookIndexes?.kept() ?? [])
          yield {
            kind,
            chapter: summary.chapter,
            state: summary.state,
            pool: summary.pool ?? "",
            startedAt: summary.startedAt,
            bytes,
          };
      })(),
    };
  }
}

/** One run of a child. */
interface BooksRun {
  readonly storedBooks: StoredBooks;
  readonly context: ChildContext;
  readonly bookIndexes: BookIndexes;
  readonly stamp: (at: number) => LineStamp;
}

/** Stamps for the lines of a child. Their numbers start again with each run. */
function stampsOf(name: StateChild, { clock, random, version }: ChildContext): (at: number) => LineStamp {
  const life = random.uuid();
  let ownSeq = 0;
  return (at) => ({
    writer: { component: "state", instance: name, version },
    boot: life,
    number: { seq: (ownSeq += 1) },
    at,
    mono: clock.monotonic(),
  });
}

const keepsCluster = ({ kinds }: StoredBooks): boolean => kinds.includes(cluster);

/** Reads journals into books, and passes over each book that has news. */
function booksController(run: BooksRun): Controller {
  const { storedBooks, context, bookIndexes } = run;
  const [first, ...rest] = [...journalWatches(run), ...storedBooks.others];
  if (first === undefined) throw new Error("bug: nothing is watched");
  return {
    name: storedBooks.name,
    watches: [first, ...rest],
    owns: [],
    start(add, { signal: until }) {
      const all = () => {
        for (const book of bookIndexes.books) add(book);
      };
      all();
      const stopSettings = context.onSettings(all);
      until.addEventListener("abort", stopSettings, { once: true });
      if (!keepsCluster(storedBooks)) return;
      add(cluster);
      const stop = context.onReported(() => add(cluster));
      until.addEventListener("abort", stop, { once: true });
    },
    reconcile: (book, { caches, signal }) => keepBook(book, run, caches, signal),
  };
}

/** The journals of the child's books. Their new lines lead to passes over the books that they are about. */
function journalWatches({ storedBooks, context, bookIndexes }: BooksRun): readonly Watch[] {
  const reader = new JournalReader(context.aliveAt);
  const marks = bookIndexes.marks();
  const selections: readonly (Selection | undefined)[] = storedBooks.journals?.map(journalSelection) ?? [undefined];
  return selections.map((selection) =>
    watching({
      resource: MachineStateJournal,
      ...defined({ selection }),
      concerns: (change) => {
        const { lines, foreign, missed } = reader.read(change, marks);
        notifyOfLines(change, { lines, foreign }, context);
        const book = missed > 0 ? storedBooks.missedIn(change.key) : undefined;
        if (book !== undefined) bookIndexes.miss({ book, journal: change.key, lines: missed });
        const books = new Set(
          lines
            .map((line) => line.book)
            .filter(
              (name) => storedBooks.kinds.includes(bookKindOf(name) ?? "cluster") && bookKindOf(name) !== undefined,
            ),
        );
        if (book !== undefined) books.add(book);
        for (const other of storedBooks.alsoConcerned?.(lines) ?? []) books.add(other);
        if (keepsCluster(storedBooks) && change.key === journals.bootstrap) books.add(cluster);
        return [...books];
      },
    }),
  );
}

/** Reports foreign lines of a journal, and how long its newest line took. */
function notifyOfLines(
  { key, before }: ObjectChange<MachineStateJournal>,
  { lines, foreign }: { readonly lines: readonly JournalLine[]; readonly foreign: number },
  { clock, log, notify }: ChildContext,
): void {
  if (foreign > 0) {
    log.warn(
      { journal: key, lines: foreign },
      "a journal holds lines that are not its writer's to write; these lines are left out",
    );
    notify({ is: "foreign", component: key.startsWith(journals.nodePrefix) ? "daemon" : key, lines: foreign });
  }
  const newest = lines.at(-1);
  if (newest !== undefined && before !== undefined)
    notify({ is: "heard", component: newest.writer.component, lagMs: Math.max(0, clock.now() - newest.at) });
}

/** Puts the lines about a book into it: those of journals, observed ones, and the child's own. */
async function keepBook(
  book: string,
  { storedBooks, context, bookIndexes, stamp }: BooksRun,
  caches: Caches,
  signal: AbortSignal,
): Promise<Outcome> {
  const seen = storedBooks.look(book, {
    caches,
    now: context.clock.now(),
    report: createReport(context),
    notify: context.notify,
    seen: (line, at) => ({ ...lineOf(line, stamp(at)), via: "seen" }),
  });
  // A journal may hold lines about a subject that was deleted long ago, and whose book has expired.
  if (seen.subject?.is === "gone" && !bookIndexes.has(book)) return done();
  bookIndexes.take(book, [
    ...linesForBook(journalsOf(book, storedBooks, caches), book),
    ...seen.lines,
    ...(book === cluster ? context.reported() : []),
  ]);
  if (seen.subject?.is === "there") bookIndexes.present(book, seen.subject.uid);
  if (seen.subject?.is === "gone") bookIndexes.gone(book);
  const { againMs } = await bookIndexes.persist(book, seen.pool, signal);
  if (book === cluster) {
    const journal = caches.of(MachineStateJournal, journalSelection(journals.bootstrap)).get(journals.bootstrap);
    context.notify({ is: "bootstrap", facts: bootstrapFactsOf(journal) });
  }
  return done(Math.min(againMs, seen.againMs ?? againMs) / 1000);
}

const sharedJournals = [
  journals.controller,
  journals.operator,
  journals.server,
  journals.osBuilder,
  journals.bootstrap,
] as const;

/** Journals that may have lines of a book. */
function journalsOf(book: string, { journals: read }: StoredBooks, caches: Caches): readonly MachineStateJournal[] {
  const shared = sharedJournals.filter((name) => read?.includes(name) ?? true);
  const names = bookKindOf(book) === "node" ? [journalOfNode(nameInBook(book)), ...shared] : shared;
  return names.flatMap(
    (name) => caches.of(MachineStateJournal, read === undefined ? undefined : journalSelection(name)).get(name) ?? [],
  );
}
