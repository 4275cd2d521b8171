import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import type { NodeConfig } from "../config/node-config.ts";
import type { StorageOverride } from "../config/reconcilable.ts";
import type { Originals } from "./observed-content.ts";
import type { ChangePlan } from "./describe-plan.ts";
import type { MachineFacts } from "./judge-target.ts";
import type { MachineDocuments, Previous, RefusedTarget } from "./machine-record.ts";
import type { ObservedNode } from "./observed-node.ts";
import type { Step } from "./plan-node.ts";
import type { Wanted } from "./read-config.ts";

type Notes = Readonly<Record<string, string>>;
/** Annotations to write; `undefined` removes one. */
export type NoteChanges = Readonly<Record<string, string | undefined>>;

/** The origin of the configuration of a machine without daemon documents. */
export type Adoption =
  /** It has a configuration from another daemon or from its first boot. */
  | {
      readonly verdict: "adopted";
      readonly previous: Previous;
      readonly originals: Originals;
      readonly from: "currentconfig" | "annotation" | "served";
    }
  /** It has none: this daemon applies its first one. */
  | { readonly verdict: "fresh" }
  /** Its annotations name a configuration that neither its disk nor the cluster has. */
  | { readonly verdict: "unknown"; readonly config: string };

/** Preparations before the target is compared with the machine, each at most once in a pass. */
export type Preparation = "adopt" | "correctAnnotations" | "reportOverdueReboot" | "reportRefusals" | "noticeTarget";

/** The inputs of one pass of the daemon. Optional parts are read when a decision requires them. */
export interface MachineView {
  /** Monotonic milliseconds at which the pass began. */
  readonly now: number;
  /** How long a machine may take to shut down after a reboot request. */
  readonly rebootPatienceSeconds: number;
  /** The own Node, as the watch showed it when the pass began. */
  readonly node: Node;
  /** The only control-plane machine: its pods have nowhere to go. */
  readonly onlyControlPlane: boolean;
  readonly configuration: MachineConfiguration | undefined;
  readonly storageOverrides: readonly StorageOverride[];
  readonly documents: MachineDocuments;
  /** Present if the documents name no configuration. */
  readonly adoption: Adoption | undefined;
  /** Annotations that the config server gave the machine; read until the Node names a current configuration. */
  readonly served: Notes | undefined;
  readonly os: Pick<ObservedNode, "bootId" | "booted" | "staged" | "can" | "fips">;
  /** The force file exists. */
  readonly forced: boolean;
  /** What this pass has done already. */
  readonly prepared: ReadonlySet<Preparation>;
  /** Whether the MachineConfigNode still names targets that the machine rolled back from. */
  readonly refusalsNamed?: boolean;
  /** The MachineConfig that the Node requests; `config` is absent if it does not exist. */
  readonly desired?: { readonly config: MachineConfig | undefined };
  /** The parts of the machine that its configuration and its target name. */
  readonly compared?: { readonly node: ObservedNode; readonly facts: MachineFacts };
  /** Why the staged system was not finalised at the last shutdown; `text` is absent if it was. */
  readonly finaliseFailure?: { readonly text: string | undefined };
}

/** What a pass remembers of earlier passes. Times are monotonic milliseconds. */
export interface PassMemory {
  /** The boot that this process has cleaned up after: the first pass of a boot reports more than later ones. */
  readonly tidiedBoot: string | undefined;
  /** The boot in which the machine was last found to have its target. */
  readonly resumedBoot: string | undefined;
  /** The last reboot that the daemon asked for. */
  readonly rebootAsked: { readonly bootId: string; readonly at: number } | undefined;
  /** Since when the machine must boot again for the applied content of its image. */
  readonly restartAwaitedSince: number | undefined;
  /** Since when the daemon waits for the operator to merge disruption policies. */
  readonly policiesAwaitedSince: number | undefined;
  /** The drift that was last repaired by applying the image's content again. */
  readonly healedDrift: { readonly drift: string; readonly at: number } | undefined;
  /** The target whose update was announced. */
  readonly announced: string | undefined;
  /** The announced target whose last attempt failed. */
  readonly failing: string | undefined;
  /** Images that this process has fetched: a pass that waits for a drain does not fetch them again. */
  readonly fetchedImages: ReadonlySet<string>;
}

/** Inputs of a decision beyond the observed view. */
export type Question =
  | { readonly read: "refusals" }
  | { readonly read: "config"; readonly name: string }
  | { readonly read: "finaliseFailure" }
  | {
      readonly read: "machine";
      readonly previous: NodeConfig | undefined;
      readonly target: NodeConfig;
      readonly inService: boolean;
    };

/** The target contradicts itself; its author can correct it. */
export type HoldReason = "ConflictingImageAnnotations" | "ImageNotDigest" | "ImageContentMismatch";

/** The machine has its target. */
export interface DonePlan {
  readonly case: "done";
  readonly target: Wanted;
  /** The configuration that the machine started with and that is now verified. */
  readonly proves: Previous | undefined;
  readonly forgetsRefusals: boolean;
  readonly annotations: NoteChanges;
  /** This ends an update, or a state that the Node reported. */
  readonly isNews: boolean;
  readonly isFirstOfBoot: boolean;
}

