import type { ContainerRuntimeConfig } from "../../api/kinds/container-runtime-config.ts";
import type { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { equalValues } from "../../ignition/canonical.ts";
import type { Problem } from "../../ignition/problem.ts";
import { validateMachineConfig } from "../config/validate-machine-config.ts";
import { problemsOfPool } from "../pool/judge-pool.ts";
import { newPolicyProblems } from "../pool/pool-policy.ts";
import { problemsOfKubeletConfig, problemsOfRuntimeConfig } from "./judge-settings.ts";
import { excuseStanding } from "./standing-problems.ts";

/** What objects of a kind are judged by, without any other object. */
type ObjectRules = (object: KubeObject, before: KubeObject | undefined) => readonly Problem[];

/**
 * The rules for single objects, by kind: the one list by which admission judges a write and `mco validate` a manifest.
 */
const rulesByKind: Readonly<Record<string, ObjectRules>> = {
  MachineConfig: (config) => validateMachineConfig(config as MachineConfig),
  MachineConfigPool(object, old) {
    const [pool, before] = [object as MachineConfigPool, old as MachineConfigPool | undefined];
    const known = before === undefined ? [] : problemsOfPool(before);
    const ofSpec = problemsOfPool(pool).filter((problem) => !known.some((one) => equalValues(one, problem)));
    return [...ofSpec, ...newPolicyProblems(pool, before)];
  },
  KubeletConfig: (config) => problemsOfKubeletConfig(config as KubeletConfig),
  ContainerRuntimeConfig: (config) => problemsOfRuntimeConfig(config as ContainerRuntimeConfig),
};

/**
 * The problems of an object by itself; none for a kind without rules. An object that had a problem before is not refused
 * again for it, as long as it reaches the same machines. @param before as it is stored; absent: it is new.
 */
export function problemsOfObject(kind: string, object: KubeObject, before?: KubeObject): readonly Problem[] {
  const problems = rulesByKind[kind]?.(object, before) ?? [];
  if (before === undefined || !problems.some(({ severity }) => severity === "error")) return problems;
  if (!equalValues(reachOf(object), reachOf(before))) return problems;
  return excuseStanding(
    { object, problems },
    { object: before, problems: rulesByKind[kind]?.(before, undefined) ?? [] },
  );
}

/** What decides which pools take an object in: a problem must not come to others. */
function reachOf(object: KubeObject): unknown {
  const { spec } = object as { readonly spec?: { readonly machineConfigPoolSelector?: unknown } | null };
  return [object.metadata.labels ?? {}, spec?.machineConfigPoolSelector ?? null];
}
