import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { hostPaths } from "../../api/names.ts";
import { textOf } from "../../ignition/data-url.ts";
import { type HeldContents, contentsReader, mostStoredTextBytes, oversizedText } from "../../ignition/held-contents.ts";
import type { IgnitionConfig, Owner, Passwd, Unit } from "../../ignition/types.ts";
import { sameMultiset } from "../text/multiset.ts";
import type { Change, Op } from "./change.ts";
import {
  type FindUnit,
  isInstallable,
  reachedFrom,
  unitFileOf,
  unitFolder,
  vendorUnitFolder,
} from "./install-links.ts";
import { templateOf } from "./unit-name.ts";
import { readOncePerObject } from "../text/read-once.ts";

/**
 * What one machine should be, in the terms of a machine: entries on its disk, enablement of units, accounts, kernel
 * arguments, OS image. Contents are decoded; spelling (compression, data URL form, order of lists) is gone.
 */
export interface NodeConfig {
  /** Name of the rendered configuration. */
  readonly name: string;
  /** Path → desired entry: files, unit files, drop-ins, masks, SSH keys. */
  readonly entries: ReadonlyMap<string, WantedEntry>;
  /** Unit → whether it should be enabled; absent for units that the config does not mention. */
  readonly enablement: ReadonlyMap<string, WantedEnablement>;
  /** User → password hash. */
  readonly passwords: ReadonlyMap<string, string>;
  /** Single arguments, as the kernel splits them. */
  readonly kernelArguments: readonly string[];
  /** Pullspec; empty when the config names none. */
  readonly osImage: string;
  readonly extensions: readonly string[];
  /** Image that packages and kernels come from; empty when the config names none. */
  readonly extensionsImage: string;
  readonly kernelType: KernelType;
  readonly fips: boolean;
  /** Parts that only a machine that starts with this configuration follows. */
  readonly provisioningOnly: ProvisioningOnly;
  /** Present where the OS image was built for this configuration: what of it the image holds. */
  readonly imageContent?: ContentMode;
}

export interface ProvisioningOnly {
  readonly folders: ReadonlyMap<string, FolderOwner>;
  /** Path → target of a symbolic link. */
  readonly links: ReadonlyMap<string, string>;
  /** Path → text to append to the machine's own file. */
  readonly appends: ReadonlyMap<string, Appended>;
  /** Parts that this suite does not apply, for people. */
  readonly ignored: readonly string[];
}

export interface Appended {
  /** Decoded again each time that it is read. */
  readonly contents: Uint8Array;
  /** `undefined`: the mode of the existing file, 0644 for a new one. */
  readonly mode: number | undefined;
  readonly user: Owner;
  readonly group: Owner;
}

export type WantedEntry = { readonly origin: Origin } & (
  | {
      readonly kind: "file";
      /** Of a file of the config: decoded again each time that it is read. */
      readonly contents: Uint8Array;
      readonly sizeBytes: number;
      readonly digest: string;
      readonly mode: number;
      readonly user: Owner;
      readonly group: Owner;
      readonly folder?: FolderOwner;
      /** Any existing entry will do. */ readonly ifAbsent?: true;
    }
  | { readonly kind: "link"; readonly target: string }
  /** The path must not exist: an emptied drop-in, or a unit that must not be masked. */
  | { readonly kind: "absent" }
);

export interface FolderOwner {
  readonly mode: number;
  readonly user: Owner;
  readonly group: Owner;
}

/** Which part of a config an entry comes from; decides which policy applies. */
export type Origin =
  | { readonly kind: "file" }
  | { readonly kind: "unit"; readonly name: string; readonly part: string }
  | { readonly kind: "sshKeys"; readonly user: string };

export interface WantedEnablement {
  /** `undefined`: by the vendor's presets. */
  readonly enabled: boolean | undefined;
  /** `false`: enabling has no meaning: the unit's own text has no [Install] section, or systemd refuses that. */
  readonly installable: boolean;
}

export type NodeConfigResult =
  | { readonly verdict: "decoded"; readonly config: NodeConfig }
  | { readonly verdict: "refused"; readonly path: string; readonly reason: string };

const rootOwner: Owner = { id: 0 };

/** Words that the kernel makes of one entry: split at blanks outside of double quotes. */
export function splitKernelArguments(entry: string): readonly string[] {
  const words: string[] = [];
  let word = "";
  let quoted = false;
  for (const character of entry) {
    if (character === '"') quoted = !quoted;
    if (!quoted && /\s/.test(character)) {
      if (word !== "") words.push(word);
      word = "";
    } else word += character;
  }
  if (word !== "") words.push(word);
  return words;
}

