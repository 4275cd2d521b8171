import { McoError } from "../api/errors.ts";
import type { MachineConfig } from "../api/kinds/machine-config.ts";
import { hostPaths, imageLabels } from "../api/names.ts";
import { type Consequence, sameConsequence } from "../core/config/change.ts";
import {
  type NodeConfig,
  type WantedEntry,
  emptyNodeConfig,
  findUnitIn,
  managedUnits,
} from "../core/config/node-config.ts";
import type { OriginalEntry, Originals } from "../core/machine/observed-content.ts";
import { originalToRecord, originalsToStore, originalsUnder, withFound } from "../core/machine/kept-originals.ts";
import { linksOfUnits, originalUnits } from "../core/machine/unit-gap.ts";
import { type PayloadEntry, payloadOf, printPayload, settleUnitText } from "../core/config/image-content.ts";
import { contentMismatch, contentSaid, isTargetOf, pairOf } from "../core/machine/image-target.ts";
import type { Step } from "../core/machine/plan-node.ts";
import type { LocalPayload } from "../core/machine/image-content-plan.ts";
import type { Host, HostWrite } from "../host/host.ts";
import type { Clock } from "../ports/clock.ts";
import type { DocumentStore } from "./machine-documents.ts";
import { originalOf, readOriginal } from "./observe-host.ts";
import { performContent } from "./perform-content.ts";
import type { Ledger, ObservedNode } from "../core/machine/observed-node.ts";

/**
 * The context that steps are carried out with. `originals` and `ledger` are as on the disk; the executor owns them for
 * one plan.
 */
export interface StepContext {
  readonly host: Host;
  readonly documents: DocumentStore;
  readonly clock: Pick<Clock, "now">;
  readonly observed: ObservedNode;
  readonly target: { readonly machineConfig: MachineConfig; readonly config: NodeConfig };
  /** Updates the machine's pull credentials; absent where no controller can. */
  readonly refreshCredentials?: ((signal: AbortSignal) => Promise<void>) | undefined;
  originals: Originals;
  ledger: Ledger | undefined;
}

/** Steps on the machine alone; draining involves other components and belongs to the loop. */
export type LocalStep = Exclude<Step, { do: "drain" }>;

/** The one place where a step is executed. There is no `default`: a step without a case does not compile. */
export async function performStep(step: LocalStep, site: StepContext, signal: AbortSignal): Promise<void> {
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
    case "writeEntries":
    case "restoreEntries":
    case "relinkUnits":
    case "enableUnit":
    case "disableUnit":
    case "presetUnit":
    case "setPassword":
      return performContent(
        step,
        { host, observed: site.observed, originals: site.originals, config: site.target.config },
        signal,
      );
    case "refreshCredentials":
      return site.refreshCredentials?.(signal);
    case "keepPayload":
      return keepPayload(step, site, signal);
    case "dropPayload":
      return forgetPayloads(host, site.documents, true, signal);
    case "settle":
      return host.units.restart(hostPaths.settleUnit, signal);
    case "daemonReload":
      await host.units.daemonReload(signal);
      return markDone({ kind: "daemonReload" }, site, signal);
    case "reload":
      if (await readsConfiguration(step, site, signal)) await host.units.reload(step.unit, signal);
      await expectAlive(step, site, signal);
      return markDone({ kind: "reload", unit: step.unit }, site, signal);
    case "restart":
      if (await readsConfiguration(step, site, signal)) await host.units.restart(step.unit, signal);
      await expectAlive(step, site, signal);
      return markDone({ kind: "restart", unit: step.unit }, site, signal);
    case "reboot":
      return reboot(step.because, site, signal);
    case "closeLedger":
      return closeLedger(site, signal);
  }
}

/**
 * Whether a reload can reach the unit. A unit that a configuration removed or masked reads nothing any more, and a
 * stopped unit reads its files when it starts. A unit that no configuration names was requested by mistake; trying it
 * reports the error.
 */
async function readsConfiguration(
  { do: verb, unit }: Step & { do: "reload" | "restart" },
  site: StepContext,
  signal: AbortSignal,
): Promise<boolean> {
  const state = (await site.host.units.state([unit], signal)).get(unit);
  if (state?.enablement === "absent" || state?.enablement === "masked") {
    if (isManaged(unit, site)) return false;
    return verb === "restart" || state.enablement === "absent" || state.activity !== "inactive";
  }
  return verb === "restart" || state?.activity !== "inactive";
}

/** Whether any configuration has named the unit; the originals include configurations that were superseded half-way. */
function isManaged(unit: string, { observed, target, originals }: StepContext): boolean {
  const path = `/etc/systemd/system/${unit}`;
  if (
    Object.hasOwn(originals.enablement, unit) ||
    Object.keys(originals.paths).some((one) => one === path || one.startsWith(`${path}.d/`))
  )
    return true;
  return [target.config, ...(observed.previous === undefined ? [] : [observed.previous])].some((config) =>
    speaksOf(config, unit),
  );
}

