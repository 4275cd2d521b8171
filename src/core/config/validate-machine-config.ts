import { pushAll } from "../../api/schema/push-all.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, hostPaths, labels } from "../../api/names.ts";
import { contentsReader, heldText, mostStoredTextBytes, mostTextCharacters } from "../../ignition/held-contents.ts";
import { decimalMode } from "../../ignition/file-mode.ts";
import { type ParsedIgnition, parseIgnition } from "../../ignition/parse-ignition.ts";
import { type Problem, pathTo } from "../../ignition/problem.ts";
import type { File, IgnitionConfig, Unit } from "../../ignition/types.ts";
import { certificatePaths } from "../certificates/machine-certificates.ts";
import { parseImageReference } from "../images/image-reference.ts";
import { type FindUnit, installingOf, reachedFrom, unitFileOf, unitFolder } from "./install-links.ts";
import { describeConflict, pathClaims, pathConflicts, resolvedPathOf } from "./path-conflicts.ts";
import { templateOf } from "./unit-name.ts";
import { readOncePerObject } from "../text/read-once.ts";

/** A MachineConfig as rendering and validation need it: metadata may be little more than a name. */
export type MachineConfigInput = Pick<MachineConfig, "metadata" | "spec">;

/**
 * Features that a MachineConfig may name, and the packages behind them: openshift/machine-config-operator
 * pkg/controller/common/helpers.go (main).
 */
export const supportedExtensions: Readonly<Record<string, readonly string[]>> = {
  "two-node-ha": ["pacemaker", "pcs", "fence-agents-all"],
  ipsec: ["NetworkManager-libreswan", "libreswan", "openvswitch3.5-ipsec"],
  usbguard: ["usbguard"],
  kerberos: ["krb5-workstation", "libkadm5"],
  "kernel-devel": ["kernel-devel", "kernel-headers"],
  "sandboxed-containers": ["kata-containers"],
  sysstat: ["sysstat"],
};

export const kernelTypes = ["default", "realtime", "64k-pages"] as const;

const parsedOnce = readOncePerObject((raw: object): ParsedIgnition => parseIgnition(raw));

/**
 * The Ignition config of a MachineConfig, parsed once per object; `undefined` when it has none.
 * Callers must not change objects in place afterwards: caches replace them instead.
 */
export function ignitionOf(config: Pick<MachineConfig, "spec">): ParsedIgnition | undefined {
  const raw = config.spec?.config;
  if (raw === undefined || raw === null) return undefined;
  return parsedOnce(raw);
}

/**
 * The problems of a single MachineConfig. Errors are those for which the renderer refuses it (`renderErrors`), and those
 * that no pool can have: admission, `mco validate` and `mco plan` refuse it. Warnings are parts that render and then do
 * not do what their author expects: all three show them, and the daemon refuses some of them before it disturbs the
 * machine (`reconcilable.ts`).
 *
 * `role`: the role as the caller knows it, while the object does not carry its label yet.
 */
export function validateMachineConfig(
  config: MachineConfigInput,
  options: { readonly role?: string } = {},
): readonly Problem[] {
  const problems: Problem[] = [...renderProblems(config)];
  const warning = (path: string, reason: string, remedy?: string) =>
    problems.push({ path, reason, ...(remedy === undefined ? {} : { remedy }), severity: "warning" });
  const ignition = ignitionOf(config);
  if (ignition?.verdict === "valid") {
    pushAll(problems, distinct(ignition.warnings).map(belowConfig));
    pushAll(problems, findingsBeyondReference(ignition.config).map(belowConfig));
    const isGenerated = config.metadata.annotations?.[annotations.generatedByController] !== undefined;
    if (!isGenerated) pushAll(problems, pullSecretFindings(ignition.config).map(belowConfig));
  }
  if ((options.role ?? config.metadata.labels?.[labels.role]) === undefined) {
    warning(
      "metadata.labels",
      `has no label ${labels.role}, so no pool selects it`,
      "label it with the name of the pool",
    );
  }
  const image = unfitImageName(config.spec?.osImageURL ?? "");
  if (image !== undefined) warning("spec.osImageURL", image.reason, image.remedy);
  for (const [i, argument] of (config.spec?.kernelArguments ?? []).entries()) {
    if (argument.trim() === "") warning(pathTo("spec.kernelArguments", i), "is empty");
    else if (/[\0\n\r]/.test(argument)) warning(pathTo("spec.kernelArguments", i), "contains a line break or a NUL");
  }
  return problems;
}

