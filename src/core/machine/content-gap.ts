import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { decodeBase64 } from "../../ignition/data-url.ts";
import type { Owner } from "../../ignition/types.ts";
import type { Change, Op } from "../config/change.ts";
import { unitFolder } from "../config/install-links.ts";
import {
  type NodeConfig,
  type WantedEntry,
  alsoOf,
  changesOf,
  managedUnits,
  masks,
  tiesOf,
  unitFileIn,
} from "../config/node-config.ts";
import { templateOf } from "../config/unit-name.ts";

/** The entry at a path of a machine, as far as a plan needs it. */
export type ObservedEntry =
  | {
      readonly kind: "file";
      readonly digest: string;
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      /** The file is a kubeconfig: a program of the machine reaches the cluster by it. */
      readonly isKubeconfig?: boolean;
    }
  | { readonly kind: "link"; readonly target: string }
  | {
      readonly kind: "folder";
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      /** A file is to be here, and the folder goes away with what earlier configurations brought into it. */
      readonly goesAway?: boolean;
    };

/**
 * The state before this suite first managed each item, so that removal can restore it; also the list of managed items.
 */
export interface Originals {
  /** Path → the original entry (contents base64), or `null` if there was none. */
  readonly paths: Readonly<Record<string, OriginalEntry | null>>;
  /** Paths without an original entry where our image hides what the system itself would ship. */
  readonly hidden?: readonly string[];
  /** Unit → its original enablement. */
  readonly enablement: Readonly<Record<string, string>>;
  /** User → original password hash, `null` for none. */
  readonly passwords: Readonly<Record<string, string | null>>;
  /** Kernel arguments from provisioning. */
  readonly kernelArguments: readonly string[];
  /** Kernel arguments that our updates may have added since the last finished one. */
  readonly ownKernelArguments: readonly string[];
}

export type OriginalEntry =
  | {
      readonly kind: "file";
      readonly contents: string;
      readonly digest: string;
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
    }
  | { readonly kind: "link"; readonly target: string };

/** The observed content of a machine: files, units and accounts, and their recorded originals. */
export interface ObservedContent {
  /** Every path in the previous config, the target or the originals; absent paths are missing. */
  readonly entries: ReadonlyMap<string, ObservedEntry>;
  readonly enablement: ReadonlyMap<string, string>;
  /** Units that the OS ships, themselves or their template; absent if unknown. */
  readonly shippedUnits?: ReadonlySet<string>;
  readonly passwords: ReadonlyMap<string, string>;
  readonly users: ReadonlyMap<string, number>;
  readonly groups: ReadonlyMap<string, number>;
  readonly originals: Originals;
  /** The previous configuration of the machine; `undefined` if unknown. */
  readonly previous: NodeConfig | undefined;
}

/** Steps that apply files, units and accounts. */
export type ContentStep =
  | { readonly do: "makeFolder"; readonly path: string }
  | { readonly do: "writeEntries"; readonly paths: readonly string[] }
  /** Restores the original, or removes. */
  | { readonly do: "restoreEntries"; readonly paths: readonly string[] }
  | { readonly do: "enableUnit" | "disableUnit" | "presetUnit"; readonly unit: string }
  | { readonly do: "setPassword"; readonly user: string };

export interface ContentGap {
  readonly changes: readonly Change[];
  readonly steps: readonly ContentStep[];
  /** The affected items, so that their originals are recorded first. */
  readonly paths: readonly string[];
  readonly units: readonly string[];
  readonly users: readonly string[];
}

const everything = () => true;

/**
 * The steps that bring the machine's files, units and accounts to those of the target.
 *
 * @param only the paths to compare; if present, units and accounts are skipped.
 */
