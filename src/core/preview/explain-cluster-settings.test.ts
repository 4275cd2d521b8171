import { expect, test } from "vitest";
import { openshift } from "../../api/foreign/openshift.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { clusterSettings, kubeletBaseOf, type ObjectsOfCluster } from "../kubelet/cluster-settings.ts";
import { decideDefaults } from "../kubelet/decide-defaults.ts";
import { generatedConfig } from "../render/generated-config.ts";
import { explainClusterSetting } from "./explain-cluster-settings.ts";

const object = <S>(kind: string, spec: S, name = "cluster") => ({
  apiVersion: "config.openshift.io/v1",
  kind,
  metadata: { name, uid: kind },
  spec,
});
const base = generatedConfig({
  name: "01-worker-kubelet",
  role: "worker",
  owner: object("ControllerConfig", {}),
  files: [{ path: "/etc/kubernetes/kubelet.conf", mode: 0o644, text: "kind: KubeletConfiguration\nmaxPods: 250\n" }],
  generatorVersion: "v1",
});
const pools = [{ metadata: { name: "worker" } }];

/** What the controller writes for the pool. */
function written(cluster: ObjectsOfCluster): readonly MachineConfig[] {
  const settings = clusterSettings(cluster);
  const reading = kubeletBaseOf("worker", settings, () => base);
  if (reading === undefined) throw new Error("no base");
  return decideDefaults({ pool: "worker", objects: cluster, settings, base: reading, generatorVersion: "v1" }).configs;
}

const gates = object("FeatureGate", { customNoUpgrade: { enabled: ["NodeSwap"], disabled: ["NoSuchGate"] } });
const node = (spec: object) => object(openshift.ConfigNode.kind, spec);
const apiServer = object("APIServer", { tlsSecurityProfile: { type: "Modern" } });
const alone: ObjectsOfCluster = { apiServer, tlsProfile: { type: "Modern" } };

test.for([
  {
    about: gates,
    cluster: { featureGate: gates },
    reason: "AsWritten",
    says: "98-worker-generated-kubelet",
    shows: ["gates on: NodeSwap"],
  },
  {
    about: node({ workerLatencyProfile: "MediumUpdateAverageReaction" }),
    cluster: undefined,
    reason: "AsWritten",
    says: "97-worker-generated-kubelet",
    shows: ["cgroup mode v2, as none is named", "worker latency profile MediumUpdateAverageReaction"],
  },
  {
    about: node({ cgroupMode: "v1" }),
    cluster: undefined,
    reason: "Invalid",
    says: "spec.cgroupMode must be v2 or empty",
    todo: "kubectl edit nodes.config cluster",
  },
  {
    about: apiServer,
    cluster: alone,
    reason: "AsWritten",
    says: "96-worker-generated-kubelet",
    shows: ["minimum TLS version VersionTLS13"],
  },
  {
    about: apiServer,
    cluster: { ...alone, featureGate: gates },
    reason: "NothingToWrite",
    says: "its TLS profile is in those of the FeatureGate",
  },
  { about: object("FeatureGate", {}, "other"), cluster: {}, reason: "NotRead", says: "is not read" },
])("$about.kind: $reason, $says [explain-cluster-settings-1]", ({ about, cluster, reason, says, shows = [], todo }) => {
  const objects: ObjectsOfCluster = cluster ?? { configNode: about };
  const explained = explainClusterSetting(about, objects, { pools, machineConfigs: [base, ...written(objects)] }, 0);
  expect(explained.reason).toBe(reason);
  expect(explained.headline).toContain(says);
  expect(explained.todo.join(";")).toContain(todo ?? "");
  const lines = explained.sections.flatMap((section) => section.lines);
  for (const line of shows) expect(lines.some((one) => one.startsWith(line))).toBe(true);
});

test("gates that no kubelet has are named; what is not written yet is awaited [explain-cluster-settings-2]", () => {
  const cluster = { featureGate: gates };
  const early = explainClusterSetting(gates, cluster, { pools, machineConfigs: [base] }, 0);
  expect([early.reason, early.next.length, early.todo]).toEqual(["NotWritten", 1, []]);
  expect(early.sections.find(({ title }) => title === "Left out")?.lines).toEqual([
    expect.stringContaining("spec.customNoUpgrade.disabled: NoSuchGate"),
  ]);
  const none = explainClusterSetting(gates, cluster, { pools, machineConfigs: [] }, 0);
  expect([none.reason, none.headline]).toEqual([
    "BaseConfigMissing",
    "FeatureGate/cluster waits for the base configuration of pool worker.",
  ]);
});
