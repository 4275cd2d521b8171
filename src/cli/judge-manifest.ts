import { definedResources } from "../api/index.ts";
import type { MachineConfig } from "../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { definitionsOf } from "../apiserver/schema/validation/custom-resource-definition.ts";
import { compileSchema } from "../apiserver/schema/validation/structural.ts";
import type { CompiledSchema, ResourceDefinition } from "../apiserver/schema/contract.ts";
import { problemsOfPool } from "../core/preview/judge-admission.ts";
import { poolPolicy } from "../core/pool/pool-policy.ts";
import { validateMachineConfig } from "../core/config/validate-machine-config.ts";
import type { Problem } from "../ignition/problem.ts";
import type { Manifest } from "./manifests.ts";

export interface Served {
  readonly definition: ResourceDefinition;
  readonly schema: CompiledSchema;
}

/** The kinds of the suite, with the rules by which an API server judges them. */
export function servedKinds(): (apiVersion: string, kind: string) => Served | undefined {
  const known = new Map<string, Served | undefined>();
  return (apiVersion, kind) => {
    const id = `${apiVersion}/${kind}`;
    if (!known.has(id)) {
      const resource = definedResources.find((one) => one.apiVersion === apiVersion && one.kind === kind);
      const served =
        resource === undefined
          ? undefined
          : definitionsOf(structuredClone(resource.crd()) as unknown as Parameters<typeof definitionsOf>[0]);
      const definition = served?.verdict === "served" ? served.definitions[0] : undefined;
      known.set(id, definition === undefined ? undefined : { definition, schema: compileSchema(definition.schema) });
    }
    return known.get(id);
  };
}

/**
 * A manifest as the API server would store it, with all findings: first the server's, then those of rendering and the
 * machines.
 */
export function judgeManifest(
  manifest: Manifest,
  served: Served,
): { readonly stored: Manifest; readonly problems: readonly Problem[] } {
  const copy = structuredClone(manifest) as unknown as Parameters<CompiledSchema["validate"]>[0];
  const unknown = served.schema.prune(copy).map((path): Problem => ({
    severity: "warning",
    path,
    reason: "is unknown, and the API server drops it",
    remedy: "take the field out, or correct its name",
  }));
  served.schema.applyDefaults(copy);
  const stored = copy as unknown as Manifest;
  const errors = [...served.schema.validate(copy, undefined), ...served.definition.validate(copy, undefined, "")].map(
    ({ field, message }): Problem => ({ severity: "error", path: field, reason: message }),
  );
  // A manifest of the wrong shape cannot be judged further.
  if (errors.length > 0) return { stored, problems: [...errors, ...unknown] };
  const beyond =
    manifest.kind === "MachineConfig"
      ? validateMachineConfig(manifest as MachineConfig)
      : manifest.kind === "MachineConfigPool"
        ? [...problemsOfPool(manifest as MachineConfigPool), ...poolPolicy(manifest as MachineConfigPool).problems]
        : [];
  return { stored, problems: [...beyond, ...unknown] };
}
