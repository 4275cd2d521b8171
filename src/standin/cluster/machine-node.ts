import type { Node } from "../../api/foreign/kubernetes.ts";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { labels } from "../../api/names.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { isAlreadyExists } from "../../kube/kube-error.ts";
import type { HostRecord } from "./layout.ts";

/**
 * Labels that say what a machine is for. A kubelet may not give them to its own node: `k8s.io/kubernetes
 * plugin/pkg/admission/noderestriction (v1.34)`.
 */
export function roleLabels(pool: string): Readonly<Record<string, string>> {
  if (pool === "master") return { [labels.masterRole]: "", [labels.controlPlaneRole]: "" };
  return { [labels.workerRole]: "", [`node-role.kubernetes.io/${pool}`]: "" };
}

/** Makes the Node of a machine with its roles before the machine reports itself, as an administrator's tool does. */
export async function registerMachine(
  kube: KubeClient,
  { name, pool }: Pick<HostRecord, "name" | "pool">,
  signal: AbortSignal,
): Promise<void> {
  const wanted = roleLabels(pool);
  const existing = await kube.get(kubernetes.Node, { name }, { signal });
  if (existing !== undefined) {
    const missing = Object.keys(wanted).some((label) => existing.metadata.labels?.[label] === undefined);
    if (missing)
      await kube.patch(
        kubernetes.Node,
        { name },
        { type: "merge", body: { metadata: { labels: wanted } } },
        { signal },
      );
    return;
  }
  const node: Node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "kubernetes.io/hostname": name, ...wanted } },
    spec: pool === "master" ? { taints: [{ key: labels.masterRole, effect: "NoSchedule" }] } : {},
  };
  try {
    await kube.create(kubernetes.Node, node, { owner: "mco-up", signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    await registerMachine(kube, { name, pool }, signal);
  }
}
