import type { Node } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { annotations, fieldManagers, machineConfigNodeConditions as types } from "../api/names.ts";
import { type PhaseReport, childReason, withPhases } from "../core/books/update-conditions.ts";
import { parseDrainRequest } from "../core/machine/drain-requests.ts";
import { drainProgressReason } from "../core/pool/decide-drain.ts";
import type { Uncordoned } from "../core/pool/drain-changes.ts";
import type { DrainReport } from "../core/pool/drain-decision.ts";
import { drainReasons } from "../core/pool/drain-step.ts";
import type { Context } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";

/** The context of a journal line of a request; another form of request names the run by its whole text. */
const linesOf = (name: string, request: string) =>
  ({ book: `node/${name}`, chapter: "Update", run: parseDrainRequest(request)?.config ?? request }) as const;

/** The context of a journal line of the request that a node has. */
const linesOfNode = ({ metadata }: Node) =>
  linesOf(metadata.name, metadata.annotations?.[annotations.desiredDrain] ?? "");

/** Reports the cordon of a node. */
export function reportCordon(node: Node, again: boolean, { report }: Context): void {
  const { name } = node.metadata;
  report({
    about: node,
    ...linesOfNode(node),
    path: "Executed/Cordoned",
    mark: "end",
    level: "boundary",
    reason: again ? "CordonedAgain" : "Cordoned",
    message: again
      ? `Cordoned ${name} again: it had been put back into service while its drain was still needed`
      : `Cordoned ${name} to apply update`,
  });
}

/** Reports the cordon of a node that another client cordoned. */
export function reportForeignCordon(node: Node, { report }: Context): void {
  report({
    about: undefined,
    ...linesOfNode(node),
    path: "Executed/Cordoned",
    mark: "end",
    level: "boundary",
    reason: "Cordoned",
    message: "it was already cordoned",
  });
}

/** Reports that pods begin to leave: how many, and what they will meet, as far as that could be foreseen. */
export function reportBeginning(
  node: Node,
  { pods, foreseen }: { readonly pods: number | undefined; readonly foreseen: string | undefined },
  { report }: Context,
): void {
  const message = `${pods === undefined ? "pods have" : pods === 1 ? "1 pod has" : `${pods} pods have`} to leave${foreseen === undefined ? "" : `; foreseen: ${foreseen}`}`;
  report({
    ...linesOfNode(node),
    path: "Executed/Drained",
    mark: "begin",
    level: "boundary",
    reason: "Draining",
    message,
    ...(pods === undefined ? {} : { data: { pods } }),
  });
}

/** Reports that a drain is blocked or late, or deletes a pod against its protections. */
export function reportHold(
  node: Node,
  { reason, message }: DrainReport | { readonly reason: "DrainForced"; readonly message: string },
  { report }: Context,
): void {
  report({
    about: node,
    ...linesOfNode(node),
    path: "Executed/Drained",
    mark: "note",
    level: "boundary",
    reason,
    message,
  });
}

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
  context.report({
    about: node,
    ...linesOf(name, request),
    path: "Executed/Drained",
    mark: "end",
    level: "boundary",
    outcome: "Skipped",
    reason: drainReasons.skipped,
    message,
  });
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
  context.report({
    ...linesOf(name, request),
    path: "Executed/Drained",
    mark: "end",
    level: "boundary",
    reason: "Drained",
    message,
  });
  await writePhases(
    name,
    [cordonedPhase(name), { type: types.drained, status: "True", reason: drainProgressReason, message }],
    context,
  );
}

/** Reports that a node is back in service, or why it is not. */
export async function reportUncordon(
  node: Node,
  { request, remedy, wasCordoned }: Uncordoned,
  context: Context,
): Promise<void> {
  const { name } = node.metadata;
  const how = remedy ? "back in service" : wasCordoned ? "a cordon that is not ours stays" : "in service as it was";
  context.report({
    about: remedy ? node : undefined,
    ...linesOf(name, request),
    path: "Complete/Uncordoned",
    mark: "end",
    level: "boundary",
    reason: remedy || !wasCordoned ? "Uncordoned" : "CordonStays",
    message: remedy ? `Update completed for ${name}: it is back in service` : how,
  });
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
          : {
              status: {
                conditions: [...conditions],
                observedGeneration: Math.max(object.status?.observedGeneration ?? 1, object.metadata.generation ?? 1),
              },
            };
      },
      { subresource: "status", owner: fieldManagers.drain, signal, byItem: true },
    );
  } catch (error) {
    if (!signal.aborted) log.warn({ error }, "MachineConfigNode not written");
  }
}
