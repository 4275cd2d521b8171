import { expect, test } from "vitest";
import { judgeKubeletConfiguration } from "./validate-kubelet.ts";

const judged = (config: object) =>
  judgeKubeletConfiguration({ apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", ...config });

test.for([
  [{ maxPods: "many" }, 'maxPods must be a whole number from -2147483648 to 2147483647, not "many"'],
  [{ nodeStatusUpdateFrequency: "10" }, 'nodeStatusUpdateFrequency must be a duration, as "10s" or "1h30m", not "10"'],
  [
    { imageGCHighThresholdPercent: 70 },
    "imageGCLowThresholdPercent must be below imageGCHighThresholdPercent; they are 80 and 70",
  ],
  [
    { featureGates: { NoSuchGate: true } },
    "featureGates.NoSuchGate no feature gate of kubelet 1.34 has this name; remove it",
  ],
  [
    { cpuCFSQuotaPeriod: "50ms" },
    "cpuCFSQuotaPeriod must be 100ms; another one needs featureGates.CustomCPUCFSQuotaPeriod: true",
  ],
  [
    { registerWithTaints: [{ key: "a/b/c", effect: "NoSchedule" }] },
    "registerWithTaints[0].key must be a label key, as example.com/name",
  ],
] as const)("%j is refused with path, reason and remedy [validate-kubelet-1]", ([config, says]) => {
  expect(judged(config).problems.map(({ path, reason }) => `${path} ${reason}`)).toEqual([says]);
});

test("fields of another case or name are named, and do not refuse [validate-kubelet-2]", () => {
  expect(judged({ maxpods: 3, logging: { level: 2 } })).toMatchObject({
    problems: [],
    unknown: ["logging.level", "maxpods"],
  });
});

test("the largest object is judged in little time: the work is in proportion to it [validate-kubelet-3]", () => {
  const evictionHard = Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`memory.available.${i}`, "100Mi"]));
  const registerWithTaints = Array.from({ length: 10_000 }, (_, i) => ({ key: `k${i}`, effect: "NoSchedule" }));
  expect(judged({ evictionHard, registerWithTaints }).problems).toEqual([]);
  const enforceNodeAllocatable = Array.from({ length: 100_000 }, (_, i) => `x${i}`);
  expect(judged({ enforceNodeAllocatable }).problems).toHaveLength(100_000);
});
