import { type Pod, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { keyOf } from "../../../api/schema/object.ts";
import type { Context } from "../../../kube/controller.ts";
import { updateObject } from "../../../kube/kube-client.ts";
import { KubeError, isNotFound, isPassing } from "../../../kube/kube-error.ts";
import { eachAtOnce } from "../../../ports/each-at-once.ts";
import { namespacesInTurn } from "../namespaces-in-turn.ts";

const podsAtOnce = 20;
/** Refused changes are tried again after this time: a tenant may keep a namespace full for as long as they like. */
const refusedAgainSeconds = 60;
const shownPods = 20;

export interface PodFailure {
  readonly pod: Pod;
  readonly error: unknown;
}

/** Whether the API server refuses a write, as it does in a full namespace, and may go on to refuse it. */
const isRefused = (error: unknown): error is KubeError =>
  error instanceof KubeError && !isPassing(error) && !isNotFound(error);

/**
 * Changes the status of this pod, and of no other of its name.
 *
 * @returns why the API server refused it; `undefined`: it is written, or needed no change.
 */
export async function changeStatus(
  pod: Pod,
  change: (fresh: Pod) => NonNullable<Pod["status"]> | undefined,
  { kube, signal }: Pick<Context, "kube" | "signal">,
): Promise<KubeError | undefined> {
  try {
    await updateObject(
      kube,
      kubernetes.Pod,
      pod.metadata,
      (fresh) => {
        const status = fresh.metadata.uid === pod.metadata.uid ? change(fresh) : undefined;
        return status === undefined ? undefined : { status };
      },
      { subresource: "status", cached: pod, signal },
    );
    return undefined;
  } catch (error) {
    if (isRefused(error)) return error;
    throw error;
  }
}

/**
 * Carries out work for each pod, a few at a time, namespaces in turn. A failure delays no other pod; a pod that is gone is
 * no failure.
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
 * Reports the failures of a pass at its end. Throws a failure that may pass.
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
