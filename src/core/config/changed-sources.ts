import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { listText } from "../text/list-text.ts";

/** A MachineConfig that makes a pool's target differ from its last configuration. */
export interface ChangedSource {
  readonly name: string;
  readonly what: "added" | "changed" | "taken away";
  /**
   * Last writer and time, as the API server records them: a field manager, and RFC 3339. Unknown for a deleted
   * MachineConfig.
   */
  readonly by?: string;
  readonly at?: string;
}

/** The writer in an entry of managedFields. */
interface ManagedBy {
  readonly manager?: string;
  readonly time?: string;
  readonly subresource?: string;
}

/** The last writer of a MachineConfig, apart from its status. */
export const lastWriter = (config: MachineConfig | undefined): ManagedBy | undefined =>
  ((config?.metadata.managedFields ?? []) as readonly ManagedBy[])
    .filter(({ subresource, time }) => (subresource ?? "") === "" && time !== undefined)
    .sort((a, b) => ((a.time ?? "") < (b.time ?? "") ? 1 : -1))[0];

/** Names of the MachineConfigs that a pool's configuration was merged from. */
export const sourcesOf = (configuration: unknown): readonly string[] =>
  ((configuration as { readonly source?: readonly { readonly name?: string }[] } | undefined)?.source ?? []).flatMap(
    ({ name }) => (name === undefined ? [] : [name]),
  );

/** Last writer and time of a MachineConfig, as far as the API server records them. */
export function lastWriterText(config: MachineConfig): readonly string[] {
  const writer = lastWriter(config);
  return writer?.manager === undefined
    ? []
    : [`by ${writer.manager}${writer.time === undefined ? "" : ` at ${writer.time}`}`];
}

/** The MachineConfigs that make a pool's target differ from its last configuration, with their last writers. */
export function changedSources(
  pool: MachineConfigPool,
  machineConfig: (name: string) => MachineConfig | undefined,
): readonly ChangedSource[] {
  const [before, after] = [pool.status?.configuration, pool.spec.configuration];
  if (after?.name === undefined || before?.name === undefined || before.name === after.name) return [];
  const [was, is] = [sourcesOf(before), sourcesOf(after)];
  if (is.length === 0) return [];
  const [known, current] = [new Set(was), new Set(is)];
  const renderedAt = Date.parse(machineConfig(before.name)?.metadata.creationTimestamp ?? "");
  const isNew = (name: string) => was.length > 0 && !known.has(name);
  // Times are whole seconds: a write in the second of the last rendering was part of it.
  const changed = is.filter((name) => {
    const time = Date.parse(lastWriter(machineConfig(name))?.time ?? "");
    return !isNew(name) && Number.isFinite(renderedAt) && Number.isFinite(time) && time > renderedAt;
  });
  const of = (name: string, what: ChangedSource["what"]): ChangedSource => {
    const writer = lastWriter(machineConfig(name));
    return {
      name,
      what,
      ...(writer?.manager === undefined ? {} : { by: writer.manager }),
      ...(writer?.time === undefined ? {} : { at: writer.time }),
    };
  };
  return [
    ...is.filter(isNew).map((name) => of(name, "added")),
    ...changed.map((name) => of(name, "changed")),
    ...was.filter((name) => !current.has(name)).map((name): ChangedSource => ({ name, what: "taken away" })),
  ];
}

/** The changed sources as the cause of a chapter; empty if not known. */
export function causeOf(sources: readonly ChangedSource[]): { readonly cause?: string; readonly by?: string } {
  if (sources.length === 0) return {};
  const shown = sources.map(({ name, what }) => `${name} ${what}`);
  const by = [...new Set(sources.flatMap((source) => source.by ?? []))];
  return {
    cause: `MachineConfig ${listText(shown, 5)}`,
    ...(by.length === 0 ? {} : { by: by.slice(0, 5).join(", ") }),
  };
}
