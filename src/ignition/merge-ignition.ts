import { equalValues } from "./canonical.ts";
import { type ListShape, type Shape, type StructShape, isRecord } from "./shape.ts";
import { shapesOf3 } from "./spec-3.ts";
import { type File, type IgnitionConfig, emptyIgnition } from "./types.ts";

/** One config that takes part in a merge. */
export interface MergeMember {
  /** Of the MachineConfig. */
  readonly name: string;
  /** Absent: takes part without an Ignition config. */
  readonly config: IgnitionConfig | undefined;
}

/** What a merged entry is. */
export type OriginKind = "file" | "directory" | "link" | "unit" | "dropin" | "sshKey" | "user" | "group" | "disk" | "filesystem" | "raid" | "luks" | "kernelArgument" | "setting";

/** Where one entry of a merged config came from. */
export interface Origin {
  readonly kind: OriginKind;
  /** Path, unit name, `unit/dropin`, user name, key, device, or field of a setting. */
  readonly name: string;
  /** The member that decided last. */
  readonly from: string;
  /** Every member that names the entry, in merge order. */
  readonly contributors: readonly string[];
  /** Field by field, which member's value stands: `contents`, `mode`, `enabled`, … */
  readonly fields: Readonly<Record<string, string>>;
  /** Values that another member had given and that were replaced by a different one. */
  readonly overrode: readonly { readonly member: string; readonly field: string; readonly by: string }[];
}

export interface Merged {
  readonly config: IgnitionConfig;
  /** Computed when first read; the merge itself does not need it. */
  readonly origins: readonly Origin[];
}

/**
 * Merges configs in order, later ones winning, by the rules of the reference:
 * coreos/ignition config/merge/merge.go and openshift/machine-config-operator pkg/controller/common/helpers.go (main).
 *
 * The first config is taken as it is. A file of a later one that names no compression takes an earlier one's away, even when
 * it brings no contents of its own. Every file ends up with an explicit `overwrite`.
 */
export function mergeIgnition(members: readonly MergeMember[]): Merged {
  const [first, ...rest] = members;
  let merged = first?.config ?? emptyIgnition;
  for (const { config } of rest) if (config !== undefined) merged = withCompressionForgotten(mergeTwo(merged, withCompressionNamed(config)));
  merged = withOverwrite(merged);
  let origins: readonly Origin[] | undefined;
  return {
    config: merged,
    get origins() {
      origins ??= traceOrigins(members);
      return origins;
    },
  };
}

/** Ignition's own merge of a parent and a child, without what MachineConfigs add. */
export function mergeTwo(parent: IgnitionConfig, child: IgnitionConfig): IgnitionConfig {
  return mergeStructs(shapesOf3[5], parent as unknown as Fields, child as unknown as Fields) as unknown as IgnitionConfig;
}

type Fields = Readonly<Record<string, unknown>>;

function withFiles(config: IgnitionConfig, change: (file: File) => File): IgnitionConfig {
  const files = config.storage?.files;
  return files === undefined || files.length === 0 ? config : { ...config, storage: { ...config.storage, files: files.map(change) } };
}

const withCompressionNamed = (config: IgnitionConfig): IgnitionConfig =>
  withFiles(config, (file) => (file.contents?.compression === undefined ? { ...file, contents: { ...file.contents, compression: "" } } : file));

const withCompressionForgotten = (config: IgnitionConfig): IgnitionConfig =>
  withFiles(config, (file) => {
    if (file.contents?.compression !== "") return file;
    const { contents, ...rest } = file;
    const { compression: _compression, ...kept } = contents;
    return Object.keys(kept).length === 0 ? rest : { ...rest, contents: kept };
  });

const withOverwrite = (config: IgnitionConfig): IgnitionConfig => withFiles(config, (file) => (file.overwrite === undefined ? { ...file, overwrite: true } : file));

function mergeStructs(shape: StructShape, parent: Fields, child: Fields): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  let places: Places | undefined;
  for (const [name, field] of shape.fields) {
    const ours = parent[name];
    const theirs = child[name];
    if (field.kind === "list") places ??= placesIn(shape, child);
    const value = field.kind === "list" ? mergeLists(name, field, asList(ours), asList(theirs), places ?? new Map()) : mergeFields(field, ours, theirs);
    if (value !== undefined) result[name] = value;
  }
  return result;
}

const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function mergeFields(shape: Shape, parent: unknown, child: unknown): unknown {
  if (shape.kind !== "struct") return shape.kind !== "list" && shape.presence !== "optional" ? child : (child ?? parent);
  if (child === undefined) return parent;
  if (!isRecord(parent) || !isRecord(child)) return child;
  const merged = mergeStructs(shape, parent, child);
  return Object.keys(merged).length === 0 ? undefined : merged;
}

/** Group and key of every item of the child's keyed lists: in which list it stands, and where. The last of duplicates counts. */
type Places = Map<string, Map<string, { readonly list: string; readonly item: unknown }>>;

