import { describe, expect, test } from "vitest";
import { startOperator } from "../../test/support/operator-harness.ts";
import { untilSeen } from "../../test/support/until-seen.ts";
import { type CustomResourceDefinition, kubernetes } from "../api/foreign/kubernetes.ts";
import { type FeatureGate, openshift } from "../api/foreign/openshift.ts";
import { KubeletConfig } from "../api/kinds/kubelet-config.ts";
import { openshiftKinds } from "../cluster/openshift-kinds.ts";
import type { KubeClient } from "../kube/kube-client.ts";

const definition = openshiftKinds.find(({ spec }) => (spec["names"] as { kind?: string }).kind === "FeatureGate");
const install = (kube: KubeClient) =>
  kube.create<CustomResourceDefinition>(kubernetes.CustomResourceDefinition, definition as never);
const choose = (kube: KubeClient) =>
  untilSeen(
    "a FeatureGate can be written",
    () =>
      kube
        .create<FeatureGate>(openshift.FeatureGate, {
          apiVersion: openshift.FeatureGate.apiVersion,
          kind: openshift.FeatureGate.kind,
          metadata: { name: "cluster" },
          spec: { featureSet: "TechPreviewNoUpgrade" },
        })
        .then(
          () => true,
          () => false,
        ),
    (isWritten) => isWritten,
  );
const field = "systemGomaxprocsBehavior";
/** Whether the API server keeps the field; `undefined` until it serves the kind. */
const keepsField = (kube: KubeClient) => {
  const object = { apiVersion: KubeletConfig.apiVersion, kind: KubeletConfig.kind, metadata: { name: "a" } };
  return kube.create(KubeletConfig, { ...object, spec: { [field]: "Disabled" } } as never, { dryRun: true }).then(
    ({ spec }) => field in spec,
    () => undefined,
  );
};
const firstAnswer = (kube: KubeClient) =>
  untilSeen(
    "the kind is served",
    () => keepsField(kube),
    (isKept) => isKept !== undefined,
    { seconds: 120 },
  );

describe("the operator's definitions", () => {
  test("have the fields of features that the cluster chose, from their first version on [operator-features-1]", async () => {
    const { kube } = await startOperator(async (admin) => {
      await install(admin);
      await choose(admin);
    });
    expect(await firstAnswer(kube)).toBe(true);
  });

  test("get them once it chooses them, and lack them before [operator-features-2]", async () => {
    const { kube } = await startOperator();
    expect(await firstAnswer(kube)).toBe(false);
    await install(kube);
    await choose(kube);
    await untilSeen(
      "the field",
      () => keepsField(kube),
      (isKept) => isKept === true,
      { seconds: 120 },
    );
  });
});
