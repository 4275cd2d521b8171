import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import type { Node, Service } from "../../api/foreign/kubernetes.ts";
import { annotations } from "../../api/names.ts";
import { memberAnnotations, memberFacts } from "./member-facts.ts";
import { nodeFields } from "./node-fields.ts";
import { relevantOfMember, trimNode, trimService } from "./trim.ts";

const addresses = (count: number) => Array.from({ length: count }, (_, index) => `fd00::${index.toString(16)}`);

test("a Service and a Node have a few addresses, however many their authors write [attack-joining-40]", () => {
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "front", namespace: "shop" },
    spec: { clusterIP: "10.96.0.1", clusterIPs: ["10.96.0.1"], externalIPs: addresses(50_000) },
    status: { loadBalancer: { ingress: addresses(50_000).map((ip) => ({ ip })) } },
  } as unknown as Service;
  const { spec, status } = trimService(service);
  expect(spec?.externalIPs).toEqual(addresses(64));
  expect(status?.loadBalancer?.ingress).toEqual(addresses(64).map((ip) => ({ ip })));
  expect(spec?.clusterIPs).toEqual(["10.96.0.1"]);

  const node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "w1" },
    status: {
      addresses: [
        { type: "Hostname", address: "x".repeat(100_000) },
        ...addresses(50_000).map((address) => ({ type: "InternalIP", address })),
      ],
    },
  } as unknown as Node;
  expect(trimNode(node).status?.addresses?.map(({ address }) => address)).toEqual(addresses(63));
});

test("the annotations that a member's facts depend on are those that they are made of, and no other [attack-rates-1]", () => {
  const read = new Set<string>();
  const states = ["Done", "Working", "Degraded", ""];
  const drains = ["", "drain-rendered-worker-2", "uncordon-rendered-worker-2"];
  const nodeWith = (notes: Readonly<Record<string, string>>) =>
    ({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "w1", annotations: notes },
      spec: { unschedulable: true },
      status: { conditions: [{ type: "Ready", status: "True" }] },
    }) as unknown as Node;
  for (const state of states)
    for (const drain of drains) {
      const notes = {
        [annotations.state]: state,
        [annotations.desiredDrain]: drain,
        [annotations.currentConfig]: "rendered-worker-1",
        [annotations.desiredConfig]: "rendered-worker-1",
      };
      memberFacts(
        nodeWith(
          new Proxy(notes, { get: (target, key: string) => (read.add(key), target[key as keyof typeof target]) }),
        ),
      );
    }
  expect([...read].sort()).toEqual([...memberAnnotations].sort());

  const before = relevantOfMember(nodeWith({}));
  const counting = nodeFields.flatMap(({ field }) => {
    const [, key] = /^metadata\.annotations\[(.*)\]$/.exec(field) ?? [];
    return key !== undefined && !isDeepStrictEqual(relevantOfMember(nodeWith({ [key]: "x" })), before) ? [key] : [];
  });
  expect(counting.sort()).toEqual([...memberAnnotations].sort());
});
