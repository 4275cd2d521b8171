import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { hostPaths, labels } from "../../api/names.ts";
import { contentsReader, decodeContents, textOf } from "../../ignition/data-url.ts";
import { type ParsedIgnition, parseIgnition } from "../../ignition/parse-ignition.ts";
import { type Problem, pathTo } from "../../ignition/problem.ts";
import type { IgnitionConfig } from "../../ignition/types.ts";

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

const parsed = new WeakMap<object, ParsedIgnition>();

/**
 * The Ignition config of a MachineConfig, parsed once per object; `undefined` when it has none.
 * Callers must not change objects in place afterwards: caches replace them instead.
 */
export function ignitionOf(config: Pick<MachineConfig, "spec">): ParsedIgnition | undefined {
  const raw = config.spec?.config;
  if (raw === undefined || raw === null) return undefined;
  const known = parsed.get(raw);
  if (known !== undefined) return known;
  const result = parseIgnition(raw);
  parsed.set(raw, result);
  return result;
}

/**
 * The problems of a single MachineConfig. Errors are exactly those for which the render controller refuses it; warnings
 * are parts that render and then do not do what their author expects: admission and plan show them, the daemon refuses
 * some of them before it disturbs the machine (`reconcilable.ts`).
 *
 * `role`: the role as the caller knows it, while the object does not carry its label yet.
 */
export function validateMachineConfig(
  config: MachineConfigInput,
  options: { readonly role?: string } = {},
): readonly Problem[] {
  const problems: Problem[] = [];
  const error = (path: string, reason: string, remedy?: string) =>
    problems.push({ path, reason, ...(remedy === undefined ? {} : { remedy }), severity: "error" });
  const warning = (path: string, reason: string, remedy?: string) =>
    problems.push({ path, reason, ...(remedy === undefined ? {} : { remedy }), severity: "warning" });
  const { metadata } = config;
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
  const under = (problem: Problem): Problem => ({
    ...problem,
    path: problem.path === "" ? "spec.config" : `spec.config.${problem.path}`,
  });
  if (ignition?.verdict === "invalid") problems.push(...ignition.problems.map(under));
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
  if (ignition?.verdict === "valid") {
    problems.push(...ignition.warnings.map(under));
    problems.push(...findingsBeyondReference(ignition.config).map(under));
  }
  if ((options.role ?? metadata.labels?.[labels.role]) === undefined) {
    warning(
      "metadata.labels",
      `has no label ${labels.role}, so no pool selects it`,
      "label it with the name of the pool",
    );
  }
  for (const [i, argument] of (spec.kernelArguments ?? []).entries()) {
    if (argument.trim() === "") warning(pathTo("spec.kernelArguments", i), "is empty");
    else if (/[\0\n\r]/.test(argument)) warning(pathTo("spec.kernelArguments", i), "contains a line break or a NUL");
  }
  return problems;
}

/** Parts that render and then cannot be applied to a running machine, or not as written. */
export function findingsBeyondReference(config: IgnitionConfig): readonly Problem[] {
  const problems: Problem[] = [];
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
      warning(
        pathTo(where, "append"),
        "cannot be applied: writing it twice would append twice",
        "give the whole contents",
      );
    const contents = read(file.contents);
    if (contents.verdict === "refused")
      warning(
        pathTo(where, "contents"),
        contents.reason,
        contents.because === "remote" ? "give the contents inline" : undefined,
      );
    if (file.contents?.verification?.hash !== undefined)
      warning(pathTo(where, "contents.verification"), "is not checked on running machines");
  }
  for (const [i, unit] of (config.systemd?.units ?? []).entries()) {
    const where = pathTo("systemd.units", i);
    if (/[\0\n/]/.test(unit.name))
      warning(pathTo(where, "name"), "contains a slash, a line break or a NUL; no machine can write it");
    if (unit.contents?.includes("\0")) warning(pathTo(where, "contents"), "contains a NUL");
    if (unit.mask === true && unit.contents !== undefined && unit.contents !== "")
      warning(pathTo(where, "mask"), "hides the unit's contents");
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
  if ((config.storage?.luks ?? []).length > 0)
    warning("storage.luks", "has no effect on running machines; only new ones are set up with it");
  if ((config.ignition.config?.merge ?? []).length > 0 || config.ignition.config?.replace !== undefined)
    warning("ignition.config", "has no effect on running machines", "give the contents inline");
  return problems;
}

/** Contents as text for people: `undefined` when they cannot be shown. */
export function readableContents(resource: Parameters<typeof decodeContents>[0]): string | undefined {
  const contents = decodeContents(resource);
  return contents.verdict === "decoded" ? textOf(contents.bytes) : undefined;
}
