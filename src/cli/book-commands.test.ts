import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { LineWriter, morning, reportedUpdate } from "../../test/support/line-writer.ts";
import {
  MachineConfig,
  MachineConfigPool,
  MachineStateBook,
  MachineStateChapter,
  MachineStateJournal,
  definedResources,
  kubernetes,
} from "../api/index.ts";
import { annotations, bookLabels, journals as journalNames, labels } from "../api/names.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import { bookObjectName, chapterObjectName } from "../core/books/book-keeper.ts";
import { foldBook } from "../core/books/fold-book.ts";
import { appendLines } from "../core/books/journal.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { systemClock, systemFiles } from "../ports/node/index.ts";
import { followBook, listBooks, run as runBook, showBook } from "./commands/book.ts";
import { explainSubjects, subjectOf } from "./commands/explain.ts";
import { durationOf } from "./arguments.ts";
import { run as runTimeline, showTimeline } from "./commands/timeline.ts";
import type { Io } from "./io.ts";
import { readFolder, readStoredBooks } from "./read-stored-books.ts";
import { serverWithAdmin } from "../../test/support/server-with-admin.ts";

const rendered = `rendered-worker-${"b".repeat(32)}`;
const book = "node/worker-0";
const now = morning + 1_200_000;
const told = reportedUpdate({ run: rendered });
function drift(): LineWriter {
  const drifting = new LineWriter("daemon", "worker-0", "boot-3");
  drifting.at(900, {
    book,
    chapter: "Drift",
    path: "Detected",
    mark: "begin",
    reason: "ConfigDrift",
    message: "/etc/chrony.conf was changed",
  });
  return drifting;
}

async function cluster(...objects: readonly KubeObject[]): Promise<KubeClient> {
  const { kube } = serverWithAdmin();
  for (const resource of definedResources)
    await kube.create(kubernetes.CustomResourceDefinition, resource.crd() as never);
  for (const object of objects) await kube.create(resourceOf(object), object);
  return kube;
}

const on = (kube: KubeClient) => (book_?: string) => readStoredBooks(kube, book_);
const resourceOf = (object: KubeObject): Resource<KubeObject> =>
  (object.kind === "Node"
    ? kubernetes.Node
    : definedResources.find(({ kind }) => kind === object.kind)) as unknown as Resource<KubeObject>;

function io(screen?: Io["screen"]): Io & { readonly text: () => string; readonly complaints: () => string } {
  const said: string[] = [];
  const complained: string[] = [];
  return {
    out: (text) => said.push(text),
    err: (text) => complained.push(text),
    screen,
    text: () => said.join(""),
    complaints: () => complained.join(""),
  };
}

const journal = (name: string, lines: Parameters<typeof appendLines>[1]) =>
  ({
    apiVersion: MachineStateJournal.apiVersion,
    kind: "MachineStateJournal",
    metadata: { name },
    spec: appendLines(undefined, lines)?.spec ?? { lines: [], last: [] },
  }) as KubeObject;
const worker = {
  apiVersion: "v1",
  kind: "Node",
  metadata: {
    name: "worker-0",
    labels: { "node-role.kubernetes.io/worker": "" },
    annotations: {
      [annotations.currentConfig]: rendered,
      [annotations.desiredConfig]: rendered,
      [annotations.state]: "Done",
    },
  },
  status: { conditions: [{ type: "Ready", status: "True" }] },
} as unknown as KubeObject;
const pool = {
  apiVersion: MachineConfigPool.apiVersion,
  kind: "MachineConfigPool",
  metadata: { name: "worker" },
  spec: {
    machineConfigSelector: { matchLabels: { [labels.role]: "worker" } },
    nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } },
    configuration: { name: rendered },
  },
} as unknown as KubeObject;
const config = {
  apiVersion: MachineConfig.apiVersion,
  kind: "MachineConfig",
  metadata: { name: "99-worker-ssh" },
  spec: {},
} as unknown as KubeObject;
const journals = (drifting: LineWriter) => [
  journal("node-worker-0", [...told.daemon.lines, ...drifting.lines]),
  journal("controller", told.controller.lines),
];

