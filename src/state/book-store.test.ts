import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Chapter } from "../api/books/machine-state-chapter.ts";
import { memoryStore } from "../standin/apiserver/storage/memory-store.ts";
import { createApiServer } from "../standin/apiserver/server.ts";
import { definedResources, kubernetes } from "../api/index.ts";
import { createKubeClient } from "../kube/kube-client.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemClock, systemFiles, systemRandom } from "../ports/node/index.ts";
import type { BookIndex, BookStore } from "./book-store.ts";
import { FileBookStore } from "./file-book-store.ts";
import { KubernetesBookStore } from "./kubernetes-book-store.ts";
import { MemoryBookStore } from "./memory-book-store.ts";
import { bookStoreSuite, chapter, index } from "../../test/support/book-store-suite.ts";

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "mco-books-"));
  ends.push(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

async function onEmbedded(): Promise<BookStore> {
  const server = createApiServer({ store: memoryStore(), clock: systemClock, random: systemRandom, log: silentLogger });
  ends.push(() => server.close());
  const kube = createKubeClient({
    transport: server.as({ name: "admin", groups: ["system:masters"] }),
    clock: systemClock,
    random: systemRandom,
    userAgent: "test",
  });
  for (const resource of definedResources)
    await kube.apply(kubernetes.CustomResourceDefinition, resource.crd(), { owner: "test" });
  return new KubernetesBookStore(kube);
}

describe.each([
  { driver: "memory", open: () => Promise.resolve<BookStore>(new MemoryBookStore()) },
  { driver: "files", open: (): Promise<BookStore> => FileBookStore.open(systemFiles, folder()) },
  { driver: "kubernetes", open: onEmbedded },
])("books kept by the driver $driver", ({ open }) => bookStoreSuite(open));

describe("books in a folder", () => {
  const everything = async (store: BookStore): Promise<readonly (Chapter | BookIndex)[]> => [
    ...(await store.books()),
    ...(await store.list({})),
  ];

  test("survive a restart, and a truncated line damages no later one", async () => {
    const path = folder();
    const store = await FileBookStore.open(systemFiles, path);
    await store.append([
      { write: "index", index: index("node/a") },
      { write: "chapter", chapter: chapter("node/a", 1) },
      { write: "chapter", chapter: chapter("node/a", 2) },
    ]);
    await store.prune("node/a", [1]);
    expect(await everything(await FileBookStore.open(systemFiles, path))).toEqual(await everything(store));
    const segment = join(path, "books-000001.jsonl");
    writeFileSync(segment, `${readFileSync(segment, "utf8")}{"write":"chapter","chapter":{"book":"node/a","num`);
    const after = await FileBookStore.open(systemFiles, path);
    expect(await everything(after)).toEqual(await everything(store));
    await after.append([{ write: "chapter", chapter: chapter("node/a", 3) }]);
    expect((await (await FileBookStore.open(systemFiles, path)).list({})).map(({ number }) => number)).toEqual([2, 3]);
  });

  test("do not grow forever, and are complete with or without the index", async () => {
    const path = folder();
    const store = await FileBookStore.open(systemFiles, path);
    const long = "x".repeat(1000);
    for (let number = 1; number <= 400; number += 1) {
      const entries = Array.from(
        { length: 25 },
        () =>
          ({
            at: 0,
            mono: 0,
            boot: "b",
            seq: number,
            writer: { component: "daemon", instance: "a" },
            path: "Prepared",
            mark: "note",
            level: "boundary",
            reason: "Planned",
            msg: long,
            via: "told",
          }) as const,
      );
      await store.append([{ write: "chapter", chapter: { ...chapter("node/a", number), entries } }]);
      if (number > 5) await store.prune("node/a", [number - 5]);
    }
    const kept = await everything(store);
    const bytes = readdirSync(path).reduce((sum, name) => sum + readFileSync(join(path, name)).length, 0);
    // All that was ever written is 10 MiB.
    expect(bytes).toBeLessThan(9.5 * 1024 * 1024);
    expect(await everything(await FileBookStore.open(systemFiles, path))).toEqual(kept);
    rmSync(join(path, "index.json"));
    expect(await everything(await FileBookStore.open(systemFiles, path))).toEqual(kept);
  });
});
