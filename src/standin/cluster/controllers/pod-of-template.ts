import type { Pod, PodTemplateSpec } from "../../../api/foreign/kubernetes.ts";
import { type KubeObject, type Resource, controlledBy } from "../../../api/schema/object.ts";

/** The pod that a template and its controller make. */
export function podOfTemplate(
  template: PodTemplateSpec | undefined,
  owner: KubeObject,
  ownerResource: Resource,
  options: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly spec?: Pod["spec"];
    readonly finalizers?: readonly string[];
    readonly annotations?: Readonly<Record<string, string>>;
  },
): Pod {
  const { labels, annotations, finalizers } = template?.metadata ?? {};
  const allFinalizers = [...(finalizers ?? []), ...(options.finalizers ?? [])];
  const allAnnotations = { ...annotations, ...options.annotations };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: options.name,
      namespace: owner.metadata.namespace ?? "",
      generateName: `${owner.metadata.name}-`,
      labels: { ...labels, ...options.labels },
      ...(Object.keys(allAnnotations).length === 0 ? {} : { annotations: allAnnotations }),
      ...(allFinalizers.length === 0 ? {} : { finalizers: allFinalizers }),
      ownerReferences: [controlledBy({ ...owner, apiVersion: ownerResource.apiVersion, kind: ownerResource.kind })],
    },
    ...(template?.spec === undefined ? {} : { spec: options.spec ?? template.spec }),
  };
}
