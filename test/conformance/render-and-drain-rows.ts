import { type Section, better, inFile, ours, same, skip } from "./row-kit.ts";

const rendering = inFile("src/controller/controllers.test.ts", "base configurations and rendering");
const rollOut = inFile("src/controller/controllers.test.ts", "roll-out");
const drains = inFile("src/controller/drain-controller.test.ts", "drain");
const plansDrains = inFile("src/core/pool/plan-drain.test.ts");
const collects = inFile("src/controller/collect-controller.test.ts", "rendered configs");
const retains = inFile("src/core/pool/retained-configs.test.ts");
const admits = inFile("src/controller/admission-handler.test.ts");
const rendersPool = inFile("src/core/render/render-pool.test.ts", "renderPool");
const renders = inFile("src/core/render/render-for-pool.test.ts", "renderForPool");
const fence = inFile("src/core/render/controller-config-of.test.ts", "the fence before rendering");
const describes = inFile("src/core/preview/describe-rendered.test.ts");
const phases = inFile("src/core/books/update-conditions.test.ts", "withPhases");
const bootstraps = inFile("src/cli/bootstrap.test.ts", "mco controller bootstrap");
const begins = inFile("src/cli/bootstrap.test.ts", "mco operator bootstrap");
const policies = inFile("src/core/pool/pool-policy.test.ts");
const controllers = inFile("src/kube/controller.test.ts");
const vectors = inFile("test/vectors/vectors.test.ts", "the answers of the reference");
const nodes = inFile("src/controller/node-controller.test.ts");
const daemon = inFile("src/daemon/update.test.ts", "an update");
const rolledOut = inFile("test/scenario/roll-out.test.ts", "a cluster of real processes");

const configs =
  "the controllers that make MachineConfigs from KubeletConfigs and ContainerRuntimeConfigs come with a later part of the suite; until then there is nothing to wait for";
const streams = "OS image streams are a later part of the suite";

/**
 * Rendering, drains, bootstrap and what becomes of rendered configurations, in the numbering of the control plane's
 * behaviour as it was written down for this suite, with a C before it.
 *
 * Source of what the reference does: openshift/machine-config-operator pkg/controller/{render,drain,bootstrap},
 * pkg/operator/bootstrap.go, pkg/upgrademonitor (main); openshift/oc pkg/cli/admin/prune/renderedmachineconfigs (main).
 */
