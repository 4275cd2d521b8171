import { compileSchema } from "../validation/structural.ts";
import type { CompiledSchema, ResourceDefinition, Served } from "../contract.ts";
import { groupResource } from "../status.ts";

/** What this server serves now: the built-in kinds, and those of CustomResourceDefinitions as they come and go. */
export interface Catalog {
  find(group: string, version: string, plural: string): Served | undefined;
  findKind(group: string, version: string, kind: string): Served | undefined;
  /** Any version of a resource, the stored one first. */
  findStored(stored: string): Served | undefined;
  /** All versions of a resource. */
  versionsOf(stored: string): readonly Served[];
  definitions(): readonly ResourceDefinition[];
  /** Counts changes, so that documents made from the definitions can be kept. */
  generation(): number;
  setCustom(name: string, definitions: readonly ResourceDefinition[], storageVersion: string): void;
  removeCustom(name: string): void;
}

export function catalogOf(builtin: readonly ResourceDefinition[]): Catalog {
  const served = new Map<string, Served>();
  const custom = new Map<string, readonly Served[]>();
  let generation = 0;
  let definitions: readonly ResourceDefinition[] | undefined;
  let versions: Map<string, Served[]> | undefined;

  const path = (group: string, version: string, plural: string) => `${group}/${version}/${plural}`;

  function add(definition: ResourceDefinition, stored: string, storedApiVersion: string): Served {
    let schema: CompiledSchema | undefined;
    const entry: Served = {
      definition,
      stored,
      storedApiVersion,
      apiVersion: apiVersionOf(definition),
      hasGeneration: countsGenerations(definition),
      // Most kinds are never written in a short life: compile when first needed.
      get schema() {
        return (schema ??= compileSchema(definition.schema));
      },
    };
    served.set(path(definition.group, definition.version, definition.plural), entry);
    return entry;
  }

  for (const definition of builtin) {
    if (definition.group === "events.k8s.io") add(definition, "events", "v1");
    else add(definition, groupResource(definition), apiVersionOf(definition));
  }

  function changed(): void {
    generation += 1;
    definitions = undefined;
    versions = undefined;
  }

  return {
    find: (group, version, plural) => served.get(path(group, version, plural)),
    findKind(group, version, kind) {
      for (const entry of served.values()) {
        const { definition } = entry;
        if (definition.kind === kind && definition.group === group && definition.version === version) return entry;
      }
      return undefined;
    },
    findStored(stored) {
      let any: Served | undefined;
      for (const entry of served.values()) {
        if (entry.stored !== stored) continue;
        if (entry.apiVersion === entry.storedApiVersion) return entry;
        any = entry;
      }
      return any;
    },
    versionsOf: (stored) => (versions ??= Map.groupBy(served.values(), (entry) => entry.stored)).get(stored) ?? [],
    definitions: () => (definitions ??= [...served.values()].map((entry) => entry.definition)),
    generation: () => generation,
    setCustom(name, added, storageVersion) {
      const before = custom.get(name) ?? [];
      for (const { definition } of before) served.delete(path(definition.group, definition.version, definition.plural));
      custom.set(
        name,
        added.map((definition) => add(definition, groupResource(definition), `${definition.group}/${storageVersion}`)),
      );
      changed();
    },
    removeCustom(name) {
      const before = custom.get(name);
      if (before === undefined) return;
      for (const { definition } of before) served.delete(path(definition.group, definition.version, definition.plural));
      custom.delete(name);
      changed();
    },
  };
}

/** The definition says which changes count; a kind for which a changed spec does not has no generation at all. */
function countsGenerations(definition: ResourceDefinition): boolean {
  const probe = (replicas: number) => ({
    apiVersion: apiVersionOf(definition),
    kind: definition.kind,
    metadata: {},
    spec: { replicas },
  });
  return definition.generationChanged(probe(1), probe(2));
}

export function apiVersionOf({ group, version }: { readonly group: string; readonly version: string }): string {
  return group === "" ? version : `${group}/${version}`;
}

/** `apps/v1` → group and version. */
export function splitApiVersion(apiVersion: string): { readonly group: string; readonly version: string } {
  const slash = apiVersion.indexOf("/");
  return slash < 0
    ? { group: "", version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}
