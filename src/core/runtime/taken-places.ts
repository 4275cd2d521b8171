import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { contentsReader, textOf } from "../../ignition/data-url.ts";
import type { File } from "../../ignition/types.ts";
import { ignitionOf } from "../config/validate-machine-config.ts";
import { poolInRenderedName } from "../config/is-rendered.ts";
import { kubernetesYaml } from "../text/kubernetes-yaml.ts";
import { sigstorePath } from "./registries-config.ts";

const folder = "/etc/containers/registries.d/";

/**
 * Places that the files of Red Hat's operating systems define, where no cluster sees them: registry.redhat.io.yaml and
 * registry.access.redhat.com.yaml of the package containers-common (RHEL, CentOS Stream, RHCOS).
 */
const ofSystems = ["registry.redhat.io", "registry.access.redhat.com"] as const;

/** What one MachineConfig's own files of registries.d say. */
interface PlaceFiles {
  readonly hasAny: boolean;
  /** The characters of those files that are read. */
  readonly size: number;
  places(): readonly string[];
}

/** Characters of such files in one MachineConfig: each is small, and what goes beyond is not read. */
const mostInObject = 32 * 1024;

/** Characters of such files in all MachineConfigs, those first that have least: more would hold up all pools. */
const mostInAll = 128 * 1024;

const none: PlaceFiles = { hasAny: false, size: 0, places: () => [] };

/** By MachineConfig, so that each is read once, for whichever pool and pass. */
const known = new WeakMap<MachineConfig, PlaceFiles>();

function placeFilesOf(config: MachineConfig): PlaceFiles {
  const before = known.get(config);
  if (before !== undefined) return before;
  const files = filesIn(config);
  const found = files.length === 0 ? none : placeFiles(files);
  known.set(config, found);
  return found;
}

function placeFiles(files: readonly File[]): PlaceFiles {
  let texts = textsOf(files);
  let places: readonly string[] | undefined;
  return {
    hasAny: true,
    size: texts.reduce((sum, text) => sum + text.length, 0),
    places: () => {
      places ??= texts.flatMap(placesIn);
      texts = [];
      return places;
    },
  };
}

/** A MachineConfig's own files of registries.d, without ours. */
function filesIn(config: MachineConfig): readonly File[] {
  if (poolInRenderedName(config.metadata.name) !== undefined) return [];
  // Most configurations have none: their text is not read as Ignition.
  if (!JSON.stringify(config.spec?.config ?? {}).includes(folder)) return [];
  const ignition = ignitionOf(config);
  if (ignition?.verdict !== "valid") return [];
  return (ignition.config.storage?.files ?? []).filter(
    ({ path }) => path.startsWith(folder) && path.endsWith(".yaml") && path !== sigstorePath,
  );
}

function textsOf(files: readonly File[]): readonly string[] {
  const read = contentsReader({ maxTotalBytes: 8 * mostInObject });
  let left = mostInObject;
  return files.flatMap(({ contents: resource }) => {
    // Percent-encoded, a character takes nine.
    if (left <= 0 || (resource?.source?.length ?? 0) > 10 * mostInObject) return [];
    const contents = read(resource);
    const text = contents.verdict === "decoded" ? textOf(contents.bytes) : undefined;
    if (text === undefined || text.length > left) return [];
    left -= text.length;
    return [text];
  });
}

/** Whether a MachineConfig may define places for signatures. */
export const definesPlaces = (config: MachineConfig | undefined): boolean =>
  config !== undefined && placeFilesOf(config).hasAny;

/**
 * Places that other files of registries.d than ours define. Container engines read none of these files, and pull
 * nothing, if two of them define the same place (containers-registries.d(5)).
 */
export function takenPlaces(configs: readonly MachineConfig[]): ReadonlySet<string> {
  const taken = new Set<string>(ofSystems);
  let left = mostInAll;
  for (const files of configs.map(placeFilesOf).toSorted((one, other) => one.size - other.size)) {
    left -= files.size;
    if (left < 0) break;
    for (const place of files.places()) taken.add(place);
  }
  return taken;
}

/** The places of one file; none of one that engines cannot read either. */
function placesIn(text: string): readonly string[] {
  const document = kubernetesYaml(text);
  if (document.errors.length > 0) return [];
  const { docker } = (document.toJS({ maxAliasCount: -1 }) ?? {}) as { readonly docker?: unknown };
  return typeof docker === "object" && docker !== null ? Object.keys(docker) : [];
}
