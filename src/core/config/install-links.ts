import { type InstallSection, type InstallText, readInstallSection, readInstallText } from "./install-section.ts";
import { type UnitName, instanceOf, isInstanceName, readUnitName, templateOf } from "./unit-name.ts";

export const unitFolder = "/etc/systemd/system";
/** Units that the OS ships. */
export const vendorUnitFolder = "/usr/lib/systemd/system";

/** A unit file that systemd would find, with its drop-ins. */
export interface UnitFile {
  readonly path: string;
  /** The file, then its drop-ins. */
  readonly texts: readonly string[];
  /** Its template has more drop-ins than {@link mostForInstance}, which are left out. */
  readonly isTooMuch?: true;
}

/**
 * How many drop-ins, and how many lines and words in [Install] sections, an instance may have: those of a template count
 * for each of its instances, so that few lines of text could mean any number of links.
 */
export const mostForInstance = 64;

/** What systemd finds under exactly the name of a file, with the drop-ins of a unit that has this file: always the same. */
export type FindUnit = (file: string, unit: string) => UnitFile | "masked" | undefined;

/** A link below {@link unitFolder}: a unit that wants another one, or another name of a unit. */
export interface InstallLink {
  readonly path: string;
  readonly target: string;
}

const lastOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** The unit that a link enables. In a folder of dependencies it has the unit's name; elsewhere it leads to the unit. */
export const unitOfLink = ({ path, target }: InstallLink): string =>
  lastOf(/\.(wants|requires)\/[^/]+$/.test(path) ? path : target);

/**
 * The units of which `systemctl disable` removes a link: the link has the unit's name, leads to the unit, or has the name
 * of an instance of it (systemd/systemd src/shared/install.c, v252).
 */
export function namesOfLink({ path, target }: InstallLink): ReadonlySet<string> {
  const name = lastOf(path);
  return new Set([name, lastOf(target), templateOf(name)]);
}

/** The result of `systemctl enable` for one unit. */
export interface Enabling {
  readonly links: readonly InstallLink[];
  /** Those of the unit itself. */
  readonly own: readonly InstallLink[];
  /** Units whose links are among them: the unit, and those that its `Also=` names. */
  readonly units: readonly string[];
  /** Every other unit that an `Also=` on the way names, whether it exists or not. */
  readonly also: readonly string[];
  /** Why systemctl reports a failure; the links are made nevertheless. */
  readonly problems: readonly string[];
}

interface Found {
  readonly name: string;
  readonly file: UnitFile;
  readonly section: InstallSection;
  /** `undefined` where there is none, or where it counts for nothing. */
  readonly defaultInstance: string | undefined;
}

/** What `systemctl enable` does for one unit, without those that its `Also=` names. */
export interface Installing {
  /** Why nothing is enabled, if this unit is asked for. */
  readonly refusal?: string;
  /** systemctl would enable it: it is beyond {@link mostForInstance}. */
  readonly isTooMuch?: true;
  readonly links: readonly InstallLink[];
  /** Each begins with the name of the unit. */
  readonly problems: readonly string[];
  /** The other units that it names, each once. Those that stand above a {@link refusal} in its text count on the way. */
  readonly also: readonly string[];
}

/** What was read by a function that finds units: a unit that many others name is read once, and a template's text. */
interface ReadUnits {
  readonly units: Map<string, Installing>;
  readonly texts: Map<string, InstallText>;
}

const readBy = new WeakMap<FindUnit, ReadUnits>();

/**
 * What enabling does for one unit alone: systemd.unit(5); systemd/systemd src/shared/install.c (v252). Specifiers that
 * only a running machine knows (`%H`, `%m`, `%v` …) are not expanded: a name with one is a problem.
 */
export function installingOf(name: string, find: FindUnit): Installing {
  const known = readBy.get(find) ?? { units: new Map(), texts: new Map() };
  readBy.set(find, known);
  const before = known.units.get(name);
  if (before !== undefined) return before;
  const installing = readInstalling(name, find, known.texts);
  known.units.set(name, installing);
  return installing;
}

