/**
 * Every label, annotation, finalizer, taint, condition and object name that components share, spelled once. Names and
 * values are those of openshift/machine-config-operator pkg/daemon/constants/constants.go and
 * pkg/controller/common/constants.go (main) unless marked as ours.
 */
const prefix = "machineconfiguration.openshift.io/";

export const group = "machineconfiguration.openshift.io";
export const operatorGroup = "operator.openshift.io";
export const configGroup = "config.openshift.io";

/** The namespace of the suite's own objects. */
export const namespace = "openshift-machine-config-operator";

/**
 * Ours: the namespace of the pods that build images, and of what these are given. Nothing else of the suite lies there,
 * so that what may create a pod there, or runs in one, meets no Secret of a component.
 */
export const buildNamespace = "openshift-machine-config-builds";

/** The namespaces of the suite's own pods. */
export const suiteNamespaces: readonly string[] = [namespace, buildNamespace];

/** The namespace of the machine API, where a cluster has one. */
export const machineNamespace = "openshift-machine-api";

/**
 * Ours: the namespace of the accounts with which joining machines request their certificates, and of nothing else. Their
 * rights are the namespace's, so that no role follows the names of pools.
 */
export const joinNamespace = "openshift-machine-config-join";

export const annotations = {
  // on nodes
  currentConfig: `${prefix}currentConfig`,
  desiredConfig: `${prefix}desiredConfig`,
  currentImage: `${prefix}currentImage`,
  desiredImage: `${prefix}desiredImage`,
  /** An older name of the same annotation; always written together with the others. */
  currentOSImage: `${prefix}currentOSimage`,
  desiredOSImage: `${prefix}desiredOSimage`,
  /** Ours: `full` or `os-only`, the content of the image of `desiredImage`. */
  desiredImageContent: `${prefix}desiredImageContent`,
  state: `${prefix}state`,
  reason: `${prefix}reason`,
  postConfigAction: `${prefix}post-config-action`,
  desiredDrain: `${prefix}desiredDrain`,
  lastAppliedDrain: `${prefix}lastAppliedDrain`,
  controlPlaneTopology: `${prefix}controlPlaneTopology`,
  firstPivotConfig: `${prefix}firstPivotConfig`,
  /** Ours: `alert` or `settle`: how a machine reacts when files that its image provides are changed. */
  driftPolicy: `${prefix}driftPolicy`,
  /** Ours: the pool for which the node was admitted to the cluster, and whose labels it got. */
  joinedPool: `${prefix}joined-pool`,
  /** Why the last shutdown could not finalize the staged deployment; removed after a successful finalization. */
  finaliseFailure: `${prefix}ostree-finalize-staged-failure`,
  /**
   * Ours: `drain-<config>` of the request for which the drain controller set `unschedulable`; present only while the
   * cordon is ours.
   */
  cordonedFor: `${prefix}cordonedFor`,
  /** Ours: JSON {request, at, pods} of the current drain: its start, and the number of pods to evict at that time. */
  drainBegan: `${prefix}drainBegan`,
  /** Ours: JSON {request, at, again, why} of a drain that was suspended; removed when the node gets a new target. */
  drainSkipped: `${prefix}drainSkipped`,
  /** Ours: JSON {number, at, failures, sets}: the pinned image sets that the machine is to have, and may fetch now. */
  pinnedImageSets: `${prefix}pinnedImageSets`,
  /** Ours: JSON {of, is, …}: what became of the grant of that number. */
  pinnedImageSetsAnswer: `${prefix}pinnedImageSetsAnswer`,
  // on MachineConfigs and ControllerConfig
  generatedByController: `${prefix}generated-by-controller-version`,
  configNameSuffix: `${prefix}mc-name-suffix`,
  generatedByVersion: `${prefix}generated-by-version`,
  releaseImageVersion: `${prefix}release-image-version`,
  /** On ControllerConfig: `true` while machines receive a new authority of the API server. */
  serviceCaRotate: `${prefix}service-ca-rotate`,
  /** Ours, on ControllerConfig: hosts of the API server, by commas, that nothing else in it names. No node serves under one. */
  apiServerHosts: `${prefix}api-server-hosts`,
  osImageURLOverridden: `${prefix}os-image-url-overridden`,
  /** Ours, on OSImageStream: the images that its streams were read for. */
  streamInputs: `${prefix}os-image-stream-inputs`,
  /** Ours, on OSImageStream: what could not be read: sentences in JSON; empty: everything was read. */
  streamProblems: `${prefix}os-image-stream-problems`,
  /** Ours, RFC 3339: when every machine of the pool had this rendered config. */
  rolledOutAt: `${prefix}rolled-out-at`,
  // on pools
  /** Ours: quarantined targets: no healthy node gets them, because two nodes, or the only one, rolled back from them. */
  quarantined: `${prefix}quarantined`,
  /** Ours: the time limit of a drain in seconds; then the pool's deadline policy acts. */
  drainDeadlineSeconds: `${prefix}drain-deadline-seconds`,
  /** Ours: the deadline policy: `wait`, `skip`, or `force: ` with a list of what it may override. */
  drainAfterDeadline: `${prefix}drain-after-deadline`,
  /** Ours: `true`: never update machines of two zones at once. */
  oneZoneAtATime: `${prefix}one-zone-at-a-time`,
  /** Ours: how many unused rendered configs to retain. */
  retainedConfigs: `${prefix}retained-configs`,
  /** Ours: how long to retain a rendered config after its last use, in seconds. */
  retentionQuietSeconds: `${prefix}retained-configs-quiet-seconds`,
  /** Also a label: the pool's machines boot images that are built on the cluster, unless the value is falsy. */
  layeringEnabled: `${prefix}layering-enabled`,
  /**
   * Ours, also on MachineOSConfigs and MachineOSBuilds: `full` or `os-only`, the part of the configuration in the
   * image.
   */
  imageContent: `${prefix}imageContent`,
  /** Also a label: requests a rebuild of the image; removed when the rebuild has ended. */
  rebuildImage: `${prefix}rebuildImage`,
  /** Retries spent on the current build. */
  buildRetries: `${prefix}buildRetries`,
  /** Image of the newest configuration, if the pool was opted in by its label. */
  newestImageEquivalentConfig: `${prefix}newestImageEquivalentConfig`,
  /**
   * Ours, RFC 3339: until then machines keep their images although the MachineOSConfig is deleted. If it is created
   * again in time, nothing changes.
   */
  optOutAfter: `${prefix}opt-out-after`,
  /** Ours: how many canary machines get a new image first. */
  rolloutCanary: `${prefix}rollout-canary`,
  /** Ours: how many seconds a canary must stay healthy. */
  canarySeconds: `${prefix}rollout-canary-seconds`,
  // on MachineOSConfigs
  /** Ours: `PoolLabel` or `ClusterDefault` if no user created it. */
  optInSource: `${prefix}opt-in-source`,
  /** Same as `rebuildImage` of the pool. */
  rebuild: `${prefix}rebuild`,
  /** Ours: the number of rebuild requests so far. */
  rebuildSerial: `${prefix}rebuild-serial`,
  /** Ours: `<serial>:<hash of the request>` while a rebuild is under way. */
  rebuildActive: `${prefix}rebuild-active`,
  /** Ours: how often a failed build is retried, 0 to 20. */
  maxBuildRetries: `${prefix}max-build-retries`,
  /** Name of the MachineOSBuild whose image is rolled out. */
  currentMachineOSBuild: `${prefix}current-machine-os-build`,
  /** Image that was built before the cluster existed. */
  preBuiltImage: `${prefix}pre-built-image`,
  /** Ours: ConfigMap whose files are in the build context of the custom Containerfile. */
  buildContext: `${prefix}build-context`,
  // on MachineOSBuilds, ours unless the reference has one
  contentKey: `${prefix}content-key`,
  parentKey: `${prefix}parent-key`,
  /** JSON: the inputs of the content key. */
  keyInputs: `${prefix}key-inputs`,
  /** `reuse`, `append` or `build`. */
  buildStrategy: `${prefix}build-strategy`,
  /** JSON: why this method was chosen. */
  buildBecause: `${prefix}build-because`,
  /** Name of the MachineOSBuild whose image or run this one shares. */
  reusedFrom: `${prefix}reused-from`,
  /** The registry no longer has its image. */
  imageLost: `${prefix}image-lost`,
  /** `true`: never pruned. */
  keepBuild: `${prefix}keep`,
  /** JSON: the last failure. */
  buildFailure: `${prefix}failure`,
  /** RFC 3339 */
  nextAttemptAt: `${prefix}next-attempt-at`,
  /** Number of the current or last attempt. */
  buildAttempt: `${prefix}build-attempt`,
  /** RFC 3339: from then on the image may be deleted if it is still unused. */
  pruneAfter: `${prefix}prune-after`,
  renderedContainerfile: `${prefix}containerfile`,
  /** JSON: facts about the finished image. */
  imageFacts: `${prefix}image-facts`,
  jobUid: `${prefix}job-uid`,
  /** Name of the Secret that the image was pushed with. */
  pushSecret: `${prefix}rendered-image-push-secret`,
  // on Secrets with credentials of registries
  /** Ours: names of pools, separated by commas: builds of others do not use the Secret. */
  secretPools: `${prefix}secret-pools`,
  // on copies of Secrets for builds
  /** Ours: the type of a Secret that is no credential of a registry; its copy holds nothing else. */
  secretType: `${prefix}secret-type`,
  // on MachineConfigNodes
  /** Ours: JSON list of {config, image, reason, at} that this node rolled back from. */
  refusedTargets: `${prefix}refusedTargets`,
  /** Ours: the last refusal that the controller has recorded: its time; after the word `excluded`, for this node only. */
  quarantineReported: `${prefix}quarantine-told`,
  /** Ours: the configurations that the controller gave this machine, the newest first, separated by blanks. */
  givenConfigs: `${prefix}given-configs`,
  // on MachineConfiguration/cluster
  /** Ours: how many machines of the cluster fetch pinned images at the same time, 1 to 1000. */
  pinnedImagesAtOnce: `${prefix}pinned-images-at-once`,
  /** Ours: `required` or `insecure`: who may get a configuration, secrets included, from the config server. */
  configServerAccess: `${prefix}config-server-access`,
  /**
   * Ours: `host` or `host:port` of the config server as machines reach it, if it is not the internal name of the API
   * server.
   */
  configServerAddress: `${prefix}config-server-address`,
  /** When boot images of MachineSets began to follow the release though nobody asked for it: RFC 3339. */
  bootImagesOptedInAt: `${prefix}boot-image-updates-opted-in-at`,
  // on MachineSets
  /** The labels of a set's nodes, for the cluster autoscaler: `kubernetes.io/arch=arm64,…`. */
  capacityLabels: "capacity.cluster-autoscaler.kubernetes.io/labels",
  /**
   * Ours: the boot image that the suite gave a set last, or that an administrator vouches for: while the set has it, the suite
   * replaces it.
   */
  managedBootImage: `${prefix}managed-boot-image`,
  // on Secrets with user data
  stubUpgradedTo: `${prefix}stub-ignition-upgraded-to`,
  stubUpgradedAt: `${prefix}stub-ignition-upgraded-at`,
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
  /** Of the third member of etcd on two-node clusters. */
  arbiterRole: "node-role.kubernetes.io/arbiter",
  zone: "topology.kubernetes.io/zone",
  os: "kubernetes.io/os",
  hostname: "kubernetes.io/hostname",
  arch: "kubernetes.io/arch",
  /** Ours: on the ServiceAccounts with which joining machines request their certificates. */
  nodeBootstrapper: `${prefix}node-bootstrapper`,
  // on objects that belong to a build
  ephemeralBuildObject: `${prefix}ephemeral-build-object`,
  /** Ours: on the copies of Secrets that the operator makes for the builder. */
  buildCredential: `${prefix}build-credential`,
  onClusterLayering: `${prefix}on-cluster-layering`,
  machineOSBuild: `${prefix}machine-os-build`,
  machineOSConfig: `${prefix}machine-os-config`,
  targetPool: `${prefix}target-machine-config-pool`,
  renderedConfig: `${prefix}rendered-machine-config`,
  /** Marks a build whose image came with the installation. */
  preBuiltImage: `${prefix}pre-built-image`,
  /** The OS stream of a MachineSet's boot image. */
  osStream: `${prefix}osstream`,
  /** On the template of a MachineSet. */
  osId: "machine.openshift.io/os-id",
  /** On user data that the operator keeps: others who renew authorities in user data leave it alone. */
  managedUserData: `${prefix}managed-ca-bundle-derived-from-configmap`,
} as const;