/** A MachineConfig of people that takes the place of the pull secret which the base configurations bring. */
function pullSecretFindings(config: IgnitionConfig): readonly Problem[] {
  const index = (config.storage?.files ?? []).findIndex(({ path }) => path === hostPaths.kubeletPullSecret);
  if (index < 0) return [];
  return [
    {
      severity: "warning",
      path: pathTo(pathTo("storage.files", index), "path"),
      reason: `${hostPaths.kubeletPullSecret} holds the cluster's pull secret: this entry replaces it, and changes of the Secret pull-secret reach no machine of the pool`,
      remedy: "put the credentials into that Secret, and take the entry out",
    },
  ];
}

/** Why no machine takes an OS image by this name; `undefined`: it names one image for ever. */
export function unfitImageName(name: string): Finding | undefined {
  if (name === "") return undefined;
  const shown = JSON.stringify(name.slice(0, 100));
  const remedy = "name it by its digest: registry.example.com/path@sha256:…";
  const reading = parseImageReference(name);
  if (reading.verdict === "refused")
    return { reason: `${shown} is no name of an image: ${reading.problem}; no machine can have it`, remedy };
  if (reading.reference.digest !== undefined) return undefined;
  return {
    reason: `${shown} is a tag, which can come to mean another image: machines take an OS image by its digest only`,
    remedy,
  };
}

/** The errors for which the renderer refuses a MachineConfig, as the reference does. */
export const renderErrors = (config: MachineConfigInput): readonly Problem[] =>
  renderProblems(config).filter(({ severity }) => severity === "error");

const belowConfig = (problem: Problem): Problem => ({
  ...problem,
  path: problem.path === "" ? "spec.config" : `spec.config.${problem.path}`,
});

/** A config that is judged in its own version and in the newest has some findings twice. */
function distinct(problems: readonly Problem[]): readonly Problem[] {
  const byText = new Map(problems.map((problem) => [`${problem.path}\0${problem.reason}`, problem]));
  return [...byText.values()];
}

function renderProblems(config: MachineConfigInput): readonly Problem[] {
  const problems: Problem[] = [];
  const error = (path: string, reason: string, remedy?: string) =>
    problems.push({ path, reason, ...(remedy === undefined ? {} : { remedy }), severity: "error" });
  const warning = (path: string, reason: string, remedy?: string) =>
    problems.push({ path, reason, ...(remedy === undefined ? {} : { remedy }), severity: "warning" });
  const spec = config.spec ?? {};

  if (
    spec.kernelType !== undefined &&
    spec.kernelType !== "" &&
    !kernelTypes.some((type) => type === spec.kernelType)
  ) {
    error(
      "spec.kernelType",
      `${JSON.stringify(spec.kernelType)} is not a kernel type`,
      `one of ${kernelTypes.join(", ")}`,
    );
  }
  const ignition = ignitionOf(config);
  if (ignition?.verdict === "invalid") pushAll(problems, distinct(ignition.problems).map(belowConfig));
  // The reference checks extensions only beside an Ignition config; without one it accepts unknown names.
  for (const [i, extension] of (spec.extensions ?? []).entries()) {
    if (Object.hasOwn(supportedExtensions, extension)) continue;
    const report = ignition === undefined ? warning : error;
    report(
      pathTo("spec.extensions", i),
      `${JSON.stringify(extension)} is not an extension`,
      `one of ${Object.keys(supportedExtensions).join(", ")}`,
    );
  }
  return problems;
}

