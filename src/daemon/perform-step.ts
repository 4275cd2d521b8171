import { McoError } from "../api/errors.ts";
import type { MachineConfig } from "../api/machine-config.ts";
import { hostPaths } from "../api/names.ts";
import { type Consequence, sameConsequence } from "../core/change.ts";
import type { NodeConfig, WantedEntry } from "../core/node-config.ts";
import { type Ledger, type ObservedNode, type OriginalEntry, type Originals, type Step, appendedTo } from "../core/plan-node.ts";
import { decodeBase64 } from "../ignition/data-url.ts";
import type { Owner } from "../ignition/types.ts";
import type { Host, HostWrite, Ownership } from "../host/host.ts";
import type { Clock } from "../ports/clock.ts";
import type { DocumentStore } from "./machine-documents.ts";
import { originalOf } from "./observe-host.ts";

/** What steps are carried out with. `originals` and `ledger` are as they stand on the disk; the executor owns them for one plan. */
export interface Worksite {
  readonly host: Host;
  readonly documents: DocumentStore;
  readonly clock: Pick<Clock, "now">;
  readonly observed: ObservedNode;
  readonly target: { readonly machineConfig: MachineConfig; readonly config: NodeConfig };
  originals: Originals;
  ledger: Ledger | undefined;
}

/** Steps that are done on the machine alone; draining involves others and belongs to the loop. */
export type LocalStep = Exclude<Step, { do: "drain" }>;

/** The one place where a step becomes a deed. There is no `default`: a step without a case does not compile. */
export async function performStep(step: LocalStep, site: Worksite, signal: AbortSignal): Promise<void> {
  const { host } = site;
  switch (step.do) {
    case "prefetch":
      for (const image of step.images) await host.os.prefetch(image, signal);
      return;
    case "openLedger":
      return openLedger(step, site, signal);
    case "stageOs":
      return host.os.stage(step.deployment, step.packagesFrom, signal);
    case "discardStaged":
      return host.os.discardStaged(signal);
    case "makeFolder":
      return makeFolder(step.path, site, signal);
    case "writeEntries":
      return writeEntries(step.paths, site, signal);
    case "restoreEntries":
      return restoreEntries(step.paths, site, signal);
    case "enableUnit":
      return host.units.enable(step.unit, signal);
    case "disableUnit":
      return host.units.disable(step.unit, signal);
    case "presetUnit":
      return host.units.preset(step.unit, signal);
    case "setPassword":
      return host.users.setPasswordHash(step.user, site.target.config.passwords.get(step.user) ?? site.originals.passwords[step.user] ?? undefined, signal);
    case "daemonReload":
      await host.units.daemonReload(signal);
      return crossOut({ kind: "daemonReload" }, site, signal);
    case "reload":
      if (await readsConfiguration(step, site, signal)) await host.units.reload(step.unit, signal);
      await expectAlive(step, site, signal);
      return crossOut({ kind: "reload", unit: step.unit }, site, signal);
    case "restart":
      if (await readsConfiguration(step, site, signal)) await host.units.restart(step.unit, signal);
      await expectAlive(step, site, signal);
      return crossOut({ kind: "restart", unit: step.unit }, site, signal);
    case "reboot":
      return reboot(step.because, site, signal);
    case "closeLedger":
      return closeLedger(site, signal);
  }
}

/**
 * Whether there is somebody to be asked. A unit that a configuration took away or masked reads nothing any more, and one
 * that does not run reads its files when it is started. A unit that no configuration names was asked for by mistake, and
 * says so when it is tried.
 */
async function readsConfiguration({ do: verb, unit }: Step & { do: "reload" | "restart" }, site: Worksite, signal: AbortSignal): Promise<boolean> {
  const state = (await site.host.units.state([unit], signal)).get(unit);
  if (state?.enablement === "absent" || state?.enablement === "masked") {
    if (isManaged(unit, site)) return false;
    return verb === "restart" || state.enablement === "absent" || state.activity !== "inactive";
  }
  return verb === "restart" || state?.activity !== "inactive";
}

