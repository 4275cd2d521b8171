import type { ResourceDefinition } from "../contract.ts";
import { coreKinds } from "./core-kinds.ts";
import { eventKinds } from "./event-kinds.ts";
import { appsKinds } from "./apps-kinds.ts";
import { batchKinds } from "./batch-kinds.ts";
import { rbacKinds } from "./rbac-kinds.ts";
import { admissionKinds } from "./admission-kinds.ts";
import { extensionKinds } from "./extension-kinds.ts";
import { reviewKinds } from "./review-kinds.ts";
import { certificateKinds, networkingKinds, policyKinds, schedulingKinds } from "./other-kinds.ts";

/** Every kind that Kubernetes itself serves here, in the order of discovery. */
export const builtinDefinitions: readonly ResourceDefinition[] = [
  ...coreKinds,
  ...appsKinds,
  ...eventKinds,
  ...reviewKinds,
  ...batchKinds,
  ...certificateKinds,
  ...networkingKinds,
  ...policyKinds,
  ...rbacKinds,
  ...admissionKinds,
  ...extensionKinds,
  ...schedulingKinds,
];
