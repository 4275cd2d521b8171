import { describe, expect, test } from "vitest";
import { buildNamespace, objects } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import { networkPolicyNames } from "./admission-policies.ts";
import { buildNetworkPolicies, networkPolicies } from "./network-policies.ts";

interface Ports {
  readonly ports?: readonly { readonly protocol: string; readonly port: number }[];
}
interface Policy extends KubeObject {
  readonly spec: {
    readonly podSelector: { readonly matchLabels?: Readonly<Record<string, string>> };
    readonly policyTypes: readonly string[];
    readonly ingress: readonly Ports[];
    readonly egress: readonly Ports[];
  };
}

const policies = networkPolicies({ registryPorts: [443, 5000], proxyPorts: [3128] }) as readonly Policy[];
const portsOf = (rules: readonly Ports[]) => rules.map(({ ports }) => ports?.map(({ port }) => port) ?? "any");

describe("networkPolicies", () => {
  test("make the policies that the admission policy protects", () => {
    expect(policies.map(({ metadata }) => metadata.name)).toEqual(networkPolicyNames);
  });

  test("decide about both directions, of every pod, so that nothing is open that no policy names [attack-network-1]", () => {
    for (const { spec } of policies) expect(spec.policyTypes).toEqual(["Ingress", "Egress"]);
    expect(policies[0]?.spec).toMatchObject({ podSelector: {}, ingress: [], egress: [] });
  });

  const api = [443, 6443];
  const dns = [53, 53, 5353, 5353];
  test.for([
    { app: objects.operator, ingress: [], egress: [api, dns] },
    { app: objects.controller, ingress: [[9443]], egress: [api, dns, [443, 5000, 3128]] },
    { app: objects.state, ingress: [[9444]], egress: [api, dns] },
    { app: objects.osBuilder, ingress: [[9445, 9446]], egress: [api, dns, [443, 5000, 3128]] },
    { app: objects.configServer, ingress: [[22623, 9447]], egress: [api, dns] },
    { app: objects.daemon, ingress: [], egress: ["any"] },
  ])("let $app be reached and reach what it needs, and no more [attack-network-2]", ({ app, ingress, egress }) => {
    const own = policies.filter(({ spec }) => spec.podSelector.matchLabels?.["k8s-app"] === app);
    expect(own.map(({ spec }) => [portsOf(spec.ingress), portsOf(spec.egress)])).toEqual([[ingress, egress]]);
  });

  test("nothing reaches builds, and builds do not reach the API server's own port [attack-network-3]", () => {
    const [policy] = buildNetworkPolicies({ registryPorts: [443, 5000], proxyPorts: [3128] }) as readonly Policy[];
    expect(policy?.metadata.namespace).toBe(buildNamespace);
    expect([portsOf(policy?.spec.ingress ?? [{}]), portsOf(policy?.spec.egress ?? [{}])]).toEqual([
      [],
      [dns, [443, 5000, 3128]],
    ]);
  });
});
