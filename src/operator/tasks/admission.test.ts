import { expect, test } from "vitest";
import { type Pod, kubernetes } from "../../api/foreign/kubernetes.ts";
import type { TaskContext } from "../operator-task.ts";
import { admissionTask } from "./admission.ts";

const pod = (name: string, hostIP: string, annotations: Readonly<Record<string, string>>) =>
  ({ metadata: { name, annotations }, status: { phase: "Running", hostIP } }) as unknown as Pod;

test("the webhook is where the controller runs, not where a kubelet says that a pod like it does [operator-admission-2]", async () => {
  const pods = [
    pod("a", "127.0.0.1", { "kubernetes.io/config.mirror": "x" }),
    pod("machine-config-controller-1", "10.0.0.1", {}),
  ];
  const caches = {
    of: (resource: unknown) => ({
      list: () => (resource === kubernetes.Pod ? pods : []),
      get: () => ({ data: { "ca.crt": btoa("authority") } }),
    }),
  };
  const view = await admissionTask.observe({ caches } as unknown as TaskContext);
  expect(admissionTask.decide(view)).toEqual({ do: "serve", address: undefined, ca: "authority" });
});
