import type { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import type { TaskOutcome } from "./cluster-operator-status.ts";

/** The version that everything was last seen at; `undefined` before the first time. */
export const reachedVersion = (operator: ClusterOperator | undefined): string | undefined =>
  operator?.status?.versions?.find(({ name }) => name === "operator")?.version;

/** Where the cluster is on the way to the operator's version. */
export type VersionStep =
  /** Everything was at this version before. */
  | { readonly step: "arrivedBefore"; readonly reached: string }
  /** The first installation continues. */
  | { readonly step: "installing"; readonly reached: undefined }
  /** `isBegun`: an earlier process has reported that the upgrade began. */
  | { readonly step: "upgrading"; readonly reached: string; readonly isBegun: boolean }
  /** Every task is done for the first time. `from`: the version before; `undefined` after an installation. */
  | { readonly step: "arrived"; readonly reached: string; readonly from: string | undefined };

/** A version is reached when all tasks are done at once; what was reached stays until the next one is. */
export function versionStep(
  version: string,
  operator: ClusterOperator | undefined,
  outcomes: readonly TaskOutcome[],
): VersionStep {
  const before = reachedVersion(operator);
  if (before === version) return { step: "arrivedBefore", reached: before };
  if (outcomes.every(({ kind }) => kind === "done")) return { step: "arrived", reached: version, from: before };
  if (before === undefined) return { step: "installing", reached: undefined };
  const progressing = operator?.status?.conditions?.find(({ type }) => type === "Progressing");
  return { step: "upgrading", reached: before, isBegun: progressing?.reason === "Upgrading" };
}
