import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { hostPaths } from "../../api/names.ts";
import { decodeBase64, textOf } from "../../ignition/data-url.ts";
import { describeChange } from "../config/change.ts";
import { type ContentGap, type ContentStep, contentGap, originOfPath } from "./content-gap.ts";
import type { ObservedContent, OriginalEntry, Originals } from "./observed-content.ts";
import { originalToRecord, originalsUnder, sameOriginal, uncovered } from "./kept-originals.ts";
import type { Payload, PayloadEntry } from "../config/image-content.ts";
import { isInstallable } from "../config/install-links.ts";
import { isMask } from "./unit-gap.ts";
import { type NodeConfig, type WantedEntry, emptyNodeConfig, findUnitIn, managedUnits } from "../config/node-config.ts";

/** A payload that was placed on the machine for the system that it leaves, with the originals of its managed paths. */
export interface LocalPayload extends Payload {
  readonly originals?: Originals;
}

/** Attempts per boot to apply the image's content. */
export const maxApplyTries = 3;

/** File of a local payload in the daemon's own folder: named after the image's digest. */
export function localPayloadName(image: string): string {
  const digest = /@(sha256:[0-9A-Za-z]+)$/.exec(image)?.[1];
  return `payload/${digest ?? `sha256:${bytesToHex(sha256(utf8ToBytes(image)))}`}.json`;
}

/** The payload as a configuration that can be compared with a machine: without anything about the operating system. */
export function targetOfPayload({ entries, units, accounts }: Payload): NodeConfig {
  const wanted = new Map(entries.map((entry) => [entry.path, wantedOf(entry)]));
  const textAt = (name: string) => {
    const entry = wanted.get(`/etc/systemd/system/${name}`);
    return entry?.kind === "file" ? textOf(entry.contents) : undefined;
  };
  return {
    ...emptyNodeConfig,
    entries: wanted,
    enablement: new Map(
      units.map(({ name, enabled }) => [
        name,
        { enabled, installable: ((text) => text === undefined || isInstallable(name, [text]))(textAt(name)) },
      ]),
    ),
    passwords: new Map(accounts.map(({ user, passwordHash }) => [user, passwordHash])),
  };
}

function wantedOf(entry: PayloadEntry): WantedEntry {
  const found: WantedEntry["origin"] =
    entry.path === hostPaths.sshKeys ? { kind: "sshKeys", user: "core" } : originOfPath(entry.path);
  const ofMask = found.kind === "unit" && found.part === "contents" ? ({ ...found, part: "mask" } as const) : found;
  if (entry.kind === "link") return { kind: "link", target: entry.target, origin: isMask(entry) ? ofMask : found };
  // A unit that must not be masked: any text is correct.
  if (entry.kind === "absent") return { kind: "absent", origin: ofMask };
  const contents = decodeBase64(entry.contents);
  const own = ({ mode, uid, gid }: { mode: number; uid: number; gid: number }) => ({
    mode,
    user: { id: uid },
    group: { id: gid },
  });
  return {
    kind: "file",
    contents,
    sizeBytes: contents.length,
    digest: bytesToHex(sha256(contents)),
    ...own(entry),
    origin: found,
    ...(entry.folder === undefined ? {} : { folder: own(entry.folder) }),
    ...(entry.ifAbsent === true ? { ifAbsent: true } : {}),
  };
}

/** The machine's state at boot: what the booted image ships at managed paths of /etc, beside its content. */
export interface ImageContentView extends ObservedContent {
  readonly vendor: ReadonlyMap<string, OriginalEntry>;
  readonly active: ReadonlySet<string>;
}

export interface ImageContentPlan {
  readonly steps: readonly ContentStep[];
  /** Originals to record before any change: for the paths managed from now on and those managed before. */
  readonly remember: Pick<ContentGap, "paths" | "units" | "users">;
  /** What the steps restore. */
  readonly originals: Originals;
  /** Paths, and units by their name, that are changed. */
  readonly changed: readonly string[];
  readonly differences: readonly string[];
}

/**
 * Files that are read before the image's content is applied, whatever runs: systemd-sysctl(8), systemd-modules-load(8),
 * udev(7), NetworkManager(8).
 */
const earlyReaders = [
  "/etc/sysctl.conf",
  "/etc/sysctl.d/",
  "/etc/modules-load.d/",
  "/etc/modprobe.d/",
  "/etc/udev/",
  "/etc/NetworkManager/",
];

/** The steps that bring the machine to its payload and restore items that are no longer managed to their originals. */
export function planImageContent(view: ImageContentView, target: NodeConfig): ImageContentPlan {
  // The image holds nothing of ours at these paths: without a recorded original, and where an OS shipped it, the original is
  // what the system ships that runs now.
  const shipped = Object.entries(view.originals.paths).flatMap(([path, original]) =>
    !target.entries.has(path) && (original?.shipped === true || (original === null && view.vendor.has(path)))
      ? [[path, view.vendor.get(path) ?? null] as const]
      : [],
  );
  const originals = { ...view.originals, paths: { ...view.originals.paths, ...Object.fromEntries(shipped) } };
  const gap = contentGap({ ...view, originals }, target);
  const paths = gap.steps.flatMap((step) => ("paths" in step ? step.paths : []));
  const relinked = gap.steps.flatMap((step) => ("units" in step ? step.units : []));
  const units = [...relinked, ...gap.changes.flatMap((change) => (change.kind === "unit" ? [change.name] : []))];
  const changed = [...new Set([...paths, ...units])].sort();
  return {
    steps: gap.steps,
    remember: { paths: gap.paths, units: gap.units, users: gap.users },
    originals,
    changed,
    differences: gap.changes.map(describeChange),
  };
}

/** Whether a running program has read a path or a unit before it was changed; a reboot makes it read the path again. */
export function isReadEarly(what: string, active: ReadonlySet<string>): boolean {
  if (earlyReaders.some((path) => (path.endsWith("/") ? what.startsWith(path) : what === path))) return true;
  const origin = originOfPath(what);
  const unit = what.startsWith("/") ? (origin.kind === "unit" ? origin.name : undefined) : what;
  return unit !== undefined && unit !== hostPaths.settleUnit && active.has(unit);
}

/**
 * The original of a newly managed path: the current entry, unless that equals the payload's, which came with the image
 * or with an earlier managed deployment. Then the original is the system's own, if the system ships one that our image
 * does not hide.
 */
export function originalToKeep(
  present: OriginalEntry | null,
  isWanted: boolean,
  vendor: OriginalEntry | undefined,
  from: "image" | "local",
): OriginalEntry | null {
  if (!isWanted) {
    if (from === "local") return originalToRecord(present, vendor);
    return present !== null && vendor !== undefined && sameOriginal(present, vendor) ? null : present;
  }
  return from === "local" && vendor !== undefined ? originalToRecord(vendor, vendor) : null;
}

/** The recorded originals after the content was applied: for the items managed now. */
export function originalsAfterApplying(
  originals: Originals,
  target: NodeConfig,
  { vendor, shippedUnits = new Map() }: Pick<ImageContentView, "vendor" | "shippedUnits">,
  from: "image" | "local",
): Originals {
  const units = managedUnits(target, findUnitIn(target, shippedUnits));
  return originalsUnder(target, units, from === "local" ? uncovered(originals, vendor) : originals);
}
