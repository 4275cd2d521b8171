import type { Node } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { fieldManagers, machineConfigNodeConditions as types } from "../api/names.ts";
import { type PhaseReport, childReason, withPhases } from "../core/books/update-conditions.ts";
import { drainProgressReason } from "../core/pool/decide-drain.ts";
import type { Uncordoned } from "../core/pool/drain-changes.ts";
import { drainReasons } from "../core/pool/drain-step.ts";
import type { Context } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import { drainGivenUp, nodeDrained, nodeUncordoned } from "./reports.ts";

/** Writes the progress of a drain into the MachineConfigNode. */
export const reportProgress = (
  name: string,
  { reason, message }: { readonly reason: string; readonly message: string },
  context: Context,
): Promise<void> =>
  writePhases(name, [cordonedPhase(name), { type: types.drained, status: "Unknown", reason, message }], context);

/** Reports a drain that was given up for now. */
export async function reportSkipped(
  node: Node,
  { request, message }: { readonly request: string; readonly message: string },
  context: Context,
): Promise<void> {
  const { name } = node.metadata;
  context.report(drainGivenUp(node, request, message));
  const notNow = { status: "False", reason: drainReasons.skipped } as const;
  await writePhases(
    name,
    [
      { type: types.cordoned, ...notNow, message: "the drain was given up for now" },
      { type: types.drained, ...notNow, message },
    ],
    context,
  );
}

/** Reports that all pods of a node have left. */
export async function reportDrained(name: string, request: string, context: Context): Promise<void> {
  const message = "all pods have left";
  context.report(nodeDrained(name, request));
  await writePhases(
    name,
    [cordonedPhase(name), { type: types.drained, status: "True", reason: drainProgressReason, message }],
    context,
  );
}

/** Reports that a node is back in service, or why it is not. */
export async function reportUncordon(node: Node, uncordoned: Uncordoned, context: Context): Promise<void> {
  const { request, remedy, wasCordoned } = uncordoned;
  const { name } = node.metadata;
  const how = remedy ? "back in service" : wasCordoned ? "a cordon that is not ours stays" : "in service as it was";
  context.report(nodeUncordoned(node, uncordoned, how));
  const message = `last: ${remedy ? "uncordoned" : how} (${request})`;
  await writePhases(name, [{ type: types.uncordoned, status: "False", reason: "Done", message }], context);
}

const cordonedPhase = (name: string): PhaseReport => ({
  type: types.cordoned,
  status: "True",
  reason: childReason(types.updateExecuted, types.cordoned),
  message: `${name} takes no new pods`,
});

/** Writes conditions of the MachineConfigNode. The drain never waits for its report: a failed write is logged. */
async function writePhases(
  name: string,
  reports: readonly PhaseReport[],
  { kube, clock, log, signal }: Context,
): Promise<void> {
  try {
    await updateObject(
      kube,
      MachineConfigNode,
      { name },
      (object) => {
        const before = object.status?.conditions ?? [];
        const conditions = withPhases(before, reports, clock.now());
        return conditions === before
          ? undefined
          : // The daemon alone says which target it has seen.
            { status: { conditions: [...conditions] } };
      },
      { subresource: "status", owner: fieldManagers.drain, signal, byItem: true },
    );
  } catch (error) {
    if (!signal.aborted) log.warn({ error }, "MachineConfigNode not written");
  }
}
