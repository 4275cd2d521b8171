import type { ContainerRuntimeConfig } from "../../api/kinds/container-runtime-config.ts";
import type { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { labels } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { own } from "../../api/schema/own.ts";
import { equalValues } from "../../ignition/canonical.ts";
import type { Problem } from "../../ignition/problem.ts";
import { validateMachineConfig } from "../config/validate-machine-config.ts";
import { problemsOfPool } from "../pool/judge-pool.ts";
import { newPolicyProblems } from "../pool/pool-policy.ts";
import { problemsOfLookaside } from "../runtime/lookaside-files.ts";
import { problemsOfKubeletConfig, problemsOfRuntimeConfig } from "./judge-settings.ts";
import { countText } from "../text/count-text.ts";
import { excuseStanding } from "./standing-problems.ts";

/** What objects of a kind are judged by, without any other object. */
type ObjectRules = (object: KubeObject, before: KubeObject | undefined) => readonly Problem[];

/**
 * The rules for single objects, by kind: the one list by which admission judges a write and `mco validate` a manifest.
 */
const rulesByKind: Readonly<Record<string, ObjectRules>> = {
  MachineConfig: (config) => [
    ...validateMachineConfig(config as MachineConfig),
    ...problemsOfLookaside(config as MachineConfig),
  ],
  MachineConfigPool(object, old) {
    const [pool, before] = [object as MachineConfigPool, old as MachineConfigPool | undefined];
    const known = before === undefined ? [] : problemsOfPool(before);
    const ofSpec = problemsOfPool(pool).filter((problem) => !known.some((one) => equalValues(one, problem)));
    return [...ofSpec, ...newPolicyProblems(pool, before)];
  },
  KubeletConfig: (config) => problemsOfKubeletConfig(config as KubeletConfig),
  ContainerRuntimeConfig: (config) => problemsOfRuntimeConfig(config as ContainerRuntimeConfig),
};

/** What is known of an object that is stored already, and of the pools that may take it in. */
export interface Stored {
  /** As it is stored; absent: it is new. */
  readonly before?: KubeObject | undefined;
  /** The pools of the cluster; absent, or `undefined`: they are not known. */
  readonly pools?: () => readonly MachineConfigPool[] | undefined;
}

/**
 * The problems of an object by itself; none for a kind without rules. An object that had a problem before is not refused
 * again for it, as long as it reaches the same machines. All errors are compared with those before; of warnings the first
 * ones are told.
 */
export const problemsOfObject = (kind: string, object: KubeObject, stored: Stored = {}): readonly Problem[] =>
  withFewWarnings(allProblemsOf(kind, object, stored));

/** An object may have a hundred thousand fields that change nothing. */
const mostWarnings = 100;

/** All errors, the first warnings, and how many more warnings there are. */
function withFewWarnings(problems: readonly Problem[]): readonly Problem[] {
  let count = 0;
  const kept = problems.filter(({ severity }) => severity === "error" || ++count <= mostWarnings);
  if (count <= mostWarnings) return problems;
  const more = countText(count - mostWarnings, "more warning");
  return [...kept, { severity: "warning", path: "", reason: `the object has ${more}` }];
}

function allProblemsOf(kind: string, object: KubeObject, stored: Stored): readonly Problem[] {
  const { before } = stored;
  const problems = rulesByKind[kind]?.(object, before) ?? [];
  if (before === undefined || !problems.some(({ severity }) => severity === "error")) return problems;
  const reachOf = kind === "MachineConfig" ? reachByLabels(stored.pools?.()) : reachOfSettings;
  if (!equalValues(reachOf(object), reachOf(before))) return problems;
  return excuseStanding(
    { object, problems },
    { object: before, problems: rulesByKind[kind]?.(before, undefined) ?? [] },
  );
}

/** What decides which pools take in the settings of an object: a problem must not come to others. */
function reachOfSettings(object: KubeObject): unknown {
  const { spec } = object as { readonly spec?: { readonly machineConfigPoolSelector?: unknown } | null };
  return spec?.machineConfigPoolSelector ?? null;
}

/** What decides which pools take in a MachineConfig: its labels that selectors of pools name, or may come to name. */
function reachByLabels(pools: readonly MachineConfigPool[] | undefined): (object: KubeObject) => unknown {
  if (pools === undefined) return ({ metadata }) => metadata.labels ?? {};
  const keys = [...new Set([labels.role, ...pools.flatMap(({ spec }) => keysOf(spec.machineConfigSelector))])];
  return ({ metadata }) => keys.map((key) => own(metadata.labels, key) ?? null);
}

const keysOf = (selector: MachineConfigPool["spec"]["machineConfigSelector"]): readonly string[] => [
  ...Object.keys(selector?.matchLabels ?? {}),
  ...(selector?.matchExpressions ?? []).map(({ key }) => key),
];
