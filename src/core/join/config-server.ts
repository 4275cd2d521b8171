import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { ConfigMap } from "../../api/foreign/kubernetes.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations } from "../../api/names.ts";
import { isRecord } from "../../ignition/shape.ts";
import { kubernetesYaml } from "../text/kubernetes-yaml.ts";
import { configServerAuthority, withPort } from "./pointer-config.ts";

/** Which clients get configurations: those with a credential, or all, as in the reference implementation. */
export type ConfigServerAccess = "required" | "insecure";

/** The administrator's setting; any other word means secure, and is reported. */
export function configServerAccess(settings: Pick<MachineConfiguration, "metadata"> | undefined): {
  readonly access: ConfigServerAccess;
  readonly problem: string | undefined;
} {
  const written = settings?.metadata.annotations?.[annotations.configServerAccess];
  if (written === undefined || written === "required" || written === "insecure")
    return { access: written ?? "required", problem: undefined };
  return {
    access: "required",
    problem: `the annotation ${annotations.configServerAccess} of MachineConfiguration cluster is "${written.slice(0, 40)}": write required or insecure, or remove it`,
  };
}

export interface ConfigServerFacts {
  readonly controllerConfig: Pick<ControllerConfig, "spec"> | undefined;
  readonly machineConfiguration: Pick<MachineConfiguration, "metadata"> | undefined;
  /** kube-public/cluster-info, as kubeadm leaves it. */
  readonly clusterInfo: Pick<ConfigMap, "data"> | undefined;
  /** The address at which the suite reaches the API server: the default for machines. */
  readonly ownServer: string;
  /** `host` or `host:port` that machines got when the suite was installed. */
  readonly installedAddress: string | undefined;
}

/**
 * Where kubelets of joining machines reach the API server. Source of the names: openshift/api
 * config/v1/types_infrastructure.go, kubernetes/kubernetes cmd/kubeadm (master).
 */
export function apiServerForMachines({ controllerConfig, clusterInfo, ownServer }: ConfigServerFacts): string {
  const status = controllerConfig?.spec.infra?.["status"];
  const internal = isRecord(status) ? status["apiServerInternalURI"] : undefined;
  if (typeof internal === "string" && isServer(internal)) return internal;
  return serverIn(clusterInfo?.data?.["kubeconfig"]) ?? ownServer;
}

/**
 * Hosts of the API server and of the config server that only the operator knows, for the annotation of the ControllerConfig.
 * Loopback is left out: it is another machine to everyone.
 */
export function publishedApiServerHosts({
  apiServerAddresses,
  ...facts
}: ConfigServerFacts & {
  /** Addresses in the endpoints of default/kubernetes. */
  readonly apiServerAddresses: readonly string[];
}): readonly string[] {
  const servers = [serverIn(facts.clusterInfo?.data?.["kubeconfig"]), facts.ownServer];
  const hosts = [...servers.flatMap(hostOfServer), ...configServerHosts(facts), ...apiServerAddresses];
  return [...new Set(hosts)].filter((host) => !/^(127\.|::1$|localhost$)/.test(host));
}

/**
 * Host names and addresses by which clients reach the API server. A node that serves under one of them, with a certificate
 * of an authority that these clients trust, is the API server to them.
 */
export function apiServerHosts(config: Pick<ControllerConfig, "metadata" | "spec"> | undefined): readonly string[] {
  const status = config?.spec.infra?.["status"];
  const named = isRecord(status)
    ? [
        ...[status["apiServerInternalURI"], status["apiServerURL"]].flatMap(hostOfServer),
        ...virtualAddresses(status["platformStatus"]),
      ]
    : [];
  const noted = (config?.metadata.annotations?.[annotations.apiServerHosts] ?? "").split(",");
  return [...new Set([...named, ...noted])].filter((host) => host !== "");
}

/** Without the brackets of an IPv6 address. */
const hostOfServer = (url: unknown): readonly string[] => {
  const host =
    typeof url === "string" ? /^[a-z]+:\/\/(\[[^\]]+\]|[^\s/:@[\]]+)(:\d*)?(\/|$)/i.exec(url)?.[1] : undefined;
  return host === undefined ? [] : [host.replace(/^\[|\]$/g, "")];
};

/** Addresses of the API server that move between machines of the control plane. */
function virtualAddresses(platformStatus: unknown): readonly string[] {
  return (isRecord(platformStatus) ? Object.values(platformStatus).filter(isRecord) : [])
    .flatMap((one) => {
      const { apiServerInternalIPs: several, apiServerInternalIP: single } = one;
      return [...(Array.isArray(several) ? (several as readonly unknown[]) : []), single];
    })
    .filter((address) => typeof address === "string");
}

const isServer = (text: string) => /^https:\/\/(\[[\da-f:.]+\]|[^\s/:@[\]]+)(:\d{1,5})?\/?$/i.test(text);

function serverIn(kubeconfig: string | undefined): string | undefined {
  if (kubeconfig === undefined || kubeconfig.length > 1_000_000) return undefined;
  try {
    const document = kubernetesYaml(kubeconfig);
    const read: unknown = document.errors.length > 0 ? undefined : document.toJS({ maxAliasCount: 0 });
    const clusters: readonly unknown[] = isRecord(read) && Array.isArray(read["clusters"]) ? read["clusters"] : [];
    const [first] = clusters;
    const cluster = isRecord(first) ? first["cluster"] : undefined;
    const server = isRecord(cluster) ? cluster["server"] : undefined;
    return typeof server === "string" && isServer(server) ? server : undefined;
  } catch {
    return undefined;
  }
}

/** Names and addresses of the config server, beside those of the machines that it runs on. */
export function configServerHosts(facts: ConfigServerFacts): readonly string[] {
  const authorities = [
    configServerAuthority(facts),
    facts.installedAddress === undefined ? undefined : withPort(facts.installedAddress),
  ];
  const status = facts.controllerConfig?.spec.infra?.["status"];
  const addresses = isRecord(status) ? virtualAddresses(status["platformStatus"]) : [];
  const hosts = authorities.flatMap((authority) =>
    authority === undefined ? [] : [authority.replace(/:\d+$/, "").replace(/^\[|\]$/g, "")],
  );
  return [...new Set([...hosts, ...addresses])].filter((host) => host !== "");
}

/**
 * URLs at which daemons of machines that are in service reach the config server: each control-plane machine, then the
 * name that machines join by.
 *
 * @param addresses of the control plane.
 */
export function configServerUrls(facts: ConfigServerFacts, addresses: readonly string[]): readonly string[] {
  const authority = configServerAuthority(facts);
  const all = [...addresses.map(withPort), ...(authority === undefined ? [] : [authority])];
  return [...new Set(all)].map((one) => `https://${one}`);
}