/** Whether a configuration has ever spoken of the unit; the originals know of those that were superseded half-way, too. */
function isManaged(unit: string, { observed, target, originals }: Worksite): boolean {
  const path = `/etc/systemd/system/${unit}`;
  if (unit in originals.enablement || Object.keys(originals.paths).some((one) => one === path || one.startsWith(`${path}.d/`))) return true;
  return [target.config, ...(observed.previous === undefined ? [] : [observed.previous])].some((config) => speaksOf(config, unit));
}

const speaksOf = (config: NodeConfig, unit: string) => config.enablement.has(unit) || [...config.entries.values()].some(({ origin }) => origin.kind === "unit" && origin.name === unit);

/** Systemd's word that a job is done is not enough: the unit itself must say that it has not failed. */
async function expectAlive({ do: verb, unit }: Step & { do: "reload" | "restart" }, { host }: Worksite, signal: AbortSignal): Promise<void> {
  const state = (await host.units.state([unit], signal)).get(unit);
  if (state?.activity === "failed") throw new McoError("MCO_SERVICE_FAILED", { unit, verb, activity: state.activity });
}

/** What is paid is crossed out at once, so that a daemon that dies now does not do it again for the sake of the next debt. */
async function crossOut(paid: Consequence, site: Worksite, signal: AbortSignal): Promise<void> {
  const { ledger } = site;
  if (ledger === undefined || !ledger.owes.some((owed) => sameConsequence(owed, paid))) return;
  site.ledger = { ...ledger, owes: ledger.owes.filter((owed) => !sameConsequence(owed, paid)) };
  await site.documents.updateLedger(site.ledger, signal);
}

async function reboot(because: string, site: Worksite, signal: AbortSignal): Promise<void> {
  const { ledger, observed, documents, host, target } = site;
  const asked = ledger?.rebootsAsked ?? [];
  if (ledger !== undefined && !asked.includes(observed.bootId)) {
    site.ledger = { ...ledger, rebootsAsked: [...asked, observed.bootId] };
    await documents.updateLedger(site.ledger, signal);
  }
  await host.os.reboot(`update to ${target.config.name}: ${because}`, signal);
}

async function openLedger(step: Step & { do: "openLedger" }, site: Worksite, signal: AbortSignal): Promise<void> {
  const { host, documents, observed, target } = site;
  const paths: Record<string, OriginalEntry | null> = { ...site.originals.paths };
  for (const path of step.paths) paths[path] = originalOf(await host.files.read(path, signal));
  const enablement = { ...site.originals.enablement, ...Object.fromEntries(step.units.map((unit) => [unit, observed.enablement.get(unit) ?? "absent"])) };
  const passwords = { ...site.originals.passwords, ...Object.fromEntries(step.users.map((user) => [user, observed.passwords.get(user) ?? null])) };
  const ownKernelArguments = [...new Set([...site.originals.ownKernelArguments, ...target.config.kernelArguments])];
  const grown = { ...site.originals, paths, enablement, passwords, ownKernelArguments };
  await documents.storeOriginals(grown, signal);
  site.originals = grown;
  const same = observed.ledger?.target === target.config.name ? observed.ledger : undefined;
  const rebootsAsked = observed.forced ? [] : (same?.rebootsAsked ?? []);
  site.ledger = { v: 1, target: target.config.name, bootId: observed.bootId, owes: step.owes, openedAt: same?.openedAt ?? new Date(site.clock.now()).toISOString(), ...(rebootsAsked.length === 0 ? {} : { rebootsAsked }) };
  await documents.openLedger(site.ledger, target.machineConfig, signal);
}

async function makeFolder(path: string, { host, observed, target }: Worksite, signal: AbortSignal): Promise<void> {
  const wanted = target.config.atBirth.folders.get(path);
  if (wanted === undefined) throw new Error(`bug: the plan makes ${path}, which the target does not name`);
  await host.files.makeFolder(path, ownership(wanted, observed, path), signal);
}

