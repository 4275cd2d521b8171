import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { McoError } from "../../api/errors.ts";
import { hostPaths } from "../../api/names.ts";
import { encodeBase64 } from "../../ignition/data-url.ts";
import { isRecord } from "../../ignition/shape.ts";
import type { Owner } from "../../ignition/types.ts";
import { reachedFrom, unitOfLink, vendorUnitFolder } from "./install-links.ts";
import { certificatePaths } from "../certificates/machine-certificates.ts";
import { type FolderOwner, type NodeConfig, type WantedEntry, findUnitIn } from "./node-config.ts";
import { readVersionOne } from "../text/versioned-document.ts";

/**
 * How a path of a configuration gets onto a machine whose image holds it.
 *
 * `image`: in the image itself. `settle`: an image cannot hold it, so the machine takes it from the image's payload
 * at boot. `ifAbsent`: the daemon keeps newer ones; the payload provides it only where it is missing. `never`: neither
 * can.
 */
export type ImageDelivery = "image" | "settle" | "ifAbsent" | "never";

/**
 * Credentials and certificates that a machine gets apart from its configuration, besides {@link certificatePaths}.
 */
const credentialPaths: ReadonlySet<string> = new Set([
  ...certificatePaths,
  hostPaths.kubeconfig,
  hostPaths.kubeletPullSecret,
]);
/**
 * On machines with ostree these are links into /var, which no image fills (ostree "Adapting existing mainstream
 * distributions").
 */
const belowVar = ["/var", "/home", "/root", "/opt", "/usr/local", "/srv", "/mnt"] as const;

const isBelow = (path: string, folder: string) => path === folder || path.startsWith(`${folder}/`);

/** Whether the daemon maintains a path itself, whatever the machine boots. */
export const isCredential = (path: string): boolean =>
  credentialPaths.has(path) || isBelow(path, hostPaths.registryCas);

export function deliveryOf(path: string): ImageDelivery {
  if (isCredential(path)) return "ifAbsent";
  if (belowVar.some((folder) => isBelow(path, folder))) return "settle";
  return isBelow(path, "/etc") || isBelow(path, "/usr") ? "image" : "never";
}

/** Names of users and groups with their numbers. */
export interface OwnerIds {
  readonly users: ReadonlyMap<string, number>;
  readonly groups: ReadonlyMap<string, number>;
}

export interface ContentProblem {
  readonly code: "PathNotBakeable" | "OwnerUnknown";
  readonly path: string;
  readonly detail: string;
}

/**
 * What prevents a configuration from being put into an image.
 *
 * @param owners accounts in the image; without them, names are not checked.
 */
export function contentProblems(config: NodeConfig, owners?: OwnerIds): readonly ContentProblem[] {
  const problems: ContentProblem[] = [];
  for (const path of [
    ...config.entries.keys(),
    ...config.provisioningOnly.links.keys(),
    ...config.provisioningOnly.folders.keys(),
  ]) {
    if (deliveryOf(path) === "never")
      problems.push({
        code: "PathNotBakeable",
        path,
        detail: `${path} is where neither an image nor its payload can put anything: use a path below /etc or /var`,
      });
  }
  for (const [path, entry] of config.entries) {
    if (owners === undefined) continue;
    for (const { owner, kind } of ownersOf(entry)) {
      if (owner.id === undefined && owner.name !== undefined && !owners[kind].has(owner.name))
        problems.push({
          code: "OwnerUnknown",
          path,
          detail: `${path} belongs to the ${kind === "users" ? "user" : "group"} ${owner.name}, which the base image does not have: name the number`,
        });
    }
  }
  return problems;
}

/** Names of owners to resolve, without duplicates, sorted. */
export function ownerNamesOf(config: NodeConfig): {
  readonly users: readonly string[];
  readonly groups: readonly string[];
} {
  const names = { users: new Set<string>(), groups: new Set<string>() };
  for (const entry of config.entries.values())
    for (const { owner, kind } of ownersOf(entry))
      if (owner.id === undefined && owner.name !== undefined) names[kind].add(owner.name);
  for (const folder of config.provisioningOnly.folders.values())
    for (const { owner, kind } of pairOf(folder))
      if (owner.id === undefined && owner.name !== undefined) names[kind].add(owner.name);
  return { users: [...names.users].sort(), groups: [...names.groups].sort() };
}

interface Owned {
  readonly owner: Owner;
  readonly kind: "users" | "groups";
}

