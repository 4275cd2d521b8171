import { canonical } from "./canonical.ts";
import { downgradeTo22, refuseBelow32 } from "./downgrade-to-2.ts";
import { readIgnition, withoutAdvertisements } from "./parse-ignition.ts";
import { Findings, type Problem, at } from "./problem.ts";
import { parseUrl } from "./parse-url.ts";
import { isRecord } from "./shape.ts";
import type { Minor3 } from "./spec-3.ts";
import type { IgnitionConfig, Luks, Resource } from "./types.ts";
import { validate2 } from "./validate-2.ts";
import { validate3 } from "./validate-3.ts";

/** Versions that a config can be served in: 3.0 is read and never written. */
export const servedVersions = ["2.2.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"] as const;
export type ServedVersion = (typeof servedVersions)[number];

export type ConvertedIgnition =
  | { readonly verdict: "converted"; readonly config: Readonly<Record<string, unknown>>; readonly version: ServedVersion }
  | { readonly verdict: "refused"; readonly problems: readonly Problem[] };

/**
 * Brings a spec 3 config to another version, for machines whose Ignition is older than the config.
 *
 * Refused when the target cannot say what the config says; each step judges what it takes and what it gives. Two things
 * are lost without a word, as in the reference: LUKS `cex`, and Tang advertisements below 3.5. Spec 2 configs are only
 * read while rendering and are refused here.
 * Source of the rules: coreos/ign-converter translate/ and openshift/machine-config-operator
 * pkg/controller/common/ignition_converter.go (main).
 */
export function convertIgnition(value: unknown, target: string): ConvertedIgnition {
  const refused = (problems: readonly Problem[]): ConvertedIgnition => ({ verdict: "refused", problems });
  const version = servedVersions.find((one) => one === target);
  if (version === undefined) return refused([{ path: "ignition.version", reason: `there is no conversion to ${target}`, remedy: `possible are ${servedVersions.join(", ")}`, severity: "error" }]);
  const parsed = readIgnition(value);
  if (parsed.verdict === "invalid") return refused(parsed.problems);
  if (/^0*2\./.test(parsed.version)) return refused([{ path: "ignition.version", reason: `a config of version ${parsed.version} is only converted while it is rendered`, severity: "error" }]);
  // What is stored and served has no empty lists, so they must not decide either.
  const config = canonical(parsed.config);
  const again = readIgnition(config);
  if (again.verdict === "invalid") return refused(again.problems);

  const findings = new Findings();
  const result = down(again.config, version, findings);
  return findings.hasErrors || result === undefined ? refused(findings.errors) : { verdict: "converted", config: result, version };
}

type Step = (config: IgnitionConfig, findings: Findings) => IgnitionConfig;

/** What each step refuses and drops, from the version that it leaves; what it gives is judged by the version below. */
const steps: readonly { readonly from: Minor3; readonly step: Step }[] = [
  { from: 5, step: leave35 },
  { from: 4, step: leave34 },
  { from: 3, step: leave33 },
];

function down(config: IgnitionConfig, version: ServedVersion, findings: Findings): Readonly<Record<string, unknown>> | undefined {
  if (version === "3.5.0") return asRecord(canonical(config));
  const minor = version === "2.2.0" ? 2 : (Number(version[2]) as Minor3);
  let current = config;
  validate3(current, 5, findings);
  for (const { from, step } of steps) {
    if (from <= minor || findings.hasErrors) continue;
    current = step(current, findings);
    if (!findings.hasErrors) validate3(current, (from - 1) as Minor3, findings);
  }
  if (findings.hasErrors) return undefined;
  if (version === "3.1.0") {
    current = leave32(current, findings);
    if (!findings.hasErrors) validate3(current, 1, findings);
  }
  if (version === "2.2.0") {
    const older = downgradeTo22(current, findings);
    if (!findings.hasErrors) validate2(older, 2, findings);
    return asRecord(canonical(older, pointersOf22));
  }
  return asRecord(canonical({ ...current, ignition: { ...current.ignition, version } }));
}

