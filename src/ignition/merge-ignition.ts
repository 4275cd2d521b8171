import { equalValues } from "./canonical.ts";
import { contentsReader } from "./held-contents.ts";
import { type ListShape, type Scalar, type Shape, type StructShape, isRecord } from "./shape.ts";
import { shapesOf3 } from "./spec-3.ts";
import { type File, type IgnitionConfig, type Resource, emptyIgnition } from "./types.ts";

/** One config that takes part in a merge. */
export interface MergeMember {
  /** Name of the MachineConfig. */
  readonly name: string;
  /** Absent: the member has no Ignition config. */
  readonly config: IgnitionConfig | undefined;
}

/** The kind of a merged entry. */
export type OriginKind =
  | "file"
  | "directory"
  | "link"
  | "unit"
  | "dropin"
  | "sshKey"
  | "user"
  | "group"
  | "disk"
  | "filesystem"
  | "raid"
  | "luks"
  | "kernelArgument"
  | "setting";

/** The origin of one entry of a merged config. */
export interface MergedFrom {
  readonly kind: OriginKind;
  /** Path, unit name, `unit/dropin`, user name, key, device, or field of a setting. */
  readonly name: string;
  /** The member that decided last. */
  readonly from: string;
  /** Every member that names the entry, in merge order. */
  readonly contributors: readonly string[];
  /** For each field, the member whose value was used: `contents`, `mode`, `enabled`, … */
  readonly fields: Readonly<Record<string, string>>;
  /**
   * Values of other members that were replaced by a different one; `kind`: that member had the path as a file, folder
   * or link.
   */
  readonly overrode: readonly { readonly member: string; readonly field: string; readonly by: string }[];
}

export interface Merged {
  readonly config: IgnitionConfig;
  /** Computed on first access; the merge itself does not need it. */
  readonly origins: readonly MergedFrom[];
}

/** A step around the merge itself, for all configs alike. */
interface FixUp {
  /** `before` and `after` the merge of each config but the first, or once at the `end`. */
  readonly when: "before" | "after" | "end";
  readonly rule: string;
  apply(config: IgnitionConfig): IgnitionConfig;
}

/**
 * What MachineConfigs add to Ignition's own merge: openshift/machine-config-operator pkg/controller/common/helpers.go
 * (main).
 */
export const fixUps: readonly FixUp[] = [
  {
    when: "before",
    rule: "a file that names no `compression` says that there is none, so that an earlier config's does not stay, even when the file brings no contents of its own",
    apply: (config) =>
      withFiles(config, (file) =>
        file.contents?.compression === undefined ? { ...file, contents: { ...file.contents, compression: "" } } : file,
      ),
  },
  {
    when: "after",
    rule: "a `compression` that says that there is none is left out again",
    apply: (config) =>
      withFiles(config, (file) => {
        if (file.contents?.compression !== "") return file;
        const { contents, ...rest } = file;
        const { compression: _compression, ...kept } = contents;
        return Object.keys(kept).length === 0 ? rest : { ...rest, contents: kept };
      }),
  },
  {
    when: "end",
    rule: "a file that says nothing of `overwrite` gets `overwrite: true`",
    apply: (config) =>
      withFiles(config, (file) => (file.overwrite === undefined ? { ...file, overwrite: true } : file)),
  },
];

function fixed(config: IgnitionConfig, when: FixUp["when"]): IgnitionConfig {
  let result = config;
  for (const fixUp of fixUps) if (fixUp.when === when) result = fixUp.apply(result);
  return result;
}

/**
 * Merges configs in order, later ones winning, by the tables `fixUps` and `mergeRules`: those of the reference,
 * coreos/ignition config/merge/merge.go and openshift/machine-config-operator pkg/controller/common/helpers.go (main).
 *
 * The first config is taken as it is.
 */
