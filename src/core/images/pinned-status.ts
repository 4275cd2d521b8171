import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import { pinnedImageConditions } from "../../api/names.ts";
import { setCondition } from "../../api/schema/conditions.ts";
import { clipText } from "../text/clip-text.ts";
import type { PinGrant } from "./pin-grant.ts";
import { type PinFailure, type PinnedSet, isVersion, pinFailureText } from "./pinned-images.ts";

type Status = NonNullable<MachineConfigNode["status"]>;
type SetStatus = NonNullable<Status["pinnedImageSets"]>[number];
type Condition = NonNullable<Status["conditions"]>[number];

/** How far a machine is with the sets of a grant. */
export interface PinReport {
  readonly grant: Pick<PinGrant, "sets">;
  /** Sets whose images all lie on the machine. */
  readonly complete: readonly PinnedSet[];
  readonly failures: readonly PinFailure[];
  /** `undefined`: the turn is over. */
  readonly underWay: { readonly images: number; readonly present: number } | undefined;
}

const messageLimit = 4096;
const errorLimit = 8192;

/**
 * The part of a MachineConfigNode's status that is about pinned images, with the reasons of the reference; `undefined`: it
 * says so already.
 *
 * @param now milliseconds since the epoch.
 */
export function pinnedStatus(
  before: Status | undefined,
  report: PinReport,
  now: number,
): Pick<Status, "conditions" | "pinnedImageSets"> | undefined {
  const { grant, failures, underWay } = report;
  const had = new Map((before?.pinnedImageSets ?? []).map((set) => [set.name, set]));
  const pinnedImageSets = grant.sets.map((set) => statusOfSet(set, had.get(set.name), report));
  const isFailed = failures.length > 0;
  const progressing: Omit<Condition, "lastTransitionTime"> = {
    type: pinnedImageConditions.progressing,
    status: underWay === undefined ? "False" : "True",
    reason: underWay === undefined ? (isFailed ? "PrefetchFailed" : "AsExpected") : "ImagePrefetch",
    message:
      underWay === undefined
        ? isFailed || grant.sets.length === 0
          ? ""
          : "All pinned image sets complete"
        : `${underWay.present} of ${underWay.images} images are on the machine`,
  };
  const failedSets = Map.groupBy(failures, ({ set }) => set);
  const texts = [...failedSets].map(([name, those]) => `PinnedImageSet ${name}: ${pinFailureText(those)}`);
  const degraded: Omit<Condition, "lastTransitionTime"> = {
    type: pinnedImageConditions.degraded,
    status: isFailed ? "True" : "False",
    reason: isFailed ? "PrefetchFailed" : "AsExpected",
    message: clipText(texts.join("; "), messageLimit),
  };
  const conditionsBefore = before?.conditions ?? [];
  // While a failed machine tries again, its failure stands until it has the images.
  const stands =
    underWay !== undefined &&
    conditionsBefore.some(({ type, status }) => type === pinnedImageConditions.degraded && status === "True");
  const withProgress = setCondition(conditionsBefore, progressing, now);
  const conditions = stands && !isFailed ? withProgress : setCondition(withProgress, degraded, now);
  const isSame =
    conditions.length === conditionsBefore.length &&
    conditions.every((condition, index) => condition === conditionsBefore[index]) &&
    JSON.stringify(pinnedImageSets) === JSON.stringify(before?.pinnedImageSets ?? []);
  return isSame ? undefined : { conditions, pinnedImageSets };
}

/** The conditions of a machine whose turn is over before all images are there; `undefined`: nothing went on. */
export function pausedConditions(before: readonly Condition[], now: number): Condition[] | undefined {
  const progressing = before.find(({ type }) => type === pinnedImageConditions.progressing);
  if (progressing?.status !== "True") return undefined;
  const { type, message } = progressing;
  return setCondition(before, { type, status: "False", reason: "AwaitsTurn", message }, now);
}

function statusOfSet(
  set: PinGrant["sets"][number],
  had: SetStatus | undefined,
  { complete, failures }: PinReport,
): SetStatus {
  const own = failures.filter((failure) => failure.set === set.name);
  const known = complete.find(({ name, uid }) => name === set.name && uid === set.uid);
  const isWhole = complete.some((one) => isVersion(one, set));
  // What an object of that name had before it was created again says nothing of this one.
  const failedBefore =
    had?.lastFailedGeneration !== undefined && had.lastFailedGeneration <= set.generation && !isWhole
      ? {
          lastFailedGeneration: had.lastFailedGeneration,
          lastFailedGenerationError: had.lastFailedGenerationError ?? "",
        }
      : {};
  return {
    name: set.name,
    desiredGeneration: set.generation,
    ...(known === undefined ? {} : { currentGeneration: Math.min(known.generation, set.generation) }),
    ...(own.length > 0
      ? {
          lastFailedGeneration: set.generation,
          lastFailedGenerationError: clipText(pinFailureText(own), errorLimit),
        }
      : failedBefore),
  };
}

/**
 * The entries that have to leave the status before `after` can be written: where a set is created again, its generation
 * begins again, and the reference's CustomResourceDefinition lets no generation fall. `undefined`: none.
 */
export function withoutFalling(
  before: Status | undefined,
  after: Pick<Status, "pinnedImageSets">,
): readonly SetStatus[] | undefined {
  const next = new Map((after.pinnedImageSets ?? []).map((set) => [set.name, set]));
  const falls = (set: SetStatus) => {
    const to = next.get(set.name);
    return (
      to !== undefined &&
      (["currentGeneration", "desiredGeneration", "lastFailedGeneration"] as const).some(
        (key) => (to[key] ?? Infinity) < (set[key] ?? 0),
      )
    );
  };
  const had = before?.pinnedImageSets ?? [];
  return had.some(falls) ? had.filter((set) => !falls(set)) : undefined;
}
