import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { textOf } from "../../ignition/data-url.ts";
import { type HeldContents, contentsReader, mostStoredTextBytes } from "../../ignition/held-contents.ts";
import { readIgnition } from "../../ignition/parse-ignition.ts";
import { type File, type IgnitionConfig, type Owner, type Unit, emptyIgnition } from "../../ignition/types.ts";
import { sameMultiset } from "../text/multiset.ts";
import type { Change, Op, StorageSection } from "./change.ts";
import { splitKernelArguments } from "./node-config.ts";
import { ignitionOf } from "./validate-machine-config.ts";

/**
 * One change with what is needed to print it. Every `ConfigChange` is a `Change`, so it can be used as one; `before` is
 * absent for a created item, `after` for a deleted one. Passwords carry no detail: they must never be printed.
 */
export type ConfigChange =
  | (Of<"file"> & {
      readonly before?: FileState;
      readonly after?: FileState;
      /** The parts of the file that differ. */ readonly parts: readonly FilePart[];
    })
  | (Of<"unit"> & { readonly before?: UnitOnDisk; readonly after?: UnitOnDisk })
  | (Of<"sshKeys"> & { readonly added: readonly string[]; readonly removed: readonly string[] })
  | Of<"password">
  | Of<"kernelArguments">
  | Of<"osImage">
  | Of<"extensions">
  | Of<"kernelType">
  | Of<"fips">
  | Of<"storage">;

type Of<K extends Change["kind"]> = Extract<Change, { readonly kind: K }>;
export type FilePart = "contents" | "mode" | "owner";

/** A file as it will be on disk. */
export interface FileState {
  readonly mode: number;
  readonly user: Owner;
  readonly group: Owner;
  /** Decoded when it is first read. */
  readonly contents: ContentsState;
}

export type ContentsState =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "binary"; readonly sizeBytes: number; readonly sha256: string }
  /** The contents are secret, and must be masked for people: `describe-diff.ts`. */
  | { readonly kind: "masked" }
  /** The config does not hold the contents: the shortened source, and why. */
  | { readonly kind: "unknown"; readonly source: string; readonly reason: string };

/** A unit as it will be on disk. */
export interface UnitOnDisk {
  /** `masked`: a link to /dev/null; `removed`: any existing text is removed; `unsaid`: left unchanged. */
  readonly main: { readonly kind: "text"; readonly text: string } | { readonly kind: "masked" | "removed" | "unsaid" };
  /** `preset`: by the vendor's presets. `unsaid`: left unchanged. */
  readonly enablement: "enabled" | "disabled" | "preset" | "unsaid";
  /** Name → text; "" for a drop-in that must not exist. */
  readonly dropins: Readonly<Record<string, string>>;
}

type Config = Pick<MachineConfig, "metadata" | "spec">;

/**
 * The differences for a machine between two configurations, in the order files, units, accounts, kernel and OS, each
 * by name; storage that only new machines follow comes last. Decoded contents are compared: compression, form of data
 * URLs, order of files, units and kernel arguments, `overwrite`, spelled-out defaults and duplicates make no
 * difference. Equal configurations give an empty list.
 *
 * A configuration that cannot be read counts as one without an Ignition config; validate it first.
 */
export function diffConfigs(from: Config | undefined, to: Config | undefined): readonly ConfigChange[] {
  const [before, after] = [ignitionFor(from), ignitionFor(to)];
  const [a, b] = [from?.spec ?? {}, to?.spec ?? {}];
  const words = (entries: readonly string[] | null | undefined) => (entries ?? []).flatMap(splitKernelArguments);
  const names = (extensions: readonly string[] | null | undefined) => [...new Set(extensions ?? [])].toSorted();
  const kernel = (type: string | undefined) => (type === "realtime" || type === "64k-pages" ? type : "default");
  const changes: ConfigChange[] = [
    ...fileChanges(before, after),
    ...unitChanges(before, after),
    ...accountChanges(before, after),
  ];
  const [fromArguments, toArguments] = [words(a.kernelArguments), words(b.kernelArguments)];
  if (!sameMultiset(fromArguments, toArguments))
    changes.push({ kind: "kernelArguments", from: fromArguments, to: toArguments });
  const [fromImage, toImage] = [a.osImageURL ?? "", b.osImageURL ?? ""];
  // An empty image says nothing about the OS, so it changes nothing.
  if (fromImage !== toImage && toImage !== "") changes.push({ kind: "osImage", from: fromImage, to: toImage });
  const [fromExtensions, toExtensions] = [names(a.extensions), names(b.extensions)];
  if (!equalValues(fromExtensions, toExtensions))
    changes.push({ kind: "extensions", from: fromExtensions, to: toExtensions });
  const [fromKernel, toKernel] = [kernel(a.kernelType), kernel(b.kernelType)];
  if (fromKernel !== toKernel) changes.push({ kind: "kernelType", from: fromKernel, to: toKernel });
  const [fromFips, toFips] = [a.fips === true, b.fips === true];
  if (fromFips !== toFips) changes.push({ kind: "fips", from: fromFips, to: toFips });
  return [...changes, ...storageChanges(before, after)];
}

