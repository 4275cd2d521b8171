import type { Op } from "../config/change.ts";
import {
  type FindUnit,
  type InstallLink,
  installingOf,
  leadingTo,
  namesOfLink,
  reachedFrom,
  unitFolder,
  unitOfLink,
  vendorUnitFolder,
} from "../config/install-links.ts";
import {
  type NodeConfig,
  type ShippedUnits,
  type WantedEnablement,
  bringsUnit,
  findUnitIn,
  managedUnits,
  masks,
  sameWanted,
} from "../config/node-config.ts";
import { readUnitName, templateOf } from "../config/unit-name.ts";
import { textOf } from "../../ignition/data-url.ts";
import type { ObservedContent, Originals } from "./observed-content.ts";

/** Steps that apply the enablement of units. */
export type UnitStep =
  /** Removes and makes links of these units without systemctl, which does not change those of masked units. */
  | {
      readonly do: "relinkUnits";
      readonly units: readonly string[];
      readonly remove: readonly string[];
      readonly make: readonly InstallLink[];
    }
  | { readonly do: "enableUnit" | "disableUnit" | "presetUnit"; readonly unit: string };

export interface UnitGap {
  /** Before files are restored and written. */
  readonly before: readonly UnitStep[];
  readonly after: readonly UnitStep[];
  readonly units: readonly { readonly name: string; readonly op: Op }[];
}

/** What is known of the units of a machine. */
type ObservedUnits = Pick<
  ObservedContent,
  "enablement" | "links" | "shippedUnits" | "shippedLinks" | "originals" | "previous"
>;

const unitPath = (name: string) => `${unitFolder}/${name}`;

export const isMask = (entry: { readonly kind: string; readonly target?: string } | null | undefined): boolean =>
  entry?.kind === "link" && entry.target === "/dev/null";

/**
 * Unit actions before and after files are restored and written.
 *
 * Units that are enabled and disabled together form a group: an instance and its template, and what `Also=` names. Where
 * one unit of a group is not as the target has it, the whole group gets the links that it had before this suite managed
 * it, and then what the target says. So the result does not depend on earlier configurations.
 *
 * @param touched paths that are restored or written
 */
export function unitGap(node: ObservedUnits, target: NodeConfig, touched: ReadonlySet<string>): UnitGap {
  const find = findUnitIn(target, node.shippedUnits ?? new Map());
  const managed = managedUnits(target, find);
  const names = new Set([...managed, ...Object.keys(node.originals.enablement)]);
  const dropins = { before: installDropins(node.previous), after: installDropins(target) };
  const lacking = unitsLackingLinks(names, node, find);
  const linksNow = linksByUnit(node);
  const original = originalUnits(node, linksNow);
  const linksShipped = byUnit(linksIn(Object.fromEntries(node.shippedLinks ?? [])));
  const known: Known = { node, target, find, touched, managed, dropins, lacking, linksNow, linksShipped, original };
  const facts = new Map([...names].map((name) => [name, unitFacts(name, known)]));
  const groups = groupsOf(names, node, find).filter((group) => {
    const units = group.flatMap((name) => facts.get(name) ?? []);
    // Of a unit alone, its state shows that the change is made.
    return units.some(({ differs }) => differs) || (units.length > 1 && units.some(({ isNew }) => isNew));
  });
  const changes = groups.map((group) =>
    groupChange(
      group,
      group.flatMap((name) => facts.get(name) ?? []),
      known,
    ),
  );
  const changing = changes.flatMap(({ units }) => units);
  return {
    before: changes.flatMap(({ before }) => before),
    after: inOrder(
      changing.flatMap((unit) => stepsOf(unit, target)),
      find,
    ),
    units: changing.flatMap(({ name, reported }) => (reported === undefined ? [] : [{ name, op: reported }])),
  };
}

/** What comes before files are restored and written, and the units that get what the target or their record says. */
interface GroupChange {
  readonly before: readonly UnitStep[];
  readonly units: readonly UnitFacts[];
}

