import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  MachineConfigNode,
  MachineConfigPool,
  MachineConfiguration,
  MachineStateBook,
  MachineStateChapter,
  MachineStateJournal,
  definedResources,
  kubernetes,
} from "../../src/api/index.ts";
import type { JournalLine } from "../../src/api/books/journal-line.ts";
import { annotations, bookLabels, labels } from "../../src/api/names.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import { connectTo } from "../../src/cli/connect.ts";
import { showBook } from "../../src/cli/commands/book.ts";
import { explainSubjects, subjectOf } from "../../src/cli/commands/explain.ts";
import { showTimeline } from "../../src/cli/commands/timeline.ts";
import type { Io } from "../../src/cli/io.ts";
import { readStoredBooks } from "../../src/cli/read-stored-books.ts";
import {
  BookKeeper,
  bookLabelOf,
  bookObjectName,
  chapterObjectName,
  lateLinesMs,
} from "../../src/core/books/book-keeper.ts";
import { foldBook } from "../../src/core/books/fold-book.ts";
import { appendLines, jsonBytes } from "../../src/core/books/journal.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { LineWriter, morning, reportedUpdate } from "../../test/support/line-writer.ts";
import { testAuthority } from "../../test/support/test-pki.ts";
import { TestCluster } from "../../test/support/test-cluster.ts";
import { type Summary, ratePerSecond, summary } from "./statistics.ts";

export interface BookMetrics {
  readonly nodes: number;
  readonly chaptersPerNode: number;
  readonly linesPerUpdate: number;
  readonly foldsLinesPerSecond: number;
  /** The same lines read from their JSON text and nothing else. */
  readonly readsLinesPerSecond: number;
  /** Of all chapters, and of the largest, as JSON. */
  readonly chaptersMiB: number;
  readonly largestChapterKiB: number;
  /** Of an open book for each node, each with one update under way, on the heap. */
  readonly openBooksKiB: number;
  readonly writesPerUpdate: number;
  readonly idle: { readonly seconds: number; readonly machines: number; readonly writesPerMinute: number };
  readonly readersMs: {
    readonly book: Summary;
    readonly explain: Summary;
    readonly timeline: Summary;
    readonly baseline: Summary;
  };
}

interface Load {
  readonly nodes: number;
  readonly reads: number;
  readonly seconds: number;
  readonly idleSeconds: number;
}

const chaptersPerNode = 5;
const targetOf = (update: number) => `rendered-worker-${String(update).padStart(32, "0")}`;

/** Journal lines of one machine and the controller for five updates. */
function linesOfNode(index: number): readonly JournalLine[] {
  const name = `worker-${index}`;
  const [daemon, controller] = [
    new LineWriter("daemon", name),
    new LineWriter("controller", "machine-config-controller-x", `pod-${index}`),
  ];
  const lines = Array.from({ length: chaptersPerNode }, (_, update) => {
    const told = reportedUpdate({
      run: targetOf(update),
      startSeconds: update * 3600 + index,
      daemon,
      controller,
      boot: `boot-${update + 2}`,
    }).lines;
    return told.map((line) => ({ ...line, book: `node/${name}` }));
  });
  return lines.flat();
}

/** How often an update has its chapter written when its lines come one by one. */
function writesOf(lines: readonly JournalLine[]): number {
  const keeper = new BookKeeper("node/worker-0");
  let writes = 0;
  const look = (now: number) => {
    for (const change of keeper.dueWrites(now)) {
      keeper.written(change);
      writes += 1;
    }
  };
  for (const line of lines.toSorted((a, b) => a.at - b.at)) {
    keeper.take([line], line.at);
    look(line.at);
  }
  look(Math.max(...lines.map(({ at }) => at)) + lateLinesMs);
  return writes;
}

/** A collection of all garbage, so that what is counted is what is kept. */
const collect: () => void = (() => {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
})();

const silent: Io = { out: () => undefined, err: (text) => process.stderr.write(text), screen: undefined };

async function timed(times: number, work: () => Promise<unknown>): Promise<Summary> {
  const took: number[] = [];
  for (let turn = -2; turn < times; turn += 1) {
    const began = performance.now();
    await work();
    if (turn >= 0) took.push(performance.now() - began);
  }
  return summary(took);
}

