import { kubernetes } from "../../api/foreign/kubernetes.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import type { GuardNeeds } from "../admission-guard.ts";
import { type BuilderBounds, admissionPolicies as policiesFor, retiredPolicies } from "../admission-policies.ts";
import { builderBoundsIn } from "../components.ts";
import { unlessNotFound } from "../../kube/kube-error.ts";
import { applyAll } from "../apply-manifest.ts";
import { observeGuardNeeds } from "../cluster-sources.ts";
import { type OperatorTask, type TaskContext, taskDone } from "../operator-task.ts";
import { watchBuildSettings, watchSources } from "../operator-watches.ts";

const kinds = [kubernetes.ValidatingAdmissionPolicy, kubernetes.ValidatingAdmissionPolicyBinding];

interface View {
  readonly has: GuardNeeds;
  readonly bounds: BuilderBounds;
}

/** Policies that protect the cluster's own objects. Policies whose kinds were deleted stay: they match nothing. */
export const admissionPoliciesTask: OperatorTask<View, readonly KubeObject[]> = {
  name: "AdmissionPolicies",
  watches: [watchSources, watchBuildSettings],
  observe: (context) => ({ has: observeGuardNeeds(context), bounds: builderBoundsIn(context) }),
  decide: ({ has, bounds }) => policiesFor(has, bounds),

  async perform(manifests, context) {
    await applyAll(kinds, manifests, context);
    await removeRetired(context);
    return taskDone;
  },
};

/** Policies of an earlier version would still say that a kind has no effect. */
async function removeRetired({ kube, memory, signal }: TaskContext): Promise<void> {
  if (memory.areRetiredPoliciesGone) return;
  const { ValidatingAdmissionPolicy: policy, ValidatingAdmissionPolicyBinding: binding } = kubernetes;
  for (const name of retiredPolicies) {
    await unlessNotFound(kube.delete(binding, { name: `${name}-binding` }, { signal }));
    await unlessNotFound(kube.delete(policy, { name }, { signal }));
  }
  memory.areRetiredPoliciesGone = true;
}
