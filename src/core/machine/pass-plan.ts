import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import type { NodeConfig } from "../config/node-config.ts";
import type { StorageOverride } from "../config/reconcilable.ts";
import type { Originals } from "./content-gap.ts";
import type { ChangePlan } from "./describe-plan.ts";
import type { MachineFacts } from "./judge-target.ts";
import type { MachineDocuments, Previous, RefusedTarget } from "./machine-record.ts";
import type { ObservedNode } from "./observed-node.ts";
import type { Step } from "./plan-node.ts";
import type { Wanted } from "./read-config.ts";

type Notes = Readonly<Record<string, string>>;
/** Annotations to write; `undefined` removes one. */
export type NoteChanges = Readonly<Record<string, string | undefined>>;

/** How a machine without documents of the daemon came to what it has. */
export type Adoption =
  /** It has a configuration: of another daemon, or from its first boot. */
  | {
      readonly verdict: "adopted";
      readonly previous: Previous;
      readonly originals: Originals;
      readonly from: "currentconfig" | "annotation" | "served";
    }
  /** It has none: it meets its first one through this daemon. */
  | { readonly verdict: "fresh" }
  /** It is said to have a configuration that neither its disk nor the cluster holds. */
  | { readonly verdict: "unknown"; readonly config: string };

/** What may be done before the target is compared with the machine, each at most once in a pass. */
export type Preparation = "adopt" | "correctAnnotations" | "reportOverdueReboot" | "reportRefusals" | "noticeTarget";

/** Everything that a pass of the daemon decides from. Optional parts are read when a decision asks for them. */
export interface MachineView {
  /** Monotonic milliseconds at which the pass began. */
  readonly now: number;
  /** How long a machine that was asked to reboot may take to go down. */
  readonly rebootPatienceSeconds: number;
  /** The own Node, as the watch showed it when the pass began. */
  readonly node: Node;
  /** The only control-plane machine: its pods have nowhere to go. */
  readonly onlyControlPlane: boolean;
  readonly configuration: MachineConfiguration | undefined;
  readonly storageOverrides: readonly StorageOverride[];
  readonly documents: MachineDocuments;
  /** Present where the documents name no configuration. */
  readonly adoption: Adoption | undefined;
  /** Annotations that the config server gave the machine; read until the Node names a current configuration. */
  readonly served: Notes | undefined;
  readonly os: Pick<ObservedNode, "bootId" | "booted" | "staged" | "can" | "fips">;
  /** The force file is there. */
  readonly forced: boolean;
  /** What this pass has done already. */
  readonly prepared: ReadonlySet<Preparation>;
  /** Whether the MachineConfigNode still names targets that the machine went back from. */
  readonly refusalsNamed?: boolean;
  /** The MachineConfig that the Node asks for; `config` is absent where it does not exist. */
  readonly desired?: { readonly config: MachineConfig | undefined };
  /** The machine, as far as its configuration and its target name it. */
  readonly compared?: { readonly node: ObservedNode; readonly facts: MachineFacts };
  /** Why the staged system was not finalised at the last shutdown; `text` is absent where it was. */
  readonly finaliseFailure?: { readonly text: string | undefined };
}

/** What a pass needs to know of the passes before it. Times are monotonic milliseconds. */
export interface PassMemory {
  /** The boot that this process has tidied up after: the first pass of a boot reports more than later ones. */
  readonly tidiedBoot: string | undefined;
  /** The boot in which the machine was last found to have its target. */
  readonly resumedBoot: string | undefined;
  /** The last reboot that the daemon asked for. */
  readonly rebootAsked: { readonly bootId: string; readonly at: number } | undefined;
  /** Since when the machine is to boot once more for what was applied from its image. */
  readonly restartAwaitedSince: number | undefined;
  /** Since when the operator is to merge disruption policies. */
  readonly policiesAwaitedSince: number | undefined;
  /** The drift that was last put right by applying the image's content again. */
  readonly healedDrift: { readonly drift: string; readonly at: number } | undefined;
  /** The target whose update was announced. */
  readonly announced: string | undefined;
  /** The announced target whose last try failed. */
  readonly failing: string | undefined;
  /** Images that this process has fetched: a pass that waits for a drain does not ask for them again. */
  readonly fetchedImages: ReadonlySet<string>;
}

/** What a decision has to know beyond what was read. */
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

/** The target contradicts itself, and whoever wrote it can mend it. */
export type HoldReason = "ConflictingImageAnnotations" | "ImageNotDigest" | "ImageContentMismatch";

/** The machine has its target. */
export interface DonePlan {
  readonly case: "done";
  readonly target: Wanted;
  /** The configuration that the machine started with and is now seen to have come up with. */
  readonly proves: Previous | undefined;
  readonly forgetsRefusals: boolean;
  readonly annotations: NoteChanges;
  /** This ends an update, or a state that the Node reported before. */
  readonly isNews: boolean;
  readonly isFirstOfBoot: boolean;
}

/** The machine is well, on what it had before the target that it went back from. */
export interface StayBackPlan {
  readonly case: "stayBack";
  readonly target: Wanted;
  readonly refused: RefusedTarget;
  /** The image that the Node asks for, in either spelling. */
  readonly desiredImage: string | undefined;
  readonly reason: "RevertFailed" | "TargetRefused";
  readonly message: string;
  readonly annotations: NoteChanges;
}

/** Something is left to do, and nothing stands against it. */
export interface UpdatePlan {
  readonly case: "update";
  readonly target: Wanted;
  readonly observed: ObservedNode;
  /** The whole way to the target. */
  readonly plan: ChangePlan;
  /** The steps of this pass: without images that are fetched already and without a drain that is done. */
  readonly steps: readonly Step[];
  /** The target in words, as `announced` and `failing` of the memory name it. */
  readonly what: string;
  readonly drains: boolean;
  /** No drain is needed, and none was asked for. */
  readonly skipsDrain: boolean;
  readonly changesOs: boolean;
  /** Present when the update begins here; an update that goes on is not announced again. */
  readonly announcement: { readonly message: string; readonly isBootResync: boolean } | undefined;
  /** What failed at the last try is not well before this try has succeeded. */
  readonly isRetry: boolean;
  /** A target that the machine did not go back from: its update is told of. */
  readonly isNewTarget: boolean;
  readonly ending: UpdateEnding;
}

/** What is reported once every step is done. */
export interface UpdateEnding {
  /** The machine has rebooted since the ledger was opened. */
  readonly hasRebooted: boolean;
  /** How many things were put right at that boot; absent where none was recorded. */
  readonly putRight: number | undefined;
  readonly runsNewSystem: boolean;
  readonly skipsReboot: boolean;
  readonly after: DonePlan | StayBackPlan;
}

/** What one pass of the daemon does next. Cases before `noTarget` but the waits are followed by another decision. */
export type PassPlan =
  | { readonly case: "observe"; readonly what: Question }
  | ({ readonly case: "adopt" } & Omit<Adoption & { readonly verdict: "adopted" }, "verdict">)
  | { readonly case: "currentConfigMissing"; readonly message: string }
  /** `startedWith`: the configuration of the first boot, where the Node does not name one yet. */
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
  /** A boot was asked for after content was applied: nothing is done before it has come. */
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
      /** Targets that were refused before, less an older entry for the same one. */
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
      /** What is watched until the drift is gone. */
      readonly watch: NodeConfig | undefined;
    }
  | { readonly case: "reportUnapplied"; readonly message: string }
  /** Policies that were just written are not merged yet: what they would spare or ask for is not known. */
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
