/**
 * Everything that can be reported, as closed tables: kinds of books, the chapters of each, the sections of each
 * chapter, and the reasons of each section. A line that is not in them does not compile. `docs/errors.md` and the texts
 * of alerts are generated from them.
 */

/** How much a line matters: boundary lines open and close chapters and sections, and are never dropped. */
export type ReportLevel = "boundary" | "progress" | "debug";
export const reportMarks = ["begin", "note", "end", "fail", "skip", "retry"] as const;
/** What a line does to its section. */
export type ReportMark = (typeof reportMarks)[number];

export const sectionOutcomes = [
  "Succeeded",
  "Failed",
  "Skipped",
  "NotRequired",
  "Superseded",
  "Interrupted",
  "RolledBack",
  "Unknown",
] as const;
/** How a section or a chapter ended. */
export type SectionOutcome = (typeof sectionOutcomes)[number];

interface ReasonText {
  /** One sentence: what happened. */
  readonly means: string;
  /** The default next action for a person; empty: none. */
  readonly next: string;
  /** The next action is none: it passes, or stays as it is. */
  readonly isNone?: true;
}

const nothing = (means: string): ReasonText => ({ means, next: "" });
const asks = (means: string, next: string): ReasonText => ({ means, next });
const asksNothing = (means: string, because: string): ReasonText => ({
  means,
  next: `Nothing: ${because}`,
  isNone: true,
});

/**
 * Every reason of a journal line, section, chapter or health condition, with its explanation and default next action.
 */