export function contentGap(node: ObservedContent, target: NodeConfig, only?: (path: string) => boolean): ContentGap {
  const concerns = only ?? everything;
  const restore: string[] = [];
  const write: string[] = [];
  const touched: { path: string; origin: WantedEntry["origin"]; op: Op }[] = [];

  for (const path of Object.keys(node.originals.paths).filter(concerns).sort()) {
    if (
      target.entries.has(path) ||
      target.provisioningOnly.links.has(path) ||
      target.provisioningOnly.appends.has(path)
    )
      continue;
    const origin = node.previous?.entries.get(path)?.origin ?? originOfPath(path);
    if (isOriginal(node.entries.get(path), node.originals.paths[path])) continue;
    touched.push({ path, origin, op: "delete" });
    restore.push(path);
  }
  for (const [path, wanted] of target.entries) {
    if (!concerns(path)) continue;
    const observed = node.entries.get(path);
    if (
      isUnmasking(wanted) &&
      path in node.originals.paths &&
      !isMask(node.originals.paths[path]) &&
      !isMask(observed)
    ) {
      // The target only requires "not masked": undo what an earlier configuration wrote there.
      if (isOriginal(observed, node.originals.paths[path])) continue;
      touched.push({ path, origin: wanted.origin, op: "delete" });
      restore.push(path);
      continue;
    }
    if (matchesWanted(observed, wanted, node)) continue;
    touched.push({ path, origin: wanted.origin, op: observed === undefined ? "create" : "update" });
    write.push(path);
  }

  const born = provisioningGap(node, target);
  touched.push(...born.touched.filter(({ path }) => concerns(path)));
  write.push(...born.write.filter(concerns));

  const unmasked = only === undefined ? restoredBeforeMask(node, target, touched) : [];
  const { before, between, cleared, after, units } =
    only === undefined
      ? unitGap(node, target, touched)
      : { before: [], between: [], cleared: [], after: [], units: [] };
  const passwords = only === undefined ? passwordGap(node, target) : [];
  const restored = [...restore, ...unmasked];
  return {
    changes: [...changesOf(touched, units), ...passwords],
    steps: [
      ...before,
      ...(restored.length === 0 ? [] : [{ do: "restoreEntries", paths: restored } as const]),
      ...between,
      ...born.folders.filter(concerns).map((path) => ({ do: "makeFolder", path }) as const),
      ...(write.length === 0 ? [] : [{ do: "writeEntries", paths: write } as const]),
      ...cleared,
      ...after,
      ...passwords.map(({ user }) => ({ do: "setPassword", user }) as const),
    ],
    paths: [...target.entries.keys(), ...born.write].filter(
      (path) => concerns(path) && !(path in node.originals.paths),
    ),
    units: only === undefined ? [...managedUnits(target)].filter((name) => !(name in node.originals.enablement)) : [],
    users: only === undefined ? [...target.passwords.keys()].filter((user) => !(user in node.originals.passwords)) : [],
  };
}

type UnitStep = ContentStep & { do: "enableUnit" | "disableUnit" | "presetUnit" };

interface UnitGap {
  readonly before: readonly UnitStep[];
  /** After the originals are back and before anything is written: a mask hides a unit from systemctl. */
  readonly between: readonly UnitStep[];
  /** Once a mask is gone, the links that it hid go before those of the unit's own text are made. */
  readonly cleared: readonly UnitStep[];
  readonly after: readonly UnitStep[];
  readonly units: readonly { name: string; op: Op }[];
}

const unitPath = (name: string) => `${unitFolder}/${name}`;

/** The original enablement of a unit that an earlier release masked without recording it: the presets decide. */
export const byPresets = "preset";

/** What to record of a unit before it is managed. */
export function originalEnablement(
  name: string,
  { enablement, originals }: Pick<ObservedContent, "enablement" | "originals">,
): string {
  const is = enablement.get(name) ?? "absent";
  return is === "masked" && unitPath(name) in originals.paths && !isMask(originals.paths[unitPath(name)])
    ? byPresets
    : is;
}

/** Paths whose original text has to be seen once more before they are masked: the OS enables its units by it. */
function restoredBeforeMask(
  node: ObservedContent,
  target: NodeConfig,
  touched: readonly { readonly path: string }[],
): readonly string[] {
  return Object.keys(node.originals.enablement)
    .map(unitPath)
    .filter(
      (path) =>
        isMask(entryOf(target, path)) &&
        touched.some((one) => one.path === path) &&
        path in node.originals.paths &&
        !isOriginal(node.entries.get(path), node.originals.paths[path]),
    );
}

