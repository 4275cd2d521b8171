import type { Service } from "../../api/foreign/kubernetes.ts";
import { canonicalHost } from "./canonical-host.ts";

/** Hosts of a cluster that no machine may serve under, in canonical form, each with a clause that names its owner. */
export interface ProtectedHosts {
  /** Those that the cluster gave to somebody. */
  readonly cluster: ReadonlyMap<string, string>;
  /** Those that authors of Services wrote there themselves: an address of a node may be among them. */
  readonly external: ReadonlyMap<string, string>;
}

/** Everything by which clients of the cluster reach something else than a machine. */
export interface ProtectedSources {
  /** Of the API server and the config server: see `apiServerHosts`. */
  readonly apiServer: readonly string[];
  readonly services: readonly Service[];
}

/**
 * The one place that knows which hosts are protected: those of the API server (Infrastructure, kube-public/cluster-info, the
 * suite's own connection, the endpoints of default/kubernetes), of the config server, and of Services with the load balancers in
 * front of them. Short names of Services are another question, because they depend on who resolves them: see `shortFormsIn`.
 */
export function protectedHosts({ apiServer, services }: ProtectedSources): ProtectedHosts {
  const cluster = new Map<string, string>();
  const external = new Map<string, string>();
  const put = (to: Map<string, string>, hosts: readonly (string | undefined)[], clause: string) => {
    for (const host of hosts)
      if (host !== undefined && host !== "" && host !== "None" && !to.has(canonicalHost(host)))
        to.set(canonicalHost(host), clause);
  };
  for (const { metadata, spec, status } of services) {
    const clause = `is an address of the Service ${metadata.namespace ?? ""}/${metadata.name}`;
    put(cluster, [...(spec?.clusterIPs ?? []), spec?.clusterIP], clause);
    put(external, spec?.externalIPs ?? [], clause);
    // What provides load balancers writes their addresses; some are those of nodes (k3s, MetalLB in its simplest form).
    for (const { ip, hostname } of status?.loadBalancer?.ingress ?? []) put(external, [ip, hostname], clause);
  }
  put(cluster, apiServer, "is the API server or the config server");
  return { cluster, external };
}