/**
 * Units of which only presets say what they were are preset first: until the links of the others change, the group differs
 * from its target, so that a daemon that was killed presets them again.
 */
function groupChange(group: readonly string[], units: readonly UnitFacts[], known: Known): GroupChange {
  const first = units.filter(({ presetsFirst }) => presetsFirst).map(({ name }) => name);
  const relinked = relinking(group, new Set(first), known);
  // What the target does not manage is as it was: only its record is left.
  if (relinked.length === 0 && !units.some(({ differs }) => differs))
    return { before: [], units: units.filter(({ isLeft }) => !isLeft) };
  return {
    before: [...first.map((unit) => ({ do: "presetUnit", unit }) as const), ...relinked],
    units: units.map((unit) => (unit.presetsFirst ? { ...unit, was: undefined } : unit)),
  };
}

/** What is known of one unit. */
interface UnitFacts {
  readonly name: string;
  /** The target does not manage it any more. */
  readonly isLeft: boolean;
  /** Presets alone say what it was, and its file does not change. */
  readonly presetsFirst: boolean;
  /** It is not as the target has it, or may not be. */
  readonly differs: boolean;
  /** The target says something new of it. */
  readonly isNew: boolean;
  /** How its enablement differs, if its file does not. */
  readonly reported: Op | undefined;
  /** systemctl can enable it once everything is written. */
  readonly isUsable: boolean;
  /** Its state before it was managed, where its links are unknown and the target does not manage it. */
  readonly was: string | undefined;
}

interface Known {
  readonly node: ObservedUnits;
  readonly target: NodeConfig;
  readonly find: FindUnit;
  readonly touched: ReadonlySet<string>;
  readonly managed: ReadonlySet<string>;
  /** Those of the previous configuration, if it is known, and those of the target. */
  readonly dropins: Readonly<Record<"before" | "after", InstallDropins | undefined>>;
  /** Units of which links are missing, once they are enabled. */
  readonly lacking: ReadonlySet<string>;
  /** Those that the machine has, and those that the OS ships. */
  readonly linksNow: LinksByUnit;
  readonly linksShipped: LinksByUnit;
  readonly original: (name: string) => UnitOriginal;
}

function unitFacts(name: string, known: Known): UnitFacts {
  const { node, target, find, touched, managed, dropins, lacking } = known;
  const { previous } = node;
  const is = node.enablement.get(name) ?? "absent";
  const wanted = target.enablement.get(name);
  const isRewritten = filesOf(name, target).some((path) => touched.has(path));
  const isUsable = !masks(target, name) && hasFile(name, is, isRewritten, node, target);
  const canEnable = isUsable && isEnableable(name, find, wanted);
  const isLeft = wanted === undefined && !managed.has(name);
  const needsEnabling = is === "disabled" || (bringsUnit(target, name) && (is === "absent" || is === "masked"));
  const isWrong =
    (wanted?.enabled === true && canEnable && needsEnabling) ||
    (wanted?.enabled === false && isUsable && is === "enabled");
  const isChanged = previous === undefined || !saysTheSame(name, previous, target);
  const isLeftWrong = isLeft && !hasOriginalLinks(name, is, known);
  // Nothing shows what presets say; and a daemon that was killed may have made some of the links.
  const mayDiffer =
    wanted?.enabled === undefined
      ? wanted !== undefined && previous !== undefined && isChanged
      : isChanged && wanted.enabled && canEnable && lacking.has(name);
  const isReported = isLeftWrong && isUsable && !followsTemplate(name, target);
  const was = isLeft ? withoutLinks(recordOf(name, known)) : undefined;
  return {
    name,
    isLeft,
    presetsFirst: was === "unknown" && isUsable && !isRewritten && previous?.enablement.has(name) === false,
    differs: isRewritten || isWrong || isLeftWrong || mayDiffer || hasOtherDropins(name, dropins),
    isNew: isChanged || isLeft,
    reported: isRewritten ? undefined : isWrong ? "update" : isReported ? "delete" : undefined,
    isUsable: wanted === undefined ? isUsable : isUsable && (wanted.enabled === false || canEnable),
    was,
  };
}

