import type { CustomDefinitions, KubeObject, ResourceDefinition } from "./schema/contract.ts";
export function decodeProtobuf(_bytes: Uint8Array): { verdict: "decoded"; object: Record<string, unknown> } | { verdict: "refused"; message: string } { return { verdict: "refused", message: "no" }; }
export function definitionsOf(_crd: KubeObject): CustomDefinitions { return { verdict: "refused", errors: [] }; }
export function establish(crd: KubeObject, _others: readonly ResourceDefinition[], _time: string): KubeObject { return crd; }
