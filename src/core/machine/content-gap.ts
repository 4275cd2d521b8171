import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { decodeBase64 } from "../../ignition/data-url.ts";
import type { Owner } from "../../ignition/types.ts";
import type { Change, Op } from "../config/change.ts";
import { type NodeConfig, type WantedEntry, changesOf } from "../config/node-config.ts";

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

  const { before, after, units } =
    only === undefined ? unitGap(node, target, touched) : { before: [], after: [], units: [] };
  const passwords = only === undefined ? passwordGap(node, target) : [];
  return {
    changes: [...changesOf(touched, units), ...passwords],
    steps: [
      ...before,
      ...(restore.length === 0 ? [] : [{ do: "restoreEntries", paths: restore } as const]),
      ...born.folders.filter(concerns).map((path) => ({ do: "makeFolder", path }) as const),
      ...(write.length === 0 ? [] : [{ do: "writeEntries", paths: write } as const]),
      ...after,
      ...passwords.map(({ user }) => ({ do: "setPassword", user }) as const),
    ],
    paths: [...target.entries.keys(), ...born.write].filter(
      (path) => concerns(path) && !(path in node.originals.paths),
    ),
    units:
      only === undefined ? [...target.enablement.keys()].filter((name) => !(name in node.originals.enablement)) : [],
    users: only === undefined ? [...target.passwords.keys()].filter((user) => !(user in node.originals.passwords)) : [],
  };
}

type UnitStep = ContentStep & { do: "enableUnit" | "disableUnit" | "presetUnit" };

interface UnitGap {
  readonly before: readonly UnitStep[];
  readonly after: readonly UnitStep[];
  readonly units: readonly { name: string; op: Op }[];
}

const unitPath = (name: string) => `/etc/systemd/system/${name}`;

/** Unit actions before and after files are written. */
function unitGap(node: ObservedContent, target: NodeConfig, touched: readonly { readonly path: string }[]): UnitGap {
  const isRewritten = (name: string) => touched.some(({ path }) => path === unitPath(name));
  const gaps = [
    ...[...target.enablement.keys()].map((name) => namedUnitGap(name, isRewritten(name), node, target)),
    ...Object.keys(node.originals.enablement)
      .sort()
      .filter((name) => !target.enablement.has(name))
      .map((name) => leftUnitGap(name, isRewritten(name), node, target)),
  ];
  return {
    before: gaps.flatMap(({ before = [] }) => before),
    after: gaps.flatMap(({ after = [] }) => after),
    units: gaps.flatMap(({ units = [] }) => units),
  };
}

/** A unit whose enablement the target defines. */
function namedUnitGap(name: string, rewritten: boolean, node: ObservedContent, target: NodeConfig): Partial<UnitGap> {
  const wanted = target.enablement.get(name);
  const is = node.enablement.get(name) ?? "absent";
  const brings = target.entries.get(unitPath(name))?.kind === "file";
  const disable = { do: "disableUnit", unit: name } as const;
  // Otherwise its old links would remain.
  const before = is === "enabled" && rewritten ? [disable] : [];
  // Remove its text; the next pass sees the rest.
  if (wanted === undefined || (rewritten && !brings)) return { before };
  const { enabled, installable } = wanted;
  const units = rewritten ? [] : [{ name, op: "update" } as const];
  // A unit that is absent or masked can be enabled only if the target contains its text.
  const canEnable = is === "disabled" || rewritten || (brings && (is === "absent" || is === "masked"));
  if (enabled === true && installable && canEnable) return { before, after: [{ do: "enableUnit", unit: name }], units };
  if (enabled === false && is === "enabled") return rewritten ? { before } : { before: [disable], units };
  // If the previous configuration set it, return to the vendor's presets.
  const wasDecided = installable && node.previous?.enablement.get(name)?.enabled !== undefined;
  return enabled === undefined && (rewritten || wasDecided)
    ? { before, after: [{ do: "presetUnit", unit: name }], units }
    : { before };
}

/** A unit whose enablement is no longer managed: restores the original enablement. */
function leftUnitGap(name: string, rewritten: boolean, node: ObservedContent, target: NodeConfig): Partial<UnitGap> {
  const was = node.originals.enablement[name];
  const is = node.enablement.get(name) ?? "absent";
  const becomesMasked = target.entries.get(unitPath(name))?.kind === "link";
  const disable = { do: "disableUnit", unit: name } as const;
  const enable = { do: "enableUnit", unit: name } as const;
  const units = [{ name, op: "delete" } as const];
  if (is === "enabled" && was !== "enabled") return { before: [disable], units };
  // Enable a unit before it is masked; later it is not possible.
  if (was === "enabled" && is === "disabled")
    return becomesMasked ? { before: [enable], units } : { after: [enable], units };
  return was === "enabled" && is === "enabled" && rewritten && !becomesMasked
    ? { before: [disable], after: [enable] }
    : {};
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
const isMask = (entry: ObservedEntry | OriginalEntry | null | undefined) =>
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
