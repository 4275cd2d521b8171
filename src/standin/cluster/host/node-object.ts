import { withTransition } from "../../../api/schema/conditions.ts";
import { conditionOf, timestampOf } from "../../../api/schema/object.ts";
import { type Node, type Taint, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { type NodeSettings, allocatableOf } from "../../../core/kubelet/node-settings.ts";
import { type KubeClient, updateObject } from "../../../kube/kube-client.ts";
import { isAlreadyExists, retryAfterMs } from "../../../kube/kube-error.ts";
import { backedOff } from "../../../ports/random.ts";
import type { Ports } from "../../../ports/index.ts";
import { ports } from "../layout.ts";

/** Between tries of what the API server did not take. */
export const apiRetry = { firstMs: 500, lastMs: 5_000, spread: 0.2 };

export interface NodeFacts {
  readonly nodeName: string;
  readonly address: string;
  /** Taints that the Node begins with. */
  readonly taints: readonly Taint[];
  readonly version: string;
  readonly architecture: string;
}

/** What its kubelet's configuration says; `undefined`: nothing that a kubelet would start with. */
export type ConfiguredNode = NodeSettings | undefined;

const wholeMachine = { cpu: "2", memory: "8Gi", "ephemeral-storage": "64Gi" };
const defaultPods = 110;

/** How many pods a machine runs. */
export const mostPodsOf = (configured: ConfiguredNode): number => configured?.maxPods ?? defaultPods;

export interface Readiness {
  readonly ready: boolean;
  readonly reason: string;
  readonly message: string;
}

/** Registers the Node and writes its status; tries until the API server takes it or `signal` aborts. */
export async function writeNode(
  kube: KubeClient,
  facts: NodeFacts & { readonly configured: ConfiguredNode },
  bootId: () => string,
  readiness: Readiness,
  { clock, random, log }: Pick<Ports, "clock" | "random" | "log">,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    try {
      await registerNode(kube, facts, signal);
      await updateObject(
        kube,
        kubernetes.Node,
        { name: facts.nodeName },
        (node) => ({ status: nodeStatus(node, facts, bootId(), readiness, clock.now()) }),
        { subresource: "status", owner: "kubelet", signal },
      );
      return;
    } catch (error) {
      if (signal.aborted) throw error;
      log.debug({ error }, "node not written");
      await clock.sleep(Math.max(retryAfterMs(error), backedOff(random, failures, apiRetry)), signal);
    }
  }
}

async function registerNode(
  kube: KubeClient,
  { nodeName, architecture, taints: given, configured }: NodeFacts & { readonly configured: ConfiguredNode },
  signal: AbortSignal,
): Promise<void> {
  const labels = {
    "kubernetes.io/hostname": nodeName,
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": architecture,
    "node.openshift.io/os_id": "mco",
  };
  const how = { owner: "kubelet", signal };
  const existing = await kube.get(kubernetes.Node, { name: nodeName }, { signal });
  if (existing !== undefined) {
    const same = Object.entries(labels).every(([label, value]) => existing.metadata.labels?.[label] === value);
    if (same) return;
    await kube.patch(kubernetes.Node, { name: nodeName }, { type: "merge", body: { metadata: { labels } } }, how);
    return;
  }
  const metadata = { name: nodeName, labels };
  const taints = [...given, ...(configured?.taints ?? [])];
  const spec = taints.length === 0 ? {} : { taints };
  try {
    await kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata, spec }, how);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/** The status of a machine in a folder, as a kubelet would report it. @param now milliseconds since the epoch. */
function nodeStatus(
  node: Node,
  { nodeName, address, version, architecture, configured }: NodeFacts & { readonly configured: ConfiguredNode },
  bootId: string,
  { ready, reason, message }: Readiness,
  now: number,
): NonNullable<Node["status"]> {
  const condition = (type: string, is: boolean, why: string, text: string) =>
    withTransition(
      conditionOf(node.status?.conditions, type),
      { type, status: is ? "True" : "False", reason: why, message: text, lastHeartbeatTime: timestampOf(now) },
      now,
    );
  const capacity = { ...wholeMachine, pods: String(mostPodsOf(configured)) };
  return {
    ...node.status,
    addresses: [
      { type: "InternalIP", address },
      { type: "Hostname", address: nodeName },
    ],
    capacity,
    allocatable: allocatableOf(capacity, configured ?? { withheld: [] }),
    daemonEndpoints: { kubeletEndpoint: { Port: ports.kubelet } },
    conditions: [
      condition("MemoryPressure", false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
      condition("DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
      condition("PIDPressure", false, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
      condition("Ready", ready, reason, message),
    ],
    nodeInfo: {
      machineID: nodeName,
      systemUUID: nodeName,
      bootID: bootId,
      kernelVersion: "directory-host",
      osImage: "MCO stock OS 1",
      containerRuntimeVersion: `process://${version}`,
      kubeletVersion: `v1.34.0-mco.${version}`,
      kubeProxyVersion: "",
      operatingSystem: "linux",
      architecture,
    },
  };
}