/**
 * Parts that render by themselves, and then cannot be applied to a running machine, or not as written; found once per
 * object.
 */
export const findingsBeyondReference = readOncePerObject(lookBeyondReference);

function lookBeyondReference(config: IgnitionConfig): readonly Problem[] {
  const problems: Problem[] = conflictsOf(config);
  const warning = (path: string, reason: string, remedy?: string) =>
    problems.push({ path, reason, ...(remedy === undefined ? {} : { remedy }), severity: "warning" });
  const read = contentsReader();
  for (const [i, file] of (config.storage?.files ?? []).entries()) {
    const where = pathTo("storage.files", i);
    if (/[\0\n]/.test(file.path))
      warning(pathTo(where, "path"), "contains a NUL or a line break; no machine can write it");
    if (file.path === "/") warning(pathTo(where, "path"), "is the root folder; no machine can write it");
    if (file.path === hostPaths.force)
      warning(pathTo(where, "path"), "is the daemon's force file, which a config must not write");
    if ((file.append ?? []).length > 0)
      problems.push({
        severity: "error",
        path: pathTo(where, "append"),
        reason: `appends to ${file.path}, which a machine that runs refuses: writing it twice would append twice`,
        remedy: "give the whole file in contents, and take append away",
      });
    const contents = read(file.contents);
    if (contents.verdict === "refused")
      warning(
        pathTo(where, "contents"),
        contents.reason,
        contents.because === "remote" ? "give the contents inline" : undefined,
      );
    const most = mostParsed(file.path);
    if (contents.verdict === "decoded" && contents.sizeBytes > most && isTooLarge(file, most))
      warning(
        pathTo(where, "contents"),
        `${file.path} has more than ${most} characters: no settings of the cluster are laid over it, and what a change of it means to machines is not looked for in it`,
        "shorten it",
      );
    const place = placeFinding(file.path);
    if (place !== undefined) warning(pathTo(where, "path"), place.reason, place.remedy);
    const decimal = decimalMode(file.mode ?? 0);
    if (decimal !== undefined) warning(pathTo(where, "mode"), decimal.reason, decimal.remedy);
    if (file.contents?.verification?.hash !== undefined)
      warning(pathTo(where, "contents.verification"), "is not checked on running machines");
  }
  const find = findIn(config);
  const enabling = enablingProblems(config.systemd?.units ?? [], find);
  for (const [i, unit] of (config.systemd?.units ?? []).entries()) {
    const where = pathTo("systemd.units", i);
    if (/[\0\n/]/.test(unit.name))
      warning(pathTo(where, "name"), "contains a slash, a line break or a NUL; no machine can write it");
    if (unit.contents?.includes("\0")) warning(pathTo(where, "contents"), "contains a NUL");
    if (unit.mask === true && unit.contents !== undefined && unit.contents !== "")
      warning(pathTo(where, "mask"), "hides the unit's contents");
    for (const { field, reason, remedy } of [...maskFindings(unit, find), ...(enabling.get(unit.name) ?? [])])
      warning(pathTo(where, field), reason, remedy);
    for (const [k, dropin] of (unit.dropins ?? []).entries()) {
      if (/[\0\n/]/.test(dropin.name))
        warning(
          pathTo(pathTo(where, "dropins"), k),
          "has a slash, a line break or a NUL in its name; no machine can write it",
        );
    }
  }
  for (const [i, user] of (config.passwd?.users ?? []).entries()) {
    if (user.name !== "core")
      warning(
        pathTo(pathTo("passwd.users", i), "name"),
        `${user.name} is not core, the one user that a running machine changes`,
      );
    for (const [k, key] of (user.sshAuthorizedKeys ?? []).entries())
      if (/[\0\n\r]/.test(key))
        warning(
          pathTo(pathTo(pathTo("passwd.users", i), "sshAuthorizedKeys"), k),
          "contains a line break or a NUL",
          "one key each",
        );
  }
  for (const { section, field, remedy } of firstBootSections)
    if (section(config).length > 0)
      warning(
        field,
        "takes effect when a machine first boots; machines that run do not follow it, and a pool that has a configuration refuses the change",
        remedy,
      );
  if ((config.ignition.config?.merge ?? []).length > 0 || config.ignition.config?.replace !== undefined)
    warning("ignition.config", "has no effect on running machines", "give the contents inline");
  return problems;
}

