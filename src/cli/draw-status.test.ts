import { expect, test } from "vitest";
import type { MachineConfiguration } from "../api/machine-configuration.ts";
import { clusterStatus } from "../core/cluster-status.ts";
import { drawStatus } from "./draw-status.ts";

const drawn = (...conditions: readonly (readonly [type: string, status: string, reason: string, message: string])[]) => {
  const machineConfiguration = { metadata: { name: "cluster" }, status: { conditions: conditions.map(([type, status, reason, message]) => ({ type, status, reason, message, lastTransitionTime: "" })) } } as unknown as MachineConfiguration;
  return drawStatus(clusterStatus({ pools: [], nodes: [], machineConfigNodes: [], clusterOperators: [], machineConfigurations: [machineConfiguration] }), { colours: false, width: 100 });
};

test("the status says that all parts of the suite are well, or which is not, and why", () => {
  const well = [["OperatorHealthy", "True", "AsExpected", ""], ["StateKeeping", "True", "AsExpected", ""], ["BootstrapComplete", "False", "BootstrapJournalMissing", "none"]] as const;
  expect(drawn(...well)).toContain("suite     well       Operator, StateKeeping");
  expect(drawn(...well, ["DaemonsHealthy", "False", "DaemonSilent", "worker-0 since 10:00"], ["ControllerHealthy", "Unknown", "NotKnown", "nothing was heard"]).filter((line) => line.startsWith("suite"))).toEqual(["suite     Controller: NotKnown  nothing was heard", "suite     Daemons: DaemonSilent  worker-0 since 10:00"]);
});

test("it says nothing of parts that nobody looks after, and takes no roll-out for a trouble", () => {
  expect(drawn(["Other", "False", "x", ""], ["UpdateProgressing", "False", "AsExpected", ""]).join()).not.toContain("suite");
});
