import { parse } from "smol-toml";
import { readOnce } from "../text/read-once.ts";
import { foldedName } from "../../ignition/folded-name.ts";
import { type ImageReference, parseImageReference, printImageReference, repositoryOf } from "./image-reference.ts";

export interface RegistryMirror {
  readonly location: string;
  readonly insecure: boolean;
  /** Empty, `all`, `digest-only` or `tag-only`. */
  readonly pullFromMirror: string;
}

export interface RegistrySection {
  /** Empty: the location. `*.example.com` stands for every host below that domain. */
  readonly prefix: string;
  readonly location: string;
  readonly blocked: boolean;
  readonly insecure: boolean;
  readonly mirrorByDigestOnly: boolean;
  readonly mirrors: readonly RegistryMirror[];
}

/** The contents of `/etc/containers/registries.conf` (version 2). */
export interface RegistriesConf {
  readonly unqualifiedSearch: readonly string[];
  /** By prefix, or by location where a section has no prefix. */
  readonly registries: ReadonlyMap<string, RegistrySection>;
}

/** A place to pull an image from. */
export interface PullSource {
  readonly reference: ImageReference;
  /** Plain HTTP and unverified certificates are accepted. */
  readonly insecure: boolean;
}

export type PullSources =
  | { readonly verdict: "sources"; readonly sources: readonly PullSource[] }
  | { readonly verdict: "refused"; readonly problem: string };

/**
 * Where to pull an image from: its mirrors in the order of the file, then the location that it names.
 * Source of the rules: containers-registries.conf(5) and containers/image pkg/sysregistriesv2 (main).
 *
 * @param conf `undefined`: the machine has no such file.
 */
export function pullSources(conf: RegistriesConf | undefined, reference: ImageReference): PullSources {
  const found = sectionFor(conf, reference);
  if (found === undefined) return { verdict: "sources", sources: [{ reference, insecure: false }] };
  const { scope, section } = found;
  const byDigest = reference.digest !== undefined;
  const mirrors = section.mirrors.filter(({ pullFromMirror }) => {
    if (section.mirrorByDigestOnly || pullFromMirror === "digest-only") return byDigest;
    return pullFromMirror !== "tag-only" || !byDigest;
  });
  const sources: PullSource[] = [];
  for (const place of [...mirrors, section]) {
    const moved = relocated(reference, scope, place.location);
    if (moved === undefined)
      return {
        verdict: "refused",
        problem: `registries.conf moves ${scope} to ${place.location}, which makes no reference`,
      };
    // A block is of the place that is asked: the mirrors of a blocked source are tried.
    const isBlocked = (place === section && section.blocked) || sectionFor(conf, moved)?.section.blocked === true;
    if (!isBlocked) sources.push({ reference: moved, insecure: place.insecure });
  }
  return sources.length === 0
    ? { verdict: "refused", problem: `registries.conf blocks ${scope}` }
    : { verdict: "sources", sources };
}

function sectionFor(
  conf: RegistriesConf | undefined,
  reference: ImageReference,
): { readonly scope: string; readonly section: RegistrySection } | undefined {
  const name = printImageReference(reference);
  let best: { readonly scope: string; readonly section: RegistrySection } | undefined;
  for (const [scope, section] of conf?.registries ?? []) {
    const matches = scope.startsWith("*.")
      ? reference.host.replace(/:[0-9]+$/, "").endsWith(scope.slice(1))
      : name.startsWith(scope) && (name.length === scope.length || /^[:/@]/.test(name.slice(scope.length)));
    if (matches && scope.length > (best?.scope.length ?? 0)) best = { scope, section };
  }
  return best;
}

function relocated(reference: ImageReference, scope: string, location: string): ImageReference | undefined {
  if (location === "") return scope.startsWith("*.") ? reference : undefined;
  const rest = printImageReference(reference).slice(scope.startsWith("*.") ? reference.host.length : scope.length);
  const reading = parseImageReference(`${location}${rest}`);
  // A location without a host would silently become one of docker.io.
  return reading.verdict === "reference" &&
    `${repositoryOf(reading.reference)}/`.startsWith(`${location.split("/")[0]}/`)
    ? reading.reference
    : undefined;
}

/**
 * Reads `/etc/containers/registries.conf`. `undefined` for a text that is not TOML or has fields of other types:
 * callers then refuse the image, or treat no change as safe.
 */
export const parseRegistriesConf = readOnce((text: string): RegistriesConf | undefined => {
  const { "unqualified-search-registries": search = [], registry: list = [] } =
    fieldsOf(tomlTable(text), fileFields) ?? unreadable;
  if (!isListOf(search, isText) || !isListOf(list, isTable)) return undefined;
  const registries = new Map<string, RegistrySection>();
  for (const raw of list) {
    const section = sectionOf(raw);
    if (section === undefined) return undefined;
    registries.set(section.prefix === "" ? section.location : section.prefix, section);
  }
  return { unqualifiedSearch: search, registries };
});

type Table = Readonly<Record<string, unknown>>;

const isText = (value: unknown): value is string => typeof value === "string";
const isTable = (value: unknown): value is Table =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
const isListOf = <T>(value: unknown, isItem: (item: unknown) => item is T): value is readonly T[] =>
  Array.isArray(value) && value.every(isItem);

function tomlTable(text: string): Table | undefined {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

const fileFields = ["unqualified-search-registries", "registry"];
const sectionFields = ["prefix", "location", "blocked", "insecure", "mirror", "mirror-by-digest-only"];
const mirrorFields = ["location", "insecure", "pull-from-mirror"];
/** Of no type that a field may have. */
const unreadable: Table = { registry: {}, location: {} };

/**
 * Known fields by their names. Container engines read names without regard to case (BurntSushi/toml decode.go), so that
 * `Blocked = true` blocks. `undefined`: a field stands there in two spellings, of which they take any.
 */
function fieldsOf(table: Table | undefined, known: readonly string[]): Table | undefined {
  if (table === undefined) return undefined;
  const found = Object.keys(table).flatMap((name) => {
    const field = known.find((one) => one === foldedName(name));
    return field === undefined ? [] : [[field, table[name]] as const];
  });
  return new Set(found.map(([field]) => field)).size < found.length ? undefined : Object.fromEntries(found);
}

function sectionOf(raw: Table): RegistrySection | undefined {
  const fields = fieldsOf(raw, sectionFields);
  if (fields === undefined) return undefined;
  const { prefix = "", location = "", blocked = false, insecure = false, mirror = [] } = fields;
  const mirrorByDigestOnly = fields["mirror-by-digest-only"] ?? false;
  const hasTexts = isText(prefix) && isText(location);
  if (!hasTexts || typeof blocked !== "boolean" || typeof insecure !== "boolean") return undefined;
  if (typeof mirrorByDigestOnly !== "boolean" || !isListOf(mirror, isTable)) return undefined;
  const mirrors = mirror.map(mirrorOf).filter((each) => each !== undefined);
  if (mirrors.length < mirror.length) return undefined;
  return { prefix, location, blocked, insecure, mirrorByDigestOnly, mirrors };
}

function mirrorOf(raw: Table): RegistryMirror | undefined {
  const {
    location = "",
    insecure = false,
    "pull-from-mirror": pullFromMirror = "",
  } = fieldsOf(raw, mirrorFields) ?? unreadable;
  return isText(location) && typeof insecure === "boolean" && isText(pullFromMirror)
    ? { location, insecure, pullFromMirror }
    : undefined;
}
