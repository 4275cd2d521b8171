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
  /** The same under an older name; always written together with the others. */
  currentOSImage: `${prefix}currentOSimage`,
  desiredOSImage: `${prefix}desiredOSimage`,
  /** Ours: `full` or `os-only`: what the image of `desiredImage` holds. */
  desiredImageContent: `${prefix}desiredImageContent`,
  state: `${prefix}state`,
  reason: `${prefix}reason`,
  postConfigAction: `${prefix}post-config-action`,
  desiredDrain: `${prefix}desiredDrain`,
  lastAppliedDrain: `${prefix}lastAppliedDrain`,
  controlPlaneTopology: `${prefix}controlPlaneTopology`,
  firstPivotConfig: `${prefix}firstPivotConfig`,
  /**
   * Ours: `alert`, or `settle`: what happens to a machine whose image holds its configuration when somebody changes
   * files of that.
   */
  driftPolicy: `${prefix}driftPolicy`,
  customPoolLabelsApplied: `${prefix}customPoolLabelsApplied`,
  /** Ours: the pool for which the node was let into the cluster, and whose labels it was given then. */
  joinedPool: `${prefix}joined-pool`,
  /** Why the last shutdown could not finalise the system that was staged; gone when one was finalised. */
  finaliseFailure: `${prefix}ostree-finalize-staged-failure`,
  /**
   * Ours: `drain-<config>` of the request for which the drain controller set `unschedulable`; present only while the
   * cordon is ours.
   */
  cordonedFor: `${prefix}cordonedFor`,
  /** Ours: JSON {request, at, pods} of the drain under way: when it began, and how many pods had to go then. */
  drainBegan: `${prefix}drainBegan`,
  /**
   * Ours: JSON {request, at, again, why} of the drain that was given up for now; gone when the node gets a target
   * again.
   */
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
  /** Also a label: the pool's machines boot images that are built on the cluster, unless its value is a false one. */
  layeringEnabled: `${prefix}layering-enabled`,
  /** Ours, also on MachineOSConfigs and MachineOSBuilds: `full` or `os-only`, what images hold of the configuration. */
  imageContent: `${prefix}imageContent`,
  /** Also a label: asks for the image to be built again; gone when that has ended. */
  rebuildImage: `${prefix}rebuildImage`,
  /** Retries that were spent on what is to be built now. */
  buildRetries: `${prefix}buildRetries`,
  /** Image of the newest configuration, where the pool was opted in by its label. */
  newestImageEquivalentConfig: `${prefix}newestImageEquivalentConfig`,
  /**
   * Ours, RFC 3339: until then machines keep their images though the MachineOSConfig is gone; made again, nothing
   * changes.
   */
  optOutAfter: `${prefix}opt-out-after`,
  /** Ours: how many machines get a new image before all others. */
  rolloutCanary: `${prefix}rollout-canary`,
  /** Ours: seconds for which such a machine must keep well. */
  canarySeconds: `${prefix}rollout-canary-seconds`,
  // on MachineOSConfigs
  /** Ours: `PoolLabel` or `ClusterDefault`, where no user made it. */
  optInSource: `${prefix}opt-in-source`,
  /** As `rebuildImage` of the pool. */
  rebuild: `${prefix}rebuild`,
  /** Ours: how often a rebuild was asked for. */
  rebuildSerial: `${prefix}rebuild-serial`,
  /** Ours: `<serial>:<hash of the request>` while a rebuild is under way. */
  rebuildActive: `${prefix}rebuild-active`,
  /** Ours: how often a failed build is tried again, 0 to 20. */
  maxBuildRetries: `${prefix}max-build-retries`,
  /** Name of the MachineOSBuild whose image is rolled out. */
  currentMachineOSBuild: `${prefix}current-machine-os-build`,
  /** Image that was made before there was a cluster. */
  preBuiltImage: `${prefix}pre-built-image`,
  /** Ours: ConfigMap whose files the custom Containerfile finds in its context. */
  buildContext: `${prefix}build-context`,
  // on MachineOSBuilds, ours unless the reference has one
  contentKey: `${prefix}content-key`,
  parentKey: `${prefix}parent-key`,
  /** JSON: what the content key was made from. */
  keyInputs: `${prefix}key-inputs`,
  /** `reuse`, `append` or `build`. */
  buildStrategy: `${prefix}build-strategy`,
  /** JSON: why that one. */
  buildBecause: `${prefix}build-because`,
  /** Name of the MachineOSBuild whose image, or whose run, this one takes. */
  reusedFrom: `${prefix}reused-from`,
  /** The registry does not have its image any more. */
  imageLost: `${prefix}image-lost`,
  /** `true`: never pruned. */
  keepBuild: `${prefix}keep`,
  /** JSON: the last failure. */
  buildFailure: `${prefix}failure`,
  /** RFC 3339 */
  nextAttemptAt: `${prefix}next-attempt-at`,
  /** Number of the attempt that runs, or ran last. */
  buildAttempt: `${prefix}build-attempt`,
  /** RFC 3339: the image may be deleted from then on, if it is of no use still. */
  pruneAfter: `${prefix}prune-after`,
  renderedContainerfile: `${prefix}containerfile`,
  /** JSON: what is known of the finished image. */
  imageFacts: `${prefix}image-facts`,
  jobUid: `${prefix}job-uid`,
  /** Name of the Secret that the image was pushed with. */
  pushSecret: `${prefix}rendered-image-push-secret`,
  // on MachineConfigNodes
  /** Ours: JSON list of {config, image, reason, at} that this node went back from. */
  refusedTargets: `${prefix}refusedTargets`,
  /** Ours: time of the refusal that the node's pool knows of. */
  quarantineTold: `${prefix}quarantine-told`,
  // on MachineConfiguration/cluster
  /** Ours: `required`, or `insecure`: who is given a configuration by the config server, secrets included. */
  configServerAccess: `${prefix}config-server-access`,
  /**
   * Ours: `host` or `host:port` that machines reach the config server by, where it is not the internal name of the API
   * server.
   */
  configServerAddress: `${prefix}config-server-address`,
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
  arch: "kubernetes.io/arch",
  /** Ours: on the ServiceAccounts that machines which join ask for their certificates as. */
  nodeBootstrapper: `${prefix}node-bootstrapper`,
  // on what belongs to a build
  ephemeralBuildObject: `${prefix}ephemeral-build-object`,
  onClusterLayering: `${prefix}on-cluster-layering`,
  machineOSBuild: `${prefix}machine-os-build`,
  machineOSConfig: `${prefix}machine-os-config`,
  targetPool: `${prefix}target-machine-config-pool`,
  renderedConfig: `${prefix}rendered-machine-config`,
  /** Of a build that was not made here: its image came with the installation. */
  preBuiltImage: `${prefix}pre-built-image`,
} as const;

