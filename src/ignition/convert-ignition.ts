import { canonical } from "./canonical.ts";
import { downgradeTo22, refuseBelow31, refuseBelow32 } from "./downgrade-to-2.ts";
import { readWhole, withoutAdvertisements } from "./parse-ignition.ts";
import { Findings, type Problem, pathTo } from "./problem.ts";
import { isRecord } from "./shape.ts";
import type { Minor3 } from "./spec-3.ts";
import type { IgnitionConfig, Luks, Resource } from "./types.ts";
import { validate2 } from "./validate-2.ts";
import { validate3 } from "./validate-3.ts";

/** Versions that a config can be served in: 3.0 is read but never written. */
export const servedVersions = ["2.2.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"] as const;
export type ServedVersion = (typeof servedVersions)[number];

/** Why a config cannot be converted to an older version. */
export interface Loss extends Problem {
  /** The lowest served version that keeps the lost fields; absent if no version does. */
  readonly lowestVersion?: ServedVersion;
}

export type ConvertedIgnition =
  | {
      readonly verdict: "converted";
      readonly config: Readonly<Record<string, unknown>>;
      readonly version: ServedVersion;
    }
  | { readonly verdict: "refused"; readonly problems: readonly Loss[] };

/**
 * Converts a spec 3 config to another version, for machines whose Ignition is older than the config.
 *
 * Refuses a target that cannot express the config: no field that affects the machine is ever dropped. Reports every
 * such field, with the lowest version that keeps it. Refuses spec 2 configs, which are only read while rendering.
 * Source of the rules: coreos/ign-converter translate/ and openshift/machine-config-operator
 * pkg/controller/common/ignition_converter.go (main). The reference silently drops LUKS `cex`, Tang advertisements and,
 * in 2.2, files without contents and actions on existing partitions. Here 3.4 keeps advertisements, which it supports,
 * and the others are refused.
 */
export function convertIgnition(value: unknown, target: string): ConvertedIgnition {
  const version = servedVersions.find((one) => one === target);
  if (version === undefined)
    return refused([
      {
        path: "ignition.version",
        reason: `there is no conversion to ${target}`,
        remedy: `possible are ${servedVersions.join(", ")}`,
        severity: "error",
      },
    ]);
  const parsed = readWhole(value);
  if (parsed.verdict === "invalid") return refused(parsed.problems);
  if (/^0*2\./.test(parsed.version))
    return refused([
      {
        path: "ignition.version",
        reason: `a config of version ${parsed.version} is only converted while it is rendered`,
        severity: "error",
      },
    ]);
  // Stored and served configs have no empty lists, so empty lists must not affect the result either.
  const config = canonical(parsed.config);
  const again = readWhole(config);
  if (again.verdict === "invalid") return refused(again.problems);
  const findings = new Findings();
  if (version !== "3.5.0") validate3(again.config, 5, findings);
  return findings.hasErrors ? refused(findings.errors) : downgradeIgnition(again.config, version);
}

const refused = (problems: readonly Loss[]): ConvertedIgnition => ({ verdict: "refused", problems });

/** What each step refuses and drops, keyed by its source version; the rules of the target version judge the result. */
const steps: readonly {
  readonly from: Minor3;
  readonly step: (config: IgnitionConfig, findings: Findings) => IgnitionConfig;
}[] = [
  { from: 5, step: leave35 },
  { from: 4, step: leave34 },
  { from: 3, step: leave33 },
];

/** `convertIgnition` for a config of 3.5 that is normalised and validated already. */
export function downgradeIgnition(config: IgnitionConfig, version: ServedVersion): ConvertedIgnition {
  const losses: Loss[] = [];
  const judge = <T>(lowestVersion: ServedVersion, run: (findings: Findings) => T): T => {
    const findings = new Findings();
    const result = run(findings);
    losses.push(...findings.errors.map((problem) => ({ ...problem, lowestVersion })));
    return result;
  };
  const converted = (result: object): ConvertedIgnition =>
    losses.length > 0
      ? refused(losses.slice(0, Findings.limit))
      : { verdict: "converted", config: isRecord(result) ? result : {}, version };

  if (version === "3.5.0") return converted(canonical(config));
  const minor = version === "2.2.0" ? 2 : (Number(version[2]) as Minor3);
  let current = config;
  // After a loss the steps continue so that all losses are reported at once, but their result is discarded.
  for (const { from, step } of steps) {
    if (from <= minor) continue;
    current = judge(`3.${from}.0` as ServedVersion, (findings) => step(current, findings));
    if (losses.length === 0)
      judge(`3.${from}.0` as ServedVersion, (findings) => validate3(current, (from - 1) as Minor3, findings));
  }
  if (version === "3.1.0") {
    const before = current;
    current = judge("3.2.0", (findings) => leave32(before, findings));
    if (losses.length === 0) judge("3.2.0", (findings) => validate3(current, 1, findings));
  }
  if (version === "2.2.0") {
    judge("3.2.0", (findings) => {
      refuseBelow32(current, "2.2", findings);
      for (const { path, resource } of resourcesOf(current))
        if (schemeOf(resource) === "gs")
          findings.error(pathTo(path, "source"), "is at Google Storage, which spec 2.2 does not know");
    });
    judge("3.1.0", (findings) => refuseBelow31(current, findings));
    const older = downgradeTo22(current);
    if (losses.length === 0) judge("3.1.0", (findings) => validate2(older, 2, findings));
    return converted(canonical(older, pointersOf22));
  }
  return converted(canonical({ ...current, ignition: { ...current.ignition, version } }));
}

