import { describe, expect, test } from "vitest";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { ClusterOperator } from "../../src/api/foreign/cluster-operator.ts";
import { MachineConfiguration } from "../../src/api/kinds/machine-configuration.ts";
import { joinNamespace, namespace, objects } from "../../src/api/names.ts";
import { type KubeObject, conditionOf } from "../../src/api/schema/object.ts";
import { isForbidden } from "../../src/kube/kube-error.ts";
import { suiteRights } from "../../src/operator/rights.ts";
import { installed, startOperator, until } from "../support/operator-harness.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}
const rbac = "rbac.authorization.k8s.io";
const rules = suiteRights().flatMap((manifest) =>
  ((manifest as KubeObject & { readonly rules?: readonly Rule[] }).rules ?? []).map((rule) => ({
    by: manifest.metadata.name,
    ...rule,
  })),
);
const account = (name: string) => ({
  name: `system:serviceaccount:${namespace}:${name}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
});

const condition = (type: string) => ({
  type,
  status: "True" as const,
  reason: "AsExpected",
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
});

describe("a compromised component cannot grant rights that it does not have", () => {
  test("no component may escalate, bind, impersonate, or write roles and bindings [attack-rights-1]", () => {
    const beyond = rules.filter(
      ({ apiGroups, verbs }) =>
        verbs.some((verb) => ["escalate", "bind", "impersonate", "*"].includes(verb)) ||
        (apiGroups.includes(rbac) && verbs.some((verb) => !["get", "list", "watch"].includes(verb))) ||
        apiGroups.includes("*"),
    );
    expect(beyond).toEqual([]);
  });

  test("the operator's account neither binds cluster-admin, nor widens a role of its own, nor makes another token [attack-rights-2]", async () => {
    const { kube, as } = await startOperator();
    await until(
      kube,
      kubernetes.ServiceAccount,
      { name: `${objects.nodeBootstrapperPrefix}worker`, namespace: joinNamespace },
      () => true,
    );
    const operator = as(account(objects.operator));
    const server = as(account(objects.configServer));
    const token = (name: string) => ({
      method: "POST" as const,
      target: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} }),
    });
    for (const attack of [
      () =>
        operator.create(kubernetes.ClusterRoleBinding, {
          apiVersion: `${rbac}/v1`,
          kind: "ClusterRoleBinding",
          metadata: { name: objects.controller },
          roleRef: { apiGroup: rbac, kind: "ClusterRole", name: "cluster-admin" },
          subjects: [{ kind: "ServiceAccount", name: objects.operator, namespace }],
        }),
      () =>
        operator.patch(
          kubernetes.ClusterRole,
          { name: objects.controller },
          { type: "merge", body: { rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }] } },
        ),
      () =>
        operator.patch(
          kubernetes.RoleBinding,
          { name: objects.controller, namespace },
          { type: "merge", body: { subjects: [] } },
        ),
      () => operator.request(token(objects.controller)),
      () => server.request(token(objects.operator)),
    ])
      await expect(attack()).rejects.toSatisfy(isForbidden);
  });

  test("rights of another version are reported with the remedy, and the report ends when they are fixed [attack-rights-3]", async () => {
    const name = objects.controller;
    const { kube } = await startOperator(async (admin) => {
      const role = await admin.get(kubernetes.ClusterRole, { name });
      const rule = { apiGroups: [""], resources: ["secrets"], verbs: ["list"] };
      await admin.patch(
        kubernetes.ClusterRole,
        { name },
        { type: "merge", body: { rules: [...(role?.rules ?? []), rule] } },
      );
    });
    await installed(kube);
    const operatorIs = (status: string, reason: string) =>
      until(kube, ClusterOperator, { name: objects.clusterOperator }, (operator) => {
        const degraded = conditionOf(operator.status?.conditions, "Degraded");
        return degraded?.status === status && degraded.reason === reason;
      });
    const degraded = await operatorIs("True", "RightsOutdated");
    const { message } = conditionOf(degraded.status?.conditions, "Degraded") ?? {};
    expect(message).toContain(`ClusterRole ${name} differs`);
    expect(message).toContain("kubectl apply -f install/namespace.yaml -f install/rights.yaml");
    await expect
      .poll(async () => (await kube.list(kubernetes.Event)).items.map((event) => event.message).join("\n"), {
        timeout: 300_000,
      })
      .toContain("RightsOutdated: RBAC: the rights of the suite are not those of this version");

    const right = suiteRights().find((one) => one.kind === "ClusterRole" && one.metadata.name === name);
    if (right === undefined) throw new Error("the controller has no role");
    await kube.apply(kubernetes.ClusterRole, right, { owner: "administrator", force: true });
    await operatorIs("False", "AsExpected");
  });

  test("of MachineConfigurations, the state process writes its own conditions, and nothing that daemons act on [attack-rights-5]", async () => {
    const { kube, as } = await startOperator();
    await installed(kube);
    const name = objects.machineConfiguration;
    await until(
      kube,
      MachineConfiguration,
      { name },
      ({ status }) => status?.nodeDisruptionPolicyStatus?.clusterPolicies !== undefined,
    );
    const binding = { name: "machine-state-conditions-binding" };
    await until(kube, kubernetes.ValidatingAdmissionPolicyBinding, binding, () => true);
    const state = as(account(objects.state));
    const write = (status: object) =>
      state.apply(
        MachineConfiguration,
        { metadata: { name }, status },
        { owner: "state", subresource: "status", force: true },
      );
    const written = await write({ conditions: [condition("DaemonsHealthy")] });
    expect(written.status?.conditions).toContainEqual(condition("DaemonsHealthy"));
    for (const status of [
      { conditions: [condition("DaemonsHealthy"), condition("BootImageUpdateDegraded")] },
      { nodeDisruptionPolicyStatus: { clusterPolicies: { files: [{ path: "/etc", actions: [{ type: "None" }] }] } } },
      { observedGeneration: 77 },
    ])
      await expect(write(status)).rejects.toSatisfy(isForbidden);
  });

  test("the state process holds no lease of another component [attack-rights-6]", async () => {
    const { kube, as } = await startOperator();
    await installed(kube);
    const key = { name: "machine-config", namespace };
    const state = as(account(objects.state));
    const taken = await state.get(kubernetes.Lease, key);
    await expect(
      state.patch(kubernetes.Lease, key, { type: "merge", body: { spec: { holderIdentity: "state" } } }),
    ).rejects.toSatisfy(isForbidden);
    if (taken === undefined) throw new Error("the operator holds no lease");
    await expect(state.replace(kubernetes.Lease, taken)).rejects.toSatisfy(isForbidden);
  });
});