/** What the state process would have written of the update, and nothing of the drift. */
function kept(): readonly KubeObject[] {
  const [record] = foldBook(book, told.lines, { now: systemClock.now() });
  if (record === undefined) throw new Error("no chapter");
  const of = { [bookLabels.kind]: "node", [bookLabels.book]: bookObjectName(book) };
  return [
    {
      apiVersion: MachineStateBook.apiVersion,
      kind: "MachineStateBook",
      metadata: { name: bookObjectName(book), labels: of },
      spec: {
        book,
        kind: "node",
        subject: { kind: "Node", name: "worker-0" },
        chapters: [],
        counters: { chapters: 7 },
        health: "Idle",
        lastNumber: 7,
        prunedThrough: 6,
        through: [],
      },
    } as KubeObject,
    {
      apiVersion: MachineStateChapter.apiVersion,
      kind: "MachineStateChapter",
      metadata: {
        name: chapterObjectName(book, 7),
        labels: {
          ...of,
          [bookLabels.chapter]: "Update",
          [bookLabels.outcome]: "Succeeded",
          [bookLabels.pool]: "worker",
          [bookLabels.state]: "Closed",
        },
      },
      spec: { ...record, number: 7 },
    } as KubeObject,
  ];
}

describe.for([
  { title: "with books kept", keeps: true, number: 7 },
  { title: "with nothing but journals", keeps: false, number: 1 },
])("$title", ({ keeps, number }) => {
  let kube: KubeClient;
  const drifting = drift();
  beforeAll(async () => {
    kube = await cluster(worker, pool, config, ...journals(drifting), ...(keeps ? kept() : []));
  });

  test("mco book reads a node's chapters, and what the journals hold beyond them [cli-book-commands-1]", async () => {
    const print = io();
    expect(await showBook(on(kube), print, book, { now })).toBe(0);
    expect(print.text()).toContain(`#${number} Update  2026-01-02 10:00:00Z to 10:02:04Z, 2m04s: Succeeded`);
    expect(print.text()).toContain("PodsBlocked: default/web-1 is held by the budget default/web");
    expect(print.text()).toContain(`#${number + 1} Drift  since 2026-01-02 10:15:00Z, 5m00s so far: under way`);
    expect(print.text()).toContain("What to do: Undo the change on the machine");
  });

  test("mco book --json gives the chapters as they are kept, each with its sections [cli-book-commands-2]", async () => {
    const print = io();
    expect(await showBook(on(kube), print, book, { json: true, chapter: number })).toBe(0);
    const read = JSON.parse(print.text()) as {
      apiVersion: string;
      kind: string;
      chapters: { kept: boolean; outcome: string; sections: { startedAt: string; endedAt: string }[] }[];
    };
    expect(read).toMatchObject({
      apiVersion: "cli.mco/v1",
      kind: "Book",
      chapters: [{ kept: keeps, outcome: "Succeeded" }],
    });
    expect(read.chapters[0]?.sections.length).toBeGreaterThanOrEqual(6);
    for (const { startedAt, endedAt } of read.chapters[0]?.sections ?? [])
      expect(Date.parse(startedAt)).toBeLessThanOrEqual(Date.parse(endedAt));
  });

  test("mco book without a name lists the books, and one that is not there is answered with those that are [cli-book-commands-3]", async () => {
    const print = io();
    expect(await listBooks(on(kube), print, { json: false, now })).toBe(0);
    // As the book itself says: the index of the kept one still calls it idle.
    expect(print.text()).toBe(`node/worker-0  2 chapters, Drift${keeps ? "" : ", only in journals"}\n`);
    expect(await showBook(on(kube), print, "node/worker-9", {})).toBe(1);
    expect(print.complaints()).toBe('mco book: there is no book "node/worker-9"; there are node/worker-0\n');
  });

  test("mco book says of a chapter that is not there which there are, or that it is no longer kept [cli-book-commands-4]", async () => {
    const print = io();
    expect(await showBook(on(kube), print, book, { chapter: 99 })).toBe(1);
    expect(print.complaints()).toContain(`has no chapter 99; there are ${number}, ${number + 1}`);
    if (!keeps) return;
    expect(await showBook(on(kube), print, book, { chapter: 3 })).toBe(1);
    expect(print.complaints()).toContain("has no chapter 3: it is no longer kept");
  });

  test("mco book --follow prints each new line once [cli-book-commands-5]", async () => {
    const ending = new AbortController();
    const lines: string[] = [];
    const follows = Promise.withResolvers<undefined>();
    const heard = Promise.withResolvers<undefined>();
    const print: Io = {
      ...io(),
      out: (text) => {
        lines.push(text);
        if (lines.length === 2) heard.resolve(undefined);
      },
    };
    const following = followBook(kube, print, book, { started: () => follows.resolve(undefined) }, ending.signal);
    await follows.promise;
    for (const seconds of [1000, 1001]) {
      drifting.at(seconds, {
        book,
        chapter: "Drift",
        path: "Detected",
        mark: "note",
        reason: "ConfigDrift",
        message: `still there at ${seconds}`,
      });
      const found = await kube.get(MachineStateJournal, { name: "node-worker-0" });
      const append = appendLines(found?.spec, drifting.lines);
      await kube.patch(
        MachineStateJournal,
        { name: "node-worker-0" },
        { type: "json", operations: append?.operations ?? [] },
      );
    }
    await heard.promise;
    ending.abort();
    await following.catch(() => undefined);
    expect(lines).toEqual([
      "2026-01-02 10:16:40Z  node/worker-0  Drift Detected  ConfigDrift: still there at 1000\n",
      "2026-01-02 10:16:41Z  node/worker-0  Drift Detected  ConfigDrift: still there at 1001\n",
    ]);
  });

  test("mco timeline draws a pool, a row for each machine, and a node, a row for each step [cli-book-commands-6]", async () => {
    const print = io({ columns: 100, rows: 40 });
    expect(await showTimeline(kube, print, "pool/worker", { now })).toBe(0);
    expect(print.text()).toMatch(/^worker-0 .*d+.*!+ {2}Drift, under way$/m);
    expect(await showTimeline(kube, print, book, { now })).toBe(0);
    expect(print.text()).toMatch(/^ {2}PostAction\/Rebooted +R+ +56s$/m);
    expect(await showTimeline(kube, print, "pool/other", {})).toBe(1);
    expect(print.complaints()).toBe("mco timeline: there is no pool/other; there are pool/worker\n");
  });

  test("mco explain knows what was before [cli-book-commands-7]", async () => {
    const print = io();
    expect(await explainSubjects(kube, print, [subjectOf(book), subjectOf("pool/worker")], {})).toBe(0);
    expect(print.text()).toContain(`Before:\n  #${number} Update`);
    expect(print.text()).toContain(`The one machine of pool worker has ${rendered}.`);
  });
});

