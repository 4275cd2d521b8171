import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { fieldManagers } from "../api/names.ts";
import { trimNode } from "../core/pool/trim.ts";
import type { Context } from "../kube/controller.ts";
import { KubeError, isNotFound, isTooLarge } from "../kube/kube-error.ts";
import { PatchedNodes } from "./patched-nodes.ts";

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

  /** Writes a node at its known version, which succeeds only while no other writer has changed it. */
  async change(node: Node, changes: NodeChanges, context: Context): Promise<WrittenNode> {
    const { name, resourceVersion } = node.metadata;
    const body = {
      metadata: {
        resourceVersion,
        ...(changes.annotations === undefined ? {} : { annotations: changes.annotations }),
        ...(changes.labels === undefined ? {} : { labels: changes.labels }),
      },
      ...(changes.taints === undefined ? {} : { spec: { taints: changes.taints } }),
    };
    const assumed: Node = {
      ...node,
      metadata: {
        ...node.metadata,
        annotations: withChanges(node.metadata.annotations, changes.annotations),
        labels: withChanges(node.metadata.labels, changes.labels),
      },
      ...(changes.taints === undefined ? {} : { spec: { ...node.spec, taints: changes.taints } }),
    };
    this.#patched.begin(node, assumed, body);
    return this.#send(name, body, context);
  }

  /**
   * Sends writes again that had no answer. A node that has none stays as it would be after it, and in the way of no other.
   *
   * @param of runs the writes of one machine.
   */
  async resend(
    context: Context,
    of: (name: string, work: () => Promise<WrittenNode>) => Promise<WrittenNode>,
  ): Promise<WrittenNode> {
    let result: WrittenNode = "written";
    for (const { name, body } of this.#patched.unanswered()) {
      const written = await of(name, () => this.#send(name, body, context));
      if (written !== "written" && result !== "overtaken") result = written;
    }
    return result;
  }

  async #send(name: string, body: object, { kube, caches, signal }: Context): Promise<WrittenNode> {
    try {
      const after = await kube.patch(
        kubernetes.Node,
        { name },
        { type: "merge", body },
        { owner: fieldManagers.node, signal },
      );
      this.#patched.done(trimNode(after));
      this.#onWritten(name);
      return "written";
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.#patched.drop(name);
      if (error.httpStatus === 409 || isNotFound(error)) return "overtaken";
      throw error;
    } finally {
      const cached = caches.of(kubernetes.Node).get(name);
      this.#onNode(name, cached === undefined ? undefined : this.view(cached));
    }
  }
}

/** Whether the server has definitely refused a write; after any other failure the result is unknown. */
const isRefusal = (error: unknown): error is KubeError =>
  isTooLarge(error) ||
  (error instanceof KubeError &&
    error.httpStatus >= 400 &&
    error.httpStatus < 500 &&
    error.httpStatus !== 408 &&
    error.httpStatus !== 429);

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