export function mergeIgnition(members: readonly MergeMember[]): Merged {
  const [first, ...rest] = members;
  let merged = first?.config ?? emptyIgnition;
  for (const { config } of rest)
    if (config !== undefined) merged = fixed(mergeTwo(merged, fixed(config, "before")), "after");
  merged = fixed(merged, "end");
  let origins: readonly MergedFrom[] | undefined;
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
  return mergeStructs(
    shapesOf3[5],
    parent as unknown as Fields,
    child as unknown as Fields,
  ) as unknown as IgnitionConfig;
}

type Fields = Readonly<Record<string, unknown>>;

function withFiles(config: IgnitionConfig, change: (file: File) => File): IgnitionConfig {
  const files = config.storage?.files;
  return files === undefined || files.length === 0
    ? config
    : { ...config, storage: { ...config.storage, files: files.map(change) } };
}

/** Group and key of every item of the child's keyed lists → its list and index. The last duplicate counts. */
type Places = Map<string, Map<string, { readonly list: string; readonly item: unknown }>>;

/** A field of a struct while it is merged. */
interface Field {
  readonly name: string;
  readonly parent: unknown;
  readonly child: unknown;
  /** Of the containing struct; created on first use. */
  readonly places: () => Places;
}

interface MergeRule<S extends Shape = Shape> {
  /** The fields that it applies to. */
  readonly fields: string;
  /** A sentence without a final full stop. */
  readonly rule: string;
  /** `undefined`: the merged config does not have the field. */
  merge(shape: S, field: Field): unknown;
}

/** The merge rule of each kind of field: `mergeStructs` applies them, and `docs/merge.md` lists them. */
export const mergeRules: {
  readonly optional: MergeRule<Scalar>;
  readonly plain: MergeRule<Scalar>;
  readonly struct: MergeRule<StructShape>;
  readonly append: MergeRule<ListShape>;
  readonly key: MergeRule<ListShape>;
} = {
  optional: {
    fields: "values that may be absent",
    rule: "the later config's value where it has one, else the earlier one's",
    merge: (_shape, { child, parent }) => child ?? parent,
  },
  plain: {
    fields: "values that are always there (names, paths, devices, versions)",
    rule: "the later config's value",
    merge: (_shape, { child }) => child,
  },
  struct: {
    fields: "objects",
    rule: "field by field, each by its own rule; an object that only one of the two has is taken as it is",
    merge(shape, { child, parent }) {
      if (child === undefined) return parent;
      if (!isRecord(parent) || !isRecord(child)) return child;
      const merged = mergeStructs(shape, parent, child);
      return Object.keys(merged).length === 0 ? undefined : merged;
    },
  },
  append: {
    fields: "lists without a key",
    rule: "the earlier config's items, then the later one's",
    merge: (_shape, { child, parent }) => orAbsent([...asList(parent), ...asList(child)]),
  },
  key: {
    fields: "lists with a key",
    rule: "items with one key become one, in the place of the earlier config's; an item whose key the later config has in another list of the same group goes; new items follow at the end. A list of texts is a set: its texts are their own keys. An HTTP header without a value takes the earlier one away",
    merge: (shape, field) => mergeKeyed(shape, field),
  },
};

const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const orAbsent = (list: readonly unknown[]): readonly unknown[] | undefined => (list.length === 0 ? undefined : list);

/** Name of the rule that a field of this shape follows. */
export function ruleNameOf(shape: Shape): keyof typeof mergeRules {
  if (shape.kind === "struct") return "struct";
  if (shape.kind === "list") return shape.merge.by;
  return shape.presence === "optional" ? "optional" : "plain";
}

function mergeField(shape: Shape, field: Field): unknown {
  if (shape.kind === "struct") return mergeRules.struct.merge(shape, field);
  if (shape.kind === "list") return mergeRules[shape.merge.by].merge(shape, field);
  return mergeRules[shape.presence === "optional" ? "optional" : "plain"].merge(shape, field);
}

function mergeStructs(shape: StructShape, parent: Fields, child: Fields): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  let known: Places | undefined;
  const places = () => (known ??= placesIn(shape, child));
  for (const [name, field] of shape.fields) {
    const value = mergeField(field, { name, parent: parent[name], child: child[name], places });
    if (value !== undefined) result[name] = value;
  }
  return result;
}

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