test("mco explain reads from the config server's journal which machines started from old boot images [cli-book-commands-20]", async () => {
  const server = new LineWriter("server", "machine-config-server-x", "pod-1");
  for (const [seconds, requester, pool_, ignition] of [
    [0, "10.0.0.7", "worker", "2.9"],
    [1, "10.0.0.8", "worker", "2.20"],
    [2, "10.0.0.9", "infra", "2.9"],
  ] as const)
    server.at(seconds, {
      book: "cluster",
      chapter: "Server",
      path: `Served/${pool_}`,
      mark: "note",
      reason: "Served",
      message: "served",
      data: { requester, config: rendered, ignition },
    });
  const kube = await cluster(worker, pool, journal(journalNames.server, server.lines));
  const text = async (clock: { readonly now: () => number }) => {
    const print = io();
    expect(await explainSubjects(kube, print, [subjectOf("pool/worker")], { clock })).toBe(0);
    return print.text();
  };
  expect(await text({ now: () => now })).toContain("\n  Ignition 2.9: the machine 10.0.0.7\n");
  expect(await text({ now: () => now + 8 * 24 * 3_600_000 })).not.toContain("Ignition");
});

test("mco book --from reads the files that a machine or a bootstrap left, and passes over what a power cut left of a line", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mco-book-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const lines = told.lines.map((line) => JSON.stringify(line));
  writeFileSync(join(folder, "journal-boot-1.jsonl"), `${lines.slice(0, 9).join("\n")}\n`);
  writeFileSync(join(folder, "journal-boot-2.jsonl"), `${lines.slice(9).join("\n")}\n${lines[0]?.slice(0, 40) ?? ""}`);
  writeFileSync(join(folder, "notes.txt"), "not a line");
  const storedBooks = await readFolder(systemFiles, folder);
  const print = io();
  expect(await showBook(() => Promise.resolve(storedBooks), print, book, { now })).toBe(0);
  expect(print.text()).toContain("#1 Update  2026-01-02 10:00:00Z to 10:02:04Z, 2m04s: Succeeded");
});

test("an unknown book name yields the list of book names", async () => {
  for (const words of [
    ["worker-0"],
    ["planet/earth"],
    ["node/"],
    ["--follow"],
    ["node/a", "node/b"],
    ["node/a", "--chapter", "0"],
  ])
    await expect(runBook(words)).rejects.toMatchObject({ code: "MCO_USAGE" });
  for (const words of [[], ["planet/earth"], ["pool/worker", "--since", "soon"], ["pool/a", "pool/b"]])
    await expect(runTimeline(words)).rejects.toMatchObject({ code: "MCO_USAGE" });
});

test("times are written as people write them", () => {
  expect(["90m", "2h", "1d12h", "30s"].map((text) => durationOf(text, "--since"))).toEqual([
    5_400_000, 7_200_000, 129_600_000, 30_000,
  ]);
});

test("a server that has none of the kinds has no books", async () => {
  const { kube } = serverWithAdmin();
  const print = io();
  expect(await listBooks(on(kube), print, { json: false })).toBe(0);
  expect(print.text()).toContain("There is no book yet");
});