function readInstalling(name: string, find: FindUnit, texts: ReadUnits["texts"]): Installing {
  const found = search(name, find, texts);
  if (found === "masked" || found === undefined)
    return { ...nothing, refusal: `${name} ${found === undefined ? "does not exist" : "is masked"}` };
  if (found === "tooMuch")
    return {
      ...nothing,
      isTooMuch: true,
      refusal: `${name}, an instance, has more than ${mostForInstance} drop-ins, or lines and words in [Install] sections, with those of its template`,
    };
  const { problem, also: words } = found.section;
  const others = new Set<string>();
  for (const word of words) {
    const other = expanded(word, found);
    if (other !== undefined && other !== name) others.add(other);
  }
  const also = [...others];
  if (problem !== undefined) return { ...nothing, also, refusal: `${name}: ${problem}` };
  const [aliases, dependencies] = [aliasesOf(found), dependenciesOf(found, find)];
  return {
    links: [...aliases.links, ...dependencies.links],
    problems: [...aliases.problems, ...dependencies.problems].map((each) => `${name}: ${each}`),
    also,
  };
}

const nothing = { links: [], problems: [], also: [] } as const satisfies Installing;

/** A unit that is enabled, or named by one that is. */
export interface Reached {
  /** The first of the units that were asked for which leads to it. */
  readonly from: string;
  readonly installing: Installing;
}

/**
 * What enabling several units reaches: these, and those that `Also=` names on the way, whether they exist or not. Each once
 * and in this order, so that it takes a time that grows with the text of the units alone, however they name each other.
 * Of those that were asked for, one that is refused is reached only where another leads to it.
 */
export function reachedFrom(names: Iterable<string>, find: FindUnit): ReadonlyMap<string, Reached> {
  const reached = new Map<string, Reached>();
  for (const from of names) {
    if (reached.has(from) || installingOf(from, find).refusal !== undefined) continue;
    // A Set gives what is added while it is gone through.
    const queue = new Set([from]);
    for (const unit of queue) {
      const installing = installingOf(unit, find);
      reached.set(unit, { from, installing });
      for (const other of installing.also) if (!reached.has(other)) queue.add(other);
    }
  }
  return reached;
}

/** Those of the units that are reached which lead to one of these, and these. */
export function leadingTo(units: Iterable<string>, reached: ReadonlyMap<string, Reached>): ReadonlySet<string> {
  const namedBy = new Map<string, string[]>();
  for (const [unit, { installing }] of reached)
    for (const other of installing.also) {
      const known = namedBy.get(other) ?? [];
      namedBy.set(other, known);
      known.push(unit);
    }
  const leading = new Set(units);
  for (const unit of leading) for (const other of namedBy.get(unit) ?? []) leading.add(other);
  return leading;
}

/**
 * The result of `systemctl enable` for a unit below {@link unitFolder}. For several units at once there is
 * {@link reachedFrom}: this goes through all that one of them leads to.
 */
export function enablingOf(name: string, find: FindUnit): Enabling {
  const own = installingOf(name, find);
  if (own.refusal !== undefined) return { links: [], own: [], units: [], also: [], problems: [own.refusal] };
  const reached = reachedFrom([name], find);
  const links = new Map<string, string>();
  const problems: string[] = [];
  const units: string[] = [];
  for (const [unit, { installing }] of reached) {
    if (installing.refusal !== undefined) continue;
    units.push(unit);
    for (const { path, target } of installing.links) if (!links.has(path)) links.set(path, target);
    for (const problem of installing.problems) problems.push(problem);
  }
  const also = [...reached.keys()].slice(1);
  return { links: [...links].map(([path, target]) => ({ path, target })), own: own.links, units, also, problems };
}

