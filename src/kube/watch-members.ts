import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import type { ClusterMembers } from "../core/pool/cluster-members.ts";
import { relevantOfMachineConfigNode } from "../core/pool/trim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Watch, machineCoalesceMs, watching } from "./controller.ts";

/** Keeps `members` current with all MachineConfigNodes, and asks for `keys` when a relevant part of one changed. */
export const watchMachineConfigNodes = (members: ClusterMembers, now: () => number, keys: readonly string[]): Watch =>
  watching({
    resource: MachineConfigNode,
    coalesceMs: machineCoalesceMs,
    concerns: ({ key, before, after }) => {
      if (
        before !== undefined &&
        after !== undefined &&
        equalValues(relevantOfMachineConfigNode(before), relevantOfMachineConfigNode(after))
      )
        return [];
      members.putMachineConfigNode(key, after, now());
      return keys;
    },
  });