export const finalizers = {
  /** Ours: the os-builder ends and removes what it made for a MachineOSConfig. */
  osBuildCleanup: `${prefix}os-build-cleanup`,
} as const;

/** Labels of images that this suite builds. */
export const imageLabels = {
  /** `full` or `os-only`. */
  content: "io.openshift.machineconfig.content",
  recipe: "io.openshift.machineconfig.recipe",
  baseDigest: "io.openshift.machineconfig.base-digest",
} as const;

export const taints = {
  /** Effect PreferNoSchedule: on members whose desired state is not the pool's target. */
  updateInProgress: "UpdateInProgress",
  master: "node-role.kubernetes.io/master",
  controlPlane: "node-role.kubernetes.io/control-plane",
} as const;

/** Values of `annotations.state`. */
export const nodeStates = {
  done: "Done",
  working: "Working",
  degraded: "Degraded",
  unreconcilable: "Unreconcilable",
} as const;

/** Value of `spec.configVersion.desired` of a MachineConfigNode that has no target yet. */
export const notYetSet = "not-yet-set";

export const poolConditions = {
  updated: "Updated",
  updating: "Updating",
  degraded: "Degraded",
  nodeDegraded: "NodeDegraded",
  renderDegraded: "RenderDegraded",
  imageBuildDegraded: "ImageBuildDegraded",
  // Of pools that were opted in by their label: what the first release with builds wrote.
  buildPending: "BuildPending",
  building: "Building",
  buildSuccess: "BuildSuccess",
  buildFailed: "BuildFailed",
} as const;

export const machineOSBuildConditions = {
  prepared: "Prepared",
  building: "Building",
  succeeded: "Succeeded",
  failed: "Failed",
  interrupted: "Interrupted",
} as const;

