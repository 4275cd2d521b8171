import { canonicalHost } from "./canonical-host.ts";

/** The Services of a cluster, as far as names that resolve to them matter. */
export interface ClusterServices {
  readonly namespaces: ReadonlySet<string>;
  /** `NAMESPACE/NAME` of each. */
  readonly services: ReadonlySet<string>;
}

/** What pods take a host name for. */
export interface ShortForm {
  /** As it was given. */
  readonly name: string;
  readonly namespace: string;
  /** `NAMESPACE/NAME` of the Service that it resolves to; `undefined`: there is none of that name now. */
  readonly service: string | undefined;
}

/**
 * Which host names pods resolve inside the cluster first, because their search domains make Services of them:
 * `NAME.NAMESPACE` is a Service, and `HOST.NAME.NAMESPACE` one of its endpoints (Kubernetes DNS specification, 2.3 and
 * 2.4; search domains and `ndots:5`: k8s.io/kubernetes pkg/kubelet/network/dns (v1.34)). The last part of a longer host
 * name is often a domain that a namespace is named like; it counts only if there is such a Service.
 */
export function shortFormsIn(
  names: readonly string[],
  { namespaces, services }: ClusterServices,
): readonly ShortForm[] {
  return names.flatMap((name): readonly ShortForm[] => {
    const labels = canonicalHost(name).split(".");
    const [service = "", namespace = ""] = labels.slice(-2);
    const found = services.has(`${namespace}/${service}`);
    if (labels.length < 2 || labels.length > 3 || (!found && (labels.length === 3 || !namespaces.has(namespace))))
      return [];
    return [{ name, namespace, service: found ? `${namespace}/${service}` : undefined }];
  });
}
