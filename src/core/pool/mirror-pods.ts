import type { Pod } from "../../api/foreign/kubernetes.ts";

export const mirrorAnnotation = "kubernetes.io/config.mirror";

/**
 * Whether the kubelet of its node made a pod: in any namespace, with any labels. Kubelets can make no others
 * (k8s.io/kubernetes plugin/pkg/admission/noderestriction (v1.34)).
 */
export const isMirror = ({ metadata }: Pick<Pod, "metadata">): boolean =>
  metadata.annotations?.[mirrorAnnotation] !== undefined;

/** Whether a pod is the mirror of a static one of its node: its kubelet made it, and the Node owns it. */
export const isStatic = ({ metadata, spec }: Pick<Pod, "metadata" | "spec">): boolean =>
  isMirror({ metadata }) && nodeOwners({ metadata }).some(({ name }) => name === spec?.nodeName);

/** Nodes that own a pod. */
export const nodeOwners = ({ metadata }: Pick<Pod, "metadata">): NonNullable<Pod["metadata"]["ownerReferences"]> =>
  (metadata.ownerReferences ?? []).filter(({ apiVersion, kind }) => apiVersion === "v1" && kind === "Node");
