import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { type Pod, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { objects } from "../../src/api/names.ts";
import { connect } from "../../src/cli/connect.ts";
import { podSecurityLabels } from "../../src/core/operator/pod-security.ts";
import { isAlreadyExists } from "../../src/kube/kube-error.ts";
import { hasKubernetes } from "../support/kubernetes/control-plane.ts";
import { exceptions, templateOf, workloads } from "../support/pod-templates.ts";
import { untilSeen } from "../support/until-seen.ts";

const namespace = "attack-pods";

describe.skipIf(!hasKubernetes)("a real API server that enforces the restricted profile", () => {
  let connected: Awaited<ReturnType<typeof connect>>;

  beforeAll(async () => {
    const controlPlane = inject("controlPlane");
    if (controlPlane === undefined) throw new Error("there is no control plane");
    connected = await connect({ kubeconfig: join(controlPlane.directory, "kubeconfig"), component: "test" });
    const { kube } = connected;
    await kube.create(kubernetes.Namespace, {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: namespace, labels: podSecurityLabels("restricted") },
    });
    const accounts = Object.values(workloads()).map((one) => templateOf(one).spec?.serviceAccountName ?? "default");
    for (const name of new Set(accounts))
      await kube
        .create(kubernetes.ServiceAccount, {
          apiVersion: "v1",
          kind: "ServiceAccount",
          metadata: { name, namespace },
        })
        .catch((error: unknown) => {
          if (!isAlreadyExists(error)) throw error;
        });
    await kube.create(kubernetes.PriorityClass, {
      apiVersion: "scheduling.k8s.io/v1",
      kind: "PriorityClass",
      metadata: { name: objects.buildPriority },
      value: -1,
    });
    // The API server learns of a priority class through a watch. It looks the class up before it enforces the profile.
    await untilSeen(
      `${objects.buildPriority} is known`,
      () =>
        kube
          .create(
            kubernetes.Pod,
            {
              apiVersion: "v1",
              kind: "Pod",
              metadata: { name: "prioritized", namespace },
              spec: { priorityClassName: objects.buildPriority, containers: [{ name: "one", image: "none" }] },
            } as Pod,
            { dryRun: true },
          )
          .then(String, String),
      (told) => told.includes("violates PodSecurity"),
    );
  });

  afterAll(async () => {
    const { kube, close } = connected;
    await kube.delete(kubernetes.PriorityClass, { name: objects.buildPriority });
    await kube.delete(kubernetes.Namespace, { name: namespace });
    close();
  });

  const admit = (name: string) => {
    const workload = workloads()[name];
    if (workload === undefined) throw new Error(`there is no workload ${name}`);
    const { metadata, spec } = templateOf(workload);
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace, labels: metadata?.labels ?? {} },
      spec,
    } as Pod;
    return connected.kube.create(kubernetes.Pod, pod, { dryRun: true });
  };

  test.for(Object.keys(workloads()).filter((name) => exceptions[name] === undefined))(
    "admits the pod of %s [attack-pods-5]",
    async (name) => {
      expect((await admit(name)).metadata.name).toBe(name);
    },
  );

  test.for(Object.entries(exceptions))(
    "refuses the pod of %s, for the reasons listed [attack-pods-6]",
    async ([name, reasons]) => {
      const refusal = await admit(name).then(
        () => "admitted",
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
      expect(refusal).toContain('violates PodSecurity "restricted:latest"');
      for (const reason of reasons) expect(refusal).toContain(reason);
    },
  );
});
