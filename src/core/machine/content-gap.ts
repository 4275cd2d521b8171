import { pushAll } from "../../api/schema/push-all.ts";
import { own } from "../../api/schema/own.ts";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { decodeBase64 } from "../../ignition/data-url.ts";
import type { Owner } from "../../ignition/types.ts";
import type { Change, Op } from "../config/change.ts";
import { type NodeConfig, type WantedEntry, changesOf, findUnitIn, managedUnits } from "../config/node-config.ts";
import type { ObservedEntry, Originals, OriginalEntry, ObservedContent } from "./observed-content.ts";
import { type UnitStep, isMask, unitGap } from "./unit-gap.ts";

/** Steps that apply files, units and accounts. */
export type ContentStep =
  | { readonly do: "makeFolder"; readonly path: string }
  | { readonly do: "writeEntries"; readonly paths: readonly string[] }
  /** Restores the original, or removes. */
  | { readonly do: "restoreEntries"; readonly paths: readonly string[] }
  | UnitStep
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
      Object.hasOwn(node.originals.paths, path) &&
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
  pushAll(
    touched,
    born.touched.filter(({ path }) => concerns(path)),
  );
  pushAll(write, born.write.filter(concerns));

  const { before, after, units } =
    only === undefined
      ? unitGap(node, target, new Set(touched.map(({ path }) => path)))
      : { before: [], after: [], units: [] };
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
      (path) => concerns(path) && !Object.hasOwn(node.originals.paths, path),
    ),
    units:
      only === undefined
        ? [...managedUnits(target, findUnitIn(target, node.shippedUnits ?? new Map()))].filter(
            (name) => !Object.hasOwn(node.originals.enablement, name),
          )
        : [],
    users:
      only === undefined
        ? [...target.passwords.keys()].filter((user) => !Object.hasOwn(node.originals.passwords, user))
        : [],
  };
}

function passwordGap(node: ObservedContent, target: NodeConfig): readonly (Change & { kind: "password" })[] {
  return [...new Set([...target.passwords.keys(), ...Object.keys(node.originals.passwords)])].flatMap((user) => {
    const wanted = target.passwords.get(user) ?? own(node.originals.passwords, user) ?? undefined;
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
