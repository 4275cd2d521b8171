import fc from "fast-check";
import { expect, test } from "vitest";
import { type CertificateSigningRequest, type Node, type Service, kubernetes } from "../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { nodeIdentity, signers } from "../api/names.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import type { AddressOwners } from "../core/join/join-places.ts";
import { foreignHosts, isReleased } from "../core/join/join-places.ts";
import { protectedHosts } from "../core/join/protected-hosts.ts";
import { canonicalHost } from "../core/join/canonical-host.ts";
import type { Caches, Context } from "../kube/controller.ts";
import { requestCertificate } from "../kube/certificates.ts";
import { emptyMemory } from "./join-memory.ts";
import { joinWatches } from "./join-watches.ts";
import { readFacts } from "./observe-join.ts";

interface Cluster {
  readonly nodes: readonly Node[];
  readonly bindings: readonly NodeBinding[];
  readonly services: readonly Service[];
}

/** Caches with the indexes that the watches of the approver declare. */
function cachesOf({ nodes, bindings, services }: Cluster): Caches {
  const watches = joinWatches(emptyMemory());
  const objects = new Map<string, readonly KubeObject[]>([
    [kubernetes.Node.kind, nodes],
    [NodeBinding.kind, bindings],
    [kubernetes.Service.kind, services],
  ]);
  const caches = new Map<string, object>();
  const cacheOf = ({ kind }: Resource<KubeObject>) => {
    const all = objects.get(kind) ?? [];
    const indexes = Object.assign(
      {},
      ...watches.filter(({ resource }) => resource.kind === kind).map((watch) => watch.indexes ?? {}),
    ) as Readonly<Record<string, (object: KubeObject) => readonly string[]>>;
    const found = new Map<string, Map<string, Set<KubeObject>>>();
    for (const [name, valuesOf] of Object.entries(indexes)) {
      const index = new Map<string, Set<KubeObject>>();
      for (const object of all)
        for (const value of valuesOf(object)) index.set(value, (index.get(value) ?? new Set()).add(object));
      found.set(name, index);
    }
    const byKey = new Map(
      all.map((object) => {
        const { namespace, name } = object.metadata;
        return [namespace === undefined ? name : `${namespace}/${name}`, object] as const;
      }),
    );
    return {
      list: () => all,
      get: (key: string) => byKey.get(key),
      byIndex: (index: string, value: string) => [...(found.get(index)?.get(value) ?? [])],
    };
  };
  return {
    of(resource: Resource<KubeObject>) {
      const { kind } = resource;
      if (!caches.has(kind)) caches.set(kind, cacheOf(resource));
      return caches.get(kind);
    },
  } as unknown as Caches;
}

/** As it was before there was an index: everybody is asked. */
function amongAll(name: string, asked: readonly string[], own: readonly string[], cluster: Cluster) {
  const owners: AddressOwners = {
    own,
    nodes: cluster.nodes.map(({ metadata, status }) => ({
      name: metadata.name,
      addresses: (status?.addresses ?? []).map(({ address }) => canonicalHost(address)),
    })),
    bindings: cluster.bindings.filter(({ spec }) => !isReleased(spec)),
    ...protectedHosts({ services: cluster.services, apiServer: [] }, asked),
  };
  return foreignHosts(name, asked, owners);
}

