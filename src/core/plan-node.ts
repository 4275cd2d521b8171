import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { ClusterPolicies } from "../api/machine-configuration.ts";
import { decodeBase64, textOf } from "../ignition/data-url.ts";
import type { Owner } from "../ignition/types.ts";
import { type Because, type Change, type Consequence, type Op, describeChange, sameConsequence } from "./change.ts";
import { type Deployment, type OsAbilities, deploymentChanges, sameDeployment, wantedDeployment } from "./deployment.ts";
import { type EffectivePolicies, consequencesOf, defaultPolicies, registriesConf } from "./disruption-policy.ts";
import { type NodeConfig, type WantedEntry, changesOf, compareNodeConfigs, emptyNodeConfig } from "./node-config.ts";

/** What is at a path of a machine, as far as a plan needs to know. */
export type ObservedEntry =
  | { readonly kind: "file"; readonly digest: string; readonly mode: number; readonly uid: number; readonly gid: number }
  | { readonly kind: "link"; readonly target: string }
  | { readonly kind: "folder"; readonly mode: number; readonly uid: number; readonly gid: number };

/** What was there before this suite first managed something, so that removal can restore it. */
export interface Originals {
  /** Path → the entry that was there (contents base64), or `null` where nothing was. */
  readonly paths: Readonly<Record<string, OriginalEntry | null>>;
  /** Unit → its enablement before. */
  readonly enablement: Readonly<Record<string, string>>;
  /** User → password hash before, `null` for none. */
  readonly passwords: Readonly<Record<string, string | null>>;
  /** Kernel arguments that the machine was born with. */
  readonly kernelArguments: readonly string[];
  /** Kernel arguments that an update of ours may have put there since the last one that was finished. */
  readonly ownKernelArguments: readonly string[];
}

export type OriginalEntry =
  | { readonly kind: "file"; readonly contents: string; readonly digest: string; readonly mode: number; readonly uid: number; readonly gid: number }
  | { readonly kind: "link"; readonly target: string };

/** The daemon's durable debts: written before the first change, closed last. */
export interface Ledger {
  readonly v: 1;
  /** Rendered name that the update goes to. */
  readonly target: string;
  /** Boot in which the debts were made; another boot has paid them. */
  readonly bootId: string;
  readonly owes: readonly Consequence[];
  /** RFC 3339. */
  readonly openedAt: string;
  /** Boots in which a reboot was asked for, so that a machine that does not take its target is not rebooted for ever. */
  readonly rebootsAsked?: readonly string[];
}

/** Reboots that a target gets to boot what was staged for it. */
export const mostReboots = 3;

/** The machine as observed: nothing here is what we believe we wrote. */
export interface ObservedNode {
  readonly bootId: string;
  readonly booted: Deployment;
  readonly staged: Deployment | undefined;
  readonly can: OsAbilities;
  /** Whether the kernel runs in FIPS mode; `undefined` where it does not say. */
  readonly fips: boolean | undefined;
  /** Every path that the previous config, the target or the originals name; absent ones are missing. */
  readonly entries: ReadonlyMap<string, ObservedEntry>;
  readonly enablement: ReadonlyMap<string, string>;
  readonly passwords: ReadonlyMap<string, string>;
  readonly users: ReadonlyMap<string, number>;
  readonly groups: ReadonlyMap<string, number>;
  readonly originals: Originals;
  readonly ledger: Ledger | undefined;
  /** The configuration that the machine was last proven to have, or started with; `undefined` on one that has neither. */
  readonly previous: NodeConfig | undefined;
  /** It has been in service with a configuration of ours: then it is drained before it is disrupted. */
  readonly inService: boolean;
  /** Somebody asked to apply everything again (the force file). */
  readonly forced: boolean;
  /** The only control-plane machine: its pods have nowhere to go. */
  readonly onlyControlPlane: boolean;
}

