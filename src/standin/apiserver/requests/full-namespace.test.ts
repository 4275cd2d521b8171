import { expect, onTestFinished, test } from "vitest";
import { fillWithPods } from "../../../../test/support/fill-namespace.ts";
import { type Pod, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { createKubeClient } from "../../../kube/kube-client.ts";
import { silentLogger } from "../../../ports/logger.ts";
import { systemClock, systemRandom } from "../../../ports/node/index.ts";
import { sharedSecretKeys } from "../access/service-account-tokens.ts";
import type { UserInfo } from "../schema/contract.ts";
import { createApiServer } from "../server.ts";
import { memoryStore } from "../storage/memory-store.ts";
import { roomIn } from "../storage/room.ts";

const namespace = "full";

/** A server with little room, with a namespace in which `eve` may write. */
async function serverWithTenant() {
  const room = roomIn(16 * 1024 * 1024);
  const server = createApiServer({
    store: memoryStore(),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    tokenKeys: sharedSecretKeys(systemRandom.bytes(32)),
    // Pods alone fill the namespace.
    room: { ...room, namespaceBytes: room.resourceBytes },
  });
  onTestFinished(() => server.close());
  const as = (user: UserInfo) =>
    createKubeClient({ transport: server.as(user), clock: systemClock, random: systemRandom, userAgent: "test" });
  const admin = as({ name: "admin", groups: ["system:masters"] });
  await admin.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  const apiGroup = "rbac.authorization.k8s.io";
  await admin.create(kubernetes.RoleBinding, {
    apiVersion: `${apiGroup}/v1`,
    kind: "RoleBinding",
    metadata: { name: "eve", namespace },
    roleRef: { apiGroup, kind: "ClusterRole", name: "edit" },
    subjects: [{ kind: "User", name: "eve", apiGroup }],
  });
  return { admin, as, eve: as({ name: "eve", groups: ["system:authenticated"] }) };
}

test("in a full namespace pods are bound, evicted, finalized, and get their statuses [apiserver-full-1]", async () => {
  const { admin, as, eve } = await serverWithTenant();
  const labels = { app: "a" };
  const container = { name: "c", image: "i" };
  await admin.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "n" } });
  for (const [name, nodeName] of Object.entries({ runs: "n", waits: undefined }))
    await eve.create<Pod>(kubernetes.Pod, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace, labels, finalizers: ["batch.kubernetes.io/job-tracking"] },
      spec: { containers: [container], ...(nodeName === undefined ? {} : { nodeName }) },
    });
  const budget = { name: "a", namespace };
  await eve.create(kubernetes.PodDisruptionBudget, {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: budget,
    spec: { minAvailable: 1, selector: { matchLabels: labels } },
  });
  const allowed = {
    observedGeneration: 1,
    disruptionsAllowed: 1,
    currentHealthy: 2,
    desiredHealthy: 1,
    expectedPods: 2,
  };
  const body = { status: allowed };
  await admin.patch(kubernetes.PodDisruptionBudget, budget, { type: "merge", body }, { subresource: "status" });
  await fillWithPods(eve, namespace, { spec: { containers: [container] } });

  const kubelet = as({ name: "system:node:n", groups: ["system:nodes"] });
  const runs = { name: "runs", namespace };
  const conditions = [{ type: "Ready", status: "True" }];
  const running = { status: { phase: "Running", conditions } };
  const shown = await kubelet.patch(kubernetes.Pod, runs, { type: "merge", body: running }, { subresource: "status" });
  expect(shown).toMatchObject(running);
  const waits = { name: "waits", namespace };
  const target = `/api/v1/namespaces/${namespace}/pods`;
  const headers = { "content-type": "application/json" };
  const post = (path: string, sent: object) =>
    admin.request({ method: "POST", target: `${target}/${path}`, headers, body: JSON.stringify(sent) });
  await post("waits/binding", { target: { kind: "Node", name: "n" } });
  await post("runs/eviction", { metadata: { name: "runs" } });
  expect(await admin.get(kubernetes.PodDisruptionBudget, budget)).toMatchObject({
    status: { disruptionsAllowed: 0, disruptedPods: { runs: expect.any(String) } },
  });
  for (const key of [runs, waits])
    await admin.patch(kubernetes.Pod, key, { type: "merge", body: { metadata: { finalizers: null } } });
  await kubelet.delete(kubernetes.Pod, runs, { gracePeriodSeconds: 0 });
  expect(await admin.get(kubernetes.Pod, runs)).toBeUndefined();
  expect(await admin.get<Pod>(kubernetes.Pod, waits)).toMatchObject({ spec: { nodeName: "n" } });
});
