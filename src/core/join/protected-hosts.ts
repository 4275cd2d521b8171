import type { Service } from "../../api/foreign/kubernetes.ts";
import { canonicalHost } from "./canonical-host.ts";
import { readOncePerObject } from "../text/read-once.ts";

/** Hosts of a cluster that no machine may serve under, in canonical form, each with a clause that names its owner. */
export interface ProtectedHosts {
  /** Those that the cluster gave to Services. */
  readonly cluster: ReadonlyMap<string, string>;
  /** Those of the API server and of the config server. */
  readonly apiServer: ReadonlyMap<string, string>;
  /** Those that authors of Services wrote there themselves: an address of a node may be among them. */
  readonly external: ReadonlyMap<string, string>;
}

/** Everything by which clients of the cluster reach something else than a machine. */
export interface ProtectedSources {
  /** Of the API server and the config server: see `apiServerHosts`. */
  readonly apiServer: readonly string[];
  /** All that have one of the hosts that are asked about, in any order; others make no difference. */
  readonly services: readonly Service[];
}

/**
 * The one place that knows which hosts are protected: those of the API server (Infrastructure, kube-public/cluster-info, the
 * suite's own connection, the endpoints of default/kubernetes), of the config server, and of Services with the load balancers in
 * front of them. Short names of Services are another question, because they depend on who resolves them: see `shortFormsIn`.
 *
 * @param asked hosts that are asked about, in any form; the answer holds no others, since tenants make Services without end.
 */
export function protectedHosts({ apiServer, services }: ProtectedSources, asked: readonly string[]): ProtectedHosts {
  const wanted = new Set(asked.map(canonicalHost));
  const [cluster, external] = [new Map<string, string>(), new Map<string, string>()];
  // Of several Services, the first by name is told, in whatever order they come.
  const put = (to: Map<string, string>, hosts: readonly string[], service: string) => {
    for (const host of hosts) if (wanted.has(host) && !((to.get(host) ?? "\uffff") < service)) to.set(host, service);
  };
  for (const service of services) {
    const name = `${service.metadata.namespace ?? ""}/${service.metadata.name}`;
    const hosts = hostsOf(service);
    put(cluster, hosts.cluster, name);
    put(external, hosts.external, name);
  }
  const clauses = (found: ReadonlyMap<string, string>) =>
    new Map([...found].map(([host, service]) => [host, `is an address of the Service ${service}`] as const));
  return {
    cluster: clauses(cluster),
    apiServer: new Map(
      canonical(apiServer).flatMap((host) =>
        wanted.has(host) ? [[host, "is the API server or the config server"] as const] : [],
      ),
    ),
    external: clauses(external),
  };
}

/** Hosts by which a Service is found, in canonical form. */
export const hostsOfService = (service: Service): readonly string[] => {
  const { cluster, external } = hostsOf(service);
  return external.length === 0 ? cluster : [...cluster, ...external];
};

interface ServiceHosts {
  readonly cluster: readonly string[];
  readonly external: readonly string[];
}

/** Read once: every request is compared with those of all Services. */
const hostsOf = readOncePerObject(({ spec, status }: Service): ServiceHosts => ({
  cluster: [...new Set(canonical([...(spec?.clusterIPs ?? []), spec?.clusterIP]))],
  // What provides load balancers writes their addresses; some are those of nodes (k3s, MetalLB in its simplest form).
  external: canonical([
    ...(spec?.externalIPs ?? []),
    ...(status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }) => [ip, hostname]),
  ]),
}));

const canonical = (hosts: readonly (string | undefined)[]): readonly string[] =>
  hosts.flatMap((host) => (host === undefined || host === "" || host === "None" ? [] : [canonicalHost(host)]));
