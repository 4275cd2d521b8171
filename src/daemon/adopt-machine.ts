import type { MachineConfig } from "../api/kinds/machine-config.ts";
import { annotations, hostPaths } from "../api/names.ts";
import { type ImagePair, desiredImageOf } from "../core/machine/image-target.ts";
import type { NodeConfig } from "../core/config/node-config.ts";
import { sameImage } from "../core/images/image-reference.ts";
import type { OriginalEntry, Originals } from "../core/machine/observed-content.ts";
import type { Host } from "../host/host.ts";
import { holdsPayload, noOriginals, originalOf, readOriginal } from "./observe-host.ts";
import { originalToRecord, withFound } from "../core/machine/kept-originals.ts";
import { readTarget } from "../core/machine/read-config.ts";
import type { Previous } from "../core/machine/machine-record.ts";
import type { Adoption } from "../core/machine/pass-plan.ts";
import { namedImage } from "../core/config/image-pair.ts";

/** Annotations that the config server gives a joining machine, if any. */
export async function servedAnnotations(
  host: Host,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>> | undefined> {
  const file = await host.files.read(hostPaths.nodeAnnotations, signal);
  if (file?.kind !== "file") return undefined;
  const parsed = parseJson(file.contents);
  const keys: readonly string[] = [
    annotations.currentConfig,
    annotations.desiredConfig,
    annotations.currentImage,
    annotations.currentOSImage,
    annotations.desiredImage,
    annotations.desiredOSImage,
    annotations.desiredImageContent,
    annotations.firstPivotConfig,
  ];
  const entries =
    parsed === undefined
      ? []
      : Object.entries(parsed).flatMap(([key, value]) =>
          keys.includes(key) && typeof value === "string" && value !== "" ? [[key, value] as const] : [],
        );
  return Object.fromEntries(entries);
}

/**
 * Determines the state of a machine that has no documents of the daemon. Its own disk takes precedence, then its Node's
 * annotation, then what it was served when it joined: a disk cannot be restored from an old backup of the cluster by
 * mistake. Source of the order: openshift/machine-config-operator pkg/daemon/daemon.go (main).
 *
 * @param has the state in the Node's annotations. @param clusterConfig gets a MachineConfig from the cluster by name.
 */
export async function findAdoption(
  host: Host,
  has: Readonly<Record<string, string>>,
  clusterConfig: (name: string) => Promise<MachineConfig | undefined>,
  signal: AbortSignal,
): Promise<Adoption> {
  const served = await servedAnnotations(host, signal);
  // While the served file exists, the machine has not yet been proven to run what it was served.
  const proven = served === undefined;
  const disk = await machineConfigAt(host, hostPaths.currentConfig, signal);
  if (disk !== undefined) {
    const pair = await pairWith(
      await textAt(host, hostPaths.currentImage, signal),
      { ...served, ...has },
      host,
      signal,
    );
    return adoptionOf({ config: disk, pair, proven: true }, "currentconfig", host, signal);
  }
  const current = has[annotations.currentConfig];
  const isAnnotated = current !== undefined && current !== "";
  const name = isAnnotated ? current : served?.[annotations.currentConfig];
  if (name === undefined) return { verdict: "fresh" };
  const whole = await machineConfigAt(host, hostPaths.servedConfig, signal);
  const config = whole?.metadata.name === name ? whole : await clusterConfig(name);
  if (config === undefined) return { verdict: "unknown", config: name };
  const pair = await pairWith(recordedImage(isAnnotated ? has : (served ?? {})), { ...served, ...has }, host, signal);
  return adoptionOf({ config, pair, proven }, isAnnotated ? "annotation" : "served", host, signal);
}

/**
 * The recorded image of the machine and its payload; the running image itself says whether it has one. Another daemon may
 * have recorded the image under another of its names.
 */
async function pairWith(
  image: string | undefined,
  notes: Readonly<Record<string, string>>,
  host: Host,
  signal: AbortSignal,
): Promise<ImagePair | undefined> {
  if (image === undefined || image === "") return undefined;
  const { booted } = await host.os.status(signal);
  const desired = desiredImageOf(notes);
  const stated = desired.verdict === "image" && sameImage(desired.pair.image, image) ? desired.pair.content : "os-only";
  return {
    image,
    content: sameImage(booted.image, image) ? ((await holdsPayload(host, signal)) ? "full" : "os-only") : stated,
  };
}

async function adoptionOf(
  previous: Previous,
  from: "currentconfig" | "annotation" | "served",
  host: Host,
  signal: AbortSignal,
): Promise<Adoption> {
  const read = readTarget(previous.config, previous.pair);
  if (read.verdict === "refused") return { verdict: "unknown", config: previous.config.metadata.name };
  const originals = await originalsOf(host, read.wanted.config, signal);
  return { verdict: "adopted", from, previous, originals };
}

/**
 * The original content from before the writer of `config`: the copy or the stamp that the reference's daemon kept of a
 * path, else what the OS ships there.
 */
export async function originalsOf(host: Host, config: NodeConfig, signal: AbortSignal): Promise<Originals> {
  const { booted } = await host.os.status(signal);
  const found = new Map<string, OriginalEntry | null>();
  const unreadable: string[] = [];
  for (const path of config.entries.keys()) {
    const kept = await readOriginal(host, `${hostPaths.referenceOriginals}${path}.mcdorig`, signal);
    const stamp =
      kept.entry === null && !kept.isUnreadable
        ? await host.files.read(`${hostPaths.referenceNoOriginals}${path}.mcdnoorig`, signal)
        : undefined;
    const shipped = originalOf(await host.files.vendor(path, signal)) ?? undefined;
    if (kept.isUnreadable && shipped === undefined) unreadable.push(path);
    found.set(path, stamp === undefined ? originalToRecord(kept.entry ?? shipped ?? null, shipped) : null);
  }
  const own = new Set(config.kernelArguments);
  // Units whose text the config provides, and accounts whose password it sets, had no original, but for what the OS ships.
  const enablement = Object.fromEntries(
    [...config.enablement.keys()].flatMap((name) =>
      config.entries.get(`/etc/systemd/system/${name}`)?.kind === "file" ? [[name, "absent"]] : [],
    ),
  );
  const passwords = Object.fromEntries([...config.passwords.keys()].map((user) => [user, null]));
  const none = noOriginals(booted.kernelArguments.filter((word) => !own.has(word)));
  return { ...withFound(none, found, unreadable).originals, enablement, passwords };
}

/** The recorded image of a machine; where the two annotations disagree, the suite's own decides. */
function recordedImage(notes: Readonly<Record<string, string>>): string | undefined {
  const named = namedImage(notes, "current");
  return named.verdict === "none" ? undefined : named.image;
}

async function textAt(host: Host, path: string, signal: AbortSignal): Promise<string | undefined> {
  const file = await host.files.read(path, signal);
  return file?.kind === "file" ? new TextDecoder().decode(file.contents).trim() : undefined;
}

export async function machineConfigAt(
  host: Host,
  path: string,
  signal: AbortSignal,
): Promise<MachineConfig | undefined> {
  const file = await host.files.read(path, signal);
  const parsed = file?.kind === "file" ? parseJson(file.contents) : undefined;
  const name = (parsed?.["metadata"] as { readonly name?: unknown } | undefined)?.name;
  return typeof name === "string" && name !== "" ? (parsed as unknown as MachineConfig) : undefined;
}

function parseJson(contents: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(contents));
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Files with whole configurations or credentials that another writer left readable for everybody. */
const secrets = [
  hostPaths.kubeconfig,
  hostPaths.currentConfig,
  hostPaths.encapsulatedDone,
  hostPaths.servedConfig,
] as const;

/**
 * What to tidy once the machine is taken over: markers of a completed first boot, presets of Ignition, another daemon's
 * preparations for a revert, and files with secrets that everybody may read. Paths that `config` names are left to it.
 */
export async function tidyAfterBoot(host: Host, config: NodeConfig | undefined, signal: AbortSignal): Promise<void> {
  await moveAside(host, hostPaths.encapsulated, hostPaths.encapsulatedDone, signal);
  if ((await host.files.read(hostPaths.ignitionPreset, signal)) !== undefined)
    await host.files.remove(hostPaths.ignitionPreset, signal);
  await forgetRevert(host, config, signal);
  for (const path of secrets) {
    const file = config?.entries.has(path) === true ? undefined : await host.files.read(path, signal);
    if (file?.kind === "file" && (file.mode & 0o077) !== 0)
      await host.files.write([{ path, entry: { ...file, mode: 0o600 } }], signal);
  }
}

/**
 * This daemon reverts another way (`keepPayload`): another daemon's leftovers for a revert would undo it at a boot. The
 * unit goes first.
 */
async function forgetRevert(host: Host, config: NodeConfig | undefined, signal: AbortSignal): Promise<void> {
  const unit = `/etc/systemd/system/${hostPaths.referenceRevertUnit}`;
  const found: string[] = [];
  for (const path of [unit, hostPaths.referenceRevertConfig, hostPaths.referenceRevertProxy])
    if (config?.entries.has(path) !== true && (await host.files.read(path, signal)) !== undefined) found.push(path);
  if (found.includes(unit)) await host.units.disable(hostPaths.referenceRevertUnit, signal);
  for (const path of found) await host.files.remove(path, signal);
}

/** The new name first: a crash in between leaves both, and the next pass removes the old one. */
export async function moveAside(host: Host, from: string, to: string, signal: AbortSignal): Promise<void> {
  const file = await host.files.read(from, signal);
  if (file?.kind !== "file") return;
  await host.files.write([{ path: to, entry: { ...file, mode: 0o600 } }], signal);
  await host.files.remove(from, signal);
}
