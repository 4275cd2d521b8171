import { parse } from "yaml";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { ConfigMap } from "../../api/foreign/kubernetes.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations } from "../../api/names.ts";
import { isRecord } from "../../ignition/shape.ts";
import { configServerAuthority, withPort } from "./pointer-config.ts";

/** Whom the config server gives configurations: those with a credential, or, as the reference does, everybody. */
export type ConfigServerAccess = "required" | "insecure";

/** What an administrator has set; a word that is none of the two leaves it secure, and is told of. */
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
  /** Where the suite itself reaches the API server: machines reach it there too if nothing says otherwise. */
  readonly ownServer: string;
  /** `host` or `host:port` that machines were told when the suite was installed. */
  readonly installedAddress: string | undefined;
}

/**
 * Where kubelets of machines that join reach the API server. Source of the names: openshift/api
 * config/v1/types_infrastructure.go, kubernetes/kubernetes cmd/kubeadm (master).
 */
export function apiServerForMachines({ controllerConfig, clusterInfo, ownServer }: ConfigServerFacts): string {
  const status = controllerConfig?.spec.infra?.["status"];
  const internal = isRecord(status) ? status["apiServerInternalURI"] : undefined;
  if (typeof internal === "string" && isServer(internal)) return internal;
  return serverIn(clusterInfo?.data?.["kubeconfig"]) ?? ownServer;
}

const isServer = (text: string) => /^https:\/\/(\[[\da-f:.]+\]|[^\s/:@[\]]+)(:\d{1,5})?\/?$/i.test(text);

function serverIn(kubeconfig: string | undefined): string | undefined {
  if (kubeconfig === undefined || kubeconfig.length > 1_000_000) return undefined;
  try {
    const read: unknown = parse(kubeconfig, { maxAliasCount: 0 });
    const clusters: readonly unknown[] = isRecord(read) && Array.isArray(read["clusters"]) ? read["clusters"] : [];
    const [first] = clusters;
    const cluster = isRecord(first) ? first["cluster"] : undefined;
    const server = isRecord(cluster) ? cluster["server"] : undefined;
    return typeof server === "string" && isServer(server) ? server : undefined;
  } catch {
    return undefined;
  }
}

/** Names and addresses that the config server may be reached by, beside those of the machines that it runs on. */
export function configServerHosts(facts: ConfigServerFacts): readonly string[] {
  const authorities = [
    configServerAuthority(facts),
    facts.installedAddress === undefined ? undefined : withPort(facts.installedAddress),
  ];
  const status = facts.controllerConfig?.spec.infra?.["status"];
  const platform =
    isRecord(status) && isRecord(status["platformStatus"])
      ? Object.values(status["platformStatus"]).filter(isRecord)
      : [];
  const addresses = platform
    .flatMap((one) =>
      Array.isArray(one["apiServerInternalIPs"]) ? (one["apiServerInternalIPs"] as readonly unknown[]) : [],
    )
    .filter((address) => typeof address === "string");
  const hosts = authorities.flatMap((authority) =>
    authority === undefined ? [] : [authority.replace(/:\d+$/, "").replace(/^\[|\]$/g, "")],
  );
  return [...new Set([...hosts, ...addresses])].filter((host) => host !== "");
}