const speaksOf = (config: NodeConfig, unit: string) =>
  config.enablement.has(unit) ||
  [...config.entries.values()].some(({ origin }) => origin.kind === "unit" && origin.name === unit);

/** Systemd's report that a job is done is not enough: the unit itself must not be in a failed state. */
async function expectAlive(
  { do: verb, unit }: Step & { do: "reload" | "restart" },
  { host }: StepContext,
  signal: AbortSignal,
): Promise<void> {
  const state = (await host.units.state([unit], signal)).get(unit);
  if (state?.activity === "failed") throw new McoError("MCO_SERVICE_FAILED", { unit, verb, activity: state.activity });
}

/**
 * Cross out paid debts at once, so that a daemon that restarts now does not repeat them for the sake of the next debt.
 */
async function markDone(paid: Consequence, site: StepContext, signal: AbortSignal): Promise<void> {
  const { ledger } = site;
  if (ledger === undefined || !ledger.owes.some((owed) => sameConsequence(owed, paid))) return;
  site.ledger = {
    ...ledger,
    owes: ledger.owes.filter((owed) => !sameConsequence(owed, paid)),
    paid: [...(ledger.paid ?? []), paid],
  };
  await site.documents.updateLedger(site.ledger, signal);
}

async function reboot(because: string, site: StepContext, signal: AbortSignal): Promise<void> {
  const { ledger, observed, documents, host, target } = site;
  const asked = ledger?.rebootsAsked ?? [];
  if (ledger !== undefined && !asked.includes(observed.bootId)) {
    site.ledger = { ...ledger, rebootsAsked: [...asked, observed.bootId] };
    await documents.updateLedger(site.ledger, signal);
  }
  await host.os.reboot(`update to ${target.config.name}: ${because}`, signal);
}

/** Why a fetched image does not hold the expected content; checked before the machine is changed. */
export async function contentMismatchOf(
  host: Host,
  config: NodeConfig,
  images: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const pair = pairOf(config);
  if (pair === undefined || !images.includes(pair.image)) return undefined;
  const says = contentSaid((await host.os.labels(pair.image, signal))[imageLabels.content]);
  return says === pair.content ? undefined : contentMismatch(pair, says);
}

async function openLedger(step: Step & { do: "openLedger" }, site: StepContext, signal: AbortSignal): Promise<void> {
  const { host, documents, observed, target } = site;
  const found = new Map<string, OriginalEntry | null>();
  const unreadable: string[] = [];
  for (const path of step.paths) {
    const original = await readOriginal(host, path, signal);
    if (original.isUnreadable) unreadable.push(path);
    // An image of ours ships what it was built with.
    const shipped = observed.payload === "image" ? undefined : await host.files.vendor(path, signal);
    found.set(path, originalToRecord(original.entry, originalOf(shipped) ?? undefined));
  }
  const { originals } = withFound(site.originals, found, unreadable);
  const originalUnit = originalUnits(observed);
  const units = step.units.map((unit) => [unit, originalUnit(unit)] as const);
  const enablement = {
    ...site.originals.enablement,
    ...Object.fromEntries(units.map(([unit, was]) => [unit, was.enablement])),
  };
  const links = { ...site.originals.links, ...linksOfUnits(units) };
  const passwords = {
    ...site.originals.passwords,
    ...Object.fromEntries(step.users.map((user) => [user, observed.passwords.get(user) ?? null])),
  };
  const ownKernelArguments = [...new Set([...site.originals.ownKernelArguments, ...target.config.kernelArguments])];
  const grown = { ...originals, enablement, links, passwords, ownKernelArguments };
  await documents.storeOriginals(grown, signal);
  site.originals = grown;
  const same =
    observed.ledger !== undefined && isTargetOf(observed.ledger, target.config) ? observed.ledger : undefined;
  const rebootsAsked = observed.forced ? [] : (same?.rebootsAsked ?? []);
  const pair = pairOf(target.config);
  const deployment = step.deployment ?? same?.deployment;
  site.ledger = {
    v: 1,
    target: target.config.name,
    ...pair,
    ...(deployment === undefined ? {} : { deployment }),
    bootId: observed.bootId,
    owes: step.owes,
    debts: step.debts,
    ...(step.paid.length === 0 ? {} : { paid: step.paid }),
    ...(step.passwords.length === 0 ? {} : { passwords: step.passwords }),
    openedAt: same?.openedAt ?? new Date(site.clock.now()).toISOString(),
    ...(rebootsAsked.length === 0 ? {} : { rebootsAsked }),
  };
  await documents.openLedger(site.ledger, { config: target.machineConfig, pair }, signal);
}

const rootFile = (path: string, text: string, mode: number): HostWrite => ({
  path,
  entry: { kind: "file", contents: new TextEncoder().encode(text), mode, uid: 0, gid: 0 },
});
const localUnit = `/etc/systemd/system/${hostPaths.settleUnit}`;

