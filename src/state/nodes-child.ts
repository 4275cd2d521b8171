import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { journals } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import { type NodeSeen, linesFromNode } from "../core/pool/seen-lines.ts";
import { relevantOfMachineConfigNode, relevantOfNode, trimNode } from "../core/pool/trim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { watching } from "../kube/controller.ts";
import type { ObjectChange } from "../kube/watch-cache.ts";
import { BooksChild, nameInBook } from "./books-child.ts";
import type { KeeperChild } from "./child.ts";

/** The book of a node, where a change of an object of its name is one of what its book is about. */
const whereChanged =
  <T extends KubeObject>(relevantOf: (object: T) => unknown) =>
  ({ key, before, after }: ObjectChange<T>): readonly string[] =>
    before !== undefined && after !== undefined && equalValues(relevantOf(before), relevantOf(after))
      ? []
      : [`node/${key}`];

/**
 * Books of nodes: what their daemons report, what controllers report of them, and what is observed of them if nothing
 * is reported.
 */
export function nodesChild(startedAt: number): KeeperChild {
  const known = new Map<string, NodeSeen>();
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
        concerns: whereChanged(relevantOfNode),
      }),
      watching({
        resource: MachineConfigNode,
        concerns: whereChanged(relevantOfMachineConfigNode),
      }),
    ],
    look(book, { caches, now, seen }) {
      const name = nameInBook(book);
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
