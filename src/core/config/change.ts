/**
 * The vocabulary of differences, shared by diffs, plans, admission warnings and the books: the differences between
 * two configurations, or between a configuration and a machine, with one entry for each possible consequence.
 */
export type Change =
  | { readonly kind: "file"; readonly path: string; readonly op: Op }
  /** `parts` of the unit that differ: `contents`, `enablement`, `mask`, or the name of a drop-in. */
  | { readonly kind: "unit"; readonly name: string; readonly op: Op; readonly parts: readonly string[] }
  | { readonly kind: "sshKeys"; readonly user: string; readonly op: Op }
  | { readonly kind: "password"; readonly user: string; readonly op: Op }
  | { readonly kind: "kernelArguments"; readonly from: readonly string[]; readonly to: readonly string[] }
  | { readonly kind: "osImage"; readonly from: string; readonly to: string }
  | { readonly kind: "extensions"; readonly from: readonly string[]; readonly to: readonly string[] }
  | { readonly kind: "kernelType"; readonly from: string; readonly to: string }
  | { readonly kind: "fips"; readonly from: boolean; readonly to: boolean }
  /** A part of the config that only new machines follow. `names`: paths and devices that differ. */
  | { readonly kind: "storage"; readonly section: StorageSection; readonly op: Op; readonly names: readonly string[] };

export type StorageSection = "directories" | "disks" | "filesystems" | "links" | "luks" | "raid";

export type Op = "create" | "update" | "delete";

/** What must happen on a machine once changes are on its disk. */
export type Consequence =
  | { readonly kind: "none" }
  | { readonly kind: "drain" }
  | { readonly kind: "daemonReload" }
  | { readonly kind: "reload"; readonly unit: string }
  | { readonly kind: "restart"; readonly unit: string }
  | { readonly kind: "reboot" };

/** One consequence with all its causes. */
export interface Because {
  readonly consequence: Consequence;
  readonly changes: readonly Change[];
  /** A clause that completes "because …". */
  readonly why: string;
}

/** A change as people read it: `/etc/chrony.conf`, `unit crio.service (10-proxy.conf)`, `kernel arguments`. */
export function describeChange(change: Change): string {
  switch (change.kind) {
    case "file":
      return change.path;
    case "unit":
      return `unit ${change.name}${change.parts.length === 0 ? "" : ` (${change.parts.join(", ")})`}`;
    case "sshKeys":
      return `SSH keys of ${change.user}`;
    case "password":
      return `password of ${change.user}`;
    case "kernelArguments":
      return "kernel arguments";
    case "osImage":
      return "OS image";
    case "extensions":
      return "extensions";
    case "kernelType":
      return "kernel type";
    case "fips":
      return "FIPS mode";
    case "storage":
      return `${change.section}: ${change.names.join(", ")}`;
  }
}

export function describeConsequence(consequence: Consequence): string {
  switch (consequence.kind) {
    case "none":
      return "nothing";
    case "drain":
      return "drain";
    case "daemonReload":
      return "systemctl daemon-reload";
    case "reload":
      return `reload ${consequence.unit}`;
    case "restart":
      return `restart ${consequence.unit}`;
    case "reboot":
      return "reboot";
  }
}

export const sameConsequence = (a: Consequence, b: Consequence): boolean =>
  a.kind === b.kind && ("unit" in a ? "unit" in b && a.unit === b.unit : true);
