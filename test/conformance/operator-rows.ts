import { type Section, better, inFile, ours, same, skip } from "./row-kit.ts";

/**
 * What the operator does, and how certificates reach machines, rule by rule. `C8.1` is section 8.1 of the reference's
 * control plane as it was written down for this suite, `12.2` section 12.2 of its daemon.
 *
 * Source of what the reference does: openshift/machine-config-operator pkg/operator, manifests,
 * pkg/daemon/certificate_writer.go (main).
 */
const operator = inFile("src/operator/operator.test.ts", "the operator");
const scenario = inFile("test/scenario/operator.test.ts", "the operator of a cluster");
const install = inFile("test/scenario/install.test.ts", "kubectl apply -k install/");
const release = inFile("test/scenario/release.test.ts", "a new release");
const openShift = inFile("test/scenario/cluster-config.test.ts", "on a cluster with OpenShift's own settings");
const admission = inFile(
  "test/scenario/cluster-config.test.ts",
  "on a cluster with OpenShift's own settings",
  "admission",
);
const onPlain = inFile("src/core/render/controller-config-of.test.ts", "ControllerConfig on plain Kubernetes");
const whereKinds = inFile(
  "src/core/render/controller-config-of.test.ts",
  "ControllerConfig where there are kinds of config.openshift.io",
);
const authorities = inFile("src/core/render/controller-config-of.test.ts", "authorities in ControllerConfig");
const fence = inFile("src/core/render/controller-config-of.test.ts", "the fence before rendering");
const settings = inFile("src/core/operator/machine-configuration-status.test.ts", "the settings in force");
const required = inFile("src/core/operator/operator-report.test.ts", "pools that an upgrade waits for");
const beside = inFile(
  "src/core/operator/operator-report.test.ts",
  "what a ClusterOperator shows beside its conditions",
);
const pullSecret = inFile("src/core/build/internal-pull-secret.test.ts");
const network = inFile("src/core/render/service-network.test.ts");
const bundles = inFile("src/core/certificates/certificate-facts.test.ts", "a bundle");
const machineFiles = inFile(
  "src/core/certificates/machine-certificates.test.ts",
  "what a machine has from ControllerConfig itself",
);
const writer = inFile("src/daemon/certificates.test.ts");
const rpmOstree = inFile("src/host/rpm-ostree/rpm-ostree-host.test.ts", "a machine with rpm-ostree");
const kubeconfig = inFile("src/core/render/kubeconfig-authorities.test.ts");
const leader = inFile("src/kube/leader.test.ts");