/** A server of its own with the books of so many machines, and readers on it. */
async function readers(
  { nodes, reads }: Load,
  bookSections: readonly (readonly JournalLine[])[],
): Promise<BookMetrics["readersMs"]> {
  const folder = mkdtempSync(join(tmpdir(), "mco-bench-books-"));
  let child: ChildProcess | undefined;
  try {
    const authority = await testAuthority();
    const [server, admin] = await Promise.all([
      authority.server("127.0.0.1"),
      authority.client("admin", ["system:masters"]),
    ]);
    for (const [file, text] of [
      ["server.crt", server.certificate],
      ["server.key", server.key],
      ["ca.crt", authority.certificate],
      ["tokens.key", await authority.signingKey()],
    ] as const)
      writeFileSync(join(folder, file), text);
    const running = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, "serve.ts"), "apiserver", folder],
      { stdio: ["pipe", "pipe", "inherit"] },
    );
    child = running;
    const url = await new Promise<string>((resolve, reject) => {
      running.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString("utf8").trim()));
      running.once("exit", (code) => reject(new Error(`the API server ended with ${code}`)));
    });
    const { kube, close } = connectTo(
      { server: url, ca: authority.certificate, certificate: admin.certificate, key: admin.key },
      { component: "bench" },
    );
    try {
      await fill(kube, nodes, bookSections);
      const now = morning + 6 * 3_600_000;
      const book = await timed(reads, () =>
        showBook((book_) => readStoredBooks(kube, book_), silent, `node/worker-${Math.floor(nodes / 2)}`, { now }),
      );
      const explain = await timed(reads, () => explainSubjects(kube, silent, [subjectOf("pool/worker")], {}));
      const timeline = await timed(Math.max(3, Math.ceil(reads / 10)), () =>
        showTimeline(kube, silent, "pool/worker", { now }),
      );
      const baseline = await timed(reads, () => kube.list(kubernetes.Node));
      return { book, explain, timeline, baseline };
    } finally {
      close();
    }
  } finally {
    child?.stdin?.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fill(kube: KubeClient, nodes: number, bookSections: readonly (readonly JournalLine[])[]): Promise<void> {
  for (const resource of definedResources)
    await kube.create(kubernetes.CustomResourceDefinition, resource.crd() as never);
  const make = <T extends KubeObject>(resource: Resource<T>, object: object) =>
    kube.create(resource, { apiVersion: resource.apiVersion, kind: resource.kind, ...object } as T);
  await make(MachineConfigPool, {
    metadata: { name: "worker" },
    spec: {
      machineConfigSelector: { matchLabels: { [labels.role]: "worker" } },
      nodeSelector: { matchLabels: { [labels.workerRole]: "" } },
      configuration: { name: targetOf(chaptersPerNode) },
    },
  });
  const one = async (index: number) => {
    const name = `worker-${index}`;
    const [book, lines] = [`node/${name}`, bookSections[index] ?? []];
    const has = index % 2 === 0 ? targetOf(chaptersPerNode - 1) : targetOf(chaptersPerNode);
    const updated = await make(kubernetes.Node, {
      metadata: {
        name,
        labels: { [labels.workerRole]: "" },
        annotations: {
          [annotations.currentConfig]: has,
          [annotations.desiredConfig]: has,
          [annotations.state]: "Done",
        },
      },
    });
    await kube.replace(
      kubernetes.Node,
      {
        ...updated,
        apiVersion: "v1",
        kind: "Node",
        status: { conditions: [{ type: "Ready", status: "True" }] },
      } as typeof updated,
      { subresource: "status" },
    );
    await make(MachineStateJournal, {
      metadata: { name: `node-${name}` },
      spec: appendLines(
        undefined,
        lines.filter(({ writer }) => writer.component === "daemon"),
      )?.spec ?? { lines: [], last: [] },
    });
    const of = { [bookLabels.kind]: "node", [bookLabels.book]: bookLabelOf(book) };
    await make(MachineStateBook, {
      metadata: { name: bookObjectName(book), labels: of },
      spec: {
        book,
        kind: "node",
        subject: { kind: "Node", name },
        chapters: [],
        counters: {},
        health: "Idle",
        lastNumber: chaptersPerNode,
        prunedThrough: 0,
        through: [],
      },
    });
    const chapters = foldBook(book, lines, { now: morning + 6 * 3_600_000, pool: "worker" });
    for (const [place, chapter] of chapters.entries())
      await make(MachineStateChapter, {
        metadata: {
          name: chapterObjectName(book, place + 1),
          labels: {
            ...of,
            [bookLabels.chapter]: "Update",
            [bookLabels.state]: chapter.state,
            [bookLabels.pool]: "worker",
          },
        },
        spec: { number: place + 1, ...chapter },
      });
  };
  for (let from = 0; from < nodes; from += 16)
    await Promise.all(Array.from({ length: Math.min(16, nodes - from) }, (_, lane) => one(from + lane)));
}

/**
 * Objects of the suite that changed while nobody did anything, as writes a minute: leases and the kubelets' own reports
 * left out.
 */
async function idleWrites(seconds: number): Promise<BookMetrics["idle"]> {
  const shape = { controlPlane: 1, workers: 3 };
  const cluster = await TestCluster.start(shape);
  const kinds: readonly Resource<KubeObject>[] = [
    MachineStateBook,
    MachineStateChapter,
    MachineStateJournal,
    MachineConfigNode,
    MachineConfigPool,
    MachineConfiguration,
  ] as never;
  const versions = async () =>
    new Map(
      (await Promise.all(kinds.map((kind) => cluster.kube.list(kind)))).flatMap(({ items }) =>
        items.map(({ metadata }) => [metadata.uid ?? "", metadata.resourceVersion ?? ""] as const),
      ),
    );
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  try {
    // What the start left to write: journals of components are sent after ten seconds, chapters after fifteen.
    await pause(40_000);
    let writes = 0;
    let before = await versions();
    for (let second = 0; second < seconds; second += 5) {
      await pause(5000);
      const after = await versions();
      for (const [uid, version] of after) if (before.get(uid) !== version) writes += 1;
      before = after;
    }
    return {
      seconds,
      machines: shape.controlPlane + shape.workers,
      writesPerMinute: Math.round((writes * 600) / seconds) / 10,
    };
  } finally {
    await cluster.stop();
  }
}

export async function measureBooks(load: Load, tell: (line: string) => void): Promise<BookMetrics> {
  const bookSections = Array.from({ length: load.nodes }, (_, index) => linesOfNode(index));
  const now = morning + 6 * 3_600_000;
  const texts = bookSections.map((lines) => lines.map((line) => JSON.stringify(line)));
  const foldsLinesPerSecond = ratePerSecond((turn) => {
    const lines = bookSections[turn % bookSections.length] ?? [];
    foldBook(`node/worker-${turn % bookSections.length}`, lines, { now });
    return lines.length;
  }, load.seconds);
  const readsLinesPerSecond = ratePerSecond((turn) => {
    const lines = texts[turn % texts.length] ?? [];
    for (const text of lines) JSON.parse(text);
    return lines.length;
  }, load.seconds);
  const sizes = bookSections.flatMap((lines, index) =>
    foldBook(`node/worker-${index}`, lines, { now, pool: "worker" }).map(jsonBytes),
  );
  const linesPerUpdate = (bookSections[0]?.length ?? 0) / chaptersPerNode;
  const writesPerUpdate = writesOf(reportedUpdate().lines);

  tell("memory of open books");
  collect();
  const heapBefore = process.memoryUsage().heapUsed;
  const keepers = bookSections.map((lines, index) => {
    const keeper = new BookKeeper(`node/worker-${index}`);
    keeper.take(
      lines.slice(0, Math.floor(linesPerUpdate) - 2).map((line) => ({ ...line })),
      now,
    );
    keeper.dueWrites(now);
    return keeper;
  });
  collect();
  const openBooksKiB = Math.round((process.memoryUsage().heapUsed - heapBefore) / 1024 / keepers.length);

  tell("readers");
  const readersMs = await readers(load, bookSections);
  tell("an idle cluster");
  const idle = await idleWrites(load.idleSeconds);
  return {
    nodes: load.nodes,
    chaptersPerNode,
    linesPerUpdate,
    foldsLinesPerSecond,
    readsLinesPerSecond,
    chaptersMiB: Math.round((sizes.reduce((sum, size) => sum + size, 0) / 2 ** 20) * 10) / 10,
    largestChapterKiB: Math.round((Math.max(...sizes) / 1024) * 10) / 10,
    openBooksKiB,
    writesPerUpdate,
    idle,
    readersMs,
  };
}
