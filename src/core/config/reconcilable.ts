import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { hostPaths } from "../../api/names.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { contentsReader } from "../../ignition/held-contents.ts";
import { judgeIgnition, readIgnition } from "../../ignition/parse-ignition.ts";
import { type Problem, pathTo } from "../../ignition/problem.ts";
import { type IgnitionConfig, type Passwd, type Unit, emptyIgnition } from "../../ignition/types.ts";

/** Why a running machine cannot be brought to a config. */
export interface Irreconcilable {
  /** Field of the new MachineConfig: `spec.config.storage.disks`, `spec.fips`. */
  readonly field: string;
  readonly reason: string;
  readonly remedy: string;
  /** `reference`: the reference refuses it too. `ours`: it would accept, and then fail or silently do nothing. */
  readonly rule: "reference" | "ours";
}

/**
 * Parts of the storage section whose changes an administrator has allowed: MachineConfiguration
 * `spec.irreconcilableValidationOverrides.storage`.
 */
export type StorageOverride = "Disks" | "FileSystems" | "Raid";

/** Sections of the storage part whose changes can be allowed. */
const sectionsToAllow = [
  ["disks", "Disks"],
  ["filesystems", "FileSystems"],
  ["raid", "Raid"],
] as const;

/** The override that allows changes of a field: `spec.config.storage.disks`; `undefined`: none does. */
export const overrideFor = (field: string): StorageOverride | undefined =>
  sectionsToAllow.find(([section]) => field === `spec.config.storage.${section}`)?.[1];

export interface ReconcileOptions {
  readonly overrides?: readonly StorageOverride[];
  /** `/proc/sys/crypto/fips_enabled` of the machine, when known. */
  readonly machineFips?: boolean;
  /** `unread`: whether contents of files can be had is not looked at. */
  readonly contents?: "unread";
}

type Config = Pick<MachineConfig, "metadata" | "spec">;

/** Findings between two specs, which never change once they are stored: by the old spec, the new one, the overrides. */
const judged = new WeakMap<object, WeakMap<object, Map<string, readonly Irreconcilable[]>>>();

/**
 * Whether a running machine can follow from one configuration to another: the obstacles, except those that the
 * administrator has allowed; empty when it can, and for an unknown configuration (`undefined`).
 * The renderer, the plan, the node controller and the answers decide by this function, which no caller asks without the
 * overrides; the daemon passes them to `reconcile` itself. Two specs are compared once: they must not be changed in
 * place.
 */
export function irreconcilableBetween(
  from: Config | undefined,
  to: Config | undefined,
  overrides: readonly StorageOverride[],
): readonly Irreconcilable[] {
  if (from === undefined || to === undefined || from.metadata.name === to.metadata.name) return [];
  if (from.spec === undefined || to.spec === undefined) return reconcile(from, to, { overrides });
  const ofOld = judged.get(from.spec) ?? new WeakMap<object, Map<string, readonly Irreconcilable[]>>();
  judged.set(from.spec, ofOld);
  const ofBoth = ofOld.get(to.spec) ?? new Map<string, readonly Irreconcilable[]>();
  ofOld.set(to.spec, ofBoth);
  const key = [from.metadata.name, to.metadata.name, ...overrides].join(" ");
  const found = ofBoth.get(key) ?? reconcile(from, to, { overrides });
  ofBoth.set(key, found);
  return found;
}

/**
 * The obstacles between a configuration and one MachineConfig of those that the next one is merged from, without those that
 * contents of files are: all of a pool's MachineConfigs may be asked about.
 */
export const sectionsThatDiffer = (
  from: Config,
  member: Config,
  overrides: readonly StorageOverride[],
): readonly Irreconcilable[] => reconcile(from, member, { overrides, contents: "unread" });

/** A finding in a few words: the field, and why a running machine cannot follow. */
export const describeIrreconcilable = ({ field, reason }: Irreconcilable): string => `${field} ${reason}`;

const newMachines = "add a machine that starts with this config instead, or leave this part as it is";

