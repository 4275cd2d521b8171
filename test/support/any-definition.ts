import type { CustomResourceDefinition } from "../../src/api/foreign/kubernetes.ts";
import type { Resource } from "../../src/api/schema/object.ts";

/** A definition that stores and serves objects of any form. */
export const anyDefinition = ({ group, version, kind, plural, namespaced }: Resource): CustomResourceDefinition =>
  ({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: namespaced ? "Namespaced" : "Cluster",
      names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  }) as never;
