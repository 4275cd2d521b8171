/**
 * What a reported reason yields besides its journal line: the Event that `kubectl describe` shows. Like
 * `report-table.ts`, this table is closed: `report` accepts only reasons from these two tables, and a reason with an
 * Event must name the object of the Event.
 */
import type { KubeObject } from "../schema/object.ts";
import type { BookKind, JournalEntry, ReportReason } from "./report-table.ts";
import type { ShortLineOf } from "./short-lines.ts";

export interface EventForm {
  readonly type: "Normal" | "Warning";
  /** CamelCase. Users and scripts depend on it, so it never changes. */
  readonly reason: string;
  /** Only lines in books of this kind become an Event: a pool and its build report the same reason. */
  readonly in?: BookKind;
  /** Only lines in this chapter become an Event: other chapters mention the same reason. */
  readonly chapter?: string;
  /** Only lines of this section become an Event: several sections may give the same reason. */
  readonly path?: string;
}

const normal = <const R extends string>(reason: R) => ({ type: "Normal", reason }) as const;
const warning = <const R extends string>(reason: R) => ({ type: "Warning", reason }) as const;
/** A fault of a machine: its Event has the reason of the line that opens the chapter Degraded. */
const trouble = <const R extends string>(reason: R) => ({ ...warning(reason), in: "node", path: "Failed" }) as const;

/** Reasons of journal lines → the equivalent Event. */
export const eventForms = {
  // controller
  TargetQuarantined: { ...warning("TargetQuarantined"), chapter: "Rollout" },
  MachineExcluded: warning("MachineExcluded"),
  Canary: normal("CanaryStarted"),
  Proven: { ...normal("CanaryPassed"), in: "pool" },
  ProofFailed: { ...warning("CanaryFailed"), in: "pool" },
  RenderedConfigChanged: normal("RenderedConfigChanged"),
  Cordoned: normal("Cordon"),
  CordonedAgain: normal("Cordon"),
  PodsBlocked: warning("DrainBlocked"),
  DrainDeadlineExceeded: warning("DrainDeadlineExceeded"),
  DrainForced: warning("DrainForced"),
  DrainSkipped: warning("DrainSkipped"),
  Uncordoned: normal("Uncordon"),
  // os-builder
  BuildPlanned: normal("BuildStarted"),
  BuildStarted: { ...normal("BuildPreparing"), in: "build" },
  BuildStepFailed: warning("BuildRetryScheduled"),
  ImageBuilt: { ...normal("BuildCompleted"), in: "build", chapter: "Building" },
  BuildFailed: { ...warning("BuildFailed"), in: "build" },
  RetryLimitReached: warning("BuildFailed"),
  BuildInterrupted: normal("BuildInterrupted"),
  ImagePruned: normal("ImagePruned"),
  OptedOut: normal("OptedOut"),
  // daemon
  DrainRequested: { ...normal("Drain"), in: "node" },
  Staging: { ...normal("OSUpdateStarted"), in: "node", path: "Executed/OS" },
  Staged: { ...normal("OSUpdateStaged"), in: "node", path: "Executed/OS" },
  RebootRequested: { ...normal("Reboot"), in: "node", path: "PostAction/Rebooted" },
  Rebooted: { ...normal("Rebooted"), in: "node", path: "PostAction/Rebooted" },
  RebootFailed: { ...warning("RebootFailed"), in: "node" },
  FinaliseFailed: { ...warning("FailedFinalization"), in: "node" },
  Irreconcilable: { ...warning("FailedToReconcile"), in: "node", path: "Prepared" },
  WentBack: { ...warning("WentBack"), in: "node", path: "Updated" },
  ConfigDrift: { ...warning("ConfigDriftDetected"), in: "node" },
  UpdateFailed: trouble("UpdateFailed"),
  ServiceFailed: trouble("ServiceFailed"),
  ConfigNotDelivered: trouble("ConfigNotDelivered"),
  ImagePullFailed: trouble("ImagePullFailed"),
  BootFailed: trouble("BootFailed"),
  BootUndoes: trouble("BootUndoes"),
  SettleFailed: trouble("SettleFailed"),
  RevertFailed: trouble("RevertFailed"),
  TargetRefused: trouble("TargetRefused"),
  ConflictingImageAnnotations: trouble("ConflictingImageAnnotations"),
  ImageNotDigest: trouble("ImageNotDigest"),
  ImageContentMismatch: trouble("ImageContentMismatch"),
  CurrentConfigMissing: trouble("CurrentConfigMissing"),
  WrittenByNewerVersion: trouble("WrittenByNewerVersion"),
  PoliciesNotMerged: trouble("PoliciesNotMerged"),
} as const satisfies Partial<Readonly<Record<ReportReason, EventForm>>>;