/**
 * What keeps a machine with `from` from becoming `to` while it runs; empty when nothing does.
 *
 * Returns all findings, not only the first, in the order of the reference's checks. `rule: "ours"` are the ones
 * for which the daemon refuses a new target before it drains: the reference accepts them and then applies nothing.
 * Source of the rules: openshift/machine-config-operator pkg/controller/common/reconcile.go (main).
 */
export function reconcile(from: Config, to: Config, options: ReconcileOptions = {}): readonly Irreconcilable[] {
  const found: Irreconcilable[] = [];
  const refuse = (field: string, reason: string, remedy: string, rule: Irreconcilable["rule"] = "reference") =>
    void found.push({ field: field === "" ? "spec.config" : field, reason, remedy, rule });
  const refuseAll = (config: Config, problems: readonly Problem[]) => {
    for (const { path, reason, remedy, severity } of problems) {
      if (severity === "error")
        refuse(
          path === "" ? "spec.config" : `spec.config.${path}`,
          `${config.metadata.name}: ${reason}`,
          remedy ?? "correct the field",
        );
    }
  };
  const parse = (config: Config): IgnitionConfig | undefined => {
    const raw = config.spec?.config;
    if (raw === undefined || raw === null) return emptyIgnition;
    const parsed = readIgnition(raw);
    if (parsed.verdict === "valid") return parsed.config;
    refuseAll(config, parsed.problems);
    return undefined;
  };
  const before = parse(from);
  const after = parse(to);
  // Only the new config is judged: the machine already has the old one, whatever later rules would refuse.
  if (after !== undefined) refuseAll(to, judgeIgnition(after));
  if (found.length > 0) return found;
  if (before === undefined || after === undefined) return found;
  for (const one of reconcileIgnition(before, after, options)) found.push(one);
  const fips = to.spec?.fips === true;
  if (fips !== (from.spec?.fips === true))
    refuse(
      "spec.fips",
      `FIPS mode cannot be switched ${fips ? "on" : "off"} on a running cluster`,
      "it is decided at installation",
    );
  else if (options.machineFips !== undefined && options.machineFips !== fips)
    refuse(
      "spec.fips",
      `the machine runs with FIPS mode ${options.machineFips ? "on" : "off"}`,
      "join a machine that was installed with the cluster's FIPS mode",
    );
  return found;
}

type Refuse = (field: string, reason: string, remedy: string, rule?: Irreconcilable["rule"]) => void;

/** The part of `reconcile` that compares two parsed Ignition configs; the findings keep the reference's order. */
export function reconcileIgnition(
  before: IgnitionConfig,
  after: IgnitionConfig,
  { overrides = [], contents }: Pick<ReconcileOptions, "overrides" | "contents"> = {},
): readonly Irreconcilable[] {
  const found: Irreconcilable[] = [];
  const refuse: Refuse = (field, reason, remedy, rule = "reference") =>
    void found.push({ field: `spec.config.${field}`, reason, remedy, rule });
  if (!equalValues(before.passwd, after.passwd)) passwdChanges(before.passwd ?? {}, after.passwd ?? {}, refuse);
  if (!equalValues(before.kernelArguments, after.kernelArguments))
    refuse(
      "kernelArguments",
      "kernel arguments of the Ignition config change, which running machines do not look at",
      "use spec.kernelArguments of the MachineConfig",
    );
  storageChanges(before.storage ?? {}, after.storage ?? {}, overrides, refuse);
  unfollowedFiles(after.storage?.files ?? [], contents === "unread" ? undefined : contentsReader(), refuse);
  unwritableUnits(after.systemd?.units ?? [], refuse);
  if (!equalValues(before.storage?.luks, after.storage?.luks))
    refuse("storage.luks", "the section luks changes, and running machines would not follow", newMachines, "ours");
  const references = (config: IgnitionConfig) => [config.ignition.config?.merge, config.ignition.config?.replace];
  if (!equalValues(references(before), references(after)))
    refuse(
      "ignition.config",
      "references to other configs change, and running machines do not fetch them",
      "give the contents inline",
      "ours",
    );
  return found;
}

type Storage = NonNullable<IgnitionConfig["storage"]>;

