import type { ClusterVersion } from "../../api/foreign/openshift.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { objects } from "../../api/names.ts";
import { type Condition, conditionOf } from "../../api/schema/object.ts";
import { clipText } from "../text/clip-text.ts";
import type { BootImageDecision } from "./decide-boot-image.ts";

/** A MachineSet that is selected, and what became of its boot image. */
export interface JudgedSet {
  readonly name: string;
  readonly decision: BootImageDecision;
}

export interface BootImageOutcome {
  readonly sets: readonly JudgedSet[];
  /** What all updates wait for. */
  readonly awaited: string | undefined;
  /** Why no boot image of the release is known. */
  readonly problem: string | undefined;
  /** Resources that are asked for and not managed. */
  readonly unsupported: readonly string[];
}

export const bootImageConditions = {
  progressing: "BootImageUpdateProgressing",
  degraded: "BootImageUpdateDegraded",
} as const;

/** Reasons by which the controller knows conditions of its own. */
export const bootImageReasons = {
  none: "NA",
  reconciled: "Reconciled",
  skipped: "Skipped",
  waiting: "WaitingForRelease",
  updating: "Updating",
  healthy: "AsExpected",
  failing: "Failing",
  unsupported: "NotSupported",
} as const;

/** The longest message of these conditions: each set says its part, and a cluster may have hundreds. */
const mostCharacters = 8192;

/** Boot images that are newer than the control plane are not given out: a machine could not join. */
export function releaseAwaited(
  pool: Pick<MachineConfigPool, "spec" | "status"> | undefined,
  version: Pick<ClusterVersion, "status"> | undefined,
): string | undefined {
  const [latest] = version?.status?.history ?? [];
  if (version !== undefined && latest?.state !== "Completed") return "the cluster is being upgraded";
  const conditions = (pool?.status?.conditions ?? []) as readonly Condition[];
  const is = (type: string) => conditionOf(conditions, type)?.status === "True";
  const target = pool?.spec.configuration?.name;
  const isThere =
    (is("Updated") && target !== undefined && target === pool?.status?.configuration?.name) ||
    (is("Updating") && (pool?.status?.updatedMachineCount ?? 0) > 0);
  return isThere ? undefined : "no machine of the control plane has the present configuration of its pool";
}

type Said = Pick<Condition, "type" | "status" | "reason" | "message">;

/** The two conditions about boot images. Counts are in the reference's words. */
export function describeBootImages({ sets, awaited, problem, unsupported }: BootImageOutcome): readonly [Said, Said] {
  const of = (verdict: BootImageDecision["verdict"]) => sets.filter(({ decision }) => decision.verdict === verdict);
  const [skipped, refused, due] = [of("skipped"), of("refused"), of("update")];
  const total = sets.length;
  const failures = [
    ...(problem === undefined ? [] : [problem]),
    ...refused.map(describeSet),
    ...unsupported.map(
      (resource) =>
        `boot images of ${resource} are not managed; set the selection mode of ${resource} in spec.managedBootImages to None`,
    ),
  ];
  const isOnlyUnsupported = failures.length === unsupported.length;
  const done = total - skipped.length - refused.length - due.length;
  const counts = `Reconciled ${done} of ${total} MAPI MachineSets${skipped.length === 0 ? "" : ` (${skipped.length} skipped)`}`;
  const waits = due.length > 0 && awaited !== undefined;
  return [
    {
      type: bootImageConditions.progressing,
      status: due.length > 0 ? "True" : "False",
      reason:
        total === 0
          ? bootImageReasons.none
          : due.length > 0
            ? waits
              ? bootImageReasons.waiting
              : bootImageReasons.updating
            : skipped.length > 0
              ? bootImageReasons.skipped
              : bootImageReasons.reconciled,
      message:
        total === 0
          ? ""
          : clipText(
              [counts, ...(waits ? [`${due.length} wait: ${awaited}`] : []), ...skipped.map(describeSet)].join("; "),
              mostCharacters,
            ),
    },
    {
      type: bootImageConditions.degraded,
      status: failures.length > 0 ? "True" : "False",
      reason:
        failures.length === 0
          ? total === 0
            ? bootImageReasons.none
            : bootImageReasons.healthy
          : isOnlyUnsupported
            ? bootImageReasons.unsupported
            : bootImageReasons.failing,
      message: clipText(failures.join("; "), mostCharacters),
    },
  ];
}

const describeSet = ({ name, decision }: JudgedSet): string =>
  decision.verdict === "skipped" || decision.verdict === "refused"
    ? `MachineSet ${name}: ${decision.because} (${decision.remedy})`
    : `MachineSet ${name}`;

/** Why the release names no boot images. */
export const bootImagesUnread = (problem: string): string =>
  `the ConfigMap ${objects.bootImages} is not read: ${problem}`;
