import type { ClusterMembers } from "../core/pool/cluster-members.ts";
import type { Context } from "../kube/controller.ts";
import { KubeError } from "../kube/kube-error.ts";
import type { ReportMemory } from "./report-pool.ts";

/**
 * Whether the API server refuses a write because of the object itself: too large, or with a value that is none. Root on a
 * machine writes the annotations of its Node, whose size is limited and some of which are copied.
 */
const isOfObject = (error: unknown): boolean =>
  error instanceof KubeError && (error.httpStatus === 413 || error.httpStatus === 422);

/**
 * Runs the writes of one machine. A refusal that its own objects cause is reported, and is no failure of its pool: the
 * other machines must not wait for it.
 *
 * @param name of the machine.
 */
export async function writesOfMachine<T>(
  name: string,
  memory: { readonly cluster: ClusterMembers; readonly reports: ReportMemory; now(): number },
  { report, log }: Pick<Context, "report" | "log">,
  work: () => Promise<T>,
): Promise<T | "refused"> {
  try {
    return await work();
  } catch (error) {
    if (!isOfObject(error)) throw error;
    const node = memory.cluster.node(name)?.node;
    if (node === undefined || memory.reports.claims.take(`refused ${name}`, memory.now()) > 0) return "refused";
    log.warn({ node: name, error }, "the API server refuses what is written of a machine");
    report({
      about: node,
      notice: "MachineNotWritten",
      message: `The API server refuses what is written of ${name}, so that it gets no target: its annotations are too large, or name what cannot exist; the controller's log has the answer`,
    });
    return "refused";
  }
}
