/** The process that `settings.ts` measures: runs the one case that its argument names, prints what it cost. */
import { readFileSync } from "node:fs";
import type { KubeletConfig } from "../../src/api/kinds/kubelet-config.ts";
import type { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { labels } from "../../src/api/names.ts";
import { judgeRegistryObject } from "../../src/core/preview/judge-registries.ts";
import { problemsOfKubeletConfig } from "../../src/core/preview/judge-settings.ts";
import { renderInputsOf } from "../../src/core/preview/plan-cluster.ts";
import { planSettings } from "../../src/core/preview/plan-settings.ts";
import { kubeletDefaults, ownPolicy, ownRegistriesConf } from "../../src/core/render/base-configs.ts";
import { generatedConfig } from "../../src/core/render/generated-config.ts";
import { renderPool } from "../../src/core/render/render-pool.ts";
import { decideRegistries } from "../../src/core/runtime/decide-registries.ts";
import { noneTaken } from "../../src/core/runtime/uncertain-places.ts";
import { summary } from "./statistics.ts";

const group = "machineconfiguration.openshift.io/v1";
const owner = { apiVersion: group, kind: "ControllerConfig", metadata: { name: "c", uid: "c" } };
const generatorVersion = "bench";
const pool = (name: string): MachineConfigPool => ({
  apiVersion: group,
  kind: "MachineConfigPool",
  metadata: { name, labels: { all: "", [labels.builtInPool]: "" } },
  spec: { machineConfigSelector: { matchLabels: { [labels.role]: name } } },
});
const base = generatedConfig({
  name: "01-worker-kubelet",
  role: "worker",
  owner,
  files: [
    { path: "/etc/kubernetes/kubelet.conf", mode: 0o644, text: JSON.stringify(kubeletDefaults("worker", "10.0.0.10")) },
  ],
  generatorVersion,
});
const kubeletConfig = (settings: object): KubeletConfig => ({
  apiVersion: group,
  kind: "KubeletConfig",
  metadata: { name: "a", uid: "a" },
  spec: { machineConfigPoolSelector: { matchLabels: { all: "" } }, kubeletConfig: settings as never },
});

/** One object of a cluster with one pool: judged, merged, written into a MachineConfig, and rendered. */
function toRendered(turn: number): void {
  const around = { pools: [pool("worker")], machineConfigs: [base] as readonly MachineConfig[] };
  const settings = {
    kubeletConfigs: [kubeletConfig({ maxPods: 100 + turn })],
    containerRuntimeConfigs: [],
    cluster: {},
  };
  const { machineConfigs } = planSettings(around, { ...around, settings });
  rendered(machineConfigs);
}

function rendered(machineConfigs: readonly MachineConfig[]): void {
  const worker = pool("worker");
  const result = renderPool(renderInputsOf(worker, { pools: [worker], machineConfigs, controllerConfig: undefined }));
  if (result.verdict === "refused") throw new Error(JSON.stringify(result.refusals));
}

/** The settings of registries of five pools. */
function mirrors(count: number): void {
  const imageDigestMirrors = Array.from({ length: count }, (_, i) => ({
    source: `registry.example.com/team-${i}/app`,
    mirrors: [`mirror-a.example.com/team-${i}/app`, `mirror-b.example.com/team-${i}/app`],
  }));
  const set = { apiVersion: "config.openshift.io/v1", kind: "ImageDigestMirrorSet", metadata: { name: "m" } };
  const objects = {
    image: undefined,
    digestMirrorSets: [{ ...set, spec: { imageDigestMirrors } }],
    contentSourcePolicies: [],
    tagMirrorSets: [],
    clusterImagePolicies: [],
    imagePolicies: [],
    releaseImage: undefined,
  };
  for (const name of ["master", "worker", "infra", "gpu", "edge"]) {
    const texts = { registries: ownRegistriesConf, policy: ownPolicy, taken: noneTaken };
    const decision = decideRegistries({
      pool: name,
      objects,
      base: texts,
      present: undefined,
      owner,
      generatorVersion,
    });
    if (decision.do !== "write") throw new Error(JSON.stringify(decision));
  }
}

/** The 1.5 MiB that etcd takes, less some room for the object around the settings. */
const mostBytes = 1_570_000;
const listOf = (length: number, item: (i: number) => unknown): readonly unknown[] =>
  Array.from({ length }, (_, i) => item(i));
const mapOf = (length: number, value: (i: number) => readonly [string, unknown]): object =>
  Object.fromEntries(Array.from({ length }, (_, i) => value(i)));
interface LargestForm {
  /** The part of the object that is as large as an object may be. */
  readonly make: () => object;
  /** Judges an object with that part, as JSON gave it. */
  readonly judge: (part: object) => unknown;
  readonly kind: string;
}
const ofKubelet = (make: () => object): LargestForm => ({
  kind: "KubeletConfig",
  make,
  judge: (settings) => problemsOfKubeletConfig(kubeletConfig(settings)),
});
const ofRegistries = (kind: string, make: () => object): LargestForm => ({
  kind,
  make,
  judge(spec) {
    const after = { apiVersion: "config.openshift.io/v1", kind, metadata: { name: "cluster" }, spec };
    return judgeRegistryObject({ before: undefined, after }, undefined);
  },
});
/** One field with as many entries as an object holds, in forms from cheap to dear; as JSON, as a server gets it. */
const largest: Readonly<Record<string, LargestForm>> = {
  "text in a list": ofKubelet(() => ({ allowedUnsafeSysctls: listOf(80_000, (i) => `net.core.x${i}`) })),
  "headers of static pods": ofKubelet(() => ({
    staticPodURLHeader: mapOf(27_000, (i) => [`x-header-number-${i}`, [`a value with the number ${i}`]]),
  })),
  taints: ofKubelet(() => ({
    registerWithTaints: listOf(23_000, (i) => ({ key: `example.com/t${i}`, value: "v", effect: "NoSchedule" })),
  })),
  "feature gates": ofKubelet(() => ({ featureGates: mapOf(92_000, (i) => [`Gate${i}`, true]) })),
  "quantities of memory": ofKubelet(() => ({
    reservedMemory: listOf(33_000, (i) => ({ numaNode: i, limits: { memory: "1Gi" } })),
  })),
  "unknown fields": ofKubelet(() => mapOf(100_000, (i) => [`field${i}`, 1])),
  "items of a wrong type": ofKubelet(() => ({ allowedUnsafeSysctls: listOf(500_000, () => ({})) })),
  "parts of a duration": ofKubelet(() => ({ syncFrequency: "1s".repeat(780_000) })),
  "folders of a path": ofKubelet(() => ({ podLogsDir: "/a".repeat(780_000) })),
  "headers without values": ofKubelet(() => ({ staticPodURLHeader: mapOf(105_000, (i) => [`h${i}`, null]) })),
  "options of a policy": ofKubelet(() => ({
    topologyManagerPolicyOptions: mapOf(80_000, (i) => [`option-${i}`, "x"]),
  })),
  "taints that say nothing": ofKubelet(() => ({ registerWithTaints: listOf(500_000, () => ({})) })),
  "levels of modules that say nothing": ofKubelet(() => ({ logging: { vmodule: listOf(500_000, () => ({})) } })),
  "unknown enforcements": ofKubelet(() => ({ enforceNodeAllocatable: listOf(165_000, (i) => `p${i}`) })),
  "resources of a reservation": ofKubelet(() => ({
    reservedMemory: [{ limits: mapOf(135_000, (i) => [`r${i}`, 1]) }],
  })),
  "headers of a wrong type": ofKubelet(() => ({ staticPodURLHeader: mapOf(135_000, (i) => [`h${i}`, 1]) })),
  "reserved CPUs": ofKubelet(() => ({ reservedSystemCPUs: `1${",1".repeat(750_000)}` })),
  "blocked registries": ofRegistries("Image", () => ({
    registrySources: { blockedRegistries: listOf(68_000, (i) => `r${i}.example.com/a`) },
  })),
  "sources with a mirror": ofRegistries("ImageDigestMirrorSet", () => ({
    imageDigestMirrors: listOf(23_000, (i) => ({ source: `r.example.com/a${i}`, mirrors: [`m.example.com/a${i}`] })),
  })),
};
function largestText(form: string): string {
  const text = JSON.stringify(largest[form]?.make());
  if (text.length > mostBytes || text.length < 0.9 * mostBytes) throw new Error(`${form}: ${text.length} bytes`);
  return text;
}

const cases: Readonly<Record<string, (turn: number) => void>> = {
  "a MachineConfig with the same file to rendered config (baseline)": () => rendered([base]),
  "one KubeletConfig to rendered config": toRendered,
  "a mirror set with 1 source for 5 pools (baseline)": () => mirrors(1),
  "a mirror set with 200 sources for 5 pools": () => mirrors(200),
  "one KubeletConfig validated": (turn) => void problemsOfKubeletConfig(kubeletConfig({ maxPods: turn + 1 })),
};
const article = (kind: string): string => (kind.startsWith("I") ? "an" : "a");
/** What the largest objects cost: what a case works on is made again for each turn, which does not count. */
const ofLargest: Readonly<
  Record<string, { readonly form: string; readonly prepare: (text: string) => () => unknown }>
> = Object.fromEntries(
  Object.entries(largest).flatMap(([form, { kind, judge }]) => [
    [
      `1.5 MiB of ${form}: JSON.parse (baseline)`,
      { form, prepare: (text: string) => () => JSON.parse(text) as unknown },
    ],
    [
      `1.5 MiB of ${form}: ${article(kind)} ${kind} validated`,
      {
        form,
        prepare: (text: string) => {
          const part = JSON.parse(text) as object;
          return () => judge(part);
        },
      },
    ],
  ]),
);
/** Makes the turns of a case. */
function turnsOf(name: string): (turn: number) => () => unknown {
  const work = cases[name];
  if (work !== undefined) return (turn) => () => work(turn);
  const one = ofLargest[name];
  if (one === undefined) throw new Error(`there is no case ${name}`);
  const text = largestText(one.form);
  return () => one.prepare(text);
}

const [name = ""] = process.argv.slice(2);
if (name === "") process.stdout.write(JSON.stringify([...Object.keys(cases), ...Object.keys(ofLargest)]));
else {
  const turns = turnsOf(name);
  const times: number[] = [];
  for (let turn = 0; turn < 60; turn += 1) {
    const work = turns(turn);
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    // The first ones compile what they run.
    if (turn >= 10) times.push((user + system) / 1000);
  }
  const peakKiB = Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
  process.stdout.write(JSON.stringify({ milliseconds: summary(times), peak: Math.round(peakKiB / 102.4) / 10 }));
}
