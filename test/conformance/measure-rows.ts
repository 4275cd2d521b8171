import { type Section, better, inFile, ours, same, skip } from "./row-kit.ts";

/**
 * What is measured, told as figures, and shown by simulation. `C15` is that section of the reference's behaviour as it
 * was written down for this suite; `i.1` and its like are this suite's own acceptance scenarios for MachineConfigNodes
 * and pools; `sim` is the simulation.
 *
 * Source of what the reference does: openshift/machine-config-operator pkg/controller/common/metrics.go,
 * pkg/daemon/metrics.go and install/0000_90_machine-config_01_prometheus-rules.yaml (main).
 */
const metrics = inFile("src/core/metrics/metrics.test.ts", "metrics");
const meter = inFile("src/core/metrics/rollout-meter.test.ts", "what roll-outs take");
const alerts = inFile("src/core/metrics/alerts.test.ts", "alerts");
const budget = inFile("test/simulation/write-budget.test.ts", "an update with drain and reboot");
const outcome = inFile("test/simulation/write-budget.test.ts", "an update without reboot");
const phases = inFile("src/core/books/update-conditions.test.ts", "withPhases");
const status = inFile("src/core/pool/pool-status.test.ts", "poolStatus");
const planted = inFile("test/simulation/planted-bugs.test.ts", "a planted bug is found");
const seeds = [
  ...inFile("test/simulation/seeds-even.test.ts")(
    "whatever happens in which order, no invariant is broken (even seeds)",
  ),
  ...inFile("test/simulation/seeds-odd.test.ts")("whatever happens in which order, no invariant is broken (odd seeds)"),
];

