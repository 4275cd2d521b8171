import { kubernetes } from "../../api/foreign/kubernetes.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { networkPolicies as policiesFor } from "../admission-policies.ts";
import { applyManifest } from "../apply-manifest.ts";
import { admission, stateMetrics } from "../manifests.ts";
import { type OperatorTask, done } from "../operator-task.ts";

/** Who may reach the components. Nothing of it is watched: it is applied again now and then. */
export const networkPolicies: OperatorTask<undefined, readonly KubeObject[]> = {
  name: "NetworkPolicies",
  watches: [],
  observe: () => undefined,
  decide: () => policiesFor({ admissionPort: admission.port, statePort: stateMetrics.port }),

  async perform(manifests, context) {
    for (const manifest of manifests) await applyManifest(kubernetes.NetworkPolicy, manifest, context);
    return done;
  },
};
