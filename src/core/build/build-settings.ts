import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations, objects } from "../../api/names.ts";
import { pruneRules } from "./build-prune.ts";
import { type InputProblem, warning } from "./input-problem.ts";

/**
 * Keys of the ConfigMap on-cluster-build-config. The first three are those of openshift/machine-config-operator
 * (release-4.14).
 */
export const buildConfigKeys = {
  basePullSecret: "baseImagePullSecretName",
  pushSecret: "finalImagePushSecretName",
  pushSpec: "finalImagePullspec",
  builderType: "imageBuilderType",
  /** Ours: `true` opts in every pool that does not opt out. */
  defaultOptIn: "defaultOptIn",
  /** Ours, 0 to 20. */
  maxBuildRetries: "maxBuildRetries",
  /** Ours: how long machines keep their image after a MachineOSConfig was deleted. */
  optOutGraceSeconds: "optOutGraceSeconds",
  /** Ours: the time limit of one attempt, and the resource requests of its pod, as Kubernetes quantities. */
  timeoutSeconds: "buildTimeoutSeconds",
  cpu: "buildCpu",
  memory: "buildMemory",
  storage: "buildStorage",
  /** Ours: how the pods of builds are kept from their machine, one of `buildIsolations`. */
  isolation: "buildIsolation",
  /** Ours: ports of registries that the builder and its builds may reach, separated by commas. */
  registryPorts: "registryPorts",
  /** Ours: finished builds of each pool that are kept, and whether the builder only reports what it would remove. */
  keepSucceeded: "keepSucceededBuilds",
  keepFailed: "keepFailedBuilds",
  pruneDryRun: "pruneDryRun",
} as const;

/** `data` of a ConfigMap. */
export type Data = Readonly<Record<string, string>>;

/**
 * How the pods of builds are kept from their machine. `userNamespace`: the pod has users of its own, and its root is no
 * user of the machine (`hostUsers: false`); the cluster's kubelets and container runtime have to support that.
 * `hostUsers`: without; a build then needs privilege escalation and no filter of system calls. No build is privileged.
 */
export const buildIsolations = ["userNamespace", "hostUsers"] as const;

export type BuildIsolation = (typeof buildIsolations)[number];

/** The limits of one attempt. */
export interface BuildLimits {
  readonly seconds: number;
  readonly pushSeconds: number;
  readonly cpu: string;
  readonly memory: string;
  readonly storage: string;
}

/** The ConfigMap on-cluster-build-config as every process reads it. */
export interface BuildSettings {
  /** Every pool is opted in unless it opts out. */
  readonly defaultOptIn: boolean;
  /** The maximum number of retries of a failed build. */
  readonly maxRetries: number;
  /** Milliseconds between the deletion of a MachineOSConfig and its effect on machines. */
  readonly optOutGraceMs: number;
  readonly limits: BuildLimits;
  readonly isolation: BuildIsolation;
  /** Ports of registries that the builder and its builds may reach. */
  readonly registryPorts: readonly number[];
  /** Finished builds of each pool that are kept. */
  readonly keptBuilds: { readonly succeeded: number; readonly failed: number };
  /** The builder reports what it would remove, and removes nothing. */
  readonly pruneDryRun: boolean;
  /** Warnings: values that are ignored or limited. The condition InputsValid of MachineOSConfigs lists them. */
  readonly problems: readonly InputProblem[];
}

/** An integer setting: its bounds, and its default. */
interface NumberRule {
  readonly least: number;
  readonly most: number;
  readonly otherwise: number;
  /** How a number above `most` is handled: as the bound, or as the default. */
  readonly above: "most" | "otherwise";
}

const retriesRule: NumberRule = { least: 0, most: 20, otherwise: 5, above: "otherwise" };
/** More than a day is limited to a day: no machine goes back before that limit. */
const graceRule: NumberRule = { least: 0, most: 86_400, otherwise: 60, above: "most" };
const timeoutRule: NumberRule = { least: 10, most: 99_999, otherwise: 3600, above: "otherwise" };
const keptRule = (otherwise: number): NumberRule => ({ least: 0, most: 999, otherwise, above: "otherwise" });
const longestPushSeconds = 600;
const defaultQuantities = { cpu: "500m", memory: "1Gi", storage: "20Gi" } as const;
const defaultRegistryPorts: readonly number[] = [443, 5000];
const mostPorts = 20;
const quantityPattern = /^([0-9]{1,12})(\.[0-9]{1,3})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/;
/** Characters of a wrong value that a message quotes. */
const quotedLength = 40;

type Reading<T> =
  | { readonly verdict: "value"; readonly value: T }
  | { readonly verdict: "wrong"; readonly value: T; readonly expected: string };

function readNumber(text: string, { least, most, otherwise, above }: NumberRule): Reading<number> {
  const expected = `not a whole number from ${least} to ${most}`;
  if (!/^\d+$/.test(text)) return { verdict: "wrong", value: otherwise, expected };
  const value = Number(text);
  if (value >= least && value <= most) return { verdict: "value", value };
  return { verdict: "wrong", value: value > most && above === "most" ? most : otherwise, expected };
}

