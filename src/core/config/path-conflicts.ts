import { hostPaths } from "../../api/names.ts";
import { prefixFinder } from "../../ignition/clean-path.ts";
import { pathTo } from "../../ignition/problem.ts";
import type { IgnitionConfig } from "../../ignition/types.ts";

/** One path of the disk that a configuration takes. */
export interface PathClaim {
  /** As written. */
  readonly path: string;
  /** As the machine resolves it. */
  readonly place: string;
  readonly kind: "file" | "link" | "folder" | "unit" | "dropin" | "sshKeys";
  /** What merging knows the entry by, within its kind. */
  readonly name: string;
  /** Field of the Ignition config: `storage.files[2].path`. */
  readonly field: string;
}

/** Two claims that no disk can hold together. */
export interface PathConflict {
  /** `below`: `second` lies below the path of `first`, which is no folder. `same`: both are one entry of the disk. */
  readonly how: "below" | "same";
  readonly first: PathClaim;
  readonly second: PathClaim;
}

/** State folders that an ostree system links into /var: path below / → name below /var. Source: ostree docs/adapting-existing.md (main). */
export const stateLinks = {
  home: "home",
  root: "roothome",
  opt: "opt",
  srv: "srv",
  mnt: "mnt",
  "usr/local": "usrlocal",
} as const;

/**
 * Folders that are symbolic links on every machine with an ostree system, and their targets. Sources: see above;
 * coreos/rpm-ostree rust/src/composepost.rs (main), systemd tmpfiles.d/{var,legacy}.conf (main).
 */
const systemLinks: readonly (readonly [link: string, target: string])[] = [
  ...Object.entries(stateLinks).map(([link, folder]) => [`/${link}`, `/var/${folder}`] as const),
  ["/media", "/run/media"],
  ["/var/run", "/run"],
  ["/var/lock", "/run/lock"],
  ["/bin", "/usr/bin"],
  ["/sbin", "/usr/sbin"],
  ["/lib", "/usr/lib"],
  ["/lib64", "/usr/lib64"],
];

/** A clean path with the links of the system resolved. */
export function resolvedPathOf(path: string): string {
  for (const [link, target] of systemLinks)
    if (path === link || path.startsWith(`${link}/`)) return `${target}${path.slice(link.length)}`;
  return path;
}

const unitFolder = "/etc/systemd/system";

/** The paths that a configuration takes: those that must be there. */
export function pathClaims({ storage, systemd, passwd }: IgnitionConfig): readonly PathClaim[] {
  const claims: PathClaim[] = [];
  const claim = (kind: PathClaim["kind"], path: string, name: string, field: string) =>
    claims.push({ kind, path, place: resolvedPathOf(path), name, field });
  const lists = [
    ["file", "files"],
    ["link", "links"],
    ["folder", "directories"],
  ] as const;
  for (const [kind, list] of lists)
    for (const [i, { path }] of (storage?.[list] ?? []).entries())
      claim(kind, path, path, pathTo(pathTo(`storage.${list}`, i), "path"));
  for (const [i, unit] of (systemd?.units ?? []).entries()) {
    const field = pathTo("systemd.units", i);
    const path = `${unitFolder}/${unit.name}`;
    if (unit.mask === true || (unit.contents ?? "") !== "") claim("unit", path, unit.name, pathTo(field, "name"));
    for (const [k, dropin] of (unit.dropins ?? []).entries())
      if ((dropin.contents ?? "") !== "")
        claim("dropin", `${path}.d/${dropin.name}`, `${unit.name}/${dropin.name}`, `${field}.dropins[${k}].name`);
  }
  const user = (passwd?.users ?? []).findIndex(({ sshAuthorizedKeys }) => (sshAuthorizedKeys ?? []).length > 0);
  if (user >= 0) claim("sshKeys", hostPaths.sshKeys, "core", pathTo(pathTo("passwd.users", user), "sshAuthorizedKeys"));
  return claims;
}

/**
 * All claims that cannot be had together, at most two for each claim, in the order of the later claim: callers
 * that compare the conflicts before and after a change need each of them.
 */
export function pathConflicts(claims: readonly PathClaim[]): readonly PathConflict[] {
  const conflicts: PathConflict[] = [];
  const takenBy = new Map<string, PathClaim>();
  for (const claim of claims) {
    const other = takenBy.get(claim.place);
    if (other === undefined || (other.kind === "folder" && claim.kind !== "folder")) takenBy.set(claim.place, claim);
    if (other !== undefined && !(other.kind === "folder" && claim.kind === "folder"))
      conflicts.push({ how: "same", first: other, second: claim });
  }
  const isLeaf = ({ kind }: PathClaim) => kind !== "folder";
  const leafAbove = prefixFinder([...takenBy.values()].filter(isLeaf).map(({ place }) => `${place}/`));
  for (const claim of claims) {
    const above = leafAbove(claim.place);
    const first = above === undefined ? undefined : takenBy.get(above.slice(0, -1));
    if (first !== undefined) conflicts.push({ how: "below", first, second: claim });
  }
  return conflicts;
}

/** What a claim is, for people: `a file`, `the unit x.service`. */
export function describeClaim({ kind, name }: PathClaim): string {
  switch (kind) {
    case "file":
      return "a file";
    case "link":
      return "a link";
    case "folder":
      return "a folder";
    case "unit":
      return `the unit ${name}`;
    case "dropin":
      return `a drop-in of ${name.slice(0, name.indexOf("/"))}`;
    case "sshKeys":
      return "the SSH keys of core";
  }
}

/** The other name of a path on a machine, for people; empty if there is none. */
const alias = ({ path, place }: PathClaim) => (path === place ? "" : ` (${place} on the machine)`);

/**
 * Why two claims exclude each other, and what to do. @param nameOf the object and field of a claim; empty for the object
 * that is judged by itself.
 */
export function describeConflict(
  { how, first, second }: PathConflict,
  nameOf: (claim: PathClaim) => string,
): { readonly reason: string; readonly remedy: string } {
  const both = `${nameOf(first)} makes ${first.path}${alias(first)} ${describeClaim(first)}`;
  return how === "below"
    ? {
        reason: `${both}, and ${nameOf(second)} puts ${describeClaim(second)} below it at ${second.path}${alias(second)}; no disk can hold both`,
        remedy: "give one of the two another path, or take it out",
      }
    : {
        reason: `${both}, and ${nameOf(second)} makes ${second.path}${alias(second)}, which is the same entry of the disk, ${describeClaim(second)}`,
        remedy: "give it in one place",
      };
}
