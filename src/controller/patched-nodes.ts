import type { Node } from "../api/foreign/kubernetes.ts";
import { isNewerVersion } from "../kube/own-writes.ts";

/** A patch of a node. */
export interface NodePatch {
  /** The node as it is after the patch. */
  readonly assumed: Node;
  /** What is sent: it names the version that the patch was made for. */
  readonly body: object;
  /** Whether a version of the node has what the patch writes. */
  readonly isIn: (node: Node) => boolean;
  /** Called once, when it is known that the patch has been carried out. */
  readonly onWritten: () => void;
}

interface Entry {
  readonly patch: NodePatch;
  /** Version that the patch was made for. */
  readonly base: string;
  /** The resulting version; `undefined` while it is unknown whether the patch has been carried out. */
  readonly result: string | undefined;
  readonly assumed: Node;
  /** The result of our patch before this one: it holds again when this one is refused. */
  readonly prior: Entry | undefined;
}

/**
 * Nodes as they are after our own patches, until the watch shows them so. Without it a machine that was just taken
 * looks free for a moment, and a second one could be taken on the old count.
 *
 * A patch whose answer was lost counts as carried out: its node stays taken until a repeated request, or a newer
 * version of the node, proves that the first one can no longer arrive.
 */
export class PatchedNodes {
  readonly #entries = new Map<string, Entry>();
  /** Patches that the watch has shown to have been carried out, and whose answers have not come. */
  readonly #arrived = new Set<NodePatch>();
  readonly #told = new WeakSet<NodePatch>();

  /** The newest known state of a node: from the watch, or from our own patch. */
  view(cached: Node): Node {
    const { name } = cached.metadata;
    const entry = this.#entries.get(name);
    if (entry === undefined) return cached;
    const isSame = cached.metadata.uid === entry.assumed.metadata.uid;
    const isOlder =
      isSame &&
      (entry.result === undefined
        ? !isNewerVersion(cached.metadata.resourceVersion, entry.base)
        : isNewerVersion(entry.result, cached.metadata.resourceVersion));
    if (isOlder) return entry.assumed;
    if (isSame && entry.result === undefined && entry.patch.isIn(cached)) this.#arrived.add(entry.patch);
    this.#entries.delete(name);
    return cached;
  }

  /** @param node the version that the patch was made for. */
  begin(node: Node, patch: NodePatch): void {
    const before = this.#entries.get(node.metadata.name);
    const prior = before?.result === undefined ? before?.prior : { ...before, prior: undefined };
    this.#entries.set(node.metadata.name, {
      patch,
      base: node.metadata.resourceVersion ?? "",
      result: undefined,
      assumed: patch.assumed,
      prior,
    });
  }

  /** The patch was carried out and gave `node`, or a version that has what it writes. */
  done(node: Node, patch: NodePatch): void {
    const entry = this.#entries.get(node.metadata.name);
    if (entry?.patch === patch)
      this.#entries.set(node.metadata.name, {
        ...entry,
        result: node.metadata.resourceVersion ?? "",
        assumed: node,
        prior: undefined,
      });
    this.#tell(patch);
  }

  /**
   * The patch was refused and cannot be carried out any more. The result of an earlier one still counts: the watch may
   * lag behind it.
   */
  drop(name: string): void {
    const prior = this.#entries.get(name)?.prior;
    if (prior === undefined) this.#entries.delete(name);
    else this.#entries.set(name, prior);
  }

  /** Patches without an answer, for sending them again. */
  unanswered(): readonly { readonly name: string; readonly patch: NodePatch }[] {
    return [...this.#entries]
      .filter(([, entry]) => entry.result === undefined)
      .map(([name, { patch }]) => ({ name, patch }));
  }

  /** Calls `onWritten` of patches without an answer that the watch shows to have been carried out. */
  tellArrived(): void {
    for (const patch of this.#arrived) this.#tell(patch);
  }

  #tell(patch: NodePatch): void {
    this.#arrived.delete(patch);
    if (this.#told.has(patch)) return;
    this.#told.add(patch);
    patch.onWritten();
  }
}
