import { annotations, hostPaths, nodeStates } from "../../api/names.ts";
import { type ChangePlan, describeBecause, isAction } from "./describe-plan.ts";
import { drainRequest, withdrawnDrain, isDrainedFor } from "./drain-requests.ts";
import { describeTarget, isTargetOf, pairOf } from "./image-target.ts";
import type { MachineDocuments, RefusedTarget } from "./machine-record.ts";
import type { ObservedNode } from "./observed-node.ts";
import type { DonePlan, MachineView, NoteChanges, PassMemory, StayBackPlan, UpdatePlan } from "./pass-plan.ts";
import type { Step } from "./plan-node.ts";
import type { Wanted } from "./read-config.ts";
import { countText } from "../text/count-text.ts";

interface Given {
  readonly plan: ChangePlan;
  readonly target: Wanted;
  readonly observed: ObservedNode;
  /** Present while the machine rolls back. */
  readonly wentBack: RefusedTarget | undefined;
}

/** Decides how an update is carried out and reported, whether it begins or continues in this pass. */
export function decideUpdate(view: MachineView, memory: PassMemory, given: Given): UpdatePlan {
  const { plan, target, observed, wentBack } = given;
  const has = view.node.metadata.annotations ?? {};
  const { name } = target.config;
  const what = describeTarget(target.config);
  const plans = (verb: Step["do"]) => plan.steps.some((step) => step.do === verb);
  const drains = plans("drain");
  const isUnderWay =
    has[annotations.state] === nodeStates.working &&
    observed.ledger !== undefined &&
    isTargetOf(observed.ledger, target.config);
  return {
    case: "update",
    target,
    observed,
    plan,
    steps: plan.steps.flatMap((step, index) => stepNow(step, plan.steps[index + 1], { view, memory, name })),
    what,
    drains,
    // After its reboot a machine needs no drain; an earlier drain stays reported.
    skipsDrain: !drains && has[annotations.desiredDrain] !== drainRequest(name),
    changesOs: plans("stageOs") || plans("prefetch"),
    announcement:
      memory.announced === what || isUnderWay
        ? undefined
        : { message: announcementOf(given, drains), isBootResync: memory.resumedBoot !== observed.bootId },
    isRetry: memory.failing === what,
    isNewTarget: wentBack === undefined,
    ending: endingOf(view, memory, given),
  };
}

/** A step as this pass carries it out; nothing if it is already done. */
function stepNow(
  step: Step,
  next: Step | undefined,
  { view, memory, name }: { readonly view: MachineView; readonly memory: PassMemory; readonly name: string },
): readonly Step[] {
  const { fetchedImages } = memory;
  if (step.do === "drain") return isDrainedFor(view.node, name) ? [] : [step];
  // Of use to the pull that follows.
  if (step.do === "refreshCredentials" && next?.do === "prefetch")
    return next.images.every((image) => fetchedImages.has(image)) ? [] : [step];
  if (step.do !== "prefetch") return [step];
  const images = step.images.filter((image) => !fetchedImages.has(image));
  return images.length === 0 ? [] : [{ do: "prefetch", images }];
}

function announcementOf({ plan, target: { config }, observed }: Given, drains: boolean): string {
  const { ignored } = config.provisioningOnly;
  const left =
    observed.previous === undefined && ignored.length > 0 ? `; not carried out here: ${ignored.join(", ")}` : "";
  return `${countText(plan.changes.length, "change")}, drain ${drains ? "required" : "not required"}: ${describeBecause(plan.because)}${left}`;
}

function endingOf(view: MachineView, memory: PassMemory, given: Given): UpdatePlan["ending"] {
  const { plan, target, observed, wentBack } = given;
  const { ledger, bootId, settled: record } = observed;
  const hasRebooted = ledger !== undefined && ledger.bootId !== bootId;
  return {
    hasRebooted,
    putRight:
      hasRebooted && record?.bootId === bootId && record.result === "settled" ? record.changed.length : undefined,
    // The ledger names the system that the boot was to start, if it was another one.
    runsNewSystem:
      hasRebooted && ledger.deployment !== undefined && observed.previous?.osImage !== target.config.osImage,
    skipsReboot: !hasRebooted && plan.changes.length > 0 && !plan.steps.some(isAction),
    // Closing the ledger rewrites the documents, so nothing of them is left to verify.
    after: wentBack === undefined ? donePlan(view, memory, target, undefined) : stayBackPlan(view, target, wentBack),
  };
}

/** @param documents what is still to verify and to forget; absent right after an update. */
export function donePlan(
  view: MachineView,
  memory: PassMemory,
  target: Wanted,
  documents: MachineDocuments | undefined,
): DonePlan {
  const has = view.node.metadata.annotations ?? {};
  const { name } = target.config;
  const pair = pairOf(target.config);
  const isNews =
    has[annotations.state] !== nodeStates.done ||
    has[annotations.currentConfig] !== name ||
    has[annotations.currentImage] !== pair?.image;
  return {
    case: "done",
    target,
    proves:
      documents?.previous?.proven === false && documents.originals !== undefined
        ? { ...documents.previous, proven: true }
        : undefined,
    forgetsRefusals: documents !== undefined && documents.refused.length > 0,
    annotations: {
      ...currentNotes(has, target),
      [annotations.state]: nodeStates.done,
      [annotations.reason]: "",
      ...withdrawnDrain(has, name),
    },
    isNews,
    isFirstOfBoot: memory.resumedBoot !== view.os.bootId,
  };
}

export function stayBackPlan(view: MachineView, target: Wanted, refused: RefusedTarget): StayBackPlan {
  const has = view.node.metadata.annotations ?? {};
  const { name } = target.config;
  const isRevert = refused.content === undefined && pairOf(target.config) !== undefined;
  return {
    case: "stayBack",
    target,
    refused,
    desiredImage: has[annotations.desiredImage] ?? has[annotations.desiredOSImage],
    reason: isRevert ? "RevertFailed" : "TargetRefused",
    message: `${refused.config} is refused: ${refused.reason}; the machine stays on ${name} until another configuration is chosen, the annotation ${annotations.refusedTargets} of its MachineConfigNode is removed, or ${hostPaths.force} is created on it`,
    annotations: { ...currentNotes(has, target), ...withdrawnDrain(has, name) },
  };
}

/** The machine's configuration and image, the image in both spellings. The update requires no further action. */
function currentNotes(has: Readonly<Record<string, string>>, { config }: Wanted): NoteChanges {
  const image = pairOf(config)?.image;
  return {
    [annotations.currentConfig]: config.name,
    [annotations.currentImage]: image,
    [annotations.currentOSImage]: image,
    [annotations.postConfigAction]: has[annotations.postConfigAction] === undefined ? undefined : "",
  };
}