export const renderAndDrain: readonly Section[] = [
  {
    id: "C1.1",
    title: "Rendering: what makes a pool render",
    rows: [
      same(
        "C1.1 pool",
        "A pool that comes, or whose spec changes, is rendered.",
        rendering(
          "the ControllerConfig becomes base configurations, and pools are rendered once these are complete",
          "a pool whose selector would take every MachineConfig is not rendered, and says so",
        ),
      ),
      ours(
        "C1.1 delay",
        "Nothing waits five seconds: a MachineConfig reaches the first machine within one.",
        rollOut("a written MachineConfig reaches the first machine within a second"),
      ),
      same(
        "C1.1 MachineConfig",
        "Members that come, change or go render every pool that selects them, or did; labels and annotations that are not merged do not.",
        rendering(
          "members that come, change, go or are relabelled render their pools anew; what is not merged does not",
        ),
      ),
      ours(
        "C1.1 ControllerConfig",
        "The ControllerConfig is watched: what waited for it goes on when it is complete, and not at the next retry.",
        rendering(
          "nothing is rendered from a ControllerConfig of another version",
          "a pool that renders anew says what is different and who brought it; one that waits says so, and keeps its target",
        ),
      ),
      ours(
        "C1.1 overrides",
        "So are the administrator's overrides, without blocking a worker.",
        rendering(
          "what running machines could not follow degrades the pool with the member's name, until the administrator allows it",
        ),
      ),
      skip("C1.1 stream", "A pool follows no OS image stream yet.", streams),
    ],
  },
  {
    id: "C1.2",
    title: "Rendering: one pool",
    rows: [
      same(
        "C1.2 1",
        "A pool whose selector is empty is not rendered: event SelectingAll; the pool says it too.",
        rendering("a pool whose selector would take every MachineConfig is not rendered, and says so"),
      ),
      better(
        "S1",
        "C1.2 2",
        "Nothing is rendered before the ControllerConfig is this version's and complete; the pool says what it waits for in RenderDegraded=False, and in what it says of itself.",
        rendering(
          "nothing is rendered from a ControllerConfig of another version",
          "a pool that renders anew says what is different and who brought it; one that waits says so, and keeps its target",
        ),
        fence("*"),
      ),
      skip("C1.2 3", "A pool does not wait for KubeletConfigs and ContainerRuntimeConfigs.", configs),
      same(
        "C1.2 4",
        "Members are sorted by rule; a pool without any is refused.",
        rendersPool(
          "no member is refused",
          "worker's members come first, then the others, each by the bytes of their names",
          "the order in which members come in makes no difference",
        ),
      ),
      skip("C1.2 5", "The OS image is the member's or the cluster's.", streams),
      same(
        "C1.2 6",
        "What running machines could not follow is refused, with the member to blame.",
        rendering(
          "what running machines could not follow degrades the pool with the member's name, until the administrator allows it",
        ),
        renders("*"),
      ),
      same(
        "C1.2 7",
        "A config that is larger than the store takes is refused.",
        rendersPool("more than the store takes is refused"),
      ),
      same(
        "C1.2 9",
        "A rendered config that is new is stored, and told as an event on its pool.",
        rendering("the ControllerConfig becomes base configurations, and pools are rendered once these are complete"),
      ),
      same(
        "C1.2 10",
        "The pool names the config and what it was made from; one that came without its owner gets it.",
        rendering("the ControllerConfig becomes base configurations, and pools are rendered once these are complete"),
        bootstraps("a cluster that begins with the output renders nothing anew, takes it over, and goes on from there"),
      ),
      same(
        "C1.2 11",
        "A failure is RenderDegraded with member, field and reason, of this pool alone, until it is mended; a server that is away or busy is none.",
        rendering(
          "a member that cannot be rendered degrades its pool only, with field and reason, until it is repaired",
        ),
        controllers(
          "while the server cannot be reached, no object is called degraded",
          "while the server is busy, no object is called degraded",
        ),
      ),
      same(
        "C1.2 source",
        "The sources are named in merge order.",
        rendering("the ControllerConfig becomes base configurations, and pools are rendered once these are complete"),
      ),
      better(
        "S16",
        "C1.2 changes",
        "What is different in the new config, and which member brought it, is an event on the pool, without contents.",
        describes("*"),
        rendering(
          "a pool that renders anew says what is different and who brought it; one that waits says so, and keeps its target",
        ),
      ),
    ],
  },
  {
    id: "C1.8",
    title: "Rendering: the rendered object",
    rows: [
      same("C1.8 name", "Name and bytes are the reference's.", vectors("*")),
      same(
        "C1.8 annotations",
        "It names its generator and its release, and belongs to its pool.",
        bootstraps(
          "writes what a cluster of the same manifests renders: names, specs and annotations",
          "a cluster that begins with the output renders nothing anew, takes it over, and goes on from there",
        ),
      ),
      same(
        "C1.8 generator",
        "A generated member of another generator holds the pool back.",
        rendersPool("a member of an older generator is refused"),
      ),
    ],
  },
  {
    id: "C1.9",
    title: "Rendering: what running machines can follow",
    rows: [
      same(
        "C1.9 passwd",
        "Groups and other accounts than core cannot change.",
        renders(
          "a group is refused where machines run, and the member is named",
          "another user is refused where machines run, and the member is named",
        ),
      ),
      same(
        "C1.9 arguments",
        "Ignition's kernel arguments cannot change.",
        renders("Ignition's kernel arguments is refused where machines run, and the member is named"),
      ),
      same(
        "C1.9 storage",
        "Disks, folders and links cannot change; the administrator may allow disks, file systems and RAID.",
        renders(
          "a disk is refused where machines run, and the member is named",
          "a folder is refused where machines run, and the member is named",
          "a link is refused where machines run, and the member is named",
          "an administrator may allow changes of storage",
        ),
      ),
      same(
        "C1.9 files",
        "Files that are appended to and the force file are refused.",
        renders(
          "a file that is appended to is refused where machines run, and the member is named",
          "the force file is refused where machines run, and the member is named",
        ),
      ),
      same(
        "C1.9 fips",
        "FIPS cannot change.",
        renders("FIPS mode is refused where machines run, and the member is named"),
      ),
      ours(
        "C1.9 blame",
        "Whoever really brought the change is named, not the first member that has the section; what a deleted member takes away blames nobody.",
        renders(
          "a disk is refused where machines run, and the member is named",
          "taking a disk away is refused too, though no member is to blame",
          "what the pool has already is no reason to refuse a change beside it",
        ),
      ),
    ],
  },
  {
    id: "C4",
    title: "Drains",
    rows: [
      same(
        "C4 1",
        "A request that is carried out rests.",
        plansDrains(
          "drainStep > a request that is carried out rests",
          "drainStep > an uncordon that is carried out rests*",
        ),
      ),
      same(
        "C4 2",
        "An uncordon puts the machine back and is confirmed in the MachineConfigNode; a cordon of somebody else stays.",
        drains(
          "a node is cordoned, emptied, reported, and put back",
          "a cordon of an administrator stays when ours is not needed",
        ),
      ),
      same(
        "C4 3 cordon",
        "The node is cordoned first; then its pods are evicted.",
        drains("a node is cordoned, emptied, reported, and put back"),
      ),
      better(
        "C13",
        "C4 3 failed cordon",
        "A cordon that fails is tried again.",
        drains("a cordon that fails is tried again, and nothing is evicted before it stands"),
      ),
      ours(
        "C4 3 forecast",
        "Before the cordon the server is asked, without doing it, which pods would go: what will be refused, by which budget, and whether that budget could ever allow it; what nobody makes again; what finalizers may hold.",
        drains(
          "before the first cordon it is asked which pods would go, and told what will hold the drain",
          "a drain that meets nothing worth telling has no forecast",
        ),
        plansDrains(
          "what a drain says of itself > the forecast names what would be refused, what is lost, and what may be held",
          "what a drain says of itself > a budget that can never allow a disruption*",
        ),
        rolledOut(
          "a pool whose policy says so deletes what its budget keeps, after the deadline and not before; both are told",
        ),
      ),
      same(
        "C4 3 pods",
        "All pods go but those of DaemonSets, mirror pods and ended ones.",
        plansDrains(
          "planDrain > evicts all but pods of DaemonSets, mirror pods and ended ones, and waits for those that leave",
        ),
      ),
      better(
        "F7",
        "C4 3 events",
        "A drain goes on when a pod leaves or a budget changes, and after five seconds in any case.",
        drains(
          "a pod that leaves lets the drain go on at once, and progress is counted",
          "a budget holds a drain back; the reason is told, and lifting it lets the drain go on at once",
        ),
      ),
      ours(
        "C4 workers",
        "Every drain has a worker of its own: none waits behind another.",
        drains(
          "no drain waits behind another: of fifty, with 30 that a slow server holds and 19 that budgets hold, the last ends at once",
        ),
      ),
      better(
        "S5",
        "C4 3 says",
        "How far the drain is, what blocks it and by which budget, what does not get away and why, stands in the MachineConfigNode and on the pool.",
        drains(
          "a budget holds a drain back; the reason is told, and lifting it lets the drain go on at once",
          "a pod that leaves lets the drain go on at once, and progress is counted",
          "a pod that is held by its finalizers is named with them once its time is over",
        ),
        plansDrains("what a drain says of itself > *"),
        rolledOut("a disruption budget that forbids eviction holds the update, says so, and lets go when it is lifted"),
      ),
      ours(
        "C4 3 late",
        "After the pool's deadline it says so once; without a deadline it takes as long as it takes. Nothing is forced that nobody asked for.",
        drains("after the pool's deadline the drain says so, and still forces nothing"),
        plansDrains("judgeDrain > *"),
        policies("poolPolicy > *"),
      ),
      ours(
        "C4 skip",
        "A pool may have a drain given up after its deadline: the node serves again, its place goes to another, and its turn comes again.",
        drains(
          "a policy of skipping puts the node back into service, says so on it, and leaves the request unconfirmed",
          "a node whose drain is skipped gives its place to the next one, and is tried again after its pause",
          "a cordon of somebody else outlives a skipped drain",
        ),
        nodes(
          "who gets the target > a machine whose drain was given up gives its place to another, and is offered its target again when its time comes",
        ),
      ),
      ours(
        "C4 force",
        "A pool may have pods deleted after its deadline, if all that protects them is named; each is told.",
        drains("a policy of force deletes what it names, and nothing else; each pod is told"),
        plansDrains("judgeDrain > a pod is forced only if everything that protects it is named"),
        rolledOut(
          "a pool whose policy says so deletes what its budget keeps, after the deadline and not before; both are told",
        ),
      ),
      better(
        "C14",
        "C4 state",
        "When a drain began stands on the node: the next leader counts on, and tells nothing twice.",
        drains("the deadline counts on when another process takes over in the middle of a drain"),
      ),
      better(
        "C15",
        "C4 again",
        "A drained node that somebody puts back is drained again before its daemon goes on, also in the last moment before a reboot.",
        drains("a drained node that somebody puts back is drained again before its daemon may go on"),
        daemon("drains anew when somebody puts the machine back into service between its drain and its reboot: *"),
      ),
      ours(
        "C4 watches",
        "Pods are watched node by node while one drains, budgets while one of them blocks: nothing holds all pods of a cluster.",
        drains(
          "pods are watched node by node and budgets while one of them blocks: nothing reads all pods of a cluster",
        ),
        plansDrains("what is kept of pods and budgets is what decisions need"),
      ),
      same(
        "C4 4",
        "Another verb is an error.",
        drains("what is no drain request is left alone, and said"),
        plansDrains("drainStep > other verbs are refused"),
      ),
      same(
        "C4 5",
        "What was asked for is confirmed, unless the node was put back meanwhile.",
        drains("a node is cordoned, emptied, reported, and put back"),
      ),
      ours(
        "C4 daemon",
        "The daemon waits for its request as long as it takes, and looks whether it is still wanted; nothing is polled.",
        daemon(
          "whose target moves while it waits for a drain goes to the newer one; back to the old one, it is put back into service untouched",
        ),
      ),
    ],
  },
  {
    id: "C5",
    title: "What MachineConfigNodes say of phases",
    rows: [
      same(
        "C5 types",
        "All conditions are there from the first report on.",
        phases("creates every condition at once, and changes nothing when nothing is new"),
      ),
      ours(
        "C5 parents",
        "A parent follows from its children, and none is lost because its parent did not change.",
        phases("a parent follows from its children", "a child that is not required does not keep its parent back"),
      ),
      ours(
        "C5 updated",
        "A new run puts Updated and all phases back, the end leaves the last run readable.",
        phases("a new run puts every phase ahead again, and the end leaves the last run readable"),
      ),
      ours(
        "C5 writes",
        "Several writers share the list: each changes its own conditions, on condition that nobody wrote in between.",
        phases("conditions of others stay", "the time of a transition moves only with the status"),
      ),
    ],
  },
  {
    id: "C9",
    title: "Bootstrap",
    rows: [
      same(
        "C9 operator",
        "The operator writes ControllerConfig, pools and pull secret from what an installer has; it is the function that the cluster uses.",
        begins("makes ControllerConfig, pools and pull secret, from which the controller renders"),
      ),
      ours(
        "C9 operator refuses",
        "What is missing or cannot be read is told with its remedy, and nothing is written.",
        begins("is refused, and nothing is written*"),
      ),
      same(
        "C9 1",
        "Every manifest of the folder is read; kinds that play no part are passed over.",
        bootstraps("writes what a cluster of the same manifests renders: names, specs and annotations"),
      ),
      better(
        "C29",
        "C9 2",
        "A built-in pool gives way to the administrator's; the order of files makes no difference.",
        bootstraps(
          "the order of files makes no difference, nor does a manifest that comes twice or a built-in pool beside the administrator's",
        ),
      ),
      skip("C9 3", "The OS image is the ControllerConfig's.", streams),
      ours(
        "C9 5",
        "Generated are what the cluster generates: the base configurations, by the same function; they are not written, as the cluster makes them again.",
        bootstraps(
          "writes what a cluster of the same manifests renders: names, specs and annotations",
          "pools that every cluster has are rendered though the folder does not name them",
        ),
      ),
      same(
        "C9 6",
        "Each pool has target and status; its rendered config and the ControllerConfig lie beside it, as the cluster renders them.",
        bootstraps("writes what a cluster of the same manifests renders: names, specs and annotations"),
      ),
      same(
        "C9 cluster",
        "A cluster that begins with the output renders nothing anew.",
        bootstraps("a cluster that begins with the output renders nothing anew, takes it over, and goes on from there"),
      ),
      ours(
        "C9 refuses",
        "What is wrong is told at once, with file, field, reason and remedy, and nothing is written.",
        bootstraps(
          "is refused with place, field, reason and remedy, and nothing is written*",
          "every problem is told at once, also of files that are no YAML; --json gives them as data",
          "folders that are not named are a matter of usage",
        ),
      ),
    ],
  },
  {
    id: "C14",
    title: "What becomes of rendered configurations",
    rows: [
      better(
        "F8",
        "C14 removed",
        "Those that nothing uses are removed after a quiet time, oldest first.",
        collects("of which nothing is left go after the quiet time, but for the last ones that the pool has had"),
        retains("retainedConfigs > *"),
        rolledOut("a rendered config that is in use cannot be deleted, and the others go where the pool says so"),
      ),
      ours(
        "C14 used",
        "What pools, nodes, MachineConfigNodes, refused and quarantined targets or builds name stays.",
        retains("who uses a rendered config > pools, nodes, MachineConfigNodes and builds name theirs"),
        collects("of a machine that is behind, or has yet to go back, stay as long as it names them"),
      ),
      ours(
        "C14 kept",
        "The last few that a pool has had stay for going back; how many, the pool says.",
        retains(
          "retainedConfigs > what is used stays, the last few stay, the rest goes, oldest first",
          "retainedConfigs > what was rolled out is kept before what never was",
        ),
        policies("poolPolicy > *"),
      ),
      ours(
        "C14 deletion",
        "One in use cannot be deleted; the answer names its users and the remedy.",
        admits("deletion of MachineConfigs > *"),
        rolledOut("a rendered config that is in use cannot be deleted, and the others go where the pool says so"),
      ),
      ours(
        "C14 again",
        "One that is gone all the same is made again, the same.",
        collects(
          "that are deleted while something uses them come back the same: the target by its members, others as they were",
          "that are deleted and not used stay away",
        ),
        rendering("a rendered config that was deleted while a pool needs it is made again"),
        retains("one that is made again is the same, but for what the API server gave the one that is gone"),
      ),
      ours(
        "C14 pool",
        "Those of a pool that is gone go with their last machine.",
        collects("of a pool that is gone go when no machine has them any more"),
      ),
    ],
  },
];
