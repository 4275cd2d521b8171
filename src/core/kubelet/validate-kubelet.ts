import { pushAll } from "../../api/schema/push-all.ts";
import { isZeroQuantity } from "../../api/schema/quantities.ts";
import { parseUrl } from "../../ignition/parse-url.ts";
import { parseImageReference } from "../images/image-reference.ts";
import { type Decoded, type FieldProblem, decodeGo, mostCounted, mostOfList, restOf } from "./decode-go.ts";
import { millisecond, second } from "./go-duration.ts";
import { kubeletConfiguration } from "./kubelet-fields.ts";
import { keysOf } from "./map-items.ts";
import { type KubeletSettings, gateProblem, kubeletSettings, seconds } from "./kubelet-settings.ts";

export const kubeletApiVersion = "kubelet.config.k8s.io/v1beta1";
export const kubeletKind = "KubeletConfiguration";

export interface KubeletJudgement {
  /** Why a kubelet would not start with it; empty: it would. */
  readonly problems: readonly FieldProblem[];
  /** Paths of fields that a kubelet does not know, and ignores; sorted. */
  readonly unknown: readonly string[];
  /** How many more there are. */
  readonly moreUnknown: number;
  /** What it says; only as much as could be read where there are problems. */
  readonly decoded: Decoded;
}

/**
 * Whether kubelet 1.34 on a machine with cgroup v2 starts with a configuration: decoded, defaulted, validated. Source of
 * the rules: k8s.io/kubernetes v1.34 pkg/kubelet/apis/config/validation; `hack/go-kubelet` is what the tests compare
 * with.
 *
 * @param config a KubeletConfiguration as a JSON value.
 */
export function judgeKubeletConfiguration(config: unknown): KubeletJudgement {
  const { value: decoded, problems, unknown, moreUnknown } = decodeGo(config, kubeletConfiguration);
  if (problems.length > 0) return { problems: [...kindProblems(decoded), ...problems], unknown, moreUnknown, decoded };
  return { problems: problemsOfRead(decoded), unknown, moreUnknown, decoded };
}

/**
 * The same of a configuration that is decoded already.
 *
 * @param decoded as a kubelet reads it from the file: {@link asRead}.
 * @returns why a kubelet would not start with it; empty: it would.
 */
export function problemsOfRead(decoded: Decoded): readonly FieldProblem[] {
  const kind = kindProblems(decoded);
  if (kind.length > 0) return kind;
  const gates = gateProblems((decoded["featureGates"] ?? {}) as Readonly<Record<string, boolean>>);
  if (gates.length > 0) return gates;
  const settings = kubeletSettings(decoded);
  return rules.flatMap((rule) => rule(settings));
}

/** Problems of the items of a list, which may be hundreds of thousands: the first ones in words, all by their number. */
interface ListProblems {
  /** One more than are reported: it names the list that has the others. */
  readonly first: FieldProblem[];
  count: number;
}
const noProblems = (): ListProblems => ({ first: [], count: 0 });

/** Whether as many problems were found as are counted: the list is refused anyway. */
const isEnough = ({ count }: ListProblems): boolean => count >= mostCounted;

/** Counts a problem, and says whether it is one of those that get words. */
function isSaid(found: ListProblems): boolean {
  found.count += 1;
  return found.count <= mostOfList + 1;
}

/** Adds a problem whose words cost nothing. */
function note(found: ListProblems, is: boolean, path: string, reason: string): void {
  if (is && isSaid(found)) found.first.push(problem(path, reason));
}

