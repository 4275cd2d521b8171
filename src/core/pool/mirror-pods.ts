import type { Pod } from "../../api/foreign/kubernetes.ts";

export const mirrorAnnotation = "kubernetes.io/config.mirror";

/**
 * Whether the kubelet of its node made a pod: in any namespace, with any labels. Kubelets can make no others
 * (k8s.io/kubernetes plugin/pkg/admission/noderestriction (v1.34)).
 */
export const isMirror = ({ metadata }: Pick<Pod, "metadata">): boolean =>
  metadata.annotations?.[mirrorAnnotation] !== undefined;
