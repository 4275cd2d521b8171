import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { hostPaths } from "../api/names.ts";
import {
  type NodeConfig,
  type ShippedUnits,
  emptyNodeConfig,
  findUnitIn,
  managedUnits,
} from "../core/config/node-config.ts";
import type { ObservedEntry, OriginalEntry, Originals } from "../core/machine/observed-content.ts";
import { underOneName } from "../core/machine/one-name.ts";
import { originalsOnSystem, originalsUnder, shippedPaths, uncovered } from "../core/machine/kept-originals.ts";
import { isKubeconfig } from "../core/text/is-kubeconfig.ts";
import { foldersAbove } from "../ignition/clean-path.ts";
import { hiddenUnits, originalsWithLinksOfOs, unrecordedLinks } from "../core/machine/unit-gap.ts";
import { type InstallLink, namesOfLink, reachedFrom, vendorUnitFolder } from "../core/config/install-links.ts";
import { templateOf } from "../core/config/unit-name.ts";
import { encodeBase64, textOf } from "../ignition/data-url.ts";
import type { Owner } from "../ignition/types.ts";
import { type Host, type HostEntry, type UnitState, isUnreadable } from "../host/host.ts";
import type { Ledger, ObservedNode } from "../core/machine/observed-node.ts";
import type { MachineView } from "../core/machine/pass-plan.ts";
import type { MachineDocuments } from "../core/machine/machine-record.ts";

export const noOriginals = (kernelArguments: readonly string[]): Originals => ({
  paths: {},
  enablement: {},
  passwords: {},
  kernelArguments,
  ownKernelArguments: [],
});

export const imageDigestOf = (contents: Uint8Array): string => bytesToHex(sha256(contents));

/** The original of a path before it is managed; `null` if there is none that could be restored. */
export function originalOf(entry: HostEntry | undefined): OriginalEntry | null {
  if (entry?.kind === "file")
    return { ...entry, digest: imageDigestOf(entry.contents), contents: encodeBase64(entry.contents) };
  return entry?.kind === "link" ? entry : null;
}

