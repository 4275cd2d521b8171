import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { fieldManagers } from "../api/names.ts";
import { type PhaseReport, withPhases } from "../core/books/update-conditions.ts";
import type { Context } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import { type DrainHappening, drainProgressed } from "./reports.ts";

/** Writes the progress of a drain into the MachineConfigNode. */
export const reportProgress = (
  name: string,
  progress: { readonly reason: string; readonly message: string },
  context: Context,
): Promise<void> => writePhases(name, drainProgressed(name, progress), context);

/** Reports a drain that ended, in all forms. */
export async function reportDrainEnd(name: string, { lines, phases }: DrainHappening, context: Context): Promise<void> {
  context.report(lines);
  await writePhases(name, phases, context);
}

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