/** What systemd finds of the units of a config; what it neither has nor masks is unknown. */
function findIn(config: IgnitionConfig): FindUnit {
  const units = new Map((config.systemd?.units ?? []).map((one) => [one.name, one]));
  const dropins = new Map(
    [...units].map(([unit, { dropins: all = [] }]) => [
      unit,
      new Map(all.map(({ name, contents = "" }) => [name, contents])),
    ]),
  );
  const below = (folder: string) => dropins.get(folder.slice(0, -2)) ?? new Map<string, string>();
  return (name, other) => {
    const found = units.get(name);
    if (found?.mask === true) return "masked";
    const { contents = "" } = found ?? {};
    return contents === "" ? undefined : unitFileOf({ path: `${unitFolder}/${name}`, text: contents }, other, below);
  };
}

interface UnitFinding {
  readonly field: string;
  readonly reason: string;
  readonly remedy?: string;
}

/** Whether a unit without contents stays masked by its template. */
const isMaskedByTemplate = (name: string, find: FindUnit): boolean =>
  find(name, name) === undefined && find(templateOf(name), name) === "masked";

/** Why a unit stays masked against what its author expects. */
function maskFindings(unit: Unit, find: FindUnit): readonly UnitFinding[] {
  const asksFor = unit.enabled === true ? "enabled" : unit.mask === false ? "mask" : undefined;
  if (unit.mask === true || asksFor === undefined || !isMaskedByTemplate(unit.name, find)) return [];
  return [
    {
      field: asksFor,
      reason: `${unit.name} stays masked: it has no contents of its own, and its template ${templateOf(unit.name)} is masked`,
      remedy: "give it contents, or take the mask of the template away",
    },
  ];
}

/**
 * Why units are not enabled as their author expects, by their names. What is wrong with a unit that `Also=` names, and that
 * is not enabled itself, is a finding of the first unit that leads to it.
 */
function enablingProblems(units: readonly Unit[], find: FindUnit): ReadonlyMap<string, readonly UnitFinding[]> {
  const enabled = units.flatMap(({ name, enabled, mask }) => {
    const hasFile = (find(name, name) ?? find(templateOf(name), name)) !== undefined;
    return enabled === true && mask !== true && hasFile && !isMaskedByTemplate(name, find) ? [name] : [];
  });
  const found = new Map<string, UnitFinding[]>(enabled.map((name) => [name, []]));
  const add = (name: string, problem: string) =>
    found.get(name)?.push({ field: "enabled", reason: `systemctl cannot: ${problem}` });
  for (const name of enabled) {
    const { refusal, isTooMuch, problems } = installingOf(name, find);
    if (refusal !== undefined && isTooMuch === true)
      found.get(name)?.push({
        field: "enabled",
        reason: `no machine enables it: ${refusal}`,
        remedy: "take words or drop-ins from the template, or give the unit a name that is no instance",
      });
    else for (const problem of refusal === undefined ? problems : [refusal]) add(name, problem);
  }
  for (const [unit, { from, installing }] of reachedFrom(enabled, find))
    if (!found.has(unit)) for (const problem of installing.problems) add(from, problem);
  return found;
}