export type Step =
  /** Fetches and verifies what the machine does not hold yet, while nothing has changed. */
  | { readonly do: "prefetch"; readonly images: readonly string[] }
  | { readonly do: "drain" }
  /** Remembers what is at `paths`, and writes down what the machine will be owed. */
  | { readonly do: "openLedger"; readonly owes: readonly Consequence[]; readonly paths: readonly string[]; readonly units: readonly string[]; readonly users: readonly string[] }
  | { readonly do: "stageOs"; readonly deployment: Deployment; readonly packagesFrom: string | undefined }
  | { readonly do: "discardStaged" }
  | { readonly do: "makeFolder"; readonly path: string }
  | { readonly do: "writeEntries"; readonly paths: readonly string[] }
  /** Puts back what was there before us, or removes. */
  | { readonly do: "restoreEntries"; readonly paths: readonly string[] }
  | { readonly do: "enableUnit" | "disableUnit" | "presetUnit"; readonly unit: string }
  | { readonly do: "setPassword"; readonly user: string }
  | { readonly do: "daemonReload" }
  | { readonly do: "reload" | "restart"; readonly unit: string }
  | { readonly do: "reboot"; readonly because: string }
  /** The machine has the target: it becomes the previous configuration, and nothing is owed any more. */
  | { readonly do: "closeLedger" };

export type NodePlan =
  | { readonly verdict: "inSync" }
  /** The machine was rebooted for its target `tried` times and still boots something else. */
  | { readonly verdict: "bootFails"; readonly tried: number; readonly booted: Deployment; readonly wanted: Deployment }
  | {
      readonly verdict: "change";
      readonly changes: readonly Change[];
      /** Where the machine differs from what it was last proven to have, without anyone having asked for it. */
      readonly drift: readonly Change[];
      readonly because: readonly Because[];
      readonly steps: readonly Step[];
    };

/**
 * Decides how a machine gets from what it is to what it should be.
 *
 * A plan first writes into the ledger what the machine will be owed, and closes the ledger last: a daemon killed between
 * writing a file and reloading its service finds the file in place when it comes back, and still knows to reload.
 * Going back is no second mechanism: it is a plan with the previous configuration as target.
 */
export function planNode(node: ObservedNode, target: NodeConfig, policies: ClusterPolicies | EffectivePolicies | undefined): NodePlan {
  const gap = gapBetween(node, target);
  const asked = askedFor(node, target);
  const changes = mergeChanges(asked, gap.changes);
  const drift = driftOf(node);
  const debts = unpaid(node);
  const force: readonly Because[] = node.forced ? [{ consequence: { kind: "reboot" }, changes: [], why: "the force file asks for it" }] : [];
  const registries = { before: textAt(node.previous, registriesConf), after: textAt(target, registriesConf) };
  const wanted = consequencesOf(changes, policies ?? defaultPolicies, { registries }).because;
  const because = group([...debts, ...force, ...wanted]);

  const tried = (node.ledger?.target === target.name ? (node.ledger.rebootsAsked ?? []) : []).filter((bootId) => bootId !== node.bootId).length;
  if (gap.deployment !== undefined && tried >= mostReboots && !node.forced) return { verdict: "bootFails", tried, booted: node.booted, wanted: gap.deployment };
  if (changes.length === 0 && because.length === 0 && node.ledger === undefined && node.staged === undefined && node.previous?.name === target.name) {
    return { verdict: "inSync" };
  }

  const owes = because.map(({ consequence }) => consequence).filter(({ kind }) => kind !== "none");
  const reboots = owes.some(({ kind }) => kind === "reboot");
  // A machine that has just joined has never been in service; the only control-plane machine's pods have nowhere to go.
  const drains = node.inService && !node.onlyControlPlane && owes.some(({ kind }) => kind === "reboot" || kind === "drain");
  const steps: Step[] = [
    ...gap.prefetch,
    ...(drains ? [{ do: "drain" } as const] : []),
    ...(isOpen(node, target, owes, gap) ? [] : [{ do: "openLedger", owes, paths: gap.paths, units: gap.units, users: gap.users } as const]),
    ...gap.system,
    ...gap.steps,
    ...(reboots ? [{ do: "reboot", because: reasonOf(because) } as const] : actions(owes)),
    { do: "closeLedger" },
  ];
  return { verdict: "change", changes, drift, because, steps };
}

