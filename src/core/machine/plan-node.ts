import { pushAll } from "../../api/schema/push-all.ts";
import type { ClusterPolicies } from "../../api/kinds/machine-configuration.ts";
import { type Because, type Change, type Consequence, describeChange, sameConsequence } from "../config/change.ts";
import { type ContentGap, type ContentStep, contentGap, matchesWanted } from "./content-gap.ts";
import { deploymentChanges, sameDeployment, wantedDeployment } from "./deployment.ts";
import {
  type EffectivePolicies,
  type PolicyContext,
  consequencesOf,
  defaultPolicies,
  registriesConf,
} from "../config/disruption-policy.ts";
import { isCredential } from "../config/image-content.ts";
import { isTargetOf, sameTarget } from "./image-target.ts";
import {
  type NodeConfig,
  changesOf,
  compareNodeConfigs,
  emptyNodeConfig,
  findUnitIn,
  masks,
  textToParse,
} from "../config/node-config.ts";
import type { Debt, ObservedDeployment, ObservedNode } from "./observed-node.ts";
import { listText } from "../text/list-text.ts";
import { isEnableable } from "./unit-gap.ts";
import { type DroppedDebt, debtsToRecord, changeSubjectOf, unpaidDebts, withoutMissingUnits } from "./unpaid-debts.ts";

/** Reboots that a target may use until the machine has it. */
export const mostReboots = 3;

export type Step =
  /** Fetches and verifies missing images before anything changes. */
  | { readonly do: "prefetch"; readonly images: readonly string[] }
  | { readonly do: "drain" }
  /** Records the entries at `paths`, and the debts of the machine. */
  | {
      readonly do: "openLedger";
      readonly owes: readonly Consequence[];
      readonly debts: readonly Debt[];
      /** What was done already and stays done. */
      readonly paid: readonly Consequence[];
      readonly paths: readonly string[];
      readonly units: readonly string[];
      readonly users: readonly string[];
      /** Users whose passwords this update, or an unfinished one before it, may set. */
      readonly passwords: readonly string[];
      readonly deployment: ObservedDeployment | undefined;
    }
  /** Updates pull secrets and certificates, so that the image can be pulled. */
  | { readonly do: "refreshCredentials" }
  /** Places the content that `image` does not contain, for the next boot. */
  | { readonly do: "keepPayload"; readonly image: string; readonly of: "previous" | "target" }
  | { readonly do: "stageOs"; readonly deployment: ObservedDeployment; readonly packagesFrom: string | undefined }
  | { readonly do: "discardStaged" }
  /** From now on the daemon writes the content of the running system: a boot must not restore the placed content. */
  | { readonly do: "dropPayload" }
  | ContentStep
  | { readonly do: "daemonReload" }
  | { readonly do: "reload" | "restart"; readonly unit: string }
  | { readonly do: "reboot"; readonly because: string }
  /** Applies the payload now, as at boot. The next pass sees the result. */
  | { readonly do: "settle" }
  /** The machine has the target: it becomes the previous configuration, and the ledger is empty. */
  | { readonly do: "closeLedger" };

export type NodePlan =
  | { readonly verdict: "inSync" }
  /** The machine was rebooted for its target `tried` times and still boots something else. */
  | {
      readonly verdict: "bootFails";
      readonly tried: number;
      readonly booted: ObservedDeployment;
      readonly wanted: ObservedDeployment;
    }
  /** The machine was rebooted for its target `tried` times, and differs from it after each boot. */
  | { readonly verdict: "bootUndoes"; readonly tried: number; readonly changes: readonly Change[] }
  /** The machine boots the right system but lacks its content; `cause` is empty if no reason was reported. */
  | {
      readonly verdict: "unsettled";
      readonly changes: readonly Change[];
      readonly path: string | undefined;
      readonly cause: string;
    }
  /** Applying the content failed after the boot of the target, and the machine has booted its previous system again. */
  | { readonly verdict: "settleFailed"; readonly path: string | undefined; readonly cause: string }
  | {
      readonly verdict: "change";
      readonly changes: readonly Change[];
      /** Where the machine differs from its last verified configuration without a request. */
      readonly drift: readonly Change[];
      readonly because: readonly Because[];
      /** What an earlier plan wanted and nothing wants any more. */
      readonly dropped: readonly DroppedDebt[];
      readonly steps: readonly Step[];
    };

