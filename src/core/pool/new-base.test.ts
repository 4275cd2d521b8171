import { expect, test } from "vitest";
import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations } from "../../api/names.ts";
import { factsOf, rolloutPolicy } from "./pool-queries.ts";

const image = (letter: string) => `registry.example.com/os@sha256:${letter.repeat(64)}`;
const old = image("1");
const target = image("2");
/** Another image of the pool, and one of another pool, both on the base of the target. */
const before = image("3");
const others = image("4");

const pool = (name: string) =>
  ({
    metadata: { name },
    spec: {
      maxUnavailable: 3,
      nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } },
      configuration: { name: `rendered-${name}-2` },
    },
  }) as unknown as MachineConfigPool;

const build = (of: string, config: string, pushed: string, base: string) =>
  ({
    metadata: {
      name: `${of}-${pushed.at(-1) ?? ""}`,
      creationTimestamp: "2030-01-01T00:00:00Z",
      annotations: { [annotations.keyInputs]: JSON.stringify({ base }) },
    },
    spec: { machineOSConfig: { name: of }, machineConfig: { name: config } },
    status: {
      digestedImagePushSpec: pushed,
      conditions: [{ type: "Succeeded", status: "True", reason: "Ready", message: "" }],
    },
  }) as unknown as MachineOSBuild;

const imageConfig = (name: string, of: string) =>
  ({
    metadata: { name },
    spec: { machineConfigPool: { name } },
    status: { machineOSBuild: { name: `${name}-${of.at(-1) ?? ""}` }, currentImagePullSpec: of, conditions: [] },
  }) as unknown as MachineOSConfig;

const machine = (name: string, says: string) =>
  ({
    metadata: {
      name,
      uid: name,
      labels: { "node-role.kubernetes.io/worker": "" },
      annotations: {
        [annotations.currentConfig]: "rendered-worker-1",
        [annotations.desiredConfig]: "rendered-worker-1",
        [annotations.state]: "Done",
        [annotations.currentImage]: says,
        [annotations.desiredImage]: old,
      },
    },
    spec: {},
    status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2030-01-01T00:00:00Z" }] },
  }) as unknown as Node;

const record = (name: string, given: readonly string[], uid = name) =>
  ({
    metadata: {
      name,
      annotations: { [annotations.givenConfigs]: given.join(" ") },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid }],
    },
    spec: { node: { name }, pool: { name: "worker" }, configVersion: { desired: "rendered-worker-1" } },
  }) as unknown as MachineConfigNode;

/** How many machines go first, where w0 says that it runs an image, and the controller has a record of it. */
function canaries(says: string, w0: MachineConfigNode): number {
  const names = ["w0", "w1", "w2", "w3"];
  const facts = factsOf(
    {
      pools: [pool("worker"), pool("infra")],
      nodes: names.map((name) => machine(name, name === "w0" ? says : old)),
      machineConfigNodes: [w0, ...names.slice(1).map((name) => record(name, ["rendered-worker-1"]))],
      machineOSConfigs: [imageConfig("worker", target), imageConfig("infra", others)],
      machineOSBuilds: [
        build("worker", "rendered-worker-1", old, "sha256:a"),
        build("worker", "rendered-worker-2", target, "sha256:b"),
        build("worker", "rendered-worker-0", before, "sha256:b"),
        build("infra", "rendered-infra-2", others, "sha256:b"),
      ],
    } as never,
    Date.parse("2030-02-01T00:00:00Z"),
  );
  return rolloutPolicy(facts, pool("worker")).canary?.count ?? 0;
}

test.each([
  { what: "runs an older one", says: old, given: ["rendered-worker-1"] },
  { what: "names an image of another pool", says: others, given: ["rendered-worker-1", "rendered-infra-2"] },
  { what: "names one that it was never given", says: before, given: ["rendered-worker-1"] },
])("a new base goes to one machine first, though a machine $what [pool-new-base-1]", ({ says, given }) => {
  expect(canaries(says, record("w0", given))).toBe(1);
});

test("a base is known where a machine runs an image on it of a configuration that it was given [pool-new-base-2]", () => {
  const given = ["rendered-worker-1", "rendered-worker-0"];
  expect(canaries(before, record("w0", given))).toBe(0);
  // The record is of a former machine of that name.
  expect(canaries(before, record("w0", given, "former"))).toBe(1);
});
