import { expect, test } from "vitest";
import type { Node, Service } from "../../api/foreign/kubernetes.ts";
import { trimNode, trimService } from "./trim.ts";

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