/**
 * Decides how a machine gets from its observed state to its target.
 *
 * A plan first records the machine's debts in the ledger, and closes the ledger last: a daemon killed between writing a
 * file and reloading its service finds the file in place when it comes back, and still knows to reload. A roll-back
 * needs no second mechanism: it is a plan with the previous configuration as target.
 *
 * On a machine whose image contains its configuration, the plan writes only credentials: the rest is in place once the
 * machine has booted that image and applied its content.
 */
export function planNode(
  node: ObservedNode,
  target: NodeConfig,
  policies: ClusterPolicies | EffectivePolicies | undefined,
): NodePlan {
  const gap = gapBetween(node, target);
  const debts = unpaidDebts(node, target.name, policies ?? defaultPolicies, {
    context: policyContextOf(node, target),
    paid: paidBefore(node, target, gap),
  });
  const asked = debts.isStale ? requestedOf(node, target) : askedFor(node, target);
  const changes = mergeChanges(asked, [...gap.changes, ...gap.unsettled]);
  const drift = driftOf(node);
  const force: readonly Because[] = node.forced
    ? [{ consequence: { kind: "reboot" }, changes: [], why: "the force file asks for it" }]
    : [];
  const { because, dropped } = withoutMissingUnits(
    group([...debts.owed, ...force, ...consequencesAsked(node, target, changes, policies ?? defaultPolicies)]),
    node,
    target,
  );

  const failure = judgeBoots(node, target, gap, because);
  if (failure !== undefined) return failure;
  const unsettled = node.forced ? undefined : judgeSettling(node, target, gap);
  if (unsettled === "settle")
    return { verdict: "change", changes, drift, because: [], dropped: [], steps: [{ do: "settle" }] };
  if (unsettled !== undefined) return unsettled;
  if (
    changes.length === 0 &&
    because.length === 0 &&
    node.ledger === undefined &&
    node.staged === undefined &&
    node.previous !== undefined &&
    sameTarget(node.previous, target)
  ) {
    return { verdict: "inSync" };
  }

  return {
    verdict: "change",
    changes,
    drift,
    because,
    dropped: [...debts.dropped, ...dropped].filter(
      ({ consequence }) => !because.some((one) => sameConsequence(one.consequence, consequence)),
    ),
    steps: stepsTo(node, target, gap, because),
  };
}

/** What services have read already of this target: nothing of it was written again since. */
const paidBefore = ({ ledger, bootId }: ObservedNode, target: NodeConfig, gap: Gap): readonly Consequence[] =>
  ledger?.bootId === bootId && isTargetOf(ledger, target) && gap.changes.length === 0 ? (ledger.paid ?? []) : [];

const policyContextOf = (node: ObservedNode, target: NodeConfig): PolicyContext => ({
  registries: { before: textToParse(node.previous, registriesConf), after: textToParse(target, registriesConf) },
});

/** A target that the machine could not boot, apply or keep: the force file requests another attempt. */
function judgeBoots(
  node: ObservedNode,
  target: NodeConfig,
  gap: Gap,
  because: readonly Because[],
): NodePlan | undefined {
  const { ledger } = node;
  if (node.forced || ledger === undefined || !isTargetOf(ledger, target)) return undefined;
  if (ledger.failed !== undefined)
    return { verdict: "settleFailed", path: ledger.failed.path, cause: ledger.failed.cause };
  const tried = (ledger.rebootsAsked ?? []).filter((bootId) => bootId !== node.bootId).length;
  if (tried < mostReboots) return undefined;
  if (gap.deployment !== undefined) return { verdict: "bootFails", tried, booted: node.booted, wanted: gap.deployment };
  return because.some(({ consequence }) => consequence.kind === "reboot")
    ? { verdict: "bootUndoes", tried, changes: gap.changes }
    : undefined;
}

/** The steps to the target, in the order in which they must happen. */
function stepsTo(node: ObservedNode, target: NodeConfig, gap: Gap, because: readonly Because[]): readonly Step[] {
  const debts = debtsToRecord(because);
  const owes = debts.map(({ consequence }) => consequence);
  const reboots = owes.some(({ kind }) => kind === "reboot");
  // A machine that has just joined has never been in service; the only control-plane machine's pods have nowhere to go.
  const drains =
    node.inService && !node.onlyControlPlane && owes.some(({ kind }) => kind === "reboot" || kind === "drain");
  return [
    ...gap.prefetch,
    ...(drains ? [{ do: "drain" } as const] : []),
    ...(isOpen(node, target, debts, gap)
      ? []
      : [
          {
            do: "openLedger",
            owes,
            debts,
            paid: paidBefore(node, target, gap),
            paths: gap.paths,
            units: gap.units,
            users: gap.users,
            passwords: passwordsSet(node, target, gap),
            deployment: gap.deployment,
          } as const,
        ]),
    ...(!holdsAll(target) && node.payload === "local" && (gap.deployment !== undefined || gap.steps.length > 0)
      ? [{ do: "dropPayload" } as const]
      : []),
    ...gap.system,
    ...gap.steps,
    ...(reboots ? [{ do: "reboot", because: reasonOf(because) } as const] : actions(owes)),
    { do: "closeLedger" },
  ];
}

