import { greatestOf } from "../../api/schema/extremes.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations, machineOSConfigConditions as types } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { newest, shortImage } from "../config/image-pair.ts";
import { type OptIn, type OptInSource, machineOSConfigOf, optInOf } from "../config/opt-in.ts";
import { stateOfBuild } from "../config/build-phase.ts";
import { type Data, defaultOptInOf } from "./build-settings.ts";

/** One pool that boots images, or is about to, with its relevant build. */
export interface BuildRow {
  readonly pool: string;
  /** What opted it in; `out`: an explicit no, or its MachineOSConfig is being deleted. */
  readonly by: OptInSource | "out";
  /** Rendered configuration of the desired image. */
  readonly config: string;
  /** Empty: none was begun. */
  readonly build: string;
  /** `Succeeded (Ready)`, `waiting`, `invalid inputs`. */
  readonly state: string;
  /** Why the build failed or waits; empty: neither. */
  readonly message: string;
  readonly strategy: string;
  readonly attempt: string;
  /** Pullspec that is rolled out; empty: none yet. */
  readonly image: string;
  /** RFC 3339 of when the build began; empty: it has not. */
  readonly since: string;
}

export interface BuildRowObjects {
  readonly pools: readonly MachineConfigPool[];
  readonly configs: readonly MachineOSConfig[];
  readonly builds: readonly MachineOSBuild[];
  /** Of the ConfigMap on-cluster-build-config; absent: there is none, or the user may not read it. */
  readonly buildConfig?: Data | undefined;
}

/** Whether a pool is opted in to images now. */
export const optInAmong = (
  { configs, buildConfig }: BuildRowObjects,
  pool: MachineConfigPool,
): OptIn<MachineOSConfig> => optInOf(pool, { configs, defaultOptIn: defaultOptInOf(buildConfig), graceMs: 0, now: 0 });

/** The relevant build of a pool: the newest for its configuration, else the newest. */
export function buildOfPool(
  { configs, builds }: Pick<BuildRowObjects, "configs" | "builds">,
  pool: Pick<MachineConfigPool, "metadata" | "spec">,
): MachineOSBuild | undefined {
  const config = machineOSConfigOf(pool.metadata.name, configs);
  const own = builds.filter(({ spec }) => spec.machineOSConfig.name === config?.metadata.name);
  return newest(own.filter(({ spec }) => spec.machineConfig.name === pool.spec.configuration?.name)) ?? newest(own);
}

/** Pools that use images, by name. */
export function buildRows(objects: BuildRowObjects): readonly BuildRow[] {
  return [...objects.pools]
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .flatMap((pool): BuildRow[] => {
      const config = machineOSConfigOf(pool.metadata.name, objects.configs);
      const optIn = optInAmong(objects, pool);
      if (config === undefined && optIn.opted !== "in") return [];
      const build = buildOfPool(objects, pool);
      const notes = build?.metadata.annotations ?? {};
      const { state, message } = stateTextOf(config, build);
      return [
        {
          pool: pool.metadata.name,
          by: optIn.opted === "in" ? optIn.source : "out",
          config: pool.spec.configuration?.name ?? "",
          build: build?.metadata.name ?? "",
          state,
          message,
          strategy: notes[annotations.buildStrategy] ?? "",
          attempt: notes[annotations.buildAttempt] ?? "",
          image: config?.status?.currentImagePullSpec ?? "",
          since: build?.status?.buildStart ?? build?.metadata.creationTimestamp ?? "",
        },
      ];
    });
}

function stateTextOf(
  config: MachineOSConfig | undefined,
  build: MachineOSBuild | undefined,
): { readonly state: string; readonly message: string } {
  const invalid = conditionOf(config?.status?.conditions, types.inputsValid);
  if (invalid?.status === "False") return { state: `invalid inputs (${invalid.reason})`, message: invalid.message };
  if (build === undefined)
    return {
      state: "waiting",
      message: config === undefined ? "its MachineOSConfig is not made yet" : "no build was begun yet",
    };
  const { phase, reason, message } = stateOfBuild(build);
  return { state: phase === "Initial" ? "begun" : `${phase} (${reason})`, message };
}

/** The rows as text: a table, followed by the messages of builds that did not succeed. */
export function buildTable(rows: readonly BuildRow[], ageOf: (since: string) => string): string {
  if (rows.length === 0)
    return "no pool boots images that are built on the cluster: docs/os-images.md says how to opt in\n";
  const cells = [
    ["POOL", "BY", "STATE", "BUILD", "STRATEGY", "ATTEMPT", "IMAGE", "AGE"],
    ...rows.map((row) => [
      row.pool,
      row.by,
      row.state,
      row.build,
      row.strategy,
      row.attempt,
      row.image === "" ? "" : shortImage(row.image),
      row.since === "" ? "" : ageOf(row.since),
    ]),
  ];
  const widths = cells[0]?.map((_, column) => greatestOf(cells.map((line) => line[column]?.length ?? 0))) ?? [];
  const table = cells.map((line) =>
    line
      .map((cell, column) => (cell === "" ? "-" : cell).padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  const lines = rows.flatMap(({ pool, state, message }) =>
    message === "" || state.startsWith("Succeeded") ? [] : [`${pool}: ${message}`],
  );
  return `${[...table, ...(lines.length === 0 ? [] : ["", ...lines])].join("\n")}\n`;
}
