import { kubernetes } from "../../../src/api/index.ts";
import { joinNamespace, objects } from "../../../src/api/names.ts";
import type { KubeClient } from "../../../src/kube/kube-client.ts";
import { untilAllowed } from "./until-allowed.ts";

/** The ServiceAccount with which machines of the pool `worker` join. */
export const joiningAccount = `${objects.nodeBootstrapperPrefix}worker`;
/** The user name of that account. */
export const joiningUser = `system:serviceaccount:${joinNamespace}:${joiningAccount}`;

/**
 * Lets machines of the pool `worker` request certificates, on an API server that the operator does not manage.
 *
 * @param name of the ClusterRole and its binding
 */
export async function letWorkersJoin(admin: KubeClient, name: string): Promise<void> {
  const group = "rbac.authorization.k8s.io";
  const right = { verb: "create", group: "certificates.k8s.io", resource: "certificatesigningrequests" };
  await admin.create(kubernetes.ClusterRole, {
    apiVersion: `${group}/v1`,
    kind: "ClusterRole",
    metadata: { name },
    rules: [{ apiGroups: [right.group], resources: [right.resource], verbs: [right.verb] }],
  } as never);
  await admin.create(kubernetes.ClusterRoleBinding, {
    apiVersion: `${group}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: { apiGroup: group, kind: "ClusterRole", name },
    subjects: [{ kind: "User", apiGroup: group, name: joiningUser }],
  } as never);
  await untilAllowed(admin, joiningUser, right);
}