/** Users whose passwords may be another's than people set: by this update, by its image, or by an unfinished one. */
function passwordsSet(
  { ledger, previous }: ObservedNode,
  target: NodeConfig,
  { changes }: Pick<Gap, "changes">,
): readonly string[] {
  const asked = compareNodeConfigs(previous ?? emptyNodeConfig, target);
  const set = [...changes, ...asked].flatMap((change) => (change.kind === "password" ? [change.user] : []));
  return [...new Set([...(ledger?.passwords ?? []), ...set])];
}

const holdsAll = (config: NodeConfig) => config.imageContent === "full";

/**
 * The consequences of the changes. If an image contains all of them, the consequence is its boot; credentials take
 * effect by themselves.
 */
function consequencesAsked(
  node: ObservedNode,
  target: NodeConfig,
  changes: readonly Change[],
  policies: ClusterPolicies | EffectivePolicies,
): readonly Because[] {
  if (!holdsAll(target)) {
    return consequencesOf(changes, policies, policyContextOf(node, target)).because;
  }
  const others = changes.filter(({ kind }) => !isSystem(kind));
  const system = consequencesOf(
    changes.filter(({ kind }) => isSystem(kind)),
    policies,
  ).because;
  return system.length > 0 || others.length === 0
    ? system
    : [{ consequence: { kind: "none" }, changes: others, why: "credentials take effect without an action" }];
}

/** Whether a machine that boots the right system also has its content; `undefined`: yes. */
function judgeSettling(
  node: ObservedNode,
  target: NodeConfig,
  gap: Gap,
): "settle" | (NodePlan & { readonly verdict: "unsettled" }) | undefined {
  if (gap.deployment !== undefined || (!holdsAll(target) && node.payload !== "local")) return undefined;
  const record = node.settled?.bootId === node.bootId ? node.settled : undefined;
  const hasRebooted = node.ledger !== undefined && node.ledger.bootId !== node.bootId;
  if (hasRebooted && record?.result !== "settled" && record?.result !== "failed") return "settle";
  if (record?.result === "failed" && (hasRebooted || holdsAll(target)))
    return { verdict: "unsettled", changes: gap.unsettled, path: record.path, cause: record.cause ?? "" };
  return gap.unsettled.length > 0 && holdsAll(target)
    ? { verdict: "unsettled", changes: gap.unsettled, path: undefined, cause: "" }
    : undefined;
}

/** Whether the ledger already contains what this plan would write. */
function isOpen({ ledger, bootId }: ObservedNode, target: NodeConfig, debts: readonly Debt[], gap: Gap): boolean {
  if (debts.length === 0 && gap.changes.length === 0) return true;
  if (
    ledger === undefined ||
    !isTargetOf(ledger, target) ||
    ledger.bootId !== bootId ||
    gap.paths.length + gap.units.length + gap.users.length > 0 ||
    gap.changes.some((change) => change.kind === "password" && ledger.passwords?.includes(change.user) !== true)
  )
    return false;
  return (
    debts.length === ledger.owes.length &&
    debts.every(
      (debt) => ledger.owes.some((other) => sameConsequence(other, debt.consequence)) && isRecorded(debt, ledger.debts),
    )
  );
}

/** A ledger of an earlier release has no reasons; it is not written again for their sake. */
function isRecorded(debt: Debt, recorded: readonly Debt[] | undefined): boolean {
  const known = recorded?.find(({ consequence }) => sameConsequence(consequence, debt.consequence));
  const subjects = new Set(known?.changes.map(changeSubjectOf));
  return recorded === undefined || debt.changes.every((change) => subjects.has(changeSubjectOf(change)));
}

/**
 * The requested changes: the difference to the previous configuration, even if the disk already has it, because
 * services may not have read it. Once a ledger for this target is open, it holds these debts.
 */
