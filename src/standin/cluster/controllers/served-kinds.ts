import { type KubeObject, type Resource, resource } from "../../../api/schema/object.ts";
import type { KubeClient } from "../../../kube/kube-client.ts";

/** A kind that the API server serves, and what may be done with its objects. */
export interface ServedKind {
  readonly resource: Resource<KubeObject>;
  readonly verbs: readonly string[];
}

interface Discovery {
  readonly items: readonly {
    readonly metadata?: { readonly name?: string };
    readonly versions: readonly {
      readonly version: string;
      readonly resources?: readonly {
        readonly resource: string;
        readonly responseKind?: { readonly kind: string };
        readonly scope: "Namespaced" | "Cluster";
        readonly verbs: readonly string[];
      }[];
    }[];
  }[];
}

const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** All kinds that are served now, each once, in the version that its group prefers. */
export async function servedKinds(kube: KubeClient, signal: AbortSignal): Promise<readonly ServedKind[]> {
  const answers = await Promise.all(
    ["/api", "/apis"].map((target) => kube.request({ method: "GET", target, headers: { accept } }, { signal })),
  );
  const kinds = new Map<string, ServedKind>();
  for (const { items } of answers as readonly Discovery[]) {
    for (const { metadata, versions } of items) {
      const group = metadata?.name ?? "";
      for (const { version, resources = [] } of versions) {
        for (const { resource: plural, responseKind, scope, verbs } of resources) {
          const id = `${plural}.${group}`;
          if (responseKind === undefined || kinds.has(id)) continue;
          kinds.set(id, {
            resource: resource<KubeObject>(
              group === "" ? version : `${group}/${version}`,
              responseKind.kind,
              plural,
              scope,
            ),
            verbs,
          });
        }
      }
    }
  }
  return [...kinds.values()];
}

export const kindId = ({ group, kind }: { readonly group: string; readonly kind: string }): string =>
  `${group}/${kind}`;

/** Group of an `apiVersion`. */
export const groupOf = (apiVersion: string): string =>
  apiVersion.includes("/") ? (apiVersion.split("/")[0] ?? "") : "";
