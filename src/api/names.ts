/**
 * Every label, annotation, finalizer, taint, condition and object name that components share, spelled once.
 * Names and values are those of openshift/machine-config-operator pkg/daemon/constants/constants.go and
 * pkg/controller/common/constants.go (main) unless marked as ours.
 */
const prefix = "machineconfiguration.openshift.io/";

export const group = "machineconfiguration.openshift.io";
export const operatorGroup = "operator.openshift.io";
export const configGroup = "config.openshift.io";

/** Where the suite's own namespaced objects live. */
export const namespace = "openshift-machine-config-operator";

export const annotations = {
  // on nodes
  currentConfig: `${prefix}currentConfig`,
  desiredConfig: `${prefix}desiredConfig`,
  currentImage: `${prefix}currentImage`,
  desiredImage: `${prefix}desiredImage`,
  state: `${prefix}state`,
  reason: `${prefix}reason`,
  postConfigAction: `${prefix}post-config-action`,
  desiredDrain: `${prefix}desiredDrain`,
  lastAppliedDrain: `${prefix}lastAppliedDrain`,
  controlPlaneTopology: `${prefix}controlPlaneTopology`,
  firstPivotConfig: `${prefix}firstPivotConfig`,
  customPoolLabelsApplied: `${prefix}customPoolLabelsApplied`,
  /** Why the last shutdown could not finalise the system that was staged; gone when one was finalised. */
  finaliseFailure: `${prefix}ostree-finalize-staged-failure`,
  /** Ours: `drain-<config>` of the request for which the drain controller set `unschedulable`; present only while the cordon is ours. */
  cordonedFor: `${prefix}cordonedFor`,
  /** Ours: JSON {request, at, pods} of the drain under way: when it began, and how many pods had to go then. */
  drainBegan: `${prefix}drainBegan`,
  /** Ours: JSON {request, at, again, why} of the drain that was given up for now; gone when the node gets a target again. */
  drainSkipped: `${prefix}drainSkipped`,
  // on MachineConfigs and ControllerConfig
  generatedByController: `${prefix}generated-by-controller-version`,
  generatedByVersion: `${prefix}generated-by-version`,
  releaseImageVersion: `${prefix}release-image-version`,
  /** On ControllerConfig: `true` while a new authority of the API server is handed to machines. */
  serviceCaRotate: `${prefix}service-ca-rotate`,
  osImageURLOverridden: `${prefix}os-image-url-overridden`,
  /** Ours: when every machine of the pool had this rendered config, RFC 3339. */
  rolledOutAt: `${prefix}rolled-out-at`,
  // on pools
  /** Ours: targets that no healthy node is given, because a node went back from them. */
  quarantined: `${prefix}quarantined`,
  /** Ours: how long a drain may take before the pool's deadline policy acts, in seconds. */
  drainDeadlineSeconds: `${prefix}drain-deadline-seconds`,
  /** Ours: what happens then: `wait`, `skip`, or `force: ` and what may be overridden. */
  drainAfterDeadline: `${prefix}drain-after-deadline`,
  /** Ours: `true`: never machines of two zones at once. */
  oneZoneAtATime: `${prefix}one-zone-at-a-time`,
  /** Ours: how many rendered configs that nothing uses are kept. */
  retainedConfigs: `${prefix}retained-configs`,
  /** Ours: how long a rendered config is left alone after its last use, in seconds. */
  retentionQuietSeconds: `${prefix}retained-configs-quiet-seconds`,
  // on MachineConfigNodes
  /** Ours: JSON list of {config, image, reason, at} that this node went back from. */
  refusedTargets: `${prefix}refusedTargets`,
  /** Ours: time of the refusal that the node's pool knows of. */
  quarantineTold: `${prefix}quarantine-told`,
} as const;