export const finalizers = {
  /** Ours: the os-builder stops and removes the objects of a MachineOSConfig. */
  osBuildCleanup: `${prefix}os-build-cleanup`,
  /** Ours: of an object with MachineConfigs whose names are too long for finalizers. */
  generated: `${prefix}generated-configs`,
} as const;

/** Labels of images that this suite builds. */
export const imageLabels = {
  /** `full` or `os-only`. */
  content: "io.openshift.machineconfig.content",
  recipe: "io.openshift.machineconfig.recipe",
  baseDigest: "io.openshift.machineconfig.base-digest",
  /** The stream that an OS image, or its image with extensions, belongs to. */
  streamClass: "io.openshift.os.streamclass",
  osExtensions: "io.openshift.os.extensions",
  bootc: "containers.bootc",
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

/** Value of `spec.configVersion.desired` of a MachineConfigNode without a target. */
export const notYetSet = "not-yet-set";

export const poolConditions = {
  updated: "Updated",
  updating: "Updating",
  degraded: "Degraded",
  nodeDegraded: "NodeDegraded",
  renderDegraded: "RenderDegraded",
  imageBuildDegraded: "ImageBuildDegraded",
  /** Ours: mirror sets, image policies or the Image config cannot be written for the pool's machines. */
  registriesDegraded: "RegistriesDegraded",
  pinnedImageSetsDegraded: "PinnedImageSetsDegraded",
  /** Ours: `False` while no image can be planned from a pool's inputs. It degrades no pool. */
  imageInputsValid: "ImageInputsValid",
  // For pools opted in by their label: conditions of the first release with on-cluster builds.
  buildPending: "BuildPending",
  building: "Building",
  buildSuccess: "BuildSuccess",
  buildFailed: "BuildFailed",
} as const;

/** Of ClusterImagePolicies and ImagePolicies: openshift/api config/v1/types_image_policy.go (master). */
export const imagePolicyConditions = {
  /** The policy cannot take effect. */
  pending: "Pending",
  applied: "Applied",
} as const;

/** Of a CRIOCredentialProviderConfig: openshift/api config/v1/types_crio_credential_provider_config.go (master). */
export const credentialConditions = {
  validated: "Validated",
  rendered: "MachineConfigRendered",
  // Reasons.
  validationFailed: "ValidationFailed",
  partiallyApplied: "ConfigurationPartiallyApplied",
  renderingSucceeded: "MachineConfigRenderingSucceeded",
  renderingFailed: "MachineConfigRenderingFailed",
} as const;

/** Of KubeletConfigs and ContainerRuntimeConfigs. */
export const settingsConditions = {
  success: "Success",
  failure: "Failure",
  accepted: "Accepted",
  /** Ours: whether all that the object says counts on the machines. */
  effective: "Effective",
} as const;

export const machineOSBuildConditions = {
  prepared: "Prepared",
  building: "Building",
  succeeded: "Succeeded",
  failed: "Failed",
  interrupted: "Interrupted",
} as const;

export const machineOSConfigConditions = {
  /** Ours: whether the MachineOSConfig decides about its pool. */
  accepted: "Accepted",
  /** Ours */
  inputsValid: "InputsValid",
  /** Ours: what was pruned, and when the next pass runs. */
  pruned: "Pruned",
  /** Ours: whether the pool's desired image exists, and otherwise what it waits for. */
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

/** Of MachineConfigNodes: about pinned images, beside the phases of an update. */
export const pinnedImageConditions = {
  progressing: "PinnedImageSetsProgressing",
  degraded: "PinnedImageSetsDegraded",
} as const;

export const machineConfigurationConditions = {
  /** Ours: every client gets a configuration, secrets included. */
  configServerInsecure: "ConfigServerInsecure",
} as const;

export const controllerConfigConditions = {
  running: "TemplateControllerRunning",
  completed: "TemplateControllerCompleted",
  failing: "TemplateControllerFailing",
  /** Of this suite: an input was refused, and the last good one used in its place. */
  inputRefused: "TemplateControllerInputRefused",
} as const;

export const objects = {
  controllerConfig: "machine-config-controller",
  machineConfiguration: "cluster",
  /** Of the group config.openshift.io. */
  clusterSingleton: "cluster",
  clusterOperator: "machine-config",
  operator: "machine-config-operator",
  controller: "machine-config-controller",
  daemon: "machine-config-daemon",
  state: "machine-state-controller",
  /** Ours: whether and how history is kept. */
  stateConfig: "machine-state-controller-config",
  osImageConfigMap: "machine-config-osimageurl",
  /** ConfigMap with the API server's authorities as machines last received them. */
  kubeconfigData: "kubeconfig-data",
  /** The ServiceAccount whose Secrets machines use to pull from the internal registry. */
  puller: "machine-os-puller",
  osBuilder: "machine-os-builder",
  /** Ours: the account of builds, which has no rights. */
  buildAccount: "machine-os-build",
  /** Ours: the PriorityClass of builds, below that of every workload. */
  buildPriority: "machine-os-build",
  /** ConfigMap with the build settings of pools that are opted in by their label, and of all pools. */
  buildConfig: "on-cluster-build-config",
  /** ConfigMap with one Containerfile per pool, keyed by pool name. */
  customContainerfiles: "on-cluster-build-custom-dockerfile",
  /** ConfigMap and Secrets that package steps and custom steps see. */
  yumRepos: "etc-yum-repos-d",
  rpmGpg: "etc-pki-rpm-gpg",
  /** ServiceAccounts with which machines request their first certificate: followed by the name of the pool. */
  nodeBootstrapperPrefix: "node-bootstrapper-",
  /** Followed by the name of the pool. */
  entitlementPrefix: "etc-pki-entitlement-",
  /** ConfigMap with the boot images of the release, key `stream`. */
  bootImages: "coreos-bootimages",
  /** Ours: ConfigMap with the nodes and certificates whose requests for certificates the API server refuses. */
  refusedCertificates: "refused-node-certificates",
  /** Secrets with the user data of machines that the machine API makes: after the name of the pool. */
  userDataSuffix: "-user-data-managed",
  /** The copy of the cluster's pull secret for builds. */
  globalPullSecret: "global-pull-secret-copy",
  configServer: "machine-config-server",
  /** Secret with the config server's certificate and key. */
  configServerTls: "machine-config-server-tls",
  /** Secret with the signing authority, and ConfigMap with the authorities that machines trust, key `ca-bundle.crt`. */
  configServerCa: "machine-config-server-ca",
  /**
   * Ours: administrator's ConfigMap with the authorities of clients that may fetch a configuration, key
   * `ca-bundle.crt`.
   */
  configServerClientCa: "machine-config-server-client-ca",
  /**
   * Ours: administrator's ConfigMap with the authority that the API server's client certificate for webhooks is from, key
   * `ca-bundle.crt`, and optionally the names in it, key `names`, separated by commas.
   */
  admissionClientCa: "machine-config-admission-client-ca",
} as const;

/** Ours: key of the ConfigMap `objects.configServerCa` with the URLs of the config server, one a line. */
export const configServersKey = "servers";

/** Ours: how a daemon proves to the config server which machine it is: by a token that is good there only. */
export const machineTokens = {
  audience: "machine-config-server",
  folder: "/var/run/secrets/machine-config-server",
  file: "token",
} as const;

/** Ours, followed by the pool's name: organization of client certificates that may fetch the pool's configuration. */
export const poolOrganizationPrefix = `${group}:pool:`;

/** Names of MachineStateJournals: one for each writer. */
export const journals = {
  operator: "operator",
  controller: "controller",
  server: "server",
  osBuilder: "os-builder",
  /** Events from before the cluster existed. */
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

/** Subject of a node's certificates. */
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
  kubelet: "mcc-kubelet",
  runtime: "mcc-runtime",
  registries: "mcc-registries",
  credentials: "mcc-credentials",
  pinnedImages: "mcc-pinned-images",
  osImageStreams: "mcc-os-image-streams",
  bootImages: "mcc-boot-images",
  refusals: "mcc-refusals",
  /** For books and chapters. */
  books: "mco-books",
  /** For health conditions. */
  health: "mco-health",
  /** For the conditions of the state process about itself. */
  state: "mco-state",
  /** For the condition that sums these up. */
  overall: "mco-overall",
  /** For the journal of a process; the daemon writes its own as `mcd`. */
  journal: "mco-journal",
  daemon: "mcd",
  osBuilder: "mco-os-builder",
  configServer: "mco-server",
} as const;

/** Files whose path is part of the contract. */
export const hostPaths = {
  currentConfig: "/etc/machine-config-daemon/currentconfig",
  currentImage: "/etc/machine-config-daemon/currentimage",
  /** Annotations from the config server for a new machine; removed when the daemon takes over the machine. */
  nodeAnnotations: "/etc/machine-config-daemon/node-annotations.json",
  nodeAnnotationsDone: "/etc/machine-config-daemon/node-annotation.json.bak",
  /** The MachineConfig of a first boot without its Ignition part; removed when the daemon has applied the rest. */
  encapsulated: "/etc/ignition-machine-config-encapsulated.json",
  encapsulatedDone: "/etc/ignition-machine-config-encapsulated.json.bak",
  /** The complete MachineConfig that the machine was first served. */
  servedConfig: "/etc/mcs-machine-config-content.json",
  /** Images that CRI-O does not let the kubelet remove: crio.conf.d(5). The name is the reference's. */
  pinnedImages: "/etc/crio/crio.conf.d/50-pinned-images",
  /** Presets that Ignition writes; later ones are the vendor's. */
  ignitionPreset: "/etc/systemd/system-preset/20-ignition.preset",
  /** Files that the reference's daemon replaced (backups) or did not find (markers). */
  referenceOriginals: "/etc/machine-config-daemon/orig",
  referenceNoOriginals: "/etc/machine-config-daemon/noorig",
  /** Left by the reference's daemon for a boot that returns from an image to the stock system. */
  referenceRevertConfig: "/etc/mco/machineconfig-revert.json",
  referenceRevertUnit: "machine-config-daemon-revert.service",
  referenceRevertProxy: "/etc/mco/proxy.env.backup",
  kubeconfig: "/etc/kubernetes/kubeconfig",
  /** What a kubelet made of the other one when it first joined. */
  kubeletKubeconfig: "/var/lib/kubelet/kubeconfig",
  /** Any content: the next pass applies the target again and reboots. */
  force: "/run/machine-config-daemon-force",
  stateFolder: "/var/lib/machine-config-daemon",
  /** Below it each pool has a folder with the layers of its earlier image builds. */
  buildCaches: "/var/lib/machine-os-builder",
  /** Authorities by which a kubelet verifies the clients of the API server. */
  kubeletCa: "/etc/kubernetes/kubelet-ca.crt",
  cloudCa: "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem",
  /** Credentials for the internal registry, merged with the cluster's pull secret. */
  internalPullSecret: "/etc/mco/internal-registry-pull-secret.json",
  /** The cluster's pull secret, for the kubelet and the container runtime. */
  kubeletPullSecret: "/var/lib/kubelet/config.json",
  /** A folder for each registry: containers-certs.d(5). */
  registryCas: "/etc/docker/certs.d",
  /** Journal lines: `journal-<boot id>.jsonl`. */
  books: "/var/lib/machine-config-daemon/books",
  sshKeys: "/home/core/.ssh/authorized_keys.d/ignition",
  /** The desired state of a machine, in an image that holds it. */
  payload: "/usr/lib/machine-config/content.json",
  /** The same for images without one: one file each, named after the image digest. */
  localPayloads: "/var/lib/machine-config-daemon/payload",
  /** Paths, units and accounts that are or were managed, with their original state: JSON. */
  managed: "/var/lib/machine-config-daemon/originals.json",
  /** What the boot last applied of the image's content: JSON. */
  settleRecord: "/var/lib/machine-config-daemon/settled.json",
  settleUnit: "machine-config-settle.service",
} as const;

/**
 * Names that Kubernetes controllers write on workloads, nodes and their pods: k8s.io/api apps/v1, core/v1, batch/v1
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
