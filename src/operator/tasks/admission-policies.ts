import { kubernetes } from "../../api/foreign/kubernetes.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { type GuardNeeds, admissionPolicies as policiesFor } from "../admission-policies.ts";
import { applyAll } from "../apply-manifest.ts";
import { observeGuardNeeds } from "../cluster-sources.ts";
import { type OperatorTask, done } from "../operator-task.ts";
import { watchSources } from "../operator-watches.ts";

const kinds = [kubernetes.ValidatingAdmissionPolicy, kubernetes.ValidatingAdmissionPolicyBinding];

/** Policies that guard the cluster's own objects. Policies whose kinds have gone stay: they match nothing. */
export const admissionPolicies: OperatorTask<GuardNeeds, readonly KubeObject[]> = {
  name: "AdmissionPolicies",
  watches: [watchSources],
  observe: observeGuardNeeds,
  decide: policiesFor,

  async perform(manifests, context) {
    await applyAll(kinds, manifests, context);
    return done;
  },
};
