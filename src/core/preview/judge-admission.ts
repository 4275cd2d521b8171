import type { ContainerRuntimeConfig } from "../../api/kinds/container-runtime-config.ts";
import type { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { selectorIsEmpty } from "../../api/schema/object.ts";
import { equalValues } from "../../ignition/canonical.ts";
import type { Problem } from "../../ignition/problem.ts";
import { clipWarning } from "./forecast-summary.ts";
import { newPolicyProblems } from "../pool/pool-policy.ts";
import { parseBudget } from "../pool/select-nodes.ts";
import { problemsOfKubeletConfig, problemsOfRuntimeConfig } from "./judge-settings.ts";
import { clipText } from "../text/clip-text.ts";
import { andMore } from "../text/list-text.ts";
import { validateMachineConfig } from "../config/validate-machine-config.ts";

/** The verdict for the API server about an object to be stored. */
export type AdmissionVerdict =
  | { readonly verdict: "allowed"; readonly warnings: readonly string[] }
  | {
      readonly verdict: "refused";
      readonly message: string;
      readonly causes: readonly { readonly field: string; readonly message: string }[];
      readonly warnings: readonly string[];
    };

const sentence = ({ path, reason, remedy }: Problem) =>
  `${path === "" ? "" : `${path}: `}${reason}${remedy === undefined ? "" : `; ${remedy}`}`;

/** Validates a MachineConfig by itself, by the same rules as rendering and the machines. */
export function judgeMachineConfig(config: Pick<MachineConfig, "metadata" | "spec">): AdmissionVerdict {
  return judged(`MachineConfig ${config.metadata.name}`, validateMachineConfig(config));
}

/** Validates a pool by itself: its spec and its annotations. Unchanged problems are not refused again. */
export function judgePool(
  pool: Pick<MachineConfigPool, "metadata" | "spec">,
  before?: Pick<MachineConfigPool, "metadata" | "spec">,
): AdmissionVerdict {
  const known = before === undefined ? [] : problemsOfPool(before);
  const ofSpec = problemsOfPool(pool).filter((problem) => !known.some((one) => equalValues(one, problem)));
  return judged(`MachineConfigPool ${pool.metadata.name}`, [...ofSpec, ...newPolicyProblems(pool, before)]);
}

/** Validates a KubeletConfig by itself. */
export const judgeKubeletConfig = (config: Pick<KubeletConfig, "metadata" | "spec">): AdmissionVerdict =>
  judged(`KubeletConfig ${config.metadata.name}`, problemsOfKubeletConfig(config));

/** Validates a ContainerRuntimeConfig by itself. */
export const judgeRuntimeConfig = (config: Pick<ContainerRuntimeConfig, "metadata" | "spec">): AdmissionVerdict =>
  judged(`ContainerRuntimeConfig ${config.metadata.name}`, problemsOfRuntimeConfig(config));

/** The problems of a pool: a selector that selects everything is a mistake that would claim every machine. */
export function problemsOfPool(pool: Pick<MachineConfigPool, "spec">): readonly Problem[] {
  const { machineConfigSelector, nodeSelector, maxUnavailable } = pool.spec;
  const problems: Problem[] = [...problemsOfBudget(maxUnavailable)];
  if (machineConfigSelector !== undefined && selectorIsEmpty(machineConfigSelector))
    problems.push({
      severity: "error",
      path: "spec.machineConfigSelector",
      reason: "is empty and would select every MachineConfig",
      remedy: "name a label, for example machineconfiguration.openshift.io/role",
    });
  if (nodeSelector !== undefined && selectorIsEmpty(nodeSelector))
    problems.push({
      severity: "error",
      path: "spec.nodeSelector",
      reason: "is empty and would select every node",
      remedy: "name a label, for example node-role.kubernetes.io/infra",
    });
  if (machineConfigSelector === undefined)
    problems.push({
      severity: "warning",
      path: "spec.machineConfigSelector",
      reason: "is missing, so that the pool selects no MachineConfig",
    });
  if (nodeSelector === undefined)
    problems.push({
      severity: "warning",
      path: "spec.nodeSelector",
      reason: "is missing, so that the pool selects no node",
    });
  return problems;
}

function problemsOfBudget(maxUnavailable: number | string | undefined): readonly Problem[] {
  if (maxUnavailable === undefined) return [];
  const path = "spec.maxUnavailable";
  const budget = parseBudget(maxUnavailable);
  const remedy = "write a number of machines from 1, or a percentage of them from 1% to 100%";
  if (budget === undefined)
    return [
      {
        severity: "error",
        path,
        reason: `is ${JSON.stringify(String(maxUnavailable).slice(0, 40))}, which is neither a number nor a percentage`,
        remedy,
      },
    ];
  if ("percent" in budget && budget.percent > 100)
    return [{ severity: "error", path, reason: `is ${budget.percent}%, more than all machines`, remedy }];
  const none = "percent" in budget ? budget.percent === 0 : budget.count === 0;
  return none
    ? [
        {
          severity: "warning",
          path,
          reason: "is zero, and counts as 1: a pool that never updates a machine is a paused one",
          remedy: "set spec.paused, or write 1",
        },
      ]
    : [];
}

/** What an answer tells of an object that may have thousands of errors, each with a text of its own length. */
const mostErrors = 100;
const longestError = 1024;

/** The verdict that problems of an object make: errors refuse it, everything else warns. */
export function judged(what: string, problems: readonly Problem[]): AdmissionVerdict {
  const errors = problems.filter(({ severity }) => severity === "error");
  const warnings = problems
    .filter(({ severity }) => severity !== "error")
    .map((problem) => clipWarning(sentence(problem)));
  if (errors.length === 0) return { verdict: "allowed", warnings };
  const told = errors.slice(0, mostErrors);
  const texts = [
    ...told.map((problem) => clipText(sentence(problem), longestError)),
    ...(errors.length > told.length ? [andMore(errors.length - told.length)] : []),
  ];
  return {
    verdict: "refused",
    message: `${what} is invalid: ${texts.join("; ")}`,
    causes: told.map(({ path, reason, remedy }) => ({
      field: clipText(path, longestError),
      message: clipText(remedy === undefined ? reason : `${reason}; ${remedy}`, longestError),
    })),
    warnings,
  };
}