/** Sections that only Ignition carries out, before a system first runs, and what to do for machines that run. */
const firstBootSections: readonly {
  readonly field: string;
  readonly remedy?: string;
  section(config: IgnitionConfig): readonly unknown[];
}[] = [
  ...(["disks", "filesystems", "raid"] as const).map((name) => ({
    field: `storage.${name}`,
    remedy:
      "give it to new machines in a pool of their own, or allow the change by irreconcilableValidationOverrides of MachineConfiguration/cluster: machines that run keep what they have",
    section: ({ storage }: IgnitionConfig) => storage?.[name] ?? [],
  })),
  {
    field: "storage.luks",
    remedy: "give it to new machines in a pool of their own",
    section: ({ storage }) => storage?.luks ?? [],
  },
  {
    field: "storage.directories",
    remedy: "let a file or a unit's RuntimeDirectory make the folder, or write a tmpfiles.d file",
    section: ({ storage }) => storage?.directories ?? [],
  },
  {
    field: "storage.links",
    remedy: "write a tmpfiles.d file that makes the link",
    section: ({ storage }) => storage?.links ?? [],
  },
  {
    field: "passwd.groups",
    remedy: "make the group with a unit or in the OS image",
    section: ({ passwd }) => passwd?.groups ?? [],
  },
];

const kubeletConfs = ["/etc/kubernetes/kubelet.conf", "/var/lib/kubelet/config.yaml"];
const enginesFiles = ["/etc/containers/registries.conf", "/etc/containers/policy.json"];

const isTooLarge = ({ contents }: File, most: number): boolean => {
  const text = heldText(contents, most);
  return text.verdict === "refused" && text.because === "tooLarge";
};

/** Characters up to which a file is parsed. */
function mostParsed(path: string): number {
  if (enginesFiles.includes(path)) return mostStoredTextBytes;
  const isParsed =
    kubeletConfs.includes(path) || path === "/etc/containers/storage.conf" || path.startsWith("/etc/crio/crio.conf.d/");
  return isParsed ? mostTextCharacters : Infinity;
}

/** Folders that each boot empties. Source: systemd file-hierarchy(7). */
const emptiedAtBoot = ["/run", "/tmp"];

interface Finding {
  readonly reason: string;
  readonly remedy: string;
}

/** Why no machine of this suite can write a path, unless its OS image holds it; `undefined`: nothing prevents it. */
export const unwritablePath = (path: string): Finding | undefined =>
  resolvedPathOf(path).startsWith("/usr/")
    ? {
        reason: "is below /usr, which machines cannot write: only an OS image holds it",
        remedy: "use a path below /etc or /usr/local, or put the file into the OS image",
      }
    : undefined;

/** Why a file in this place is not what its author expects; `undefined`: nothing is known against it. */
function placeFinding(path: string): Finding | undefined {
  const place = resolvedPathOf(path);
  const isBelow = (folder: string) => place.startsWith(`${folder}/`);
  const unwritable = unwritablePath(path);
  if (unwritable !== undefined) return { ...unwritable, reason: `${path} ${unwritable.reason}` };
  const emptied = emptiedAtBoot.find(isBelow);
  if (emptied !== undefined && path !== hostPaths.force)
    return {
      reason: `${path} is below ${emptied}, which each boot empties: the file is missing afterwards`,
      remedy: "write a tmpfiles.d file that makes it at each boot, or use a path below /etc or /var",
    };
  if (certificatePaths.has(path))
    return {
      reason: `${path} is written by the machine config daemon itself: this entry has no effect`,
      remedy: "take it out; the contents come from the cluster's own objects",
    };
  return undefined;
}

/** Paths of one config that exclude each other. */
function conflictsOf(config: IgnitionConfig): Problem[] {
  return pathConflicts(pathClaims(config)).map((conflict): Problem => ({
    severity: "error",
    path: conflict.second.field,
    ...describeConflict(conflict, ({ field }) => `spec.config.${field}`),
  }));
}