/** Drop-ins that count for [Install] sections, by the names of the units' files: their paths and contents, in one text. */
type InstallDropins = ReadonlyMap<string, string>;

/** Those that have such a section, and those of an instance that hide one of its template. */
function installDropins(config: NodeConfig | undefined): InstallDropins | undefined {
  if (config === undefined) return undefined;
  const dropins = new Map<string, Map<string, { readonly isInstall: boolean; readonly text: string }>>();
  for (const [path, entry] of config.entries) {
    const [, file, name] = /^\/etc\/systemd\/system\/([^/]+)\.d\/(.+)$/.exec(path) ?? [];
    if (file === undefined || name === undefined || entry.kind !== "file") continue;
    const known = dropins.get(file) ?? new Map<string, { readonly isInstall: boolean; readonly text: string }>();
    dropins.set(file, known);
    const isInstall = textOf(entry.contents)?.includes("[Install]") === true;
    known.set(name, { isInstall, text: `${path} ${entry.digest}` });
  }
  const counted = new Map<string, string>();
  for (const [file, each] of dropins) {
    const hidden = templateOf(file) === file ? undefined : dropins.get(templateOf(file));
    const texts = [...each].flatMap(([name, { isInstall, text }]) =>
      isInstall || hidden?.get(name)?.isInstall === true ? [text] : [],
    );
    if (texts.length > 0) counted.set(file, texts.join());
  }
  return counted;
}

/** Whether drop-ins that count for [Install] sections differ. */
const hasOtherDropins = (name: string, { before, after }: Known["dropins"]): boolean =>
  before !== undefined && [name, templateOf(name)].some((file) => before.get(file) !== after?.get(file));

/** Whether two configurations have the same file and enablement of a unit. */
const saysTheSame = (name: string, a: NodeConfig, b: NodeConfig): boolean =>
  a.enablement.get(name)?.enabled === b.enablement.get(name)?.enabled &&
  [name, templateOf(name)].every((file) => sameWanted(a.entries.get(unitPath(file)), b.entries.get(unitPath(file))));

/** Those of these units of which a link is missing that enabling them makes: one of their own, or of those that they name. */
function unitsLackingLinks(names: ReadonlySet<string>, { links }: ObservedUnits, find: FindUnit): ReadonlySet<string> {
  if (links === undefined) return new Set();
  const reached = reachedFrom(names, find);
  const lacking = [...reached].flatMap(([unit, { installing }]) =>
    installing.links.some(({ path }) => !links.has(path)) ? [unit] : [],
  );
  const leading = leadingTo(lacking, reached);
  return new Set([...leading].filter((unit) => installingOf(unit, find).refusal === undefined));
}

/** Paths of the file of a unit. An instance with a file of its own does not follow its template. */
const filesOf = (name: string, target: NodeConfig): readonly string[] =>
  target.entries.get(unitPath(name))?.kind === "file"
    ? [unitPath(name)]
    : [...new Set([name, templateOf(name)])].map(unitPath);

/** Whether a unit has a file once everything is written. */
function hasFile(name: string, is: string, isRewritten: boolean, node: ObservedUnits, target: NodeConfig): boolean {
  if (bringsUnit(target, name)) return true;
  const files = [...new Set([name, templateOf(name)])];
  const isRestored = files.some(
    (file) => !target.entries.has(unitPath(file)) && node.originals.paths[unitPath(file)]?.kind === "file",
  );
  if (!isRewritten) return is !== "absent" && is !== "masked";
  return isRestored || files.some((file) => node.shippedUnits?.has(file) === true);
}