function askedFor(node: ObservedNode, target: NodeConfig): readonly Change[] {
  return node.ledger !== undefined && isTargetOf(node.ledger, target) ? [] : requestedOf(node, target);
}

function requestedOf(node: ObservedNode, target: NodeConfig): readonly Change[] {
  const asked = compareNodeConfigs(node.previous ?? emptyNodeConfig, target);
  // The booted system of a machine without history declares its own content; a machine whose OS is managed elsewhere is
  // not asked.
  return asked.filter(
    ({ kind }) => !isSystem(kind) || (node.previous !== undefined && (kind !== "osImage" || node.can.images)),
  );
}

const isSystem = (kind: Change["kind"]) =>
  kind === "osImage" || kind === "kernelArguments" || kind === "extensions" || kind === "kernelType" || kind === "fips";

interface Gap extends Pick<ContentGap, "changes" | "paths" | "units" | "users"> {
  /** The system of the next boot, if it differs from the running one. */
  readonly deployment: ObservedDeployment | undefined;
  readonly prefetch: readonly Step[];
  readonly system: readonly Step[];
  readonly steps: readonly Step[];
  /** Differences that the daemon does not repair: the boot applies the image's content. */
  readonly unsettled: readonly Change[];
}

/** The steps that bring the machine to its target. */
function gapBetween(node: ObservedNode, target: NodeConfig): Gap {
  const system = systemGap(node, target);
  const allPoolsUpdated = holdsAll(target) || (system.deployment !== undefined && node.payload === "image");
  const gapIn = (only?: (path: string) => boolean) =>
    withoutForeignPasswords(contentGap(node, target, only), node, target);
  const content = gapIn(allPoolsUpdated ? isCredential : undefined);
  // Files written before such a boot would only hide the image's own.
  const unsettled = allPoolsUpdated
    ? gapIn().changes.filter((change) => change.kind !== "file" || !isCredential(change.path))
    : [];
  return { ...content, ...system, changes: [...content.changes, ...system.changes], unsettled };
}

/**
 * Leaves passwords alone that somebody else has set: no update asks for another one, and no unfinished update has set it.
 * Source: openshift/machine-config-operator pkg/daemon/update.go (main), which sets a password when the configuration
 * changes it.
 */
function withoutForeignPasswords(gap: ContentGap, node: ObservedNode, target: NodeConfig): ContentGap {
  const { previous, ledger } = node;
  if (previous === undefined || node.forced) return gap;
  const isForeign = (user: string) =>
    previous.passwords.get(user) === target.passwords.get(user) && ledger?.passwords?.includes(user) !== true;
  return {
    ...gap,
    changes: gap.changes.filter((change) => change.kind !== "password" || !isForeign(change.user)),
    steps: gap.steps.filter((step) => step.do !== "setPassword" || !isForeign(step.user)),
  };
}

/** Kernel and OS: the system of the next boot, if it differs from the running one. */
function systemGap(
  node: ObservedNode,
  target: NodeConfig,
): Pick<Gap, "changes" | "deployment" | "prefetch" | "system"> {
  const wanted = wantedDeployment(node, target);
  const changes = deploymentChanges(node.booted, wanted);
  if (changes.length === 0)
    return {
      changes,
      deployment: undefined,
      prefetch: [],
      system: node.staged === undefined ? [] : [{ do: "discardStaged" }],
    };
  if (node.staged !== undefined && sameDeployment(node.staged, wanted))
    return { changes, deployment: wanted, prefetch: [], system: [] };
  const hasPackages = wanted.packages.length > 0 || wanted.kernelType !== "default";
  const packagesFrom = hasPackages && target.extensionsImage !== "" ? target.extensionsImage : undefined;
  const images = [
    ...(wanted.image === node.booted.image ? [] : [wanted.image]),
    ...(packagesFrom === undefined ? [] : [packagesFrom]),
  ];
  return {
    changes,
    deployment: wanted,
    // Credentials that came with the target are needed for the first pull of its images.
    prefetch: images.length === 0 ? [] : [{ do: "refreshCredentials" }, { do: "prefetch", images }],
    system: [...beforeStaging(node, target, wanted), { do: "stageOs", deployment: wanted, packagesFrom }],
  };
}