export const reportReasons = {
  // a node's update
  TargetSet: nothing("The node controller chose this machine and gave it a new target."),
  TargetSeen: nothing("The daemon has seen its new target."),
  Checking: nothing("The daemon compares the machine with its target."),
  Planned: nothing("The daemon knows what has to be done, and why."),
  Irreconcilable: asks(
    "The target cannot be applied to a machine that runs.",
    "Do what the message says: the machine looks again by itself. Or take the change back, or replace the machine.",
  ),
  PoliciesNotMerged: asks(
    "Disruption policies were changed and the operator has not merged them yet.",
    "Nothing, if it passes; otherwise look at the operator: mco explain co/machine-config.",
  ),
  TargetRefused: asks(
    "The machine went back from this target once and does not retry it on its own.",
    "Correct or revert the MachineConfig; or remove the annotation refusedTargets of its MachineConfigNode to have it tried again.",
  ),
  Pulling: nothing("The machine fetches an image."),
  Pulled: nothing("The image is on the machine, verified."),
  PullFailed: asks(
    "An image could not be fetched or verified.",
    "Read the message: the registry, the pull secret, the signature policy or the free space of the disk.",
  ),
  DrainRequested: nothing("The daemon requested that the machine be taken out of service."),
  Cordoned: nothing("The machine takes no new pods."),
  CordonedAgain: asks(
    "The machine was uncordoned while its drain was still needed; it was cordoned again.",
    "Leave it cordoned until its update is over, or pause its pool.",
  ),
  Draining: nothing("Pods are being evicted from the machine."),
  DrainForecast: nothing("The drain was checked in advance, before the machine was cordoned."),
  PodsBlocked: asks(
    "Pods do not leave: a disruption budget or an admission rule holds them, or they do not end.",
    "Give the application that is named room: more replicas, a budget that lets one go, or machines that can take its pods.",
  ),
  DrainDeadlineExceeded: asks(
    "The drain takes longer than its pool gives it.",
    "Look at the named pods; the pool's drain policy decides what happens automatically.",
  ),
  DrainForced: asks(
    "The pool's policy had a pod deleted that would not leave.",
    "Check that the application that is named has recovered.",
  ),
  DrainSkipped: asks(
    "The drain was given up for now; the machine stays in service and is tried again later.",
    "Give the pods that are named room before it is tried again.",
  ),
  Drained: nothing("All pods that had to leave have left."),
  Staging: nothing("A system is prepared for the next boot."),
  Staged: nothing("The system is prepared; the next boot runs it."),
  StageFailed: asks(
    "The system could not be prepared; what runs is as it was.",
    "Read the message: most often the image or the free space of the disk.",
  ),
  Writing: nothing("Files and units are written."),
  Written: nothing("All files and units are on the disk."),
  WriteFailed: asks(
    "A file or unit could not be written; it is tried again.",
    "Read the message: the path, its folder, or the free space of the disk.",
  ),
  RebootRequested: nothing("The machine was asked to reboot."),
  Rebooted: nothing("The machine is up with a new boot id."),
  RebootFailed: asks(
    "A reboot was requested, but the machine stays up.",
    "Find the job that keeps the machine up (systemctl list-jobs), or reboot it by hand.",
  ),
  Acting: nothing("Services are put in order without a reboot."),
  ServiceReloaded: nothing("Services read their configuration again."),
  ServiceRestarted: nothing("Services were restarted."),
  DaemonReloaded: nothing("The service manager read its units again."),
  None: nothing("No action was needed: the change takes effect without one."),
  ServiceFailed: asks(
    "A service did not start or reload with its new configuration.",
    "Where the machine has no such unit, correct the policy or the MachineConfig that names it. Otherwise read the service's log on the machine (journalctl -u NAME), and correct or revert the MachineConfig.",
  ),
  UnitSkipped: nothing("A unit that the machine does not have is not enabled."),
  OriginalNotKept: asks(
    "The earlier contents of a path were not kept, because they are too large or cannot be read: once no configuration names the path, nothing is there.",
    "If it is needed after that, bring it back by hand, or by a MachineConfig.",
  ),
  DebtDropped: nothing("An action that an unfinished update owed the machine is not wanted any more."),
  Settling: nothing("The machine is made equal to its image at boot."),
  Settled: nothing("The machine equals its image."),
  SettleFailed: asks(
    "The machine could not be made equal to its image.",
    "Read the message, and the systemd journal of machine-config-settle on the machine.",
  ),
  Proven: nothing("The machine has proven itself."),
  ProofFailed: asks(
    "The machine did not come up as it should with its new target.",
    "Fix or revert the MachineConfig; the machine goes back on its own.",
  ),
  Resumed: nothing("The daemon found the machine in normal operation."),
  UncordonRequested: nothing("The daemon requested that the machine be put back into service."),
  Uncordoned: nothing("The machine is back in service."),
  CordonStays: asks(
    "The update is over, and the machine stays out of service because of a cordon that is not the controller's.",
    "Uncordon the machine when it may serve again.",
  ),
  Succeeded: nothing("It succeeded."),
  UpdateFailed: asks(
    "A step failed; it is tried again with growing delays.",
    "Read the message; a new target is tried at once.",
  ),
  ConfigNotDelivered: asks(
    "The daemon could not get a configuration of its machine from the config server for a minute; it keeps trying.",
    "Read the message: it names each server and its answer. Look at the pods of machine-config-server, and at firewalls for port 22623 of the control plane.",
  ),
  Interrupted: nothing("The daemon ended in the middle of this and continued after its restart."),
  Superseded: nothing("The target changed before this one was reached."),
  NotRequired: nothing("It was not needed."),
  // other chapters of a node
  BootFailed: asks(
    "The machine does not boot its target.",
    "Correct or revert the MachineConfig; look at the machine's console.",
  ),
  BootUndoes: asks(
    "The machine was rebooted three times for one target, and differs from it after each boot.",
    "Find what writes these paths when the machine boots: a service, systemd-tmpfiles, a file system that is new at each boot (/run, /tmp), or a second name of the same file. mco blame PATH names the MachineConfig to correct; to have the target tried again, create /run/machine-config-daemon-force on the machine.",
  ),
  RevertFailed: asks(
    "The machine could not be brought back to its system without an image of its pool, and runs that image still.",
    "Read the message: it names the path that failed; remove the annotation refusedTargets of its MachineConfigNode to have it tried again.",
  ),
  ConflictingImageAnnotations: asks(
    "The annotations of a Node ask for two different images.",
    "Make desiredImage and desiredOSimage equal; the node controller does so unless another client writes them.",
  ),
  ImageNotDigest: asks(
    "A Node is to boot an image that is not named by its digest.",
    "Name the image as repository@sha256:…; the node controller does so unless another client writes the annotation.",
  ),
  ImageContentMismatch: asks(
    "An image does not have the content that the Node's annotation states.",
    "Have the image built again, or correct the annotation desiredImageContent.",
  ),
  WentBack: asks(
    "The machine went back to its previous configuration.",
    "Correct or revert the MachineConfig; no other healthy machine is given the same target.",
  ),
  FinaliseFailed: asks(
    "The system that was staged was not finalised at the last shutdown.",
    "Read the message; most often the boot partition is full.",
  ),
  ConfigDrift: asks(
    "The machine differs from its applied configuration: in files, units, kernel arguments, packages or the booted system.",
    "Undo the change on the machine, or create /run/machine-config-daemon-force on it to have the configuration applied again.",
  ),
  DriftGone: nothing("The machine matches the applied configuration again."),
  DriftForced: nothing("An administrator requested that the configuration be applied over local changes."),
  CurrentConfigMissing: asks(
    "The configuration that the machine's annotations name is neither on its disk nor in the cluster.",
    "Bring the MachineConfig back, or create /run/machine-config-daemon-force on the machine to apply its target over local changes.",
  ),
  ImagePullFailed: asks(
    "An image could not be fetched.",
    "Read the message: the registry, the pull secret, or the network.",
  ),
  WrittenByNewerVersion: asks(
    "The machine's ledger was written by a newer version of the suite.",
    "Bring the daemon to that version, or newer.",
  ),
  Recovered: nothing("The problem is over."),
  Adopted: nothing("The daemon knows the state of the machine and manages it."),
  Registered: nothing("The machine's Node appeared."),
  Validated: nothing("The machine has its desired configuration."),
  Read: nothing("The configuration of the first boot was read."),
  Applied: nothing("The fetched configuration was applied."),
  Refused: asks(
    "The first boot could not be completed: the configuration cannot be carried out on this machine.",
    "Read the message; correct the MachineConfig and install the machine again.",
  ),
  Up: nothing("It is up and works."),
  ImagesPinned: nothing("The images of its pool's PinnedImageSets are on the machine, and stay there."),
  PrefetchFailed: asks(
    "Images of PinnedImageSets could not be fetched; what the machine runs is not affected.",
    "Read the message: the registry, the pull secret, the signature policy or the free space of the disk; correct the PinnedImageSet if it names a wrong image.",
  ),
  CertificatesWritten: nothing("Certificates on the machine were renewed."),
  CertificatesFailed: asks(
    "Certificates on the machine could not be renewed.",
    "Read the message; the daemon tries again.",
  ),
  PoolChanged: nothing("The machine belongs to another pool now."),
  KubeletSilent: asks(
    "The kubelet stopped reporting, and no reboot was announced.",
    "Look at the machine's console and its kubelet; if it will not return, delete its Node.",
  ),
  KubeletBack: nothing("The kubelet reports again."),
  NodeDeleted: nothing("The Node was deleted."),
  // pools
  PoolCreated: nothing("The pool was made."),
  PoolDeleted: nothing("The pool was deleted."),
  RenderedConfigGenerated: nothing("A configuration was rendered from the pool's MachineConfigs."),
  RenderedConfigChanged: nothing("The pool's machines get another configuration."),
  RenderRefused: asks(
    "The pool's MachineConfigs cannot be rendered together.",
    "Correct or delete the MachineConfig that is named.",
  ),
  RenderedNameTaken: asks(
    "The MachineConfig with the name of the pool's rendered config was made or changed by another writer: its contents are not those of the pool's MachineConfigs. The pool is not pointed at it.",
    "Delete that MachineConfig, and the controller makes it again; if machines use it, bring them to another configuration first.",
  ),
  RenderedConfigNotKept: asks(
    "The API server does not keep all fields of the pool's rendered config: the definition of MachineConfig in the cluster is of another release, or an admission webhook changes what is written. The pool is not pointed at it.",
    "Bring the CustomResourceDefinition to this release, or except rendered MachineConfigs from the webhook; then delete the MachineConfig, and the controller makes it again.",
  ),
  RegistriesRefused: asks(
    "A mirror set, an image policy or the Image config cannot be written for the pool's machines; they keep what they have.",
    "Correct the object and field that are named.",
  ),
  TargetChanged: nothing("The pool's machines go to a new target."),
  NodeUpdated: nothing("A machine has the target."),
  NodeFailed: asks("A machine cannot continue without help.", "mco explain node/NAME says what is wrong with it."),
  AllUpdated: nothing("Every machine of the pool has the target."),
  Canary: nothing("One machine updates first; the others wait for it."),
  PoolPaused: asks(
    "The pool is paused: none of its machines gets a new target.",
    "Set spec.paused of the pool to false when it may go on.",
  ),
  PoolResumed: nothing("The pool continues."),
  TargetQuarantined: asks(
    "Two machines, or the only one of the pool, went back from the target, and no other healthy machine is given it.",
    "Correct or revert the MachineConfig: a new target ends the quarantine.",
  ),
  MachineExcluded: asks(
    "One machine went back from the target. It alone is excluded; the other machines get the target.",
    "Find out why it went back; remove the annotation refusedTargets of its MachineConfigNode to have it tried again.",
  ),
  QuarantineLifted: nothing("The target is given to machines again."),
  MachinesDegraded: asks(
    "Machines of the pool cannot go on without help.",
    "mco explain pool/NAME names them and what to do.",
  ),
  StateMismatch: asks(
    "A node's annotations and its MachineConfigNode disagree.",
    "Nothing, if it passes; otherwise look at the daemon's pod of that node.",
  ),
  JoinOverdue: asks(
    "A machine was served its configuration and has not joined.",
    "Look at the machine's console: Ignition's log shows how far it got.",
  ),
  OptedIn: nothing("The pool's machines get OS images that are built on the cluster."),
  OptedOut: nothing("The pool's machines go back to the stock OS."),
  // builds
  BuildPlanned: nothing("It was decided how the image is made."),
  BuildPrepared: nothing("The build has all of its inputs."),
  BuildStarted: nothing("The build runs."),
  BuildStepDone: nothing("A step of the build is done."),
  BuildStepFailed: asks("A step of the build failed.", "Read its last lines: mco build logs."),
  ImageBuilt: nothing("The image was built and verified."),
  ImagePublished: nothing("The image is in the registry, by digest."),
  BuildFailed: asks(
    "The image could not be built.",
    "mco build explain names the step and the cause; a new attempt starts when the cause is removed.",
  ),
  BuildInterrupted: asksNothing(
    "The build was ended before it was done.",
    "it is started again if it is still needed.",
  ),
  RetryLimitReached: asks(
    "The build failed as often as it may be tried.",
    "Remove its cause, then ask for a rebuild with the annotation rebuildImage of the pool.",
  ),
  ImageRolledOut: nothing("Every machine of the pool runs the image."),
  ImagePruned: nothing("The image is not needed any more and was removed."),
  BuildQueued: nothing("A build waits for its turn."),
  // the suite itself
  Started: nothing("The process started."),
  Stopped: nothing("The process stopped as requested."),
  Leading: nothing("The process leads."),
  LeadLost: asks(
    "The process does not lead any more.",
    "Nothing, if another one leads; otherwise look at its log and at the API server.",
  ),
  SyncFailed: asks("A task of the operator fails.", "Read the message; the operator retries on its own."),
  SyncMended: nothing("A task of the operator that failed works again."),
  InstallBegan: nothing("The suite is being installed."),
  InstallDone: nothing("Every component runs and every pool is at its first configuration."),
  UpgradeBegan: nothing("The suite is being upgraded to another release."),
  UpgradeDone: nothing("Every component and every required pool is at the release."),
  ManifestsRendered: nothing("Manifests of the bootstrap were written."),
  ManifestsRefused: asks(
    "The installer's files cannot be used as they are.",
    "Correct the file that the message names, and start the bootstrap again.",
  ),
  PoolRendered: nothing("A pool's first configuration was rendered."),
  ServerUp: nothing("The config server answers."),
  Served: nothing("A machine was given its configuration."),
  ServeRefused: asks(
    "A request for a configuration was refused.",
    "Read the message: the pool, the version or the credential of the request.",
  ),
  HandedOver: nothing("The journal of the bootstrap was handed to the cluster."),
  CertificateRotated: nothing("A certificate was renewed."),
  SubjectGone: nothing("The subject of the book was deleted; the book is kept for a while."),
  Gap: asksNothing(
    "Lines were missed: the journal's ring overflowed, or the state process was away.",
    "the remaining lines are correct; the files on the machine hold all lines.",
  ),
  // health
  AsExpected: nothing("Everything is as it should be."),
  NotNeeded: nothing("It is not needed, and so not installed."),
  NotKnown: asks(
    "The journal lines that the verdict rests on are too old.",
    "Look at the API server and at the state process.",
  ),
  SyncStalled: asks(
    "The operator has not finished a look at its tasks for too long.",
    "Look at the operator's pod and log.",
  ),
  SyncFailing: asks("A task of the operator keeps failing.", "Read the message; mco explain co/machine-config."),
  VersionSkew: asks(
    "Components are not all of one version.",
    "Nothing while the suite is being upgraded; otherwise mco explain co/machine-config names what is late.",
  ),
  NoLeader: asks("No process leads.", "Look at the component's pods and at its lease."),
  ChildStalled: asks(
    "A part of the component has not come to an end of its work for too long.",
    "Look at the component's log.",
  ),
  ChildFailing: asks("A part of the component keeps failing.", "Look at the component's log; it names what fails."),
  RenderFailing: asks("A pool cannot be rendered.", "Correct or delete the MachineConfig that is named."),
  NotAvailable: asks(
    "Copies of the component are missing.",
    "Look at its pods: kubectl get pods -n openshift-machine-config-operator.",
  ),
  DaemonSilent: asks(
    "A daemon's pod is not ready though its kubelet works: the machine is not managed.",
    "Look at the daemon's pod on the node that is named.",
  ),
  DaemonCrashLoop: asks("A daemon's pod ends again and again.", "Look at the pod's previous log: kubectl logs -p."),
  DaemonOldVersion: asks(
    "Daemons of another version run.",
    "Nothing while the suite is being upgraded; otherwise look at the DaemonSet.",
  ),
  ServerDown: asks(
    "The config server does not answer: machines cannot join.",
    "Look at the pods of machine-config-server.",
  ),
  CertExpiring: asks("A certificate ends soon.", "Look at the operator: it renews certificates automatically."),
  BuilderDown: asks("The OS builder is needed and does not run.", "Look at the pod of machine-os-builder."),
  BuildQueueStuck: asks("A build has waited too long.", "mco build status shows what it waits for."),
  ChildDown: asks(
    "A part of the state process does not run; its books stand still.",
    "Look at the log of machine-state-controller; it restarts the part on its own.",
  ),
  Off: asks(
    "The state process is switched off: no history is kept, everything else continues.",
    "If that was not meant, set mode and each children.NAME to on in the ConfigMap machine-state-controller-config.",
  ),
  BootstrapJournalMissing: asksNothing(
    "No journal of the bootstrap was handed over.",
    "what happened before the cluster is not known here. `mco state hand-over --journal-dir FOLDER` adds it where the bootstrap's journal folder still exists.",
  ),
  InProgress: nothing("It is in progress."),
  PoolsUpdating: nothing("Machines are being updated."),
} as const satisfies Readonly<Record<string, ReasonText>>;
export type ReportReason = keyof typeof reportReasons;