/** What the system that runs ships at these paths of /etc. */
async function shippedAt(
  host: Host,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, OriginalEntry>> {
  const shipped = new Map<string, OriginalEntry>();
  for (const path of paths) {
    const entry = originalOf(await host.files.vendor(path, signal));
    if (entry !== null) shipped.set(path, entry);
  }
  return shipped;
}

/** Where kubelets have theirs; kubeadm puts it where OpenShift has the kubelet's settings. */
const mayHoldKubeconfig = (path: string) => path.startsWith("/etc/kubernetes/") || path.startsWith("/var/lib/kubelet/");

/** What no configuration asks for: a file that is too large to be read, or something that is no file. */
const unreadable = { kind: "file", digest: "", mode: 0, uid: 0, gid: 0 } as const satisfies ObservedEntry;

/** The entry at a path before it is managed. What cannot be read has no original that could be restored. */
export async function readOriginal(
  host: Host,
  path: string,
  signal: AbortSignal,
): Promise<{ readonly entry: OriginalEntry | null; readonly isUnreadable: boolean }> {
  try {
    return { entry: originalOf(await host.files.read(path, signal)), isUnreadable: false };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return { entry: null, isUnreadable: true };
  }
}

export async function observeEntry(host: Host, path: string, signal: AbortSignal): Promise<ObservedEntry | undefined> {
  let entry: HostEntry | undefined;
  try {
    entry = await host.files.read(path, signal);
  } catch (error) {
    // A user of the machine may have put it there.
    if (isUnreadable(error)) return unreadable;
    throw error;
  }
  if (entry?.kind !== "file") return entry;
  const { contents, mode, uid, gid } = entry;
  const isFound = mayHoldKubeconfig(path) && isKubeconfig(textOf(contents) ?? "");
  return { kind: "file", digest: imageDigestOf(contents), mode, uid, gid, ...(isFound ? { isKubeconfig: true } : {}) };
}

export interface Known {
  readonly previous: NodeConfig | undefined;
  readonly target: NodeConfig;
  readonly inService: boolean;
  readonly onlyControlPlane: boolean;
  /** Whether a payload for the running system was laid down on the machine. */
  readonly localPayload?: boolean;
  /** Units that disruption policies act on: a machine may not have them. */
  readonly actedOn?: readonly string[];
  /** Observations from earlier in the same pass, which are not repeated. */
  readonly seen?: Pick<MachineView, "os" | "forced">;
}

/** Whether the running image has a payload: its dedicated folder shows it without reading all of it. */
export const holdsPayload = async (host: Host, signal: AbortSignal) =>
  (await host.files.read(hostPaths.payload.slice(0, hostPaths.payload.lastIndexOf("/")), signal)) !== undefined;

/**
 * Reads the state of the machine, for everything that the previous configuration, the target and the originals name.
 */
export async function observeHost(
  host: Host,
  documents: Pick<MachineDocuments, "ledger" | "originals" | "settled">,
  known: Known,
  signal: AbortSignal,
): Promise<ObservedNode> {
  const { target, seen } = known;
  const { bootId, booted, staged, can, fips } = seen?.os ?? (await host.os.status(signal));
  const payload = known.localPayload === true ? "local" : (await holdsPayload(host, signal)) ? "image" : undefined;
  const remembered = documents.originals ?? noOriginals(booted.kernelArguments);
  const recorded = payload === "image" ? remembered : await onThisSystem(host, remembered, signal);
  const places = await placesOf(
    host,
    [...target.entries.keys(), ...(known.previous?.entries.keys() ?? []), ...Object.keys(recorded.paths)],
    signal,
  );
  const { previous, originals, twice } = underOneName(places, {
    target,
    previous: known.previous,
    originals: recorded,
  });
  const named = namedBy(previous === undefined ? [target] : [previous, target], originals, previous === undefined);

  const entries = new Map<string, ObservedEntry>();
  for (const path of named.paths) {
    const entry = await observeEntry(host, path, signal);
    if (entry !== undefined) entries.set(path, entry);
  }
  await observePlaces(host, target, { entries, originals }, signal);
  // Only an update that did not end can owe anything to units that no configuration names.
  const actedOn = documents.ledger === undefined ? [] : [...owedUnits(documents.ledger), ...(known.actedOn ?? [])];
  const {
    states: _states,
    originals: recordedNow,
    ...units
  } = await observeUnits(
    host,
    {
      previous,
      target,
      others: actedOn,
      originals,
    },
    signal,
  );
  const accounts = await observeAccounts(host, named, signal);
  // The daemon writes nothing without a ledger: other originals belong to an update that was interrupted before that.
  const isWhole = documents.ledger !== undefined || previous === undefined || payload !== undefined;
  const begun = isWhole
    ? recordedNow
    : originalsUnder(previous, managedUnits(previous, findUnitIn(previous, units.shippedUnits)), recordedNow);
  return {
    bootId,
    booted,
    staged,
    can,
    fips,
    twice,
    entries,
    ...units,
    ...accounts,
    originals: begun,
    ledger: documents.ledger,
    previous,
    inService: known.inService,
    forced: seen?.forced ?? (await host.files.read(hostPaths.force, signal)) !== undefined,
    onlyControlPlane: known.onlyControlPlane,
    payload,
    settled: documents.settled,
  };
}

/** The originals on the system that runs, which holds no content of ours. */
async function onThisSystem(host: Host, originals: Originals, signal: AbortSignal): Promise<Originals> {
  const paths = [...shippedPaths(originals), ...(originals.hidden ?? [])];
  if (paths.length === 0) return originals;
  const shipped = await shippedAt(host, paths, signal);
  return uncovered(originalsOnSystem(originals, shipped), shipped);
}

/** Path → where its entry lies once links above it are followed. */
async function placesOf(
  host: Host,
  paths: Iterable<string>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const folders = new Map<string, string>();
  const places = new Map<string, string>();
  for (const path of paths) {
    if (places.has(path)) continue;
    const end = path.lastIndexOf("/");
    const folder = path.slice(0, end);
    let place = folders.get(folder);
    if (place === undefined) folders.set(folder, (place = await host.files.placeOf(folder, signal)));
    places.set(path, place + path.slice(end));
  }
  return places;
}

/** What is in the way of the target's entries: folders where files are to be, and files where folders are to be. */
async function observePlaces(
  host: Host,
  target: NodeConfig,
  { entries, originals }: { readonly entries: Map<string, ObservedEntry>; readonly originals: Originals },
  signal: AbortSignal,
): Promise<void> {
  const above = new Set([...target.entries.keys()].flatMap(foldersAbove));
  for (const folder of above) {
    if (entries.has(folder)) continue;
    const is = await observeEntry(host, folder, signal);
    if (is?.kind === "file") entries.set(folder, is);
  }
  for (const [path, is] of entries)
    if (is.kind === "folder" && target.entries.has(path))
      entries.set(path, { ...is, goesAway: await goesAway(host, path, { target, originals }, signal) });
}

/** Whether a folder was made for entries of earlier configurations, and holds nothing else. */
async function goesAway(
  host: Host,
  path: string,
  known: { readonly target: NodeConfig; readonly originals: Originals },
  signal: AbortSignal,
): Promise<boolean> {
  const names = await host.files.madeFolder(path, signal);
  if (names === undefined) return false;
  for (const name of names) {
    const below = `${path}/${name}`;
    const isOurs = known.originals.paths[below] === null && !known.target.entries.has(below);
    if (!isOurs && !(await goesAway(host, below, known, signal))) return false;
  }
  return true;
}

/**
 * The units that configurations manage or managed, and others: their states, links, what the OS ships of them, and what they
 * were. A unit that the OS ships can name more of them.
 */
export async function observeUnits(
  host: Host,
  {
    previous,
    target,
    others,
    originals,
  }: {
    readonly previous: NodeConfig | undefined;
    readonly target: NodeConfig;
    readonly others: readonly string[];
    readonly originals: Originals;
  },
  signal: AbortSignal,
): Promise<
  Required<Pick<ObservedNode, "enablement" | "links" | "shippedUnits" | "shippedLinks" | "originals">> & {
    readonly states: ReadonlyMap<string, UnitState>;
  }
> {
  const configs = previous === undefined ? [target] : [previous, target];
  const shippedUnits = new Map<string, string>();
  const read = new Set<string>();
  const namesNow = () =>
    new Set([
      ...Object.keys(originals.enablement),
      ...others,
      ...configs.flatMap((config) => [...managedUnits(config, findUnitIn(config, shippedUnits))]),
    ]);
  let names = namesNow();
  for (let known = -1; known < read.size; names = namesNow()) {
    known = read.size;
    for (const file of new Set([...names].flatMap((name) => [name, templateOf(name)]))) {
      if (read.has(file)) continue;
      read.add(file);
      const entry = await host.files.read(`${vendorUnitFolder}/${file}`, signal);
      if (entry?.kind === "file") shippedUnits.set(file, textOf(entry.contents) ?? "");
    }
  }
  const states = names.size === 0 ? new Map<string, UnitState>() : await host.units.state([...names], signal);
  const links = names.size === 0 ? [] : await host.units.links(signal);
  const paths = [
    ...linkPathsOf(hiddenUnits(originals, shippedUnits), { shippedUnits, links }),
    ...unrecordedLinks(originals, previous, shippedUnits).map(({ path }) => path),
  ];
  const shippedLinks = await shippedLinksAt(host, paths, signal);
  return {
    states,
    enablement: new Map([...states].map(([name, { enablement }]) => [name, enablement])),
    links: new Map(links.map(({ path, target }) => [path, target])),
    shippedUnits,
    shippedLinks,
    originals: originalsWithLinksOfOs({ originals, previous, shippedUnits, shippedLinks }),
  };
}

/** Where units of the OS have links, or get them when they are enabled. */
function linkPathsOf(
  units: readonly string[],
  known: { readonly shippedUnits: ShippedUnits; readonly links: readonly InstallLink[] },
): readonly string[] {
  const all = new Set(units);
  const reached = reachedFrom(all, findUnitIn(emptyNodeConfig, known.shippedUnits));
  const links = [
    ...[...reached.values()].flatMap(({ installing }) => installing.links),
    ...known.links.filter((link) => [...namesOfLink(link)].some((name) => all.has(name))),
  ];
  return links.map(({ path }) => path);
}

/** Which links the OS ships at these paths. */
async function shippedLinksAt(
  host: Host,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const links = new Map<string, string>();
  for (const path of new Set(paths)) {
    const entry = await host.files.vendor(path, signal);
    if (entry?.kind === "link") links.set(path, entry.target);
  }
  return links;
}

const owedUnits = ({ owes }: Ledger): readonly string[] => owes.flatMap((owed) => ("unit" in owed ? [owed.unit] : []));

/** Everything of a machine that configurations, and the content managed before them, refer to. */
interface Named {
  readonly paths: ReadonlySet<string>;
  readonly accounts: ReadonlySet<string>;
  readonly owners: readonly { readonly user: Owner; readonly group: Owner }[];
}

/** @param isNew the machine has no configuration yet: the last one's parts for new machines count. */
function namedBy(configs: readonly NodeConfig[], originals: Originals, isNew: boolean): Named {
  const born = isNew ? configs.at(-1)?.provisioningOnly : undefined;
  const owners = configs.flatMap((config) =>
    [...config.entries.values()].flatMap((wanted) =>
      wanted.kind === "file" ? [wanted, ...(wanted.folder === undefined ? [] : [wanted.folder])] : [],
    ),
  );
  return {
    paths: new Set([
      ...configs.flatMap(({ entries }) => [...entries.keys()]),
      ...Object.keys(originals.paths),
      ...(born === undefined ? [] : [...born.folders.keys(), ...born.links.keys(), ...born.appends.keys()]),
    ]),
    accounts: new Set([
      ...configs.flatMap(({ passwords }) => [...passwords.keys()]),
      ...Object.keys(originals.passwords),
    ]),
    owners: [...owners, ...(born === undefined ? [] : [...born.folders.values(), ...born.appends.values()])],
  };
}

/** The numbers of all owners, and the passwords of accounts that the machine has. */
async function observeAccounts(
  host: Host,
  { owners, accounts }: Named,
  signal: AbortSignal,
): Promise<Pick<ObservedNode, "users" | "groups" | "passwords">> {
  const users = await idsOf(
    [...owners.map(({ user }) => user), ...[...accounts].map((name) => ({ name }))],
    async (name) => (await host.users.lookup(name, signal))?.uid,
  );
  const groups = await idsOf(
    owners.map(({ group }) => group),
    (name) => host.users.group(name, signal),
  );
  const passwords = new Map<string, string>();
  for (const user of accounts) {
    const hash = users.has(user) ? await host.users.passwordHash(user, signal) : undefined;
    if (hash !== undefined) passwords.set(user, hash);
  }
  return { users, groups, passwords };
}

/** Name → number, of owners that the machine knows; each name is looked up once. */
async function idsOf(
  owners: readonly Owner[],
  lookup: (name: string) => Promise<number | undefined>,
): Promise<ReadonlyMap<string, number>> {
  const ids = new Map<string, number>();
  for (const name of new Set(owners.flatMap(({ name: one }) => one ?? []))) {
    const id = await lookup(name);
    if (id !== undefined) ids.set(name, id);
  }
  return ids;
}
