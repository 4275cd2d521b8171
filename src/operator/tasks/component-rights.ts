import { kubernetes } from "../../api/foreign/kubernetes.ts";
import type { KubeObject, Resource } from "../../api/schema/object.ts";
import { applyAll } from "../apply-manifest.ts";
import { gate } from "../manifests.ts";
import { type OperatorTask, done } from "../operator-task.ts";
import { componentRights as rightsOfComponents } from "../rights.ts";

const kinds: readonly Resource[] = [
  kubernetes.ServiceAccount,
  kubernetes.ClusterRole,
  kubernetes.ClusterRoleBinding,
  kubernetes.Role,
  kubernetes.RoleBinding,
  kubernetes.ValidatingAdmissionPolicy,
  kubernetes.ValidatingAdmissionPolicyBinding,
];

/** What the components may do. Nothing of it is watched: it is applied again now and then. */
export const componentRights: OperatorTask<undefined, readonly KubeObject[]> = {
  name: "RBAC",
  watches: [],
  observe: () => undefined,
  decide: () => [...rightsOfComponents(), ...gate()],

  async perform(manifests, context) {
    await applyAll(kinds, manifests, context);
    return done;
  },
};