function file(
  origin: Origin,
  contents: Uint8Array,
  mode: number,
  user: Owner = rootOwner,
  group: Owner = rootOwner,
  folder?: FolderOwner,
): WantedEntry {
  let digest: string | undefined;
  return {
    origin,
    kind: "file",
    contents,
    sizeBytes: contents.length,
    get digest() {
      return (digest ??= bytesToHex(sha256(contents)));
    },
    mode,
    user,
    group,
    ...(folder === undefined ? {} : { folder }),
  };
}

function unitEntries(unit: Unit): readonly (readonly [string, WantedEntry])[] {
  const { name } = unit;
  const entries: (readonly [string, WantedEntry])[] = [];
  const path = `${unitFolder}/${name}`;
  const origin = (part: string): Origin => ({ kind: "unit", name, part });
  if (unit.mask === true) entries.push([path, { origin: origin("mask"), kind: "link", target: "/dev/null" }]);
  else if (unit.contents !== undefined && unit.contents !== "")
    entries.push([path, file(origin("contents"), utf8ToBytes(unit.contents), 0o644)]);
  else if (unit.mask === false) entries.push([path, { origin: origin("mask"), kind: "absent" }]);
  for (const dropin of unit.dropins ?? []) {
    const at = `${path}.d/${dropin.name}`;
    if (dropin.contents === undefined || dropin.contents === "")
      entries.push([at, { origin: origin(dropin.name), kind: "absent" }]);
    else entries.push([at, file(origin(dropin.name), utf8ToBytes(dropin.contents), 0o644)]);
  }
  return entries;
}

/**
 * Reads a rendered MachineConfig as a machine will carry it out.
 *
 * `ignition` is the config part, parsed and merged (`parseIgnition`); `undefined` where the MachineConfig has none.
 * Refused when a file's contents cannot be had from the config alone: a remote source, a bad encoding, a bomb.
 */
export function nodeConfigOf(machineConfig: MachineConfig, ignition: IgnitionConfig | undefined): NodeConfigResult {
  const files = filesOf(ignition?.storage?.files ?? []);
  if (files.verdict === "refused") return files;
  const units = ignition?.systemd?.units ?? [];
  const users = ignition?.passwd?.users ?? [];
  const spec = machineConfig.spec ?? {};
  return {
    verdict: "decoded",
    config: {
      name: machineConfig.metadata.name,
      entries: new Map([...files.entries, ...units.flatMap(unitEntries), ...sshKeyEntries(users)]),
      enablement: new Map(units.flatMap(enablementOf)),
      passwords: new Map(
        users.flatMap(({ name, passwordHash = "" }) => (passwordHash === "" ? [] : [[name, passwordHash]])),
      ),
      kernelArguments: (spec.kernelArguments ?? []).flatMap(splitKernelArguments),
      osImage: spec.osImageURL ?? "",
      extensions: [...new Set(spec.extensions ?? [])].sort(),
      extensionsImage: spec.baseOSExtensionsContainerImage ?? "",
      kernelType: spec.kernelType === "realtime" || spec.kernelType === "64k-pages" ? spec.kernelType : "default",
      fips: spec.fips === true,
      provisioningOnly: { ...provisioningParts(ignition), appends: files.appends },
    },
  };
}

type FilesResult =
  | {
      readonly verdict: "decoded";
      readonly entries: ReadonlyMap<string, WantedEntry>;
      readonly appends: ReadonlyMap<string, Appended>;
    }
  | Extract<NodeConfigResult, { readonly verdict: "refused" }>;

function filesOf(files: NonNullable<NonNullable<IgnitionConfig["storage"]>["files"]>): FilesResult {
  const entries = new Map<string, WantedEntry>();
  const appends = new Map<string, Appended>();
  const read = contentsReader();
  for (const [index, wanted] of files.entries()) {
    const refused = (path: string, reason: string) =>
      ({
        verdict: "refused",
        path: `spec.config.storage.files[${index}].${path}`,
        reason: `${wanted.path}: ${reason}`,
      }) as const;
    const owners = { user: wanted.user ?? rootOwner, group: wanted.group ?? rootOwner };
    const contents = read(wanted.contents);
    if (contents.verdict === "refused") return refused("contents", contents.reason);
    const parts = [contents];
    for (const [k, part] of (wanted.append ?? []).entries()) {
      const more = read(part);
      if (more.verdict === "refused") return refused(`append[${k}]`, more.reason);
      parts.push(more);
    }
    if (parts.length > 1) appends.set(wanted.path, appended(parts, { mode: wanted.mode, ...owners }));
    else entries.set(wanted.path, heldFile(contents, { mode: wanted.mode ?? 0o644, ...owners }));
  }
  return { verdict: "decoded", entries, appends };
}