/** Units that the target enables and that neither the target nor the machine has: they are skipped. */
export function unitsThatAreNotThere(
  { enablement, originals }: Pick<ObservedUnits, "enablement" | "originals">,
  target: NodeConfig,
): readonly string[] {
  return [...target.enablement].flatMap(([name, { enabled }]) => {
    const isThere = (enablement.get(name) ?? "absent") !== "absent" || bringsUnit(target, name);
    const comesBack = [name, templateOf(name)].some((file) => originals.paths[unitPath(file)]?.kind === "file");
    return enabled === true && !isThere && !comesBack ? [name] : [];
  });
}

/** Whether enabling a unit makes links; of one whose file is unknown it counts as if it did. */
export function isEnableable(name: string, find: FindUnit, wanted: WantedEnablement | undefined): boolean {
  const file = find(name, name) ?? find(templateOf(name), name);
  if (file === undefined) return wanted?.installable !== false;
  const { links, also, refusal } = installingOf(name, find);
  return refusal === undefined && (links.length > 0 || also.length > 0);
}

/** Whether the links of an instance change with those of its template. */
const followsTemplate = (name: string, target: NodeConfig): boolean => {
  const template = templateOf(name);
  return template !== name && (target.enablement.has(template) || target.entries.has(unitPath(template)));
};

/** Whether a unit that the target does not manage is enabled as it was. */
function hasOriginalLinks(name: string, is: string, known: Known): boolean {
  const { node, linksNow } = known;
  const { was, links: recorded } = recordOf(name, known);
  if (was === "unknown" && node.links !== undefined && !isEnabledAsShipped(name, node.previous))
    return (linksNow.get(name) ?? []).every(({ target }) => target.startsWith(`${vendorUnitFolder}/`));
  if (recorded === undefined || node.links === undefined) return (is === "enabled") === (was === "enabled");
  const were = Object.keys(recorded).filter((path) => !Object.hasOwn(node.originals.paths, path));
  const now = linksNow.get(name) ?? [];
  return now.length === were.length && now.every(({ path, target }) => recorded[path] === target);
}

/** Whether a configuration says of a unit that the OS ships whether it is enabled: the links do not show who made them. */
const isEnabledAsShipped = (name: string, config: NodeConfig | undefined): boolean =>
  config?.enablement.has(name) === true && !bringsUnit(config, name);

/** The enablement of a unit before it was managed. */
interface UnitRecord {
  /** `unknown`: presets decide. */
  readonly was: string;
  /** Absent if unknown. */
  readonly links?: Readonly<Record<string, string>>;
}

/** What a unit was, where its links are unknown. */
const withoutLinks = ({ was, links }: UnitRecord): string | undefined => (links === undefined ? was : undefined);

const isShipped = (name: string, shipped: ObservedUnits["shippedUnits"]): boolean =>
  shipped?.has(name) === true || shipped?.has(templateOf(name)) === true;

/** Whether presets of the OS say how a unit is: one that it ships; those of a template name instances of their own. */
const hasPresets = (name: string, shipped: ObservedUnits["shippedUnits"]): boolean =>
  isShipped(name, shipped) && readUnitName(name)?.kind === "plain";

/** Units that the OS ships, and that are recorded as absent: a configuration brought their files before anything was known. */
export const hiddenUnits = (
  { enablement }: Originals,
  shipped: NonNullable<ObservedUnits["shippedUnits"]>,
): readonly string[] =>
  Object.entries(enablement).flatMap(([name, was]) => (was === "absent" && isShipped(name, shipped) ? [name] : []));

/**
 * What the record of a unit means on the system that runs. Of a unit that the OS ships and that is recorded as absent,
 * what the OS enables counts: its links, or else its presets, which say something of a template's instances only where
 * they name them.
 */
function recordOf(name: string, { node, linksShipped }: Pick<Known, "node" | "linksShipped">): UnitRecord {
  const { originals, shippedUnits } = node;
  const { enablement, links, paths } = originals;
  const was = enablement[name] ?? "absent";
  if (was === "absent" && name in enablement && isShipped(name, shippedUnits)) {
    const shipped = linksShipped.get(name) ?? [];
    if (shipped.length > 0) return { was: "enabled", links: recordOfLinks(shipped) };
    return { was: hasPresets(name, shippedUnits) ? "unknown" : "disabled" };
  }
  const recorded = links?.[name];
  if (recorded !== undefined) return { was, links: recorded };
  // An earlier release recorded a unit as masked that it had masked itself.
  return { was: was === "masked" && unitPath(name) in paths && !isMask(paths[unitPath(name)]) ? "unknown" : was };
}