/** What must be on the machine before another system is staged: a crash must not leave that system without it. */
function beforeStaging(node: ObservedNode, target: NodeConfig, { image }: ObservedDeployment): readonly Step[] {
  const credentials = target.imageContent === undefined ? [] : [{ do: "refreshCredentials" } as const];
  // So that booting the previous system is correct, too.
  const hadSomething = node.previous !== undefined || Object.keys(node.originals.paths).length > 0;
  if (holdsAll(target) && node.payload !== "image" && hadSomething)
    return [...credentials, { do: "keepPayload", image: node.booted.image, of: "previous" }];
  // A file that equals the image's own is replaced together with that image (ostree's 3-way merge of /etc).
  return !holdsAll(target) && node.payload === "image"
    ? [...credentials, { do: "keepPayload", image, of: "target" }]
    : credentials;
}

/**
 * Where a machine without debts differs from its verified configuration. If it runs another system, or with other kernel
 * arguments, that alone counts, because the content of a system belongs to it.
 */
export function driftOf(node: ObservedNode): readonly Change[] {
  const { previous } = node;
  if (previous === undefined || node.ledger !== undefined) return [];
  const system = systemGap(node, previous).changes;
  // A machine that has just joined is to boot its system yet.
  if (system.length > 0) return node.inService ? system : [];
  const paths = [];
  for (const [path, wanted] of previous.entries) {
    const observed = node.entries.get(path);
    if (!matchesWanted(observed, wanted, node))
      paths.push({
        path,
        origin: wanted.origin,
        op: observed === undefined ? ("delete" as const) : ("update" as const),
      });
  }
  const enablement = [];
  const find = findUnitIn(previous, node.shippedUnits ?? new Map());
  for (const [name, wanted] of previous.enablement) {
    const { enabled } = wanted;
    const is = node.enablement.get(name) ?? "absent";
    const isOff = is === "disabled" || (is === "masked" && !masks(previous, name));
    if ((enabled === true && isOff && isEnableable(name, find, wanted)) || (enabled === false && is === "enabled"))
      enablement.push({ name, op: "update" as const });
  }
  return changesOf(paths, enablement);
}

/** Requested and observed differences as one list, without duplicates. */
function mergeChanges(asked: readonly Change[], gap: readonly Change[]): readonly Change[] {
  const merged = new Map<string, Change>();
  for (const change of [...gap, ...asked]) {
    const id = changeSubjectOf(change);
    const other = merged.get(id);
    if (other?.kind === "unit" && change.kind === "unit")
      merged.set(id, { ...other, parts: [...new Set([...other.parts, ...change.parts])].sort() });
    else merged.set(id, change);
  }
  const order = [
    "file",
    "unit",
    "sshKeys",
    "password",
    "kernelArguments",
    "osImage",
    "extensions",
    "kernelType",
    "fips",
  ];
  return [...merged.values()].sort(
    (a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || (changeSubjectOf(a) < changeSubjectOf(b) ? -1 : 1),
  );
}

/** Merges equal consequences, with all the changes that cause them. */
function group(reasons: readonly Because[]): readonly Because[] {
  const grouped: { consequence: Consequence; changes: Change[]; why: string[] }[] = [];
  for (const { consequence, changes, why } of reasons) {
    const known = grouped.find((other) => sameConsequence(other.consequence, consequence));
    if (known === undefined) grouped.push({ consequence, changes: [...changes], why: [why] });
    else {
      pushAll(known.changes, changes);
      if (!known.why.includes(why)) known.why.push(why);
    }
  }
  return grouped.map(({ consequence, changes, why }) => ({ consequence, changes, why: why.join("; ") }));
}

/**
 * The actions instead of a reboot, each once: daemon-reload, then reloads, then restarts. A restart covers a reload.
 */
function actions(owes: readonly Consequence[]): readonly Step[] {
  const restarts = owes.flatMap((consequence) => (consequence.kind === "restart" ? [consequence.unit] : []));
  const reloads = owes.flatMap((consequence) =>
    consequence.kind === "reload" && !restarts.includes(consequence.unit) ? [consequence.unit] : [],
  );
  return [
    ...(owes.some(({ kind }) => kind === "daemonReload") ? [{ do: "daemonReload" } as const] : []),
    ...reloads.map((unit) => ({ do: "reload", unit }) as const),
    ...restarts.map((unit) => ({ do: "restart", unit }) as const),
  ];
}

function reasonOf(because: readonly Because[]): string {
  const reboot = because.find(({ consequence }) => consequence.kind === "reboot");
  if (reboot === undefined) return "";
  const shown = listText(reboot.changes.slice(0, 3).map(describeChange), 3, reboot.changes.length);
  return shown === "" ? reboot.why : `${shown}: ${reboot.why}`;
}
