import { McoError } from "../api/errors.ts";
import type { MachineConfig } from "../api/machine-config.ts";
import { hostPaths } from "../api/names.ts";
import type { NodeConfig, WantedEntry } from "../core/node-config.ts";
import type { ObservedNode, OriginalEntry, Originals, Step } from "../core/plan-node.ts";
import { encodeBase64 } from "../ignition/data-url.ts";
import type { Owner } from "../ignition/types.ts";
import type { Host } from "../host/host.ts";
import type { Clock } from "../ports/clock.ts";
import type { DocumentStore } from "./machine-documents.ts";
import { observeEntry } from "./observe-host.ts";

/** What steps are carried out with. `originals` grows when the ledger opens; the executor owns it for one plan. */
export interface Worksite {
  readonly host: Host;
  readonly documents: DocumentStore;
  readonly clock: Clock;
  readonly observed: ObservedNode;
  readonly target: { readonly machineConfig: MachineConfig; readonly config: NodeConfig };
  originals: Originals;
}

/** Steps that are done on the machine alone; draining and rebooting involve others and belong to the loop. */
export type LocalStep = Exclude<Step, { do: "drain" } | { do: "reboot" }>;

const decodeBase64 = (text: string) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** The one place where a step becomes a deed. There is no `default`: a step without a case does not compile. */
export async function performStep(step: LocalStep, site: Worksite, signal: AbortSignal): Promise<void> {
  const { host } = site;
  switch (step.do) {
    case "openLedger":
      return openLedger(step, site, signal);
    case "stageOs":
      return host.os.stage({ image: step.image, kernelArguments: step.kernelArguments }, signal);
    case "discardStaged":
      return host.os.discardStaged(signal);
    case "writeEntry":
      return writeEntry(step.path, site, signal);
    case "restoreEntry":
      return restoreEntry(step.path, site, signal);
    case "enableUnit":
      return host.units.enable(step.unit, signal);
    case "disableUnit":
      return host.units.disable(step.unit, signal);
    case "presetUnit":
      return host.units.preset(step.unit, signal);
    case "setPassword":
      return host.users.setPasswordHash(step.user, site.target.config.passwords.get(step.user) ?? site.originals.passwords[step.user] ?? undefined, signal);
    case "daemonReload":
      return host.units.daemonReload(signal);
    case "reload":
      return host.units.reload(step.unit, signal);
    case "restart":
      return host.units.restart(step.unit, signal);
    case "closeLedger":
      return closeLedger(site, signal);
  }
}

/** Owners are looked up before anything is written, so that an unknown one is refused while nothing has changed. */
export function unknownOwners(observed: ObservedNode, target: NodeConfig): readonly { path: string; owner: string }[] {
  const unknown: { path: string; owner: string }[] = [];
  for (const [path, wanted] of target.entries) {
    if (wanted.kind !== "file") continue;
    if (wanted.user.id === undefined && wanted.user.name !== undefined && !observed.users.has(wanted.user.name)) unknown.push({ path, owner: `user ${wanted.user.name}` });
    if (wanted.group.id === undefined && wanted.group.name !== undefined && !observed.groups.has(wanted.group.name)) unknown.push({ path, owner: `group ${wanted.group.name}` });
  }
  return unknown;
}

