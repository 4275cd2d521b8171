import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { contentsReader, textOf } from "../../ignition/data-url.ts";
import type { File } from "../../ignition/types.ts";
import { ignitionOf } from "../config/validate-machine-config.ts";
import { poolInRenderedName } from "../config/is-rendered.ts";
import { poolSelects } from "../config/pool-selector.ts";
import { kubernetesYaml } from "../text/kubernetes-yaml.ts";
import { sigstorePath } from "./registries-config.ts";
import type { TakenPlaces, UnreadPlaces } from "./uncertain-places.ts";

const folder = "/etc/containers/registries.d/";

/**
 * Places that the files of Red Hat's operating systems define, where no cluster sees them: registry.redhat.io.yaml and
 * registry.access.redhat.com.yaml of the package containers-common (RHEL, CentOS Stream, RHCOS).
 */
const ofSystems = ["registry.redhat.io", "registry.access.redhat.com"] as const;

/** What decides which files are on the machines that get the registries of a pool. */
export interface PlacesView {
  readonly pools: readonly MachineConfigPool[];
  readonly configs: readonly MachineConfig[];
  /** The labels of the MachineConfig with the registries. */
  readonly labels: Readonly<Record<string, string>>;
}

type Unread = Omit<UnreadPlaces, "config">;

/** What one MachineConfig's own files of registries.d say. */
interface PlaceFiles {
  readonly hasAny: boolean;
  /** The characters of those files that are read. */
  readonly size: number;
  /** Reads them, once. */
  read(): ReadPlaces;
}

interface ReadPlaces {
  readonly places: readonly string[];
  /** Why some of the files are not read. */
  readonly unread: Unread | undefined;
}

/** Characters of such files in one MachineConfig: each is small, and what goes beyond is not read. */
const mostInObject = 32 * 1024;

/** Characters of such files on the machines of a pool, those first that have least: more would hold up its registries. */
const mostInPool = 128 * 1024;

const none: PlaceFiles = { hasAny: false, size: 0, read: () => ({ places: [], unread: undefined }) };

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
  let { texts, unread } = textsOf(files);
  let places: readonly string[] | undefined;
  return {
    hasAny: true,
    size: texts.reduce((sum, { text }) => sum + text.length, 0),
    read: () => {
      if (places === undefined) {
        const readings = texts.map(({ path, text }) => ({ path, ...placesIn(text) }));
        const strange = readings.find(({ problem }) => problem !== undefined);
        places = readings.flatMap((one) => one.places);
        unread ??=
          strange === undefined ? undefined : { reason: `${strange.path}: ${strange.problem}`, remedy: mendFile };
        texts = [];
      }
      return { places, unread };
    },
  };
}

const mendFile = "write it as plain YAML, as containers-registries.d(5) shows";
const mendContents = "give the contents as a data URL";
const shortenFiles =
  "take out what is no definition of a place, or give registries that are alike one place: their host";

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

interface PlaceText {
  readonly path: string;
  readonly text: string;
}

/** The texts that are read, and why the first of the others is not. */
function textsOf(files: readonly File[]): {
  readonly texts: readonly PlaceText[];
  readonly unread: Unread | undefined;
} {
  const read = contentsReader({ maxTotalBytes: 8 * mostInObject });
  const texts: PlaceText[] = [];
  let left = mostInObject;
  let unread: Unread | undefined;
  for (const { path, contents: resource } of files) {
    // Percent-encoded, a character takes nine.
    const isLarge = left <= 0 || (resource?.source?.length ?? 0) > 10 * mostInObject;
    const contents = isLarge ? undefined : read(resource);
    const text = contents?.verdict === "decoded" ? textOf(contents.bytes) : undefined;
    if (text !== undefined && text.length <= left) {
      left -= text.length;
      texts.push({ path, text });
      continue;
    }
    unread ??=
      contents?.verdict === "refused"
        ? { reason: `${path}: its contents cannot be decoded`, remedy: mendContents }
        : contents !== undefined && text === undefined
          ? { reason: `${path}: it is no text in UTF-8`, remedy: mendFile }
          : {
              reason: `${path}: with those before it, it has more than ${mostInObject} characters`,
              remedy: shortenFiles,
            };
  }
  return { texts, unread };
}

/** Whether a MachineConfig may define places for signatures. */
export const definesPlaces = (config: MachineConfig | undefined): boolean =>
  config !== undefined && placeFilesOf(config).hasAny;

/**
 * Places that other files of registries.d than ours define on machines of a pool, and of pools that take its registries
 * over. Container engines read none of these files, and pull nothing, if two of them define the same place
 * (containers-registries.d(5)).
 */
export function takenPlaces({ pools, configs, labels }: PlacesView): TakenPlaces {
  const selectors = pools
    .map(({ spec }) => spec.machineConfigSelector)
    .filter((selector) => poolSelects(selector, labels));
  const members = configs.filter(
    (config) => definesPlaces(config) && selectors.some((selector) => poolSelects(selector, config.metadata.labels)),
  );
  const places = new Set<string>(ofSystems);
  const unread: UnreadPlaces[] = [];
  let left = mostInPool;
  for (const config of members.toSorted((one, other) => placeFilesOf(one).size - placeFilesOf(other).size)) {
    const files = placeFilesOf(config);
    left -= files.size;
    const found = left < 0 ? { places: [], unread: tooMany(members) } : files.read();
    for (const place of found.places) places.add(place);
    if (found.unread !== undefined) unread.push({ config: config.metadata.name, ...found.unread });
  }
  return { places, unread };
}

const tooMany = ({ length }: readonly MachineConfig[]): Unread => ({
  reason: `with the smaller ones of ${length} MachineConfigs, its files have more than ${mostInPool} characters`,
  remedy: shortenFiles,
});

/** The places of one file, and why it may mean something else to a container engine. */
function placesIn(text: string): { readonly places: readonly string[]; readonly problem?: string } {
  const document = kubernetesYaml(text);
  // Tenants read what is wrong: nothing of the text is in it.
  if (document.errors.length > 0) return { places: [], problem: "it is no plain YAML" };
  const root: unknown = document.toJS({ maxAliasCount: -1 }) ?? {};
  if (!isObject(root)) return { places: [], problem: "it is no object" };
  // Engines of earlier releases do not tell upper from lower case.
  const sections = Object.entries(root).filter(([key]) => key.toLowerCase() === "docker");
  const wrong = sections.find(([, section]) => section !== null && !isObject(section));
  return {
    places: sections.flatMap(([, section]) => (isObject(section) ? Object.keys(section) : [])),
    ...(wrong === undefined ? {} : { problem: `${wrong[0]} is no object` }),
  };
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);
