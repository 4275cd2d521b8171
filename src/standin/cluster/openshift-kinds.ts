import type { CustomResourceDefinition } from "../../api/foreign/kubernetes.ts";
import written from "./openshift-kinds.json" with { type: "json" };

/**
 * Definitions of OpenShift's kinds that settings of machines come from: mirror sets, image policies, feature gates and
 * others. A new cluster of one machine has them; elsewhere they belong to OpenShift, and
 * the operator never installs them. `make openshift-kinds` writes them.
 */
export const openshiftKinds = written.definitions as unknown as readonly CustomResourceDefinition[];
