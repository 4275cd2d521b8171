import { type Section, better, tests, ours, same, skip } from "./define-rows.ts";

export const controlPlane: readonly Section[] = [
  {
    id: "C3.1",
    title: "Node controller: triggers",
    rows: [
      better(
        "F1",
        "C3.1 wait",
        "A change reaches the first machine as soon as it is read: changes within 250 ms share one pass, and there is no other delay.",
        tests("controllers-5"),
      ),
      same("C3.1 heartbeat", "Kubelet heartbeats cause no pass.", tests("controllers-11")),
      ours(
        "C3.1 cost",
        "A change of one machine costs work for that machine only: the pool's counts and turns are updated incrementally.",
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
        "Annotation changes of control-plane machines yield no Events.",
        "they are what its story is made of: the scribe tells each step once, with its reason",
      ),
    ],
  },
  {
    id: "C3.2",
    title: "Node controller: the pool of a node",
    rows: [
      same(
        "C3.2 custom",
        "A custom pool precedes worker, master precedes all; Windows nodes belong to no pool; an empty selector selects nothing.",
        tests("pool-of-node-1"),
      ),
      better(
        "C17",
        "C3.2 two",
        "A node in two custom pools belongs to none; the node, both pools and `mco explain` report it and the label to remove.",
        tests("node-controller-3"),
        tests("preview-explain-1"),
      ),
      ours(
        "C3.2 first pool",
        "A node that joined into a custom pool gets that pool's labels once, by the record of its join, not by what its Node says.",
        tests("join-controller-1"),
        tests("node-controller-4"),
      ),
      ours(
        "C3.2 move",
        "A moved node counts in its new pool, and its MachineConfigNode names that pool before it gets a target from it.",
        tests("node-controller-3"),
      ),
      skip(
        "C3.2 arbiter",
        "The pool arbiter is an ordinary custom pool.",
        "two machines with an arbiter need the installer's topology HighlyAvailableArbiter, which no cluster of ours has; one of the control plane at a time holds there too",
      ),
    ],
  },
  {
    id: "C3.4",
    title: "Node controller: one pass over a pool",
    rows: [
      same(
        "C3.4 selecting all",
        "A pool with an empty node selector selects no node, and reports it.",
        tests("node-controller-5"),
      ),
      same(
        "C3.4 paused",
        "A paused pool renders but updates no machine.",
        tests("controllers-12"),
        tests("scenario-roll-out-4"),
      ),
      same(
        "C3.4 topology",
        "An annotation tells machines whether they are the only control-plane machine.",
        tests("controllers-13"),
      ),
      better(
        "C16",
        "C3.4 taint",
        "Machines due for disruption get a PreferNoSchedule taint, written with optimistic locking.",
        tests("controllers-14", "controllers-15"),
      ),
      same(
        "C3.4 layered",
        "Pools with an image built on the cluster wait for their build.",
        tests("controller-image-roll-out-5", "controller-image-roll-out-8"),
      ),
    ],
  },
  {
    id: "C3.5",
    title: "Node controller: the next machines",
    rows: [
      same(
        "C3.5 max",
        "maxUnavailable: one by default, percentages rounded down, never zero.",
        tests("pool-select-nodes-2"),
      ),
      ours(
        "C3.5 away",
        "The budget counts every unavailable machine, whatever the cause: a kubelet or daemon that is not ready, a foreign cordon, a failure, an update.",
        tests("pool-select-nodes-3"),
        tests("pool-select-nodes-4"),
      ),
      better(
        "P1",
        "C3.5 cure",
        "An unavailable machine gets the newest target at once and outside the budget, so that a fix always arrives.",
        tests("pool-select-nodes-3"),
        tests("scenario-roll-out-5"),
      ),
      ours(
        "C3.5 bad target",
        "A bad target stops after at most the budget's number of machines; one that a machine rolled back from goes to no healthy machine.",
        tests("pool-select-nodes-3"),
      ),
      ours(
        "C3.5 newest",
        "The newest target wins during a roll-out, and several changes are one disruption for machines that waited.",
        tests("node-controller-6"),
      ),
      same(
        "C3.5 control plane",
        "Control-plane machines update one at a time, regardless of the budget, and none while another is unavailable.",
        tests("pool-select-nodes-3"),
        tests("pool-select-nodes-5"),
      ),
      ours(
        "C3.5 etcd",
        "A healthy control-plane machine waits while another etcd member is not ready, if etcd is visible.",
        tests("node-controller-7"),
        tests("pool-select-nodes-3"),
      ),
      same(
        "C3.5 operator",
        "The operator's own machine is the last control-plane machine to update.",
        tests("node-controller-8"),
        tests("pool-select-nodes-3"),
      ),
      same(
        "C3.5 zones",
        "Machines update by zone, oldest first, those without a zone last, in a deterministic order.",
        tests("pool-select-nodes-3"),
      ),
      ours(
        "C3.5 one zone",
        "Machines of two zones never update at once if the pool requests that.",
        tests("node-controller-9"),
        tests("pool-select-nodes-3"),
      ),
      better(
        "S3",
        "C3.5 why",
        "Every waiting machine has a reason and a remedy.",
        tests("pool-select-nodes-6"),
        tests("preview-explain-2"),
      ),
      ours(
        "C3.5 skipped",
        "A machine whose drain was skipped returns to service, gives its turn to another, and comes last.",
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
        "Target and taint are one patch, followed by the MachineConfigNode; one event reports machine and target.",
        tests("controllers-14"),
        tests("node-controller-10"),
      ),
      ours(
        "C3.6 lost",
        "A write whose answer is lost counts as done until disproven, and is sent again.",
        tests("controllers-15", "controllers-16"),
      ),
    ],
  },
  {
    id: "C3.7",
    title: "The status of a pool",
    rows: [
      ours(
        "C3.7 counts",
        "Every machine counts once, by its verdict; machines that fail during an update are degraded, not unavailable.",
        tests("pool-status-1"),
      ),
      ours(
        "C3.7 others' cordon",
        "A foreign cordon or a joining machine does not make a pool outdated; the message names them.",
        tests("pool-status-1"),
      ),
      better(
        "C18",
        "C3.7 gap",
        "A MachineConfigNode without conditions does not end the count.",
        tests("pool-status-2"),
      ),
      better(
        "S6",
        "C3.7 degraded",
        "A degraded machine is listed once, with its own message, whichever of two sources reports it.",
        tests("pool-status-3", "pool-status-4"),
      ),
      ours(
        "C3.7 two sources",
        "A machine is updated if annotations and MachineConfigNode agree, or by annotations alone without a MachineConfigNode. A disagreement of a minute is reported.",
        tests("pool-status-5"),
        tests("preview-explain-3"),
        tests("metrics-1"),
      ),
      better(
        "S7",
        "C3.7 message",
        "The message reports how many machines are updated, which are updating since when, what blocks them, and which wait for what.",
        tests("pool-status-6"),
      ),
      better(
        "S4",
        "C3.7 paused",
        "A paused pool reports that and its pending changes; so do an updated pool and one without machines.",
        tests("pool-status-7", "pool-status-8"),
      ),
      better("S1", "C3.7 rendering", "The pool's message includes what rendering waits for.", tests("pool-status-9")),
      ours(
        "C3.7 lost",
        "Unreachable machines and unready daemons are listed with their time.",
        tests("pool-status-10"),
        tests("node-controller-11"),
      ),
      same(
        "C3.7 configuration",
        "status.configuration changes once every machine has the target.",
        tests("pool-status-11"),
      ),
      ours(
        "C3.7 stable",
        "Nothing is written without a change, and times change only with a status; a restarting daemon changes no count.",
        tests("pool-status-12"),
        tests("node-controller-12"),
      ),
      same(
        "C3.7 certificates",
        "Every pool, paused or not, shows when the API server certificates that machines trust expire.",
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
    title: "Answers with reasons instead of yes and no",
    rows: [
      ours(
        "answers position",
        "The position of a node, with the reason and the evidence.",
        tests("preview-explain-4", "preview-explain-1", "preview-explain-3", "preview-explain-2"),
      ),
      ours(
        "answers progress",
        "The progress of a pool: machines that are done, updating, blocked, or waiting, with reasons and remedies.",
        tests("preview-explain-5", "preview-explain-6", "preview-explain-7"),
      ),
      ours("answers pool at", "How many machines of a pool run a configuration.", tests("preview-explain-5")),
      ours(
        "answers may build",
        "Only a failed rendering forbids a build; no state of machines does.",
        tests("preview-explain-8"),
      ),
      ours(
        "answers may upgrade",
        "The obstacles of an upgrade, each with its pool and remedy.",
        tests("preview-explain-9", "preview-explain-10"),
      ),
      ours("answers freshness", "Every answer has its time, and whether it is fresh.", tests("preview-explain-11")),
      ours(
        "answers MachineConfig",
        "The position of a MachineConfig: its pools, and how many of their machines have it.",
        tests("preview-explain-12", "preview-explain-13"),
      ),
      ours(
        "answers guard",
        "Outside core nothing reads pool conditions, and no helper answers yes or no about a pool.",
        tests("guards-yes-no-helpers-1", "guards-yes-no-helpers-2"),
      ),
    ],
  },
];