const entryOf = ({ entries }: NodeConfig, path: string): { kind: string; target?: string } | undefined => {
  const entry = entries.get(path);
  return entry?.kind === "link" ? entry : undefined;
};

/** Unit actions before, between and after files are restored and written. */
function unitGap(node: ObservedContent, target: NodeConfig, touched: readonly { readonly path: string }[]): UnitGap {
  const paths = new Set(touched.map(({ path }) => path));
  const facts = (name: string) => unitFacts(name, paths, node, target);
  const following = new Set(tiesOf(target).map(({ also }) => also));
  const gaps = [
    ...[...target.enablement.keys()].map((name) => namedUnitGap(facts(name), node, target)),
    ...Object.keys(node.originals.enablement)
      .sort()
      .filter((name) => !target.enablement.has(name))
      .map(facts)
      .map((unit) =>
        following.has(unit.name) && unit.exists ? followingUnitGap(unit) : leftUnitGap(unit, node, target),
      ),
  ];
  const before = gaps.flatMap((gap) => gap.before ?? []);
  const cleared = gaps.flatMap((gap) => gap.cleared ?? []);
  const between = gaps.flatMap((gap) => gap.between ?? []);
  const after = gaps.flatMap((gap) => gap.after ?? []);
  const tied = tiedSteps([...before, ...between, ...cleared, ...after], node, target);
  const restored = restoredWith([...before, ...cleared, ...after], node, target);
  return {
    before,
    between,
    cleared,
    after: inOrder(
      [...tied.first, ...restored.filter(({ unit }) => following.has(unit) && !target.enablement.has(unit))],
      [...after, ...restored.filter(({ unit }) => !following.has(unit) || target.enablement.has(unit)), ...tied.again],
      tied.last,
    ),
    units: gaps.flatMap((gap) => gap.units ?? []),
  };
}

/** First the units that the target does not name; presets; then what it disables and enables; each once, by name. */
function inOrder(
  first: readonly UnitStep[],
  steps: readonly UnitStep[],
  last: readonly UnitStep[],
): readonly UnitStep[] {
  const order = ["presetUnit", "disableUnit", "enableUnit"];
  const sorted = steps.toSorted(
    (a, b) => order.indexOf(a.do) - order.indexOf(b.do) || (a.unit < b.unit ? -1 : a.unit > b.unit ? 1 : 0),
  );
  const own = new Set(steps.map(({ unit }) => unit));
  const distinct = (all: readonly UnitStep[]) => [
    ...new Map(all.map((step) => [`${step.do} ${step.unit}`, step])).values(),
  ];
  return [...distinct(first.filter(({ unit }) => !own.has(unit))), ...distinct(sorted), ...distinct(last)];
}

/** What the target says of a unit that it names, whatever the machine has. */
function stepOf(name: string, node: ObservedContent, target: NodeConfig): readonly UnitStep[] {
  const wanted = target.enablement.get(name);
  const exists = unitFileIn(target, name) !== undefined || node.shippedUnits?.has(name) === true;
  if (wanted === undefined || !exists || masks(target, name)) return [];
  if (wanted.enabled === false) return [{ do: "disableUnit", unit: name }];
  if (!wanted.installable) return [];
  return [{ do: wanted.enabled === true ? "enableUnit" : "presetUnit", unit: name }];
}

/** Whether a unit that the target does not name was enabled before it was managed, and has a file to be enabled by. */
const wasEnabled = (name: string, node: ObservedContent, target: NodeConfig): boolean =>
  (node.originals.enablement[name] ?? node.enablement.get(name)) === "enabled" &&
  node.shippedUnits?.has(name) === true &&
  !masks(target, name);

/**
 * Units that `Also=` ties together are enabled and disabled together. Where one of them changes, all are brought to what
 * the target says, as on a machine without a past.
 */
