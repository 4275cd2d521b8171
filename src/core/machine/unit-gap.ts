import type { Op } from "../config/change.ts";
import {
  type FindUnit,
  type InstallLink,
  concernsUnit,
  enablingOf,
  unitFolder,
  unitOfLink,
} from "../config/install-links.ts";
import {
  type NodeConfig,
  type WantedEnablement,
  alsoOf,
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
  const known: Known = { node, target, find, touched, managed, dropins };
  const facts = new Map([...names].map((name) => [name, unitFacts(name, known)]));
  const groups = groupsOf(names, node, find).filter((group) => {
    const units = group.flatMap((name) => facts.get(name) ?? []);
    // Of a unit alone, its state shows that the change is made.
    return units.some(({ differs }) => differs) || (units.length > 1 && units.some(({ isNew }) => isNew));
  });
  const changing = groups.flat().flatMap((name) => facts.get(name) ?? []);
  return {
    before: groups.flatMap((group) => relinking(group, node, target, find)),
    after: inOrder(
      changing.flatMap((unit) => stepsOf(unit, target)),
      find,
    ),
    units: changing.flatMap(({ name, reported }) => (reported === undefined ? [] : [{ name, op: reported }])),
  };
}

/** What is known of one unit. */
interface UnitFacts {
  readonly name: string;
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
}

function unitFacts(name: string, { node, target, find, touched, managed, dropins }: Known): UnitFacts {
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
  const isLeftWrong = isLeft && !hasOriginalLinks(name, is, node);
  // Nothing shows what presets say; and a daemon that was killed may have made some of the links.
  const mayDiffer =
    wanted?.enabled === undefined
      ? wanted !== undefined && previous !== undefined && isChanged
      : isChanged && wanted.enabled && canEnable && lacksLinks(name, node, find);
  const isReported = isLeftWrong && isUsable && !followsTemplate(name, target);
  return {
    name,
    differs: isRewritten || isWrong || isLeftWrong || mayDiffer || hasOtherDropins(name, dropins),
    isNew: isChanged || isLeft,
    reported: isRewritten ? undefined : isWrong ? "update" : isReported ? "delete" : undefined,
    isUsable: wanted === undefined ? isUsable : isUsable && (wanted.enabled === false || canEnable),
    was: isLeft ? withoutLinks(recordOf(name, node)) : undefined,
  };
}

/** Drop-ins that have an [Install] section, by the names of the units' files: their paths and contents. */
type InstallDropins = ReadonlyMap<string, readonly string[]>;

function installDropins(config: NodeConfig | undefined): InstallDropins | undefined {
  if (config === undefined) return undefined;
  const dropins = new Map<string, string[]>();
  for (const [path, entry] of config.entries) {
    const [, file] = /^\/etc\/systemd\/system\/([^/]+)\.d\//.exec(path) ?? [];
    if (file === undefined || entry.kind !== "file" || textOf(entry.contents)?.includes("[Install]") !== true) continue;
    const known = dropins.get(file) ?? [];
    dropins.set(file, known);
    known.push(`${path} ${entry.digest}`);
  }
  return dropins;
}

/** Whether drop-ins that have an [Install] section differ. */
const hasOtherDropins = (name: string, { before, after }: Known["dropins"]): boolean =>
  before !== undefined &&
  [name, templateOf(name)].some((file) => before.get(file)?.join() !== after?.get(file)?.join());

/** Whether two configurations have the same file and enablement of a unit. */
const saysTheSame = (name: string, a: NodeConfig, b: NodeConfig): boolean =>
  a.enablement.get(name)?.enabled === b.enablement.get(name)?.enabled &&
  [name, templateOf(name)].every((file) => sameWanted(a.entries.get(unitPath(file)), b.entries.get(unitPath(file))));

/** Whether links of a unit that the target enables are missing. */
const lacksLinks = (name: string, { links }: ObservedUnits, find: FindUnit): boolean =>
  links !== undefined && enablingOf(name, find).links.some(({ path }) => !links.has(path));

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
  const { links, also } = enablingOf(name, find);
  return links.length > 0 || also.length > 0;
}

/** Whether the links of an instance change with those of its template. */
const followsTemplate = (name: string, target: NodeConfig): boolean => {
  const template = templateOf(name);
  return template !== name && (target.enablement.has(template) || target.entries.has(unitPath(template)));
};

/** Whether a unit that the target does not manage is enabled as it was. */
function hasOriginalLinks(name: string, is: string, node: ObservedUnits): boolean {
  const { was, links: recorded } = recordOf(name, node);
  if (recorded === undefined || node.links === undefined) return (is === "enabled") === (was === "enabled");
  const were = Object.keys(recorded).filter((path) => !(path in node.originals.paths));
  const now = linksOf([name], node);
  return now.length === were.length && now.every(({ path, target }) => recorded[path] === target);
}

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
function recordOf(name: string, { originals, shippedUnits, shippedLinks }: ObservedUnits): UnitRecord {
  const { enablement, links, paths } = originals;
  const was = enablement[name] ?? "absent";
  if (was === "absent" && name in enablement && isShipped(name, shippedUnits)) {
    const shipped = [...(shippedLinks ?? [])].filter(([path, target]) => concernsUnit({ path, target }, name));
    if (shipped.length > 0) return { was: "enabled", links: Object.fromEntries(shipped) };
    return { was: readUnitName(name)?.kind === "plain" ? "unknown" : "disabled" };
  }
  const recorded = links?.[name];
  if (recorded !== undefined) return { was, links: recorded };
  // An earlier release recorded a unit as masked that it had masked itself.
  return { was: was === "masked" && unitPath(name) in paths && !isMask(paths[unitPath(name)]) ? "unknown" : was };
}

