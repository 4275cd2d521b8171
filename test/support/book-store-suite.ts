import { expect, test } from "vitest";
import type { Chapter } from "../../src/api/books/machine-state-chapter.ts";
import type { BookIndex, BookStore, StoreChange } from "../../src/state/book-store.ts";

export const index = (book: string, more: Partial<BookIndex> = {}): BookIndex => ({
  book,
  kind: (book.includes("/") ? book.split("/")[0] : "cluster") as BookIndex["kind"],
  subject: { kind: "Node", name: book.split("/")[1] ?? "cluster" },
  chapters: [],
  counters: {},
  health: "Idle",
  lastNumber: 0,
  prunedThrough: 0,
  through: [],
  ...more,
});

export const chapter = (book: string, number: number, more: Partial<Chapter> = {}): Chapter => ({
  book,
  number,
  chapter: "Update",
  run: `rendered-${number}`,
  startedAt: "2030-01-01T00:00:00Z",
  endedAt: "2030-01-01T00:05:00Z",
  state: "Closed",
  outcome: "Succeeded",
  confidence: "Told",
  sections: [{ path: "Prepared", startedAt: "2030-01-01T00:00:00Z", attempts: 1 }],
  entries: [],
  dropped: 0,
  through: [{ component: "daemon", instance: "a", boot: "b", seq: number }],
  ...more,
});

const open = (book: string, number: number, more: Partial<Chapter> = {}): Chapter => {
  const { endedAt: _, outcome: __, ...rest } = chapter(book, number, more);
  return { ...rest, state: "Open" };
};

