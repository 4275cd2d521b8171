import { type Pod, kubernetes } from "../api/foreign/kubernetes.ts";
import {
  type KnownBudgets,
  knownBudgets,
  mostComparedBudgets,
  namespaceOf,
  trimBudget,
} from "../core/pool/disruption-budgets.ts";
import type { AskedPod, DrainForecast } from "../core/pool/drain-decision.ts";
import { type BlockedPod, planDrain, trimPod } from "../core/pool/plan-drain.ts";
import type { Context } from "../kube/controller.ts";
import { KubeError, isNotFound, isPassing, isTooManyRequests } from "../kube/kube-error.ts";
import { eachAtOnce } from "../ports/each-at-once.ts";

/** Requests that one drain has under way at once. */
const requestsAtOnce = 8;

/** The pods of a node, as the server has them now. */
export const podsOn = async (name: string, { kube, signal }: Context): Promise<readonly Pod[]> =>
  (await kube.list(kubernetes.Pod, { fieldSelector: `spec.nodeName=${name}` }, { signal, keep: trimPod })).items;

/** The budgets of some namespaces, as the server has them now. */
export async function listBudgets(
  namespaces: readonly string[],
  { kube, signal }: Pick<Context, "kube" | "signal">,
): Promise<KnownBudgets> {
  // One more than are compared shows that there are too many.
  const most = mostComparedBudgets + 1;
  const lists = await eachAtOnce(namespaces, requestsAtOnce, (namespace) =>
    kube.list(kubernetes.PodDisruptionBudget, { namespace }, { signal, keep: trimBudget, most }),
  );
  return knownBudgets(lists.flatMap(({ items }) => items));
}

/** The namespaces of some blocked pods. */
export const namespacesOf = (blocked: readonly BlockedPod[]): readonly string[] =>
  [...new Set(blocked.map(({ pod }) => namespaceOf(pod)))].sort();

/** Finds out by a dry run which pods would be evicted. A failed prediction blocks nothing. */
export async function foresee(name: string, context: Context): Promise<DrainForecast | undefined> {
  const { log, signal } = context;
  try {
    const plan = planDrain(await podsOn(name, context));
    const blocked = (await evictEach(plan.evict, context, { dryRun: true })).flatMap((result) =>
      result.verdict === "blocked" ? [result] : [],
    );
    return { plan, blocked, budgets: await listBudgets(namespacesOf(blocked), context) };
  } catch (error) {
    if (signal.aborted) throw error;
    log.warn({ node: name, error }, "what the drain will meet could not be foreseen");
    return undefined;
  }
}

/** Asks for every pod; an eviction that fails keeps no other pod back, and is thrown at the end. */
export async function evictEach(
  pods: readonly Pod[],
  context: Context,
  { dryRun }: { readonly dryRun: boolean },
): Promise<readonly AskedPod[]> {
  const failures: unknown[] = [];
  const results = await eachAtOnce(pods, requestsAtOnce, async (pod) => {
    try {
      return [await evict(pod, context, dryRun)];
    } catch (error) {
      failures.push(error);
      return [];
    }
  });
  if (failures.length > 0) throw failures[0];
  return results.flat();
}

async function evict(pod: Pod, { kube, signal }: Context, dryRun: boolean): Promise<AskedPod> {
  try {
    await kube.evict(pod, { signal, dryRun });
    return { verdict: "leaving", pod };
  } catch (error) {
    if (isNotFound(error)) return { verdict: "gone" };
    // A busy server is no budget. 500 is what a pod with two budgets gets (pkg/registry/core/pod/storage/eviction.go,
    // v1.34).
    if (!(error instanceof KubeError) || (isPassing(error) && error.httpStatus !== 409 && error.httpStatus !== 500))
      throw error;
    // A replacement of the same name is another pod, and does not concern this one.
    if (error.httpStatus === 409) return { verdict: "leaving", pod };
    const { httpStatus } = error;
    const causes = (error.status.details?.causes ?? []).flatMap(({ message }) => message ?? []);
    const answer =
      isTooManyRequests(error) && causes.length > 0 ? causes.join(" ") : (error.status.message ?? error.message);
    const byBudget = httpStatus === 429 || (httpStatus === 500 && /more than one PodDisruptionBudget/.test(answer));
    return { verdict: "blocked", pod, by: byBudget ? "pdb" : httpStatus === 500 ? "failed" : "refused", why: answer };
  }
}

/** Deletes a pod without asking its budget. */
export async function deletePod({ metadata }: Pod, { kube, signal }: Context): Promise<void> {
  await kube
    .delete(
      kubernetes.Pod,
      { name: metadata.name, namespace: metadata.namespace ?? "" },
      { ...(metadata.uid === undefined ? {} : { uid: metadata.uid }), signal },
    )
    .catch((error: unknown) => {
      // Another pod has this name by now.
      if (!(error instanceof KubeError) || error.httpStatus !== 409) throw error;
    });
}
