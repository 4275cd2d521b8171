import { expect, test } from "vitest";
import { serverWithAdmin } from "../../test/support/server-with-admin.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import type { KubeObject } from "../api/schema/object.ts";
import { judgeShape, kindsToJudge, problemsOfConditions } from "./judge-manifest.ts";
import type { Manifest } from "./manifests.ts";

const values: readonly unknown[] = [
  null,
  {},
  [],
  "",
  "x",
  "7",
  0,
  1,
  -1,
  1.5,
  true,
  false,
  "2020-01-01T00:00:00Z",
  { a: null },
  { a: "" },
  { a: "b" },
  { a: {} },
  [null],
  [{}],
  ["x"],
  ["a.example/x"],
  [{ apiVersion: "v1", kind: "A", name: "a", uid: "b" }],
  [{ apiVersion: 1, kind: "A", name: "a", uid: "b" }],
];
const fields = [
  "generateName",
  "namespace",
  "labels",
  "annotations",
  "ownerReferences",
  "finalizers",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "managedFields",
  "selfLink",
];

/** An object without the fields that a server gives each new object. */
function withoutGiven(object: KubeObject): unknown {
  const metadata: Record<string, unknown> = { ...object.metadata };
  for (const field of ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"])
    delete metadata[field];
  return { ...object, metadata };
}

test("a plan takes of a manifest what the embedded API server stores, or refuses it as the server does [stored-manifests-1]", async () => {
  const { kube } = serverWithAdmin();
  const post = (target: string, object: unknown) =>
    kube.request({
      method: "POST",
      target,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(object),
    });
  await post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", MachineConfigPool.crd());
  const { apiVersion, kind } = MachineConfigPool;
  const kinds = kindsToJudge();
  const outcomes = { stored: 0, refused: 0 };
  let number = 0;
  for (const field of fields)
    for (const value of values) {
      const manifest = {
        apiVersion,
        kind,
        metadata: { name: `a${(number += 1)}`, [field]: value },
        spec: { paused: true },
        status: { machineCount: 3 },
      } as unknown as Manifest;
      const { stored, errors } = judgeShape(manifest, kinds(apiVersion, kind), "change");
      const problems = [...errors, ...problemsOfConditions(manifest, undefined)];
      const ours = problems.length > 0 ? "refused" : withoutGiven(stored);
      const theirs = await post(`/apis/${apiVersion}/machineconfigpools`, manifest).then(
        (object) => withoutGiven(object as KubeObject),
        () => "refused",
      );
      expect({ field, value, object: ours }).toEqual({ field, value, object: theirs });
      outcomes[theirs === "refused" ? "refused" : "stored"] += 1;
    }
  expect(outcomes.stored).toBeGreaterThan(50);
  expect(outcomes.refused).toBeGreaterThan(50);
});
