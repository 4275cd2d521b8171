import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { journals } from "../api/names.ts";
import {
  joinedNode,
  judgeJoins,
  nextOverdueMs,
  overdueLine,
  servedMachines,
  unreportedJoins,
} from "../core/books/judge-joins.ts";
import { poolOfNode } from "../core/pool/pool-of-node.ts";
import { trimNode } from "../core/pool/trim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Caches, watching } from "../kube/controller.ts";
import { BooksChild, type ObservedBook, type ObservedCluster, journalSelection, nameInBook } from "./books-child.ts";
import type { KeeperChild } from "./child.ts";
import { joinOverdue } from "./reports.ts";

const cluster = "cluster";

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
    look: (book, world) => (book === cluster ? { subject: undefined, lines: [] } : observePool(book, missed, world)),
  });
}

/** Observes a pool and the machines that were served for it, and reports those that did not join. */
function observePool(
  book: string,
  missed: Map<string, ReadonlySet<string>>,
  { caches, now, seen, report, notify }: ObservedCluster,
): ObservedBook {
  const name = nameInBook(book);
  const pool = caches.of(MachineConfigPool).get(name);
  if (pool === undefined) {
    missed.delete(name);
    return { subject: { is: "gone" }, pool: name, lines: [] };
  }
  const served = servedMachines(
    caches.of(MachineStateJournal, journalSelection(journals.server)).get(journals.server)?.spec.lines ?? [],
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
  for (const join of unreported) report(joinOverdue(pool, join));
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
}
