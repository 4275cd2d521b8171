import { type Pod, kubernetes } from "../api/foreign/kubernetes.ts";
import { type KubeClient, pathOf } from "../kube/kube-client.ts";
import { belongsToBuild, selectionOfBuild } from "../os-builder/build-names.ts";
import { systemClock } from "../ports/node/index.ts";

/** A container of a small build takes less than a second, and its pod is removed soon after. */
const lookEveryMs = 200;

/** The pod of the build's newest run; `undefined`: there is none, or none any more. */
export async function podOfBuild(kube: KubeClient, build: string, signal: AbortSignal): Promise<Pod | undefined> {
  const { items } = await kube.list(kubernetes.Pod, selectionOfBuild(build), { signal });
  return items
    .filter((pod) => belongsToBuild(build, pod) && isOfJob(pod))
    .toSorted((a, b) => (a.metadata.creationTimestamp ?? "").localeCompare(b.metadata.creationTimestamp ?? ""))
    .at(-1);
}

const isOfJob = ({ metadata }: Pod): boolean =>
  (metadata.ownerReferences ?? []).some(({ kind, controller }) => kind === "Job" && controller === true);

/**
 * The log of a build's pod: its containers one after the other, as they run. With `follow` it goes on until the last one
 * has ended.
 *
 * @param tail the last lines alone: of all containers, and with `follow` of each.
 */
export async function* linesOfBuild(
  kube: KubeClient,
  pod: Pod,
  { follow, tail }: { readonly follow: boolean; readonly tail: number | undefined },
  signal: AbortSignal,
): AsyncGenerator<string> {
  const of = (container: string): AsyncIterable<string> => {
    const query = new URLSearchParams({
      container,
      ...(follow ? { follow: "true" } : {}),
      ...(tail === undefined ? {} : { tailLines: String(tail) }),
    });
    return kube.lines(`${pathOf(kubernetes.Pod, pod.metadata, "log")}?${query.toString()}`, signal);
  };
  if (follow) {
    for (const container of containersIn(pod)) if (await hasBegun(kube, pod, container, signal)) yield* of(container);
    return;
  }
  const last: string[] = [];
  for (const container of containersIn(pod).filter((name) => isBegun(pod, name)))
    for await (const line of of(container)) {
      if (tail === undefined) yield line;
      else if (last.push(line) > tail) last.shift();
    }
  yield* last;
}

/** Names in the order in which the containers run. */
const containersIn = ({ spec }: Pod): readonly string[] =>
  [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(({ name }) => name);

const isBegun = ({ status }: Pod, container: string): boolean =>
  [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].some(
    ({ name, state }) => name === container && (state?.running !== undefined || state?.terminated !== undefined),
  );

/** Waits until a container runs or has ended. `false`: it never will, because the pod has ended or is gone. */
async function hasBegun(kube: KubeClient, pod: Pod, container: string, signal: AbortSignal): Promise<boolean> {
  for (;;) {
    const now = await kube.get(kubernetes.Pod, pod.metadata, { signal });
    if (now === undefined || now.metadata.uid !== pod.metadata.uid) return false;
    if (isBegun(now, container)) return true;
    if (["Succeeded", "Failed"].includes(now.status?.phase ?? "")) return false;
    await systemClock.sleep(lookEveryMs, signal);
  }
}
