import { describe, expect, test } from "vitest";
import { startOperator, until } from "../../test/support/operator-harness.ts";
import { untilSeen } from "../../test/support/until-seen.ts";
import { ClusterOperator } from "../api/foreign/cluster-operator.ts";
import { type CustomResourceDefinition, kubernetes } from "../api/foreign/kubernetes.ts";
import { type FeatureGate, openshift } from "../api/foreign/openshift.ts";
import { KubeletConfig } from "../api/kinds/kubelet-config.ts";
import { namespace, objects } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import { openshiftKinds } from "../standin/cluster/openshift-kinds.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { suiteRights } from "./rights.ts";

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

  test.for([
    { title: "keep the fields of all features", hasKind: true, keeps: true },
    { title: "are those of a cluster without features where there are none", hasKind: false, keeps: false },
  ])(
    "$title while the operator has the rights of an earlier release, and it says which it lacks [operator-features-3]",
    async ({ hasKind, keeps }) => {
      const account = {
        name: `system:serviceaccount:${namespace}:${objects.operator}`,
        groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
      };
      const role = suiteRights().find(
        ({ kind, metadata }) => kind === "ClusterRole" && metadata.name === objects.operator,
      );
      const { kube } = await startOperator(
        async (admin) => {
          const { rules } = role as unknown as { readonly rules: readonly { readonly resources: readonly string[] }[] };
          const before = rules.map((rule) => ({
            ...rule,
            resources: rule.resources.filter((resource) => resource !== "featuregates"),
          }));
          await admin.patch(
            kubernetes.ClusterRole,
            { name: objects.operator },
            { type: "merge", body: { rules: before.filter(({ resources }) => resources.length > 0) } },
          );
          if (!hasKind) return;
          await install(admin);
          await choose(admin);
        },
        { account },
      );
      expect(await firstAnswer(kube)).toBe(keeps);
      const operatorIs = (status: string, reason: string) =>
        until(kube, ClusterOperator, { name: objects.clusterOperator }, (operator) => {
          const degraded = conditionOf(operator.status?.conditions, "Degraded");
          return degraded?.status === status && degraded.reason === reason;
        });
      const outdated = await operatorIs("True", "RightsOutdated");
      const { message } = conditionOf(outdated.status?.conditions, "Degraded") ?? {};
      expect(message).toContain(
        hasKind ? "may not get featuregates of config.openshift.io" : `ClusterRole ${objects.operator} differs`,
      );
      expect(message).toContain("kubectl apply -f install/namespace.yaml -f install/rights.yaml");

      if (!hasKind) return;
      await kube.apply(kubernetes.ClusterRole, role as never, { owner: "administrator", force: true });
      await operatorIs("False", "AsExpected");
      expect(await keepsField(kube)).toBe(keeps);
    },
  );
});