/** Links by the units that they concern. */
type LinksByUnit = ReadonlyMap<string, readonly InstallLink[]>;

/** Of the links that a machine has; paths of entries that configurations manage are none. */
const linksByUnit = ({ links, originals }: Pick<ObservedUnits, "links" | "originals">): LinksByUnit =>
  byUnit(
    [...(links ?? [])].flatMap(([path, target]) => (Object.hasOwn(originals.paths, path) ? [] : [{ path, target }])),
  );

function byUnit(links: readonly InstallLink[]): LinksByUnit {
  const found = new Map<string, InstallLink[]>();
  for (const link of links)
    for (const unit of namesOfLink(link)) {
      const known = found.get(unit) ?? [];
      found.set(unit, known);
      known.push(link);
    }
  return found;
}

const linksIn = (record: Readonly<Record<string, string>>): readonly InstallLink[] =>
  Object.entries(record).map(([path, target]) => ({ path, target }));

const recordOfLinks = (links: readonly InstallLink[]): Readonly<Record<string, string>> =>
  Object.fromEntries(links.map(({ path, target }) => [path, target]));

const textOfLink = ({ path, target }: InstallLink): string => `${path}\0${target}`;

/** Links that the units of earlier releases got by `Also=` of units whose own links were not recorded. */
export function unrecordedLinks(
  { enablement, links: recorded }: Originals,
  previous: NodeConfig | undefined,
  shippedUnits: ShippedUnits,
): readonly InstallLink[] {
  const names = [...(previous?.enablement ?? [])].flatMap(([name, { enabled }]) =>
    enabled === true && name in enablement && recorded?.[name] === undefined ? [name] : [],
  );
  if (previous === undefined || names.length === 0) return [];
  const reached = reachedFrom(names, findUnitIn(previous, shippedUnits));
  return [...reached.values()].flatMap(({ installing }) => installing.links);
}

/** Those of them that are not of the OS: it ships others, or they lead to files of the configuration. */
function unrecordedOwnLinks(
  node: Pick<ObservedUnits, "originals" | "previous" | "shippedUnits" | "shippedLinks">,
): ReadonlySet<string> {
  const { originals, previous, shippedUnits = new Map(), shippedLinks } = node;
  const own = unrecordedLinks(originals, previous, shippedUnits).filter(
    ({ path, target }) => shippedLinks?.get(path) !== target || previous?.entries.has(target) === true,
  );
  return new Set(own.map(textOfLink));
}

/**
 * The originals as this release records them. Some releases left links that `Also=` may have made out of the records of the
 * units that it names, also those of the OS, so that these records are of units that were disabled: as for a unit of which
 * nothing is recorded yet, the links that the OS ships count, or else its presets.
 */
export function originalsWithLinksOfOs(
  node: Pick<ObservedUnits, "originals" | "previous" | "shippedUnits" | "shippedLinks">,
): Originals {
  const { originals, previous, shippedUnits = new Map() } = node;
  const own = unrecordedOwnLinks(node);
  const units = [...byUnit(unrecordedLinks(originals, previous, shippedUnits))].flatMap(
    ([name, unrecorded]): readonly (readonly [string, UnitOriginal])[] => {
      const recorded = originals.links?.[name];
      if (recorded === undefined || !["enabled", "disabled"].includes(originals.enablement[name] ?? "")) return [];
      const ofOs = unrecorded.filter((link) => !own.has(textOfLink(link)) && !(link.path in recorded));
      if (ofOs.length > 0) return [[name, { enablement: "enabled", links: { ...recorded, ...recordOfLinks(ofOs) } }]];
      const isUnknown = Object.keys(recorded).length === 0 && hasPresets(name, shippedUnits);
      return isUnknown ? [[name, { enablement: "unknown" }]] : [];
    },
  );
  if (units.length === 0) return originals;
  const names = new Set(units.map(([name]) => name));
  const others = Object.entries(originals.links ?? {}).filter(([name]) => !names.has(name));
  return {
    ...originals,
    enablement: { ...originals.enablement, ...Object.fromEntries(units.map(([unit, was]) => [unit, was.enablement])) },
    links: { ...Object.fromEntries(others), ...linksOfUnits(units) },
  };
}

