import { pushAll } from "../../api/schema/push-all.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { LabelSelector } from "../../api/schema/object.ts";
import type { Problem } from "../../ignition/problem.ts";
import { selectorProblem } from "../config/pool-selector.ts";
import { parseBudget } from "./select-nodes.ts";

/**
 * The problems of a pool: a selector that selects everything is a mistake that would claim every machine, and a malformed
 * one selects nothing.
 */
export function problemsOfPool(pool: Pick<MachineConfigPool, "spec">): readonly Problem[] {
  const { machineConfigSelector, nodeSelector, maxUnavailable } = pool.spec;
  const problems: Problem[] = [...problemsOfBudget(maxUnavailable)];
  pushAll(problems, [
    ...problemsOfSelector("spec.machineConfigSelector", machineConfigSelector, {
      reason: "is empty and would select every MachineConfig",
      remedy: "name a label, for example machineconfiguration.openshift.io/role",
    }),
    ...problemsOfSelector("spec.nodeSelector", nodeSelector, {
      reason: "is empty and would select every node",
      remedy: "name a label, for example node-role.kubernetes.io/infra",
    }),
  ]);
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

function problemsOfSelector(
  path: string,
  selector: LabelSelector | undefined,
  whereEmpty: { readonly reason: string; readonly remedy: string },
): readonly Problem[] {
  const problem = selector === undefined ? undefined : selectorProblem(selector);
  if (problem === undefined) return [];
  const { reason, remedy } = problem.is === "empty" ? whereEmpty : problem;
  return [{ severity: "error", path: `${path}${problem.field}`, reason, remedy }];
}

const shownBudget = (value: number | string) =>
  typeof value === "number" ? String(value) : JSON.stringify(value.slice(0, 40));

/** What is wrong with `maxUnavailable`, and what it counts as meanwhile. */
export function problemsOfBudget(maxUnavailable: number | string | undefined): readonly Problem[] {
  if (maxUnavailable === undefined) return [];
  const path = "spec.maxUnavailable";
  const budget = parseBudget(maxUnavailable);
  const remedy = "write a number of machines from 1, or a percentage of them from 1% to 100%";
  if (budget === undefined)
    return [
      {
        severity: "error",
        path,
        reason: `is ${shownBudget(maxUnavailable)}, which is neither a number of machines nor a percentage, and counts as 1`,
        remedy:
          typeof maxUnavailable === "string" && /^\d+$/.test(maxUnavailable)
            ? `write ${maxUnavailable} without quotes`
            : remedy,
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
