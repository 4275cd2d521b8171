import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { fieldManagers } from "../api/names.ts";
import { trimNode } from "../core/pool/trim.ts";
import type { Context } from "../kube/controller.ts";
import { type Decided, type KubeClient, type ObjectUpdate, updateByDecision } from "../kube/kube-client.ts";

/**
 * Changes a Node for its drain. The change is decided again by a newer version if another writer was first, and sees
 * what the watch shows of it, no more. A change whose answer is lost is sent again until it is known whether it was made:
 * the book tells what was done.
 *
 * @returns the Node as it is afterwards, and what was decided about it; `undefined`: there is none.
 */
export async function updateNode<D>(
  kube: KubeClient,
  cached: Node,
  decide: (node: Node) => Decided<Node, D>,
  { signal, clock }: Pick<Context, "signal" | "clock">,
): Promise<ObjectUpdate<Node, D> | undefined> {
  const { name } = cached.metadata;
  const how = { cached, owner: fieldManagers.drain, signal, insists: clock };
  const after = await updateByDecision(kube, kubernetes.Node, { name }, (node) => decide(trimNode(node)), how);
  return after === undefined ? undefined : { ...after, object: trimNode(after.object) };
}