/** Whether the ledger says already what this plan would write into it. */
function isOpen({ ledger, bootId }: ObservedNode, target: NodeConfig, owes: readonly Consequence[], gap: Gap): boolean {
  if (owes.length === 0 && gap.changes.length === 0) return true;
  if (ledger?.target !== target.name || ledger.bootId !== bootId || gap.paths.length + gap.units.length + gap.users.length > 0) return false;
  return owes.length === ledger.owes.length && owes.every((consequence) => ledger.owes.some((other) => sameConsequence(other, consequence)));
}

function textAt(config: NodeConfig | undefined, path: string): string | undefined {
  const entry = config?.entries.get(path);
  return entry?.kind === "file" ? textOf(entry.contents) : undefined;
}

/** A reboot pays every debt: services start from the files they find. */
function unpaid({ ledger, bootId }: ObservedNode): readonly Because[] {
  if (ledger === undefined || ledger.bootId !== bootId) return [];
  return ledger.owes.map((consequence) => ({ consequence, changes: [], why: `an update to ${ledger.target} was interrupted before this was done` }));
}

/**
 * What somebody asked for: the difference to the previous configuration, also where the disk has it already, because
 * the services that read it may not. Once a ledger for this target is open, it holds these debts.
 */
function askedFor(node: ObservedNode, target: NodeConfig): readonly Change[] {
  if (node.ledger?.target === target.name) return [];
  const asked = compareNodeConfigs(node.previous ?? emptyNodeConfig, target);
  // What a machine without a history boots says itself what it has; and one whose OS somebody else keeps is not asked.
  return asked.filter(({ kind }) => !isSystem(kind) || (node.previous !== undefined && (kind !== "osImage" || node.can.images)));
}

const isSystem = (kind: Change["kind"]) => kind === "osImage" || kind === "kernelArguments" || kind === "extensions" || kind === "kernelType" || kind === "fips";

interface Gap {
  readonly changes: readonly Change[];
  /** What the next boot should be, where this one is something else. */
  readonly deployment: Deployment | undefined;
  readonly prefetch: readonly Step[];
  readonly system: readonly Step[];
  readonly steps: readonly Step[];
  /** What is touched, so that it is remembered first. */
  readonly paths: readonly string[];
  readonly units: readonly string[];
  readonly users: readonly string[];
}