/** Spec 2.2 tells an empty owner from none. */
const pointersOf22 = new Set(["user", "group"]);

const asRecord = (value: object): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});

function leave35(config: IgnitionConfig): IgnitionConfig {
  const { luks } = config.storage ?? {};
  const plain = luks === undefined ? config : { ...config, storage: { ...config.storage, luks: luks.map(({ cex: _cex, ...volume }): Luks => volume) } };
  return withoutAdvertisements(plain);
}

function leave34(config: IgnitionConfig, findings: Findings): IgnitionConfig {
  for (const [i, { discard, openOptions }] of (config.storage?.luks ?? []).entries()) {
    if (discard === true) findings.error(at(at("storage.luks", i), "discard"), "does not exist in spec 3.3");
    if ((openOptions ?? []).length > 0) findings.error(at(at("storage.luks", i), "openOptions"), "does not exist in spec 3.3");
  }
  for (const kind of ["files", "directories"] as const) {
    for (const [i, { mode = 0 }] of (config.storage?.[kind] ?? []).entries()) {
      if ((mode & 0o7000) !== 0) findings.error(at(at(`storage.${kind}`, i), "mode"), "sets special bits, which spec 3.3 does not know");
    }
  }
  for (const { path, resource } of resourcesOf(config)) {
    if (resource.source !== undefined && parseUrl(resource.source)?.scheme === "arn") findings.error(at(path, "source"), "is an ARN, which spec 3.3 does not know");
  }
  if (config.storage?.luks === undefined) return config;
  return { ...config, storage: { ...config.storage, luks: config.storage.luks.map(({ discard: _discard, openOptions: _openOptions, ...volume }): Luks => volume) } };
}

function leave33(config: IgnitionConfig, findings: Findings): IgnitionConfig {
  const { kernelArguments, ...rest } = config;
  if ((kernelArguments?.shouldExist ?? []).length > 0 || (kernelArguments?.shouldNotExist ?? []).length > 0) findings.error("kernelArguments", "do not exist in spec 3.2");
  const luks = config.storage?.luks;
  if (luks === undefined) return rest;
  // In 3.2 a custom pin always has both texts.
  return {
    ...rest,
    storage: {
      ...config.storage,
      luks: luks.map((volume) =>
        volume.clevis?.custom === undefined ? volume : { ...volume, clevis: { ...volume.clevis, custom: { config: "", pin: "", ...volume.clevis.custom } } },
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
      : { passwd: { ...(passwd.groups === undefined ? {} : { groups: passwd.groups.map(existing) }), ...(passwd.users === undefined ? {} : { users: passwd.users.map(existing) }) } }),
    ...(storage?.disks === undefined
      ? {}
      : {
          storage: {
            ...storage,
            disks: storage.disks.map((disk) =>
              disk.partitions === undefined ? disk : { ...disk, partitions: disk.partitions.map(({ resize: _resize, ...partition }) => partition) },
            ),
          },
        }),
  };
}

/** Everything that is fetched, and where it stands. */
function* resourcesOf(config: IgnitionConfig): Generator<{ readonly path: string; readonly resource: Resource }> {
  const { config: references, security } = config.ignition;
  for (const [i, resource] of (references?.merge ?? []).entries()) yield { path: at("ignition.config.merge", i), resource };
  if (references?.replace !== undefined) yield { path: "ignition.config.replace", resource: references.replace };
  for (const [i, resource] of (security?.tls?.certificateAuthorities ?? []).entries()) yield { path: at("ignition.security.tls.certificateAuthorities", i), resource };
  for (const [i, { append = [], contents }] of (config.storage?.files ?? []).entries()) {
    if (contents !== undefined) yield { path: at(at("storage.files", i), "contents"), resource: contents };
    for (const [k, resource] of append.entries()) yield { path: at(at(at("storage.files", i), "append"), k), resource };
  }
  for (const [i, { keyFile }] of (config.storage?.luks ?? []).entries()) if (keyFile !== undefined) yield { path: at(at("storage.luks", i), "keyFile"), resource: keyFile };
}

