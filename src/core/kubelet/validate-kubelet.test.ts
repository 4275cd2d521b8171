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

test("the first fifty unknown fields are named, and the others counted [validate-kubelet-7]", () => {
  const kubeletConfig = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`field${i}`, i]));
  expect(judged({ ...kubeletConfig, logging: { level: 2 } })).toMatchObject({
    problems: [],
    unknown: { length: 50 },
    moreUnknown: 201,
  });
});

test("the largest object is judged in little time: the work is in proportion to it [validate-kubelet-3]", () => {
  const evictionHard = Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`memory.available.${i}`, "100Mi"]));
  const registerWithTaints = Array.from({ length: 10_000 }, (_, i) => ({ key: `k${i}`, effect: "NoSchedule" }));
  expect(judged({ evictionHard, registerWithTaints }).problems).toEqual([]);
  const enforceNodeAllocatable = Array.from({ length: 100_000 }, (_, i) => `x${i}`);
  const { problems } = judged({ enforceNodeAllocatable });
  expect(problems).toHaveLength(101);
  expect(problems[100]).toEqual({
    path: "enforceNodeAllocatable",
    reason: "has at least 9900 more problems like these",
    isRest: true,
  });
});

test("of a list or a map the first hundred problems are reported, by paths that have a limit [validate-kubelet-6]", () => {
  const numbers = Array.from({ length: 250 }, (_, i) => i);
  const { problems } = judged({
    staticPodURLHeader: { ["a".repeat(100_000)]: numbers, b: numbers },
    evictionHard: Object.fromEntries(numbers.map((i) => [`memory.${i}`, i])),
    maxPods: "many",
  });
  expect(problems).toHaveLength(2 * 101 + 1);
  expect(problems[1]).toEqual({
    path: `staticPodURLHeader.${"a".repeat(252)}…[1]`,
    reason: "must be a text, not 1",
  });
  expect(problems.filter(({ reason }) => reason.startsWith("has "))).toEqual([
    { path: "staticPodURLHeader", reason: "has 400 more problems like these", isRest: true },
    { path: "evictionHard", reason: "has 150 more problems like these", isRest: true },
  ]);
  const taints = numbers.map((i) => ({ key: `k${i}`, effect: "No" }));
  expect(judged({ registerWithTaints: taints }).problems[100]).toEqual({
    path: "registerWithTaints",
    reason: "has 150 more problems like these",
    isRest: true,
  });
});

test("memory that is reserved twice for a node is named at each repetition, whatever the order of nodes [validate-kubelet-4]", () => {
  const reservedMemory = [
    { numaNode: 7, limits: { memory: "1Gi" } },
    { numaNode: -1, limits: { memory: "1Gi", "hugepages-2Mi": "0" } },
    { numaNode: 7, limits: { "hugepages-2Mi": "1Gi" } },
    { limits: { memory: "1Gi" } },
    { numaNode: 7, limits: { "hugepages-2Mi": "1Gi", swap: "1Gi", memory: "00Gi" } },
    { numaNode: 0, limits: { memory: "1Gi" } },
  ];
  expect(judged({ reservedMemory }).problems.map(({ path, reason }) => `${path} ${reason}`)).toEqual([
    "reservedMemory[1].limits.hugepages-2Mi must not be 0",
    "reservedMemory[4].limits.hugepages-2Mi is reserved twice for NUMA node 7",
    "reservedMemory[4].limits.swap must be memory or hugepages-<size>",
    "reservedMemory[4].limits.memory must not be 0",
    "reservedMemory[4].limits.memory is reserved twice for NUMA node 7",
    "reservedMemory[5].limits.memory is reserved twice for NUMA node 0",
  ]);
});

test("an object is not copied in the reading, whatever its size: lists, maps and structs that read as they are stay the same [validate-kubelet-5]", () => {
  const config = {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    reservedMemory: [{ numaNode: 1, limits: { memory: "1Gi" } }],
    shutdownGracePeriodByPodPriority: [{ priority: 3, shutdownGracePeriodSeconds: 20 }],
    authentication: { anonymous: { enabled: true } },
    evictionHard: { "memory.available": "5%" },
  };
  const { decoded } = judgeKubeletConfiguration(config);
  expect(decoded).toBe(config);
  const written = {
    ...config,
    reservedMemory: [...config.reservedMemory, { numaNode: 2, limits: { memory: " 1Gi" } }],
  };
  const changed = judgeKubeletConfiguration(written).decoded as typeof config;
  expect(changed).toEqual({
    ...config,
    reservedMemory: [
      { numaNode: 1, limits: { memory: "1Gi" } },
      { numaNode: 2, limits: { memory: "1Gi" } },
    ],
  });
  expect(changed.reservedMemory[0]).toBe(config.reservedMemory[0]);
});

