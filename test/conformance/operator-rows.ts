import { type Section, better, tests, ours, same, skip } from "./define-rows.ts";

export const operatorRules: readonly Section[] = [
  {
    id: "C0",
    title: "Processes of the control plane",
    rows: [
      ours(
        "C0 lease",
        "Leases of 15, 10 and 2 seconds, released on SIGTERM, with flags for other values.",
        tests(
          "kube-leader-1",
          "kube-leader-2",
          "kube-leader-3",
          "kube-leader-4",
          "kube-leader-5",
          "kube-leader-6",
          "kube-leader-7",
        ),
      ),
      same(
        "C0 fence",
        "Rendering waits until the ControllerConfig is of exactly this version and its base configurations are complete.",
        tests("render-controller-config-of-7", "render-controller-config-of-8"),
      ),
      better(
        "F12",
        "C0 gates",
        "Watches follow kinds that are added to or removed from the server; no process exits for it.",
        tests("kube-watch-cache-1"),
      ),
    ],
  },
  {
    id: "C8.1",
    title: "Operator: one sync",
    rows: [
      better(
        "F3",
        "C8.1 tasks",
        "Tasks run in order, each with its own outcome; a failing or waiting task is reported and blocks no other.",
        tests("scenario-cluster-config-1"),
        tests("operator-1"),
      ),
      ours(
        "C8.1 order",
        "A new version rolls out its controller, then its settings, then its daemons.",
        tests("operator-2"),
      ),
      same(
        "C8.1 images",
        "Images of another version stay unchanged: machines keep theirs until the operator of that release runs.",
        tests("render-release-of-1", "render-release-of-2"),
        tests("operator-2"),
        tests("scenario-release-1"),
      ),
      same(
        "C8.1 release",
        "A new OS image in machine-config-osimageurl updates every pool and machine like any other change, and `mco plan` shows it before.",
        tests("scenario-release-2"),
      ),
      same(
        "C8.1 overridden",
        "A pool with its own OS image keeps it; a paused pool is rendered, and updates when it is unpaused.",
        tests("scenario-release-3"),
      ),
      same(
        "C8.1 MachineConfiguration",
        "The operator creates it if it is missing; its status shows the effective policies, boot images and skew.",
        tests("operator-3"),
        tests(
          "operator-machine-configuration-status-1",
          "operator-machine-configuration-status-2",
          "operator-machine-configuration-status-3",
          "operator-machine-configuration-status-4",
          "operator-machine-configuration-status-5",
          "operator-machine-configuration-status-6",
        ),
      ),
      same(
        "C8.1 MachineConfigNode",
        "Each node of a pool has one; those without a node are deleted.",
        tests("operator-4"),
        tests("scenario-operator-1"),
      ),
      same(
        "C8.1 pools",
        "The operator creates the built-in pools and maintains their labels; their spec belongs to the administrator.",
        tests("operator-5"),
        tests("scenario-operator-2"),
      ),
      ours("C8.1 idle", "Nothing is written while nothing changes.", tests("operator-6")),
      ours(
        "C8.1 removal",
        "Deleting the suite's namespace removes the suite's objects; machines keep running unchanged.",
        tests("scenario-install-1"),
      ),
      same(
        "C8.1 server",
        "The operator installs the config server, and the OS builder while some pool boots images.",
        tests("scenario-images-1", "attack-pods-1"),
      ),
      same(
        "C8.1 user data",
        "Each pool has a Secret POOL-user-data-managed with its pointer configuration in openshift-machine-api, which follows the config server's authority and address.",
        tests("managed-user-data-1", "managed-user-data-2", "managed-user-data-3"),
        tests("operator-user-data-1"),
      ),
      ours(
        "C8.1 no machine API",
        "A cluster without that API or that namespace has no user data, needs no rights for it, and reports nothing.",
        tests("managed-user-data-4"),
        tests("operator-user-data-2", "operator-user-data-7"),
      ),
      same(
        "C8.1 installer's user data",
        "The single authority in the installer's user data follows the config server's; user data with the label of managed user data is left alone.",
        tests("installed-user-data-1", "installed-user-data-2", "installed-user-data-3", "installed-user-data-4"),
        tests("installed-user-data-5", "installed-user-data-8", "operator-user-data-5"),
      ),
      better(
        "C27",
        "C8.1 foreign user data",
        "User data of unexpected form or of somebody else stays, and is reported with the remedy; other pools do not wait for it.",
        tests("operator-user-data-3", "operator-user-data-4", "operator-user-data-6"),
        tests("installed-user-data-6", "installed-user-data-7"),
      ),
    ],
  },
  {
    id: "C8.2",
    title: "Operator: the ClusterOperator",
    rows: [
      same(
        "C8.2 initial",
        "Before the first pass every condition is False, and Upgradeable is Unknown.",
        tests("operator-report-1"),
      ),
      same(
        "C8.2 Degraded",
        "A failing task makes it Degraded with the task and its reason, and one counted event.",
        tests("operator-7"),
        tests("scenario-operator-3"),
      ),
      same(
        "C8.2 versions",
        "Release and operator image, which change together once everything is rolled out.",
        tests("operator-report-2"),
      ),
      same(
        "C8.2 extension",
        "One line for each pool, and the last error.",
        tests("operator-report-3"),
        tests("operator-6"),
      ),
      skip(
        "C8.2 EvaluationConditionsDetected",
        "The condition is not set: it only feeds fleet telemetry.",
        "it looks for kubelet settings and runtimes of releases that are out of support",
      ),
    ],
  },
  {
    id: "C8.3",
    title: "Operator: pools that block an upgrade",
    rows: [
      better(
        "F3",
        "C8.3 wait",
        "The operator does not sleep while waiting: it answers with the current state, and the next change triggers the next pass.",
        tests("operator-report-4"),
      ),
      better("F4", "C8.3 others", "A custom pool does not delay an upgrade.", tests("operator-report-4")),
      same(
        "C8.3 paused",
        "A required pool that is paused with pending updates is an error with a remedy.",
        tests("operator-report-4"),
      ),
      same(
        "C8.3 image",
        "A pool counts once its current config was rendered with the release's OS image, unless another image is configured.",
        tests("operator-report-4"),
      ),
    ],
  },
  {
    id: "C8.4",
    title: "Operator: the rest",
    rows: [
      same(
        "C8.4 log",
        "operatorLogLevel sets the log level of the operator and its components at once.",
        tests("operator-8"),
        tests("node-json-logger-1"),
      ),
      same(
        "C8.4 boot images",
        "On AWS and GCP all MachineSets are managed unless the administrator says otherwise; an empty list takes all of them out.",
        tests("operator-machine-configuration-status-7", "operator-boot-image-managers-1", "operator-boot-images-1"),
      ),
      ours(
        "C8.4 boot images elsewhere",
        "Boot images of other platforms and of control-plane machine sets are not managed; a condition reports that to administrators who request it.",
        tests("operator-machine-configuration-status-3", "operator-boot-image-managers-1", "boot-images-8"),
      ),
      same(
        "C8.4 skew",
        "The administrator's skew setting is enforced; without one, none is.",
        tests("operator-machine-configuration-status-2"),
      ),
    ],
  },
  {
    id: "C10.1",
    title: "The content of ControllerConfig",
    rows: [
      same(
        "C10.1 network",
        "The tenth address of the first service network, all address families, and the network type of the network operator.",
        tests("render-service-network-1", "render-service-network-2"),
        tests("render-controller-config-of-9", "render-controller-config-of-10"),
      ),
      ours(
        "C10.1 plain",
        "On plain Kubernetes the equivalent objects: the DNS service, the client CA, the root certificate; defaults for the rest.",
        tests(
          "render-controller-config-of-11",
          "render-controller-config-of-12",
          "render-controller-config-of-13",
          "render-controller-config-of-14",
        ),
      ),
      ours(
        "C10.1 waits",
        "If the server has a kind, the operator waits for its object; a missing answer never causes a default.",
        tests("render-controller-config-of-15", "render-controller-config-of-16"),
        tests("scenario-cluster-config-2"),
      ),
      ours("C10.1 embedded", "Embedded objects omit volatile metadata.", tests("render-controller-config-of-17")),
      same(
        "C10.1 bring-up",
        "During bring-up kubelets keep the installed authorities with the current signer; afterwards they get the cluster's authorities.",
        tests("render-controller-config-of-18"),
      ),
      better(
        "C20",
        "C10.1 signer",
        "Reading a bundle with other content than certificates terminates.",
        tests("render-controller-config-of-19"),
        tests("certificates-certificate-facts-1"),
      ),
      same(
        "C10.1 root",
        "The config server's own authority comes before the cluster's.",
        tests("render-controller-config-of-20"),
      ),
      same(
        "C10.1 trust",
        "The user's bundle and the proxy's, which must be PEM.",
        tests("render-controller-config-of-21", "render-controller-config-of-22"),
      ),
      ours(
        "C10.1 broken",
        "An unreadable value keeps its previous content, is reported without its contents, and blocks no other certificate.",
        tests("render-controller-config-of-22", "render-controller-config-of-23"),
        tests("scenario-cluster-config-1"),
      ),
      better(
        "C21",
        "C10.1 registries",
        "Registry certificates by file name, and their union for other users, which is empty after the last one is removed.",
        tests("render-controller-config-of-24"),
        tests("scenario-cluster-config-3"),
      ),
      better(
        "C25",
        "C10.1 inputs",
        "The operator does not modify its inputs.",
        tests("render-controller-config-of-25"),
      ),
      same(
        "C10.1 pull secret",
        "With an internal registry: the puller's and the cluster's credentials, the internal registry's also under its public name.",
        tests("build-internal-pull-secret-1", "build-internal-pull-secret-2", "build-internal-pull-secret-3"),
        tests("scenario-cluster-config-4"),
      ),
      same(
        "C10.1 cloud",
        "cloud.conf and its authority, if machines need them.",
        tests("render-controller-config-of-26"),
      ),
    ],
  },
  {
    id: "C10.2",
    title: "The API server's own authorities",
    rows: [
      better(
        "F3",
        "C10.2 settle",
        "Machines get them once they have been stable for a minute, without a sleeping task.",
        tests("operator-9"),
      ),
    ],
  },
  {
    id: "C11",
    title: "Boot images of MachineSets",
    rows: [
      same(
        "C11 target",
        "A set gets the boot image of the release for its platform, region and architecture.",
        tests("operator-decide-boot-image-1", "operator-decide-boot-image-2", "operator-decide-boot-image-3"),
        tests("operator-decide-boot-image-4", "operator-decide-boot-image-11", "boot-images-1"),
      ),
      same(
        "C11 selection",
        "The mode Partial selects sets by their labels.",
        tests("operator-boot-image-managers-2", "boot-images-4"),
      ),
      same(
        "C11 left alone",
        "Sets of other owners, streams and systems, and sets of an unknown architecture or with an image of their own, keep theirs.",
        tests("operator-decide-boot-image-5", "operator-decide-boot-image-6", "operator-decide-boot-image-9"),
      ),
      ours(
        "C11 known AMIs",
        "An AMI is replaced if the release has it, the suite gave it, or an administrator vouches for it: the controller needs no credentials of the cloud.",
        tests("operator-decide-boot-image-7", "boot-images-2"),
      ),
      ours(
        "C11 patch",
        "Only the boot image is patched, if it is still the one that was read.",
        tests("operator-decide-boot-image-1", "operator-decide-boot-image-2", "boot-images-1"),
      ),
      ours(
        "C11 set back",
        "What somebody sets back is not written a second time; the set itself notes what it got, so that no restart forgets it.",
        tests("operator-decide-boot-image-8", "boot-images-3"),
      ),
      same(
        "C11 waits",
        "Boot images wait until the upgrade is over and the control plane has its configuration.",
        tests("operator-boot-image-report-1", "boot-images-5"),
      ),
      better(
        "C27",
        "C11 user data",
        "User data of Ignition 2 is upgraded first; user data of unexpected form keeps the boot image, and is reported.",
        tests("operator-user-data-stub-1", "operator-user-data-stub-2", "operator-user-data-stub-3"),
        tests("boot-images-6"),
      ),
      better(
        "C19",
        "C11 conditions",
        "Two conditions count the sets and name those that keep their boot image, with the reason and the remedy; conditions of other writers stay.",
        tests("operator-boot-image-report-2", "boot-images-2", "operator-explain-boot-images-1"),
      ),
      ours(
        "C11 unreadable",
        "A ConfigMap that is missing or cannot be read changes nothing, and is reported.",
        tests("operator-boot-image-stream-1", "operator-boot-image-stream-2", "boot-images-7"),
      ),
      ours(
        "C11 joining",
        "What a joining machine's request and its first boot say about its boot image is in metrics and books, old ones are named with the remedy, and it decides nothing.",
        tests("join-boot-program-1", "server-answer-request-1", "server-tell-requests-7", "server-meter-1"),
        tests("server-meter-2", "daemon-first-boot-9"),
        tests("join-boot-program-2", "books-judge-joins-9", "preview-explain-28"),
      ),
      skip(
        "C11 other platforms",
        "Boot images on vSphere and Azure, and of marketplaces, are not managed.",
        "they need the credentials of the cloud: to build templates, or to look for images",
      ),
    ],
  },
  {
    id: "C13",
    title: "Admission policies and rights",
    rows: [
      ours(
        "C13 pool selector",
        "A custom pool must select worker; an existing pool is still rendered.",
        tests("scenario-cluster-config-5"),
        tests("operator-10"),
      ),
      ours(
        "C13 installed",
        "Policies are installed only if their kinds and parameters exist: otherwise they would block requests. Those that only warn always are.",
        tests("operator-11"),
      ),
      ours(
        "C13 stream",
        "A pool must name an existing stream; the policy exists once the streams do.",
        tests("scenario-cluster-config-6"),
      ),
      ours(
        "C12 streams",
        "Streams come from the labels of images: the ControllerConfig's, the release payload's, and an ImageStream in a ConfigMap; later ones replace earlier ones of the same name.",
        tests("os-streams-1", "os-streams-2", "os-streams-3", "os-image-streams-1", "os-image-streams-2"),
      ),
      ours(
        "C12 sources",
        "A source that cannot be read takes no stream away; the object and an Event say what could not be read.",
        tests("os-streams-5", "os-image-streams-3"),
      ),
      same(
        "C12 default stream",
        "The default is what the object wants, what it has, the only stream, or that of the installed version.",
        tests("os-streams-4", "os-streams-6"),
      ),
      same(
        "C12 stream kind",
        "There is one object; its default is one of its streams, and its images are named by digest.",
        tests("os-image-streams-4", "os-image-streams-5"),
      ),
      ours(
        "C12 upgrade",
        "After an upgrade, pools are rendered once the streams of the new images are known.",
        tests("os-streams-7", "os-image-streams-9"),
      ),
      same(
        "C12 pool status",
        "A pool's status names the stream of its OS image once every machine has it.",
        tests("os-image-streams-6"),
      ),
      same(
        "C13 MachineConfiguration",
        "There is exactly one, and boot images are managed only on platforms that support it.",
        tests("scenario-cluster-config-7"),
      ),
      same(
        "C13 deletions",
        "Streams cannot be deleted; nor can a bundle while the cluster runs one of its releases.",
        tests("scenario-cluster-config-8", "admission-policies-bundle-1"),
      ),
      ours(
        "C12 bundle",
        "An InternalReleaseImage has the reference's kind and rules; it is stored, checked and guarded, and a warning says that machines serve no registry for it.",
        tests("openshift-kinds-4", "openshift-kinds-5", "admission-policies-bundle-2"),
      ),
      ours(
        "C13 NetworkPolicies",
        "NetworkPolicies that only the operator changes and nobody deletes, except with their namespace.",
        tests("scenario-cluster-config-9"),
        tests("scenario-install-1"),
      ),
      ours(
        "C13 taken over",
        "Objects of the reference's operator under these names are adopted; objects of other owners stay and are reported.",
        tests("operator-12"),
      ),
      same(
        "C13 own node",
        "A daemon may write only about its own machine, and only annotations of its Node.",
        tests("scenario-cluster-config-10"),
        tests("operator-13"),
      ),
    ],
  },
  {
    id: "12.1",
    title: "Certificates without a MachineConfig: when",
    rows: [
      same(
        "12.1 news",
        "A change of ControllerConfig reaches the disk soon, also in a paused pool, without a drain, a reboot or a new configuration.",
        tests("scenario-cluster-config-3"),
        tests("daemon-certificates-2"),
      ),
      ours(
        "12.1 level",
        "The daemon compares the disk, not remembered state: it keeps no annotations for it, and repairs edited files.",
        tests("daemon-certificates-1"),
      ),
      ours(
        "12.1 crash",
        "A writer that crashes anywhere still converges, and keeps track of everything that it wrote.",
        tests("daemon-certificates-4"),
      ),
    ],
  },
  {
    id: "12.2",
    title: "Certificates without a MachineConfig: what",
    rows: [
      same(
        "12.2 files",
        "Authorities of the kubelet, the cloud and registries, with a final line feed; an existing file keeps its mode.",
        tests("machine-certificates-1"),
        tests("daemon-certificates-1"),
      ),
      better(
        "W13",
        "12.2 credentials",
        "Only root can read the merged pull secret.",
        tests("machine-certificates-1"),
        tests("scenario-cluster-config-4"),
      ),
      better(
        "W15",
        "12.2 registries",
        "The writer removes only its own files; foreign files stay, and files of a MachineConfig have its content.",
        tests("daemon-certificates-5"),
      ),
      ours(
        "12.2 unreadable",
        "Content without certificates is not written: a kubelet that trusts no authority is worse than one that trusts an old one.",
        tests("daemon-certificates-6"),
        tests("machine-certificates-2"),
      ),
      ours("12.2 names", "A registry name cannot escape its folder.", tests("machine-certificates-3")),
      same("12.2 drift", "No plan writes, compares or removes the writer's files.", tests("daemon-certificates-3")),
      same(
        "12.3 kubeconfig",
        "A kubeconfig gets the API server's new authorities and keeps everything else; the kubelet restarts once for it.",
        tests("render-kubeconfig-authorities-1", "render-kubeconfig-authorities-2", "render-kubeconfig-authorities-3"),
        tests("daemon-certificates-7"),
        tests("scenario-cluster-config-11"),
      ),
      skip(
        "12.3 deferred",
        "The kubelet restarts at once for every new signer.",
        "pods do not notice it, and a component would have to remember a postponed restart",
      ),
      same("12.4", "Pulls of OS images use the merged secret if it is valid JSON.", tests("rpm-ostree-host-18")),
    ],
  },
];