export const labels = {
  role: `${prefix}role`,
  builtInPool: `${prefix}mco-built-in`,
  requiredForUpgrade: "operator.machineconfiguration.openshift.io/required-for-upgrade",
  /** Followed by the pool's name. */
  poolPrefix: "pools.operator.machineconfiguration.openshift.io/",
  operatorManaged: "openshift.io/operator-managed",
  masterRole: "node-role.kubernetes.io/master",
  controlPlaneRole: "node-role.kubernetes.io/control-plane",
  workerRole: "node-role.kubernetes.io/worker",
  zone: "topology.kubernetes.io/zone",
  os: "kubernetes.io/os",
  hostname: "kubernetes.io/hostname",
} as const;

export const taints = {
  /** Effect PreferNoSchedule: on members whose desired state is not the pool's target. */
  updateInProgress: "UpdateInProgress",
  master: "node-role.kubernetes.io/master",
  controlPlane: "node-role.kubernetes.io/control-plane",
} as const;

/** Values of `annotations.state`. */
export const nodeStates = { done: "Done", working: "Working", degraded: "Degraded", unreconcilable: "Unreconcilable" } as const;

/** Value of `spec.configVersion.desired` of a MachineConfigNode that has no target yet. */
export const notYetSet = "not-yet-set";

export const poolConditions = {
  updated: "Updated",
  updating: "Updating",
  degraded: "Degraded",
  nodeDegraded: "NodeDegraded",
  renderDegraded: "RenderDegraded",
} as const;

export const machineConfigNodeConditions = {
  updatePrepared: "UpdatePrepared",
  updateExecuted: "UpdateExecuted",
  cordoned: "Cordoned",
  drained: "Drained",
  appliedFilesAndOS: "AppliedFilesAndOS",
  appliedFiles: "AppliedFiles",
  appliedOSImage: "AppliedOSImage",
  imagePulledFromRegistry: "ImagePulledFromRegistry",
  updatePostActionComplete: "UpdatePostActionComplete",
  rebootedNode: "RebootedNode",
  updateComplete: "UpdateComplete",
  uncordoned: "Uncordoned",
  resumed: "Resumed",
  updated: "Updated",
  nodeDegraded: "NodeDegraded",
} as const;

export const controllerConfigConditions = {
  running: "TemplateControllerRunning",
  completed: "TemplateControllerCompleted",
  failing: "TemplateControllerFailing",
} as const;

export const objects = {
  controllerConfig: "machine-config-controller",
  machineConfiguration: "cluster",
  clusterOperator: "machine-config",
  operator: "machine-config-operator",
  controller: "machine-config-controller",
  daemon: "machine-config-daemon",
  state: "machine-state-controller",
  /** Ours: whether and how history is kept. */
  stateConfig: "machine-state-controller-config",
  osImageConfigMap: "machine-config-osimageurl",
  /** ConfigMap with the API server's authorities as machines last got them. */
  kubeconfigData: "kubeconfig-data",
  /** The ServiceAccount with whose Secrets machines pull from the cluster's own registry. */
  puller: "machine-os-puller",
} as const;

/** Names of MachineStateJournals: one for each writer. */
export const journals = {
  operator: "operator",
  controller: "controller",
  server: "server",
  osBuilder: "os-builder",
  /** What happened before there was a cluster. */
  bootstrap: "bootstrap",
  /** Followed by the name of the node. */
  nodePrefix: "node-",
} as const;

/** Labels of MachineStateBooks and MachineStateChapters. */
export const bookLabels = { kind: "book-kind", book: "book", chapter: "chapter", outcome: "outcome", pool: "pool", state: "state" } as const;

/** Field managers of server-side apply, one per writer. */
export const fieldManagers = {
  operator: "mco-operator",
  template: "mcc-template",
  render: "mcc-render",
  node: "mcc-node",
  drain: "mcc-drain",
  collect: "mcc-collect",
  /** Of the books and chapters. */
  books: "mco-books",
  /** Of health conditions. */
  health: "mco-health",
  /** Of the conditions of the state process about itself. */
  state: "mco-state",
  /** Of the journal of a process; the daemon writes its own as `mcd`. */
  journal: "mco-journal",
  daemon: "mcd",
} as const;

