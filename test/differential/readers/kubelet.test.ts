import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type GoStruct, type GoType, kubeletConfiguration } from "../../../src/core/kubelet/kubelet-fields.ts";
import { featureGates } from "../../../src/core/kubelet/feature-gates.ts";
import { judgeKubeletConfiguration } from "../../../src/core/kubelet/validate-kubelet.ts";
import { askKubelet, goKubeletProgram } from "../../support/go-kubelet.ts";
import { runs } from "./runs.ts";

const program = goKubeletProgram();
const sample = runs(1000, 20_000);

/** Values at the bounds of the rules, and some that are of no rule. */
const words = [
  "",
  "none",
  "pod",
  "container",
  "static",
  "Static",
  "None",
  "restricted",
  "best-effort",
  "single-numa-node",
  "node",
  "hairpin-veth",
  "promiscuous-bridge",
  "NoSwap",
  "LimitedSwap",
  "noswap",
  "text",
  "json",
  "xml",
  "1.33",
  "1.34",
  "1.33.1",
  "/",
  "/var/log/pods",
  "/a//b",
  "/a/../b",
  "a/b",
  "/é",
  "0-3,8",
  "3-1",
  "0-",
  "+1",
  "a",
  "x=1",
  "x,y",
  "localhost:4317",
  "unix:///run/x",
  "http://h:1",
  "dns:///h",
  "//",
  "%zz",
  "NeverVerify",
  "NeverVerifyAllowlistedImages",
  "AlwaysVerify",
  "NoSchedule",
  "Sometimes",
  "example.com/key",
  "-bad",
  "10Mi",
  "0.5",
  "50%",
] as const;
const durations = [
  "0s",
  "0",
  "1ms",
  "999us",
  "100ms",
  "1s",
  "1.5s",
  "3s",
  "2.999s",
  "30s",
  "5m",
  "300s",
  "301s",
  "1h30m",
  "-1s",
  "10",
  "",
  "1d",
  "s",
];
const quantities = ["0", "1", "64Ki", "1Gi", "500m", "1e3", "-1", "", "x", 0, 5];
const numbers = [
  -2147483649, -1001, -1000, -2, -1, 0, 1, 2, 3, 31, 32, 40, 80, 85, 99, 100, 101, 1000, 1001, 65_535, 65_536, 131_072,
  1_000_000, 1_000_001, 2147483647, 2147483648, 4294967295, 4294967296, 0.5,
];
const enforcements = [
  "pods",
  "none",
  "system-reserved",
  "system-reserved-compressible",
  "kube-reserved",
  "kube-reserved-compressible",
  "x",
];
const imagePatterns = [
  "quay.io/a",
  "quay.io/*",
  "*",
  "quay.io/a:1",
  " quay.io/a",
  "a",
  "docker.io/library/a",
  "/*",
  "a*/b",
];

/** What JSON has in place of a value of another type. */
const misfit = fc.constantFrom<unknown>(null, "yes", 1, true, [], {}, ["a"], 1.5);

function valueOf(type: GoType, name: string): fc.Arbitrary<unknown> {
  const right = rightValueOf(type, name);
  return fc.oneof({ weight: 30, arbitrary: right }, { weight: 1, arbitrary: misfit });
}

function rightValueOf(type: GoType, name: string): fc.Arbitrary<unknown> {
  if (typeof type !== "string") {
    if ("list" in type) {
      const items =
        name === "enforceNodeAllocatable"
          ? fc.constantFrom(...enforcements)
          : name === "preloadedImagesVerificationAllowlist"
            ? fc.constantFrom(...imagePatterns)
            : valueOf(type.list, name);
      return fc.array(items, { maxLength: 3 });
    }
    if ("map" in type) return mapOf(type.map, name);
    return structOf(type, 3);
  }
  switch (type.replace("*", "")) {
    case "bool":
      return fc.boolean();
    case "duration":
    case "timeOrDuration":
      return fc.constantFrom<unknown>(...durations);
    case "quantity":
      return fc.constantFrom<unknown>(...quantities);
    case "time":
      return fc.constantFrom("2026-01-02T03:04:05Z", "yesterday");
    case "string":
      return fc.constantFrom(...words);
    default:
      return fc.constantFrom(...numbers);
  }
}

function mapOf(type: GoType, name: string): fc.Arbitrary<unknown> {
  const gates = [...featureGates.on, ...featureGates.off, "NoSuchGate"].filter(
    (gate) => !new Set<string>(featureGates.locked).has(gate) || gate < "C",
  );
  const keys =
    name === "featureGates"
      ? fc.constantFrom(...used, ...gates)
      : name === "limits"
        ? fc.constantFrom("memory", "hugepages-2Mi", "cpu")
        : fc.constantFrom("memory.available", "cpu", "memory", "x");
  return fc.dictionary(keys, valueOf(type, name), { maxKeys: 3 });
}

