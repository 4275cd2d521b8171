import type { Pod } from "../../api/foreign/kubernetes.ts";
import { keyOf } from "../../api/schema/object.ts";
import type { Context } from "../../kube/controller.ts";
import { KubeError, isNotFound, isPassing } from "../../kube/kube-error.ts";
import { eachAtOnce } from "../../ports/each-at-once.ts";
import { namespacesInTurn } from "../namespaces-in-turn.ts";

const podsAtOnce = 20;
/** What the API server refused is tried again then: what it says of one pod may last for as long as its author likes. */
const refusedAgainSeconds = 60;
const shownPods = 20;

export interface PodFailure {
  readonly pod: Pod;
  readonly error: unknown;
}

/**
 * Whether the API server refuses to write this object, as in a namespace without room, and may do so for as long as
 * whoever fills it likes.
 */
export const isRefused = (error: unknown): error is KubeError =>
  error instanceof KubeError && !isPassing(error) && !isNotFound(error);

/**
 * Carries out work for each pod, a few at a time, namespaces in turn. A failure keeps no other pod waiting; a pod that is
 * gone is none.
 */
export async function eachPod(
  pods: readonly Pod[],
  work: (pod: Pod) => Promise<unknown>,
  { signal }: Pick<Context, "signal">,
): Promise<readonly PodFailure[]> {
  const failures: PodFailure[] = [];
  await eachAtOnce(namespacesInTurn(pods), podsAtOnce, async (pod) => {
    if (signal.aborted) return;
    try {
      await work(pod);
    } catch (error) {
      if (!isNotFound(error)) failures.push({ pod, error });
    }
  });
  signal.throwIfAborted();
  return failures;
}

/**
 * Reports what failed of a pass that is at its end. Throws a failure that may be over soon.
 *
 * @returns after how many seconds to try again what was refused; `undefined`: nothing was.
 */
export function reportFailures(failures: readonly PodFailure[], { log }: Pick<Context, "log">): number | undefined {
  const refused = failures.filter(({ error }) => isRefused(error));
  const [first] = refused;
  if (first !== undefined)
    log.warn(
      { pods: refused.slice(0, shownPods).map(({ pod }) => keyOf(pod)), count: refused.length, error: first.error },
      "the API server refused to change pods, trying again",
    );
  const passing = failures.find(({ error }) => !isRefused(error));
  if (passing !== undefined) throw passing.error;
  return first === undefined ? undefined : refusedAgainSeconds;
}