/** The machine runs its previous target after a roll-back. */
export interface StayBackPlan {
  readonly case: "stayBack";
  readonly target: Wanted;
  readonly refused: RefusedTarget;
  /** The image that the Node requests, in either spelling. */
  readonly desiredImage: string | undefined;
  readonly reason: "RevertFailed" | "TargetRefused";
  readonly message: string;
  readonly annotations: NoteChanges;
}

/** Work is left to do, and nothing prevents it. */
export interface UpdatePlan {
  readonly case: "update";
  readonly target: Wanted;
  readonly observed: ObservedNode;
  /** The complete plan to the target. */
  readonly plan: ChangePlan;
  /** The steps of this pass, without fetched images and completed drains. */
  readonly steps: readonly Step[];
  /** The target in words, as `announced` and `failing` of the memory name it. */
  readonly what: string;
  readonly drains: boolean;
  /** No drain is needed, and none was requested. */
  readonly skipsDrain: boolean;
  readonly changesOs: boolean;
  /** Present when the update begins; a continued update is not announced again. */
  readonly announcement: { readonly message: string; readonly isBootResync: boolean } | undefined;
  /** After a failed attempt, the machine stays degraded until this attempt succeeds. */
  readonly isRetry: boolean;
  /** A target that the machine did not roll back from: its update is reported. */
  readonly isNewTarget: boolean;
  readonly ending: UpdateEnding;
}

/** What is reported once every step is done. */
export interface UpdateEnding {
  /** The machine has rebooted since the ledger was opened. */
  readonly hasRebooted: boolean;
  /** The number of repairs at that boot; absent if none was recorded. */
  readonly putRight: number | undefined;
  readonly runsNewSystem: boolean;
  readonly skipsReboot: boolean;
  readonly after: DonePlan | StayBackPlan;
}

/**
 * What one pass of the daemon does next. The cases before `noTarget`, except waits, are followed by another decision.
 */
export type PassPlan =
  | { readonly case: "observe"; readonly what: Question }
  | ({ readonly case: "adopt" } & Omit<Adoption & { readonly verdict: "adopted" }, "verdict">)
  | { readonly case: "currentConfigMissing"; readonly message: string }
  /** `startedWith`: the configuration of the first boot, if the Node does not name one yet. */
  | {
      readonly case: "correctAnnotations";
      readonly annotations: NoteChanges;
      readonly startedWith: string | undefined;
    }
  | {
      readonly case: "tidyAfterBoot";
      readonly config: NodeConfig | undefined;
      readonly failure: string | undefined;
      readonly isNewFailure: boolean;
      readonly hasRebooted: boolean;
    }
  | { readonly case: "awaitReboot"; readonly message: string; readonly seconds: number }
  | { readonly case: "reportOverdueReboot"; readonly problem: string }
  /** A reboot was requested after content was applied: wait for it. */
  | {
      readonly case: "awaitRestart";
      readonly because: string;
      readonly since: number;
      readonly asksAgain: boolean;
      readonly seconds: number;
    }
  | { readonly case: "forgetRefusals" }
  | { readonly case: "reportRefusals"; readonly refused: readonly RefusedTarget[] }
  | { readonly case: "noTarget"; readonly message: string }
  | { readonly case: "targetAbsent"; readonly message: string }
  | { readonly case: "noticeTarget"; readonly target: string; readonly from: string | undefined }
  | {
      readonly case: "hold";
      readonly reason: HoldReason;
      readonly message: string;
      readonly annotations: NoteChanges;
    }
  | { readonly case: "refuse"; readonly message: string; readonly annotations: NoteChanges }
  | { readonly case: "previousUnreadable"; readonly problem: string }
  | {
      readonly case: "goBack";
      readonly reason: "BootFailed" | "SettleFailed";
      readonly message: string;
      readonly to: string;
      readonly entry: Omit<RefusedTarget, "at">;
      /** Targets refused earlier, without an older entry for the same one. */
      readonly others: readonly RefusedTarget[];
    }
  | {
      readonly case: "nothingToGoBackTo";
      readonly reason: "BootFailed" | "SettleFailed";
      readonly message: string;
    }
  | {
      readonly case: "healDrift";
      readonly drift: string;
      readonly message: string;
      readonly target: Wanted;
      readonly observed: ObservedNode;
    }
  | {
      readonly case: "reportDrift";
      readonly event: "ConfigDriftDetected" | "OnDiskStateValidationFailed";
      readonly message: string;
      readonly annotations: NoteChanges;
      /** What to watch until the drift is gone. */
      readonly watch: NodeConfig | undefined;
    }
  | { readonly case: "reportUnapplied"; readonly message: string }
  /** Each boot undoes what was written: another one would not help. */
  | { readonly case: "reportUndone"; readonly message: string }
  /** New policies are not merged yet: their effect is unknown. */
  | {
      readonly case: "awaitPolicies";
      readonly message: string;
      readonly since: number;
      readonly isFirst: boolean;
      readonly isOverdue: boolean;
    }
  | DonePlan
  | StayBackPlan
  | UpdatePlan;

export type PassCase<Name extends PassPlan["case"]> = PassPlan & { readonly case: Name };
