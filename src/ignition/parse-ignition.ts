import { decimalMode } from "./file-mode.ts";
import { foldedName } from "./folded-name.ts";
import { Findings, type Problem, pathTo } from "./problem.ts";
import { isRecord, read } from "./shape.ts";
import { type Ignition2Config, type Minor2, shapesOf2 } from "./spec-2.ts";
import { type Minor3, shapesOf3 } from "./spec-3.ts";
import { type IgnitionConfig, ignitionVersion } from "./types.ts";
import { upgrade2 } from "./upgrade-2.ts";
import { validate2 } from "./validate-2.ts";
import { byteLength, validate3 } from "./validate-3.ts";

/** Versions that are read, as messages list them. */
export const supportedVersions = [
  "2.0.0",
  "2.1.0",
  "2.2.0",
  "3.0.0",
  "3.1.0",
  "3.2.0",
  "3.3.0",
  "3.4.0",
  "3.5.0",
] as const;

export type ParsedIgnition =
  | {
      readonly verdict: "valid";
      readonly config: IgnitionConfig;
      /** As the author wrote it. */ readonly version: string;
      readonly warnings: readonly Problem[];
    }
  | { readonly verdict: "invalid"; readonly problems: readonly Problem[] };

/**
 * File modes of a MachineConfig have no special bits: openshift/machine-config-operator
 * pkg/controller/common/helpers.go (main).
 */
const maxFileMode = 0o777;

/**
 * Reads an Ignition config of any supported version, converts it to 3.5, and validates it as the config of a
 * MachineConfig.
 *
 * `invalid` exactly if the reference's render controller refuses it, or if a unit has a name that no file can have; the problems name fields, errors before warnings.
 * Never throws, whatever `value` is. The work is proportional to the fields that the spec knows.
 */
export function parseIgnition(value: unknown): ParsedIgnition {
  return parseWith(value, "asMachineConfig");
}

/**
 * Like `parseIgnition`, but refuses only what cannot be read or converted to 3.5 at all. The reference reads configs
 * already in effect on a machine this way: they must stay comparable even if later rules refuse them.
 */
export function readIgnition(value: unknown): ParsedIgnition {
  return parseWith(value, "asItIs");
}

/** `readIgnition`, but keeps what the reference loses when it converts a config between versions. */
export function readWhole(value: unknown): ParsedIgnition {
  return parseWith(value, "whole");
}

/** File modes of MachineConfigs are validated in the config as written, including duplicates in spec 2. */
function judgeFileModes(files: readonly { readonly mode?: number }[], findings: Findings): void {
  for (const [i, { mode }] of files.entries()) {
    if (mode === undefined || mode <= maxFileMode || mode > 0o7777) continue;
    findings.error(
      pathTo(pathTo("storage.files", i), "mode"),
      `${mode} sets special bits, which a MachineConfig may not`,
      decimalMode(mode)?.remedy ?? "at most 511 (0777)",
    );
  }
}

/** Bytes that Linux takes for the name of a file (NAME_MAX), and systemd for that of a unit (UNIT_NAME_MAX without its NUL). */
const mostNameBytes = 255;

interface NamedUnit {
  readonly name?: string;
  readonly dropins?: readonly { readonly name?: string }[];
}

/**
 * Units and drop-ins must have names that a file can have. The name of a unit is part of the path of each of its
 * drop-ins, so that without a limit the paths of a config could be a thousand times its size. The reference leaves it
 * to the machines to fail at such names.
 */
function judgeUnitNames(units: readonly NamedUnit[] | undefined, path: string, findings: Findings): void {
  const judge = (name: string | undefined, where: string) => {
    if (name !== undefined && (name.length > mostNameBytes || byteLength(name) > mostNameBytes))
      findings.error(
        pathTo(where, "name"),
        `has ${byteLength(name)} bytes, and the name of a file has at most ${mostNameBytes}`,
        "choose a shorter one",
      );
  };
  for (const [i, { name, dropins }] of (units ?? []).entries()) {
    judge(name, pathTo(path, i));
    for (const [k, dropin] of (dropins ?? []).entries()) judge(dropin.name, `${pathTo(path, i)}.dropins[${k}]`);
  }
}

/**
 * Why a config converted to 3.5 cannot be the config of a MachineConfig: errors only, empty for none. Differs from
 * `parseIgnition` for spec 2, which is validated there before the conversion.
 */
export function judgeIgnition(config: IgnitionConfig): readonly Problem[] {
  const findings = new Findings();
  validate3(config, 5, findings);
  judgeFileModes(config.storage?.files ?? [], findings);
  return findings.errors;
}

/** Why a value is not a valid 3.5 config by the rules of `readIgnition`: errors only, empty for none. */
export function judgeAsItIs(config: IgnitionConfig): readonly Problem[] {
  const findings = new Findings();
  validate3(config, 5, findings);
  return findings.errors;
}

