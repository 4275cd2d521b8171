import type { PodTemplateSpec } from "../../api/foreign/kubernetes.ts";
import { workloads } from "../../api/names.ts";

/**
 * A pod template as it is compared: without the label that tells ReplicaSets apart, and without the empty maps that a
 * patch leaves behind.
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