type Held = Extract<HeldContents, { readonly verdict: "decoded" }>;

/** A file of the config, whose bytes are not kept. */
const heldFile = (
  held: Held,
  rights: { readonly mode: number; readonly user: Owner; readonly group: Owner },
): WantedEntry => ({
  origin: { kind: "file" },
  kind: "file",
  get contents() {
    return held.bytes();
  },
  sizeBytes: held.sizeBytes,
  get digest() {
    return held.digest;
  },
  ...rights,
});

const appended = (parts: readonly Held[], rights: Omit<Appended, "contents">): Appended => ({
  get contents() {
    return joined(parts.map((part) => part.bytes()));
  },
  ...rights,
});

/** Empty for a masked unit, and where the config neither enables the unit nor has its text. */
function enablementOf(unit: Unit): readonly (readonly [string, WantedEnablement])[] {
  const hasContents = unit.contents !== undefined && unit.contents !== "";
  if (unit.mask === true || (unit.enabled === undefined && !hasContents)) return [];
  const dropins = (unit.dropins ?? []).map(({ contents = "" }) => contents);
  const installable = !hasContents || isInstallable(unit.name, [unit.contents ?? "", ...dropins]);
  return [[unit.name, { enabled: unit.enabled, installable }]];
}

/** The keys of all listed users go to core: openshift/machine-config-operator pkg/daemon/update.go (main). */
function sshKeyEntries(users: NonNullable<Passwd["users"]>): readonly (readonly [string, WantedEntry])[] {
  const keys = users.flatMap(({ sshAuthorizedKeys }) => sshAuthorizedKeys ?? []);
  if (keys.length === 0) return [];
  const core: Owner = { name: "core" };
  const folder: FolderOwner = { mode: 0o700, user: core, group: core };
  const contents = utf8ToBytes(`${keys.join("\n")}\n`);
  return [[hostPaths.sshKeys, file({ kind: "sshKeys", user: "core" }, contents, 0o600, core, core, folder)]];
}

