import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { McoError } from "../api/errors.ts";
import { own } from "../api/schema/own.ts";
import { hostPaths } from "../api/names.ts";
import { matchesWanted } from "../core/machine/content-gap.ts";
import type { OriginalEntry, Originals } from "../core/machine/observed-content.ts";
import { originalsOnSystem, withFound } from "../core/machine/kept-originals.ts";
import { sameDeployment } from "../core/machine/deployment.ts";
import { type UnitOriginal, linksOfUnits, originalUnits } from "../core/machine/unit-gap.ts";
import { fitToAccounts } from "../core/machine/judge-target.ts";
import { type NodeConfig, bringsUnit } from "../core/config/node-config.ts";
import { type Payload, readPayload } from "../core/config/image-content.ts";
import {
  type LocalPayload,
  type ImageContentPlan,
  type ImageContentView,
  isReadEarly,
  maxApplyTries,
  originalToKeep,
  planImageContent,
  targetOfPayload,
  originalsAfterApplying,
} from "../core/machine/image-content-plan.ts";
import type { Host, OsStatus } from "../host/host.ts";
import type { Ports } from "../ports/index.ts";
import { backedOff } from "../ports/random.ts";
import { type DocumentStore, documentStore } from "./machine-documents.ts";
import { noOriginals, observeEntry, observeUnits, originalOf, readOriginal } from "./observe-host.ts";
import { performContent } from "./perform-content.ts";
import { readConfig } from "../core/machine/read-config.ts";
import type { MachineDocuments } from "../core/machine/machine-record.ts";
import type { Ledger, ImageContentRecord } from "../core/machine/observed-node.ts";

/** Between tries of one boot: short enough for the kubelet, which waits. */
const retry = { firstMs: 1_000, lastMs: 5_000, spread: 0.2 };

const caTrust = "coreos-update-ca-trust.service";
const anchors = "/etc/pki/ca-trust/source/anchors/";

export type Settled =
  /** The booted system has no content to apply. */
  | { readonly verdict: "nothing" }
  | { readonly verdict: "settled"; readonly changed: readonly string[] }
  /** A running service still has to read the changes. */
  | { readonly verdict: "rebooting"; readonly because: string }
  | {
      readonly verdict: "failed";
      readonly path?: string;
      readonly cause: string;
      /** The machine boots what it had before. */ readonly goesBack: boolean;
    };

interface Source {
  readonly from: "image" | "local";
  readonly text: string;
}

/** A failure that can name a path. */
class ApplyFailure extends Error {
  readonly path: string | undefined;
  constructor(cause: string, path?: string) {
    super(cause);
    this.path = path;
  }
}

/** Applies the content of the booted system once. */
interface Settling {
  readonly host: Host;
  readonly documents: DocumentStore;
  readonly status: OsStatus;
  readonly source: Source;
  readonly known: MachineDocuments;
  /** Content was already applied at boot: an administrator asks for it again. */
  readonly isOver: boolean;
  readonly base: ImageContentRecord;
  /** All changes of this boot, over all tries. */
  changed: readonly string[];
}

/**
 * Applies the payload of the booted system to the machine: files, units and accounts. It needs no network, no container
 * runtime and no API server. It may be killed at any point: the next run does the rest. A payload that was laid down on
 * the machine for the running image takes precedence over the image's own.
 */
