import { type Section, better, tests, ours, same, skip } from "./define-rows.ts";
const seeds = [...tests("simulation-seeds-even-1"), ...tests("simulation-seeds-odd-1")];

export const measured: readonly Section[] = [
  {
    id: "C15",
    title: "Metrics and alerts",
    rows: [
      same(
        "C15 counts",
        "How many machines a pool has, how many are updated, degraded, out of service.",
        tests("metrics-2"),
      ),
      same("C15 mcc_drain_err", "Machines whose drain takes longer than their pool allows.", tests("metrics-2")),
      ours(
        "C15 mco_state",
        "One sample for each machine that is there, and none for those that are gone: the label set does not grow.",
        tests("metrics-3"),
      ),
      same("C15 mcc_pool_alert", "A machine of the control plane that a custom pool selects.", tests("metrics-4")),
      same("C15 os_image_url_override", "Pools whose OS image was chosen.", tests("metrics-4")),
      same("C15 boot images", "That nobody looks how old boot images are.", tests("metrics-4")),
      ours(
        "C15 mcc_sub_controller_state",
        "When looks of each controller last ended in which way; without a label for the object, of which there is no end.",
        tests("metrics-alerts-1"),
      ),
      same(
        "C15 mcd",
        "The daemon's own figures, with words of a closed list where the reference puts texts.",
        tests("daemon-status-handler-1"),
      ),
      better(
        "S7",
        "C15 waiting",
        "How many machines wait, by why, and in which phase the others are.",
        tests("metrics-5"),
      ),
      ours(
        "C15 roll-out",
        "How long roll-outs take, and took; what several changes cost together that they would have cost one by one.",
        tests("metrics-rollout-meter-1", "metrics-rollout-meter-2", "metrics-rollout-meter-3"),
      ),
      ours(
        "C15 who",
        "Figures are given to whom the API server says may read them; the server's own rules of who are its RBAC.",
        tests("scenario-install-2"),
      ),
      ours(
        "C15 alerts",
        "Every alert names metrics that there are, and says what it means, how to see it and what to do.",
        tests("metrics-alerts-2", "metrics-alerts-3", "metrics-alerts-4", "metrics-alerts-5", "metrics-alerts-1"),
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
        tests("simulation-write-budget-1", "simulation-write-budget-2"),
      ),
      ours(
        "i.1 writes",
        "It writes the MachineConfigNode at most 8 times, the Node 6 times, for its drain 4 times, its target once, its journal 4 times, 25 times in all with its chapter, and sends at most 40 KiB.",
        tests("simulation-write-budget-3", "simulation-write-budget-4"),
      ),
      ours(
        "i.2",
        "What an update did not need, and what it did in place of a reboot, stays readable after it.",
        tests("simulation-write-budget-5", "simulation-write-budget-6"),
        tests("books-update-conditions-7"),
      ),
      ours(
        "i.6",
        "A machine that somebody cordoned, or that joins, keeps its pool updated, and is named.",
        tests("pool-status-1"),
      ),
      ours("i.7", "A MachineConfigNode without conditions hides no machine.", tests("pool-status-2")),
      ours(
        "i.8",
        "A machine that is degraded by one source and done by the other is shown once.",
        tests("pool-status-3"),
      ),
      ours(
        "i.21",
        "Two writers of one MachineConfigNode lose no condition, and parents agree with their children in every version.",
        seeds,
        tests("simulation-planted-bugs-1"),
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
        tests("simulation-planted-bugs-1"),
      ),
      ours(
        "sim drain",
        "No pod goes against its budget; no reboot without its drain.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours(
        "sim status",
        "At quiet times a pool's status is what follows from all objects as they are; processes that start anew move no count.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours(
        "sim quarantine",
        "No healthy machine is given a target that is quarantined.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours("sim paused", "No machine of a paused pool is taken.", seeds, tests("simulation-planted-bugs-1")),
      better(
        "P1",
        "sim cure",
        "A machine that is out of service gets the newest target with the first healthy ones.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours(
        "sim end",
        "Once faults stop, every machine ends on the newest target and stays there.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours(
        "sim lines",
        "A story line that a machine has settled comes to its journal once, in its writer's order, and as it was written down.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours(
        "sim twice",
        "Of an update nothing is told twice, however often a daemon looks and whatever starts it again.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours(
        "sim stories",
        "The story of a machine's last update ends when the update does, and well.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours("sim same", "The same seed gives the same run, event for event.", tests("simulation-determinism-1")),
    ],
  },
];
