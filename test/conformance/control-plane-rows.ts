import { type Section, better, inFile, ours, same, skip } from "./row-kit.ts";

/**
 * What the control plane does, rule by rule. `C3.5` is section 3.5 of the reference's behaviour as it was written down
 * for this suite; `status` and `answers` are this suite's own rules for what pools say and for what replaces questions
 * that are answered yes or no.
 *
 * Source of what the reference does: openshift/machine-config-operator pkg/controller and pkg/operator (main).
 */
const node = inFile("src/controller/node-controller.test.ts");
const gets = inFile("src/controller/node-controller.test.ts", "who gets the target");
const told = inFile("src/controller/node-controller.test.ts", "what the pool and its nodes are told");
const rollOut = inFile("src/controller/controllers.test.ts", "roll-out");
const select = inFile("src/core/pool/select-nodes.test.ts", "selectNodes");
const always = inFile("src/core/pool/select-nodes.test.ts", "whatever the state of a pool");
const kept = inFile("src/core/pool/select-nodes.test.ts");
const status = inFile("src/core/pool/pool-status.test.ts", "poolStatus");
const membership = inFile("src/core/pool/pool-of-node.test.ts");
const marks = inFile("src/core/pool/control-plane-marks.test.ts");
const explained = inFile("src/core/preview/explain.test.ts");
const poolSays = inFile("src/core/preview/explain.test.ts", "what a pool says of itself");
const nodeSays = inFile("src/core/preview/explain.test.ts", "what a node says of itself");
const scenario = inFile("test/scenario/roll-out.test.ts", "a cluster of real processes");
const guard = inFile("test/guards/yes-no-helpers.test.ts");

