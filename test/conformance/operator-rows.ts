import { type Section, better, tests, ours, same, skip } from "./define-rows.ts";

export const operatorRules: readonly Section[] = [
  {
    id: "C0",
    title: "Processes of the control plane",
    rows: [
      ours(
        "C0 lease",
        "Leases of 15, 10 and 2 seconds, given back on TERM, with flags for other figures.",
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
        "Nothing is rendered before the ControllerConfig is of this very version and its base configurations are complete.",
        tests("render-controller-config-of-7", "render-controller-config-of-8"),
      ),
      better(
        "F12",
        "C0 gates",
        "Kinds that come and go on a server are watched as they do; no process ends for it.",
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
        "Tasks in order, each with its own outcome: one that fails or waits is told of and keeps no other from its work.",
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
        "Images of another version are not touched: machines keep theirs until the operator of that release runs.",
        tests("render-release-of-1", "render-release-of-2"),
        tests("operator-2"),
        tests("scenario-release-1"),
      ),
      same(
        "C8.1 release",
        "A new OS image in machine-config-osimageurl moves every pool and rolls every machine, as an entry like any other, which `mco plan` tells before.",
        tests("scenario-release-2"),
      ),
      same(
        "C8.1 overridden",
        "A pool with an OS image of its own keeps it; a paused one is rendered and goes on when it is no longer paused.",
        tests("scenario-release-3"),
      ),
      same(
        "C8.1 MachineConfiguration",
        "Made when it is missing; the policies in force, boot images and skew stand in its status.",
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
        "One for each node of a pool; those without a node go.",
        tests("operator-4"),
        tests("scenario-operator-1"),
      ),
      same(
        "C8.1 pools",
        "The built-in pools are made, and keep their labels; their spec belongs to the administrator.",
        tests("operator-5"),
        tests("scenario-operator-2"),
      ),
      ours("C8.1 idle", "Nothing is written while nothing changes.", tests("operator-6")),
      ours(
        "C8.1 removal",
        "Whoever removes the suite's namespace removes what the suite made, and the machines run on as they are.",
        tests("scenario-install-1"),
      ),
      skip(
        "C8.1 server",
        "The config server and the OS builder are not installed yet.",
        "they come with the parts of the suite that serve machines which join and build images",
      ),
      skip(
        "C8.1 user data",
        "Secrets with pointer configurations are not made.",
        "they belong to the machine API and the config server",
      ),
    ],
  },
  {
    id: "C8.2",
    title: "Operator: the ClusterOperator",
    rows: [
      same(
        "C8.2 initial",
        "Before anybody looked everything is False, and Upgradeable unknown.",
        tests("operator-report-1"),
      ),
      same(
        "C8.2 Degraded",
        "A task that fails makes it Degraded with the task and its reason, with an event that is counted, not repeated.",
        tests("operator-7"),
        tests("scenario-operator-3"),
      ),
      same(
        "C8.2 versions",
        "Release and image of the operator, which move together once everything has arrived.",
        tests("operator-report-2"),
      ),
      same(
        "C8.2 extension",
        "One line on each pool, and what went wrong last.",
        tests("operator-report-3"),
        tests("operator-6"),
      ),
      skip(
        "C8.2 EvaluationConditionsDetected",
        "What the insights of a fleet count is not told.",
        "it looks for kubelet settings and runtimes of releases that are out of support",
      ),
    ],
  },
  {
    id: "C8.3",
    title: "Operator: pools that an upgrade waits for",
    rows: [
      better(
        "F3",
        "C8.3 wait",
        "Nobody sleeps for them: the answer is that of the moment, and the next news brings the next one.",
        tests("operator-report-4"),
      ),
      better("F4", "C8.3 others", "A pool that somebody added keeps no upgrade waiting.", tests("operator-report-4")),
      same(
        "C8.3 paused",
        "A required pool that is paused with updates waiting is an error, which says what to do.",
        tests("operator-report-4"),
      ),
      same(
        "C8.3 image",
        "A pool counts once what it is at was rendered with the release's OS image, unless somebody chose another one.",
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
        "operatorLogLevel is the level of the operator, at once, and of its components.",
        tests("operator-8"),
        tests("node-json-logger-1"),
      ),
      ours(
        "C8.4 boot images",
        "No boot images are managed; who asks for it is told so in a condition.",
        tests("operator-machine-configuration-status-3"),
      ),
      same(
        "C8.4 skew",
        "A skew that the administrator states is the one in force, else none is enforced.",
        tests("operator-machine-configuration-status-2"),
      ),
    ],
  },
  {
    id: "C10.1",
    title: "What ControllerConfig carries",
    rows: [
      same(
        "C10.1 network",
        "The tenth address of the first service network, the families of all, and the type of the network as the network operator says it.",
        tests("render-service-network-1", "render-service-network-2"),
        tests("render-controller-config-of-9", "render-controller-config-of-10"),
      ),
      ours(
        "C10.1 plain",
        "On plain Kubernetes its own objects: the DNS service, whom the API server believes its clients by, the root certificate; defaults for the rest.",
        tests(
          "render-controller-config-of-11",
          "render-controller-config-of-12",
          "render-controller-config-of-13",
          "render-controller-config-of-14",
        ),
      ),
      ours(
        "C10.1 waits",
        "Where the server has a kind, an object of it that is missing is waited for; nothing falls back to a default because an answer is missing.",
        tests("render-controller-config-of-15", "render-controller-config-of-16"),
        tests("scenario-cluster-config-2"),
      ),
      ours(
        "C10.1 embedded",
        "Embedded objects are without what changes whenever somebody touches them.",
        tests("render-controller-config-of-17"),
      ),
      same(
        "C10.1 bring-up",
        "During bring-up kubelets keep what they were installed with, with its signer as it is now; after it they get the cluster's authorities.",
        tests("render-controller-config-of-18"),
      ),
      better(
        "C20",
        "C10.1 signer",
        "A bundle with something else than certificates in it comes to an end.",
        tests("render-controller-config-of-19"),
        tests("certificates-certificate-facts-1"),
      ),
      same(
        "C10.1 root",
        "The config server's own authority before the cluster's.",
        tests("render-controller-config-of-20"),
      ),
      same(
        "C10.1 trust",
        "The user's bundle and the proxy's, which must be PEM.",
        tests("render-controller-config-of-21", "render-controller-config-of-22"),
      ),
      ours(
        "C10.1 broken",
        "A value that cannot be read stays what it was, is told of without its contents, and keeps other certificates from nothing.",
        tests("render-controller-config-of-22", "render-controller-config-of-23"),
        tests("scenario-cluster-config-1"),
      ),
      better(
        "C21",
        "C10.1 registries",
        "Certificates of registries by file name, and their union for others, which is empty when the last one goes.",
        tests("render-controller-config-of-24"),
        tests("scenario-cluster-config-3"),
      ),
      better("C25", "C10.1 inputs", "What was read is not changed.", tests("render-controller-config-of-25")),
      same(
        "C10.1 pull secret",
        "Where there is an internal registry: the puller's credentials and the cluster's, the internal registry's under its public name as well.",
        tests("build-internal-pull-secret-1", "build-internal-pull-secret-2", "build-internal-pull-secret-3"),
        tests("scenario-cluster-config-4"),
      ),
      same(
        "C10.1 cloud",
        "cloud.conf and its authority, where machines need them.",
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
        "They are handed to machines once they have stayed the same for a minute; nobody sleeps for it.",
        tests("operator-9"),
      ),
    ],
  },
  {
    id: "C13",
    title: "Admission policies and rights",
    rows: [
      ours(
        "C13 pool selector",
        "A pool of one's own selects worker; a pool that was there before goes on being rendered.",
        tests("scenario-cluster-config-5"),
        tests("operator-10"),
      ),
      ours(
        "C13 installed",
        "Policies are installed whose kinds and parameters are there: one without them would only stand in the way.",
        tests("operator-11"),
      ),
      ours(
        "C13 stream",
        "A pool names a stream that there is; the policy is there once the streams are.",
        tests("scenario-cluster-config-6"),
      ),
      same(
        "C13 MachineConfiguration",
        "There is one, and boot images are managed only on platforms that can.",
        tests("scenario-cluster-config-7"),
      ),
      same(
        "C13 deletions",
        "Streams stay; a bundle of releases stays while the cluster runs one of them.",
        tests("scenario-cluster-config-8"),
      ),
      ours(
        "C13 NetworkPolicies",
        "Five of them, which only the operator changes and nobody deletes, but their namespace can go.",
        tests("scenario-cluster-config-9"),
        tests("scenario-install-1"),
      ),
      ours(
        "C13 taken over",
        "What the reference's operator made under these names is taken over from it; what anybody else holds is left, and told of.",
        tests("operator-12"),
      ),
      same(
        "C13 own node",
        "A daemon writes about its own machine and no other, and nothing but annotations of its node.",
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
        "A change of ControllerConfig is on the disk soon after, whether the pool is paused or not, without drain, reboot or another configuration.",
        tests("scenario-cluster-config-3"),
        tests("daemon-certificates-2"),
      ),
      ours(
        "12.1 level",
        "What is on the disk is compared, not what was seen before: no annotations are kept for it, and what somebody changed is put right.",
        tests("daemon-certificates-1"),
      ),
      ours(
        "12.1 crash",
        "A writer that fails anywhere gets there all the same, and forgets nothing that it wrote.",
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
        "The kubelet's authorities, the cloud's, registries', with a line feed at the end; a file that is there keeps its mode.",
        tests("machine-certificates-1"),
        tests("daemon-certificates-1"),
      ),
      better(
        "W13",
        "12.2 credentials",
        "The merged pull secret is root's alone.",
        tests("machine-certificates-1"),
        tests("scenario-cluster-config-4"),
      ),
      better(
        "W15",
        "12.2 registries",
        "Only what the writer put there is taken away; what others put there stays, and what a MachineConfig names is as that says.",
        tests("daemon-certificates-5"),
      ),
      ours(
        "12.2 unreadable",
        "What is no certificate is not written: a kubelet that believes nobody is worse than one that believes an old authority.",
        tests("daemon-certificates-6"),
        tests("machine-certificates-2"),
      ),
      ours("12.2 names", "A registry's name cannot lead out of its folder.", tests("machine-certificates-3")),
      same(
        "12.2 drift",
        "No plan writes, compares or takes away what is the writer's.",
        tests("daemon-certificates-3"),
      ),
      same(
        "12.3 kubeconfig",
        "A kubeconfig gets the API server's new authorities, and everything else in it stays; the kubelet is started again once for it.",
        tests("render-kubeconfig-authorities-1", "render-kubeconfig-authorities-2", "render-kubeconfig-authorities-3"),
        tests("daemon-certificates-7"),
        tests("scenario-cluster-config-11"),
      ),
      skip(
        "12.3 deferred",
        "The kubelet is started again at once, whichever signer is new.",
        "pods do not notice it, and a restart that is put off has to be remembered by somebody",
      ),
      same("12.4", "Pulls of OS images use the merged secret where it is valid JSON.", tests("rpm-ostree-host-18")),
    ],
  },
];
