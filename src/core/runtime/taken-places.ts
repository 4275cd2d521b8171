import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { File } from "../../ignition/types.ts";
import { ignitionOf } from "../config/validate-machine-config.ts";
import { poolInRenderedName } from "../config/is-rendered.ts";
import { poolSelects } from "../config/pool-selector.ts";
import {
  type LookasideText,
  isLookasideFile,
  lookasideFolder,
  lookasideTexts,
  readLookaside,
  remedies,
} from "./lookaside-files.ts";
import { sigstorePath } from "./registries-config.ts";
import type { TakenPlaces, UnreadPlaces } from "./uncertain-places.ts";
import { readOncePerObject } from "../text/read-once.ts";

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

/** Characters of such files on the machines of a pool, those first that have least: more would hold up its registries. */
const mostInPool = 128 * 1024;

const none: PlaceFiles = { hasAny: false, size: 0, read: () => ({ places: [], unread: undefined }) };

/** Each MachineConfig is read once, for whichever pool and pass. */
const placeFilesOf = readOncePerObject((config: MachineConfig): PlaceFiles => {
  const { files, link } = filesIn(config);
  if (link === undefined) return files.length === 0 ? none : placeFiles(files);
  const reason = `${link} is a link, which is not followed`;
  const read = placeFiles(files);
  return {
    hasAny: true,
    get size() {
      return read.size;
    },
    read: () => ({ ...read.read(), unread: { reason, remedy: remedies.link } }),
  };
});

/** Contents are decoded for whoever asks for them, not for whether there are any. */
function placeFiles(files: readonly File[]): PlaceFiles {
  let texts: readonly LookasideText[] | undefined;
  let size: number | undefined;
  let found: ReadPlaces | undefined;
  return {
    hasAny: true,
    get size() {
      if (size !== undefined) return size;
      texts = lookasideTexts(files);
      size = texts.reduce((sum, one) => sum + (one.verdict === "text" ? one.text.length : 0), 0);
      return size;
    },
    read: () => {
      found ??= readPlaces(texts ?? lookasideTexts(files));
      texts = undefined;
      return found;
    },
  };
}

function readPlaces(texts: readonly LookasideText[]): ReadPlaces {
  const places: string[] = [];
  let unread: Unread | undefined;
  for (const one of texts) {
    const { path } = one.file;
    if (one.verdict === "unread") {
      unread ??= { reason: `${path}: ${one.reason}`, remedy: one.remedy };
      continue;
    }
    const reading = readLookaside(one.text);
    for (const place of reading.places) places.push(place);
    if (reading.uncertain !== undefined) unread ??= { reason: `${path}: ${reading.uncertain}`, remedy: remedies.yaml };
  }
  return { places, unread };
}

interface OwnFiles {
  readonly files: readonly File[];
  /** The first link that may bring such a file; machines that join follow it. */
  readonly link: string | undefined;
}

const noFiles: OwnFiles = { files: [], link: undefined };

/** As Ignition reads a key: in upper or lower case, and with the letters that Unicode folds to these. */
const linksKey = /"links"/iu;

/** A MachineConfig's own files of registries.d, without ours. */
function filesIn(config: MachineConfig): OwnFiles {
  if (poolInRenderedName(config.metadata.name) !== undefined) return noFiles;
  // Most configurations have none: their text is not read as Ignition.
  const text = JSON.stringify(config.spec?.config ?? {});
  if (!text.includes(lookasideFolder) && !linksKey.test(text)) return noFiles;
  const ignition = ignitionOf(config);
  if (ignition?.verdict !== "valid") return noFiles;
  const { files = [], links = [] } = ignition.config.storage ?? {};
  return {
    files: files.filter(({ path }) => isLookasideFile(path) && path !== sigstorePath),
    link: links.find(({ path, target }) => target !== "/dev/null" && mayBringPlaces(path))?.path,
  };
}

/** Whether a link is such a file, the folder of them, or one above it. */
const mayBringPlaces = (path: string): boolean =>
  isLookasideFile(path) || lookasideFolder.startsWith(path.endsWith("/") ? path : `${path}/`);

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
  remedy: remedies.size,
});