function tiedSteps(
  changes: readonly UnitStep[],
  node: ObservedContent,
  target: NodeConfig,
): { readonly first: readonly UnitStep[]; readonly again: readonly UnitStep[]; readonly last: readonly UnitStep[] } {
  const ties = tiesOf(target);
  const before = node.previous === undefined ? [] : tiesOf(node.previous);
  const saidBefore = node.previous?.enablement;
  const saidOtherwise = ties
    .flatMap(({ name, also }) => [name, also])
    .filter((name) => saidBefore?.get(name)?.enabled !== target.enablement.get(name)?.enabled);
  const changed = new Set([
    ...changes.map(({ unit }) => unit),
    ...differentTies(before, ties),
    ...(saidBefore === undefined ? [] : saidOtherwise),
  ]);
  const first: UnitStep[] = [];
  const again: UnitStep[] = [];
  const last: UnitStep[] = [];
  for (const group of groupsOf(ties)) {
    if (![...group].some((name) => changed.has(name))) continue;
    for (const name of group) {
      // What is to be disabled is already; to disable it again would take others with it.
      if (target.enablement.has(name))
        again.push(...stepOf(name, node, target).filter((step) => step.do !== "disableUnit"));
      else if (node.shippedUnits?.has(name) === true && !masks(target, name))
        first.push({ do: wasEnabled(name, node, target) ? "enableUnit" : "disableUnit", unit: name });
      if (target.enablement.get(name)?.enabled === false) last.push({ do: "disableUnit", unit: name });
    }
  }
  return { first, again, last };
}

type Tie = ReturnType<typeof tiesOf>[number];

/** Units that others enabled and do not any more, or the reverse. */
function differentTies(before: readonly Tie[], after: readonly Tie[]): readonly string[] {
  const has = (ties: readonly Tie[], { name, also }: Tie) => ties.some((tie) => tie.name === name && tie.also === also);
  return [...before.filter((tie) => !has(after, tie)), ...after.filter((tie) => !has(before, tie))].map(
    ({ also }) => also,
  );
}

/** Groups of units that are tied. */
function groupsOf(ties: readonly Tie[]): readonly ReadonlySet<string>[] {
  let groups: ReadonlySet<string>[] = [];
  for (const { name, also } of ties) {
    const touching = groups.filter((other) => other.has(name) || other.has(also));
    groups = [
      ...groups.filter((other) => !touching.includes(other)),
      new Set([name, also, ...touching.flatMap((other) => [...other])]),
    ];
  }
  return groups;
}

/** Units that systemctl disables together with one that changes, and that are to be enabled. */
function restoredWith(disabling: readonly UnitStep[], node: ObservedContent, target: NodeConfig): readonly UnitStep[] {
  // A link that a mask hid goes by the unit's new text, others by the old one.
  const known = [...target.enablement.keys(), ...Object.keys(node.originals.enablement)];
  const configs = [target, ...(node.previous === undefined ? [] : [node.previous])];
  const others = disabling.flatMap((step) =>
    step.do === "enableUnit"
      ? []
      : [
          ...(step.do === "disableUnit" ? configs.flatMap((config) => alsoOf(config, step.unit)) : []),
          // Instances go with their template.
          ...known.filter((name) => name !== step.unit && templateOf(name) === step.unit),
        ],
  );
  return [...new Set(others)].flatMap((name): readonly UnitStep[] =>
    target.enablement.has(name)
      ? stepOf(name, node, target)
      : wasEnabled(name, node, target)
        ? [{ do: "enableUnit", unit: name }]
        : [],
  );
}

/** What is known of one unit. */
interface UnitFacts {
  readonly name: string;
  readonly is: string;
  /** Its file, or that of its template, is written or restored. */
  readonly rewritten: boolean;
  /** The target has the file. */
  readonly brings: boolean;
  /** It has a file once everything is written. */
  readonly exists: boolean;
}

function unitFacts(name: string, touched: ReadonlySet<string>, node: ObservedContent, target: NodeConfig): UnitFacts {
  const is = node.enablement.get(name) ?? "absent";
  const files = [...new Set([name, templateOf(name)])].map(unitPath);
  // An instance with a file of its own does not follow its template.
  const followed = target.entries.get(unitPath(name))?.kind === "file" ? [unitPath(name)] : files;
  const rewritten = followed.some((path) => touched.has(path));
  const brings = unitFileIn(target, name) !== undefined;
  const isRestored = files.some((path) => {
    const original = node.originals.paths[path];
    return !target.entries.has(path) && original?.kind === "file";
  });
  const exists =
    brings ||
    (!masks(target, name) &&
      (isRestored || (node.shippedUnits?.has(name) ?? false) || (!rewritten && is !== "absent" && is !== "masked")));
  return { name, is, rewritten, brings, exists };
}

