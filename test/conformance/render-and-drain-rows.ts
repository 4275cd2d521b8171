import { type Section, better, tests, ours, same, skip } from "./define-rows.ts";

const configs =
  "the controllers that make MachineConfigs from KubeletConfigs and ContainerRuntimeConfigs come with a later part of the suite; until then there is nothing to wait for";
const streams = "OS image streams are a later part of the suite";

/**
 * Rendering, drains, bootstrap and the retention of rendered configurations, numbered as in this suite's description of
 * the control plane, with the prefix C. Source of what the reference does: openshift/machine-config-operator
 * pkg/controller/{render,drain,bootstrap}, pkg/operator/bootstrap.go, pkg/upgrademonitor (main); openshift/oc
 * pkg/cli/admin/prune/renderedmachineconfigs (main).
 */
export const renderAndDrain: readonly Section[] = [
  {
    id: "C1.1",
    title: "Rendering: what makes a pool render",
    rows: [
      same(
        "C1.1 pool",
        "A pool that comes, or whose spec changes, is rendered.",
        tests("controllers-2", "controllers-4"),
      ),
      ours(
        "C1.1 delay",
        "Nothing waits five seconds: a MachineConfig reaches the first machine within one.",
        tests("controllers-5"),
      ),
      same(
        "C1.1 MachineConfig",
        "Members that come, change or go render every pool that selects them, or did; labels and annotations that are not merged do not.",
        tests("controllers-6"),
      ),
      ours(
        "C1.1 ControllerConfig",
        "The ControllerConfig is watched: what waited for it goes on when it is complete, and not at the next retry.",
        tests("controllers-7", "controllers-8"),
      ),
      ours(
        "C1.1 overrides",
        "So are the administrator's overrides, without blocking a worker.",
        tests("controllers-1"),
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
        tests("controllers-4"),
      ),
      better(
        "S1",
        "C1.2 2",
        "Nothing is rendered before the ControllerConfig is this version's and complete; the pool says what it waits for in RenderDegraded=False, and in what it says of itself.",
        tests("controllers-7", "controllers-8"),
        tests("render-controller-config-of-7", "render-controller-config-of-8"),
      ),
      skip("C1.2 3", "A pool does not wait for KubeletConfigs and ContainerRuntimeConfigs.", configs),
      same(
        "C1.2 4",
        "Members are sorted by rule; a pool without any is refused.",
        tests("render-pool-1", "render-pool-3", "render-pool-6"),
      ),
      skip("C1.2 5", "The OS image is the member's or the cluster's.", streams),
      same(
        "C1.2 6",
        "What running machines could not follow is refused, with the member to blame.",
        tests("controllers-1"),
        tests(
          "render-for-pool-1",
          "render-for-pool-2",
          "render-for-pool-3",
          "render-for-pool-4",
          "render-for-pool-5",
          "render-for-pool-6",
        ),
      ),
      same("C1.2 7", "A config that is larger than the store takes is refused.", tests("render-pool-1")),
      same(
        "C1.2 9",
        "A rendered config that is new is stored, and told as an event on its pool.",
        tests("controllers-2"),
      ),
      same(
        "C1.2 10",
        "The pool names the config and what it was made from; one that came without its owner gets it.",
        tests("controllers-2"),
        tests("cli-bootstrap-1"),
      ),
      same(
        "C1.2 11",
        "A failure is RenderDegraded with member, field and reason, of this pool alone, until it is mended; a server that is away or busy is none.",
        tests("controllers-9"),
        tests("kube-controller-1"),
      ),
      same("C1.2 source", "The sources are named in merge order.", tests("controllers-2")),
      better(
        "S16",
        "C1.2 changes",
        "What is different in the new config, and which member brought it, is an event on the pool, without contents.",
        tests("preview-describe-rendered-1", "preview-describe-rendered-2"),
        tests("controllers-8"),
      ),
    ],
  },
  {
    id: "C1.8",
    title: "Rendering: the rendered object",
    rows: [
      same("C1.8 name", "Name and bytes are the reference's.", tests("vectors-2", "vectors-3", "vectors-1")),
      same(
        "C1.8 annotations",
        "It names its generator and its release, and belongs to its pool.",
        tests("cli-bootstrap-2", "cli-bootstrap-1"),
      ),
      same("C1.8 generator", "A generated member of another generator holds the pool back.", tests("render-pool-1")),
    ],
  },
  {
    id: "C1.9",
    title: "Rendering: what running machines can follow",
    rows: [
      same("C1.9 passwd", "Groups and other accounts than core cannot change.", tests("render-for-pool-1")),
      same("C1.9 arguments", "Ignition's kernel arguments cannot change.", tests("render-for-pool-1")),
      same(
        "C1.9 storage",
        "Disks, folders and links cannot change; the administrator may allow disks, file systems and RAID.",
        tests("render-for-pool-1", "render-for-pool-5"),
      ),
      same("C1.9 files", "Files that are appended to and the force file are refused.", tests("render-for-pool-1")),
      same("C1.9 fips", "FIPS cannot change.", tests("render-for-pool-1")),
      ours(
        "C1.9 blame",
        "Whoever really brought the change is named, not the first member that has the section; what a deleted member takes away blames nobody.",
        tests("render-for-pool-1", "render-for-pool-4", "render-for-pool-3"),
      ),
    ],
  },
  {
    id: "C4",
    title: "Drains",
    rows: [
      same("C4 1", "A request that is carried out rests.", tests("pool-plan-drain-1")),
      same(
        "C4 2",
        "An uncordon puts the machine back and is confirmed in the MachineConfigNode; a cordon of somebody else stays.",
        tests("drain-controller-1", "drain-controller-2"),
      ),
      same("C4 3 cordon", "The node is cordoned first; then its pods are evicted.", tests("drain-controller-1")),
      better("C13", "C4 3 failed cordon", "A cordon that fails is tried again.", tests("drain-controller-3")),
      ours(
        "C4 3 forecast",
        "Before the cordon the server is asked, without doing it, which pods would go: what will be refused, by which budget, and whether that budget could ever allow it; what nobody makes again; what finalizers may hold.",
        tests("drain-controller-4", "drain-controller-5"),
        tests("pool-plan-drain-2", "pool-plan-drain-3"),
        tests("scenario-roll-out-1"),
      ),
      same("C4 3 pods", "All pods go but those of DaemonSets, mirror pods and ended ones.", tests("pool-plan-drain-4")),
      better(
        "F7",
        "C4 3 events",
        "A drain goes on when a pod leaves or a budget changes, and after five seconds in any case.",
        tests("drain-controller-6", "drain-controller-7"),
      ),
      ours(
        "C4 workers",
        "Every drain has a worker of its own: none waits behind another.",
        tests("drain-controller-8"),
      ),
      better(
        "S5",
        "C4 3 says",
        "How far the drain is, what blocks it and by which budget, what does not get away and why, stands in the MachineConfigNode and on the pool.",
        tests("drain-controller-7", "drain-controller-6", "drain-controller-9"),
        tests(
          "pool-plan-drain-5",
          "pool-plan-drain-6",
          "pool-plan-drain-7",
          "pool-plan-drain-8",
          "pool-plan-drain-2",
          "pool-plan-drain-3",
        ),
        tests("scenario-roll-out-2"),
      ),
      ours(
        "C4 3 late",
        "After the pool's deadline it says so once; without a deadline it takes as long as it takes. Nothing is forced that nobody asked for.",
        tests("drain-controller-10"),
        tests("pool-plan-drain-9", "pool-plan-drain-10", "pool-plan-drain-11"),
        tests("pool-policy-1", "pool-policy-2", "pool-policy-3", "pool-policy-4", "pool-policy-5"),
      ),
      ours(
        "C4 skip",
        "A pool may have a drain given up after its deadline: the node serves again, its place goes to another, and its turn comes again.",
        tests("drain-controller-11", "drain-controller-12", "drain-controller-13"),
        tests("node-controller-1"),
      ),
      ours(
        "C4 force",
        "A pool may have pods deleted after its deadline, if all that protects them is named; each is told.",
        tests("drain-controller-14"),
        tests("pool-plan-drain-11"),
        tests("scenario-roll-out-1"),
      ),
      better(
        "C14",
        "C4 state",
        "When a drain began stands on the node: the next leader counts on, and tells nothing twice.",
        tests("drain-controller-15"),
      ),
      better(
        "C15",
        "C4 again",
        "A drained node that somebody puts back is drained again before its daemon goes on, also in the last moment before a reboot.",
        tests("drain-controller-16"),
        tests("daemon-update-24"),
      ),
      ours(
        "C4 watches",
        "Pods are watched node by node while one drains, budgets while one of them blocks: nothing holds all pods of a cluster.",
        tests("drain-controller-17"),
        tests("pool-plan-drain-12"),
      ),
      same("C4 4", "Another verb is an error.", tests("drain-controller-18"), tests("pool-plan-drain-1")),
      same(
        "C4 5",
        "What was asked for is confirmed, unless the node was put back meanwhile.",
        tests("drain-controller-1"),
      ),
      ours(
        "C4 daemon",
        "The daemon waits for its request as long as it takes, and looks whether it is still wanted; nothing is polled.",
        tests("daemon-update-12"),
      ),
    ],
  },
  {
    id: "C5",
    title: "What MachineConfigNodes say of phases",
    rows: [
      same("C5 types", "All conditions are there from the first report on.", tests("books-update-conditions-1")),
      ours(
        "C5 parents",
        "A parent follows from its children, and none is lost because its parent did not change.",
        tests("books-update-conditions-2", "books-update-conditions-3"),
      ),
      ours(
        "C5 updated",
        "A new run puts Updated and all phases back, the end leaves the last run readable.",
        tests("books-update-conditions-4"),
      ),
      ours(
        "C5 writes",
        "Several writers share the list: each changes its own conditions, on condition that nobody wrote in between.",
        tests("books-update-conditions-5", "books-update-conditions-6"),
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
        tests("cli-bootstrap-3"),
      ),
      ours(
        "C9 operator refuses",
        "What is missing or cannot be read is told with its remedy, and nothing is written.",
        tests("cli-bootstrap-4"),
      ),
      same(
        "C9 1",
        "Every manifest of the folder is read; kinds that play no part are passed over.",
        tests("cli-bootstrap-2"),
      ),
      better(
        "C29",
        "C9 2",
        "A built-in pool gives way to the administrator's; the order of files makes no difference.",
        tests("cli-bootstrap-5"),
      ),
      skip("C9 3", "The OS image is the ControllerConfig's.", streams),
      ours(
        "C9 5",
        "Generated are what the cluster generates: the base configurations, by the same function; they are not written, as the cluster makes them again.",
        tests("cli-bootstrap-2", "cli-bootstrap-6"),
      ),
      same(
        "C9 6",
        "Each pool has target and status; its rendered config and the ControllerConfig lie beside it, as the cluster renders them.",
        tests("cli-bootstrap-2"),
      ),
      same("C9 cluster", "A cluster that begins with the output renders nothing anew.", tests("cli-bootstrap-1")),
      ours(
        "C9 refuses",
        "What is wrong is told at once, with file, field, reason and remedy, and nothing is written.",
        tests("cli-bootstrap-7", "cli-bootstrap-8", "cli-bootstrap-9"),
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
        tests("collect-controller-1"),
        tests(
          "pool-retained-configs-1",
          "pool-retained-configs-2",
          "pool-retained-configs-3",
          "pool-retained-configs-4",
          "pool-retained-configs-5",
          "pool-retained-configs-6",
        ),
        tests("scenario-roll-out-3"),
      ),
      ours(
        "C14 used",
        "What pools, nodes, MachineConfigNodes, refused and quarantined targets or builds name stays.",
        tests("pool-retained-configs-7"),
        tests("collect-controller-2"),
      ),
      ours(
        "C14 kept",
        "The last few that a pool has had stay for going back; how many, the pool says.",
        tests("pool-retained-configs-1", "pool-retained-configs-3"),
        tests("pool-policy-1", "pool-policy-2", "pool-policy-3", "pool-policy-4", "pool-policy-5"),
      ),
      ours(
        "C14 deletion",
        "One in use cannot be deleted; the answer names its users and the remedy.",
        tests(
          "controller-admission-handler-1",
          "controller-admission-handler-2",
          "controller-admission-handler-3",
          "controller-admission-handler-4",
        ),
        tests("scenario-roll-out-3"),
      ),
      ours(
        "C14 again",
        "One that is gone all the same is made again, the same.",
        tests("collect-controller-3", "collect-controller-4"),
        tests("controllers-10"),
        tests("pool-retained-configs-8"),
      ),
      ours("C14 pool", "Those of a pool that is gone go with their last machine.", tests("collect-controller-5")),
    ],
  },
];
