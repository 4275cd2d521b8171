import type { KubeObject } from "../../api/schema/object.ts";
import type { Problem } from "../../ignition/problem.ts";
import { clipWarning } from "./forecast-summary.ts";
import { clipText } from "../text/clip-text.ts";
import { shortList } from "../text/list-text.ts";
import type { RenderRefusal } from "../render/render-pool.ts";
import { type Stored, problemsOfObject } from "./object-rules.ts";
import type { ClusterForecast } from "./plan-cluster.ts";

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

/** The verdict about an object by itself. */
export const judgeObject = (kind: string, object: KubeObject, stored: Stored): AdmissionVerdict =>
  judged(`${kind} ${object.metadata.name}`, problemsOfObject(kind, object, stored));

/**
 * Why a MachineConfig is refused although it can be had by itself: no machine could have it together with the other
 * MachineConfigs of a pool. @param forecast what the change does.
 */
export function judgeAmongMembers(name: string, forecast: Pick<ClusterForecast, "pools">): AdmissionVerdict {
  const problems = refusalsOfMembers(forecast).flatMap(({ reason, remedy, involves = [] }) => {
    const own = involves.find(({ member }) => member === name);
    return own === undefined ? [] : [asProblem(own.path, reason, remedy)];
  });
  return judged(`MachineConfig ${name}`, problems);
}

/** Why a pool is refused: no machine could have what its selector newly selects. */
export function judgeMembersOfPool(name: string, forecast: Pick<ClusterForecast, "pools">): AdmissionVerdict {
  const own = { pools: forecast.pools.filter(({ pool }) => pool === name) };
  const problems = refusalsOfMembers(own).map(({ reason, remedy }) =>
    asProblem("spec.machineConfigSelector", reason, remedy),
  );
  return judged(`MachineConfigPool ${name}`, problems);
}

/** A reason that says the same wherever in their lists the items are by now. */
const withoutPlaces = (reason: string): string => reason.replaceAll(/\[\d+\]/g, "[]");

/** What is newly wrong with members together, each once, whatever number of pools selects them. */
function refusalsOfMembers({ pools }: Pick<ClusterForecast, "pools">): readonly RenderRefusal[] {
  const all = pools.flatMap((pool) => {
    if (pool.verdict !== "refused") return [];
    const stood = new Set(pool.stood.map(withoutPlaces));
    return pool.refusals.filter(({ reason }) => !stood.has(withoutPlaces(reason)));
  });
  return [...new Map(all.filter(({ involves }) => involves !== undefined).map((one) => [one.reason, one])).values()];
}

const asProblem = (path: string, reason: string, remedy: string | undefined): Problem => ({
  severity: "error",
  path,
  reason,
  ...(remedy === undefined ? {} : { remedy }),
});

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
  const texts = shortList(errors, mostErrors, (problem) => clipText(sentence(problem), longestError));
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