const names = ["w0", "w1", "w2.example.com", "W3"];
const host = fc.constantFrom(
  ...names,
  "10.0.0.1",
  "10.0.0.2",
  "::ffff:10.0.0.1",
  "fd00::1",
  "[FD00:0::1]",
  "lb.example.com.",
);
const time = fc.constantFrom("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z");
const anyCluster: fc.Arbitrary<Cluster> = fc.record({
  nodes: fc.uniqueArray(
    fc.record({ name: fc.constantFrom(...names), addresses: fc.array(host, { maxLength: 3 }) }).map(
      ({ name, addresses }) =>
        ({
          metadata: { name },
          status: { addresses: addresses.map((address) => ({ type: "InternalIP", address })) },
        }) as unknown as Node,
    ),
    { selector: ({ metadata }) => metadata.name, maxLength: 4 },
  ),
  bindings: fc.uniqueArray(
    fc
      .record({
        name: fc.constantFrom(...names),
        addresses: fc.array(host, { maxLength: 3 }),
        joinedAt: time,
        isReleased: fc.boolean(),
      })
      .map(
        ({ name, addresses, joinedAt, isReleased: isGone }) =>
          ({
            metadata: { name },
            spec: {
              pool: "worker",
              publicKey: "",
              expiresAt: "2100-01-01T00:00:00Z",
              addresses,
              joinedAt,
              ...(isGone ? { releasedAt: joinedAt } : {}),
            },
          }) as unknown as NodeBinding,
      ),
    { selector: ({ metadata }) => metadata.name, maxLength: 4 },
  ),
  services: fc.uniqueArray(
    fc
      .record({
        name: fc.constantFrom("a", "b", "c"),
        namespace: fc.constantFrom("x", "y"),
        clusterIP: fc.constantFrom("None", "10.0.0.1", "10.0.0.2", "fd00::1"),
        externalIPs: fc.array(host, { maxLength: 2 }),
        hostname: host,
      })
      .map(
        ({ name, namespace, clusterIP, externalIPs, hostname }) =>
          ({
            metadata: { name, namespace },
            spec: { clusterIP, clusterIPs: [clusterIP], externalIPs },
            status: { loadBalancer: { ingress: [{ hostname }] } },
          }) as unknown as Service,
      ),
    { selector: ({ metadata }) => `${metadata.namespace}/${metadata.name}`, maxLength: 4 },
  ),
});

async function servingRequest(node: string, hosts: readonly string[]): Promise<CertificateSigningRequest> {
  const commonName = `${nodeIdentity.userPrefix}${node}`;
  const { request } = await requestCertificate({ commonName, organizations: [nodeIdentity.group], hosts });
  return {
    metadata: { name: "csr", creationTimestamp: "2030-01-03T00:00:00Z" },
    spec: {
      request: btoa(request),
      signerName: signers.kubeletServing,
      usages: ["digital signature", "server auth"],
      username: commonName,
      groups: [nodeIdentity.group],
    },
  } as unknown as CertificateSigningRequest;
}

test("names and addresses have the owners that a look at everybody finds [controller-join-hosts-1]", async () => {
  const asks = fc.uniqueArray(
    host.map((one) => one.replaceAll(/[[\]]/g, "")),
    { minLength: 1, maxLength: 4 },
  );
  await fc.assert(
    fc.asyncProperty(anyCluster, asks, fc.constantFrom("w0", "w1"), async (cluster, asked, node) => {
      const csr = await servingRequest(node, asked);
      const context = {
        caches: cachesOf(cluster),
        clock: { now: () => Date.parse("2030-01-03T00:00:00Z"), monotonic: () => 0 },
      };
      const { csr: found } = readFacts(csr, emptyMemory(), context as unknown as Context);
      const { others, claimed, contested } = found;
      const { dnsNames = [], ipAddresses = [] } = found.request?.asked ?? {};
      const own = found.binding?.addresses ?? [];
      expect({ others, claimed, contested }).toEqual(amongAll(node, [...dnsNames, ...ipAddresses], own, cluster));
    }),
    { numRuns: 300 },
  );
});

test("the order in which owners come changes no answer [controller-join-hosts-2]", () => {
  fc.assert(
    fc.property(anyCluster, fc.uniqueArray(host, { minLength: 1, maxLength: 6 }), (cluster, asked) => {
      const reversed = {
        nodes: cluster.nodes.toReversed(),
        bindings: cluster.bindings.toReversed(),
        services: cluster.services.toReversed(),
      };
      expect(amongAll("w0", asked, [], reversed)).toEqual(amongAll("w0", asked, [], cluster));
    }),
  );
});

test("a judgement reads those who have a requested host, and lists nobody [controller-join-hosts-3]", async () => {
  const listed: string[] = [];
  const full = cachesOf({ nodes: [], bindings: [], services: [] });
  const caches = {
    of: (resource: Resource<KubeObject>) => ({
      get: (key: string) => full.of(resource).get(key),
      byIndex: (index: string, value: string) => full.of(resource).byIndex(index, value),
      list: () => {
        listed.push(resource.kind);
        return [];
      },
    }),
  } as unknown as Caches;
  const context = { caches, clock: { now: () => 0, monotonic: () => 0 } } as unknown as Context;
  const csr = await servingRequest("w0", ["w0", "10.0.0.1"]);
  readFacts(csr, emptyMemory(), context);
  expect(listed).not.toContain(kubernetes.Service.kind);
  expect(listed).not.toContain(kubernetes.Node.kind);
  expect(listed).not.toContain(NodeBinding.kind);
  expect(listed).not.toContain(ControllerConfig.kind);
});
