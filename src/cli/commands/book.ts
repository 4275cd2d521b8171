import { MachineStateJournal } from "../../api/index.ts";
import type { JournalLine } from "../../api/books/journal-line.ts";
import { bookKindOf, bookKinds } from "../../api/books/report-table.ts";
import { bookText, booksText, lineText } from "../../core/books/book-text.ts";
import { healthWord } from "../../core/books/book-keeper.ts";
import { admittedLines } from "../../core/books/journal.ts";
import { lineKey } from "../../core/books/order-lines.ts";
import { type StoredBooks, bookNames, readBook, readBooks } from "../../core/books/read-book.ts";
import type { KubeClient, Selection } from "../../kube/kube-client.ts";
import { WatchCache } from "../../kube/watch-cache.ts";
import { silentLogger } from "../../ports/logger.ts";
import { systemClock, systemFiles, systemRandom } from "../../ports/node/index.ts";
import { countOf, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { connect } from "../connect.ts";
import { exitCodes } from "../exit-codes.ts";
import { type Io, processIo } from "../io.ts";
import { journalsOf, readFolder, readStoredBooks } from "../read-stored-books.ts";
import { listText } from "../../core/text/list-text.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.book, { positionals: true });
  if (positionals.length > 1) throw usageError("name one book only");
  const [book] = positionals;
  if (book !== undefined && bookKindOf(book) === undefined)
    throw usageError(
      `"${book}" is no book: write ${bookKinds.map((kind) => (kind === "cluster" ? kind : `${kind}/NAME`)).join(", ")}`,
    );
  if (book === undefined && (values.follow || values.chapter !== undefined))
    throw usageError("name a book: node/NAME, pool/NAME, build/NAME or cluster");
  const chapter = values.chapter === undefined ? undefined : countOf(values.chapter, "--chapter", 1, 1e9);
  const json = values.json;
  const io = processIo();
  if (values.from !== undefined) {
    if (values.follow) throw usageError("--follow needs a cluster: --from reads files once");
    const storedBooks = await readFolder(systemFiles, values.from);
    const find: FindStoredBooks = () => Promise.resolve(storedBooks);
    return book === undefined
      ? listBooks(find, io, { json })
      : showBook(find, io, book, { ...(chapter === undefined ? {} : { chapter }), json });
  }
  const { kube, close } = await connect({ kubeconfig: values.kubeconfig, directory: values.dir, component: "book" });
  try {
    const find: FindStoredBooks = (name) => readStoredBooks(kube, name);
    if (book === undefined) return await listBooks(find, io, { json });
    const follows = values.follow;
    const code = await showBook(find, io, book, { ...(chapter === undefined ? {} : { chapter }), json, follows });
    if (!follows || code !== exitCodes.ok) return code;
    const stopping = new AbortController();
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stopping.abort(new Error(name)));
    await followBook(kube, io, book, { json }, stopping.signal);
    return code;
  } finally {
    close();
  }
}

/** Finds the stored and reported lines of one book, or of all. */
type FindStoredBooks = (book?: string) => Promise<StoredBooks>;

/** Prints the books that there are. @returns the exit code. */
export async function listBooks(
  find: FindStoredBooks,
  io: Io,
  { json, now = systemClock.now() }: { readonly json: boolean; readonly now?: number },
): Promise<number> {
  const storedBooks = await find();
  const names = bookNames(storedBooks);
  // From the chapters: the index of a book is up to ten minutes behind them.
  const books = [...readBooks(storedBooks, names, now)].map(([book, { chapters }]) => ({
    book,
    health: healthWord(chapters),
    chapters: chapters.length,
    kept: chapters.some(({ kept }) => kept),
  }));
  io.out(json ? `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Books", books })}\n` : booksText(books));
  return exitCodes.ok;
}

/** Prints one book or a chapter of it. @returns the exit code. */
export async function showBook(
  find: FindStoredBooks,
  io: Io,
  book: string,
  {
    chapter,
    json = false,
    follows = false,
    now = systemClock.now(),
  }: { readonly chapter?: number; readonly json?: boolean; readonly follows?: boolean; readonly now?: number },
): Promise<number> {
  const storedBooks = await find(book);
  const read = readBook(storedBooks, book, now);
  // A follower may start before the first line exists.
  if (read.chapters.length === 0 && storedBooks.books.length === 0 && !follows) {
    const others = bookNames(await find()).filter((name) => bookKindOf(name) === bookKindOf(book));
    io.err(`mco book: there is no book "${book}"${others.length === 0 ? "" : `; there are ${listText(others, 20)}`}\n`);
    return exitCodes.failed;
  }
  if (chapter !== undefined && !read.chapters.some(({ number }) => number === chapter)) {
    const numbers = read.chapters.map(({ number }) => number);
    io.err(
      `mco book: ${book} has no chapter ${chapter}${chapter <= read.prunedThrough ? ": it is no longer kept" : numbers.length === 0 ? "" : `; there are ${numbers.join(", ")}`}\n`,
    );
    return exitCodes.failed;
  }
  const chapters = chapter === undefined ? read.chapters : read.chapters.filter(({ number }) => number === chapter);
  if (json) io.out(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Book", ...read, chapters })}\n`);
  else
    io.out(
      bookText(read, {
        now,
        colours: io.colours ?? false,
        ...(io.screen === undefined ? {} : { width: io.screen.columns }),
        ...(chapter === undefined ? {} : { chapter }),
      }),
    );
  return exitCodes.ok;
}

/** Prints lines as they reach the journals, each once, until `signal` aborts. */
export async function followBook(
  kube: KubeClient,
  io: Io,
  book: string,
  {
    json = false,
    started = () => undefined,
  }: { readonly json?: boolean; /** Called once: every later line is printed. */ readonly started?: () => void },
  signal: AbortSignal,
): Promise<void> {
  const selections: readonly Selection[] = journalsOf(book).map((name) => ({ fieldSelector: `metadata.name=${name}` }));
  const seen = new Set<string>();
  const caches = selections.map(
    (selection) =>
      new WatchCache({
        kube,
        resource: MachineStateJournal,
        selection,
        clock: systemClock,
        random: systemRandom,
        log: silentLogger,
        optional: true,
      }),
  );
  const print = (lines: readonly JournalLine[]) => {
    for (const line of lines) io.out(json ? `${JSON.stringify(line)}\n` : `${lineText(line)}\n`);
  };
  const running = Promise.all(caches.map((cache) => cache.run(signal)));
  // Existing lines were already shown.
  await Promise.race([Promise.all(caches.map((cache) => cache.synced)), running]);
  const fresh = (journal: MachineStateJournal | undefined) =>
    (journal === undefined ? [] : admittedLines(journal).lines).filter((line) => {
      if (line.book !== book || seen.has(lineKey(line))) return false;
      seen.add(lineKey(line));
      return true;
    });
  for (const cache of caches) {
    for (const journal of cache.list()) fresh(journal);
    cache.onChange(({ after }) => print(fresh(after)));
  }
  started();
  await running;
}
