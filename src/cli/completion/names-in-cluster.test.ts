import { beforeAll, expect, test } from "vitest";
import { serverWithAdmin } from "../../../test/support/server-with-admin.ts";
import { MachineConfig, MachineConfigPool, definedResources, kubernetes } from "../../api/index.ts";
import { labels } from "../../api/names.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { namesInCluster } from "./names-in-cluster.ts";

let kube: KubeClient;

beforeAll(async () => {
  ({ kube } = serverWithAdmin());
  for (const resource of definedResources)
    await kube.create(kubernetes.CustomResourceDefinition, resource.crd() as never);
  const rendered = "rendered-worker-1";
  await kube.create(MachineConfig, {
    apiVersion: MachineConfig.apiVersion,
    kind: MachineConfig.kind,
    metadata: { name: rendered },
    spec: {
      kernelArguments: ["quiet"],
      config: {
        ignition: { version: "3.4.0" },
        storage: { files: [{ path: "/etc/b" }, { path: "/etc/a" }], links: "no list" },
        systemd: { units: [{ name: "a.service" }, { name: 7 }] },
        passwd: { users: [{ name: "core" }] },
      },
    },
  } as never);
  for (const name of ["worker", "infra"])
    await kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: MachineConfigPool.kind,
      metadata: { name },
      spec: { machineConfigSelector: { matchLabels: { [labels.role]: name } }, configuration: { name: rendered } },
    });
  await kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "worker-0" } });
});

test.for([
  { kind: "pool", typed: "", is: ["infra", "worker"] },
  { kind: "build", typed: "", is: ["infra", "worker"] },
  { kind: "machineConfig", typed: "", is: ["rendered-worker-1"] },
  { kind: "subject", typed: "pool/w", is: ["pool/infra", "pool/worker"] },
  { kind: "subject", typed: "constructor/w", is: [] },
  { kind: "book", typed: "node/", is: ["node/worker-0"] },
  { kind: "path", typed: "/e", is: ["/etc/a", "/etc/b"] },
  { kind: "unit", typed: "", is: ["a.service"] },
  { kind: "user", typed: "", is: ["core"] },
  { kind: "kernelArgument", typed: "", is: ["quiet"] },
  { kind: "token", typed: "", is: [] },
  { kind: "boundName", typed: "", is: [] },
  { kind: "osImageStream", typed: "", is: [] },
] as const)("a shell is offered each $kind behind '$typed' [cli-completion-8]", async ({ kind, typed, is }) => {
  expect(await namesInCluster(kind, typed, kube)).toEqual(is);
});