/** The unit of a name, or the template of an instance. */
function search(name: string, find: FindUnit, texts: ReadUnits["texts"]): Found | "masked" | "tooMuch" | undefined {
  const read = readUnitName(name);
  if (read === undefined) return undefined;
  const file = find(name, name) ?? (read.kind === "instance" ? find(templateOf(name), name) : undefined);
  if (file === undefined || file === "masked") return file;
  const readOnce = (text: string): InstallText => {
    const before = texts.get(text) ?? readInstallText(text);
    texts.set(text, before);
    return before;
  };
  if (read.kind === "instance") {
    const size = file.texts.reduce((sum, text) => sum + readOnce(text).size, 0);
    if (file.isTooMuch === true || size > mostForInstance) return "tooMuch";
  }
  const section = readInstallSection(file.texts, readOnce);
  const instances =
    read.kind === "template"
      ? section.defaultInstances.map(({ word }) => expanded(word, { name, defaultInstance: undefined }))
      : [];
  const last = instances.at(-1);
  const found = { name, file, section, defaultInstance: last === "" ? undefined : last };
  // systemd stops reading at the first word that it refuses.
  const wrong = instances.findIndex((one) => one === undefined || (one !== "" && !isInstanceName(one)));
  const { word = "", alsoBefore = section.also.length } = section.defaultInstances[wrong] ?? {};
  const notAUnit = section.also.findIndex((also) => readUnitName(expanded(also, found) ?? "") === undefined);
  if (notAUnit >= 0 && notAUnit < alsoBefore)
    return withProblem(found, `Also=${section.also[notAUnit]} names no unit`, notAUnit);
  return wrong < 0 ? found : withProblem(found, `DefaultInstance=${word} cannot be an instance`, alsoBefore);
}

/** @param read how many words of `Also=` were read before. */
const withProblem = (found: Found, problem: string, read: number): Found => ({
  ...found,
  section: { ...found.section, also: found.section.also.slice(0, read), problem },
});

interface Made {
  readonly links: readonly InstallLink[];
  readonly problems: readonly string[];
}

const mayAlias: ReadonlySet<string> = new Set(["service", "socket", "target", "device", "timer", "path"]);

function aliasesOf(found: Found): Made {
  const links: InstallLink[] = [];
  const problems: string[] = [];
  const read = readUnitName(found.name);
  if (read === undefined || !mayAlias.has(read.type)) return { links, problems };
  for (const word of found.section.alias) {
    const alias = expanded(word, found);
    const path = alias === undefined ? undefined : aliasPath(alias, read);
    if (path === undefined) problems.push(`Alias=${word} cannot be a name of it`);
    else if (path !== found.name) links.push({ path: `${unitFolder}/${path}`, target: found.file.path });
  }
  return { links, problems };
}

/** Where an alias is linked, if it may be: its kind and type must be those of the unit. */
function aliasPath(alias: string, unit: UnitName): string | undefined {
  if (alias.includes("/")) return dependencyAlias(alias, unit);
  const read = readUnitName(alias);
  if (read === undefined || read.type !== unit.type) return undefined;
  if (read.kind === "template" && unit.kind === "instance") return instanceOf(alias, unit.instance);
  if (read.kind === "plain") return unit.kind === "plain" ? alias : undefined;
  if (unit.kind === "plain") return undefined;
  if (read.kind === "template") return alias;
  return unit.kind === "template" || unit.instance === read.instance ? alias : undefined;
}

/** `Alias=x.target.wants/name`, an old way to write WantedBy. */
function dependencyAlias(alias: string, unit: UnitName): string | undefined {
  const match = /^([^/]+)\.(wants|requires)\/([^/]+)$/.exec(alias);
  const [, folder = "", , name = ""] = match ?? [];
  if (match === null || readUnitName(folder) === undefined) return undefined;
  const own = readUnitName(name);
  const isSame =
    own !== undefined &&
    own.prefix === unit.prefix &&
    own.type === unit.type &&
    (own.kind === unit.kind || (own.kind === "instance" && unit.kind === "template")) &&
    (unit.kind !== "instance" || own.instance === unit.instance);
  return isSame ? alias : undefined;
}

