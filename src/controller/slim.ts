import type { Node, Pod } from "../api/kubernetes.ts";

/** Of a node what decisions read: not its images, volumes and heartbeats, which are most of its size. Every watch of nodes in this process keeps this. */
export function slimNode({ apiVersion, kind, metadata, spec, status }: Node): Node {
  const { managedFields: _, ...kept } = metadata as Node["metadata"] & { readonly managedFields?: unknown };
  const { unschedulable, taints } = spec ?? {};
  return {
    apiVersion,
    kind,
    metadata: kept,
    spec: { ...(unschedulable === undefined ? {} : { unschedulable }), ...(taints === undefined ? {} : { taints }) },
    status: { conditions: (status?.conditions ?? []).map(({ lastHeartbeatTime: __, ...condition }: { readonly lastHeartbeatTime?: string } & NonNullable<NonNullable<Node["status"]>["conditions"]>[number]) => condition) },
  };
}

/** Of a pod where it runs and whether it is ready. */
export function slimPod({ apiVersion, kind, metadata, spec, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  return {
    apiVersion,
    kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }), ...(creationTimestamp === undefined ? {} : { creationTimestamp }), ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
    spec: { containers: [], ...(spec?.nodeName === undefined ? {} : { nodeName: spec.nodeName }) },
    status: { ...(status?.phase === undefined ? {} : { phase: status.phase }), conditions: (status?.conditions ?? []).filter(({ type }) => type === "Ready") },
  };
}