export async function applyImageContent(
  options: { readonly host: Host } & Pick<Ports, "clock" | "random" | "log">,
  signal: AbortSignal,
): Promise<Settled> {
  const { host, log, clock, random } = options;
  const documents = documentStore(host.ledger);
  const status = await host.os.status(signal);
  const source = await sourceOf(host, documents, status, signal);
  if (source === undefined) return { verdict: "nothing" };

  const known = await documents.load(signal);
  const isOver = known.settled?.bootId === status.bootId && known.settled.result === "settled";
  const base = beginRecord(known.settled, isOver, source, status);
  const settling: Settling = { host, documents, status, source, known, isOver, base, changed: base.changed };
  for (let tries = 1; ; tries += 1) {
    try {
      return await applyOnce(settling, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn({ error, tries }, "the machine could not be made equal to its payload");
      if (tries >= maxApplyTries) return giveUp(error, settling, signal);
      await clock.sleep(backedOff(random, tries, retry), signal);
    }
  }
}

function beginRecord(
  before: ImageContentRecord | undefined,
  isOver: boolean,
  { text }: Source,
  { bootId, booted }: OsStatus,
): ImageContentRecord {
  return {
    v: 1,
    bootId,
    deployment: booted,
    payload: bytesToHex(sha256(utf8ToBytes(text))),
    // Changes of an earlier run in this boot that was killed still count.
    changed: before?.bootId === bootId && !isOver ? before.changed : [],
    result: "settling",
    ...(before?.rebootAskedIn !== undefined && sameDeployment(before.deployment, booted)
      ? { rebootAskedIn: before.rebootAskedIn }
      : {}),
  };
}

async function applyOnce(settling: Settling, signal: AbortSignal): Promise<Settled> {
  const { host, documents, status, source, known, isOver, base } = settling;
  const payload = readPayload(source.text);
  if ("problem" in payload) throw new ApplyFailure(`its payload cannot be read: ${payload.problem}`);
  const { changed, early } = await makeEqual(payload, settling, signal);
  if (early.length > 0 && !isOver) {
    const because = `${early.join(", ")} changed after what reads it had started`;
    if (base.rebootAskedIn !== undefined && base.rebootAskedIn !== status.bootId)
      throw new ApplyFailure(`${because}, and a reboot has not helped`, early[0]);
    await documents.storeSettled({ ...base, changed, result: "rebooting", rebootAskedIn: status.bootId }, signal);
    await host.os.reboot(`settling: ${because}`, signal);
    return { verdict: "rebooting", because };
  }
  const { ledger } = known;
  if (ledger?.failed !== undefined && isOf(ledger, status)) {
    const { failed: _failed, ...cleared } = ledger;
    await documents.updateLedger(cleared, signal);
  }
  const owed = early.length > 0 ? { owed: early } : {};
  await documents.storeSettled({ ...base, changed, result: "settled", ...owed }, signal);
  return { verdict: "settled", changed };
}

/** @returns the changes of this boot, and which of them services have read already. */
async function makeEqual(
  payload: Payload,
  settling: Settling,
  signal: AbortSignal,
): Promise<{ readonly changed: readonly string[]; readonly early: readonly string[] }> {
  const { host, documents, source, base } = settling;
  const target = await fitting(targetOfPayload(payload), host, signal);
  const view = await observe(host, documents, target, source.from, signal);
  const plan = planImageContent(view, target);
  const changed = [...new Set([...settling.changed, ...plan.changed])].sort();
  // First record the managed paths, then the pending changes, then change: a crash leaves no change unrecorded.
  const before = (payload as LocalPayload).originals;
  const originals = await remembered(host, view, plan, target, source.from, before, signal);
  if (originals !== view.originals) await documents.storeOriginals(originals, signal);
  if (plan.steps.length > 0) await documents.storeSettled({ ...base, changed }, signal);
  settling.changed = changed;
  const toRestore = { ...originals, paths: { ...originals.paths, ...plan.originals.paths } };
  for (const step of plan.steps)
    await performContent(step, { host, observed: view, originals: toRestore, config: target }, signal);
  if (plan.steps.length > 0) await expectEqual(target, settling, signal);

  const kept = originalsAfterApplying(originals, target, view, source.from);
  if (JSON.stringify(kept) !== JSON.stringify(originals)) await documents.storeOriginals(kept, signal);
  await actOn(changed, host, signal);
  return { changed, early: changed.filter((what) => isReadEarly(what, view.active)) };
}

/** Verify that the changes were written. */
async function expectEqual(
  target: NodeConfig,
  { host, documents, source }: Settling,
  signal: AbortSignal,
): Promise<void> {
  const { differences, changed } = planImageContent(
    await observe(host, documents, target, source.from, signal),
    target,
  );
  if (differences.length > 0)
    throw new ApplyFailure(`${differences.slice(0, 5).join(", ")} differ after they were written`, changed[0]);
}

/** Reloads changed units and certificates, and everything that a boot starts. */
async function actOn(changed: readonly string[], host: Host, signal: AbortSignal): Promise<void> {
  if (changed.some((what) => what.startsWith("/etc/systemd/system/") || !what.startsWith("/")))
    await host.units.daemonReload(signal);
  if (changed.some((what) => what.startsWith(anchors))) await host.units.restart(caTrust, signal);
  if (changed.length > 0) await host.units.startEnabled(signal);
}

/** Without the content of accounts that this machine does not have. */
async function fitting(target: NodeConfig, host: Host, signal: AbortSignal): Promise<NodeConfig> {
  const users = new Map<string, number>();
  for (const name of new Set([...target.passwords.keys(), "core"])) {
    const user = await host.users.lookup(name, signal);
    if (user !== undefined) users.set(name, user.uid);
  }
  return fitToAccounts(target, users);
}

const isOf = ({ deployment }: Ledger, { booted }: OsStatus): boolean =>
  deployment !== undefined && sameDeployment(deployment, booted);

/**
 * If an update to the running system is under way, the machine goes back to its previous one, which needs no other
 * machine's help.
 */
async function giveUp(error: unknown, settling: Settling, signal: AbortSignal): Promise<Settled> {
  const { host, documents, status, known, base, changed } = settling;
  const cause = error instanceof Error ? error.message : String(error);
  const path = pathOf(error);
  const where = path === undefined ? {} : { path };
  const goesBack = known.ledger !== undefined && isOf(known.ledger, status) && status.rollback !== undefined;
  if (goesBack) await documents.updateLedger({ ...known.ledger, failed: { ...where, cause } }, signal);
  await documents.storeSettled({ ...base, changed, result: "failed", ...where, cause }, signal);
  if (goesBack) {
    await host.os.bootPrevious(signal);
    const at = path === undefined ? "" : ` at ${path}`;
    await host.os.reboot(`settling failed${at}: the machine goes back to its previous system`, signal);
  }
  return { verdict: "failed", ...where, cause, goesBack };
}

/** The path that an error names. */
function pathOf(error: unknown): string | undefined {
  if (error instanceof ApplyFailure) return error.path;
  const path = error instanceof McoError ? error.facts["path"] : undefined;
  return typeof path === "string" ? path : undefined;
}

async function sourceOf(
  host: Host,
  documents: DocumentStore,
  { booted }: OsStatus,
  signal: AbortSignal,
): Promise<Source | undefined> {
  const local = await documents.payload(booted.image, signal);
  if (local !== undefined) return { from: "local", text: local };
  const own = await host.files.read(hostPaths.payload, signal);
  return own?.kind === "file" ? { from: "image", text: new TextDecoder().decode(own.contents) } : undefined;
}

/** The state of the machine, for everything that its payload and the previously managed content name. */
async function observe(
  host: Host,
  documents: DocumentStore,
  target: NodeConfig,
  from: Source["from"],
  signal: AbortSignal,
): Promise<ImageContentView> {
  const known = await documents.load(signal);
  const { booted } = await host.os.status(signal);
  const recorded = known.originals ?? noOriginals(booted.kernelArguments);
  const entries: [string, NonNullable<Awaited<ReturnType<typeof observeEntry>>>][] = [];
  const vendor = new Map<string, OriginalEntry>();
  for (const path of new Set([...target.entries.keys(), ...Object.keys(recorded.paths)])) {
    const entry = await observeEntry(host, path, signal);
    if (entry !== undefined) entries.push([path, entry]);
    const shipped = originalOf(await host.files.vendor(path, signal));
    if (shipped !== null) vendor.set(path, shipped);
  }
  const originals = from === "local" ? originalsOnSystem(recorded, vendor) : recorded;
  const previous = known.previous === undefined ? undefined : readConfig(known.previous.config);
  const before = previous?.verdict === "read" ? previous.wanted.config : undefined;
  const { states, ...units } = await observeUnits(
    host,
    {
      previous: before,
      target,
      others: unitsNamed([...target.entries.keys(), ...Object.keys(originals.paths)]),
      originals,
    },
    signal,
  );
  const accounts = new Set([...target.passwords.keys(), ...Object.keys(originals.passwords)]);
  const passwords = new Map<string, string>();
  for (const user of accounts) {
    const hash = await host.users.passwordHash(user, signal);
    if (hash !== undefined) passwords.set(user, hash);
  }
  return {
    entries: new Map(entries),
    ...units,
    active: new Set([...states].flatMap(([name, { activity }]) => (activity === "active" ? [name] : []))),
    passwords,
    users: new Map(),
    groups: new Map(),
    previous: before,
    vendor,
  };
}

/** Units whose text or drop-ins are among paths. */
const unitsNamed = (paths: readonly string[]) =>
  paths.flatMap((path) => /^\/etc\/systemd\/system\/([^/]+?)(?:\.d\/[^/]+)?$/.exec(path)?.[1] ?? []);

/** The memory of the machine, with the content that is managed from now on. */
async function remembered(
  host: Host,
  view: ImageContentView,
  { remember }: ImageContentPlan,
  target: NodeConfig,
  from: Source["from"],
  before: Originals | undefined,
  signal: AbortSignal,
): Promise<Originals> {
  if (remember.paths.length + remember.units.length + remember.users.length === 0) return view.originals;
  const found = new Map<string, OriginalEntry | null>();
  const unreadable: string[] = [];
  const hidden = new Set(view.originals.hidden);
  for (const path of remember.paths) {
    const wanted = target.entries.get(path);
    const known = before?.paths[path];
    const present = known === undefined ? await readOriginal(host, path, signal) : undefined;
    if (present?.isUnreadable === true || before?.notKept?.includes(path) === true) unreadable.push(path);
    const original =
      known !== undefined
        ? known
        : originalToKeep(
            present?.entry ?? null,
            wanted !== undefined && matchesWanted(view.entries.get(path), wanted, view),
            view.vendor.get(path),
            from,
          );
    found.set(path, original);
    if (original === null && (from === "image" || before?.hidden?.includes(path) === true)) hidden.add(path);
  }
  const { originals } = withFound(view.originals, found, unreadable);
  // A unit whose text the payload provides had no original, but for what the OS ships.
  const originalUnit = originalUnits(view);
  const units = remember.units.map((unit): readonly [string, UnitOriginal] => {
    const found = bringsUnit(target, unit) ? { enablement: "absent", links: {} } : originalUnit(unit);
    const was = own(before?.enablement, unit);
    if (was === undefined || was === "unknown") return [unit, was === undefined ? found : { enablement: was }];
    const links = before?.links?.[unit] ?? found.links;
    return [unit, { enablement: was, ...(links === undefined ? {} : { links }) }];
  });
  return {
    ...originals,
    ...(hidden.size === 0 ? {} : { hidden: [...hidden].sort() }),
    enablement: {
      ...view.originals.enablement,
      ...Object.fromEntries(units.map(([unit, was]) => [unit, was.enablement])),
    },
    links: { ...view.originals.links, ...linksOfUnits(units) },
    passwords: {
      ...view.originals.passwords,
      ...Object.fromEntries(
        remember.users.map((user) => {
          const known = own(before?.passwords, user);
          return [user, known === undefined ? (view.passwords.get(user) ?? null) : known];
        }),
      ),
    },
  };
}