function mergeKeyed({ merge, of }: ListShape, { name, parent, child, places }: Field): readonly unknown[] | undefined {
  if (merge.by !== "key") throw new Error("bug: a list without a key");
  const [ours, theirs] = [asList(parent), asList(child)];
  if (ours.length + theirs.length === 0) return undefined;
  const { keyOf, group = name } = merge;
  const keys = places().get(group);
  const result: unknown[] = [];
  const parentKeys = new Set<string>();
  for (const item of ours) {
    const key = keyOf(item);
    parentKeys.add(key);
    const counterpart = keys?.get(key);
    if (counterpart === undefined) result.push(item);
    else if (counterpart.list === name) {
      if (name === "httpHeaders" && isRecord(counterpart.item) && counterpart.item["value"] === undefined) continue;
      result.push(
        of.kind === "struct" && isRecord(item) && isRecord(counterpart.item)
          ? mergeStructs(of, item, counterpart.item)
          : counterpart.item,
      );
    }
  }
  for (const item of theirs) if (!parentKeys.has(keyOf(item))) result.push(item);
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

/** The origin of every entry of the merge of `members`, in order of first appearance. */
export function traceOrigins(members: readonly MergeMember[]): readonly MergedFrom[] {
  const entries = new Map<string, Traced>();
  const read = contentsReader();
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
        if (before !== undefined && !sameField(kind, field, before.value, value, read))
          entry.overrode.push({ member: before.member, field, by: member });
        entry.fields.set(field, { member, value });
      }
      // A path is a file, a directory or a link: the last kind to claim it wins.
      if (kind === "file" || kind === "directory" || kind === "link") {
        for (const other of ["file", "directory", "link"] as const) {
          const replaced = other === kind ? undefined : entries.get(`${other} ${name}`);
          if (replaced === undefined) continue;
          entry.overrode.push({ member: replaced.contributors.at(-1) ?? "", field: "kind", by: member });
          entries.delete(`${other} ${name}`);
        }
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

/** Contents are equal if their decoded bytes are equal. */
function sameField(
  kind: OriginKind,
  field: string,
  a: unknown,
  b: unknown,
  read: ReturnType<typeof contentsReader>,
): boolean {
  if (equalValues(a, b)) return true;
  if (kind !== "file" || field !== "contents") return false;
  const [one, other] = [read(a as Resource), read(b as Resource)];
  return (
    one.verdict === "decoded" &&
    other.verdict === "decoded" &&
    one.sizeBytes === other.sizeBytes &&
    one.digest === other.digest
  );
}

function* entriesOf(
  config: IgnitionConfig,
): Generator<{ readonly kind: OriginKind; readonly name: string; readonly fields: Fields }> {
  const { ignition, kernelArguments, passwd, storage, systemd } = config;
  for (const { path, ...fields } of storage?.files ?? []) yield { kind: "file", name: path, fields };
  for (const { path, ...fields } of storage?.directories ?? []) yield { kind: "directory", name: path, fields };
  for (const { path, ...fields } of storage?.links ?? []) yield { kind: "link", name: path, fields };
  for (const { name, dropins, ...fields } of systemd?.units ?? []) {
    yield { kind: "unit", name, fields };
    for (const dropin of dropins ?? [])
      yield { kind: "dropin", name: `${name}/${dropin.name}`, fields: { contents: dropin.contents } };
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
  for (const argument of kernelArguments?.shouldExist ?? [])
    yield { kind: "kernelArgument", name: argument, fields: { state: "present" } };
  for (const argument of kernelArguments?.shouldNotExist ?? [])
    yield { kind: "kernelArgument", name: argument, fields: { state: "absent" } };
  const { version: _version, ...settings } = ignition;
  for (const [name, value] of Object.entries(settings))
    yield { kind: "setting", name: `ignition.${name}`, fields: { value } };
}
