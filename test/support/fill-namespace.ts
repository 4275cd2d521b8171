import { type Pod, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { KubeError } from "../../src/kube/kube-error.ts";

/** Whether there was room for what a tenant writes. */
async function isTaken(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (error instanceof KubeError && /leave no room/.test(error.status.message ?? "")) return false;
    throw error;
  }
}

/** Makes as many pods as a namespace takes, each as `podOf` says, and fills the rest to the last bytes. @returns their number. */
export async function fillWithPods(kube: KubeClient, namespace: string, podOf: Partial<Pod>): Promise<number> {
  const pod = (name: string): Pod => ({ apiVersion: "v1", kind: "Pod", ...podOf, metadata: { name, namespace } });
  let count = 0;
  while (await isTaken(kube.create(kubernetes.Pod, pod(`full-${count}`)))) count += 1;
  const grow = (length: number) =>
    isTaken(
      kube.patch(
        kubernetes.Pod,
        { name: "full-0", namespace },
        { type: "merge", body: { metadata: { annotations: { long: "x".repeat(length) } } } },
      ),
    );
  let length = 0;
  for (let more = 16_384; more >= 1; more = more / 2) while (await grow(length + more)) length += more;
  return count;
}
