import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { fieldManagers } from "../api/names.ts";
import { trimNode } from "../core/pool/trim.ts";
import type { Context } from "../kube/controller.ts";
import { hasPatch } from "../kube/item-patch.ts";
import { isNotFound, isRefusal } from "../kube/kube-error.ts";
import { type NodePatch, PatchedNodes } from "./patched-nodes.ts";

/** `overtaken`: another writer was first, and nothing was written. `refused`: the objects of a machine do not take it. */
export type WrittenNode = "written" | "overtaken" | "refused";

export type Taints = NonNullable<NonNullable<Node["spec"]>["taints"]>;

/** The changes of a node. `null` removes an annotation or a label. */
export interface NodeChanges {
  readonly annotations?: Readonly<Record<string, string | null>>;
  readonly labels?: Readonly<Record<string, string | null>>;
  readonly taints?: Taints;
}

/** The node controller's own writes of nodes, and nodes as they are after them. */
export class NodeWrites {
  readonly #patched = new PatchedNodes();
  readonly #onNode: (name: string, node: Node | undefined) => void;
  readonly #onWritten: (name: string) => void;

  /** @param onNode is called for a node after each write, successful or not; `onWritten` after each successful one. */
  constructor(onNode: (name: string, node: Node | undefined) => void, onWritten: (name: string) => void) {
    this.#onNode = onNode;
    this.#onWritten = onWritten;
  }

  /** The newest known state of a node that the watch shows. */
  view(cached: Node): Node {
    return this.#patched.view(cached);
  }

  /**
   * Writes a node at its known version, which succeeds only while no other writer has changed it.
   *
   * @param onWritten is called once it is known that the write was carried out: that may be in a later pass, if the
   *   answer to it was lost.
   */
  async change(
    node: Node,
    changes: NodeChanges,
    context: Context,
    onWritten: () => void = () => undefined,
  ): Promise<WrittenNode> {
    const { resourceVersion } = node.metadata;
    const { annotations, labels, taints } = changes;
    const written = { metadata: { annotations, labels }, ...(taints === undefined ? {} : { spec: { taints } }) };
    const body = { ...written, metadata: { ...written.metadata, resourceVersion } };
    const assumed: Node = {
      ...node,
      metadata: {
        ...node.metadata,
        annotations: withChanges(node.metadata.annotations, changes.annotations),
        labels: withChanges(node.metadata.labels, changes.labels),
      },
      ...(changes.taints === undefined ? {} : { spec: { ...node.spec, taints: changes.taints } }),
    };
    const patch = { assumed, body, isIn: (version: Node) => hasPatch(version, written), onWritten };
    this.#patched.begin(node, patch);
    return this.#send(node.metadata.name, patch, context, false);
  }

  /**
   * Sends writes again that had no answer, until it is known what became of them. A node whose write has none counts as
   * written, and keeps no other from its own.
   *
   * @param of runs the writes of one machine.
   */
  async resend(
    context: Context,
    of: (name: string, work: () => Promise<WrittenNode>) => Promise<WrittenNode>,
  ): Promise<WrittenNode> {
    this.#patched.tellArrived();
    let result: WrittenNode = "written";
    for (const { name, patch } of this.#patched.unanswered()) {
      const written = await of(name, () => this.#send(name, patch, context, true));
      if (written !== "written" && result !== "overtaken") result = written;
    }
    return result;
  }

  /** @param isAgain it was sent before, without an answer: the server may have carried it out. */
  async #send(
    name: string,
    patch: NodePatch,
    { kube, caches, signal }: Context,
    isAgain: boolean,
  ): Promise<WrittenNode> {
    try {
      const after = await kube.patch(
        kubernetes.Node,
        { name },
        { type: "merge", body: patch.body },
        { owner: fieldManagers.node, signal },
      );
      this.#written(after, patch);
      return "written";
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const version =
        isAgain && error.httpStatus === 409 ? await kube.get(kubernetes.Node, { name }, { signal }) : undefined;
      if (version !== undefined && patch.isIn(version)) {
        this.#written(version, patch);
        return "written";
      }
      this.#patched.drop(name);
      if (error.httpStatus === 409 || isNotFound(error)) return "overtaken";
      throw error;
    } finally {
      const cached = caches.of(kubernetes.Node).get(name);
      this.#onNode(name, cached === undefined ? undefined : this.view(cached));
    }
  }

  #written(version: Node, patch: NodePatch): void {
    this.#patched.done(trimNode(version), patch);
    this.#onWritten(version.metadata.name);
  }
}

/** How many machines are written at the same time. */
export const writesAtOnce = 16;

/** Annotations or labels after a merge patch: `null` removes one. */
function withChanges(
  before: Readonly<Record<string, string>> | undefined,
  changes: Readonly<Record<string, string | null>> = {},
): Record<string, string> {
  return Object.fromEntries(
    Object.entries({ ...before, ...changes }).flatMap(([key, value]) => (value === null ? [] : [[key, value]])),
  );
}