/** What every driver of a book store does. */
export function bookStoreSuite(make: () => Promise<BookStore>): void {
  const withBooks = async (...books: readonly string[]) => {
    const store = await make();
    await store.append(books.map((book) => ({ write: "index", index: index(book) })));
    return store;
  };
  const put = (store: BookStore, ...chapters: readonly Chapter[]) =>
    store.append(chapters.map((each) => ({ write: "chapter", chapter: each })));

  test("gives back what was stored, by book, number, kind, chapter and state", async () => {
    const store = await withBooks("node/a", "node/b", "pool/worker", "cluster");
    const all = [
      chapter("cluster", 1, { chapter: "Install" }),
      chapter("node/a", 1),
      open("node/a", 2),
      chapter("node/b", 1, { chapter: "Drift" }),
      chapter("pool/worker", 1, { chapter: "Rollout" }),
    ];
    await put(store, ...all.toReversed());
    expect(await store.list({})).toEqual(all);
    expect(await store.get("node/a", 2)).toEqual(all[2]);
    expect(await store.get("node/a", 3)).toBeUndefined();
    expect(await store.get("node/c", 1)).toBeUndefined();
    const found = async (filter: Parameters<BookStore["list"]>[0]) =>
      (await store.list(filter)).map(({ book, number }) => `${book} ${number}`);
    expect(await found({ kind: "node" })).toEqual(["node/a 1", "node/a 2", "node/b 1"]);
    expect(await found({ book: "node/a" })).toEqual(["node/a 1", "node/a 2"]);
    expect(await found({ state: "Open" })).toEqual(["node/a 2"]);
    expect(await found({ chapter: "Drift" })).toEqual(["node/b 1"]);
    expect(await found({ book: "cluster", chapter: "Update" })).toEqual([]);
    expect((await store.books()).map(({ book }) => book)).toEqual(["cluster", "node/a", "node/b", "pool/worker"]);
    expect(await store.books("pool")).toEqual([index("pool/worker")]);
  });

  test("takes the same chapter any number of times, and changes an open chapter until it is closed", async () => {
    const store = await withBooks("node/a");
    await put(store, open("node/a", 1), open("node/a", 1));
    await put(store, chapter("node/a", 1), chapter("node/a", 1));
    expect(await store.list({})).toEqual([chapter("node/a", 1)]);
    await store.append([{ write: "index", index: index("node/a", { lastNumber: 1, counters: { chapters: 1 } }) }]);
    expect(await store.books()).toEqual([index("node/a", { lastNumber: 1, counters: { chapters: 1 } })]);
  });

  test("refuses to change a closed chapter or to replace an existing one, and stores what came before", async () => {
    const store = await withBooks("node/a");
    await put(store, chapter("node/a", 1), open("node/a", 2));
    for (const other of [
      chapter("node/a", 1, { outcome: "Failed" }),
      open("node/a", 1),
      chapter("node/a", 2, { run: "another" }),
    ]) {
      await expect(put(store, chapter("node/a", 3), other)).rejects.toMatchObject({ code: "MCO_CHAPTER_CLOSED" });
    }
    expect(await store.list({})).toEqual([chapter("node/a", 1), open("node/a", 2), chapter("node/a", 3)]);
  });

  test.for(["-", "-worker", "a pool", "x".repeat(64)])(
    "stores a chapter whose pool is called %j, which no label can hold [book-store-1]",
    async (pool) => {
      const store = await make();
      await store.append([
        { write: "index", index: index("cluster") },
        { write: "chapter", chapter: chapter("cluster", 1, { pool }) },
      ]);
      expect((await store.list({ book: "cluster" })).map((each) => each.pool)).toEqual([pool]);
    },
  );

  test("deletes chapters and whole books, once or twice", async () => {
    const store = await withBooks("node/a", "node/b");
    await put(store, chapter("node/a", 1), chapter("node/a", 2), chapter("node/b", 1));
    await store.prune("node/a", [1, 7]);
    await store.prune("node/a", [1]);
    expect((await store.list({})).map(({ book, number }) => [book, number])).toEqual([
      ["node/a", 2],
      ["node/b", 1],
    ]);
    await store.prune("node/b", "all");
    await store.prune("node/b", "all");
    expect((await store.books()).map(({ book }) => book)).toEqual(["node/a"]);
    expect((await store.list({})).map(({ book }) => book)).toEqual(["node/a"]);
  });

  test("a watch reports what is written and deleted from then on, within its selection", async () => {
    const store = await withBooks("node/a", "node/b");
    await put(store, chapter("node/a", 1));
    const stop = new AbortController();
    const seen: StoreChange[] = [];
    const follow = (async () => {
      for await (const change of store.watch({ book: "node/a" }, stop.signal)) {
        seen.push(change);
        if (seen.length === 3) return;
      }
    })();
    // A watch on the API server sends its first list some time after the request.
    while (seen.length === 0) {
      await put(store, open("node/a", 2, { message: `${Math.random()}` }));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const last = seen.length;
    await put(store, chapter("node/b", 1), chapter("node/a", 2));
    await store.prune("node/a", [1]);
    await Promise.race([
      follow,
      new Promise((_, reject) => setTimeout(() => reject(new Error(`only ${JSON.stringify(seen)}`)), 10_000).unref()),
    ]);
    stop.abort();
    expect(seen.every((change) => (change.is === "written" ? change.chapter.book : change.book) === "node/a")).toBe(
      true,
    );
    if (last === 1)
      expect(seen.slice(1)).toEqual([
        { is: "written", chapter: chapter("node/a", 2) },
        { is: "pruned", book: "node/a", number: 1 },
      ]);
  });

  test("counts its chapters and their bytes by kind and state", async () => {
    const store = await withBooks("node/a", "pool/worker");
    await put(store, chapter("node/a", 1), chapter("node/a", 2), open("node/a", 3), chapter("pool/worker", 1));
    const stats = await store.stats();
    expect(stats.map(({ kind, state, chapters }) => [kind, state, chapters])).toEqual([
      ["node", "Closed", 2],
      ["node", "Open", 1],
      ["pool", "Closed", 1],
    ]);
    for (const { bytes, chapters } of stats) expect(bytes / chapters).toBeGreaterThan(200);
  });
}