function placesIn(shape: StructShape, child: Fields): Places {
  const places: Places = new Map();
  for (const [name, field] of shape.fields) {
    if (field.kind !== "list" || field.merge.by !== "key") continue;
    const group = field.merge.group ?? name;
    const keys = places.get(group) ?? new Map();
    places.set(group, keys);
    for (const item of asList(child[name])) keys.set(field.merge.keyOf(item), { list: name, item });
  }
  return places;
}

function mergeLists(name: string, shape: ListShape, parent: readonly unknown[], child: readonly unknown[], places: Places): readonly unknown[] | undefined {
  if (parent.length + child.length === 0) return undefined;
  if (shape.merge.by === "append") return [...parent, ...child];
  const { keyOf, group = name } = shape.merge;
  const keys = places.get(group);
  const result: unknown[] = [];
  const parentKeys = new Set<string>();
  for (const item of parent) {
    const key = keyOf(item);
    parentKeys.add(key);
    const counterpart = keys?.get(key);
    if (counterpart === undefined) result.push(item);
    else if (counterpart.list === name) {
      // A header without a value takes the parent's header away.
      if (name === "httpHeaders" && isRecord(counterpart.item) && counterpart.item["value"] === undefined) continue;
      result.push(shape.of.kind === "struct" && isRecord(item) && isRecord(counterpart.item) ? mergeStructs(shape.of, item, counterpart.item) : counterpart.item);
    }
  }
  for (const item of child) if (!parentKeys.has(keyOf(item))) result.push(item);
  return result;
}

/** An origin while it is collected. */
interface Traced {
  readonly kind: OriginKind;
  readonly name: string;
  readonly contributors: string[];
  readonly fields: Map<string, { readonly member: string; readonly value: unknown }>;
  readonly overrode: { readonly member: string; readonly field: string; readonly by: string }[];
}

/** Where every entry of the merge of `members` came from, in the order in which the entries appeared. */
export function traceOrigins(members: readonly MergeMember[]): readonly Origin[] {
  const entries = new Map<string, Traced>();
  for (const { name: member, config } of members) {
    if (config === undefined) continue;
    for (const { kind, name, fields } of entriesOf(config)) {
      const key = `${kind} ${name}`;
      const entry: Traced = entries.get(key) ?? { kind, name, contributors: [], fields: new Map(), overrode: [] };
      entries.set(key, entry);
      if (entry.contributors.at(-1) !== member) entry.contributors.push(member);
      for (const [field, value] of Object.entries(fields)) {
        if (value === undefined) continue;
        const before = entry.fields.get(field);
        if (before !== undefined && !equalValues(before.value, value)) entry.overrode.push({ member: before.member, field, by: member });
        entry.fields.set(field, { member, value });
      }
      // A path is a file, a directory or a link: the last kind to claim it wins.
      if (kind === "file" || kind === "directory" || kind === "link") {
        for (const other of ["file", "directory", "link"] as const) if (other !== kind) entries.delete(`${other} ${name}`);
      }
    }
  }
  return [...entries.values()].map(({ kind, name, contributors, fields, overrode }) => ({
    kind,
    name,
    from: contributors.at(-1) ?? "",
    contributors,
    fields: Object.fromEntries([...fields].map(([field, { member }]) => [field, member])),
    overrode,
  }));
}

function* entriesOf(config: IgnitionConfig): Generator<{ readonly kind: OriginKind; readonly name: string; readonly fields: Fields }> {
  const { ignition, kernelArguments, passwd, storage, systemd } = config;
  for (const { path, ...fields } of storage?.files ?? []) yield { kind: "file", name: path, fields };
  for (const { path, ...fields } of storage?.directories ?? []) yield { kind: "directory", name: path, fields };
  for (const { path, ...fields } of storage?.links ?? []) yield { kind: "link", name: path, fields };
  for (const { name, dropins, ...fields } of systemd?.units ?? []) {
    yield { kind: "unit", name, fields };
    for (const dropin of dropins ?? []) yield { kind: "dropin", name: `${name}/${dropin.name}`, fields: { contents: dropin.contents } };
  }
  for (const { name, sshAuthorizedKeys, ...fields } of passwd?.users ?? []) {
    yield { kind: "user", name, fields };
    for (const key of sshAuthorizedKeys ?? []) yield { kind: "sshKey", name: `${name}: ${key}`, fields: {} };
  }
  for (const { name, ...fields } of passwd?.groups ?? []) yield { kind: "group", name, fields };
  for (const { device, ...fields } of storage?.disks ?? []) yield { kind: "disk", name: device, fields };
  for (const { device, ...fields } of storage?.filesystems ?? []) yield { kind: "filesystem", name: device, fields };
  for (const { name, ...fields } of storage?.raid ?? []) yield { kind: "raid", name, fields };
  for (const { name, ...fields } of storage?.luks ?? []) yield { kind: "luks", name, fields };
  for (const argument of kernelArguments?.shouldExist ?? []) yield { kind: "kernelArgument", name: argument, fields: { state: "present" } };
  for (const argument of kernelArguments?.shouldNotExist ?? []) yield { kind: "kernelArgument", name: argument, fields: { state: "absent" } };
  const { version: _version, ...settings } = ignition;
  for (const [name, value] of Object.entries(settings)) yield { kind: "setting", name: `ignition.${name}`, fields: { value } };
}