/** What to record of a unit before it is managed; without links, presets decide. */
export interface UnitOriginal {
  readonly enablement: string;
  readonly links?: Readonly<Record<string, string>>;
}

/** The links to record, of units that have any recorded. */
export const linksOfUnits = (units: readonly (readonly [string, UnitOriginal])[]): NonNullable<Originals["links"]> =>
  Object.fromEntries(units.flatMap(([unit, { links }]) => (links === undefined ? [] : [[unit, links]])));

/**
 * What to record of units before they are managed. Links that other managed units got are not their original ones. A unit
 * that has only such as an earlier release may have made, and did not record, gets what its presets say.
 */
export function originalUnits(
  node: ObservedUnits,
  linksNow: LinksByUnit = linksByUnit(node),
): (name: string) => UnitOriginal {
  const { originals, enablement, shippedUnits } = node;
  const recorded = byUnit(Object.values(originals.links ?? {}).flatMap(linksIn));
  const unrecorded = unrecordedOwnLinks(node);
  const isOfOthers = (link: InstallLink) =>
    [...namesOfLink(link)].some((other) => {
      const links = originals.links?.[other];
      return links !== undefined && links[link.path] !== link.target;
    });
  return (name) => {
    const is = enablement.get(name) ?? "absent";
    const now = linksNow.get(name) ?? [];
    const known = now.filter((link) => !unrecorded.has(textOfLink(link)));
    const untouched = known.filter((link) => !isOfOthers(link));
    const links = recordOfLinks([...untouched, ...(recorded.get(name) ?? [])]);
    const isOwnMask =
      is === "masked" && Object.hasOwn(originals.paths, unitPath(name)) && !isMask(originals.paths[unitPath(name)]);
    const isOriginal = untouched.length === now.length && Object.keys(links).length === now.length;
    if (isOriginal && !isOwnMask) return { enablement: is, links };
    if (Object.keys(links).length > 0) return { enablement: "enabled", links };
    return known.length < now.length && hasPresets(name, shippedUnits)
      ? { enablement: "unknown" }
      : { enablement: "disabled", links };
  };
}

/** The links that a unit had before it was managed. */
function originalLinks(name: string, known: Known): readonly InstallLink[] {
  const { node, linksNow, original } = known;
  const { was, links: recorded } = recordOf(name, known);
  if (Object.hasOwn(node.originals.enablement, name) && recorded === undefined)
    return was === "enabled" ? (linksNow.get(name) ?? []) : [];
  return linksIn(recorded ?? original(name).links ?? {});
}

/**
 * Gives a group its original links, but those of units that the target gives another text. Links that enabling makes
 * stay: a power cut must not leave a unit disabled that is enabled before and after.
 *
 * @param preset units whose links their presets change.
 */
