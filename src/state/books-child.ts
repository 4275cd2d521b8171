import { type Report, createReport } from "../kube/report.ts";
import type { JournalLine } from "../api/books/journal-line.ts";
import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { journals } from "../api/names.ts";
import { defined } from "../api/schema/defined.ts";
import { type BookKind, bookKindOf, reasonText } from "../api/books/report-table.ts";
import { type LineStamp, journalOfNode, lineOf, linesForBook } from "../core/books/journal.ts";
import {
  joinedNode,
  judgeJoins,
  nextOverdueMs,
  overdueLine,
  overdueText,
  servedMachines,
  unreportedJoins,
} from "../core/books/judge-joins.ts";
import { poolOfNode } from "../core/pool/pool-of-node.ts";
import { type NodeSeen, linesFromNode } from "../core/pool/seen-lines.ts";
import { relevantOfMachineConfigNode, relevantOfNode, trimNode } from "../core/pool/trim.ts";
import type { StateChild } from "../core/operator/state-settings.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Caches, type Controller, type Watch, watching } from "../kube/controller.ts";
import type { Selection } from "../kube/kube-client.ts";
import { type Outcome, done } from "../kube/outcome.ts";
import type { ObjectChange } from "../kube/watch-cache.ts";
import { type KeeperChild, type ChildContext, type ChildMetrics, runAsChild } from "./child.ts";
import { bootstrapFactsOf } from "./bootstrap-facts.ts";
import { JournalReader } from "./journal-reader.ts";
import { reportIndexNews } from "./report-index-news.ts";
import { BookIndexes } from "./book-indexes.ts";

const cluster = "cluster";
const named = (name: string): Selection => ({ fieldSelector: `metadata.name=${name}` });
const nameIn = (book: string) => book.slice(book.indexOf("/") + 1);

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
  readonly look: (book: string, world: ObservedCluster) => Seen;
}

interface ObservedCluster {
  readonly caches: Caches;
  readonly report: Report;
  readonly notify: ChildContext["notify"];
  readonly now: number;
  /** Makes lines from observed objects. */
  readonly seen: (line: Parameters<typeof lineOf>[0], at: number) => JournalLine;
}

interface Seen {
  /** `undefined`: it has no subject that could go. */
  readonly subject: { readonly is: "there"; readonly uid: string | undefined } | { readonly is: "gone" } | undefined;
  readonly pool?: string;
  readonly lines: readonly JournalLine[];
  readonly againMs?: number;
}