const pairOf = ({ user, group }: { readonly user: Owner; readonly group: Owner }): readonly Owned[] => [
  { owner: user, kind: "users" },
  { owner: group, kind: "groups" },
];
const ownersOf = (entry: WantedEntry): readonly Owned[] =>
  entry.kind === "file" ? [...pairOf(entry), ...(entry.folder === undefined ? [] : pairOf(entry.folder))] : [];

const byPath = <T>(entries: Iterable<readonly [string, T]>) => [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
const spelled = ({ id, name }: Owner) => id ?? name ?? 0;

/**
 * sha256 of the desired disk contents of a machine, in hex: equal for configurations that differ only in their name,
 * their spelling, kernel arguments or OS image, and in files that the daemon maintains itself.
 */
export function contentDigest(config: NodeConfig): string {
  const entries = byPath(config.entries).flatMap(([path, entry]) => {
    if (deliveryOf(path) === "ifAbsent") return [];
    if (entry.kind !== "file") return [[path, entry.kind, ...(entry.kind === "link" ? [entry.target] : [])]];
    const folder =
      entry.folder === undefined ? [] : [[entry.folder.mode, spelled(entry.folder.user), spelled(entry.folder.group)]];
    return [[path, entry.kind, entry.digest, entry.mode, spelled(entry.user), spelled(entry.group), ...folder]];
  });
  const born = [
    byPath(config.provisioningOnly.folders).map(([path, { mode, user, group }]) => [
      path,
      mode,
      spelled(user),
      spelled(group),
    ]),
    byPath(config.provisioningOnly.links),
  ];
  const units = byPath(config.enablement).map(([name, { enabled }]) => [name, enabled ?? null]);
  return bytesToHex(sha256(utf8ToBytes(JSON.stringify([entries, units, byPath(config.passwords), born]))));
}

/** Mode and owner by number. */
interface Numbered {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export type PayloadEntry =
  /** `contents`: base64. `ifAbsent`: an existing file is left unchanged. */
  | ({
      readonly path: string;
      readonly kind: "file";
      readonly contents: string;
      readonly folder?: Numbered;
      readonly ifAbsent?: true;
    } & Numbered)
  | { readonly path: string; readonly kind: "link"; readonly target: string }
  | { readonly path: string; readonly kind: "absent" };

/** The complete desired disk contents of a machine; applying it needs nothing else. */
export interface Payload {
  readonly v: 1;
  /** By path, sorted. */
  readonly entries: readonly PayloadEntry[];
  /** `enabled` absent: by the vendor's presets. */
  readonly units: readonly { readonly name: string; readonly enabled?: boolean }[];
  readonly accounts: readonly { readonly user: string; readonly passwordHash: string }[];
}

/** @throws McoError `MCO_OWNER_UNKNOWN` */
export function payloadOf(config: NodeConfig, owners: OwnerIds): Payload {
  return {
    v: 1,
    entries: byPath(config.entries).map(([path, entry]): PayloadEntry => {
      if (entry.kind !== "file")
        return entry.kind === "link" ? { path, kind: "link", target: entry.target } : { path, kind: "absent" };
      return {
        path,
        kind: "file",
        contents: encodeBase64(entry.contents),
        ...numbered(entry, owners, path),
        ...(entry.folder === undefined ? {} : { folder: numbered(entry.folder, owners, path) }),
        ...(deliveryOf(path) === "ifAbsent" ? { ifAbsent: true } : {}),
      };
    }),
    units: byPath(config.enablement).map(([name, { enabled }]) => ({
      name,
      ...(enabled === undefined ? {} : { enabled }),
    })),
    accounts: byPath(config.passwords).map(([user, passwordHash]) => ({ user, passwordHash })),
  };
}

function numbered({ mode, user, group }: FolderOwner, { users, groups }: OwnerIds, path: string): Numbered {
  return { mode, uid: numberOf(user, users, path), gid: numberOf(group, groups, path) };
}

function numberOf({ id, name }: Owner, ids: ReadonlyMap<string, number>, path: string): number {
  const number = id ?? (name === undefined ? 0 : ids.get(name));
  if (number === undefined) throw new McoError("MCO_OWNER_UNKNOWN", { path, owner: name });
  return number;
}

/** Equal payloads give equal text. */
export const printPayload = (payload: Payload): string => JSON.stringify(payload);

/** Reads the text of {@link printPayload}. */
export function readPayload(text: string): Payload | { readonly problem: string } {
  const document = readVersionOne(text);
  if ("problem" in document) return document;
  const { read } = document;
  const { entries, units, accounts } = read;
  const bad =
    Array.isArray(entries) && Array.isArray(units) && Array.isArray(accounts)
      ? entries.findIndex((entry) => !isPayloadEntry(entry)) + 1 || undefined
      : 0;
  if (bad !== undefined)
    return { problem: bad === 0 ? "entries, units or accounts are no lists" : `entry ${bad} cannot be read` };
  const isUnit = (unit: unknown) =>
    isRecord(unit) &&
    typeof unit["name"] === "string" &&
    (unit["enabled"] === undefined || typeof unit["enabled"] === "boolean");
  const isAccount = (account: unknown) =>
    isRecord(account) && typeof account["user"] === "string" && typeof account["passwordHash"] === "string";
  if (!(units as unknown[]).every(isUnit) || !(accounts as unknown[]).every(isAccount))
    return { problem: "a unit or an account cannot be read" };
  return read as unknown as Payload;
}

const isNumbered = (value: Record<string, unknown>) =>
  [value["mode"], value["uid"], value["gid"]].every((number) => Number.isInteger(number));

function isPayloadEntry(value: unknown): boolean {
  if (!isRecord(value) || typeof value["path"] !== "string" || !value["path"].startsWith("/")) return false;
  if (value["kind"] === "absent") return true;
  if (value["kind"] === "link") return typeof value["target"] === "string";
  return (
    value["kind"] === "file" &&
    typeof value["contents"] === "string" &&
    isNumbered(value) &&
    (value["folder"] === undefined || (isRecord(value["folder"]) && isNumbered(value["folder"])))
  );
}

/** One entry of the layer that carries a configuration; its path is absolute. */
export type LayerEntry = { readonly path: string } & (
  | ({ readonly kind: "file"; readonly contents: Uint8Array } & Numbered)
  | { readonly kind: "link"; readonly target: string }
  | ({ readonly kind: "folder" } & Numbered)
);

/** Applies the image's payload at each boot, before the network and the kubelet. */
export const settleUnitText = `[Unit]
Description=Make this machine equal to the configuration that its image holds
DefaultDependencies=no
RequiresMountsFor=/var /etc
After=local-fs.target systemd-tmpfiles-setup.service
Wants=network-pre.target
Before=network-pre.target crio.service kubelet.service shutdown.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/bin/mco settle

[Install]
WantedBy=multi-user.target
`;

const settleEntries: readonly LayerEntry[] = [
  {
    path: `${vendorUnitFolder}/${hostPaths.settleUnit}`,
    kind: "file",
    contents: utf8ToBytes(settleUnitText),
    mode: 0o644,
    uid: 0,
    gid: 0,
  },
  {
    path: `${vendorUnitFolder}/multi-user.target.wants/${hostPaths.settleUnit}`,
    kind: "link",
    target: `../${hostPaths.settleUnit}`,
  },
];

/**
 * The contents of a configuration's layer, by path, sorted: everything that an image can hold, links of enabled units
 * whose text the configuration has, the payload, and the unit that applies it.
 *
 * @throws McoError `MCO_OWNER_UNKNOWN`
 */
export function layerEntries(config: NodeConfig, owners: OwnerIds): readonly LayerEntry[] {
  const entries = new Map<string, LayerEntry>();
  const add = (entry: LayerEntry) => entries.set(entry.path, entry);
  for (const [path, folder] of config.provisioningOnly.folders)
    if (deliveryOf(path) === "image") add({ path, kind: "folder", ...numbered(folder, owners, path) });
  for (const [path, target] of config.provisioningOnly.links)
    if (deliveryOf(path) === "image") add({ path, kind: "link", target });
  for (const [path, entry] of config.entries) {
    if (deliveryOf(path) !== "image" || entry.kind === "absent") continue;
    if (entry.kind === "link") add({ path, kind: "link", target: entry.target });
    else add({ path, kind: "file", contents: entry.contents, ...numbered(entry, owners, path) });
  }
  const enabled = [...config.enablement].flatMap(([name, { enabled, installable }]) =>
    enabled === true && installable ? [name] : [],
  );
  for (const { installing } of reachedFrom(enabled, findUnitIn(config, new Map())).values())
    for (const link of installing.links) {
      const isDisabled = config.enablement.get(unitOfLink(link))?.enabled === false;
      if (!entries.has(link.path) && !isDisabled) add({ kind: "link", ...link });
    }
  for (const entry of settleEntries) add(entry);
  add({
    path: hostPaths.payload,
    kind: "file",
    contents: utf8ToBytes(printPayload(payloadOf(config, owners))),
    mode: 0o600,
    uid: 0,
    gid: 0,
  });
  return byPath(entries).map(([, entry]) => entry);
}
