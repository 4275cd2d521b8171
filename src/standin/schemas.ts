/** Definitions of kinds, their schemas and their policies, as an API server judges by them: `mco validate`. */
export type { CompiledSchema, ResourceDefinition } from "./apiserver/schema/contract.ts";
export {
  compileAdmissionPolicy,
  type CompiledPolicy,
  policyRequest,
} from "./apiserver/schema/validation/cel-policies.ts";
export { dropServerFields, findMetadataFault } from "./apiserver/schema/validation/server-fields.ts";
export { definitionsOf } from "./apiserver/schema/validation/custom-resource-definition.ts";
export { compileSchema } from "./apiserver/schema/validation/structural.ts";
export { openshiftKinds } from "./cluster/openshift-kinds.ts";