async function openLedger(step: Step & { do: "openLedger" }, site: Worksite, signal: AbortSignal): Promise<void> {
  const { host, documents, observed } = site;
  const paths: Record<string, OriginalEntry | null> = { ...site.originals.paths };
  for (const path of step.paths) {
    const entry = await host.files.read(path, signal);
    const seen = await observeEntry(host, path, signal);
    if (entry?.kind === "file" && seen?.kind === "file") paths[path] = { ...seen, contents: encodeBase64(entry.contents) };
    else paths[path] = entry?.kind === "link" ? entry : null;
  }
  const enablement = { ...site.originals.enablement, ...Object.fromEntries(step.units.map((unit) => [unit, observed.enablement.get(unit) ?? "absent"])) };
  const passwords = { ...site.originals.passwords, ...Object.fromEntries(step.users.map((user) => [user, observed.passwords.get(user) ?? null])) };
  const ownKernelArguments = [...new Set([...site.originals.ownKernelArguments, ...site.target.config.kernelArguments])];
  const grown = { ...site.originals, paths, enablement, passwords, ownKernelArguments };
  await documents.storeOriginals(grown, signal);
  site.originals = grown;
  await documents.openLedger(
    { v: 1, target: site.target.config.name, bootId: observed.bootId, owes: step.owes, openedAt: observed.ledger?.openedAt ?? new Date(site.clock.now()).toISOString() },
    site.target.machineConfig,
    signal,
  );
}

async function writeEntry(path: string, site: Worksite, signal: AbortSignal): Promise<void> {
  const { host, observed, target } = site;
  const wanted = target.config.entries.get(path);
  if (wanted === undefined) throw new Error(`bug: the plan writes ${path}, which the target does not name`);
  switch (wanted.kind) {
    case "absent":
      return host.files.remove(path, signal);
    case "link":
      return host.files.write(path, wanted, {}, signal);
    case "file": {
      const folder = wanted.folder === undefined ? undefined : { mode: wanted.folder.mode, uid: idOf(wanted.folder.user, observed.users, path), gid: idOf(wanted.folder.group, observed.groups, path) };
      const entry = { kind: "file", contents: wanted.contents, mode: wanted.mode, uid: idOf(wanted.user, observed.users, path), gid: idOf(wanted.group, observed.groups, path) } as const;
      return host.files.write(path, entry, folder === undefined ? {} : { folder }, signal);
    }
  }
}

function idOf(owner: Owner, ids: ReadonlyMap<string, number>, path: string): number {
  if (owner.id !== undefined || owner.name === undefined) return owner.id ?? 0;
  const id = ids.get(owner.name);
  if (id === undefined) throw new McoError("MCO_OWNER_UNKNOWN", { path, owner: owner.name });
  return id;
}

async function restoreEntry(path: string, site: Worksite, signal: AbortSignal): Promise<void> {
  const original = site.originals.paths[path];
  if (original === null || original === undefined) return site.host.files.remove(path, signal);
  if (original.kind === "link") return site.host.files.write(path, original, {}, signal);
  return site.host.files.write(path, { kind: "file", contents: decodeBase64(original.contents), mode: original.mode, uid: original.uid, gid: original.gid }, {}, signal);
}

async function closeLedger(site: Worksite, signal: AbortSignal): Promise<void> {
  const { host, documents, target, originals } = site;
  const { config, machineConfig } = target;
  await host.files.remove(hostPaths.force, signal);
  // For people, and for handing the node to another daemon: no decision of ours needs it.
  await host.files.write(hostPaths.currentConfig, { kind: "file", contents: new TextEncoder().encode(JSON.stringify(machineConfig)), mode: 0o600, uid: 0, gid: 0 }, {}, signal);
  const keep = <T>(record: Readonly<Record<string, T>>, has: (key: string) => boolean) => Object.fromEntries(Object.entries(record).filter(([key]) => has(key)));
  await documents.closeLedger(
    machineConfig,
    {
      paths: keep(originals.paths, (path) => config.entries.has(path)),
      enablement: keep(originals.enablement, (unit) => config.enablement.has(unit)),
      passwords: keep(originals.passwords, (user) => config.passwords.has(user)),
      kernelArguments: originals.kernelArguments,
      ownKernelArguments: [],
    },
    signal,
  );
}

/** Paths worth watching for drift. */
export const watchedPaths = (config: NodeConfig | undefined): readonly string[] => [...(config?.entries.entries() ?? [])].filter(([, wanted]: [string, WantedEntry]) => wanted.kind !== "absent").map(([path]) => path);