/** Gates that rules ask for. */
const used = [
  "CustomCPUCFSQuotaPeriod",
  "ImageMaximumGCAge",
  "RotateKubeletServerCertificate",
  "GracefulNodeShutdown",
  "GracefulNodeShutdownBasedOnPodPriority",
  "NodeSwap",
  "KubeletCrashLoopBackOffMax",
  "KubeletEnsureSecretPulledImages",
  "NodeLogQuery",
  "MemoryQoS",
  "LoggingAlphaOptions",
  "LoggingBetaOptions",
  "AllAlpha",
  "AllBeta",
];

function structOf({ struct }: GoStruct, most: number): fc.Arbitrary<unknown> {
  const members = Object.entries(struct);
  return fc.uniqueArray(fc.nat(members.length - 1), { maxLength: most }).chain((chosen) =>
    fc.record(
      Object.fromEntries(
        chosen.flatMap((index) => {
          const [name, type] = members[index] ?? [];
          return name === undefined || type === undefined ? [] : [[name, valueOf(type, name)]];
        }),
      ),
    ),
  );
}

const configs = structOf(kubeletConfiguration, 6).map((config) => ({
  ...(config as object),
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
}));

/** Configurations whose one list or map has 1.5 MiB: of one right value, and of that with another one at its end. */
function largest(name: string, type: GoType): readonly object[] {
  if (typeof type === "string" || "struct" in type) return [];
  const item = "list" in type ? type.list : type.map;
  const [right = "x"] = fc.sample(rightValueOf(item, name), { numRuns: 1, seed: 7 });
  const size = JSON.stringify(right).length + ("list" in type ? 1 : '"key-123456":,'.length);
  const count = Math.ceil((1.5 * 2 ** 20) / size);
  const filled = (last: unknown): object => {
    const items = Array.from({ length: count }, (_, i) => (i === count - 1 ? last : right));
    return {
      [name]: "list" in type ? items : Object.fromEntries(items.map((value, i) => [`key-${i + 100_000}`, value])),
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      kind: "KubeletConfiguration",
    };
  };
  const [last] = fc.sample(valueOf(item, name), { numRuns: 1, seed: 11 });
  return [filled(right), filled(last)];
}

describe.skipIf(program === undefined)("the judgement of a KubeletConfiguration, beside the kubelet's own", () => {
  test("takes nothing that the kubelet refuses, and refuses next to nothing that it takes [readers-kubelet-1]", async () => {
    if (program === undefined) return;
    const drawn = fc.sample(configs, sample.numRuns === undefined ? sample : { ...sample, numRuns: sample.numRuns });
    const answers = await askKubelet(program, drawn);
    expect(answers).toHaveLength(drawn.length);
    const wrong: string[] = [];
    let [refused, tooStrict] = [0, 0];
    drawn.forEach((config, i) => {
      const { problems } = judgeKubeletConfiguration(config);
      const error = answers[i]?.error;
      if (error !== undefined) refused += 1;
      if (error !== undefined && problems.length === 0) wrong.push(`${JSON.stringify(config)}: ${error.slice(0, 300)}`);
      if (error === undefined && problems.length > 0) {
        tooStrict += 1;
        wrong.push(
          `${JSON.stringify(config)}: taken, but ${problems.map(({ path, reason }) => `${path} ${reason}`).join("; ")}`,
        );
      }
    });
    process.stdout.write(
      `kubelet: ${drawn.length} configurations, ${refused} refused, ${tooStrict} refused only here\n`,
    );
    expect(wrong.slice(0, 5)).toEqual([]);
    expect(refused / drawn.length).toBeGreaterThan(0.4);
  }, 600_000);

  test("the largest objects, each list and map filled to 1.5 MiB, get the kubelet's verdict [readers-kubelet-2]", async () => {
    if (program === undefined) return;
    const drawn = Object.entries(kubeletConfiguration.struct).flatMap(([name, type]) => largest(name, type));
    expect(drawn.length).toBeGreaterThan(30);
    for (const config of drawn) expect(JSON.stringify(config).length).toBeGreaterThanOrEqual(1.5 * 2 ** 20 - 100);
    const answers = await askKubelet(program, drawn);
    const verdicts = (refused: (config: object, i: number) => boolean) =>
      drawn.map((config, i) => `${Object.keys(config)[0]} ${i}: ${refused(config, i) ? "refused" : "taken"}`);
    const theirs = verdicts((_, i) => answers[i]?.error !== undefined);
    expect(verdicts((config) => judgeKubeletConfiguration(config).problems.length > 0)).toEqual(theirs);
    expect(theirs.filter((one) => one.endsWith("taken")).length).toBeGreaterThan(5);
  }, 600_000);
});