function ignitionFor(config: Config | undefined): IgnitionConfig {
  const raw = config?.spec?.config;
  if (config === undefined || raw === undefined || raw === null) return emptyIgnition;
  const strict = ignitionOf(config);
  const parsed = strict?.verdict === "valid" ? strict : readIgnition(raw);
  return parsed.verdict === "valid" ? parsed.config : emptyIgnition;
}

const opOf = (before: unknown, after: unknown): Op =>
  before === undefined ? "create" : after === undefined ? "delete" : "update";
const byName = (a: readonly [string, unknown], b: readonly [string, unknown]) =>
  a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;

/** Pairs of the values under each key on both sides, by key; the last of duplicates counts. */
function pairs<T>(
  before: readonly T[],
  after: readonly T[],
  keyOf: (item: T) => string,
): readonly (readonly [string, T | undefined, T | undefined])[] {
  const old = new Map(before.map((item) => [keyOf(item), item]));
  const next = new Map(after.map((item) => [keyOf(item), item]));
  return [...new Set([...old.keys(), ...next.keys()])]
    .map((key) => [key, old.get(key), next.get(key)] as const)
    .toSorted((a, b) => byName([a[0], 0], [b[0], 0]));
}

const root: Owner = { id: 0 };
const defaultMode = 0o644;

function fileChanges(before: IgnitionConfig, after: IgnitionConfig): readonly ConfigChange[] {
  const [readBefore, readAfter] = [contentsReader(), contentsReader()];
  return pairs<File>(before.storage?.files ?? [], after.storage?.files ?? [], ({ path }) => path).flatMap(
    ([path, old, next]): ConfigChange[] => {
      if (equalValues(old, next)) return [];
      const [had, has] = [old && readBefore(old.contents), next && readAfter(next.contents)];
      const [was, is] = [old && had && fileState(old, had), next && has && fileState(next, has)];
      const parts: FilePart[] = [];
      if (
        was === undefined ||
        is === undefined ||
        !(digestsAgree(had, has, [old, next]) ?? equalValues(was.contents, is.contents))
      )
        parts.push("contents");
      if (was?.mode !== is?.mode) parts.push("mode");
      if (!equalValues(was?.user, is?.user) || !equalValues(was?.group, is?.group)) parts.push("owner");
      if (parts.length === 0) return [];
      return [
        {
          kind: "file",
          path,
          op: opOf(old, next),
          parts,
          ...(was === undefined ? {} : { before: was }),
          ...(is === undefined ? {} : { after: is }),
        },
      ];
    },
  );
}

/** A file as it will be on disk, with explicit defaults. */
function fileState(file: File, held: HeldContents): FileState {
  const owner = ({ id, name }: Owner): Owner =>
    id !== undefined ? { id } : name === undefined || name === "" ? root : { name };
  let contents: ContentsState | undefined;
  return {
    mode: file.mode ?? defaultMode,
    user: owner(file.user ?? root),
    group: owner(file.group ?? root),
    get contents() {
      return (contents ??= contentsState(file, held));
    },
  };
}

/** Whether two files hold the same bytes; `undefined`: digests do not say. */
function digestsAgree(
  one: HeldContents | undefined,
  other: HeldContents | undefined,
  files: readonly (File | undefined)[],
): boolean | undefined {
  if (one?.verdict !== "decoded" || other?.verdict !== "decoded") return undefined;
  if (files.some((file) => (file?.append ?? []).length > 0)) return undefined;
  return one.sizeBytes === other.sizeBytes && one.digest === other.digest;
}

function contentsState({ append, contents }: File, decoded: HeldContents): ContentsState {
  const source = (text: string | undefined) => (text ?? "").slice(0, 200);
  if ((append ?? []).length > 0)
    return {
      kind: "unknown",
      source: source(JSON.stringify([contents, ...(append ?? [])])),
      reason: "the file is appended to",
    };
  if (decoded.verdict === "refused") {
    const whole = JSON.stringify(contents ?? {});
    // Two different sources could share a shortened text.
    return {
      kind: "unknown",
      source:
        whole.length <= 200 ? source(contents?.source) : `${source(contents?.source)}… (${digestOf(utf8(whole))})`,
      reason: decoded.reason,
    };
  }
  const { sizeBytes } = decoded;
  const text = textOf(decoded.bytes());
  if (text === undefined || text.includes("\0")) return { kind: "binary", sizeBytes, sha256: decoded.digest };
  return sizeBytes > mostStoredTextBytes
    ? { kind: "unknown", source: `${sizeBytes} bytes of text`, reason: "too large to compare" }
    : { kind: "text", text };
}

const digestOf = (bytes: Uint8Array): string => bytesToHex(sha256(bytes));
const utf8 = (text: string): Uint8Array => Uint8Array.from(text, (char) => char.charCodeAt(0) & 255);