/** A unit whose enablement the target defines. */
function namedUnitGap(
  { name, is, rewritten, brings, exists }: UnitFacts,
  node: ObservedContent,
  target: NodeConfig,
): Partial<UnitGap> {
  const wanted = target.enablement.get(name);
  const disable = { do: "disableUnit", unit: name } as const;
  // Otherwise its old links would remain.
  const before = is === "enabled" && rewritten ? [disable] : [];
  if (wanted === undefined || !exists) return { before };
  const cleared = is === "masked" && rewritten ? [disable] : [];
  const { enabled, installable } = wanted;
  const units = rewritten ? [] : [{ name, op: "update" } as const];
  // A unit that is absent or masked can be enabled only if the target contains its text.
  const canEnable = is === "disabled" || rewritten || (brings && (is === "absent" || is === "masked"));
  if (enabled === true && installable && canEnable)
    return { before, cleared, after: [{ do: "enableUnit", unit: name }], units };
  if (enabled === false && is === "enabled") return rewritten ? { before } : { before: [disable], units };
  // If the previous configuration set it, return to the vendor's presets.
  const wasDecided = installable && node.previous?.enablement.get(name)?.enabled !== undefined;
  return enabled === undefined && (rewritten || wasDecided)
    ? { before, cleared, after: [{ do: "presetUnit", unit: name }], units }
    : { before, cleared };
}

/** A unit that the target ties to another one: it follows that; links to a former file of it go. */
const followingUnitGap = ({ name, is, rewritten }: UnitFacts): Partial<UnitGap> =>
  is === "enabled" && rewritten ? { before: [{ do: "disableUnit", unit: name }] } : {};

/** A unit whose enablement is no longer managed: restores the original enablement. */
function leftUnitGap(
  { name, is, rewritten, exists }: UnitFacts,
  node: ObservedContent,
  target: NodeConfig,
): Partial<UnitGap> {
  const was = node.originals.enablement[name];
  const disable = { do: "disableUnit", unit: name } as const;
  const enable = { do: "enableUnit", unit: name } as const;
  const units = [{ name, op: "delete" } as const];
  if (was === byPresets) return exists ? { after: [{ do: "presetUnit", unit: name }], units } : {};
  if (masks(target, name)) {
    // A mask hides links; the original ones are made before, and seen again when it goes.
    if (!rewritten || is === "masked" || is === "absent") return {};
    if (was !== "enabled") return is === "enabled" ? { before: [disable] } : {};
    const before = is === "enabled" ? [disable] : [];
    const hasOriginal = node.shippedUnits?.has(name) === true || node.originals.paths[unitPath(name)]?.kind === "file";
    return hasOriginal ? { before, between: [enable] } : { before };
  }
  if (is === "enabled" && was !== "enabled") return { before: [disable], units };
  if (was !== "enabled") return {};
  const before = is === "enabled" && rewritten ? [disable] : [];
  return exists && (is !== "enabled" || rewritten) ? { before, after: [enable], units } : { before };
}

function passwordGap(node: ObservedContent, target: NodeConfig): readonly (Change & { kind: "password" })[] {
  return [...new Set([...target.passwords.keys(), ...Object.keys(node.originals.passwords)])].flatMap((user) => {
    const wanted = target.passwords.get(user) ?? node.originals.passwords[user] ?? undefined;
    return node.passwords.get(user) === wanted
      ? []
      : [{ kind: "password", user, op: target.passwords.has(user) ? "update" : "delete" }];
  });
}

