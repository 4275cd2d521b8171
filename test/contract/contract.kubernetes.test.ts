import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { hasKubernetes, kubernetesTarget } from "../kubernetes/control-plane.ts";
import { Api } from "./api-target.ts";
import { contractCases } from "./cases.ts";

describe.skipIf(!hasKubernetes)("a real kube-apiserver", () => {
  let target: Awaited<ReturnType<typeof kubernetesTarget>>;
  let count = 0;
  beforeAll(async () => {
    const controlPlane = inject("controlPlane");
    if (controlPlane === undefined) throw new Error("there is no control plane");
    target = await kubernetesTarget(controlPlane);
  });
  afterAll(() => target.close());

  test.for([...contractCases])("$title", async ({ run }) => {
    const api = new Api(target);
    const namespace = `case-${process.pid}-${count++}`;
    const made = await api.post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    expect(made.status, made.text).toBe(201);
    await run(api, namespace);
  });
});