/** Files whose path is part of the contract. */
export const hostPaths = {
  currentConfig: "/etc/machine-config-daemon/currentconfig",
  currentImage: "/etc/machine-config-daemon/currentimage",
  /** Annotations that the config server gives a machine on its way; there until the daemon has taken the machine over. */
  nodeAnnotations: "/etc/machine-config-daemon/node-annotations.json",
  nodeAnnotationsDone: "/etc/machine-config-daemon/node-annotation.json.bak",
  /** The MachineConfig of a first boot, its Ignition part emptied; there until what Ignition could not do is done. */
  encapsulated: "/etc/ignition-machine-config-encapsulated.json",
  encapsulatedDone: "/etc/ignition-machine-config-encapsulated.json.bak",
  /** The MachineConfig that the machine was first served, whole. */
  servedConfig: "/etc/mcs-machine-config-content.json",
  /** Presets that Ignition leaves: later ones are the vendor's. */
  ignitionPreset: "/etc/systemd/system-preset/20-ignition.preset",
  /** What the reference's daemon kept of files that it replaced, or did not find. */
  referenceOriginals: "/etc/machine-config-daemon/orig",
  referenceNoOriginals: "/etc/machine-config-daemon/noorig",
  kubeconfig: "/etc/kubernetes/kubeconfig",
  /** What a kubelet made of the other one when it first joined. */
  kubeletKubeconfig: "/var/lib/kubelet/kubeconfig",
  /** Any content: the next look applies the target again and reboots. */
  force: "/run/machine-config-daemon-force",
  stateFolder: "/var/lib/machine-config-daemon",
  /** Authorities by which a kubelet knows the API server's clients. */
  kubeletCa: "/etc/kubernetes/kubelet-ca.crt",
  cloudCa: "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem",
  /** Credentials for the cluster's own registry, merged with the cluster's. */
  internalPullSecret: "/etc/mco/internal-registry-pull-secret.json",
  /** A folder for each registry: containers-certs.d(5). */
  registryCas: "/etc/docker/certs.d",
  /** Story lines: `journal-<boot id>.jsonl`. */
  books: "/var/lib/machine-config-daemon/books",
  sshKeys: "/home/core/.ssh/authorized_keys.d/ignition",
} as const;

/** Names that controllers of Kubernetes write on workloads, nodes and their pods: k8s.io/api apps/v1, core/v1, batch/v1 (master). */
export const workloads = {
  // labels
  podTemplateHash: "pod-template-hash",
  controllerRevisionHash: "controller-revision-hash",
  podTemplateGeneration: "pod-template-generation",
  // annotations
  podDeletionCost: "controller.kubernetes.io/pod-deletion-cost",
  deploymentRevision: "deployment.kubernetes.io/revision",
  deploymentRevisionHistory: "deployment.kubernetes.io/revision-history",
  desiredReplicas: "deployment.kubernetes.io/desired-replicas",
  maxReplicas: "deployment.kubernetes.io/max-replicas",
  daemonSetTemplateGeneration: "deprecated.daemonset.template.generation",
  lastApplied: "kubectl.kubernetes.io/last-applied-configuration",
  // finalizers
  foregroundDeletion: "foregroundDeletion",
  orphan: "orphan",
  jobTracking: "batch.kubernetes.io/job-tracking",
} as const;

/** Taints that follow the state of a node: k8s.io/api core/v1 (master) well_known_taints.go. */
export const nodeTaints = {
  notReady: "node.kubernetes.io/not-ready",
  unreachable: "node.kubernetes.io/unreachable",
  unschedulable: "node.kubernetes.io/unschedulable",
  diskPressure: "node.kubernetes.io/disk-pressure",
  memoryPressure: "node.kubernetes.io/memory-pressure",
  pidPressure: "node.kubernetes.io/pid-pressure",
  networkUnavailable: "node.kubernetes.io/network-unavailable",
} as const;