/** What has to be done so that the machine holds the target. */
function gapBetween(node: ObservedNode, target: NodeConfig): Gap {
  const restore: string[] = [];
  const write: string[] = [];
  const touched: { path: string; origin: WantedEntry["origin"]; op: Op }[] = [];

  for (const path of Object.keys(node.originals.paths).sort()) {
    if (target.entries.has(path) || target.atBirth.links.has(path) || target.atBirth.appends.has(path)) continue;
    const origin = node.previous?.entries.get(path)?.origin ?? originOfPath(path);
    if (isOriginal(node.entries.get(path), node.originals.paths[path])) continue;
    touched.push({ path, origin, op: "delete" });
    restore.push(path);
  }
  for (const [path, wanted] of target.entries) {
    const observed = node.entries.get(path);
    if (isUnmasking(wanted) && path in node.originals.paths && !isMask(node.originals.paths[path]) && !isMask(observed)) {
      // Only "not masked" is asked for: what an earlier configuration put there is taken back.
      if (isOriginal(observed, node.originals.paths[path])) continue;
      touched.push({ path, origin: wanted.origin, op: "delete" });
      restore.push(path);
      continue;
    }
    if (isAsWanted(observed, wanted, node)) continue;
    touched.push({ path, origin: wanted.origin, op: observed === undefined ? "create" : "update" });
    write.push(path);
  }

  const born = birthGap(node, target);
  touched.push(...born.touched);
  write.push(...born.write);

  const unitPath = (name: string) => `/etc/systemd/system/${name}`;
  const isRewritten = (name: string) => touched.some(({ path }) => path === unitPath(name));
  const before: Step[] = [];
  const after: Step[] = [];
  const units: { name: string; op: "create" | "update" | "delete" }[] = [];
  for (const [name, { enabled, installable }] of target.enablement) {
    const is = node.enablement.get(name) ?? "absent";
    const rewritten = isRewritten(name);
    if (is === "enabled" && rewritten) before.push({ do: "disableUnit", unit: name }); // Its old links would stay behind.
    if (rewritten && target.entries.get(unitPath(name))?.kind !== "file") continue; // Its text goes; the next look sees what is left.
    // A unit that is not there, or masked, can be enabled only when the target brings its text.
    const brings = target.entries.get(unitPath(name))?.kind === "file";
    if (enabled === true && installable && (is === "disabled" || rewritten || (brings && (is === "absent" || is === "masked")))) {
      after.push({ do: "enableUnit", unit: name });
      if (!rewritten) units.push({ name, op: "update" });
    } else if (enabled === false && is === "enabled") {
      if (!rewritten) {
        before.push({ do: "disableUnit", unit: name });
        units.push({ name, op: "update" });
      }
    } else if (enabled === undefined && rewritten) after.push({ do: "presetUnit", unit: name });
    else if (enabled === undefined && installable && node.previous?.enablement.get(name)?.enabled !== undefined) {
      // The previous configuration had decided it; now the vendor's presets do again.
      after.push({ do: "presetUnit", unit: name });
      units.push({ name, op: "update" });
    }
  }
  for (const name of Object.keys(node.originals.enablement).sort()) {
    if (target.enablement.has(name)) continue;
    const was = node.originals.enablement[name];
    const is = node.enablement.get(name) ?? "absent";
    if (is === "enabled" && was !== "enabled") {
      before.push({ do: "disableUnit", unit: name });
      units.push({ name, op: "delete" });
    } else if (was === "enabled" && is === "disabled") {
      after.push({ do: "enableUnit", unit: name });
      units.push({ name, op: "delete" });
    } else if (was === "enabled" && is === "enabled" && isRewritten(name)) {
      before.push({ do: "disableUnit", unit: name });
      after.push({ do: "enableUnit", unit: name });
    }
  }

  const passwords: Step[] = [];
  const users: Change[] = [];
  for (const user of new Set([...target.passwords.keys(), ...Object.keys(node.originals.passwords)])) {
    const wanted = target.passwords.get(user) ?? node.originals.passwords[user] ?? undefined;
    if (node.passwords.get(user) === wanted) continue;
    passwords.push({ do: "setPassword", user });
    users.push({ kind: "password", user, op: target.passwords.has(user) ? "update" : "delete" });
  }

  const system = systemGap(node, target);
  const pathsToRemember = [...target.entries.keys(), ...born.write].filter((path) => !(path in node.originals.paths));
  return {
    ...system,
    changes: [...changesOf(touched, units), ...users, ...system.changes],
    steps: [
      ...before,
      ...(restore.length === 0 ? [] : [{ do: "restoreEntries", paths: restore } as const]),
      ...born.folders.map((path) => ({ do: "makeFolder", path }) as const),
      ...(write.length === 0 ? [] : [{ do: "writeEntries", paths: write } as const]),
      ...after,
      ...passwords,
    ],
    paths: pathsToRemember,
    units: [...target.enablement.keys()].filter((name) => !(name in node.originals.enablement)),
    users: [...target.passwords.keys()].filter((user) => !(user in node.originals.passwords)),
  };
}

/** Folders, links and appended files of a machine that starts with this configuration and has met no Ignition. */
function birthGap(node: ObservedNode, { atBirth }: NodeConfig): { readonly folders: readonly string[]; readonly write: readonly string[]; readonly touched: readonly { path: string; origin: WantedEntry["origin"]; op: Op }[] } {
  if (node.previous !== undefined) return { folders: [], write: [], touched: [] };
  const folders = [...atBirth.folders].flatMap(([path, { mode, user, group }]) => {
    const is = node.entries.get(path);
    return is?.kind === "folder" && is.mode === mode && is.uid === idOf(user, node.users) && is.gid === idOf(group, node.groups) ? [] : [path];
  });
  const links = [...atBirth.links].flatMap(([path, to]) => {
    const is = node.entries.get(path);
    return is?.kind === "link" && is.target === to ? [] : [path];
  });
  const appends = [...atBirth.appends.keys()].filter((path) => {
    const is = node.entries.get(path);
    const whole = appendedTo(node.originals, target(path), path);
    return whole === undefined || is?.kind !== "file" || is.digest !== bytesToHex(sha256(whole));
  });
  const write = [...links, ...appends];
  return { folders, write, touched: [...folders, ...write].map((path) => ({ path, origin: { kind: "file" }, op: node.entries.has(path) ? "update" : "create" })) };

  function target(path: string): Uint8Array {
    return atBirth.appends.get(path)?.contents ?? new Uint8Array();
  }
}

