import { parse } from "yaml";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { ignitionOf } from "../config/validate-machine-config.ts";
import { poolInRenderedName } from "../config/is-rendered.ts";
import { fileText } from "../render/config-file.ts";
import { sigstorePath } from "./registries-config.ts";

const folder = "/etc/containers/registries.d/";

/**
 * Places that the files of Red Hat's operating systems define, where no cluster sees them: registry.redhat.io.yaml and
 * registry.access.redhat.com.yaml of the package containers-common (RHEL, CentOS Stream, RHCOS).
 */
const ofSystems = ["registry.redhat.io", "registry.access.redhat.com"] as const;

/** The paths of a MachineConfig's own files of registries.d, without ours. */
function pathsIn(config: MachineConfig): readonly string[] {
  if (poolInRenderedName(config.metadata.name) !== undefined) return [];
  // Most configurations have none: their text is not read as Ignition.
  if (!JSON.stringify(config.spec?.config ?? {}).includes(folder)) return [];
  const ignition = ignitionOf(config);
  if (ignition?.verdict !== "valid") return [];
  return (ignition.config.storage?.files ?? [])
    .map(({ path }) => path)
    .filter((path) => path.startsWith(folder) && path.endsWith(".yaml") && path !== sigstorePath);
}

/** Whether a MachineConfig may define places for signatures. */
export const definesPlaces = (config: MachineConfig | undefined): boolean =>
  config !== undefined && pathsIn(config).length > 0;

/**
 * Places that other files of registries.d than ours define. Container engines read none of these files, and pull
 * nothing, if two of them define the same place (containers-registries.d(5)).
 */
export function takenPlaces(configs: readonly MachineConfig[]): ReadonlySet<string> {
  const taken = new Set<string>(ofSystems);
  for (const config of configs)
    for (const path of pathsIn(config)) for (const place of placesIn(fileText(config, path) ?? "")) taken.add(place);
  return taken;
}

/** A file of places is small; a longer one is not read. */
const longestFile = 64 * 1024;

/** The places of one file; none of one that engines cannot read either. */
function placesIn(text: string): readonly string[] {
  if (text.length > longestFile) return [];
  try {
    const { docker } = (parse(text, { prettyErrors: false, logLevel: "error" }) ?? {}) as { readonly docker?: unknown };
    return typeof docker === "object" && docker !== null ? Object.keys(docker) : [];
  } catch {
    return [];
  }
}