/** The payload first, then the unit that reads it: without a payload the unit does nothing. */
async function keepPayload(
  { image, of }: Step & { do: "keepPayload" },
  { host, documents, observed, originals, target }: StepContext,
  signal: AbortSignal,
): Promise<void> {
  const payload =
    of === "target"
      ? payloadOf(target.config, observed)
      : withOriginals(observed.previous ?? emptyNodeConfig, { ...observed, originals });
  await documents.keepPayload(image, printPayload(payload), signal);
  await host.files.write([rootFile(localUnit, settleUnitText, 0o644)], signal);
  await host.units.enable(hostPaths.settleUnit, signal);
}

/**
 * The payload of a configuration that restores originals wherever the configuration is silent: an interrupted update may
 * have left other content. It is not silent of units that it masks, and of those that are enabled together with others.
 */
function withOriginals(config: NodeConfig, observed: ObservedNode): LocalPayload {
  const { shippedUnits = new Map() } = observed;
  const originals = originalsToStore(observed.originals);
  const { paths, enablement } = originals;
  const hidden = new Set(originals.hidden);
  const payload = payloadOf(config, observed);
  const managed = managedUnits(config, findUnitIn(config, shippedUnits));
  const units = Object.entries(enablement).flatMap(([name, was]) =>
    // Where presets decide, the recorded original says so.
    managed.has(name) || was === "unknown" ? [] : [{ name, enabled: was === "enabled" }],
  );
  const named = new Set(payload.entries.map(({ path }) => path));
  const before = Object.entries(paths).flatMap(([path, original]): PayloadEntry[] => {
    // What the machine reads where the OS ships it is absent nowhere.
    if (named.has(path) || hidden.has(path)) return [];
    if (original === null) return [{ path, kind: "absent" }];
    return [
      original.kind === "link"
        ? { path, ...original }
        : {
            path,
            kind: "file",
            contents: original.contents,
            mode: original.mode,
            uid: original.uid,
            gid: original.gid,
          },
    ];
  });
  return {
    ...payload,
    entries: [...payload.entries, ...before].sort((a, b) => (a.path < b.path ? -1 : 1)),
    units: [...payload.units, ...units],
    originals,
  };
}

/**
 * Removes payloads that no deployment boots any more. `proven`: the machine has its desired state, so its running
 * system needs neither a payload nor the unit that reads it here; another deployment has that unit in an /etc of its
 * own.
 */
export async function forgetPayloads(
  host: Host,
  documents: DocumentStore,
  proven: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { booted, staged, rollback } = await host.os.status(signal);
  const kept = [
    proven ? undefined : booted.image,
    staged?.image,
    proven && rollback?.image === booted.image ? undefined : rollback?.image,
  ];
  for (const image of await documents.payloadImages(signal))
    if (!kept.includes(image)) await documents.forgetPayload(image, signal);
  // Without a payload the unit does nothing; without the unit a payload would be waited for.
  if (proven && staged === undefined && (await host.files.read(localUnit, signal)) !== undefined) {
    await host.units.disable(hostPaths.settleUnit, signal);
    await host.files.remove(localUnit, signal);
  }
}

/**
 * The proven configuration and image, for users and for handing the node to another daemon; no decision here needs
 * them.
 */
export async function writeCurrent(
  host: Host,
  machineConfig: MachineConfig,
  image: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  await host.files.write(
    [
      rootFile(hostPaths.currentConfig, JSON.stringify(machineConfig), 0o600),
      ...(image === undefined ? [] : [rootFile(hostPaths.currentImage, image, 0o600)]),
    ],
    signal,
  );
  if (image === undefined && (await host.files.read(hostPaths.currentImage, signal)) !== undefined)
    await host.files.remove(hostPaths.currentImage, signal);
}

async function closeLedger(site: StepContext, signal: AbortSignal): Promise<void> {
  const { host, documents, target, originals } = site;
  const { config, machineConfig } = target;
  await host.files.remove(hostPaths.force, signal);
  await writeCurrent(host, machineConfig, pairOf(config)?.image, signal);
  await forgetPayloads(host, documents, true, signal);
  const managed = managedUnits(config, findUnitIn(config, site.observed.shippedUnits ?? new Map()));
  const { hidden = [], ...shown } = originals;
  const kept = config.imageContent === "full" ? { ...shown, hidden } : shown;
  await documents.closeLedger(
    { config: machineConfig, pair: pairOf(config) },
    { ...originalsUnder(config, managed, kept), ownKernelArguments: [] },
    signal,
  );
  site.ledger = undefined;
}

/** Paths worth watching for drift. */
export const watchedPaths = (config: NodeConfig | undefined): readonly string[] =>
  [...(config?.entries.entries() ?? [])]
    .filter(([, wanted]: [string, WantedEntry]) => wanted.kind !== "absent")
    .map(([path]) => path);