/** The links of WantedBy and RequiredBy. */
function dependenciesOf(found: Found, find: FindUnit): Made {
  const links: InstallLink[] = [];
  const problems: string[] = [];
  const read = readUnitName(found.name);
  const isBareTemplate = read?.kind === "template" && found.defaultInstance === undefined;
  const name =
    read?.kind === "template" && found.defaultInstance !== undefined
      ? instanceOf(found.name, found.defaultInstance)
      : found.name;
  const lists = [
    ["WantedBy", "wants", found.section.wantedBy],
    ["RequiredBy", "requires", found.section.requiredBy],
  ] as const;
  for (const [key, suffix, words] of lists) {
    // An instance can have a file of its own, or be masked.
    const file = name === found.name ? found.file : find(name, name);
    if (words.length > 0 && file === "masked") {
      problems.push(`${name} is masked`);
      continue;
    }
    const target = (file === "masked" || file === undefined ? found.file : file).path;
    for (const word of words) {
      const wanter = expanded(word, found);
      const kind = wanter === undefined ? undefined : readUnitName(wanter)?.kind;
      if (wanter === undefined || kind === undefined) problems.push(`${key}=${word} names no unit`);
      else if (isBareTemplate && kind === "plain")
        problems.push(`${key}=${word} needs an instance: the template has no DefaultInstance`);
      else links.push({ path: `${unitFolder}/${wanter}.${suffix}/${name}`, target });
    }
  }
  return { links, problems };
}

/** A word with its specifiers replaced (systemd.unit(5)); `undefined` where only a machine knows one of them. */
function expanded(
  word: string,
  { name, defaultInstance }: Pick<Found, "name" | "defaultInstance">,
): string | undefined {
  const read = readUnitName(name);
  if (read === undefined) return undefined;
  const { prefix, kind, type } = read;
  const instance = kind === "plain" ? "" : kind === "instance" ? read.instance : (defaultInstance ?? "");
  const prefixAndInstance = kind === "plain" ? prefix : `${prefix}@${instance}`;
  const known: Readonly<Record<string, string>> = {
    "%": "%",
    i: instance,
    j: prefix.slice(prefix.lastIndexOf("-") + 1),
    p: prefix,
    n: `${prefixAndInstance}.${type}`,
    N: prefixAndInstance,
  };
  let isUnknown = false;
  const text = word.replace(/%([a-zA-Z%])/g, (all, letter: string) => {
    const value = known[letter];
    if (value !== undefined) return value;
    if (/[aAbBgGHlmMoquUvVwWT]/.test(letter)) isUnknown = true;
    return all;
  });
  return isUnknown ? undefined : text;
}

/**
 * Drop-ins of a unit in the order in which they count, by the names of their files: those of an instance hide those of
 * its template (systemd.unit(5)).
 *
 * @param below the files of a folder of drop-ins, name → text
 */
export function dropinsOf(unit: string, below: (folder: string) => ReadonlyMap<string, string>): readonly string[] {
  const texts = new Map<string, string>();
  for (const name of [templateOf(unit), unit])
    for (const [file, text] of below(`${name}.d`)) if (file.endsWith(".conf")) texts.set(file, text);
  return [...texts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text);
}

/** The file of a unit with its drop-ins, as {@link dropinsOf} gives them; of an instance no more than it may have. */
export function unitFileOf(
  { path, text }: { readonly path: string; readonly text: string },
  unit: string,
  below: (folder: string) => ReadonlyMap<string, string>,
): UnitFile {
  const template = templateOf(unit);
  if (template !== unit && below(`${template}.d`).size > mostForInstance)
    return { path, texts: [text], isTooMuch: true };
  return { path, texts: [text, ...dropinsOf(unit, below)] };
}

/** Whether enabling a unit of this text has a meaning: it makes a link or enables other units. */
export function isInstallable(name: string, texts: readonly string[]): boolean {
  const file: UnitFile = { path: `${unitFolder}/${name}`, texts };
  const { links } = installingOf(name, (other) => (other === name ? file : undefined));
  return links.length > 0 || readInstallSection(texts).also.length > 0;
}
