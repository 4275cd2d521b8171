import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { selectorIsEmpty } from "../../api/schema/object.ts";
import { equalValues } from "../../ignition/canonical.ts";
import type { Problem } from "../../ignition/problem.ts";
import { clipWarning } from "./forecast-summary.ts";
import { newPolicyProblems } from "../pool/pool-policy.ts";
import { poolOfRendered } from "../config/is-rendered.ts";
import { whyNotDeleted } from "../pool/retained-configs.ts";
import { validateMachineConfig } from "../config/validate-machine-config.ts";

/** The verdict for the API server about an object to be stored. */
export type AdmissionVerdict =
  | { readonly verdict: "allowed"; readonly warnings: readonly string[] }
  | {
      readonly verdict: "refused";
      readonly message: string;
      readonly causes: readonly { readonly field: string; readonly message: string }[];
      readonly warnings: readonly string[];
    }
  /** The object is valid but must not be deleted. */
  | { readonly verdict: "forbidden"; readonly message: string; readonly warnings: readonly string[] };

const sentence = ({ path, reason, remedy }: Problem) =>
  `${path === "" ? "" : `${path}: `}${reason}${remedy === undefined ? "" : `; ${remedy}`}`;

/** Validates a MachineConfig by itself, by the same rules as rendering and the machines. */
export function judgeMachineConfig(config: Pick<MachineConfig, "metadata" | "spec">): AdmissionVerdict {
  return judged(`MachineConfig ${config.metadata.name}`, validateMachineConfig(config));
}

/**
 * Judges the deletion of a MachineConfig: a rendered one stays as long as anything uses it. `users`: what does, for
 * people.
 */
export function judgeDeletion(config: Pick<MachineConfig, "metadata">, users: readonly string[]): AdmissionVerdict {
  if (poolOfRendered(config) === undefined || users.length === 0) return { verdict: "allowed", warnings: [] };
  return { verdict: "forbidden", message: whyNotDeleted(config.metadata.name, users), warnings: [] };
}

/**
 * Judges a pool by itself: its spec, and what its annotations ask for. What it had before and keeps is not judged
 * again.
 */
export function judgePool(
  pool: Pick<MachineConfigPool, "metadata" | "spec">,
  before?: Pick<MachineConfigPool, "metadata" | "spec">,
): AdmissionVerdict {
  const ofSpec = before !== undefined && equalValues(pool.spec, before.spec) ? [] : problemsOfPool(pool);
  return judged(`MachineConfigPool ${pool.metadata.name}`, [...ofSpec, ...newPolicyProblems(pool, before)]);
}

/** What is wrong with a pool: selectors that select everything are a mistake that would take every machine. */
export function problemsOfPool(pool: Pick<MachineConfigPool, "spec">): readonly Problem[] {
  const { machineConfigSelector, nodeSelector } = pool.spec;
  const problems: Problem[] = [];
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

function judged(what: string, problems: readonly Problem[]): AdmissionVerdict {
  const errors = problems.filter(({ severity }) => severity === "error");
  const warnings = problems
    .filter(({ severity }) => severity !== "error")
    .map((problem) => clipWarning(sentence(problem)));
  if (errors.length === 0) return { verdict: "allowed", warnings };
  return {
    verdict: "refused",
    message: `${what} is invalid: ${errors.map(sentence).join("; ")}`,
    causes: errors.map(({ path, reason, remedy }) => ({
      field: path,
      message: remedy === undefined ? reason : `${reason}; ${remedy}`,
    })),
    warnings,
  };
}
