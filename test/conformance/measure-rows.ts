import { type Section, better, tests, ours, same, skip } from "./define-rows.ts";
const seeds = [...tests("simulation-seeds-even-1"), ...tests("simulation-seeds-odd-1")];

export const measured: readonly Section[] = [
  {
    id: "C15",
    title: "Metrics and alerts",
    rows: [
      same(
        "C15 counts",
        "The number of machines of a pool, and of updated, degraded and unavailable ones.",
        tests("metrics-2"),
      ),
      same("C15 mcc_drain_err", "Machines whose drain exceeds their pool's limit.", tests("metrics-2")),
      ours(
        "C15 mco_state",
        "One sample for each existing machine, none for removed ones: the label set does not grow.",
        tests("metrics-3"),
      ),
      same("C15 mcc_pool_alert", "A control-plane machine that a custom pool selects.", tests("metrics-4")),
      same("C15 os_image_url_override", "Pools with an overridden OS image.", tests("metrics-4")),
      same("C15 boot images", "The age of boot images is not checked.", tests("metrics-4")),
      ours(
        "C15 mcc_sub_controller_state",
        "The last time of each outcome for each controller, without an unbounded label for the object.",
        tests("metrics-alerts-1"),
      ),
      same(
        "C15 mcd",
        "The daemon's metrics, with closed label values where the reference has free text.",
        tests("daemon-status-handler-1"),
      ),
      better(
        "S7",
        "C15 waiting",
        "The number of waiting machines by reason, and of the others by phase.",
        tests("metrics-5"),
      ),
      ours(
        "C15 roll-out",
        "The duration of current and past roll-outs, and the disruptions saved by combining changes.",
        tests("metrics-rollout-meter-1", "metrics-rollout-meter-2", "metrics-rollout-meter-3"),
      ),
      ours(
        "C15 who",
        "Metrics are served to clients that the API server authorizes by RBAC.",
        tests("scenario-install-2"),
      ),
      ours(
        "C15 alerts",
        "Every alert uses existing metrics, and has a meaning, a diagnosis and a remedy.",
        tests("metrics-alerts-2", "metrics-alerts-3", "metrics-alerts-4", "metrics-alerts-5", "metrics-alerts-1"),
      ),
      same("C15 ocl", "Metrics of builds, served by the builder.", tests("os-builder-metrics-1")),
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
        "An update with drain and reboot passes its conditions in order; each transition time changes exactly with its status.",
        tests("simulation-write-budget-1", "simulation-write-budget-2"),
      ),
      ours(
        "i.1 writes",
        "It writes the MachineConfigNode at most 8 times, the Node 6 times, for its drain 4 times, its target once, its journal 4 times, 25 times in all with its chapter, and sends at most 40 KiB.",
        tests("simulation-write-budget-3", "simulation-write-budget-4"),
      ),
      ours(
        "i.2",
        "The conditions still show the skipped phases, and the actions instead of a reboot, after the update.",
        tests("simulation-write-budget-5", "simulation-write-budget-6"),
        tests("books-update-conditions-7"),
      ),
      ours("i.6", "A cordoned or joining machine keeps its pool updated, and is listed.", tests("pool-status-1")),
      ours("i.7", "A MachineConfigNode without conditions hides no machine.", tests("pool-status-2")),
      ours(
        "i.8",
        "A machine that is degraded by one source and done by the other is counted once.",
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
        "Conflicts, stale reads, watches that skip, lag, stall or break, lost requests and answers, leader changes, crashes, power cuts and failed boots all happen, or the run fails.",
        seeds,
      ),
      ours(
        "sim budget",
        "No healthy machine is taken while the budget is used up, and no two control-plane machines at once.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours(
        "sim drain",
        "No pod is evicted against its budget; no reboot without its drain.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours(
        "sim status",
        "At quiet times a pool's status follows from the current objects; restarted processes change no count.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours(
        "sim quarantine",
        "No healthy machine gets a quarantined target.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours("sim paused", "No machine of a paused pool is updated.", seeds, tests("simulation-planted-bugs-1")),
      better(
        "P1",
        "sim cure",
        "An unavailable machine gets the newest target together with the first healthy ones.",
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
        "A persisted line of a machine arrives in its journal once, in its writer's order, and unchanged.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours(
        "sim twice",
        "Nothing of an update is reported twice, regardless of passes and restarts of the daemon.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours(
        "sim stories",
        "The chapter of a machine's last update ends with the update, and successfully.",
        seeds,
        tests("simulation-planted-bugs-1"),
      ),
      ours("sim same", "The same seed gives the same run, event for event.", tests("simulation-determinism-1")),
    ],
  },
];