/** Sections of the storage part that only Ignition carries out. */
function storageChanges(old: Storage, next: Storage, overrides: readonly StorageOverride[], refuse: Refuse): void {
  for (const [section, override] of sectionsToAllow) {
    if (!overrides.includes(override) && !equalValues(old[section], next[section])) {
      refuse(
        `storage.${section}`,
        `the section ${section} changes, which a running machine cannot follow`,
        `${newMachines}; or allow it with the override ${override} of MachineConfiguration/cluster, and running machines will stay as they are`,
      );
    }
  }
  if (!equalValues(old.directories, next.directories))
    refuse(
      "storage.directories",
      "the section directories changes, which a running machine does not follow",
      "let a file or a unit's RuntimeDirectory make the folder, or write a tmpfiles.d file",
    );
  if (!equalValues(old.links, next.links) && (next.links ?? []).length > 0)
    refuse(
      "storage.links",
      "the section links changes, which a running machine does not follow",
      "write a tmpfiles.d file that makes the link",
    );
}

/** @param read `undefined`: contents are not looked at. */
function unfollowedFiles(
  files: NonNullable<Storage["files"]>,
  read: ReturnType<typeof contentsReader> | undefined,
  refuse: Refuse,
): void {
  for (const [i, file] of files.entries()) {
    const field = pathTo("storage.files", i);
    if ((file.append ?? []).length > 0)
      refuse(
        pathTo(field, "append"),
        `${file.path} is appended to, which cannot be repeated safely`,
        "give the whole contents",
      );
    if (file.path === hostPaths.force)
      refuse(pathTo(field, "path"), `${file.path} is the daemon's force file`, "take the file out of the config");
    const contents = read?.(file.contents);
    if (contents?.verdict === "refused")
      refuse(
        pathTo(field, "contents"),
        `${file.path}: ${contents.reason}`,
        contents.because === "remote" ? "give the contents inline, as a data URL" : "correct the contents",
        "ours",
      );
    if (/[\0\n]/.test(file.path) || file.path === "/")
      refuse(pathTo(field, "path"), "no machine can write this path", "correct the path", "ours");
  }
}

function unwritableUnits(units: readonly Unit[], refuse: Refuse): void {
  for (const [i, unit] of units.entries()) {
    if (/[\0\n/]/.test(unit.name))
      refuse(
        pathTo(pathTo("systemd.units", i), "name"),
        "no machine can write a unit of this name",
        "correct the name",
        "ours",
      );
    for (const [k, { name }] of (unit.dropins ?? []).entries())
      if (/[\0\n/]/.test(name))
        refuse(
          `systemd.units[${i}].dropins[${k}].name`,
          "no machine can write a drop-in of this name",
          "correct the name",
          "ours",
        );
  }
}

function passwdChanges(before: Passwd, after: Passwd, refuse: Refuse): void {
  if (!equalValues(before.groups, after.groups))
    refuse(
      "passwd.groups",
      "groups change, which a running machine does not follow",
      "make the group with a unit or in the OS image",
    );
  if (equalValues(before.users, after.users)) return;
  const users = after.users ?? [];
  const stranger = users.findIndex(({ name }) => name !== "core");
  if (stranger >= 0)
    return refuse(
      pathTo("passwd.users", stranger),
      `the user ${users[stranger]?.name ?? ""} is not core, the one user that a running machine changes`,
      "make other users with a unit or in the OS image",
    );
  const last = users.at(-1);
  if (last === undefined) return;
  const field = pathTo("passwd.users", users.length - 1);
  const { name: _name, passwordHash, sshAuthorizedKeys, ...rest } = last;
  if (passwordHash === undefined && (sshAuthorizedKeys ?? []).length === 0)
    refuse(
      field,
      "core would have neither an SSH key nor a password",
      "give it at least one key, or take the user out of the config",
    );
  else if (Object.keys(rest).length > 0)
    refuse(
      pathTo(field, Object.keys(rest)[0] ?? ""),
      "only SSH keys and the password hash of core can change on a running machine",
      "leave the field as it is",
    );
}