class BooksChild implements KeeperChild {
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
  const selections: readonly (Selection | undefined)[] = storedBooks.journals?.map(named) ?? [undefined];
  return selections.map((selection) =>
    watching({
      resource: MachineStateJournal,
      ...defined({ selection }),
      concerns: (change) => {
        const { lines, foreign, missed } = reader.read(change, marks);
        notifyOfLines(change, { lines, foreign }, context);
        const book = missed > 0 ? storedBooks.missedIn(change.key) : undefined;
        if (book !== undefined)
          bookIndexes.miss(
            book,
            missed,
            `${missed} ${missed === 1 ? "line" : "lines"} of the journal ${change.key} left it before they were read`,
          );
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
    const journal = caches.of(MachineStateJournal, named(journals.bootstrap)).get(journals.bootstrap);
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
  const names = bookKindOf(book) === "node" ? [journalOfNode(nameIn(book)), ...shared] : shared;
  return names.flatMap(
    (name) => caches.of(MachineStateJournal, read === undefined ? undefined : named(name)).get(name) ?? [],
  );
}

/**
 * Books of nodes: what their daemons report, what controllers report of them, and what is observed of them if nothing
 * is reported.
 */
export function nodesChild(startedAt: number): KeeperChild {
  const known = new Map<string, NodeSeen>();
  const bookOf = ({ key }: { readonly key: string }) => [`node/${key}`];
  return new BooksChild({
    name: "nodes",
    kinds: ["node"],
    journals: undefined,
    missedIn: (journal) =>
      journal.startsWith(journals.nodePrefix) ? `node/${journal.slice(journals.nodePrefix.length)}` : undefined,
    others: [
      watching({
        resource: kubernetes.Node,
        keep: trimNode,
        concerns: (change) =>
          change.before !== undefined &&
          change.after !== undefined &&
          equalValues(relevantOfNode(change.before), relevantOfNode(change.after))
            ? []
            : bookOf(change),
      }),
      watching({
        resource: MachineConfigNode,
        concerns: (change) =>
          change.before !== undefined &&
          change.after !== undefined &&
          equalValues(relevantOfMachineConfigNode(change.before), relevantOfMachineConfigNode(change.after))
            ? []
            : bookOf(change),
      }),
    ],
    look(book, { caches, now, seen }) {
      const name = nameIn(book);
      const node: Node | undefined = caches.of(kubernetes.Node).get(name);
      const machineConfigNode = caches.of(MachineConfigNode).get(name);
      const pool = machineConfigNode?.spec.pool.name ?? known.get(name)?.pool ?? "";
      const found = linesFromNode(known.get(name), node, machineConfigNode, pool, { now, since: startedAt });
      if (found.seen === undefined) known.delete(name);
      else known.set(name, found.seen);
      return {
        subject: node === undefined ? { is: "gone" } : { is: "there", uid: node.metadata.uid },
        pool,
        lines: found.lines.map(({ line, at }) => seen({ ...line, book: `node/${name}` }, at)),
        ...(found.reconcileAfterMs === undefined ? {} : { againMs: found.reconcileAfterMs }),
      };
    },
  });
}

/** Pools that nodes belong to. */
const poolsOf = (nodes: readonly (Node | undefined)[], caches: Caches): readonly string[] =>
  nodes.flatMap((node) => {
    const membership = node === undefined ? undefined : poolOfNode(node, caches.of(MachineConfigPool).list());
    return membership?.verdict === "member" ? [membership.pool] : [];
  });

/** Books of pools, and that of the cluster. */
export function poolsChild(): KeeperChild {
  /** By pool: machines that did not join and were reported as events. */
  const missed = new Map<string, ReadonlySet<string>>();
  return new BooksChild({
    name: "pools",
    kinds: ["pool", "cluster"],
    journals: [journals.controller, journals.operator, journals.server, journals.osBuilder, journals.bootstrap],
    missedIn: (journal) => (journal.startsWith(journals.nodePrefix) ? undefined : cluster),
    others: [
      watching({
        resource: MachineConfigPool,
        concerns: ({ key, before, after }) => (before?.metadata.uid === after?.metadata.uid ? [] : [`pool/${key}`]),
      }),
      // A joining machine ends a wait.
      watching({
        resource: kubernetes.Node,
        keep: trimNode,
        concerns: ({ before, after }, caches) =>
          before === undefined || after === undefined || !equalValues(before.status?.addresses, after.status?.addresses)
            ? poolsOf([before, after], caches).map((pool) => `pool/${pool}`)
            : [],
      }),
    ],
    alsoConcerned: (lines) => [...new Set(servedMachines(lines).map(({ pool }) => `pool/${pool}`))],
    look(book, { caches, now, seen, report, notify }) {
      if (book === cluster) return { subject: undefined, lines: [] };
      const name = nameIn(book);
      const pool = caches.of(MachineConfigPool).get(name);
      if (pool === undefined) {
        missed.delete(name);
        return { subject: { is: "gone" }, pool: name, lines: [] };
      }
      const served = servedMachines(
        caches.of(MachineStateJournal, named(journals.server)).get(journals.server)?.spec.lines ?? [],
      ).filter((machine) => machine.pool === name);
      const nodes =
        served.length === 0
          ? []
          : caches
              .of(kubernetes.Node)
              .list()
              .flatMap((node) => (poolsOf([node], caches).includes(name) ? [joinedNode(node, name)] : []));
      const joins = judgeJoins(served, nodes, now);
      const overdue = joins.filter(({ is }) => is === "overdue");
      notify({ is: "overdue", pool: name, machines: overdue.length });
      const { unreported, reported } = unreportedJoins(missed.get(name) ?? new Set(), joins);
      for (const join of unreported)
        report({
          about: pool,
          notice: "JoinOverdue",
          message: `${overdueText(join)}; ${reasonText("JoinOverdue").next}`,
        });
      missed.set(name, reported);
      const againMs = nextOverdueMs(joins, now);
      return {
        subject: { is: "there", uid: pool.metadata.uid },
        pool: name,
        lines: overdue.map((join) => {
          const { line, at } = overdueLine(join);
          return seen({ ...line, book: `pool/${name}` }, at);
        }),
        ...(againMs === undefined ? {} : { againMs }),
      };
    },
  });
}

/** Books of builds: what the os-builder reports. */
export function buildsChild(): KeeperChild {
  return new BooksChild({
    name: "builds",
    kinds: ["build"],
    journals: [journals.osBuilder],
    missedIn: () => undefined,
    others: [],
    look: () => ({ subject: undefined, lines: [] }),
  });
}
