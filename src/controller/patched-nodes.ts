import type { Node } from "../api/foreign/kubernetes.ts";

interface Entry {
  /** Version that the patch was made for. */
  readonly base: string;
  /** The resulting version; `undefined` while it is unknown whether the patch has been carried out. */
  readonly result: string | undefined;
  readonly assumed: Node;
  readonly body: object;
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

  /** The newest known state of a node: from the watch, or from our own patch. */
  view(cached: Node): Node {
    const { name } = cached.metadata;
    const entry = this.#entries.get(name);
    if (entry === undefined) return cached;
    const isOlder =
      cached.metadata.uid === entry.assumed.metadata.uid &&
      (entry.result === undefined
        ? !isNewer(cached.metadata.resourceVersion, entry.base)
        : isNewer(entry.result, cached.metadata.resourceVersion));
    if (isOlder) return entry.assumed;
    this.#entries.delete(name);
    return cached;
  }

  begin(node: Node, assumed: Node, body: object): void {
    const before = this.#entries.get(node.metadata.name);
    const prior = before?.result === undefined ? before?.prior : { ...before, prior: undefined };
    this.#entries.set(node.metadata.name, {
      base: node.metadata.resourceVersion ?? "",
      result: undefined,
      assumed,
      body,
      prior,
    });
  }

  /** The patch was carried out and gave `node`. */
  done(node: Node): void {
    const entry = this.#entries.get(node.metadata.name);
    if (entry !== undefined)
      this.#entries.set(node.metadata.name, {
        ...entry,
        result: node.metadata.resourceVersion ?? "",
        assumed: node,
        prior: undefined,
      });
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

  /** Patches without an answer, for sending them again: `body` names the version that they were made for. */
  unanswered(): readonly { readonly name: string; readonly body: object }[] {
    return [...this.#entries]
      .filter(([, entry]) => entry.result === undefined)
      .map(([name, { body }]) => ({ name, body }));
  }
}

/** Versions are decimal numbers that grow (Kubernetes KEP-5504); of others only equality is defined. */
function isNewer(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined || a === b) return false;
  return /^\d+$/.test(a) && /^\d+$/.test(b) ? BigInt(a) > BigInt(b) : true;
}