export const machineOSConfigConditions = {
  /** Ours: whether it decides about its pool. */
  accepted: "Accepted",
  /** Ours */
  inputsValid: "InputsValid",
  /** Ours: what was pruned, and when it is looked at again. */
  pruned: "Pruned",
  /** Ours: whether the image of what the pool is to have is there, and what it waits for otherwise. */
  upToDate: "UpToDate",
  seeded: "Seeded",
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

export const machineConfigurationConditions = {
  /** Ours: everybody who asks is given a configuration, secrets included. */
  configServerInsecure: "ConfigServerInsecure",
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
  osBuilder: "machine-os-builder",
  /** ConfigMap with what is to be built for pools that are opted in by their label, and for all. */
  buildConfig: "on-cluster-build-config",
  /** ConfigMap with a Containerfile for each of them, by the name of the pool. */
  customContainerfiles: "on-cluster-build-custom-dockerfile",
  /** ConfigMap and Secrets that package steps and custom steps see. */
  yumRepos: "etc-yum-repos-d",
  rpmGpg: "etc-pki-rpm-gpg",
  /** ServiceAccounts with which machines ask for their first certificate: followed by the name of the pool. */
  nodeBootstrapperPrefix: "node-bootstrapper-",
  /** Followed by the name of the pool. */
  entitlementPrefix: "etc-pki-entitlement-",
  /** The copy of the cluster's pull secret that builds pull with. */
  globalPullSecret: "global-pull-secret-copy",
  configServer: "machine-config-server",
  /** Secret with the config server's certificate and key. */
  configServerTls: "machine-config-server-tls",
  /**
   * Secret with the authority that signs it, and ConfigMap with what machines are to believe in, key `ca-bundle.crt`.
   */
  configServerCa: "machine-config-server-ca",
  /**
   * Ours: ConfigMap of an administrator's, whose authorities vouch for machines that may fetch a configuration, key
   * `ca-bundle.crt`.
   */
  configServerClientCa: "machine-config-server-client-ca",
} as const;

/**
 * Ours, followed by the name of the pool: organization of a client certificate that may fetch that pool's
 * configuration.
 */
export const poolOrganizationPrefix = `${group}:pool:`;

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

/**
 * Signers of certificates:
 * https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers
 */
export const signers = {
  kubeletClient: "kubernetes.io/kube-apiserver-client-kubelet",
  kubeletServing: "kubernetes.io/kubelet-serving",
  client: "kubernetes.io/kube-apiserver-client",
} as const;

/** Whom a node's certificates are for. */
export const nodeIdentity = { userPrefix: "system:node:", group: "system:nodes" } as const;

/** Labels of MachineStateBooks and MachineStateChapters. */
export const bookLabels = {
  kind: "book-kind",
  book: "book",
  chapter: "chapter",
  outcome: "outcome",
  pool: "pool",
  state: "state",
} as const;

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
  osBuilder: "mco-os-builder",
  configServer: "mco-server",
} as const;

/** Files whose path is part of the contract. */
export const hostPaths = {
  currentConfig: "/etc/machine-config-daemon/currentconfig",
  currentImage: "/etc/machine-config-daemon/currentimage",
  /**
   * Annotations that the config server gives a machine on its way; there until the daemon has taken the machine over.
   */
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
  /** What the reference's daemon leaves for a boot that leads from an image back to the stock system. */
  referenceRevertConfig: "/etc/mco/machineconfig-revert.json",
  referenceRevertUnit: "machine-config-daemon-revert.service",
  referenceRevertProxy: "/etc/mco/proxy.env.backup",
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
  /** What a machine is to have, in an image that holds it. */
  payload: "/usr/lib/machine-config/content.json",
  /** The same for images without one: a file for each, named after its digest. */
  localPayloads: "/var/lib/machine-config-daemon/payload",
  /** Paths, units and accounts that are or were managed, with what was there before: JSON. */
  managed: "/var/lib/machine-config-daemon/originals.json",
  /** What the last settling did: JSON. */
  settleRecord: "/var/lib/machine-config-daemon/settled.json",
  settleUnit: "machine-config-settle.service",
} as const;

/**
 * Names that controllers of Kubernetes write on workloads, nodes and their pods: k8s.io/api apps/v1, core/v1, batch/v1
 * (master).
 */
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