/** The first problems of a list, and how many there are beside them. */
function reported({ first, count }: ListProblems): readonly FieldProblem[] {
  const next = first[mostOfList];
  if (next === undefined) return first;
  const list = next.path.replace(/\[.*$/s, "");
  return [...first.slice(0, mostOfList), restOf(list, count - mostOfList)];
}

/** Lists whose items are judged by the list alone, and an item of each that has no problem. */
const aloneJudged = [
  { name: "registerWithTaints", judge: taintProblems, good: { key: "good", effect: "NoSchedule" } },
  { name: "reservedMemory", judge: reservationProblems, good: {} },
] as const;

/**
 * Judges the lists that have more problems than are reported one by one, and takes them out: nothing is made of them, and
 * merging and reading hundreds of thousands of items costs more than all that is said of them.
 *
 * @returns the configuration with an item without problems in place of these lists.
 */
export function judgeHopelessLists(decoded: Decoded): {
  readonly value: Decoded;
  readonly problems: readonly FieldProblem[];
} {
  const problems: FieldProblem[] = [];
  let value = decoded;
  const judgeList = (list: unknown, judge: (list: never) => readonly FieldProblem[]): boolean => {
    const ofList = Array.isArray(list) ? judge(list as never) : none;
    if (ofList.at(-1)?.isRest !== true) return false;
    pushAll(problems, ofList);
    return true;
  };
  for (const { name, judge, good } of aloneJudged)
    if (judgeList(decoded[name], judge)) value = { ...value, [name]: [good] };
  const logs = decoded["logging"] as Decoded | undefined;
  if (judgeList(logs?.["vmodule"], levelProblems))
    value = { ...value, logging: { ...logs, vmodule: [{ filePattern: "good" }] } };
  return { value, problems };
}

const kindProblems = (decoded: Decoded): readonly FieldProblem[] => [
  ...(decoded["apiVersion"] === kubeletApiVersion ? [] : [problem("apiVersion", `must be ${kubeletApiVersion}`)]),
  ...(decoded["kind"] === kubeletKind ? [] : [problem("kind", `must be ${kubeletKind}`)]),
];

type Rule = (settings: KubeletSettings) => readonly FieldProblem[];

const problem = (path: string, reason: string): FieldProblem => ({ path, reason });
const none: readonly FieldProblem[] = [];
const when = (is: boolean, path: string, reason: string): readonly FieldProblem[] =>
  is ? [problem(path, reason)] : none;

function gateProblems(gates: Readonly<Record<string, boolean>>): readonly FieldProblem[] {
  const found = noProblems();
  for (const name of keysOf(gates)) {
    const wrong = gateProblem(name, gates[name] ?? false);
    if (isEnough(found)) break;
    if (wrong === undefined || !isSaid(found)) continue;
    const reason =
      wrong === "unknown"
        ? "no feature gate of kubelet 1.34 has this name; remove it"
        : `is ${wrong} in kubelet 1.34; remove it`;
    found.first.push(problem(`featureGates.${name}`, reason));
  }
  return reported(found);
}

/** Numbers and what they must lie between; the default counts where the field is absent, or 0 where `zeroIs` is set. */
interface Bounds {
  readonly path: string;
  readonly least: number;
  readonly most?: number;
  readonly otherwise: number;
  readonly isDefaultedFromZero?: true;
}
const numbers: readonly Bounds[] = [
  { path: "nodeLeaseDurationSeconds", least: 1, otherwise: 40, isDefaultedFromZero: true },
  { path: "eventBurst", least: 0, otherwise: 100 },
  { path: "eventRecordQPS", least: 0, otherwise: 50 },
  { path: "healthzPort", least: 0, most: 65_535, otherwise: 10_248 },
  { path: "imageGCHighThresholdPercent", least: 0, most: 100, otherwise: 85 },
  { path: "imageGCLowThresholdPercent", least: 0, most: 100, otherwise: 80 },
  { path: "iptablesDropBit", least: 0, most: 31, otherwise: 15 },
  { path: "iptablesMasqueradeBit", least: 0, most: 31, otherwise: 14 },
  { path: "kubeAPIBurst", least: 0, otherwise: 100 },
  { path: "kubeAPIQPS", least: 0, otherwise: 50 },
  { path: "nodeStatusMaxImages", least: -1, otherwise: 50 },
  { path: "maxOpenFiles", least: 0, otherwise: 1_000_000 },
  { path: "maxPods", least: 0, otherwise: 110 },
  { path: "oomScoreAdj", least: -1000, most: 1000, otherwise: -999 },
  { path: "podsPerCore", least: 0, otherwise: 0 },
  { path: "port", least: 1, most: 65_535, otherwise: 10_250, isDefaultedFromZero: true },
  { path: "readOnlyPort", least: 0, most: 65_535, otherwise: 0 },
  { path: "registryBurst", least: 0, otherwise: 10 },
  { path: "registryPullQPS", least: 0, otherwise: 5 },
  { path: "maxParallelImagePulls", least: 1, otherwise: 1 },
  { path: "containerLogMaxWorkers", least: 1, otherwise: 1 },
  { path: "containerLogMaxFiles", least: 2, otherwise: 5 },
  { path: "tracing.samplingRatePerMillion", least: 0, most: 1_000_000, otherwise: 0 },
  { path: "logging.verbosity", least: 0, most: 2 ** 31 - 1, otherwise: 0 },
];

const withinBounds: Rule = (settings) =>
  numbers.flatMap(({ path, least, most, otherwise, isDefaultedFromZero }) => {
    const value =
      isDefaultedFromZero === true ? settings.numberOrDefault(path, otherwise) : settings.number(path, otherwise);
    if (value >= least && (most === undefined || value <= most)) return [];
    return problem(path, most === undefined ? `must be at least ${least}` : `must be between ${least} and ${most}`);
  });

/** Texts that must be one of a few; empty is the default. */
const choices: Readonly<Record<string, readonly string[]>> = {
  topologyManagerPolicy: ["none", "best-effort", "restricted", "single-numa-node"],
  topologyManagerScope: ["container", "pod"],
  hairpinMode: ["promiscuous-bridge", "hairpin-veth", "none"],
};

const oneOfAFew: Rule = (settings) =>
  Object.entries(choices).flatMap(([path, all]) =>
    when(!all.includes(settings.text(path, all[0])), path, `must be one of ${all.join(", ")}`),
  );

const images: Rule = (settings) => {
  const low = settings.number("imageGCLowThresholdPercent", 80);
  const high = settings.number("imageGCHighThresholdPercent", 85);
  const maximum = settings.duration("imageMaximumGCAge");
  const minimum = settings.duration("imageMinimumGCAge") || 120n * second;
  const pulls = settings.number("maxParallelImagePulls", 1);
  return [
    ...when(
      low >= high,
      "imageGCLowThresholdPercent",
      `must be below imageGCHighThresholdPercent; they are ${low} and ${high}`,
    ),
    ...when(maximum !== 0n && !settings.isOn("ImageMaximumGCAge"), "imageMaximumGCAge", needs("ImageMaximumGCAge")),
    ...when(maximum < 0n, "imageMaximumGCAge", "must not be negative"),
    ...when(maximum > 0n && maximum <= minimum, "imageMaximumGCAge", "must be longer than imageMinimumGCAge"),
    ...when(
      pulls > 1 && settings.flag("serializeImagePulls", pulls < 2),
      "maxParallelImagePulls",
      "must not be above 1 unless serializeImagePulls is false",
    ),
  ];
};

const needs = (gate: string) => `needs featureGates.${gate}: true`;

const control: Rule = (settings) => {
  const quota = settings.isSet("cpuCFSQuotaPeriod") ? settings.duration("cpuCFSQuotaPeriod") : 100n * millisecond;
  const mayChoose = settings.isOn("CustomCPUCFSQuotaPeriod");
  return [
    ...when(
      settings.text("systemCgroups") !== "" && settings.text("cgroupRoot") === "",
      "systemCgroups",
      "needs cgroupRoot as well",
    ),
    ...when(
      !mayChoose && quota !== 100n * millisecond,
      "cpuCFSQuotaPeriod",
      `must be 100ms; another one ${needs("CustomCPUCFSQuotaPeriod")}`,
    ),
    ...when(mayChoose && (quota < millisecond || quota > second), "cpuCFSQuotaPeriod", "must be between 1ms and 1s"),
    ...when(
      settings.flag("serverTLSBootstrap", false) && !settings.isOn("RotateKubeletServerCertificate"),
      "serverTLSBootstrap",
      needs("RotateKubeletServerCertificate"),
    ),
    ...when(settings.flag("runOnce", false), "runOnce", "must not be true: this kubelet has no such mode any more"),
    ...when(
      !["", "1.33"].includes(settings.text("showHiddenMetricsForVersion")),
      "showHiddenMetricsForVersion",
      "must be empty or 1.33, the minor version before the kubelet's",
    ),
  ];
};

const qualifiedName =
  /^(?:(?=.{1,253}\/)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\/)?[^/]+$/s;
const namePart = /^(?=.{1,63}$)(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const effects = ["", "NoSchedule", "PreferNoSchedule", "NoExecute"];

interface Taint {
  readonly key?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly timeAdded?: string;
}

function taintProblems(list: readonly Taint[]): readonly FieldProblem[] {
  const found = noProblems();
  for (let i = 0; i < list.length && !isEnough(found); i += 1) findInTaint(list[i] ?? {}, i, found);
  return reported(found);
}

function findInTaint({ key = "", value = "", effect = "", timeAdded }: Taint, i: number, found: ListProblems): void {
  const isKey = key !== "" && qualifiedName.test(key) && namePart.test(key.slice(key.indexOf("/") + 1));
  const isValue = value === "" || namePart.test(value);
  const isEffect = effects.includes(effect);
  if (isKey && isValue && isEffect && timeAdded === undefined) return;
  const say = (is: boolean, name: string, reason: string): void => {
    if (is && isSaid(found)) found.first.push(problem(`registerWithTaints[${i}].${name}`, reason));
  };
  say(!isKey, "key", "must be a label key, as example.com/name");
  say(!isValue, "value", "must be a label value: at most 63 letters, digits, '-', '_' and '.'");
  say(!isEffect, "effect", "must be NoSchedule, PreferNoSchedule or NoExecute");
  say(timeAdded !== undefined, "timeAdded", "must not be set: the node's own clock sets it");
}

const shutdown: Rule = (settings) => {
  const [all, critical] = [
    settings.duration("shutdownGracePeriod"),
    settings.duration("shutdownGracePeriodCriticalPods"),
  ];
  const byPriority = (settings.list("shutdownGracePeriodByPodPriority") ?? []).length > 0;
  const tooShort = (period: bigint) => period < 0n || (period > 0n && period < second);
  const isGraceful = settings.isOn("GracefulNodeShutdown");
  const mayHavePriorities = settings.isOn("GracefulNodeShutdownBasedOnPodPriority");
  return [
    ...when(
      isGraceful && critical > all,
      "shutdownGracePeriodCriticalPods",
      `must not be longer than shutdownGracePeriod, of which it is a part; they are ${seconds(critical)} and ${seconds(all)}`,
    ),
    ...when(isGraceful && tooShort(all), "shutdownGracePeriod", "must be 0 or at least 1s"),
    ...when(isGraceful && tooShort(critical), "shutdownGracePeriodCriticalPods", "must be 0 or at least 1s"),
    ...when(!isGraceful && (all > 0n || critical > 0n), "shutdownGracePeriod", needs("GracefulNodeShutdown")),
    ...when(
      mayHavePriorities && byPriority && (all > 0n || critical > 0n),
      "shutdownGracePeriodByPodPriority",
      "must not be set together with shutdownGracePeriod or shutdownGracePeriodCriticalPods",
    ),
    ...when(
      !mayHavePriorities && byPriority,
      "shutdownGracePeriodByPodPriority",
      needs("GracefulNodeShutdownBasedOnPodPriority"),
    ),
  ];
};

const memory: Rule = (settings) => {
  const swap = settings.text("memorySwap.swapBehavior");
  const factor = settings.number("memoryThrottlingFactor", 0.9);
  const ids = settings.number("userNamespaces.idsPerPod", 65_536);
  return [
    ...(settings.isOn("NodeSwap")
      ? when(!["", "NoSwap", "LimitedSwap"].includes(swap), "memorySwap.swapBehavior", "must be NoSwap or LimitedSwap")
      : when(swap !== "", "memorySwap.swapBehavior", "must not be set where featureGates.NodeSwap is false")),
    ...when(!(factor > 0 && factor <= 1), "memoryThrottlingFactor", "must be above 0 and at most 1"),
    ...when(
      ids < 65_536 || ids % 65_536 !== 0 || ids > 2 ** 32 - 1,
      "userNamespaces.idsPerPod",
      "must be a multiple of 65536, at least 65536 and below 4294967296",
    ),
  ];
};

const restarts: Rule = (settings) => {
  const path = "crashLoopBackOff.maxContainerRestartPeriod";
  if (!settings.isSet(path)) return [];
  if (!settings.isOn("KubeletCrashLoopBackOffMax")) return [problem(path, needs("KubeletCrashLoopBackOffMax"))];
  const whole = settings.duration(path) / millisecond;
  return when(whole < 1000n || whole > 300_000n, path, "must be between 1s and 300s");
};

const enforcements = {
  pods: undefined,
  "system-reserved": "systemReservedCgroup",
  "system-reserved-compressible": "systemReservedCgroup",
  "kube-reserved": "kubeReservedCgroup",
  "kube-reserved-compressible": "kubeReservedCgroup",
  none: undefined,
} as const;

const enforced: Rule = (settings) => {
  const path = "enforceNodeAllocatable";
  const all = settings.list<string>(path) ?? ["pods"];
  const hasQos = settings.flag("cgroupsPerQOS", true);
  return [
    ...["system", "kube"].flatMap((part) =>
      when(
        all.includes(`${part}-reserved`) && all.includes(`${part}-reserved-compressible`),
        path,
        `must not hold both ${part}-reserved and ${part}-reserved-compressible`,
      ),
    ),
    ...Object.entries(enforcements).flatMap(([name, cgroup]) => {
      if (!all.includes(name)) return [];
      if (name === "none") return when(all.length > 1, path, "must hold nothing else beside none");
      return [
        ...when(cgroup !== undefined && settings.text(cgroup) === "", path, `${name} needs ${cgroup} as well`),
        ...when(!hasQos, path, `${name} needs cgroupsPerQOS: true`),
      ];
    }),
    ...enforcementProblems(all, path),
  ];
};

/** The problems of the names by themselves. */
function enforcementProblems(all: readonly string[], path: string): readonly FieldProblem[] {
  const found = noProblems();
  const seen = new Set<string>();
  for (let i = 0; i < all.length && !isEnough(found); i += 1) {
    const name = all[i] ?? "";
    const isTwice = seen.has(name);
    seen.add(name);
    if (isTwice) note(found, true, path, `holds ${JSON.stringify(name)} twice`);
    else if (!Object.hasOwn(enforcements, name) && isSaid(found))
      found.first.push(problem(path, `${JSON.stringify(name)} is none of ${Object.keys(enforcements).join(", ")}`));
  }
  return reported(found);
}

const verifications = ["NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"];

const pullCredentials: Rule = (settings) => {
  const [policyPath, listPath] = ["imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist"];
  const policy = settings.text(policyPath);
  const list = settings.list<string>(listPath) ?? [];
  const gate = "KubeletEnsureSecretPulledImages";
  if (!settings.isOn(gate))
    return [...when(policy !== "", policyPath, needs(gate)), ...when(list.length > 0, listPath, needs(gate))];
  const known = when(
    policy !== "" && !verifications.includes(policy),
    policyPath,
    `must be one of ${verifications.join(", ")}`,
  );
  if (list.length > 0 && policy !== "NeverVerifyAllowlistedImages")
    return [...known, problem(listPath, `needs ${policyPath}: NeverVerifyAllowlistedImages`)];
  const found = noProblems();
  for (let i = 0; i < list.length && !isEnough(found); i += 1)
    if (!isImagePattern(list[i] ?? "") && isSaid(found))
      found.first.push(
        problem(`${listPath}[${i}]`, "must be the name of an image without tag and digest, or end with /*"),
      );
  return [...known, ...reported(found)];
};

function isImagePattern(pattern: string): boolean {
  if (pattern !== pattern.trim()) return false;
  if (pattern.endsWith("/*")) return pattern.length > 2 && !pattern.slice(0, -1).includes("*");
  if (pattern === "" || pattern.includes("*")) return false;
  const read = parseImageReference(pattern);
  return read.verdict === "reference" && !read.exact && pattern === `${read.reference.host}/${read.reference.path}`;
}

const cpus: Rule = (settings) => {
  const list = settings.text("reservedSystemCPUs");
  if (list === "") return [];
  return [
    ...when(
      settings.text("systemReservedCgroup") !== "" || settings.text("kubeReservedCgroup") !== "",
      "reservedSystemCPUs",
      "must not be set together with systemReservedCgroup or kubeReservedCgroup",
    ),
    ...when(!isCpuList(list), "reservedSystemCPUs", "must be a list of CPUs, as 0-3,8"),
  ];
};

/** Goes over the text once: a list of its parts is several times as large. */
function isCpuList(text: string): boolean {
  let at = 0;
  const number = (): number | undefined => {
    if (text.charAt(at) === "+") at += 1;
    const from = at;
    while (isDigit(text.charCodeAt(at))) at += 1;
    return at === from || at - from > 18
      ? undefined
      : at - from === 1
        ? digitAt(text, from)
        : Number(text.slice(from, at));
  };
  for (;;) {
    const from = number();
    if (from === undefined) return false;
    if (text.charAt(at) === "-") {
      at += 1;
      const to = number();
      // The kubelet writes each CPU into a table: no machine has more, and it would not come to an end.
      if (to === undefined || from > to || to - from >= 1_000_000) return false;
    }
    if (at === text.length) return true;
    if (text.charAt(at) !== ",") return false;
    at += 1;
  }
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57;
const digitAt = (text: string, at: number): number => text.charCodeAt(at) - 48;

interface Reservation {
  readonly numaNode?: number;
  /** A whole number may be a number still. */
  readonly limits?: Readonly<Record<string, string | number>>;
}

function reservationProblems(list: readonly Reservation[]): readonly FieldProblem[] {
  const found = noProblems();
  const isReserved = repeatedReservations(list);
  for (let i = 0; i < list.length && !isEnough(found); i += 1) {
    const { numaNode = 0, limits = {} } = list[i] ?? {};
    for (const resource of keysOf(limits)) {
      if (isEnough(found)) break;
      const isTwice = isReserved(numaNode, resource);
      const isKnown = resource === "memory" || resource.startsWith("hugepages-");
      const isZero = isZeroQuantity(String(limits[resource] ?? ""));
      if (isKnown && !isZero && !isTwice) continue;
      const say = (is: boolean, reason: string): void => {
        if (is && isSaid(found)) found.first.push(problem(`reservedMemory[${i}].limits.${resource}`, reason));
      };
      say(!isKnown, "must be memory or hugepages-<size>");
      say(isZero, "must not be 0");
      say(isTwice, `is reserved twice for NUMA node ${numaNode}`);
    }
  }
  return reported(found);
}

/**
 * Tells, of one reservation after the other, whether an earlier one is of the same node and resource. A node that has a
 * single reservation, as all have that a kubelet takes, costs nothing.
 */
function repeatedReservations(list: readonly Reservation[]): (node: number, resource: string) => boolean {
  const nodes = new Int32Array(list.length);
  for (let i = 0; i < nodes.length; i += 1) nodes[i] = list[i]?.numaNode ?? 0;
  nodes.sort();
  const seen = new Map<number, Set<string>>();
  for (let i = 1; i < nodes.length; i += 1) {
    const node = nodes[i] ?? 0;
    // The third and later ones of a node are behind each other.
    if (node === nodes[i - 1] && node !== nodes[i - 2]) seen.set(node, new Set());
  }
  return (node, resource) => {
    const resources = seen.get(node);
    if (resources === undefined) return false;
    const isTwice = resources.has(resource);
    resources.add(resource);
    return isTwice;
  };
}

interface ModuleLevel {
  readonly filePattern?: string;
  readonly verbosity?: number;
}

const logging: Rule = (settings) => {
  const format = settings.text("logging.format", "text");
  const levels = settings.list<ModuleLevel>("logging.vmodule") ?? [];
  const isBeta = settings.isOn("LoggingBetaOptions");
  const options = settings.isOn("LoggingAlphaOptions") ? [] : ["text", "json"];
  return [
    ...when(!["text", "json"].includes(format), "logging.format", "must be text or json"),
    ...when(format === "json" && !isBeta, "logging.format", needs("LoggingBetaOptions")),
    ...when(levels.length > 0 && format !== "text", "logging.vmodule", "needs logging.format: text"),
    ...levelProblems(levels),
    ...options.flatMap((kind) => {
      const path = `logging.options.${kind}`;
      const hasSize = !isZeroQuantity(settings.text(`${path}.infoBufferSize`, "0"));
      return [
        ...when(settings.flag(`${path}.splitStream`, false), `${path}.splitStream`, needs("LoggingAlphaOptions")),
        ...when(hasSize, `${path}.infoBufferSize`, needs("LoggingAlphaOptions")),
      ];
    }),
  ];
};

function levelProblems(list: readonly ModuleLevel[]): readonly FieldProblem[] {
  const found = noProblems();
  for (let i = 0; i < list.length && !isEnough(found); i += 1) findInLevel(list[i] ?? {}, i, found);
  return reported(found);
}

function findInLevel({ filePattern = "", verbosity = 0 }: ModuleLevel, i: number, found: ListProblems): void {
  const say = (is: boolean, name: string, reason: string): void => {
    if (is && isSaid(found)) found.first.push(problem(`logging.vmodule[${i}].${name}`, reason));
  };
  say(filePattern === "", "filePattern", "must not be empty");
  say(/[=,]/.test(filePattern), "filePattern", "must hold no '=' and no ','");
  say(verbosity > 2 ** 31 - 1, "verbosity", "must be at most 2147483647");
}

const logFiles: Rule = (settings) => {
  const folder = settings.text("podLogsDir", "/var/log/pods");
  const interval = settings.isSet("containerLogMonitorInterval")
    ? settings.duration("containerLogMonitorInterval")
    : 10n * second;
  const isQuery = settings.flag("enableSystemLogQuery", false);
  return [
    ...when(interval < 3n * second, "containerLogMonitorInterval", "must be at least 3s"),
    ...when(!folder.startsWith("/"), "podLogsDir", "must be an absolute path"),
    ...when(!isCleanPath(folder), "podLogsDir", "must be written without '//', '.', '..' and a '/' at its end"),
    // oxlint-disable-next-line no-control-regex -- ASCII has control characters
    ...when(!/^[\x00-\x7f]*$/.test(folder), "podLogsDir", "must be ASCII: it becomes part of metrics"),
    ...when(isQuery && !settings.isOn("NodeLogQuery"), "enableSystemLogQuery", needs("NodeLogQuery")),
    ...when(
      isQuery && !settings.flag("enableSystemLogHandler", true),
      "enableSystemLogQuery",
      "needs enableSystemLogHandler: true",
    ),
  ];
};

function isCleanPath(path: string): boolean {
  if (path === "/" || path === "") return path === "/";
  // Without a list of its parts: a path of a megabyte has as many.
  if (path.startsWith("/")) return !/\/\.{0,2}(?:\/|$)/.test(path);
  const parts = path.split("/");
  const above = parts.findIndex((part) => part !== "..");
  return path === "." || parts.every((part, i) => part !== "" && part !== "." && (part !== ".." || i < above));
}

const tracing: Rule = (settings) => {
  const path = "tracing.endpoint";
  if (!settings.isSet(path)) return [];
  const endpoint = settings.text(path);
  const read = parseUrl(endpoint.includes("//") ? endpoint : `dns://${endpoint}`);
  const isKnown = read !== undefined && ["dns", "unix", "unix-abstract"].includes(read.scheme);
  return when(!isKnown, path, "must be host:port, or begin with dns:, unix: or unix-abstract:");
};

const rules: readonly Rule[] = [
  withinBounds,
  oneOfAFew,
  images,
  control,
  (settings) => taintProblems(settings.list("registerWithTaints") ?? []),
  shutdown,
  memory,
  restarts,
  enforced,
  pullCredentials,
  cpus,
  (settings) => reservationProblems(settings.list("reservedMemory") ?? []),
  logging,
  logFiles,
  tracing,
];