/** Links that concern one of these units. Paths of entries that configurations manage are none. */
const linksOf = (units: readonly string[], { links, originals }: Pick<ObservedUnits, "links" | "originals">) =>
  [...(links ?? [])]
    .map(([path, target]): InstallLink => ({ path, target }))
    .filter((link) => !(link.path in originals.paths) && units.some((unit) => concernsUnit(link, unit)));

/** What to record of a unit before it is managed. Links that other managed units got are not its original ones. */
export function originalUnit(
  name: string,
  node: Pick<ObservedUnits, "enablement" | "links" | "originals">,
): { readonly enablement: string; readonly links: Readonly<Record<string, string>> } {
  const { originals } = node;
  const is = node.enablement.get(name) ?? "absent";
  const recorded = Object.entries(originals.links ?? {});
  const now = linksOf([name], node);
  const untouched = now.filter(
    (link) => !recorded.some(([other, links]) => concernsUnit(link, other) && links[link.path] !== link.target),
  );
  const changed = recorded.flatMap(([, links]) =>
    Object.entries(links)
      .map(([path, target]): InstallLink => ({ path, target }))
      .filter((link) => concernsUnit(link, name)),
  );
  const links = Object.fromEntries([...untouched, ...changed].map(({ path, target }) => [path, target]));
  const isOwnMask = is === "masked" && unitPath(name) in originals.paths && !isMask(originals.paths[unitPath(name)]);
  const isOriginal = untouched.length === now.length && Object.keys(links).length === now.length;
  if (isOriginal && !isOwnMask) return { enablement: is, links };
  return { enablement: Object.keys(links).length > 0 ? "enabled" : "disabled", links };
}

/** The links that a unit had before it was managed. */
function originalLinks(name: string, node: ObservedUnits): readonly InstallLink[] {
  const { was, links: recorded } = recordOf(name, node);
  if (name in node.originals.enablement && recorded === undefined)
    return was === "enabled" ? linksOf([name], node) : [];
  const links = recorded ?? originalUnit(name, node).links;
  return Object.entries(links).map(([path, target]) => ({ path, target }));
}

/**
 * Gives a group its original links, but those of units that the target gives another text. Links that enabling makes
 * stay: a power cut must not leave a unit disabled that is enabled before and after.
 */
function relinking(
  group: readonly string[],
  node: ObservedUnits,
  target: NodeConfig,
  find: FindUnit,
): readonly UnitStep[] {
  if (node.links === undefined) return [];
  const originals = group
    .flatMap((name) => originalLinks(name, node))
    .filter((link) => !bringsUnit(target, unitOfLink(link)) || masks(target, unitOfLink(link)));
  const made = group
    .filter((name) => {
      const wanted = target.enablement.get(name);
      // Presets of a template name instances of their own (systemd.preset(5)).
      const isPreset = wanted?.enabled === undefined && readUnitName(name)?.kind === "template";
      return wanted !== undefined && wanted.enabled !== false && !isPreset;
    })
    .flatMap((name) => enablingOf(name, find).links);
  const isManaged = ({ path }: InstallLink) => target.entries.has(path) || path in node.originals.paths;
  const now = linksOf(group, node).filter((link) => !isManaged(link));
  const isSame = (a: InstallLink, b: InstallLink) => a.path === b.path && a.target === b.target;
  const remove = now.filter((link) => ![...originals, ...made].some((other) => isSame(link, other)));
  const make = originals.filter((link) => !isManaged(link) && node.links?.get(link.path) !== link.target);
  if (remove.length === 0 && make.length === 0) return [];
  return [{ do: "relinkUnits", units: group, remove: remove.map(({ path }) => path), make: distinct(make) }];
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
  const also = new Set(steps.flatMap((step) => (step.do === "disableUnit" ? [] : alsoOf(step.unit, find))));
  return [...sorted, ...sorted.filter((step) => step.do === "disableUnit" && also.has(step.unit))];
}

/** Units that are enabled and disabled together, in this or the previous configuration: each in one group, sorted. */
function groupsOf(names: ReadonlySet<string>, node: ObservedUnits, find: FindUnit): readonly (readonly string[])[] {
  const { previous, shippedUnits = new Map() } = node;
  const finds = [find, ...(previous === undefined ? [] : [findUnitIn(previous, shippedUnits)])];
  const groupOf = new Map<string, Set<string>>();
  for (const name of [...names].sort()) {
    let group = groupOf.get(name) ?? new Set([name]);
    groupOf.set(name, group);
    for (const other of [templateOf(name), ...finds.flatMap((each) => alsoOf(name, each))]) {
      if (!names.has(other)) continue;
      const others = groupOf.get(other) ?? new Set([other]);
      if (others === group) continue;
      // The smaller group joins the larger one, so that no unit moves often.
      const [from, to] = others.size < group.size ? [others, group] : [group, others];
      for (const unit of from) groupOf.set(unit, to.add(unit));
      groupOf.set(other, to);
      group = to;
    }
  }
  return [...new Set(groupOf.values())].map((group) => [...group].sort());
}
