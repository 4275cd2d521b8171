import { expect, test } from "vitest";
import { startOperator } from "../../../test/support/operator-harness.ts";
import { untilSeen } from "../../../test/support/until-seen.ts";
import { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { namespace, nodeIdentity, objects } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";

const apiGroup = "rbac.authorization.k8s.io";
const account = {
  name: `system:serviceaccount:${namespace}:${objects.operator}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
};

test("the operator reports that every node may renew its certificate, by its own rights [operator-other-approvers-3]", async () => {
  const { kube } = await startOperator(
    async (admin) => {
      await admin.create(kubernetes.ClusterRole, {
        apiVersion: `${apiGroup}/v1`,
        kind: "ClusterRole",
        metadata: { name: "renewals" },
        rules: [
          {
            apiGroups: ["certificates.k8s.io"],
            resources: ["certificatesigningrequests/selfnodeclient"],
            verbs: ["create"],
          },
        ],
      } as never);
      await admin.create(kubernetes.ClusterRoleBinding, {
        apiVersion: `${apiGroup}/v1`,
        kind: "ClusterRoleBinding",
        metadata: { name: "renewals" },
        roleRef: { apiGroup, kind: "ClusterRole", name: "renewals" },
        subjects: [{ kind: "Group", apiGroup, name: nodeIdentity.group }],
      } as never);
    },
    { account },
  );
  const condition = await untilSeen(
    "the condition is there",
    async () => {
      // The operator creates the kind.
      const operator = await kube.get(ClusterOperator, { name: objects.clusterOperator }).catch(() => undefined);
      return conditionOf(operator?.status?.conditions, "OtherApprovers");
    },
    (found) => found !== undefined,
  );
  expect(condition).toMatchObject({ status: "True", reason: "NodesMayRenew" });
});
