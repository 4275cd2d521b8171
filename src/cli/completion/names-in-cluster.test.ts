import { spawnSync } from "node:child_process";
import { beforeAll, expect, test } from "vitest";
import { serverWithAdmin } from "../../../test/support/server-with-admin.ts";
import { MachineConfig, MachineConfigPool, definedResources, kubernetes } from "../../api/index.ts";
import { labels } from "../../api/names.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { namesInCluster } from "./names-in-cluster.ts";

let kube: KubeClient;

/** Texts that a MachineConfig may hold, and that bash would run where it inserts them. */
const commandsOfShells = [
  "x;id",
  "$(id)",
  "`id`",
  "x|id",
  "x&id",
  "${IFS}",
  "x>y",
  "*",
  "~root",
  "a\\b",
  "'",
  '"',
  "!1",
  "a b",
];

/** Texts that a MachineConfig may hold, and that a command would take for its own flags. */
const flagsOfCommands = ["-h", "--json", "--user=core", "-"];
const hostileTexts = [...commandsOfShells, ...flagsOfCommands];

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
      kernelArguments: ["quiet", ...hostileTexts],
      config: {
        ignition: { version: "3.4.0" },
        storage: {
          files: ["/etc/b", "/etc/a", ...commandsOfShells.map((text) => `/etc/${text}`)].map((path) => ({ path })),
          links: "no list",
        },
        systemd: { units: [{ name: "a.service" }, { name: 7 }, ...hostileTexts.map((name) => ({ name }))] },
        passwd: { users: ["core", ...hostileTexts].map((name) => ({ name })) },
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

test.for(["path", "unit", "user", "kernelArgument"] as const)(
  "no $0 is offered that a shell would run [cli-completion-9]",
  async (kind) => {
    const offered = await namesInCluster(kind, "", kube);
    expect(offered).not.toEqual([]);
    const { stdout } = spawnSync("bash", ["-c", `printf '%s\\n' ${offered.join(" ")}`], { encoding: "utf8" });
    expect(stdout.trimEnd().split("\n")).toEqual(offered);
  },
);

test.for(["path", "unit", "user", "kernelArgument"] as const)(
  "no %s is offered that a command would take for a flag [cli-completion-10]",
  async (kind) => {
    const offered = await namesInCluster(kind, "", kube);
    expect(offered).not.toEqual([]);
    expect(offered.filter((name) => name.startsWith("-"))).toEqual([]);
  },
);

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
