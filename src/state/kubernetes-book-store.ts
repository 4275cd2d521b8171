import { type Chapter, MachineStateChapter } from "../api/books/machine-state-chapter.ts";
import { MachineStateBook } from "../api/books/machine-state-book.ts";
import { bookLabels, fieldManagers } from "../api/names.ts";
import type { BookKind } from "../api/books/report-table.ts";
import { bookLabelOf, bookObjectName, chapterObjectName } from "../core/books/book-keeper.ts";
import { jsonBytes } from "../core/books/journal.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { isExpired, isInvalid } from "../kube/kube-error.ts";
import {
  type BookEntry,
  type BookIndex,
  type BookStore,
  type ChapterFilter,
  type StoreChange,
  byPlace,
  chapterClosed,
  countChapters,
  isFixed,
  matchesFilter,
} from "./book-store.ts";

const owner = fieldManagers.books;
/**
 * A value that a label may have. A writer may report any pool, and a label that the API server refuses keeps the whole
 * chapter out.
 */
const labelValue = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** Books as objects of the API server: one for each book, one for each chapter, which goes with its book. */
export class KubernetesBookStore implements BookStore {
  readonly #kube: KubeClient;
  /** Uids of books, which own their chapters. */
  readonly #uids = new Map<string, string>();

  constructor(kube: KubeClient) {
    this.#kube = kube;
  }

  async append(entries: readonly BookEntry[], signal?: AbortSignal): Promise<void> {
    for (const entry of entries) {
      if (entry.write === "index") await this.#writeIndex(entry.index, signal);
      else await this.#writeChapter(entry.chapter, signal);
    }
  }

  async #writeIndex(index: BookIndex, signal: AbortSignal | undefined): Promise<void> {
    const name = bookObjectName(index.book);
    const made = await this.#kube.apply(
      MachineStateBook,
      { metadata: { name, labels: { [bookLabels.kind]: index.kind } }, spec: index },
      { owner, signal },
    );
    this.#uids.set(index.book, made.metadata.uid ?? "");
  }

  async #writeChapter(chapter: Chapter, signal: AbortSignal | undefined): Promise<void> {
    const { book, number } = chapter;
    const uid =
      this.#uids.get(book) ??
      (await this.#kube.get(MachineStateBook, { name: bookObjectName(book) }, { signal }))?.metadata.uid;
    if (uid !== undefined) this.#uids.set(book, uid);
    const labels = {
      [bookLabels.kind]: kindOf(book),
      [bookLabels.book]: bookLabelOf(book),
      [bookLabels.chapter]: chapter.chapter,
      [bookLabels.state]: chapter.state,
      ...(chapter.outcome === undefined ? {} : { [bookLabels.outcome]: chapter.outcome }),
      ...(chapter.pool !== undefined && labelValue.test(chapter.pool) ? { [bookLabels.pool]: chapter.pool } : {}),
    };
    const ownerReferences =
      uid === undefined
        ? []
        : [{ apiVersion: MachineStateBook.apiVersion, kind: MachineStateBook.kind, name: bookObjectName(book), uid }];
    try {
      await this.#kube.apply(
        MachineStateChapter,
        { metadata: { name: chapterObjectName(book, number), labels, ownerReferences }, spec: chapter },
        { owner, signal },
      );
    } catch (error) {
      // The kind's own validation rules refuse changes of fixed chapters: src/api/books/machine-state-chapter.ts.
      const before = isInvalid(error) ? await this.get(book, number, signal) : undefined;
      if (before !== undefined && isFixed(before, chapter)) throw chapterClosed(chapter, error);
      throw error;
    }
  }

  async get(book: string, number: number, signal?: AbortSignal): Promise<Chapter | undefined> {
    return (await this.#kube.get(MachineStateChapter, { name: chapterObjectName(book, number) }, { signal }))?.spec;
  }

  async list(filter: ChapterFilter, signal?: AbortSignal): Promise<readonly Chapter[]> {
    const { items } = await this.#kube.list(MachineStateChapter, selecting(filter), { signal });
    return items
      .map(({ spec }) => spec)
      .filter((chapter) => matchesFilter(chapter, filter))
      .sort(byPlace);
  }

  async books(kind?: BookKind, signal?: AbortSignal): Promise<readonly BookIndex[]> {
    const { items } = await this.#kube.list(
      MachineStateBook,
      kind === undefined ? {} : { labelSelector: `${bookLabels.kind}=${kind}` },
      { signal },
    );
    for (const { metadata, spec } of items) this.#uids.set(spec.book, metadata.uid ?? "");
    return items.map(({ spec }) => spec).sort((a, b) => (a.book < b.book ? -1 : 1));
  }

  async *watch(filter: ChapterFilter, signal: AbortSignal): AsyncIterable<StoreChange> {
    let from: string | undefined;
    while (!signal.aborted) {
      try {
        from ??= (
          await this.#kube.list(
            MachineStateChapter,
            { ...selecting(filter), fieldSelector: "metadata.name=." },
            { signal },
          )
        ).resourceVersion;
        for await (const event of this.#kube.watch(
          MachineStateChapter,
          selecting(filter),
          { resourceVersion: from, timeoutSeconds: 3000 },
          signal,
        )) {
          from = event.object.metadata.resourceVersion ?? from;
          if (event.type === "BOOKMARK") continue;
          const { spec } = event.object;
          if (!matchesFilter(spec, { ...filter, ...(event.type === "DELETED" ? { state: spec.state } : {}) })) continue;
          yield event.type === "DELETED"
            ? { is: "pruned", book: spec.book, number: spec.number }
            : { is: "written", chapter: spec };
        }
      } catch (error) {
        if (signal.aborted) return;
        if (!isExpired(error)) throw error;
        from = undefined;
      }
    }
  }

  async prune(book: string, numbers: readonly number[] | "all", signal?: AbortSignal): Promise<void> {
    const gone = numbers === "all" ? (await this.list({ book }, signal)).map(({ number }) => number) : numbers;
    for (const number of gone)
      await this.#kube.delete(
        MachineStateChapter,
        { name: chapterObjectName(book, number) },
        signal === undefined ? {} : { signal },
      );
    if (numbers !== "all") return;
    await this.#kube.delete(MachineStateBook, { name: bookObjectName(book) }, signal === undefined ? {} : { signal });
    this.#uids.delete(book);
  }

  async stats(signal?: AbortSignal): ReturnType<BookStore["stats"]> {
    const { items } = await this.#kube.list(MachineStateChapter, {}, { signal });
    return countChapters(items.map(({ spec }) => ({ chapter: spec, bytes: jsonBytes(spec) })));
  }
}

const kindOf = (book: string) => (book.includes("/") ? book.slice(0, book.indexOf("/")) : book);

function selecting({ kind, book, chapter, state }: ChapterFilter): { readonly labelSelector?: string } {
  const wants = [
    ...(kind === undefined ? [] : [`${bookLabels.kind}=${kind}`]),
    ...(book === undefined ? [] : [`${bookLabels.book}=${bookLabelOf(book)}`]),
    ...(chapter === undefined ? [] : [`${bookLabels.chapter}=${chapter}`]),
    ...(state === undefined ? [] : [`${bookLabels.state}=${state}`]),
  ];
  return wants.length === 0 ? {} : { labelSelector: wants.join(",") };
}