function provisioningParts(ignition: IgnitionConfig | undefined): Omit<ProvisioningOnly, "appends"> {
  const { directories = [], links = [] } = ignition?.storage ?? {};
  return {
    folders: new Map(
      directories.map(({ path, mode, user, group }) => [
        path,
        { mode: mode ?? 0o755, user: user ?? rootOwner, group: group ?? rootOwner },
      ]),
    ),
    links: new Map(links.flatMap(({ path, target, hard }) => (hard === true ? [] : [[path, target ?? ""]]))),
    ignored: ignoredParts(ignition),
  };
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Sections that only Ignition can apply, before the system runs. */
function ignoredParts(ignition: IgnitionConfig | undefined): readonly string[] {
  const { storage, passwd } = ignition ?? {};
  return [
    ...(["disks", "filesystems", "raid", "luks"] as const).flatMap((section) =>
      (storage?.[section] ?? []).length > 0 ? [`storage.${section}`] : [],
    ),
    ...(storage?.links ?? []).flatMap(({ path, hard }) => (hard === true ? [`the hard link ${path}`] : [])),
    ...(passwd?.users ?? []).flatMap(({ name }) => (name === "core" ? [] : [`the user ${name}`])),
    ...((passwd?.groups ?? []).length > 0 ? ["passwd.groups"] : []),
  ];
}

const isMasking = ({ kind, origin }: Pick<WantedEntry, "kind" | "origin">): boolean =>
  kind === "link" && origin.kind === "unit" && origin.part === "mask";

/** The places that a configuration fills, and with what kind of entry: enough to tell which units it brings and masks. */
export interface FilledPlaces {
  readonly entries: ReadonlyMap<string, Pick<WantedEntry, "kind" | "origin">>;
}

/** The places that a MachineConfig fills, found once per object, without any contents of its files. */
export const filledPlaces = readOncePerObject((ignition: IgnitionConfig): FilledPlaces => {
  const entries = new Map<string, Pick<WantedEntry, "kind" | "origin">>(
    (ignition.storage?.files ?? []).map(({ path }) => [path, { kind: "file", origin: { kind: "file" } }]),
  );
  for (const [path, entry] of (ignition.systemd?.units ?? []).flatMap(unitEntries)) entries.set(path, entry);
  return { entries };
});

/**
 * The text of a file of a configuration, to be parsed; `undefined`: it has none. `oversizedText` stands for one that is too
 * large.
 */
export function textToParse(config: NodeConfig | undefined, path: string): string | undefined {
  const entry = config?.entries.get(path);
  if (entry?.kind !== "file") return undefined;
  return entry.sizeBytes > mostStoredTextBytes ? oversizedText : textOf(entry.contents);
}

/** Whether a configuration masks a unit: itself, or the template that it comes from. */
export function masks({ entries }: FilledPlaces, name: string): boolean {
  for (const file of new Set([name, templateOf(name)])) {
    const entry = entries.get(`${unitFolder}/${file}`);
    if (entry !== undefined && entry.kind !== "absent") return isMasking(entry);
  }
  return false;
}

/** Whether a configuration has the file of a unit: its own, or that of its template. */
export function bringsUnit({ entries }: FilledPlaces, name: string): boolean {
  const kinds = [name, templateOf(name)].map((file) => entries.get(`${unitFolder}/${file}`)?.kind);
  return kinds.find((kind) => kind === "file" || kind === "link") === "file";
}

/** Text of the units that an OS ships, by the names of their files. */
export type ShippedUnits = ReadonlyMap<string, string>;

const noDropins: ReadonlyMap<string, string> = new Map();

/** What systemd finds on a machine that has a configuration. */
export function findUnitIn({ entries }: NodeConfig, shipped: ShippedUnits): FindUnit {
  const dropins = new Map<string, Map<string, string>>();
  for (const [path, entry] of entries) {
    const [, folder = "", file = ""] = /^\/etc\/systemd\/system\/([^/]+\.d)\/([^/]+)$/.exec(path) ?? [];
    if (folder === "" || entry.kind !== "file") continue;
    const known = dropins.get(folder) ?? new Map<string, string>();
    dropins.set(folder, known.set(file, textOf(entry.contents) ?? ""));
  }
  // The text of a template is that of all its instances.
  const own = new Map<string, string>();
  const textAt = (path: string, entry: Extract<WantedEntry, { readonly kind: "file" }>): string => {
    const text = own.get(path) ?? textOf(entry.contents) ?? "";
    own.set(path, text);
    return text;
  };
  return (name, unit) => {
    const path = `${unitFolder}/${name}`;
    const entry = entries.get(path);
    if (entry?.kind === "link") return "masked";
    const isOwn = entry?.kind === "file";
    const text = isOwn ? textAt(path, entry) : shipped.get(name);
    if (text === undefined) return undefined;
    const file = { path: isOwn ? path : `${vendorUnitFolder}/${name}`, text };
    return unitFileOf(file, unit, (folder) => dropins.get(folder) ?? noDropins);
  };
}

/**
 * Units whose enablement a configuration may change: those that it names, those that it masks (their links stay, and
 * are seen again without the mask), and those that are enabled together with them.
 */
export function managedUnits(config: NodeConfig, find: FindUnit): ReadonlySet<string> {
  const units = new Set(config.enablement.keys());
  for (const entry of config.entries.values())
    if (isMasking(entry) && entry.origin.kind === "unit") units.add(entry.origin.name);
  for (const also of reachedFrom(config.enablement.keys(), find).keys()) units.add(also);
  return units;
}

/** The configuration of a machine that has none yet. */
export const emptyNodeConfig: NodeConfig = {
  name: "",
  entries: new Map(),
  enablement: new Map(),
  passwords: new Map(),
  kernelArguments: [],
  osImage: "",
  extensions: [],
  extensionsImage: "",
  kernelType: "default",
  fips: false,
  provisioningOnly: { folders: new Map(), links: new Map(), appends: new Map(), ignored: [] },
};

export function sameWanted(a: WantedEntry | undefined, b: WantedEntry | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (a.kind === "file" && b.kind === "file")
    return a.digest === b.digest && a.mode === b.mode && sameOwner(a.user, b.user) && sameOwner(a.group, b.group);
  if (a.kind === "link" && b.kind === "link") return a.target === b.target;
  return a.kind === b.kind;
}

const sameOwner = (a: Owner, b: Owner) => a.id === b.id && a.name === b.name;
const sameList = (a: readonly string[], b: readonly string[]) =>
  a.length === b.length && a.every((value, index) => value === b[index]);
const opOf = (before: boolean, after: boolean): Op => (before ? (after ? "update" : "delete") : "create");

/**
 * Turns differing paths and units into changes: all that differs about one unit is one change. Sorted: files, units,
 * accounts.
 */
export function changesOf(
  paths: readonly { readonly path: string; readonly origin: Origin; readonly op: Op }[],
  enablement: readonly { readonly name: string; readonly op: Op }[],
): readonly Change[] {
  const files: Change[] = [];
  const accounts: Change[] = [];
  const units = new Map<string, { op: Op; parts: Set<string> }>();
  const touch = (name: string, op: Op, part: string) => {
    const unit = units.get(name) ?? { op, parts: new Set() };
    if (unit.op !== op) unit.op = "update";
    unit.parts.add(part);
    units.set(name, unit);
  };
  for (const { path, origin, op } of paths) {
    if (origin.kind === "file") files.push({ kind: "file", path, op });
    else if (origin.kind === "sshKeys") accounts.push({ kind: "sshKeys", user: origin.user, op });
    else touch(origin.name, op, origin.part);
  }
  for (const { name, op } of enablement) touch(name, op, "enablement");
  const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  files.sort((a, b) => byText(a.kind === "file" ? a.path : "", b.kind === "file" ? b.path : ""));
  const unitChanges = [...units]
    .sort(([a], [b]) => byText(a, b))
    .map(([name, { op, parts }]): Change => ({ kind: "unit", name, op, parts: [...parts].sort() }));
  return [...files, ...unitChanges, ...accounts];
}

/**
 * What differs between two configurations, in the order files, units, accounts, kernel and OS. Empty for equal ones.
 */
export function compareNodeConfigs(from: NodeConfig, to: NodeConfig): readonly Change[] {
  const paths = [];
  for (const path of new Set([...from.entries.keys(), ...to.entries.keys()])) {
    const [before, after] = [from.entries.get(path), to.entries.get(path)];
    const origin = (after ?? before)?.origin;
    if (origin !== undefined && !sameWanted(before, after))
      paths.push({ path, origin, op: opOf(before !== undefined, after !== undefined) });
  }
  const enablement = [];
  for (const name of new Set([...from.enablement.keys(), ...to.enablement.keys()])) {
    const [before, after] = [from.enablement.get(name), to.enablement.get(name)];
    if (before?.enabled !== after?.enabled)
      enablement.push({ name, op: opOf(before !== undefined, after !== undefined) });
  }
  return [
    ...changesOf(paths, enablement),
    ...passwordChanges(from.passwords, to.passwords),
    ...systemChanges(from, to),
  ];
}

function passwordChanges(from: ReadonlyMap<string, string>, to: ReadonlyMap<string, string>): readonly Change[] {
  const users = [...new Set([...from.keys(), ...to.keys()])].sort();
  return users.flatMap((user): Change[] =>
    from.get(user) === to.get(user) ? [] : [{ kind: "password", user, op: opOf(from.has(user), to.has(user)) }],
  );
}

/**
 * Changes of kernel and OS between two configurations. An empty OS image is no change; nor is another order of
 * the same kernel arguments, which no deployment would follow.
 */
export function systemChanges(from: NodeConfig, to: NodeConfig): readonly Change[] {
  return [
    ...(sameMultiset(from.kernelArguments, to.kernelArguments)
      ? []
      : [{ kind: "kernelArguments", from: from.kernelArguments, to: to.kernelArguments } as const]),
    ...(from.osImage === to.osImage || to.osImage === ""
      ? []
      : [{ kind: "osImage", from: from.osImage, to: to.osImage } as const]),
    ...(sameList(from.extensions, to.extensions)
      ? []
      : [{ kind: "extensions", from: from.extensions, to: to.extensions } as const]),
    ...(from.kernelType === to.kernelType
      ? []
      : [{ kind: "kernelType", from: from.kernelType, to: to.kernelType } as const]),
    ...(from.fips === to.fips ? [] : [{ kind: "fips", from: from.fips, to: to.fips } as const]),
  ];
}

export type KernelType = "default" | "realtime" | "64k-pages";

/** What an image holds of a configuration: all of it, or only the operating system. */
export type ContentMode = "full" | "os-only";