const interruptions = ["Interrupted", "UpdateFailed"] as const;
type Sections = Readonly<Record<string, readonly ReportReason[]>>;

/**
 * Book kind → chapter → section → reasons; sections in the order in which they happen. A path that ends in `/*` matches
 * any last word.
 */
export const bookSections = {
  node: {
    Bootstrap: { Served: ["Served"] },
    Firstboot: {
      EncapsulatedConfigRead: ["Read"],
      OSUpdated: ["Staging", "Staged", "StageFailed", "NotRequired"],
      Extensions: ["Applied", "NotRequired"],
      Kargs: ["Applied", "NotRequired"],
      Reboot: ["RebootRequested", "Rebooted", "NotRequired"],
      Registered: ["Registered"],
      DaemonUp: ["Up"],
      AnnotationsInitialised: ["Applied"],
      Validated: ["Validated", "Refused", "UpdateFailed"],
    },
    Join: { Served: ["Served"], Registered: ["Registered"], Adopted: ["Adopted"], Validated: ["Validated"] },
    Update: {
      Requested: ["TargetSet", "TargetSeen"],
      Prepared: ["Checking", "Planned", "Irreconcilable", "PoliciesNotMerged", "TargetRefused", ...interruptions],
      "Executed/ImagePulled": ["Pulling", "Pulled", "PullFailed", ...interruptions],
      "Executed/Cordoned": ["DrainRequested", "Cordoned", "CordonedAgain", "NotRequired"],
      "Executed/Drained": [
        "Draining",
        "DrainForecast",
        "PodsBlocked",
        "DrainDeadlineExceeded",
        "DrainForced",
        "DrainSkipped",
        "Drained",
        "NotRequired",
      ],
      "Executed/OS": ["Staging", "Staged", "StageFailed", "NotRequired", ...interruptions],
      "Executed/Files": [
        "Writing",
        "Written",
        "WriteFailed",
        "UnitSkipped",
        "OriginalNotKept",
        "NotRequired",
        ...interruptions,
      ],
      "PostAction/Rebooted": ["RebootRequested", "Rebooted", "RebootFailed", "FinaliseFailed", ...interruptions],
      "PostAction/Service": [
        "Acting",
        "ServiceReloaded",
        "ServiceRestarted",
        "DaemonReloaded",
        "None",
        "ServiceFailed",
        "DebtDropped",
        ...interruptions,
      ],
      "PostAction/Settled": ["Settling", "Settled", "SettleFailed", ...interruptions],
      Resumed: ["Resumed", ...interruptions],
      "Complete/Uncordoned": ["UncordonRequested", "Uncordoned", "CordonStays", "NotRequired"],
      Updated: ["Succeeded", "Superseded", "WentBack", ...interruptions],
    },
    Drift: { Detected: ["ConfigDrift"], Ended: ["DriftGone", "DriftForced"] },
    Degraded: {
      Failed: [
        "UpdateFailed",
        "ServiceFailed",
        "ConfigNotDelivered",
        "ImagePullFailed",
        "BootFailed",
        "BootUndoes",
        "SettleFailed",
        "RevertFailed",
        "TargetRefused",
        "ConflictingImageAnnotations",
        "ImageNotDigest",
        "ImageContentMismatch",
        "CurrentConfigMissing",
        "WrittenByNewerVersion",
        "PoliciesNotMerged",
        "Irreconcilable",
      ],
      Ended: ["Recovered"],
    },
    Certificates: { Written: ["CertificatesWritten", "CertificatesFailed"] },
    PinnedImages: { Fetched: ["ImagesPinned", "PrefetchFailed"] },
    PoolMove: { Moved: ["PoolChanged"] },
    Rollback: { Decided: ["BootFailed", "SettleFailed"], Done: ["WentBack"] },
    Lost: { Silent: ["KubeletSilent"], Back: ["KubeletBack"] },
    Leave: { Deleted: ["NodeDeleted"] },
  },
  pool: {
    Created: { Created: ["PoolCreated"] },
    Render: {
      Rendered: ["RenderedConfigGenerated"],
      Changed: ["RenderedConfigChanged"],
      Refused: ["RenderRefused", "RenderedNameTaken", "RenderedConfigNotKept", "Recovered"],
      Registries: ["RegistriesRefused", "Recovered"],
    },
    OptIn: { Asked: ["OptedIn"] },
    Build: { Built: ["BuildStarted", "ImageBuilt", "BuildFailed"] },
    Rollout: {
      Begun: ["TargetChanged"],
      Canary: ["Canary", "Proven", "ProofFailed"],
      "Node/*": ["NodeUpdated", "NodeFailed", "WentBack"],
      Paused: ["PoolPaused", "PoolResumed"],
      "Blocked/*": ["TargetQuarantined", "QuarantineLifted"],
      "Excluded/*": ["MachineExcluded"],
      StateMismatch: ["StateMismatch"],
      Finished: ["AllUpdated", "Superseded"],
    },
    Paused: { Paused: ["PoolPaused"], Ended: ["PoolResumed"] },
    Blocked: { Blocked: ["TargetQuarantined"], Ended: ["QuarantineLifted"] },
    Degraded: { Degraded: ["MachinesDegraded"], Ended: ["Recovered"] },
    Join: { Overdue: ["JoinOverdue"] },
    OptOut: { Asked: ["OptedOut"] },
    Deleted: { Deleted: ["PoolDeleted"] },
  },
  build: {
    Planned: { Planned: ["BuildPlanned"] },
    Prepared: { Prepared: ["BuildPrepared"] },
    Building: { "Attempt/*": ["BuildStarted", "BuildStepDone", "BuildStepFailed", "ImageBuilt", "BuildInterrupted"] },
    Verified: { Verified: ["ImageBuilt"] },
    Published: { Published: ["ImagePublished"] },
    RolledOut: { RolledOut: ["ImageRolledOut"] },
    Pruned: { Pruned: ["ImagePruned"] },
    Failed: { Failed: ["BuildFailed", "RetryLimitReached"] },
    Interrupted: { Interrupted: ["BuildInterrupted"] },
  },
  cluster: {
    Bootstrap: {
      ManifestsRendered: ["ManifestsRendered", "ManifestsRefused"],
      "ControllerRendered/*": ["PoolRendered"],
      ServerUp: ["ServerUp"],
      "Served/*": ["Served"],
      HandedOver: ["HandedOver"],
    },
    Install: { Begun: ["InstallBegan"], "Pool/*": ["AllUpdated"], Finished: ["InstallDone"] },
    Upgrade: { Begun: ["UpgradeBegan"], "Pool/*": ["AllUpdated"], Finished: ["UpgradeDone"] },
    Operator: {
      Start: ["Started", "Stopped"],
      "Sync/*": ["SyncFailed", "SyncMended"],
      Degraded: ["SyncFailing", "SyncStalled", "VersionSkew", "NotAvailable", "Recovered"],
    },
    Controller: {
      Start: ["Started", "Stopped"],
      Lead: ["Leading", "LeadLost"],
      "Child/*": ["ChildFailing", "Recovered"],
      Degraded: ["NoLeader", "RenderFailing", "ChildStalled", "VersionSkew", "NotAvailable", "Recovered"],
    },
    Daemons: { Degraded: ["DaemonSilent", "DaemonCrashLoop", "DaemonOldVersion", "Recovered"] },
    Server: {
      Start: ["Started", "Stopped"],
      "Served/*": ["Served", "ServeRefused"],
      Certificate: ["CertificateRotated", "CertExpiring"],
      Degraded: ["ServerDown", "Recovered"],
    },
    OsBuilder: {
      Start: ["Started", "Stopped"],
      Queue: ["BuildQueued"],
      Shutdown: ["Stopped"],
      Degraded: ["BuilderDown", "BuildQueueStuck", "Recovered"],
    },
    BookIndex: { "Gone/*": ["SubjectGone"], Gap: ["Gap"] },
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Sections>>>>;

/**
 * Health conditions of MachineConfiguration `cluster` → their reasons. A reason may contain the name of a part:
 * `SyncRBACFailing` is SyncFailing, `ChildNodesDown` is ChildDown, `RenderStalled` is ChildStalled.
 */
export const healthReasons = {
  OperatorHealthy: [
    "AsExpected",
    "NotKnown",
    "InProgress",
    "NotAvailable",
    "VersionSkew",
    "SyncFailing",
    "SyncStalled",
    "Off",
  ],
  ControllerHealthy: [
    "AsExpected",
    "NotKnown",
    "InProgress",
    "NotAvailable",
    "VersionSkew",
    "NoLeader",
    "ChildFailing",
    "ChildStalled",
    "RenderFailing",
    "Off",
  ],
  DaemonsHealthy: [
    "AsExpected",
    "NotKnown",
    "InProgress",
    "DaemonSilent",
    "DaemonCrashLoop",
    "DaemonOldVersion",
    "Off",
  ],
  ServerHealthy: ["AsExpected", "NotKnown", "InProgress", "NotNeeded", "ServerDown", "CertExpiring", "Off"],
  BuilderHealthy: ["AsExpected", "NotKnown", "InProgress", "NotNeeded", "BuilderDown", "BuildQueueStuck", "Off"],
  StateKeeping: ["AsExpected", "InProgress", "ChildDown", "Gap", "Off"],
  BootstrapComplete: ["AsExpected", "InProgress", "BootstrapJournalMissing", "Off"],
  UpdateProgressing: ["AsExpected", "NotKnown", "PoolsUpdating", "Off"],
} as const satisfies Readonly<Record<string, readonly ReportReason[]>>;

/** Reasons of lines that are no boundary of a chapter or section. */
export const progressReasons: ReadonlySet<string> = new Set<ReportReason>(["BuildQueued", "BuildStepDone"]);

export type BookSections = typeof bookSections;
export type BookKind = keyof BookSections;
export const bookKinds = Object.keys(bookSections) as readonly BookKind[];
/** `node/worker-0`; the book of the cluster is `cluster`. */
export type BookName = BookNameOf<BookKind>;
export type BookNameOf<B extends BookKind> = B extends "cluster" ? "cluster" : `${B}/${string}`;

/** The paths of a section; that of `Node/*` has any last word. */
export type PathOf<P> = P extends `${infer Head}/*` ? `${Head}/${string}` : P;
type LineOfSection<C, P, R> = { readonly chapter: C; readonly path: PathOf<P>; readonly reason: R };
type LinesOfChapter<C, S> = {
  [P in keyof S]: S[P] extends readonly (infer R)[] ? LineOfSection<C, P, R> : never;
}[keyof S];
type LinesOfBook<B extends BookKind> = {
  [C in keyof BookSections[B]]: LinesOfChapter<C, BookSections[B][C]>;
}[keyof BookSections[B]];

export interface ReportReference {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
}

export interface ReportNext {
  /** The next action, as one sentence. */
  readonly action: string;
  /** Responsible for the action: `administrator`, or a component. */
  readonly actor: string;
  /** RFC 3339: the deadline. */
  readonly by?: string;
}

/** Everything of a line but where it stands in the tables. */
export interface ReportText {
  /** The instance of the chapter: the name of a target, or a uid. */
  readonly run?: string;
  readonly mark: ReportMark;
  readonly level: ReportLevel;
  /** How the section ended, unless the mark already says so. */
  readonly outcome?: SectionOutcome;
  readonly message: string;
  /** Overrides the default of the reason. */
  readonly next?: ReportNext;
  readonly data?: Readonly<Record<string, string | number | boolean>>;
  readonly refs?: readonly ReportReference[];
}

/** A line of one kind of book, without the book's name. */
export type JournalEntryIn<B extends BookKind> = LinesOfBook<B> & ReportText;
export type JournalEntryOf<B extends BookKind> = { readonly book: BookNameOf<B> } & JournalEntryIn<B>;

/**
 * One report to the books. The journal adds the writer, the sequence number and both clocks. Never include secrets or
 * file contents: everyone who may read the object may read its lines.
 */
export type JournalEntry = { [B in BookKind]: JournalEntryOf<B> }[BookKind];

/**
 * What a table has under a word that root on a machine may have written; `undefined` for the names that every object
 * has.
 */
export const inTable = <T>(table: Readonly<Record<string, T>>, word: string): T | undefined =>
  Object.hasOwn(table, word) ? table[word] : undefined;

/** The key of `sections` that matches a path, or `undefined`. */
export function sectionKeyOf(book: BookKind, chapter: string, path: string): string | undefined {
  const sections = inTable<Sections>(bookSections[book], chapter);
  if (sections === undefined) return undefined;
  if (Object.hasOwn(sections, path)) return path;
  const open = `${path.slice(0, path.lastIndexOf("/"))}/*`;
  // The part behind the first word is free text.
  return Object.hasOwn(sections, open)
    ? open
    : Object.keys(sections).find((key) => key.endsWith("/*") && path.startsWith(key.slice(0, -1)));
}

/** Sections of a chapter in the order in which they happen; empty for a chapter that the tables lack. */
export const sectionsOf = (book: BookKind, chapter: string): readonly string[] =>
  Object.keys(inTable<Sections>(bookSections[book], chapter) ?? {});

/** The kind of a book, from its name; `undefined` if the name is not a book's. */
export function bookKindOf(book: string): BookKind | undefined {
  if (book === "cluster") return "cluster";
  const slash = book.indexOf("/");
  const kind = slash <= 0 || slash === book.length - 1 ? undefined : book.slice(0, slash);
  return kind !== "cluster" ? bookKinds.find((each) => each === kind) : undefined;
}

/** Explanation and default next action of a reason; a reason of a newer version explains itself by its name. */
export const reasonText = (reason: string): ReasonText =>
  inTable<ReasonText>(reportReasons, reason) ?? { means: reason, next: "" };
