import { buildNamespace, namespace, objects } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import { buildNetworkPolicy, type networkPolicyNames } from "./admission-policies.ts";
import { admission, builderMetrics, builderStatusPort, configServerPorts, stateMetrics } from "./manifests.ts";

/** What follows from the cluster's settings. */
export interface NetworkInputs {
  /** Where registries listen that the builder reads from and writes to. */
  readonly registryPorts: readonly number[];
  /** Where the cluster's proxies listen, through which the builder reaches registries. */
  readonly proxyPorts: readonly number[];
}

/** Ports of the API server: the one of its Service, and the one of its endpoints, which policies compare. */
const apiServerPorts = [443, 6443];
/** Of name servers, and of the pods that OpenShift's Service for them leads to. */
const dnsPorts = [53, 5353];

const registriesAt = ({ registryPorts, proxyPorts }: NetworkInputs) => ({
  ports: [...new Set([...registryPorts, ...proxyPorts])].map(tcp),
});

const tcp = (port: number) => ({ protocol: "TCP", port });
const apiServer = { ports: apiServerPorts.map(tcp) };
const dns = { ports: dnsPorts.flatMap((port) => [tcp(port), { protocol: "UDP", port }]) };

/**
 * The ports of each component for incoming and outgoing connections. Addresses are not limited: no selector names the
 * API server, and readers of metrics are in namespaces that the suite does not know.
 */
export function networkPolicies(inputs: NetworkInputs): readonly KubeObject[] {
  const policy = (name: (typeof networkPolicyNames)[number], spec: object) => ({
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name, namespace },
    spec: { policyTypes: ["Ingress", "Egress"], ...spec },
  });
  const component = (app: string, ports: readonly number[], egress: readonly object[] = [apiServer, dns]) => ({
    podSelector: { matchLabels: { "k8s-app": app } },
    ingress: ports.length === 0 ? [] : [{ ports: ports.map(tcp) }],
    egress,
  });
  const registries = registriesAt(inputs);
  return [
    policy("default-deny", { podSelector: {}, ingress: [], egress: [] }),
    policy("allow-machine-config-operator", component(objects.operator, [])),
    policy(
      "allow-machine-config-controller",
      component(objects.controller, [admission.port], [apiServer, dns, registries]),
    ),
    // Most networks apply no policy to pods on the network of their machine; those that do must let these two work.
    policy(
      "allow-machine-config-server",
      component(objects.configServer, [configServerPorts.config, configServerPorts.metrics]),
    ),
    // It pulls from whichever registry a configuration names.
    policy("allow-machine-config-daemon", component(objects.daemon, [], [{}])),
    policy(
      "allow-machine-os-builder",
      component(objects.osBuilder, [builderStatusPort, builderMetrics.port], [apiServer, dns, registries]),
    ),
    policy("allow-machine-state-controller", component(objects.state, [stateMetrics.port])),
  ] as unknown as readonly KubeObject[];
}

/** Nothing reaches builds; they reach registries (and package sources on the same ports), but not the API server. */
export const buildNetworkPolicies = (inputs: NetworkInputs): readonly KubeObject[] =>
  [
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: buildNetworkPolicy, namespace: buildNamespace },
      spec: {
        podSelector: {},
        policyTypes: ["Ingress", "Egress"],
        ingress: [],
        egress: [dns, registriesAt(inputs)],
      },
    },
  ] as unknown as readonly KubeObject[];