async function writeEntries(paths: readonly string[], site: Worksite, signal: AbortSignal): Promise<void> {
  const { host } = site;
  const writes: HostWrite[] = [];
  for (const path of paths) {
    const write = await entryFor(path, site, signal);
    if (write === "absent") await host.files.remove(path, signal);
    else writes.push(write);
  }
  if (writes.length > 0) await host.files.write(writes, signal);
}

/** What is to be written at a path; `absent` where nothing may be. */
async function entryFor(path: string, { host, observed, originals, target: { config } }: Worksite, signal: AbortSignal): Promise<HostWrite | "absent"> {
  const wanted: WantedEntry | undefined = config.entries.get(path);
  switch (wanted?.kind) {
    case "absent":
      return "absent";
    case "link":
      return { path, entry: { kind: "link", target: wanted.target } };
    case "file":
      return { path, entry: { kind: "file", contents: wanted.contents, ...ownership(wanted, observed, path) }, ...(wanted.folder === undefined ? {} : { folder: ownership(wanted.folder, observed, path) }) };
    case undefined: {
      const link = config.atBirth.links.get(path);
      if (link !== undefined) return { path, entry: { kind: "link", target: link } };
      const more = config.atBirth.appends.get(path);
      const whole = more === undefined ? undefined : appendedTo(originals, more.contents, path);
      if (more === undefined || whole === undefined) throw new Error(`bug: the plan writes ${path}, which the target does not name`);
      const is = await host.files.read(path, signal);
      return { path, entry: { kind: "file", contents: whole, ...ownership({ ...more, mode: more.mode ?? (is?.kind === "file" ? is.mode : 0o644) }, observed, path) } };
    }
  }
}

function ownership({ mode, user, group }: { readonly mode: number; readonly user: Owner; readonly group: Owner }, { users, groups }: ObservedNode, path: string): Ownership {
  return { mode, uid: idOf(user, users, path), gid: idOf(group, groups, path) };
}

function idOf(owner: Owner, ids: ReadonlyMap<string, number>, path: string): number {
  if (owner.id !== undefined || owner.name === undefined) return owner.id ?? 0;
  const id = ids.get(owner.name);
  if (id === undefined) throw new McoError("MCO_OWNER_UNKNOWN", { path, owner: owner.name });
  return id;
}

async function restoreEntries(paths: readonly string[], { host, originals }: Worksite, signal: AbortSignal): Promise<void> {
  const writes: HostWrite[] = [];
  for (const path of paths) {
    const original = originals.paths[path];
    if (original === null || original === undefined) await host.files.remove(path, signal);
    else writes.push({ path, entry: original.kind === "link" ? original : { kind: "file", contents: decodeBase64(original.contents), mode: original.mode, uid: original.uid, gid: original.gid } });
  }
  if (writes.length > 0) await host.files.write(writes, signal);
}

/** The proven configuration, for people and for handing the node to another daemon: no decision of ours needs it. */
export const currentConfigOf = (machineConfig: MachineConfig): HostWrite => ({ path: hostPaths.currentConfig, entry: { kind: "file", contents: new TextEncoder().encode(JSON.stringify(machineConfig)), mode: 0o600, uid: 0, gid: 0 } });

async function closeLedger(site: Worksite, signal: AbortSignal): Promise<void> {
  const { host, documents, target, originals } = site;
  const { config, machineConfig } = target;
  await host.files.remove(hostPaths.force, signal);
  await host.files.write([currentConfigOf(machineConfig)], signal);
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
  site.ledger = undefined;
}

/** Paths worth watching for drift. */
export const watchedPaths = (config: NodeConfig | undefined): readonly string[] => [...(config?.entries.entries() ?? [])].filter(([, wanted]: [string, WantedEntry]) => wanted.kind !== "absent").map(([path]) => path);
