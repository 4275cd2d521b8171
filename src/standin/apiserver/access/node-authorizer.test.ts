import { expect, test } from "vitest";
import { liveObjects } from "../storage/live-objects.ts";
import { memoryStore } from "../storage/memory-store.ts";
import { nodeAuthorizer } from "./node-authorizer.ts";

const pod = (name: string, volumes: readonly object[]) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "ns" },
  spec: { nodeName: "n", containers: [{ name: "c", image: "i" }], volumes },
});
const keyOf = (name: string) => ({ resource: "pods", namespace: "ns", name });

test("a node with large pods is asked about as fast as any other [apiserver-node-authorizer-1]", () => {
  const live = liveObjects(memoryStore());
  const nodes = nodeAuthorizer(live);
  const mayRead = (name: string) =>
    nodes.allows(
      "n",
      {
        user: { name: "system:node:n", groups: ["system:nodes"] },
        verb: "get",
        group: "",
        resource: "secrets",
        subresource: "",
        namespace: "ns",
        name,
      },
      undefined,
    );
  const volumes = Array.from({ length: 30_000 }, (_, i) => ({ name: `v${i}`, secret: { secretName: `s${i}` } }));
  for (let i = 0; i < 10; i += 1) live.create(keyOf(`p${i}`), pod(`p${i}`, volumes));
  expect(mayRead("s7")).toBe(true);
  const began = process.cpuUsage();
  for (let i = 0; i < 50; i += 1) expect(mayRead("other")).toBe(false);
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(1);

  // A pod that changes needs what it names now.
  const made = live.create(keyOf("q"), pod("q", []));
  expect(mayRead("later")).toBe(false);
  if (made.outcome !== "written") throw new Error(made.outcome);
  live.update(keyOf("q"), made.live.revision, pod("q", [{ name: "v", secret: { secretName: "later" } }]));
  expect(mayRead("later")).toBe(true);
});

test("an identity without the name of a node has no rights of nodes [apiserver-node-authorizer-2]", () => {
  const nodes = nodeAuthorizer(liveObjects(memoryStore()));
  const mayList = (resource: string, node: string) =>
    nodes.allows(
      node,
      {
        user: { name: `system:node:${node}`, groups: ["system:nodes"] },
        verb: "list",
        group: "",
        resource,
        subresource: "",
        namespace: "",
        name: resource === "nodes" ? node : "",
      },
      resource === "pods" ? node : undefined,
    );
  expect([mayList("pods", "a"), mayList("nodes", "a")]).toEqual([true, true]);
  // A list has no name either, and a pod that waits for its node has none.
  expect([mayList("pods", ""), mayList("nodes", "")]).toEqual([false, false]);
});