export const operatorRules: readonly Section[] = [
  {
    id: "C0",
    title: "Processes of the control plane",
    rows: [
      ours(
        "C0 lease",
        "Leases of 15, 10 and 2 seconds, given back on TERM, with flags for other figures.",
        leader("*"),
      ),
      same(
        "C0 fence",
        "Nothing is rendered before the ControllerConfig is of this very version and its base configurations are complete.",
        fence("*"),
      ),
      better(
        "F12",
        "C0 gates",
        "Kinds that come and go on a server are watched as they do; no process ends for it.",
        inFile(
          "src/kube/watch-cache.test.ts",
          "a watch cache",
        )(
          "of an optional kind is empty while the server does not have it, asks seldom, and has what there is once it does",
        ),
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
        openShift("a broken bundle changes no machine, is told of, and keeps nothing else waiting"),
        operator("installs kinds, rights, settings, pools and components, and says how far it is"),
      ),
      ours(
        "C8.1 order",
        "A new version rolls out its controller, then its settings, then its daemons.",
        operator(
          "a new version rolls out its controller, then its settings, then the daemons, and takes nothing of a release that is not its own",
        ),
      ),
      same(
        "C8.1 images",
        "Images of another version are not touched: machines keep theirs until the operator of that release runs.",
        inFile("src/core/render/release-of.test.ts", "the OS image of a release")("*"),
        operator(
          "a new version rolls out its controller, then its settings, then the daemons, and takes nothing of a release that is not its own",
        ),
        release("whose operator does not run yet moves nothing, and is told of"),
      ),
      same(
        "C8.1 release",
        "A new OS image in machine-config-osimageurl moves every pool and rolls every machine, as an entry like any other, which `mco plan` tells before.",
        release(
          "moves the OS image of every pool and rolls every node, as mco plan said it would, as an entry like any other",
        ),
      ),
      same(
        "C8.1 overridden",
        "A pool with an OS image of its own keeps it; a paused one is rendered and goes on when it is no longer paused.",
        release(
          "reaches a pool that keeps an OS image of its own only once it lets go of it, and a paused one once it goes on",
        ),
      ),
      same(
        "C8.1 MachineConfiguration",
        "Made when it is missing; the policies in force, boot images and skew stand in its status.",
        operator("a policy of the administrator comes into force"),
        settings("*"),
      ),
      same(
        "C8.1 MachineConfigNode",
        "One for each node of a pool; those without a node go.",
        operator("a MachineConfigNode without a node goes"),
        scenario("removes a MachineConfigNode that no machine stands behind"),
      ),
      same(
        "C8.1 pools",
        "The built-in pools are made, and keep their labels; their spec belongs to the administrator.",
        operator("keeps the labels of its pools and leaves their spec alone"),
        scenario("gives its pools their labels back, and leaves their spec to the administrator"),
      ),
      ours(
        "C8.1 idle",
        "Nothing is written while nothing changes.",
        operator("shows its image, one line on each pool, and writes nothing while nothing changes"),
      ),
      ours(
        "C8.1 removal",
        "Whoever removes the suite's namespace removes what the suite made, and the machines run on as they are.",
        install(
          "kubectl delete -k leaves the machines as they are and takes everything of the suite, and it can be installed again",
        ),
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
        beside("nothing is claimed before anybody looked"),
      ),
      same(
        "C8.2 Degraded",
        "A task that fails makes it Degraded with the task and its reason, with an event that is counted, not repeated.",
        operator("is degraded for as long as the base configurations cannot be made, and says why"),
        scenario(
          "is degraded, with the reason, for as long as nobody says what OS machines run; a second time is counted in the event",
        ),
      ),
      same(
        "C8.2 versions",
        "Release and image of the operator, which move together once everything has arrived.",
        beside("release and image move together, and neither before everything has arrived"),
      ),
      same(
        "C8.2 extension",
        "One line on each pool, and what went wrong last.",
        beside("one line on each pool, and the last errors while there are any"),
        operator("shows its image, one line on each pool, and writes nothing while nothing changes"),
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
        required("*"),
      ),
      better(
        "F4",
        "C8.3 others",
        "A pool that somebody added keeps no upgrade waiting.",
        required("are not those that somebody added"),
      ),
      same(
        "C8.3 paused",
        "A required pool that is paused with updates waiting is an error, which says what to do.",
        required("are no matter of time when one is p*"),
      ),
      same(
        "C8.3 image",
        "A pool counts once what it is at was rendered with the release's OS image, unless somebody chose another one.",
        required("have not when they are at what the *", "have when somebody chose their OS i*"),
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
        operator("the level of logs that the settings ask for is the operator's own and its components'"),
        inFile("src/ports/node/json-logger.test.ts")(
          "a level that is asked for every line counts at once, for loggers that were there before as well",
        ),
      ),
      ours(
        "C8.4 boot images",
        "No boot images are managed; who asks for it is told so in a condition.",
        settings("boot images: who asks for *"),
      ),
      same(
        "C8.4 skew",
        "A skew that the administrator states is the one in force, else none is enforced.",
        settings("a skew that the administrator states by hand is the one in force"),
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
        network("the address of the cluster's DNS > in *", "networks *"),
        whereKinds("says what they say", "networks: *"),
      ),
      ours(
        "C10.1 plain",
        "On plain Kubernetes its own objects: the DNS service, whom the API server believes its clients by, the root certificate; defaults for the rest.",
        onPlain("*"),
      ),
      ours(
        "C10.1 waits",
        "Where the server has a kind, an object of it that is missing is waited for; nothing falls back to a default because an answer is missing.",
        whereKinds("waits for *", "does not need the kinds that the server does not have"),
        openShift("nothing is written before every setting is there, and then it is what they say"),
      ),
      ours(
        "C10.1 embedded",
        "Embedded objects are without what changes whenever somebody touches them.",
        whereKinds("is the same when nothing but a resource version moved"),
      ),
      same(
        "C10.1 bring-up",
        "During bring-up kubelets keep what they were installed with, with its signer as it is now; after it they get the cluster's authorities.",
        authorities(
          "during bring-up kubelets keep what they were installed with, with its signer as it is now; after it they get the cluster's",
        ),
      ),
      better(
        "C20",
        "C10.1 signer",
        "A bundle with something else than certificates in it comes to an end.",
        authorities("an initial bundle with something else than certificates in it comes to an end"),
        bundles("is read to its end, whatever else stands in it"),
      ),
      same(
        "C10.1 root",
        "The config server's own authority before the cluster's.",
        authorities("the config server's own comes before the cluster's"),
      ),
      same(
        "C10.1 trust",
        "The user's bundle and the proxy's, which must be PEM.",
        authorities(
          "the user's and the proxy's come together, each in lines of its own, and the same one once",
          "a bundle that *",
        ),
      ),
      ours(
        "C10.1 broken",
        "A value that cannot be read stays what it was, is told of without its contents, and keeps other certificates from nothing.",
        authorities("a bundle that *", "one that is gone after bring-up stays what it was, and somebody is told"),
        openShift("a broken bundle changes no machine, is told of, and keeps nothing else waiting"),
      ),
      better(
        "C21",
        "C10.1 registries",
        "Certificates of registries by file name, and their union for others, which is empty when the last one goes.",
        authorities(
          "registries' are carried by file name, whether they were written as text, base64 or bytes; the last one that goes leaves none",
        ),
        openShift("certificates reach a machine whose pool is paused, without drain, reboot or another configuration"),
      ),
      better(
        "C25",
        "C10.1 inputs",
        "What was read is not changed.",
        authorities("nothing of what was read is changed"),
      ),
      same(
        "C10.1 pull secret",
        "Where there is an internal registry: the puller's credentials and the cluster's, the internal registry's under its public name as well.",
        pullSecret("*"),
        openShift(
          "credentials for the cluster's own registry are merged once there is one, reach the machine as root's alone, and are told to nobody",
        ),
      ),
      same(
        "C10.1 cloud",
        "cloud.conf and its authority, where machines need them.",
        whereKinds(
          "cloud.conf and its authority are carried; where machines need one and it is missing, they keep theirs and somebody is told",
        ),
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
        operator(
          "the API server's authorities are handed on at once the first time, and later once they have stayed the same for a while",
        ),
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
        admission("a pool of one's own builds on the worker pool"),
        operator(
          "a pool that selects otherwise since before there was a policy goes on, as long as its selector stays",
        ),
      ),
      ours(
        "C13 installed",
        "Policies are installed whose kinds and parameters are there: one without them would only stand in the way.",
        operator("on plain Kubernetes installs the policies whose kinds are there, and the NetworkPolicies"),
      ),
      ours(
        "C13 stream",
        "A pool names a stream that there is; the policy is there once the streams are.",
        admission("a pool names a stream that there is"),
      ),
      same(
        "C13 MachineConfiguration",
        "There is one, and boot images are managed only on platforms that can.",
        admission("there is one MachineConfiguration, and boot images are managed only where they can be"),
      ),
      same(
        "C13 deletions",
        "Streams stay; a bundle of releases stays while the cluster runs one of them.",
        admission("streams stay, and a bundle of releases stays while the cluster runs one of them"),
      ),
      ours(
        "C13 NetworkPolicies",
        "Five of them, which only the operator changes and nobody deletes, but their namespace can go.",
        admission("the suite's NetworkPolicies are the operator's; others in its namespace are anybody's"),
        install(
          "kubectl delete -k leaves the machines as they are and takes everything of the suite, and it can be installed again",
        ),
      ),
      ours(
        "C13 taken over",
        "What the reference's operator made under these names is taken over from it; what anybody else holds is left, and told of.",
        operator("a policy of its name that *"),
      ),
      same(
        "C13 own node",
        "A daemon writes about its own machine and no other, and nothing but annotations of its node.",
        admission("a daemon's token writes about its own machine and about no other"),
        operator("a daemon writes about its own machine and about no other, and nothing but annotations of its node"),
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
        openShift("certificates reach a machine whose pool is paused, without drain, reboot or another configuration"),
        writer(
          "a machine has the cluster's authorities soon after they change, each file is written when it differs and at no other time",
        ),
      ),
      ours(
        "12.1 level",
        "What is on the disk is compared, not what was seen before: no annotations are kept for it, and what somebody changed is put right.",
        writer("what somebody changes on the disk is put right at the next look, mode and owner left as they are"),
      ),
      ours(
        "12.1 crash",
        "A writer that fails anywhere gets there all the same, and forgets nothing that it wrote.",
        writer("a writer that fails at any effect gets there all the same, and forgets nothing that it wrote"),
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
        machineFiles("has the reference's paths, a line feed at its end, and modes that credentials deserve"),
        writer("what somebody changes on the disk is put right at the next look, mode and owner left as they are"),
      ),
      better(
        "W13",
        "12.2 credentials",
        "The merged pull secret is root's alone.",
        machineFiles("has the reference's paths, a line feed at its end, and modes that credentials deserve"),
        openShift(
          "credentials for the cluster's own registry are merged once there is one, reach the machine as root's alone, and are told to nobody",
        ),
      ),
      better(
        "W15",
        "12.2 registries",
        "Only what the writer put there is taken away; what others put there stays, and what a MachineConfig names is as that says.",
        writer(
          "a registry's certificate goes when the cluster has it no longer; those that others put there stay, a MachineConfig's as it says",
        ),
      ),
      ours(
        "12.2 unreadable",
        "What is no certificate is not written: a kubelet that believes nobody is worse than one that believes an old authority.",
        writer("what cannot be read leaves the machine with what it has"),
        machineFiles("a kubelet's authorities that are none*", "credentials that are no JSON*"),
      ),
      ours(
        "12.2 names",
        "A registry's name cannot lead out of its folder.",
        machineFiles("no file outside of its folder comes*"),
      ),
      same(
        "12.2 drift",
        "No plan writes, compares or takes away what is the writer's.",
        writer(
          "no plan writes, compares or takes away what is the writer's: a configuration is as old there as it is itself",
        ),
      ),
      same(
        "12.3 kubeconfig",
        "A kubeconfig gets the API server's new authorities, and everything else in it stays; the kubelet is started again once for it.",
        kubeconfig("*"),
        writer(
          "a kubelet believes new authorities of the API server, and is started again once for it, also when the daemon dies in between",
        ),
        openShift("the API server's authorities reach a machine's kubeconfig"),
      ),
      skip(
        "12.3 deferred",
        "The kubelet is started again at once, whichever signer is new.",
        "pods do not notice it, and a restart that is put off has to be remembered by somebody",
      ),
      same(
        "12.4",
        "Pulls of OS images use the merged secret where it is valid JSON.",
        rpmOstree(
          "lets pulls use the merged pull secret when that is one, else the kubelet's, and the proxy without showing its password",
        ),
      ),
    ],
  },
];
