import { canonicalHost } from "./canonical-host.ts";

/** The Services of a cluster, as far as names that resolve to them matter. Times are as the API server writes them. */
export interface ClusterServices {
  /** When a namespace was made; `undefined`: there is none of that name. */
  namespaceSince(namespace: string): string | undefined;
  /** When a Service was made; `undefined`: there is none of that name. */
  serviceSince(namespace: string, name: string): string | undefined;
}

/** What pods take a host name for. */
export interface ShortForm {
  /** As it was given. */
  readonly name: string;
  readonly namespace: string;
  /** `NAMESPACE/NAME` of the Service that it resolves to; `undefined`: there is none of that name now. */
  readonly service: string | undefined;
  /**
   * It has three parts, of which the first is an endpoint of the Service. The others are often a domain, and whoever may create
   * a namespace can call a Service like that.
   */
  readonly isEndpoint: boolean;
  /** The Service, or else the namespace, was made after the machine had the name. */
  readonly isLater: boolean;
}

/**
 * Which host names pods resolve inside the cluster first, because their search domains make Services of them:
 * `NAME.NAMESPACE` is a Service, and `HOST.NAME.NAMESPACE` one of its endpoints (Kubernetes DNS specification, 2.3 and
 * 2.4; search domains and `ndots:5`: k8s.io/kubernetes pkg/kubelet/network/dns (v1.34)). The last part of a longer host
 * name is often a domain that a namespace is named like; it counts only if there is such a Service.
 *
 * @param joinedAt when the machine joined that has the name; `undefined`: it has none yet.
 */
export function shortFormsIn(
  names: readonly string[],
  cluster: ClusterServices,
  joinedAt: string | undefined,
): readonly ShortForm[] {
  return names.flatMap((name): readonly ShortForm[] => {
    const labels = canonicalHost(name).split(".");
    if (labels.length < 2 || labels.length > 3) return [];
    const isEndpoint = labels.length === 3;
    const [service = "", namespace = ""] = labels.slice(-2);
    const serviceSince = cluster.serviceSince(namespace, service);
    const since = serviceSince ?? (isEndpoint ? undefined : cluster.namespaceSince(namespace));
    if (since === undefined) return [];
    return [
      {
        name,
        namespace,
        service: serviceSince === undefined ? undefined : `${namespace}/${service}`,
        isEndpoint,
        isLater: joinedAt !== undefined && since > joinedAt,
      },
    ];
  });
}