/** Reports that belong to no chapter: an Event and a log line, but no journal line. */
export const notices = {
  // controller
  BootImageUpdated: "Normal",
  SelectingAll: "Warning",
  SettingsApplied: "Normal",
  SettingsRefused: "Warning",
  SeveralPools: "Warning",
  Updating: "Normal",
  Completed: "Normal",
  SetDesiredConfig: "Normal",
  DeferringOperatorNodeUpdate: "Normal",
  DrainForecast: "Normal",
  MachineNotWritten: "Warning",
  OSImageStreamsNotRead: "Warning",
  PinnedImageSetWithoutPool: "Warning",
  PoolAnnotationIgnored: "Warning",
  RegistriesNotAsWritten: "Warning",
  RegistriesRefused: "Warning",
  ReleaseAtRisk: "Warning",
  RenderedConfigChanged: "Normal",
  RenderedConfigGenerated: "Normal",
  RenderedConfigsRemoved: "Normal",
  RenderedConfigRestored: "Warning",
  NodeJoined: "Normal",
  // controller: verdicts on certificate requests, named like the verdict; see `CsrReason` of core/join
  NodeJoins: "Normal",
  NodeServes: "Normal",
  NodeRenews: "Normal",
  Malformed: "Warning",
  NotItsOwn: "Warning",
  NodeInService: "Warning",
  NodeOfOtherPool: "Warning",
  PoolUnknown: "Warning",
  AddressUnknown: "Warning",
  NodeNotOurs: "Warning",
  NameBound: "Warning",
  NameOfService: "Warning",
  NameRevoked: "Warning",
  NameOfFormer: "Warning",
  NameReserved: "Warning",
  NoPlace: "Warning",
  PlaceSpent: "Warning",
  CredentialUnknown: "Warning",
  AddressClaimed: "Warning",
  NameReleased: "Normal",
  NodeReturned: "Normal",
  // controller: certificates of former machines
  RefusalsLeftOut: "Warning",
  // operator
  OperatorDegraded: "Warning",
  InputNotRead: "Warning",
  OperatorVersionChanged: "Normal",
  UserDataRenewed: "Normal",
  // os-builder
  BuildAttached: "Normal",
  BuildBuilding: "Normal",
  BuildDegraded: "Warning",
  BuildDeleted: "Normal",
  BuildRecovered: "Normal",
  BuildReused: "Normal",
  ConfigDeleted: "Normal",
  ConfigReconcileFailed: "Warning",
  ConfigReconciled: "Normal",
  ImageContentStamped: "Normal",
  ImageNotPruned: "Warning",
  PoolConfigChanged: "Normal",
  RebuildIgnored: "Warning",
  RebuildRequested: "Normal",
  RebuildUnchanged: "Normal",
  // os-builder: why a MachineOSConfig is not accepted
  DuplicateForPool: "Warning",
  OptedOut: "Warning",
  PoolNotFound: "Warning",
  // state
  JoinOverdue: "Warning",
  // daemon
  BootResync: "Normal",
  ConfigDriftMonitorStarted: "Normal",
  ConfigDriftMonitorStopped: "Normal",
  FailedServiceReload: "Warning",
  FailedServiceRestart: "Warning",
  NodeDone: "Normal",
  OnDiskStateValidationFailed: "Warning",
  OSUpgradeApplied: "Normal",
  ServiceReload: "Normal",
  ServiceRestart: "Normal",
  SkipReboot: "Normal",
} as const satisfies Readonly<Record<string, EventForm["type"]>>;
export type Notice = keyof typeof notices;

/** The object of an Event. */
export type EventSubject = Pick<KubeObject, "apiVersion" | "kind" | "metadata">;

type Formed = typeof eventForms;
type KindOf<L extends JournalEntry> = L["book"] extends `${infer K extends BookKind}/${string}` ? K : "cluster";
type IsInBook<L extends JournalEntry, F> = F extends { readonly in: infer K }
  ? KindOf<L> extends K
    ? true
    : false
  : true;
type IsInChapter<L extends JournalEntry, F> = F extends { readonly chapter: infer C }
  ? L["chapter"] extends C
    ? true
    : false
  : true;
type IsInSection<L extends JournalEntry, F> = F extends { readonly path: infer P }
  ? L["path"] extends P
    ? true
    : false
  : true;
type AsksForSubject<L extends JournalEntry> = L["reason"] extends keyof Formed
  ? [
      IsInBook<L, Formed[L["reason"]]>,
      IsInChapter<L, Formed[L["reason"]]>,
      IsInSection<L, Formed[L["reason"]]>,
    ] extends [true, true, true]
    ? true
    : false
  : false;

/** The journal already has the line: only its Event and its log line are written. */
interface Written {
  readonly isWritten?: boolean;
}

/** A journal line with the object of its Event, if its reason has one; `undefined`: no Event this time. */
export type ReportedLine = JournalEntry extends infer L
  ? L extends JournalEntry
    ? AsksForSubject<L> extends true
      ? L & Written & { readonly about: EventSubject | undefined }
      : L & Written & { readonly about?: EventSubject | undefined }
    : never
  : never;

type Fits<F, K extends keyof EventForm, V> = F extends { readonly [Key in K]: infer W }
  ? V extends W
    ? true
    : false
  : true;
type HasEvent<B, C, P, R> = R extends keyof Formed
  ? [Fits<Formed[R], "in", B>, Fits<Formed[R], "chapter", C>, Fits<Formed[R], "path", P>] extends [true, true, true]
    ? true
    : false
  : false;

/**
 * The same without what the table of reasons has: level, chapter and section, for a reason that is in one section of its
 * book. Pages of reports make these lines.
 */
export type ReportedShortLine = { [B in BookKind]: ReportedShortLineOf<B> }[BookKind];
export type ReportedShortLineOf<B extends BookKind> =
  ShortLineOf<B> extends infer L
    ? L extends { readonly is: infer Place; readonly line: infer Line }
      ? Line & Written & AboutOf<Place>
      : never
    : never;
type AboutOf<Place> = Place extends readonly [infer B, infer C, infer P, infer R]
  ? HasEvent<B, C, P, R> extends true
    ? { readonly about: EventSubject | undefined }
    : { readonly about?: EventSubject | undefined }
  : never;

export interface ReportedNotice {
  readonly about: EventSubject;
  readonly notice: Notice;
  /** Overrides the type from the table. */
  readonly type?: EventForm["type"];
  /** One sentence: what happened. */
  readonly message: string;
}

/** One report; the runtime derives the journal line, the Event and the log line from it. */
export type ReportInput = ReportedLine | ReportedShortLine | ReportedNotice;
