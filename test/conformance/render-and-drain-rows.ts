import { type Section, better, tests, ours, same, skip } from "./define-rows.ts";

/**
 * Rendering, drains, bootstrap and the retention of rendered configurations, numbered as in this suite's description of
 * the control plane, with the prefix C. Source of what the reference does: openshift/machine-config-operator
 * pkg/controller/{render,drain,bootstrap}, pkg/operator/bootstrap.go, pkg/upgrademonitor (main); openshift/oc
 * pkg/cli/admin/prune/renderedmachineconfigs (main).
 */
export const renderAndDrain: readonly Section[] = [
  {
    id: "C1.1",
    title: "Rendering: triggers",
    rows: [
      same("C1.1 pool", "A new pool, or one whose spec changes, is rendered.", tests("controllers-2", "controllers-4")),
      ours(
        "C1.1 delay",
        "There is no delay of five seconds: a MachineConfig reaches the first machine within one.",
        tests("controllers-5"),
      ),
      same(
        "C1.1 MachineConfig",
        "A member that is added, changed or removed renders every pool that selects or selected it; changes of other metadata do not.",
        tests("controllers-6"),
      ),
      ours(
        "C1.1 ControllerConfig",
        "The ControllerConfig is watched: pools that wait for it continue as soon as it is complete, not at the next retry.",
        tests("controllers-7", "controllers-8"),
      ),
      ours(
        "C1.1 overrides",
        "The administrator's overrides are watched too, without blocking a worker.",
        tests("controllers-1"),
      ),
      ours(
        "C1.1 stream",
        "A change of the streams wakes every pool, and one of the worker pool's stream every pool that follows it.",
        tests("os-image-streams-6", "os-image-streams-7"),
      ),
    ],
  },
  {
    id: "C1.2",
    title: "Rendering: one pool",
    rows: [
      same(
        "C1.2 1",
        "A pool with an empty selector is not rendered: the event SelectingAll and the pool's status report it.",
        tests("controllers-4"),
      ),
      better(
        "S1",
        "C1.2 2",
        "Rendering waits for a complete ControllerConfig of this version; RenderDegraded=False and the pool's message name what is missing.",
        tests("controllers-7", "controllers-8"),
        tests("render-controller-config-of-7", "render-controller-config-of-8"),
      ),
      ours(
        "C1.2 3",
        "A pool waits, ten seconds at most, for a KubeletConfig or ContainerRuntimeConfig that was just written, and is rendered once; a refused one holds no pool up.",
        tests("controllers-17", "controllers-18"),
      ),
      same(
        "C1.2 4",
        "Members have a fixed order; a pool without members is refused.",
        tests("render-pool-1", "render-pool-3", "render-pool-6"),
      ),
      same(
        "C1.2 5",
        "The OS images are those of the pool's stream, of the worker pool's for a custom pool, of the default stream, or the ControllerConfig's; a member's own image wins over an inherited one.",
        tests("os-streams-8", "os-streams-9", "os-streams-10", "os-image-streams-8"),
      ),
      same(
        "C1.2 6",
        "Changes that running machines cannot apply are refused, naming the responsible member.",
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
      same("C1.2 7", "A config that exceeds the store's size limit is refused.", tests("render-pool-1")),
      same("C1.2 9", "A new rendered config is stored, and an event on its pool reports it.", tests("controllers-2")),
      same(
        "C1.2 10",
        "The pool names the config and its sources; a config without an owner gets one.",
        tests("controllers-2"),
        tests("cli-bootstrap-1"),
      ),
      same(
        "C1.2 11",
        "A failure sets RenderDegraded on its pool only, with member, field and reason, until it is fixed; an unavailable server is no failure.",
        tests("controllers-9"),
        tests("kube-controller-1"),
      ),
      same("C1.2 source", "The sources are named in merge order.", tests("controllers-2")),
      better(
        "S16",
        "C1.2 changes",
        "An event on the pool reports the changes of the new config and their members, without contents.",
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
        "It names its generator and its release, and is owned by its pool.",
        tests("cli-bootstrap-2", "cli-bootstrap-1"),
      ),
      same("C1.8 generator", "A member of another generator's version blocks the pool.", tests("render-pool-1")),
    ],
  },
  {
    id: "C1.9",
    title: "Rendering: changes that running machines can apply",
    rows: [
      same("C1.9 passwd", "Groups, and accounts other than core, cannot change.", tests("render-for-pool-1")),
      same("C1.9 arguments", "Ignition's kernel arguments cannot change.", tests("render-for-pool-1")),
      same(
        "C1.9 storage",
        "Disks, directories and links cannot change; the administrator may allow disks, file systems and RAID.",
        tests("render-for-pool-1", "render-for-pool-5"),
      ),
      same("C1.9 files", "Appending to files, and the force file, are refused.", tests("render-for-pool-1")),
      same("C1.9 fips", "FIPS cannot change.", tests("render-for-pool-1")),
      ours(
        "C1.9 blame",
        "The message names the member that caused the change, not the first one with the section; it names none for a deleted member.",
        tests("render-for-pool-1", "render-for-pool-4", "render-for-pool-3"),
      ),
    ],
  },
  {
    id: "C4",
    title: "Drains",
    rows: [
      same("C4 1", "A completed request causes no further work.", tests("pool-plan-drain-1")),
      same(
        "C4 2",
        "An uncordon returns the machine to service and is confirmed in the MachineConfigNode; a foreign cordon stays.",
        tests("drain-controller-1", "drain-controller-2"),
      ),
      same("C4 3 cordon", "The controller cordons the node first, then evicts its pods.", tests("drain-controller-1")),
      better("C13", "C4 3 failed cordon", "A failed cordon is retried.", tests("drain-controller-3")),
      ours(
        "C4 3 forecast",
        "Before the cordon, dry-run evictions find pods that would be refused, their budgets and whether these can ever allow it, pods that nothing recreates, and pods with finalizers.",
        tests("drain-controller-4", "drain-controller-5"),
        tests("pool-plan-drain-2", "pool-plan-drain-3"),
        tests("scenario-roll-out-1"),
      ),
      same(
        "C4 3 pods",
        "All pods are evicted except those of DaemonSets, mirror pods and completed ones.",
        tests("pool-plan-drain-4"),
      ),
      better(
        "F7",
        "C4 3 events",
        "A drain continues when a pod leaves or a budget changes, and after five seconds at the latest.",
        tests("drain-controller-6", "drain-controller-7"),
      ),
      ours("C4 workers", "Every drain has its own worker, so none waits for another.", tests("drain-controller-8")),
      better(
        "S5",
        "C4 3 says",
        "The MachineConfigNode and the pool show the drain's progress, the blocking budgets, and the stuck pods with reasons.",
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
        "A missed deadline is reported once; without a deadline a drain is unlimited. Nothing is forced without being configured.",
        tests("drain-controller-10"),
        tests("pool-plan-drain-9", "pool-plan-drain-10", "pool-plan-drain-11"),
        tests("pool-policy-1", "pool-policy-2", "pool-policy-3", "pool-policy-4", "pool-policy-5"),
      ),
      ours(
        "C4 skip",
        "A pool may skip a drain after its deadline: the node returns to service, another node takes its turn, and it is retried later.",
        tests("drain-controller-11", "drain-controller-12", "drain-controller-13"),
        tests("node-controller-1"),
      ),
      ours(
        "C4 force",
        "A pool may delete pods after its deadline if it names every protection that this ignores; each deletion is reported.",
        tests("drain-controller-14"),
        tests("pool-plan-drain-11"),
        tests("scenario-roll-out-1"),
      ),
      better(
        "C14",
        "C4 state",
        "The node records the start of its drain, so that the next leader continues and reports nothing twice.",
        tests("drain-controller-15"),
      ),
      better(
        "C15",
        "C4 again",
        "A drained node that is uncordoned is drained again before its daemon continues, even just before a reboot.",
        tests("drain-controller-16"),
        tests("daemon-update-24"),
      ),
      ours(
        "C4 watches",
        "Pods are watched per draining node, and budgets only while they block: no cache holds all pods of a cluster.",
        tests("drain-controller-17"),
        tests("pool-plan-drain-12"),
      ),
      same("C4 4", "An unknown verb is an error.", tests("drain-controller-18"), tests("pool-plan-drain-1")),
      same("C4 5", "The request is confirmed, unless the node was uncordoned meanwhile.", tests("drain-controller-1")),
      ours(
        "C4 daemon",
        "The daemon waits for its drain without a limit or polling, and checks whether it is still wanted.",
        tests("daemon-update-12"),
      ),
    ],
  },
  {
    id: "C5",
    title: "Phases in MachineConfigNodes",
    rows: [
      same("C5 types", "All conditions are present from the first report.", tests("books-update-conditions-1")),
      ours(
        "C5 parents",
        "A parent condition follows from its children, and no child is lost because its parent did not change.",
        tests("books-update-conditions-2", "books-update-conditions-3"),
      ),
      ours(
        "C5 updated",
        "A new update resets Updated and all phases; its end leaves the last update readable.",
        tests("books-update-conditions-4"),
      ),
      ours(
        "C5 writes",
        "Several writers share the list: each changes only its own conditions, with optimistic locking.",
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
        "At bootstrap, the operator writes ControllerConfig, pools and pull secret from the installer's inputs, with the cluster's own function.",
        tests("cli-bootstrap-3"),
      ),
      ours(
        "C9 operator refuses",
        "Missing or unreadable inputs are reported with a remedy, and nothing is written.",
        tests("cli-bootstrap-4"),
      ),
      same(
        "C9 1",
        "The bootstrap reads every manifest of the folder and ignores unrelated kinds.",
        tests("cli-bootstrap-2"),
      ),
      better(
        "C29",
        "C9 2",
        "The administrator's pool replaces a built-in one, regardless of the order of files.",
        tests("cli-bootstrap-5"),
      ),
      skip(
        "C9 3",
        "The OS image is the ControllerConfig's.",
        "the bootstrap reads no image; the cluster renders the streams of its pools",
      ),
      ours(
        "C9 5",
        "The bootstrap generates the same base configurations as the cluster, but does not write them, since the cluster creates them again.",
        tests("cli-bootstrap-2", "cli-bootstrap-6"),
      ),
      ours(
        "C9 5, settings",
        "Mirror sets, image policies, KubeletConfigs, ContainerRuntimeConfigs, the CRIOCredentialProviderConfig, gates and the config Node of the folder are rendered as the cluster renders them, and it renders no other configuration in between.",
        tests("cli-bootstrap-mirrors-1", "cli-bootstrap-settings-1", "cli-bootstrap-settings-2"),
      ),
      same(
        "C9 6",
        "Each pool has a target and a status; its rendered config and the ControllerConfig are written too, as the cluster renders them.",
        tests("cli-bootstrap-2"),
      ),
      same("C9 cluster", "A cluster that starts from the output renders nothing again.", tests("cli-bootstrap-1")),
      ours(
        "C9 refuses",
        "Errors are reported at once, with file, field, reason and remedy, and nothing is written.",
        tests("cli-bootstrap-7", "cli-bootstrap-8", "cli-bootstrap-9"),
      ),
    ],
  },
  {
    id: "C14",
    title: "Retention of rendered configurations",
    rows: [
      better(
        "F8",
        "C14 removed",
        "Unused rendered configurations are removed after a delay, oldest first.",
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
        "A configuration named by a pool, node, MachineConfigNode, refused or quarantined target, or build stays.",
        tests("pool-retained-configs-7"),
        tests("collect-controller-2"),
      ),
      ours(
        "C14 kept",
        "A pool's last configurations stay for roll-backs; the pool says how many.",
        tests("pool-retained-configs-1", "pool-retained-configs-3"),
        tests("pool-policy-1", "pool-policy-2", "pool-policy-3", "pool-policy-4", "pool-policy-5"),
      ),
      ours(
        "C14 deletion",
        "A configuration in use cannot be deleted; the answer names its users and the remedy.",
        tests("config-in-use-1", "config-in-use-2", "attack-deletion-1", "attack-deletion-2"),
        tests("scenario-roll-out-3"),
      ),
      ours(
        "C14 again",
        "A deleted configuration in use is recreated identically.",
        tests("collect-controller-3", "collect-controller-4"),
        tests("controllers-10"),
        tests("pool-retained-configs-8"),
      ),
      ours(
        "C14 pool",
        "The configurations of a deleted pool are removed with their last machine.",
        tests("collect-controller-5"),
      ),
    ],
  },
];
