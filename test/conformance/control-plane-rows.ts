import { type Section, better, tests, ours, same, skip } from "./define-rows.ts";

export const controlPlane: readonly Section[] = [
  {
    id: "C3.1",
    title: "Node controller: what it listens to",
    rows: [
      better(
        "F1",
        "C3.1 wait",
        "What is written reaches the first machine as soon as it is read: changes of a quarter of a second are one look, and nothing else is waited for.",
        tests("controllers-5"),
      ),
      same("C3.1 heartbeat", "Heartbeats of kubelets are not looked at.", tests("controllers-11")),
      ours(
        "C3.1 cost",
        "The news of one machine is judged for that machine: counts and turns of its pool are kept from single changes.",
        tests("node-controller-2"),
        tests("pool-select-nodes-1"),
      ),
      same(
        "C3.1 masters",
        "Labels and taints of control-plane machines follow the Scheduler settings; without such settings they stay as they are.",
        tests("pool-control-plane-marks-1"),
      ),
      skip(
        "C3.1 AnnotationChange",
        "Changes of annotations of control-plane machines are no events.",
        "they are what its story is made of: the scribe tells each step once, with its reason",
      ),
    ],
  },
  {
    id: "C3.2",
    title: "Node controller: which pool owns a node",
    rows: [
      same(
        "C3.2 custom",
        "A custom pool over worker, master over everything, Windows nodes nobody's, an empty selector selects nothing.",
        tests("pool-of-node-1"),
      ),
      better(
        "C17",
        "C3.2 two",
        "A node in two custom pools belongs to none; the node, both pools and `mco explain` say so, and which label to take away.",
        tests("node-controller-3"),
        tests("preview-explain-1"),
      ),
      same(
        "C3.2 first pool",
        "A node that booted into a custom pool first gets that pool's labels, once.",
        tests("node-controller-4"),
        tests("pool-of-node-2"),
      ),
      ours(
        "C3.2 move",
        "A node that moves is counted in its new pool, and its MachineConfigNode names that pool before it gets a target from it.",
        tests("node-controller-3"),
      ),
      skip(
        "C3.2 arbiter",
        "The pool arbiter is a custom pool like others.",
        "two machines with an arbiter need the installer's topology HighlyAvailableArbiter, which no cluster of ours has; one of the control plane at a time holds there too",
      ),
    ],
  },
  {
    id: "C3.4",
    title: "Node controller: one look at a pool",
    rows: [
      same(
        "C3.4 selecting all",
        "A pool whose node selector is empty selects nobody, and says so.",
        tests("node-controller-5"),
      ),
      same(
        "C3.4 paused",
        "A paused pool renders and gives nobody anything.",
        tests("controllers-12"),
        tests("scenario-roll-out-4"),
      ),
      same("C3.4 topology", "Machines are told whether theirs is the only control plane.", tests("controllers-13")),
      better(
        "C16",
        "C3.4 taint",
        "Machines that will be disturbed bear a taint that schedulers avoid; the write holds only while nobody else wrote the node.",
        tests("controllers-14", "controllers-15"),
      ),
      skip(
        "C3.4 layered",
        "Pools whose image is built on the cluster wait for their build.",
        "images that are built on the cluster are another part of the suite",
      ),
    ],
  },
  {
    id: "C3.5",
    title: "Node controller: who is next",
    rows: [
      same(
        "C3.5 max",
        "maxUnavailable: one when nothing is said, percentages rounded down, never zero.",
        tests("pool-select-nodes-2"),
      ),
      ours(
        "C3.5 away",
        "The budget counts every machine that is away, whatever took it away: a silent kubelet or daemon, somebody's cordon, a failure, ourselves.",
        tests("pool-select-nodes-3"),
        tests("pool-select-nodes-4"),
      ),
      better(
        "P1",
        "C3.5 cure",
        "A machine that is away already gets the newest target at once and costs nothing: the fix comes before everything else.",
        tests("pool-select-nodes-3"),
        tests("scenario-roll-out-5"),
      ),
      ours(
        "C3.5 bad target",
        "A bad target stops after as many machines as the budget has; one that a machine went back from is given to no healthy machine.",
        tests("pool-select-nodes-3"),
      ),
      ours(
        "C3.5 newest",
        "The newest target wins in mid-flight, and several changes are one disruption for machines that waited.",
        tests("node-controller-6"),
      ),
      same(
        "C3.5 control plane",
        "Of the control plane one machine at a time, whatever the budget, and none while another is away.",
        tests("pool-select-nodes-3"),
        tests("pool-select-nodes-5"),
      ),
      ours(
        "C3.5 etcd",
        "A healthy machine of the control plane waits while a member of etcd elsewhere is not ready, where etcd can be seen.",
        tests("node-controller-7"),
        tests("pool-select-nodes-3"),
      ),
      same(
        "C3.5 operator",
        "The operator's own machine is the last of the control plane.",
        tests("node-controller-8"),
        tests("pool-select-nodes-3"),
      ),
      same(
        "C3.5 zones",
        "In order of zones, the oldest first, machines without a zone last; always sorted.",
        tests("pool-select-nodes-3"),
      ),
      ours(
        "C3.5 one zone",
        "Never machines of two zones at once, where the pool asks for it.",
        tests("node-controller-9"),
        tests("pool-select-nodes-3"),
      ),
      better(
        "S3",
        "C3.5 why",
        "Every machine that waits carries its reason and what would lift it.",
        tests("pool-select-nodes-6"),
        tests("preview-explain-2"),
      ),
      ours(
        "C3.5 skipped",
        "A machine whose drain was given up serves, gives its place to another, and comes after all others.",
        tests("node-controller-1"),
        tests("pool-select-nodes-3"),
      ),
    ],
  },
  {
    id: "C3.6",
    title: "Node controller: writing the target",
    rows: [
      same(
        "C3.6 write",
        "Target and taint are one patch, then MachineConfigNode is told; one event says who got what.",
        tests("controllers-14"),
        tests("node-controller-10"),
      ),
      ours(
        "C3.6 lost",
        "A write whose answer is lost counts as done until it is proven otherwise, and is sent again.",
        tests("controllers-15", "controllers-16"),
      ),
    ],
  },
  {
    id: "C3.7",
    title: "What a pool says",
    rows: [
      ours(
        "C3.7 counts",
        "Counts are of verdicts, each machine once; those that fail on their way are degraded and not unavailable.",
        tests("pool-status-1"),
      ),
      ours(
        "C3.7 others' cordon",
        "A cordon of somebody else and a machine that joins do not make a pool outdated; the message names them.",
        tests("pool-status-1"),
      ),
      better(
        "C18",
        "C3.7 gap",
        "A MachineConfigNode without conditions hides none of the machines after it.",
        tests("pool-status-2"),
      ),
      better(
        "S6",
        "C3.7 degraded",
        "A machine that is degraded is named once, with its own words, whichever of two sources says so.",
        tests("pool-status-3", "pool-status-4"),
      ),
      ours(
        "C3.7 two sources",
        "Updated is who says so in annotations and MachineConfigNode; by annotations alone where nobody keeps the other. Two that disagree for a minute are told.",
        tests("pool-status-5"),
        tests("preview-explain-3"),
        tests("metrics-1"),
      ),
      better(
        "S7",
        "C3.7 message",
        "The message says how many have it, who works on it and since when, what holds them, who waits and why.",
        tests("pool-status-6"),
      ),
      better(
        "S4",
        "C3.7 paused",
        "A paused pool says so and what it will not do; so does one that has everything, and one without machines.",
        tests("pool-status-7", "pool-status-8"),
      ),
      better("S1", "C3.7 rendering", "What rendering waits for is part of what the pool says.", tests("pool-status-9")),
      ours(
        "C3.7 lost",
        "Machines out of reach and daemons that fell silent are named with since when.",
        tests("pool-status-10"),
        tests("node-controller-11"),
      ),
      same(
        "C3.7 configuration",
        "status.configuration follows when every machine has the target.",
        tests("pool-status-11"),
      ),
      ours(
        "C3.7 stable",
        "Without a change of facts nothing is written, and times move only with a status; a daemon that comes and goes moves no count.",
        tests("pool-status-12"),
        tests("node-controller-12"),
      ),
      same(
        "C3.7 certificates",
        "Until when the certificates are good that machines know the API server by is shown on every pool, paused or not.",
        tests("pool-status-13"),
        tests("render-controller-config-of-2"),
      ),
      same(
        "C3.7 foreign",
        "Conditions of other writers are kept, and make the pool degraded.",
        tests("pool-status-14"),
      ),
    ],
  },
  {
    id: "answers",
    title: "Answers with reasons in place of yes and no",
    rows: [
      ours(
        "answers position",
        "Where a node is, with the reason and the objects that say so.",
        tests("preview-explain-4", "preview-explain-1", "preview-explain-3", "preview-explain-2"),
      ),
      ours(
        "answers progress",
        "Where a pool is: who is done, works, is blocked and by what, waits and why, and what to do.",
        tests("preview-explain-5", "preview-explain-6", "preview-explain-7"),
      ),
      ours("answers pool at", "How many machines of a pool run a configuration.", tests("preview-explain-5")),
      ours(
        "answers may build",
        "Only what cannot be rendered forbids a build, no state of machines does.",
        tests("preview-explain-8"),
      ),
      ours(
        "answers may upgrade",
        "What keeps an upgrade back, each with its pool and what to do.",
        tests("preview-explain-9", "preview-explain-10"),
      ),
      ours(
        "answers freshness",
        "Every answer says as of when it is, and whether that is fresh.",
        tests("preview-explain-11"),
      ),
      ours(
        "answers MachineConfig",
        "Where a MachineConfig is: its pools, and how many of their machines have it.",
        tests("preview-explain-12", "preview-explain-13"),
      ),
      ours(
        "answers guard",
        "Outside of core nothing reads conditions of pools, and no helper answers yes or no about one.",
        tests("guards-yes-no-helpers-1", "guards-yes-no-helpers-2"),
      ),
    ],
  },
];