export const measured: readonly Section[] = [
  {
    id: "C15",
    title: "Metrics and alerts",
    rows: [
      same(
        "C15 counts",
        "How many machines a pool has, how many are updated, degraded, out of service.",
        metrics("say of every pool how many machines it has and how they are, and name machines whose drain is late"),
      ),
      same(
        "C15 mcc_drain_err",
        "Machines whose drain takes longer than their pool allows.",
        metrics("say of every pool how many machines it has and how they are, and name machines whose drain is late"),
      ),
      ours(
        "C15 mco_state",
        "One sample for each machine that is there, and none for those that are gone: the label set does not grow.",
        metrics("name every machine once, and those only that are there"),
      ),
      same(
        "C15 mcc_pool_alert",
        "A machine of the control plane that a custom pool selects.",
        metrics(
          "tell of a machine of the control plane that a custom pool selects, of a chosen OS image, and that nobody looks at boot images",
        ),
      ),
      same(
        "C15 os_image_url_override",
        "Pools whose OS image was chosen.",
        metrics(
          "tell of a machine of the control plane that a custom pool selects, of a chosen OS image, and that nobody looks at boot images",
        ),
      ),
      same(
        "C15 boot images",
        "That nobody looks how old boot images are.",
        metrics(
          "tell of a machine of the control plane that a custom pool selects, of a chosen OS image, and that nobody looks at boot images",
        ),
      ),
      ours(
        "C15 mcc_sub_controller_state",
        "When looks of each controller last ended in which way; without a label for the object, of which there is no end.",
        alerts("no metric is described twice or without words"),
      ),
      same(
        "C15 mcd",
        "The daemon's own figures, with words of a closed list where the reference puts texts.",
        inFile(
          "src/daemon/status-handler.test.ts",
          "what a daemon tells its own machine",
        )("its figures carry the reference's names, and words of a closed list in place of texts"),
      ),
      better(
        "S7",
        "C15 waiting",
        "How many machines wait, by why, and in which phase the others are.",
        metrics("count the machines that wait by why, and each machine's phase"),
      ),
      ours(
        "C15 roll-out",
        "How long roll-outs take, and took; what several changes cost together that they would have cost one by one.",
        meter("*"),
      ),
      ours(
        "C15 who",
        "Figures are given to whom the API server says may read them; the server's own rules of who are its RBAC.",
        inFile(
          "test/scenario/install.test.ts",
          "kubectl apply -k install/",
        )(
          "who may get /metrics reads them, and nobody else; what the Prometheus operator is told names metrics that are there",
        ),
      ),
      ours(
        "C15 alerts",
        "Every alert names metrics that there are, and says what it means, how to see it and what to do.",
        alerts("*"),
      ),
      skip("C15 ocl", "Figures of builds.", "images that are built on the cluster are another part of the suite"),
      skip(
        "C15 RuncDeprecated",
        "Alerts about CRI-O, reserved memory and the control plane's memory.",
        "they are about components of OpenShift, not of this suite; node exporters and CRI-O measure them",
      ),
    ],
  },
  {
    id: "i",
    title: "MachineConfigNodes and pools: acceptance",
    rows: [
      ours(
        "i.1 walk",
        "An update with drain and reboot goes through its conditions in order; the time of each moves exactly with its status.",
        budget(
          "walks through the conditions in order, and back to rest",
          "moves the time of a condition exactly when its status changes",
        ),
      ),
      ours(
        "i.1 writes",
        "It writes the MachineConfigNode at most 8 times, the Node 6 times, for its drain 4 times, its target once, its journal 4 times, 25 times in all with its chapter, and sends at most 40 KiB.",
        budget(
          "writes no more to each object than its budget allows, and the target once",
          "sends at most 40 KiB for each machine, its chapter included; the journal of the controllers is everybody's, and gets one append in ten seconds",
        ),
      ),
      ours(
        "i.2",
        "What an update did not need, and what it did in place of a reboot, stays readable after it.",
        outcome("*"),
        phases("the end says what the run did not need and what it did last"),
      ),
      ours(
        "i.6",
        "A machine that somebody cordoned, or that joins, keeps its pool updated, and is named.",
        status("a machine that somebody else cordoned *", "a machine that just joins keeps the poo*"),
      ),
      ours(
        "i.7",
        "A MachineConfigNode without conditions hides no machine.",
        status("a MachineConfigNode without conditions hides none of the machines after it"),
      ),
      ours(
        "i.8",
        "A machine that is degraded by one source and done by the other is shown once.",
        status(
          "a machine that says in its MachineConfigNode that it is degraded is shown once, whatever its annotations say",
        ),
      ),
      ours(
        "i.21",
        "Two writers of one MachineConfigNode lose no condition, and parents agree with their children in every version.",
        seeds,
        planted("invariant 25: *"),
      ),
    ],
  },
  {
    id: "sim",
    title: "The simulation of the control plane",
    rows: [
      ours(
        "sim faults",
        "Conflicts, views that are old, watches that skip, lag, stall or are cut, requests and answers that are lost, changes of leaders, crashes, power cuts, boots that fail: all of them happen, or the run fails.",
        seeds,
      ),
      ours(
        "sim budget",
        "No healthy machine is taken while as many as the budget allows are away, and none of the control plane beside another.",
        seeds,
        planted("invariant 1: *", "invariant 2: *"),
      ),
      ours(
        "sim drain",
        "No pod goes against its budget; no reboot without its drain.",
        seeds,
        planted("invariant 3: *", "invariant 6: *"),
      ),
      ours(
        "sim status",
        "At quiet times a pool's status is what follows from all objects as they are; processes that start anew move no count.",
        seeds,
        planted("invariant 15: *"),
      ),
      ours(
        "sim quarantine",
        "No healthy machine is given a target that another went back from.",
        seeds,
        planted("invariant 9: *"),
      ),
      ours("sim paused", "No machine of a paused pool is taken.", seeds, planted("invariant 16: *")),
      better(
        "P1",
        "sim cure",
        "A machine that is out of service gets the newest target with the first healthy ones.",
        seeds,
        planted("invariant 19: *"),
      ),
      ours(
        "sim end",
        "Once faults stop, every machine ends on the newest target and stays there.",
        seeds,
        planted("invariant 18: *"),
      ),
      ours(
        "sim lines",
        "A story line that a machine has settled comes to its journal once, in its writer's order, and as it was written down.",
        seeds,
        planted("invariant 21: *"),
      ),
      ours(
        "sim twice",
        "Of an update nothing is told twice, however often a daemon looks and whatever starts it again.",
        seeds,
        planted("invariant 23: *"),
      ),
      ours(
        "sim stories",
        "The story of a machine's last update ends when the update does, and well.",
        seeds,
        planted("invariant 22: *"),
      ),
      ours(
        "sim same",
        "The same seed gives the same run, event for event.",
        inFile("test/simulation/determinism.test.ts")(
          "the same seed gives the same run, event for event, and another seed another one",
        ),
      ),
    ],
  },
];