const storageSections: readonly {
  readonly section: StorageSection;
  readonly keyOf: (item: {
    readonly path?: string;
    readonly device?: string;
    readonly name?: string;
  }) => string | undefined;
}[] = [
  { section: "directories", keyOf: ({ path }) => path },
  { section: "disks", keyOf: ({ device }) => device },
  { section: "filesystems", keyOf: ({ device }) => device },
  { section: "links", keyOf: ({ path }) => path },
  { section: "luks", keyOf: ({ name }) => name },
  { section: "raid", keyOf: ({ name }) => name },
];

/** Parts that running machines do not follow: listed, so that the diff does not look empty. */
function storageChanges(before: IgnitionConfig, after: IgnitionConfig): readonly ConfigChange[] {
  return storageSections.flatMap(({ section, keyOf }): ConfigChange[] => {
    const [old, next] = [before.storage?.[section] ?? [], after.storage?.[section] ?? []] as readonly [
      readonly object[],
      readonly object[],
    ];
    if (equalValues(old, next)) return [];
    const names = pairs<object>(old, next, (item) => keyOf(item) ?? "").flatMap(([name, was, is]) =>
      equalValues(was, is) ? [] : [name],
    );
    if (names.length === 0) return [];
    return [
      {
        kind: "storage",
        section,
        op: opOf(old.length === 0 ? undefined : old, next.length === 0 ? undefined : next),
        names,
      },
    ];
  });
}

const unsaidUnit: UnitOnDisk = { main: { kind: "unsaid" }, enablement: "unsaid", dropins: {} };

/** A unit as it will be on disk. */
export function unitState({ contents, dropins, enabled, mask }: Unit): UnitOnDisk {
  const hasText = contents !== undefined && contents !== "";
  return {
    main:
      mask === true
        ? { kind: "masked" }
        : hasText
          ? { kind: "text", text: contents }
          : { kind: mask === false ? "removed" : "unsaid" },
    enablement:
      mask === true
        ? "unsaid"
        : enabled === true
          ? "enabled"
          : enabled === false
            ? "disabled"
            : hasText
              ? "preset"
              : "unsaid",
    dropins: Object.fromEntries(
      (dropins ?? []).map((dropin) => [dropin.name, dropin.contents ?? ""] as const).toSorted(byName),
    ),
  };
}

function unitChanges(before: IgnitionConfig, after: IgnitionConfig): readonly ConfigChange[] {
  return pairs<Unit>(before.systemd?.units ?? [], after.systemd?.units ?? [], ({ name }) => name).flatMap(
    ([name, old, next]): ConfigChange[] => {
      if (equalValues(old, next)) return [];
      const [was, is] = [
        old === undefined ? unsaidUnit : unitState(old),
        next === undefined ? unsaidUnit : unitState(next),
      ];
      const parts = new Set<string>();
      if (!equalValues(was.main, is.main))
        parts.add(was.main.kind === "text" || is.main.kind === "text" ? "contents" : "mask");
      if ((was.main.kind === "masked") !== (is.main.kind === "masked")) parts.add("mask");
      if (was.enablement !== is.enablement) parts.add("enablement");
      for (const dropin of Object.keys({ ...was.dropins, ...is.dropins }))
        if (was.dropins[dropin] !== is.dropins[dropin]) parts.add(dropin);
      if (parts.size === 0) return [];
      return [
        {
          kind: "unit",
          name,
          op: opOf(old, next),
          parts: [...parts].toSorted(),
          ...(old === undefined ? {} : { before: was }),
          ...(next === undefined ? {} : { after: is }),
        },
      ];
    },
  );
}

/** The keys of all listed users go to core's file, so they count together. */
function accountChanges(before: IgnitionConfig, after: IgnitionConfig): readonly ConfigChange[] {
  const changes: ConfigChange[] = [];
  const keysOf = (config: IgnitionConfig) =>
    (config.passwd?.users ?? []).flatMap(({ sshAuthorizedKeys }) => sshAuthorizedKeys ?? []);
  const [old, next] = [keysOf(before), keysOf(after)];
  const [oldKeys, nextKeys] = [new Set(old), new Set(next)];
  // Order counts: it is the order of lines in the file.
  if (!equalValues(old, next)) {
    const op = opOf(old.length === 0 ? undefined : old, next.length === 0 ? undefined : next);
    changes.push({
      kind: "sshKeys",
      user: "core",
      op,
      added: next.filter((key) => !oldKeys.has(key)),
      removed: old.filter((key) => !nextKeys.has(key)),
    });
  }
  const hashesOf = (config: IgnitionConfig) =>
    new Map(
      (config.passwd?.users ?? []).flatMap(({ name, passwordHash }) =>
        passwordHash === undefined || passwordHash === "" ? [] : [[name, passwordHash] as const],
      ),
    );
  const [oldHashes, nextHashes] = [hashesOf(before), hashesOf(after)];
  for (const user of [...new Set([...oldHashes.keys(), ...nextHashes.keys()])].toSorted()) {
    if (oldHashes.get(user) !== nextHashes.get(user))
      changes.push({ kind: "password", user, op: opOf(oldHashes.get(user), nextHashes.get(user)) });
  }
  return changes;
}