/** What was there before with `more` behind it, however often this is asked; `undefined` while nobody has remembered what was there. */
export function appendedTo(originals: Originals, more: Uint8Array, path: string): Uint8Array | undefined {
  const original = originals.paths[path];
  if (original === undefined) return undefined;
  const before = original?.kind === "file" ? decodeBase64(original.contents) : new Uint8Array();
  const whole = new Uint8Array(before.length + more.length);
  whole.set(before);
  whole.set(more, before.length);
  return whole;
}

/** Kernel and OS: what the next boot should be, if it is not what this one is. */
function systemGap(node: ObservedNode, target: NodeConfig): Pick<Gap, "changes" | "deployment" | "prefetch" | "system"> {
  const wanted = wantedDeployment(node, target);
  const changes = deploymentChanges(node.booted, wanted);
  if (changes.length === 0) return { changes, deployment: undefined, prefetch: [], system: node.staged === undefined ? [] : [{ do: "discardStaged" }] };
  if (node.staged !== undefined && sameDeployment(node.staged, wanted)) return { changes, deployment: wanted, prefetch: [], system: [] };
  const hasPackages = wanted.packages.length > 0 || wanted.kernelType !== "default";
  const packagesFrom = hasPackages && target.extensionsImage !== "" ? target.extensionsImage : undefined;
  const images = [...(wanted.image === node.booted.image ? [] : [wanted.image]), ...(packagesFrom === undefined ? [] : [packagesFrom])];
  return { changes, deployment: wanted, prefetch: images.length === 0 ? [] : [{ do: "prefetch", images }], system: [{ do: "stageOs", deployment: wanted, packagesFrom }] };
}

function isAsWanted(observed: ObservedEntry | undefined, wanted: WantedEntry, node: Pick<ObservedNode, "users" | "groups">): boolean {
  switch (wanted.kind) {
    case "absent":
      // "Not masked" is content with any unit file that is no mask.
      return observed === undefined || (isUnmasking(wanted) && !isMask(observed));
    case "link":
      return observed?.kind === "link" && observed.target === wanted.target;
    case "file":
      return observed?.kind === "file" && observed.digest === wanted.digest && observed.mode === wanted.mode && observed.uid === idOf(wanted.user, node.users) && observed.gid === idOf(wanted.group, node.groups);
  }
}

const isUnmasking = (wanted: WantedEntry) => wanted.kind === "absent" && wanted.origin.kind === "unit" && wanted.origin.part === "mask";
const isMask = (entry: ObservedEntry | OriginalEntry | null | undefined) => entry?.kind === "link" && entry.target === "/dev/null";

/** A name that the machine does not know counts as root's: the executor refuses it before it writes. */
function idOf(owner: Owner, ids: ReadonlyMap<string, number>): number {
  return owner.id ?? (owner.name === undefined ? 0 : (ids.get(owner.name) ?? 0));
}

function isOriginal(observed: ObservedEntry | undefined, original: OriginalEntry | null | undefined): boolean {
  if (original === null || original === undefined) return observed === undefined;
  if (original.kind === "link") return observed?.kind === "link" && observed.target === original.target;
  return observed?.kind === "file" && observed.digest === original.digest && observed.mode === original.mode && observed.uid === original.uid && observed.gid === original.gid;
}