/** Spec 2.2 distinguishes an empty owner from none. */
const pointersOf22 = new Set(["user", "group"]);

function leave35(config: IgnitionConfig, findings: Findings): IgnitionConfig {
  const { luks } = config.storage ?? {};
  if (luks === undefined) return config;
  for (const [i, { cex }] of luks.entries())
    if (cex?.enabled === true) findings.error(pathTo(pathTo("storage.luks", i), "cex"), "does not exist in spec 3.4");
  return { ...config, storage: { ...config.storage, luks: luks.map(({ cex: _cex, ...volume }): Luks => volume) } };
}

function leave34(config: IgnitionConfig, findings: Findings): IgnitionConfig {
  for (const [i, { clevis, discard, openOptions }] of (config.storage?.luks ?? []).entries()) {
    if (discard === true) findings.error(pathTo(pathTo("storage.luks", i), "discard"), "does not exist in spec 3.3");
    if ((openOptions ?? []).length > 0)
      findings.error(pathTo(pathTo("storage.luks", i), "openOptions"), "does not exist in spec 3.3");
    for (const [k, { advertisement }] of (clevis?.tang ?? []).entries()) {
      if (advertisement !== undefined && advertisement !== "")
        findings.error(
          pathTo(pathTo(pathTo(pathTo("storage.luks", i), "clevis.tang"), k), "advertisement"),
          "does not exist in spec 3.3",
        );
    }
  }
  for (const kind of ["files", "directories"] as const) {
    for (const [i, { mode = 0 }] of (config.storage?.[kind] ?? []).entries()) {
      if ((mode & 0o7000) !== 0)
        findings.error(pathTo(pathTo(`storage.${kind}`, i), "mode"), "sets special bits, which spec 3.3 does not know");
    }
  }
  for (const { path, resource } of resourcesOf(config)) {
    if (schemeOf(resource) === "arn") findings.error(pathTo(path, "source"), "is an ARN, which spec 3.3 does not know");
  }
  if (config.storage?.luks === undefined) return config;
  return withoutAdvertisements({
    ...config,
    storage: {
      ...config.storage,
      luks: config.storage.luks.map(({ discard: _discard, openOptions: _openOptions, ...volume }): Luks => volume),
    },
  });
}

function leave33(config: IgnitionConfig, findings: Findings): IgnitionConfig {
  const { kernelArguments, ...rest } = config;
  for (const list of ["shouldExist", "shouldNotExist"] as const)
    if ((kernelArguments?.[list] ?? []).length > 0)
      findings.error(pathTo("kernelArguments", list), "does not exist in spec 3.2");
  const luks = config.storage?.luks;
  if (luks === undefined) return rest;
  // In 3.2 a custom pin always has both texts.
  return {
    ...rest,
    storage: {
      ...config.storage,
      luks: luks.map((volume) =>
        volume.clevis?.custom === undefined
          ? volume
          : { ...volume, clevis: { ...volume.clevis, custom: { config: "", pin: "", ...volume.clevis.custom } } },
      ),
    },
  };
}

function leave32(config: IgnitionConfig, findings: Findings): IgnitionConfig {
  refuseBelow32(config, "3.1", findings);
  const { passwd, storage } = config;
  const existing = <T extends { readonly shouldExist?: boolean }>({ shouldExist: _shouldExist, ...rest }: T) => rest;
  return {
    ...config,
    ...(passwd === undefined
      ? {}
      : {
          passwd: {
            ...(passwd.groups === undefined ? {} : { groups: passwd.groups.map(existing) }),
            ...(passwd.users === undefined ? {} : { users: passwd.users.map(existing) }),
          },
        }),
    ...(storage?.disks === undefined
      ? {}
      : {
          storage: {
            ...storage,
            disks: storage.disks.map((disk) =>
              disk.partitions === undefined
                ? disk
                : { ...disk, partitions: disk.partitions.map(({ resize: _resize, ...partition }) => partition) },
            ),
          },
        }),
  };
}

/** Of a validated source. */
const schemeOf = ({ source = "" }: Resource): string => source.slice(0, Math.max(0, source.indexOf(":"))).toLowerCase();

/** Every fetched resource, with its field path. */
function* resourcesOf(config: IgnitionConfig): Generator<{ readonly path: string; readonly resource: Resource }> {
  const { config: references, security } = config.ignition;
  for (const [i, resource] of (references?.merge ?? []).entries())
    yield { path: pathTo("ignition.config.merge", i), resource };
  if (references?.replace !== undefined) yield { path: "ignition.config.replace", resource: references.replace };
  for (const [i, resource] of (security?.tls?.certificateAuthorities ?? []).entries())
    yield { path: pathTo("ignition.security.tls.certificateAuthorities", i), resource };
  for (const [i, { append = [], contents }] of (config.storage?.files ?? []).entries()) {
    if (contents !== undefined) yield { path: pathTo(pathTo("storage.files", i), "contents"), resource: contents };
    for (const [k, resource] of append.entries())
      yield { path: pathTo(pathTo(pathTo("storage.files", i), "append"), k), resource };
  }
  for (const [i, { keyFile }] of (config.storage?.luks ?? []).entries())
    if (keyFile !== undefined) yield { path: pathTo(pathTo("storage.luks", i), "keyFile"), resource: keyFile };
}