const many = <T>(item: T, length = 400): readonly T[] => Array.from({ length }, () => item);
test.for([
  [{ registerWithTaints: many({ effect: "x" }) }, "registerWithTaints", 700],
  [{ registerWithTaints: many(null) }, "registerWithTaints", 300],
  [{ reservedMemory: many({ limits: { cpu: "0" } }) }, "reservedMemory", 1099],
  [{ logging: { vmodule: many({}) } }, "logging.vmodule", 300],
  [{ logging: { vmodule: many({ filePattern: "=" }) } }, "logging.vmodule", 300],
  [{ enforceNodeAllocatable: [...many("x"), "pods", "pods"] }, "enforceNodeAllocatable", 301],
  [
    {
      featureGates: { KubeletEnsureSecretPulledImages: true },
      imagePullCredentialsVerificationPolicy: "NeverVerifyAllowlistedImages",
      preloadedImagesVerificationAllowlist: many("*"),
    },
    "preloadedImagesVerificationAllowlist",
    300,
  ],
] as const)(
  "of the wrong items of %j all are counted and a hundred are said [validate-kubelet-8]",
  ([config, path, more]) => {
    const { problems } = judged(config);
    expect(problems).toHaveLength(101);
    expect(problems[100]).toEqual({ path, reason: `has ${more} more problems like these`, isRest: true });
  },
);

test.for([
  { logging: { vmodule: Array.from({ length: 20_000 }, () => ({})) } },
  { registerWithTaints: Array.from({ length: 20_000 }, () => null) },
  { allowedUnsafeSysctls: Array.from({ length: 20_000 }, () => 1) },
  { staticPodURLHeader: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`h${i}`, 1])) },
  { reservedMemory: [{ limits: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`r${i}`, "1"])) }] },
  { featureGates: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`G${i}`, true])) },
] as const)(
  "of very many wrong items ten thousand are counted, and no more are looked at [validate-kubelet-11]",
  (config) => {
    const { problems } = judged(config);
    expect(problems).toHaveLength(101);
    expect(problems[100]?.reason).toBe("has at least 9900 more problems like these");
  },
);

test("a node that has three reservations of one resource has two too many [validate-kubelet-12]", () => {
  const limits = { memory: "1Gi" };
  const { problems } = judged({ reservedMemory: [0, 1, 0, 0, 1].map((numaNode) => ({ numaNode, limits })) });
  expect(problems.map(({ path, reason }) => `${path}: ${reason}`)).toEqual([
    "reservedMemory[2].limits.memory: is reserved twice for NUMA node 0",
    "reservedMemory[3].limits.memory: is reserved twice for NUMA node 0",
    "reservedMemory[4].limits.memory: is reserved twice for NUMA node 1",
  ]);
});

test("what other fields make wrong with a list is said apart from its items [validate-kubelet-13]", () => {
  const vmodule = many({ filePattern: "=" });
  const options = { text: { splitStream: true } };
  const texts = (config: object) =>
    judged(config).problems.flatMap(({ path, reason }) => (/[[\d]/.test(path + reason) ? [] : [`${path}: ${reason}`]));
  expect(texts({ logging: { format: "xml", vmodule, options } })).toEqual([
    "logging.format: must be text or json",
    "logging.vmodule: needs logging.format: text",
    "logging.options.text.splitStream: needs featureGates.LoggingAlphaOptions: true",
  ]);
  const enforceNodeAllocatable = [...many("x"), "pods", "kube-reserved", "none"];
  const ofNames = texts({ enforceNodeAllocatable, cgroupsPerQOS: false });
  expect(ofNames.slice(0, 4)).toEqual([
    "enforceNodeAllocatable: pods needs cgroupsPerQOS: true",
    "enforceNodeAllocatable: kube-reserved needs kubeReservedCgroup as well",
    "enforceNodeAllocatable: kube-reserved needs cgroupsPerQOS: true",
    "enforceNodeAllocatable: must hold nothing else beside none",
  ]);
});

test("a large list or map of wrong items is not copied [validate-kubelet-9]", () => {
  const config = {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    allowedUnsafeSysctls: many({}),
    staticPodURLHeader: Object.fromEntries(many(1).map((one, i) => [`h${i}`, one])),
    registerWithTaints: many(1),
  };
  expect(judgeKubeletConfiguration(config).decoded).toBe(config);
});

test.for([
  ["0-3,8", true],
  ["+1", true],
  ["1-+3", true],
  ["5-999999", true],
  ["0-1000000", false],
  ["3-1", false],
  ["1,,2", false],
  ["1,", false],
  ["1-2-3", false],
  ["1-", false],
  ["++1", false],
  ["1234567890123456789", false],
] as const)("reservedSystemCPUs %s is a list of CPUs: %s [validate-kubelet-10]", ([reservedSystemCPUs, isList]) => {
  expect(judged({ reservedSystemCPUs }).problems.length === 0).toBe(isList);
});