export const controlPlane: readonly Section[] = [
  {
    id: "C3.1",
    title: "Node controller: what it listens to",
    rows: [
      better(
        "F1",
        "C3.1 wait",
        "What is written reaches the first machine as soon as it is read: changes of a quarter of a second are one look, and nothing else is waited for.",
        rollOut("a written MachineConfig reaches the first machine within a second"),
      ),
      same(
        "C3.1 heartbeat",
        "Heartbeats of kubelets are not looked at.",
        rollOut("heartbeats of kubelets cause no write"),
      ),
      ours(
        "C3.1 cost",
        "The news of one machine is judged for that machine: counts and turns of its pool are kept from single changes.",
        node("the news of one machine is judged for that machine alone, however many there are"),
        kept("members kept from single changes are what they would be if they were sorted anew"),
      ),
      same(
        "C3.1 masters",
        "Labels and taints of control-plane machines follow the Scheduler settings; without such settings they stay as they are.",
        marks(
          "not schedulable: tainted, and no worker",
          "schedulable: a worker too, without *",
          "without settings nothing is touched",
        ),
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
        membership("a node belongs to *"),
      ),
      better(
        "C17",
        "C3.2 two",
        "A node in two custom pools belongs to none; the node, both pools and `mco explain` say so, and which label to take away.",
        told("a node that two custom pools select gets nothing, and node and pools say why, until a label goes"),
        nodeSays("in two pools it belongs to none, which both pools and the node say"),
      ),
      same(
        "C3.2 first pool",
        "A node that booted into a custom pool first gets that pool's labels, once.",
        told("a node that was served a custom pool's configuration gets that pool's labels, once"),
        membership("a node that booted into a custom po*"),
      ),
      ours(
        "C3.2 move",
        "A node that moves is counted in its new pool, and its MachineConfigNode names that pool before it gets a target from it.",
        told("a node that two custom pools select gets nothing, and node and pools say why, until a label goes"),
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
        told("a pool whose selector is empty selects nobody, and says so"),
      ),
      same(
        "C3.4 paused",
        "A paused pool renders and gives nobody anything.",
        rollOut("a paused pool renders and gives nobody anything"),
        scenario("a paused pool renders and leaves its machines alone; unpaused, it goes on"),
      ),
      same(
        "C3.4 topology",
        "Machines are told whether theirs is the only control plane.",
        rollOut("machines of the control plane are told whether they are the only one"),
      ),
      better(
        "C16",
        "C3.4 taint",
        "Machines that will be disturbed bear a taint that schedulers avoid; the write holds only while nobody else wrote the node.",
        rollOut(
          "machines get the target one after the other, and the pool tells the story",
          "an answer that is lost does not cost a second machine",
        ),
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
        inFile("src/core/pool/select-nodes.test.ts", "budgetOf")("*"),
      ),
      ours(
        "C3.5 away",
        "The budget counts every machine that is away, whatever took it away: a silent kubelet or daemon, somebody's cordon, a failure, ourselves.",
        select(
          "waits while a machine is not ready,*",
          "waits while somebody else has cord*",
          "counts a machine whose daemon fell *",
        ),
        always("healthy machines are taken only as far as the budget goes beyond those that are away already"),
      ),
      better(
        "P1",
        "C3.5 cure",
        "A machine that is away already gets the newest target at once and costs nothing: the fix comes before everything else.",
        select(
          "gives a failing machine its repair *",
          "gives machines that are down the ta*",
          "gives a machine that is on its way *",
        ),
        scenario(
          "a bad configuration takes a machine down; taking it back reaches that machine first, while it is down, and disturbs no other",
        ),
      ),
      ours(
        "C3.5 bad target",
        "A bad target stops after as many machines as the budget has; one that a machine went back from is given to no healthy machine.",
        select("stops after as many machines as the*", "gives a quarantined target to no he*"),
      ),
      ours(
        "C3.5 newest",
        "The newest target wins in mid-flight, and several changes are one disruption for machines that waited.",
        gets(
          "a machine in the middle of an update gets the newest target at once, and several changes are one disruption for the others",
        ),
      ),
      same(
        "C3.5 control plane",
        "Of the control plane one machine at a time, whatever the budget, and none while another is away.",
        select(
          "takes one of the control plane at a*",
          "takes none of the control plane whi*",
          "takes no healthy one of the control*",
        ),
        always("of the control plane at most one machine is in our hands, unless more were before"),
      ),
      ours(
        "C3.5 etcd",
        "A healthy machine of the control plane waits while a member of etcd elsewhere is not ready, where etcd can be seen.",
        gets("a control plane waits while a member of etcd elsewhere is not ready"),
        select(
          "takes the one of the control plane *",
          "repairs one of the control plane al*",
          "asks etcd for no worker",
        ),
      ),
      same(
        "C3.5 operator",
        "The operator's own machine is the last of the control plane.",
        gets("the operator's own machine is the last of the control plane"),
        select("takes the operator's own machine wh*"),
      ),
      same(
        "C3.5 zones",
        "In order of zones, the oldest first, machines without a zone last; always sorted.",
        select("goes zone by zone, the oldest first*"),
      ),
      ours(
        "C3.5 one zone",
        "Never machines of two zones at once, where the pool asks for it.",
        gets("one zone at a time, where the pool asks for it"),
        select("stays in the zone in which a machin*"),
      ),
      better(
        "S3",
        "C3.5 why",
        "Every machine that waits carries its reason and what would lift it.",
        always("every machine without the target is either chosen or told why not, and no other"),
        nodeSays("every machine of a large pool knows why it waits"),
      ),
      ours(
        "C3.5 skipped",
        "A machine whose drain was given up serves, gives its place to another, and comes after all others.",
        gets(
          "a machine whose drain was given up gives its place to another, and is offered its target again when its time comes",
        ),
        select("tries it again only within the budget"),
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
        rollOut("machines get the target one after the other, and the pool tells the story"),
        gets("as many as the pool allows get it at the same time, which is one event"),
      ),
      ours(
        "C3.6 lost",
        "A write whose answer is lost counts as done until it is proven otherwise, and is sent again.",
        rollOut(
          "an answer that is lost does not cost a second machine",
          "a machine whose write never arrived is given its target again",
        ),
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
        status(
          "all machines have the target",
          "one machine is under way and one waits",
          "a failing machine is degraded and n*",
          "a drifted machine is degraded and u*",
        ),
      ),
      ours(
        "C3.7 others' cordon",
        "A cordon of somebody else and a machine that joins do not make a pool outdated; the message names them.",
        status(
          "a machine that somebody else cordon*",
          "a machine that just joins keeps the*",
          "a machine that has been joining for*",
        ),
      ),
      better(
        "C18",
        "C3.7 gap",
        "A MachineConfigNode without conditions hides none of the machines after it.",
        status("a MachineConfigNode without conditions hides none of the machines after it"),
      ),
      better(
        "S6",
        "C3.7 degraded",
        "A machine that is degraded is named once, with its own words, whichever of two sources says so.",
        status(
          "a machine that says in its MachineConfigNode that it is degraded is shown once, whatever its annotations say",
          "degraded machines are named with what they say, at most five",
        ),
      ),
      ours(
        "C3.7 two sources",
        "Updated is who says so in annotations and MachineConfigNode; by annotations alone where nobody keeps the other. Two that disagree for a minute are told.",
        status(
          "a machine counts as updated when annotations and MachineConfigNode say so, and by annotations alone where nobody keeps the other",
        ),
        nodeSays("annotations and MachineConfigNode that disagree are told after a minute"),
        inFile(
          "src/core/metrics/metrics.test.ts",
          "metrics",
        )("name machines of which two sources have said different things for a minute, and not before"),
      ),
      better(
        "S7",
        "C3.7 message",
        "The message says how many have it, who works on it and since when, what holds them, who waits and why.",
        status("the message says who has it, who gets it now, who waits and for what"),
      ),
      better(
        "S4",
        "C3.7 paused",
        "A paused pool says so and what it will not do; so does one that has everything, and one without machines.",
        status(
          "a paused pool says what it will not do",
          "an empty pool, a paused pool that has everything, and a machine in two pools say so",
        ),
      ),
      better(
        "S1",
        "C3.7 rendering",
        "What rendering waits for is part of what the pool says.",
        status("what rendering waits for is said, though nothing is degraded by it"),
      ),
      ours(
        "C3.7 lost",
        "Machines out of reach and daemons that fell silent are named with since when.",
        status("machines out of reach and silent daemons are named with since when"),
        told(
          "a daemon that is silent for five minutes counts as away and is named; one that is away for a moment does not",
        ),
      ),
      same(
        "C3.7 configuration",
        "status.configuration follows when every machine has the target.",
        status("status.configuration follows only when all machines have the target"),
      ),
      ours(
        "C3.7 stable",
        "Without a change of facts nothing is written, and times move only with a status; a daemon that comes and goes moves no count.",
        status("without a change of facts nothing of the status changes, and times move only with a status"),
        told("counts do not move when a daemon or the watch of it comes and goes"),
      ),
      same(
        "C3.7 certificates",
        "Until when the certificates are good that machines know the API server by is shown on every pool, paused or not.",
        status("until when the API server's certificates on machines are good is shown, also while the pool is paused"),
        inFile("src/core/render/controller-config-of.test.ts")("the status names every certificate that*"),
      ),
      same(
        "C3.7 foreign",
        "Conditions of other writers are kept, and make the pool degraded.",
        status("a render failure of another writer is kept and makes the pool degraded"),
      ),
    ],
  },
  {
    id: "answers",
    title: "Answers with reasons in place of yes and no",
    rows: [
      ours("answers position", "Where a node is, with the reason and the objects that say so.", nodeSays("*")),
      ours(
        "answers progress",
        "Where a pool is: who is done, works, is blocked and by what, waits and why, and what to do.",
        poolSays("*"),
      ),
      ours(
        "answers pool at",
        "How many machines of a pool run a configuration.",
        poolSays(
          "while it rolls out: the target and what it changes, who works, is blocked and by what, who waits for what, and what to do",
        ),
      ),
      ours(
        "answers may build",
        "Only what cannot be rendered forbids a build, no state of machines does.",
        explained(
          "a pool may be built whatever its machines do, but not without a configuration or one that cannot be rendered",
        ),
      ),
      ours(
        "answers may upgrade",
        "What keeps an upgrade back, each with its pool and what to do.",
        inFile("src/core/preview/explain.test.ts", "what the operator says of itself")("*"),
      ),
      ours(
        "answers freshness",
        "Every answer says as of when it is, and whether that is fresh.",
        explained("an answer says how current it is"),
      ),
      ours(
        "answers MachineConfig",
        "Where a MachineConfig is: its pools, and how many of their machines have it.",
        inFile("src/core/preview/explain.test.ts", "where a MachineConfig is")("*"),
      ),
      ours(
        "answers guard",
        "Outside of core nothing reads conditions of pools, and no helper answers yes or no about one.",
        guard("conditions of pools are read in cor*", "no helper answers yes or no about a*"),
      ),
    ],
  },
];
