import { join } from "node:path";
import { MachineStateBook, MachineStateChapter, MachineStateJournal } from "../api/index.ts";
import type { JournalLine } from "../api/books/journal-line.ts";
import { bookLabels, journals as journalNames } from "../api/names.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import { bookLabelOf, bookObjectName } from "../core/books/book-keeper.ts";
import { journalOfNode } from "../core/books/journal.ts";
import type { StoredBooks } from "../core/books/read-book.ts";
import type { KubeClient, Selection } from "../kube/kube-client.ts";
import { isForbidden, isNotFound } from "../kube/kube-error.ts";
import type { Files } from "../ports/files.ts";
import { absentError } from "./arguments.ts";

/** Journals of everybody but the machines. */
const components = [
  journalNames.operator,
  journalNames.controller,
  journalNames.server,
  journalNames.osBuilder,
  journalNames.bootstrap,
];

/** Names of the journals that may have lines of a book: those of the components, and of a machine its own. */
export const journalsOf = (book: string): readonly string[] => [
  ...(book.startsWith("node/") ? [journalOfNode(book.slice("node/".length))] : []),
  ...components,
];

/** Chapters of one book. */
export const chaptersSelection = (book: string): Selection => ({
  labelSelector: `${bookLabels.book}=${bookLabelOf(book)}`,
});

/** The objects of a kind; none if the kind is not installed, or the user may not read it. */
async function listed<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  selection: Selection = {},
): Promise<readonly T[]> {
  try {
    return (await kube.list(resource, selection)).items;
  } catch (error) {
    if (isNotFound(error) || isForbidden(error)) return [];
    throw error;
  }
}

/**
 * The stored and reported lines of one book, or, without a name, of all. It reads the API only, so it works even if no
 * process keeps books.
 */
export async function readStoredBooks(kube: KubeClient, book?: string): Promise<StoredBooks> {
  const one = async <T extends KubeObject>(resource: Resource<T>, name: string): Promise<readonly T[]> => {
    try {
      const found = await kube.get(resource, { name });
      return found === undefined ? [] : [found];
    } catch (error) {
      if (isNotFound(error) || isForbidden(error)) return [];
      throw error;
    }
  };
  const [books, chapters, journals] = await Promise.all([
    book === undefined ? listed(kube, MachineStateBook) : one(MachineStateBook, bookObjectName(book)),
    listed(kube, MachineStateChapter, book === undefined ? {} : chaptersSelection(book)),
    book === undefined
      ? listed(kube, MachineStateJournal)
      : Promise.all(journalsOf(book).map((name) => one(MachineStateJournal, name))).then((found) => found.flat()),
  ]);
  return { books, chapters, journals };
}

/**
 * The content of a folder of journal lines, `*.jsonl`, as machines and bootstrap runs write them. Incomplete lines are
 * ignored.
 */
export async function readFolder(files: Pick<Files, "list" | "readText">, folder: string): Promise<StoredBooks> {
  const names = (await files.list(folder)).filter((name) => name.endsWith(".jsonl")).sort();
  if (names.length === 0)
    throw absentError(`${folder} holds no journal: there is no such folder, or none of its files ends with .jsonl`);
  const texts = await Promise.all(names.map((name) => files.readText(join(folder, name))));
  const lines = texts.flatMap((text) => (text ?? "").split("\n").flatMap(lineIn));
  return { books: [], chapters: [], journals: [{ metadata: { name: "files" }, spec: { lines, last: [] } }] };
}

function lineIn(text: string): readonly JournalLine[] {
  try {
    const line = JSON.parse(text) as Partial<JournalLine> | null;
    return line?.v === 1 &&
      typeof line.book === "string" &&
      typeof line.boot === "string" &&
      typeof line.seq === "number" &&
      typeof line.at === "number" &&
      line.writer !== undefined
      ? [line as JournalLine]
      : [];
  } catch {
    return [];
  }
}

/** The finished updates of this many machines estimate a duration as well as those of all do. */
const sampledMachines = 50;

/** The history that explaining one pool needs: its own book, and the finished updates of some of its machines. */
export async function readPast(
  kube: KubeClient,
  pool: string,
  machines: readonly string[],
): Promise<{ readonly own: StoredBooks; readonly updates: readonly MachineStateChapter[] }> {
  const every = Math.max(1, Math.ceil(machines.length / sampledMachines));
  const values = machines.flatMap((name, index) => (index % every === 0 ? [bookLabelOf(`node/${name}`)] : []));
  const [own, updates] = await Promise.all([
    readStoredBooks(kube, `pool/${pool}`),
    values.length === 0
      ? []
      : listed(kube, MachineStateChapter, {
          labelSelector: `${bookLabels.chapter}=Update,${bookLabels.book} in (${values.join(",")})`,
        }),
  ]);
  return { own, updates };
}
