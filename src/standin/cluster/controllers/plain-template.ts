import type { PodTemplateSpec } from "../../../api/foreign/kubernetes.ts";
import { workloads } from "../../../api/names.ts";

/**
 * A pod template in its comparable form: without the label that distinguishes ReplicaSets, and without the empty maps
 * that a patch leaves behind.
 */
export function plainTemplate(template: PodTemplateSpec | undefined): PodTemplateSpec {
  const { labels, annotations, ...metadata } = template?.metadata ?? {};
  const { [workloads.podTemplateHash]: _, ...plainLabels } = labels ?? {};
  return {
    ...template,
    metadata: {
      ...metadata,
      ...(Object.keys(plainLabels).length === 0 ? {} : { labels: plainLabels }),
      ...(Object.keys(annotations ?? {}).length === 0 ? {} : { annotations: annotations ?? {} }),
    },
  };
}