type Purpose = "asMachineConfig" | "asItIs" | "whole";
type Version = { readonly major: 2; readonly minor: Minor2 } | { readonly major: 3; readonly minor: Minor3 };

function versionOf(text: string): Version | undefined {
  const match = /^0*([23])\.0*([0-5])\.0+$/.exec(text);
  const minor = Number(match?.[2]);
  if (match?.[1] === "3") return { major: 3, minor: minor as Minor3 };
  return match !== null && minor <= 2 ? { major: 2, minor: minor as Minor2 } : undefined;
}

function parseWith(value: unknown, purpose: Purpose): ParsedIgnition {
  const findings = new Findings();
  const invalid = (): ParsedIgnition => ({
    verdict: "invalid",
    problems: [...findings.errors, ...findings.problems.filter(({ severity }) => severity === "warning")],
  });
  if (!isRecord(value)) {
    findings.error("", "the config is not an object");
    return invalid();
  }
  const section = fieldOf(value, "ignition");
  const text = isRecord(section) ? fieldOf(section, "version") : undefined;
  const version = typeof text === "string" ? versionOf(text) : undefined;
  if (version === undefined) {
    findings.error(
      "ignition.version",
      text === undefined || text === null ? "is missing" : `${JSON.stringify(text)?.slice(0, 80)} is not supported`,
      `supported are ${supportedVersions.join(", ")}`,
    );
    return invalid();
  }
  const config =
    version.major === 2
      ? parse2(value, version.minor, purpose, findings)
      : parse3(value, version.minor, purpose, findings);
  return config === undefined || findings.hasErrors
    ? invalid()
    : { verdict: "valid", config, version: String(text), warnings: findings.problems };
}

/** A field by its exact name, or else case-insensitively, as Go reads JSON. */
function fieldOf(record: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(record, name)) return record[name];
  const other = Object.keys(record).find((key) => foldedName(key) === name);
  return other === undefined ? undefined : record[other];
}

function parse2(value: unknown, minor: Minor2, purpose: Purpose, findings: Findings): IgnitionConfig | undefined {
  const config = read(value, shapesOf2[minor], "", findings) as Ignition2Config | undefined;
  if (config === undefined || findings.hasErrors) return undefined;
  judgeUnitNames(config.systemd?.units, "systemd.units", findings);
  judgeUnitNames(config.networkd?.units, "networkd.units", findings);
  if (findings.hasErrors) return undefined;
  validate2(config, minor, findings);
  if (purpose === "asMachineConfig") judgeFileModes(config.storage?.files ?? [], findings);
  if (findings.hasErrors) return undefined;
  const upgraded = upgrade2(config, minor, findings);
  if (upgraded === undefined) return undefined;
  validate3(upgraded, 0, findings);
  return findings.hasErrors ? undefined : upgrade3(upgraded, 0, purpose);
}

function parse3(value: unknown, minor: Minor3, purpose: Purpose, findings: Findings): IgnitionConfig | undefined {
  const config = read(value, shapesOf3[minor], "", findings) as IgnitionConfig | undefined;
  if (config === undefined || findings.hasErrors) return undefined;
  judgeUnitNames(config.systemd?.units, "systemd.units", findings);
  if (findings.hasErrors) return undefined;
  validate3(config, minor, findings);
  if (findings.hasErrors) return undefined;
  const upgraded = upgrade3(config, minor, purpose);
  if (purpose === "asMachineConfig") {
    if (minor !== 5) validate3(upgraded, 5, findings);
    judgeFileModes(upgraded.storage?.files ?? [], findings);
  }
  return findings.hasErrors ? undefined : upgraded;
}

/** Later minor versions only add fields, so upgrading only changes the version, with one loss. */
function upgrade3(config: IgnitionConfig, minor: Minor3, purpose: Purpose): IgnitionConfig {
  if (minor === 5) return config;
  const upgraded = { ...config, ignition: { ...config.ignition, version: ignitionVersion } };
  return minor === 4 && purpose !== "whole" ? withoutAdvertisements(upgraded) : upgraded;
}

/**
 * The reference loses Tang advertisements between 3.4 and 3.5, in both directions: coreos/ignition
 * config/v3_5/translate (main).
 */
export function withoutAdvertisements(config: IgnitionConfig): IgnitionConfig {
  const { luks } = config.storage ?? {};
  if (luks?.some(({ clevis }) => clevis?.tang?.some(({ advertisement }) => advertisement !== undefined)) !== true)
    return config;
  return {
    ...config,
    storage: {
      ...config.storage,
      luks: luks.map((volume) =>
        volume.clevis?.tang === undefined
          ? volume
          : {
              ...volume,
              clevis: {
                ...volume.clevis,
                tang: volume.clevis.tang.map(({ advertisement: _advertisement, ...tang }) => tang),
              },
            },
      ),
    },
  };
}