const readQuantity = (text: string, otherwise: string): Reading<string> =>
  quantityPattern.test(text)
    ? { verdict: "value", value: text }
    : { verdict: "wrong", value: otherwise, expected: "not a quantity" };

function readPorts(text: string): Reading<readonly number[]> {
  const words = text.split(",").map((word) => word.trim());
  return words.length <= mostPorts && words.every((word) => /^[1-9]\d{0,4}$/.test(word) && Number(word) <= 65_535)
    ? { verdict: "value", value: words.map(Number) }
    : { verdict: "wrong", value: defaultRegistryPorts, expected: "not a list of ports" };
}

function readIsolation(text: string): Reading<BuildIsolation> {
  const value = buildIsolations.find((one) => one === text);
  return value === undefined
    ? { verdict: "wrong", value: "userNamespace", expected: `neither ${buildIsolations.join(" nor ")}` }
    : { verdict: "value", value };
}

function readSwitch(text: string): Reading<boolean> {
  const word = text.toLowerCase();
  return word === "true" || word === "false"
    ? { verdict: "value", value: word === "true" }
    : { verdict: "wrong", value: false, expected: "neither true nor false" };
}

/**
 * Reads the ConfigMap of build settings. An absent or empty value has its default; an invalid value is replaced by the
 * one that `problems` names.
 *
 * @param data of the ConfigMap; `undefined`: there is none.
 */
export function buildSettings(data: Data | undefined): BuildSettings {
  const problems: InputProblem[] = [];
  const read = <T>(key: string, otherwise: T, reader: (text: string) => Reading<T>): T => {
    const text = data?.[key]?.trim() ?? "";
    if (text === "") return otherwise;
    const reading = reader(text);
    if (reading.verdict === "wrong")
      problems.push(
        warning(
          "BuildSettingInvalid",
          `ConfigMap ${objects.buildConfig}: ${key} ${JSON.stringify(text.slice(0, quotedLength))} is ${reading.expected}: ${String(reading.value)} counts`,
        ),
      );
    return reading.value;
  };
  const number = (key: string, rule: NumberRule) => read(key, rule.otherwise, (text) => readNumber(text, rule));
  const quantity = (key: string, otherwise: string) => read(key, otherwise, (text) => readQuantity(text, otherwise));
  const isOn = (key: string) => read(key, false, readSwitch);
  const seconds = number(buildConfigKeys.timeoutSeconds, timeoutRule);
  return {
    defaultOptIn: isOn(buildConfigKeys.defaultOptIn),
    maxRetries: number(buildConfigKeys.maxBuildRetries, retriesRule),
    optOutGraceMs: number(buildConfigKeys.optOutGraceSeconds, graceRule) * 1000,
    limits: {
      seconds,
      pushSeconds: Math.min(seconds, longestPushSeconds),
      cpu: quantity(buildConfigKeys.cpu, defaultQuantities.cpu),
      memory: quantity(buildConfigKeys.memory, defaultQuantities.memory),
      storage: quantity(buildConfigKeys.storage, defaultQuantities.storage),
    },
    isolation: read(buildConfigKeys.isolation, "userNamespace", readIsolation),
    registryPorts: read(buildConfigKeys.registryPorts, defaultRegistryPorts, readPorts),
    keptBuilds: {
      succeeded: number(buildConfigKeys.keepSucceeded, keptRule(pruneRules.succeeded)),
      failed: number(buildConfigKeys.keepFailed, keptRule(pruneRules.failed)),
    },
    pruneDryRun: isOn(buildConfigKeys.pruneDryRun),
    problems,
  };
}

/** The settings of a cluster without the ConfigMap. */
export const defaultBuildSettings: BuildSettings = buildSettings(undefined);

/** The maximum number of retries: the MachineOSConfig's, else the cluster's. */
export function maxRetriesOf(
  config: Pick<MachineOSConfig, "metadata"> | undefined,
  { maxRetries }: Pick<BuildSettings, "maxRetries">,
): number {
  const reading = readNumber(config?.metadata.annotations?.[annotations.maxBuildRetries]?.trim() ?? "", retriesRule);
  return reading.verdict === "value" ? reading.value : maxRetries;
}

/** The limits of the next attempt. After an attempt ran out of memory, the limit is doubled. */
export const attemptLimits = ({ limits }: BuildSettings, { doubled }: { readonly doubled: boolean }): BuildLimits =>
  doubled ? { ...limits, memory: limits.memory.replace(/^[0-9.]+/, (amount) => String(Number(amount) * 2)) } : limits;

/** Whether the cluster opts in every pool; `undefined`: it has no ConfigMap that says so or otherwise. */
export const defaultOptInOf = (data: Data | undefined): boolean | undefined =>
  data === undefined ? undefined : buildSettings(data).defaultOptIn;