/** Where no configuration tells any more whose a path was, the path does. */
function originOfPath(path: string): WantedEntry["origin"] {
  const match = /^\/etc\/systemd\/system\/([^/]+?)(?:\.d\/([^/]+))?$/.exec(path);
  return match?.[1] === undefined ? { kind: "file" } : { kind: "unit", name: match[1], part: match[2] ?? "contents" };
}

/**
 * Where a machine that owes nothing differs from the configuration that it was proven to have. A machine that runs another
 * system than that is no drift: it was booted into the wrong one, which a plan can put right.
 */
export function driftOf(node: ObservedNode): readonly Change[] {
  const { previous } = node;
  if (previous === undefined || node.ledger !== undefined || systemGap(node, previous).changes.length > 0) return [];
  const paths = [];
  for (const [path, wanted] of previous.entries) {
    const observed = node.entries.get(path);
    if (!isAsWanted(observed, wanted, node)) paths.push({ path, origin: wanted.origin, op: observed === undefined ? ("delete" as const) : ("update" as const) });
  }
  const enablement = [];
  for (const [name, { enabled, installable }] of previous.enablement) {
    const is = node.enablement.get(name) ?? "absent";
    if ((enabled === true && installable && (is === "disabled" || is === "masked")) || (enabled === false && is === "enabled")) enablement.push({ name, op: "update" as const });
  }
  return changesOf(paths, enablement);
}

/** Asked-for and observed differences as one list, each thing once. */
function mergeChanges(asked: readonly Change[], gap: readonly Change[]): readonly Change[] {
  const idOfChange = (change: Change) => (change.kind === "file" ? `file ${change.path}` : change.kind === "unit" ? `unit ${change.name}` : change.kind === "sshKeys" || change.kind === "password" ? `${change.kind} ${change.user}` : change.kind);
  const merged = new Map<string, Change>();
  for (const change of [...gap, ...asked]) {
    const id = idOfChange(change);
    const other = merged.get(id);
    if (other?.kind === "unit" && change.kind === "unit") merged.set(id, { ...other, parts: [...new Set([...other.parts, ...change.parts])].sort() });
    else merged.set(id, change);
  }
  const order = ["file", "unit", "sshKeys", "password", "kernelArguments", "osImage", "extensions", "kernelType", "fips"];
  return [...merged.values()].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || (idOfChange(a) < idOfChange(b) ? -1 : 1));
}

/** Equal consequences become one, with all the changes that ask for it. */
function group(reasons: readonly Because[]): readonly Because[] {
  const grouped: { consequence: Consequence; changes: Change[]; why: string[] }[] = [];
  for (const { consequence, changes, why } of reasons) {
    const known = grouped.find((other) => sameConsequence(other.consequence, consequence));
    if (known === undefined) grouped.push({ consequence, changes: [...changes], why: [why] });
    else {
      known.changes.push(...changes);
      if (!known.why.includes(why)) known.why.push(why);
    }
  }
  return grouped.map(({ consequence, changes, why }) => ({ consequence, changes, why: why.join("; ") }));
}

/** What is done in place of a reboot, each once: daemon-reload, then reloads, then restarts. A restart covers a reload. */
function actions(owes: readonly Consequence[]): readonly Step[] {
  const restarts = owes.flatMap((consequence) => (consequence.kind === "restart" ? [consequence.unit] : []));
  const reloads = owes.flatMap((consequence) => (consequence.kind === "reload" && !restarts.includes(consequence.unit) ? [consequence.unit] : []));
  return [
    ...(owes.some(({ kind }) => kind === "daemonReload") ? [{ do: "daemonReload" } as const] : []),
    ...reloads.map((unit) => ({ do: "reload", unit }) as const),
    ...restarts.map((unit) => ({ do: "restart", unit }) as const),
  ];
}

function reasonOf(because: readonly Because[]): string {
  const reboot = because.find(({ consequence }) => consequence.kind === "reboot");
  if (reboot === undefined) return "";
  const shown = reboot.changes.slice(0, 3).map(describeChange).join(", ");
  const more = reboot.changes.length > 3 ? ` and ${reboot.changes.length - 3} more` : "";
  return shown === "" ? reboot.why : `${shown}${more}: ${reboot.why}`;
}
