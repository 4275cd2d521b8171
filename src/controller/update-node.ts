import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { fieldManagers } from "../api/names.ts";
import { trimNode } from "../core/pool/trim.ts";
import { type KubeClient, updateObject } from "../kube/kube-client.ts";

/**
 * Changes a Node for its drain. The change is decided again by a newer version if another writer was first, and sees
 * what the watch shows of it, no more.
 *
 * @returns the Node as it is afterwards; `undefined`: there is none.
 */
export async function updateNode(
  kube: KubeClient,
  cached: Node,
  change: (node: Node) => Partial<Node> | undefined,
  { signal }: { readonly signal: AbortSignal },
): Promise<Node | undefined> {
  const { name } = cached.metadata;
  const how = { cached, owner: fieldManagers.drain, signal };
  const after = await updateObject(kube, kubernetes.Node, { name }, (node) => change(trimNode(node)), how);
  return after === undefined ? undefined : trimNode(after);
}