function relinking(group: readonly string[], preset: ReadonlySet<string>, known: Known): readonly UnitStep[] {
  const { node, target, find, linksNow } = known;
  if (node.links === undefined) return [];
  const originals = group
    .flatMap((name) => originalLinks(name, known))
    .filter((link) => !bringsUnit(target, unitOfLink(link)) || masks(target, unitOfLink(link)));
  const enabled = group.filter((name) => {
    const wanted = target.enablement.get(name);
    // Presets of a template name instances of their own (systemd.preset(5)).
    const isPreset = wanted?.enabled === undefined && readUnitName(name)?.kind === "template";
    return wanted !== undefined && wanted.enabled !== false && !isPreset;
  });
  const made = [...reachedFrom(enabled, find).values()].flatMap(({ installing }) => installing.links);
  const kept = new Set([...originals, ...made].map(textOfLink));
  const isManaged = (link: InstallLink) =>
    target.entries.has(link.path) ||
    Object.hasOwn(node.originals.paths, link.path) ||
    [...namesOfLink(link)].some((name) => preset.has(name));
  const now = distinct(group.flatMap((name) => linksNow.get(name) ?? []));
  const remove = now.filter((link) => !isManaged(link) && !kept.has(textOfLink(link)));
  const make = originals.filter((link) => !isManaged(link) && node.links?.get(link.path) !== link.target);
  if (remove.length === 0 && make.length === 0) return [];
  const gone = remove.map(({ path }) => path).sort();
  return [{ do: "relinkUnits", units: group, remove: gone, make: distinct(make) }];
}

const distinct = (links: readonly InstallLink[]): readonly InstallLink[] => [
  ...new Map(links.map((link) => [link.path, link])).values(),
];

type EnablementStep = Exclude<UnitStep, { do: "relinkUnits" }>;

/** What the target says of a unit. */
function stepsOf({ name, isUsable, was }: UnitFacts, target: NodeConfig): readonly EnablementStep[] {
  const wanted = target.enablement.get(name);
  if (!isUsable) return [];
  if (wanted === undefined) {
    if (was === "enabled") return [{ do: "enableUnit", unit: name }];
    return was === "unknown" ? [{ do: "presetUnit", unit: name }] : [];
  }
  const { enabled } = wanted;
  return [{ do: enabled === undefined ? "presetUnit" : enabled ? "enableUnit" : "disableUnit", unit: name }];
}

/** Presets, then what is disabled, then what is enabled; a unit that another one enables against the target at last. */
function inOrder(steps: readonly EnablementStep[], find: FindUnit): readonly EnablementStep[] {
  const order = ["presetUnit", "disableUnit", "enableUnit"];
  const sorted = steps.toSorted(
    (a, b) => order.indexOf(a.do) - order.indexOf(b.do) || (a.unit < b.unit ? -1 : a.unit > b.unit ? 1 : 0),
  );
  const enabled = steps.flatMap((step) => (step.do === "disableUnit" ? [] : [step.unit]));
  const also = reachedFrom(enabled, find);
  return [...sorted, ...sorted.filter((step) => step.do === "disableUnit" && also.has(step.unit))];
}

/** Units that are enabled and disabled together, in this or the previous configuration: each in one group, sorted. */
function groupsOf(names: ReadonlySet<string>, node: ObservedUnits, find: FindUnit): readonly (readonly string[])[] {
  const { previous, shippedUnits = new Map() } = node;
  const finds = [find, ...(previous === undefined ? [] : [findUnitIn(previous, shippedUnits)])];
  const groupOf = new Map<string, Set<string>>();
  const groupWith = (name: string): Set<string> => {
    const group = groupOf.get(name) ?? new Set([name]);
    groupOf.set(name, group);
    return group;
  };
  const join = (a: string, b: string) => {
    const [one, other] = [groupWith(a), groupWith(b)];
    if (one === other) return;
    // The smaller group joins the larger one, so that no unit moves often.
    const [from, to] = one.size < other.size ? [one, other] : [other, one];
    for (const unit of from) groupOf.set(unit, to.add(unit));
  };
  for (const name of names) join(name, names.has(templateOf(name)) ? templateOf(name) : name);
  for (const each of finds) {
    const reached = reachedFrom(names, each);
    // What leads to none of them ties none together.
    const ties = leadingTo(names, reached);
    for (const [unit, { installing }] of reached)
      for (const other of installing.also) if (ties.has(unit) && ties.has(other)) join(unit, other);
  }
  const groups = [...new Set(groupOf.values())].map((group) => [...group].filter((unit) => names.has(unit)).sort());
  return groups.sort(([a = ""], [b = ""]) => (a < b ? -1 : 1));
}