/** Folders, links and appended files of a machine that starts with this configuration without Ignition. */
function provisioningGap(
  node: ObservedContent,
  { provisioningOnly }: NodeConfig,
): {
  readonly folders: readonly string[];
  readonly write: readonly string[];
  readonly touched: readonly { path: string; origin: WantedEntry["origin"]; op: Op }[];
} {
  if (node.previous !== undefined) return { folders: [], write: [], touched: [] };
  const folders = [...provisioningOnly.folders].flatMap(([path, { mode, user, group }]) => {
    const is = node.entries.get(path);
    return is?.kind === "folder" &&
      is.mode === mode &&
      is.uid === idOf(user, node.users) &&
      is.gid === idOf(group, node.groups)
      ? []
      : [path];
  });
  const links = [...provisioningOnly.links].flatMap(([path, to]) => {
    const is = node.entries.get(path);
    return is?.kind === "link" && is.target === to ? [] : [path];
  });
  const appends = [...provisioningOnly.appends.keys()].filter((path) => {
    const is = node.entries.get(path);
    const whole = appendedTo(node.originals, target(path), path);
    return whole === undefined || is?.kind !== "file" || is.digest !== bytesToHex(sha256(whole));
  });
  const write = [...links, ...appends];
  return {
    folders,
    write,
    touched: [...folders, ...write].map((path) => ({
      path,
      origin: { kind: "file" },
      op: node.entries.has(path) ? "update" : "create",
    })),
  };

  function target(path: string): Uint8Array {
    return provisioningOnly.appends.get(path)?.contents ?? new Uint8Array();
  }
}

/** The original content followed by `more`, also after repeated calls; `undefined` until the original is recorded. */
export function appendedTo(originals: Originals, more: Uint8Array, path: string): Uint8Array | undefined {
  const original = originals.paths[path];
  if (original === undefined) return undefined;
  const before = original?.kind === "file" ? decodeBase64(original.contents) : new Uint8Array();
  const whole = new Uint8Array(before.length + more.length);
  whole.set(before);
  whole.set(more, before.length);
  return whole;
}

export function matchesWanted(
  observed: ObservedEntry | undefined,
  wanted: WantedEntry,
  node: Pick<ObservedContent, "users" | "groups">,
): boolean {
  switch (wanted.kind) {
    case "absent":
      // Any unit file that is not a mask satisfies "not masked". A folder is somebody's, or that of other entries.
      return observed === undefined || observed.kind === "folder" || (isUnmasking(wanted) && !isMask(observed));
    case "link":
      return observed?.kind === "link" && observed.target === wanted.target;
    case "file":
      return (
        (wanted.ifAbsent === true && observed !== undefined) ||
        (observed?.kind === "file" &&
          observed.digest === wanted.digest &&
          observed.mode === wanted.mode &&
          observed.uid === idOf(wanted.user, node.users) &&
          observed.gid === idOf(wanted.group, node.groups))
      );
  }
}

const isUnmasking = (wanted: WantedEntry) =>
  wanted.kind === "absent" && wanted.origin.kind === "unit" && wanted.origin.part === "mask";
const isMask = (entry: { readonly kind: string; readonly target?: string } | null | undefined) =>
  entry?.kind === "link" && entry.target === "/dev/null";

/** A name unknown to the machine counts as root's: the executor refuses it before it writes. */
function idOf(owner: Owner, ids: ReadonlyMap<string, number>): number {
  return owner.id ?? (owner.name === undefined ? 0 : (ids.get(owner.name) ?? 0));
}

function isOriginal(observed: ObservedEntry | undefined, original: OriginalEntry | null | undefined): boolean {
  // A folder where there was nothing is somebody's, or that of other entries.
  if (original === null || original === undefined) return observed === undefined || observed.kind === "folder";
  if (original.kind === "link") return observed?.kind === "link" && observed.target === original.target;
  return (
    observed?.kind === "file" &&
    observed.digest === original.digest &&
    observed.mode === original.mode &&
    observed.uid === original.uid &&
    observed.gid === original.gid
  );
}

/** If no configuration names the owner of a path any more, derive it from the path. */
export function originOfPath(path: string): WantedEntry["origin"] {
  const match = /^\/etc\/systemd\/system\/([^/]+?)(?:\.d\/([^/]+))?$/.exec(path);
  return match?.[1] === undefined ? { kind: "file" } : { kind: "unit", name: match[1], part: match[2] ?? "contents" };
}
