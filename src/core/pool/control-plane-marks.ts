import type { Node } from "../../api/foreign/kubernetes.ts";
import { labels, taints } from "../../api/names.ts";

type Taints = NonNullable<NonNullable<Node["spec"]>["taints"]>;

export interface ControlPlaneMarks {
  /** Labels to set (`null`: to remove); empty when they are right. */
  readonly labels: Readonly<Record<string, string | null>>;
  /** The taints as they should be. */
  readonly taints: Taints;
}

/**
 * What a machine of the control plane bears by the cluster's Scheduler settings: whether workload may run on it. A
 * cluster without such settings (`undefined`) keeps what its administrators gave it.
 * Source: openshift/machine-config-operator pkg/controller/node/node_controller.go (main).
 */
export function controlPlaneMarks(
  node: Pick<Node, "metadata" | "spec">,
  schedulable: boolean | undefined,
): ControlPlaneMarks {
  const has = node.metadata.labels ?? {};
  const before = node.spec?.taints ?? [];
  if (schedulable === undefined || has[labels.masterRole] === undefined) return { labels: {}, taints: before };
  const wanted: Record<string, string | null> =
    has[labels.controlPlaneRole] === undefined ? { [labels.controlPlaneRole]: "" } : {};
  if (schedulable) {
    if (has[labels.workerRole] === undefined) wanted[labels.workerRole] = "";
    return {
      labels: wanted,
      taints: before.filter(
        ({ key, effect }) => effect !== "NoSchedule" || (key !== taints.master && key !== taints.controlPlane),
      ),
    };
  }
  if (has[labels.workerRole] !== undefined) wanted[labels.workerRole] = null;
  const isTainted = before.some(({ key, effect }) => key === taints.master && effect === "NoSchedule");
  return { labels: wanted, taints: isTainted ? before : [...before, { key: taints.master, effect: "NoSchedule" }] };
}
