import { McoError } from "../../../api/errors.ts";
import { type Pod, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { type KubeObject, keyOf } from "../../../api/schema/object.ts";
import type { Context } from "../../../kube/controller.ts";
import { KubeError, isAlreadyExists, isConflict } from "../../../kube/kube-error.ts";
import type { Expectations } from "./expectations.ts";

/**
 * Creates pods in batches that double while all goes well, so that a refusal is met once and not a thousand times.
 * Returns the first failure.
 */
export async function createPods(
  pods: readonly Pod[],
  owner: KubeObject,
  expectations: Expectations,
  { kube, clock, events, signal }: Context,
): Promise<unknown> {
  const uid = owner.metadata.uid ?? "";
  const one = async (pod: Pod): Promise<unknown> => {
    const key = keyOf(pod);
    expectations.expect("creation", uid, key, clock.now());
    try {
      await kube.create(kubernetes.Pod, pod, { signal });
      events.event(owner, { type: "Normal", reason: "SuccessfulCreate", message: `Created pod: ${pod.metadata.name}` });
      return undefined;
    } catch (error) {
      // A refusal made nothing. After any other failure the result is unknown until the watch reports it.
      if (error instanceof KubeError && error.httpStatus < 500) expectations.forget(key);
      if (isAlreadyExists(error)) return undefined;
      if (!isTerminatingNamespace(error) && !signal.aborted) {
        const message =
          error instanceof KubeError
            ? (error.status.message ?? error.message)
            : error instanceof Error
              ? error.message
              : String(error);
        events.event(owner, { type: "Warning", reason: "FailedCreate", message: `Error creating: ${message}` });
      }
      return error;
    }
  };
  let start = 0;
  for (let size = 1; start < pods.length; size *= 2) {
    const failures = (await Promise.all(pods.slice(start, start + size).map(one))).filter(
      (failure) => failure !== undefined,
    );
    if (failures.length > 0) return failures[0];
    start += size;
  }
  return undefined;
}

/** Deletes pods, each on condition that it is still the one that was read. Returns the first failure. */
export async function deletePods(
  pods: readonly Pod[],
  owner: KubeObject,
  expectations: Expectations,
  { kube, clock, events, signal }: Context,
): Promise<unknown> {
  const failures = await Promise.all(
    pods.map(async (pod): Promise<unknown> => {
      const key = keyOf(pod);
      expectations.expect("deletion", owner.metadata.uid ?? "", key, clock.now());
      try {
        await kube.delete(kubernetes.Pod, pod.metadata, {
          ...(pod.metadata.uid === undefined ? {} : { uid: pod.metadata.uid }),
          signal,
        });
        events.event(owner, {
          type: "Normal",
          reason: "SuccessfulDelete",
          message: `Deleted pod: ${pod.metadata.name}`,
        });
        return undefined;
      } catch (error) {
        if (error instanceof KubeError && error.httpStatus < 500) expectations.forget(key);
        return isConflict(error) ? undefined : error;
      }
    }),
  );
  return failures.find((failure) => failure !== undefined);
}

/** The namespace is going, and everything in it: there is nothing to try again. */
export function isTerminatingNamespace(error: unknown): boolean {
  return (
    error instanceof KubeError &&
    error.httpStatus === 403 &&
    (error.status.details?.causes ?? []).some(({ reason }) => reason === "NamespaceTerminating")
  );
}

/** An error's own words. */
export function messageOf(error: unknown): string {
  if (error instanceof KubeError) return error.status.message ?? error.message;
  return error instanceof McoError || error instanceof Error ? error.message : String(error);
}
