import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { type Because, type Change, type Consequence, describeChange, describeConsequence } from "../config/change.ts";
import type { NodeConfig } from "../config/node-config.ts";
import type { ObservedDeployment } from "./observed-node.ts";
import type { NodePlan, Step } from "./plan-node.ts";
import { listText } from "../text/list-text.ts";

/** A plan that changes the machine. */
export type ChangePlan = NodePlan & { readonly verdict: "change" };

type Metrics = Readonly<Record<string, string | number | boolean>>;

const actions: readonly Step["do"][] = ["daemonReload", "reload", "restart"] satisfies Consequence["kind"][];
const writes: readonly Step["do"][] = [
  "makeFolder",
  "writeEntries",
  "restoreEntries",
  "relinkUnits",
  "enableUnit",
  "disableUnit",
  "presetUnit",
  "setPassword",
];

/** Whether a step acts on services instead of a reboot. */
export const isAction = (step: Step): boolean => actions.includes(step.do);

/** Whether a step writes files, units or accounts. */
export const isWrite = (step: Step): boolean => writes.includes(step.do);

/** Whether a plan does more to a machine in service than write to its disk. */
export const disrupts = ({ steps }: ChangePlan): boolean =>
  steps.some((step) => step.do === "drain" || step.do === "reboot" || isAction(step));

/** Whether a change is one of the operating system. */
export const isSystemChange = ({ kind }: Change): boolean =>
  kind === "osImage" || kind === "kernelArguments" || kind === "extensions" || kind === "kernelType";

/** Consequences with their causes, in words. */
export const describeBecause = (because: readonly Because[]): string =>
  because.map(({ consequence, why }) => `${describeConsequence(consequence)} because ${why}`).join("; ");

/** The first five of many, and how many more there are. */
export const firstFive = (words: readonly string[]): string => listText(words, 5);

/** The words that are not among others. Their authors may have written a hundred thousand. */
function notIn(words: readonly string[], others: readonly string[]): readonly string[] {
  const known = new Set(others);
  return words.filter((word) => !known.has(word));
}

/** How the machine's boot target differs from the desired one. */
export function describeDeployment(booted: ObservedDeployment, wanted: ObservedDeployment): string {
  if (booted.image !== wanted.image) return `${booted.image} in place of ${wanted.image}`;
  const wordsOf = ({ kernelArguments, packages, kernelType }: ObservedDeployment) => [
    ...kernelArguments,
    ...packages,
    kernelType,
  ];
  const missing = notIn(wordsOf(wanted), wordsOf(booted));
  return `without ${missing.join(", ") || "the staged system"}`;
}

/** What differs on a machine from its configuration; of its system, also how. */
export function describeDrift(change: Change): string {
  const what = describeChange(change);
  if (change.kind === "osImage" || change.kind === "kernelType")
    return `${what} (${change.from} in place of ${change.to})`;
  if (change.kind !== "kernelArguments" && change.kind !== "extensions") return what;
  const [missing, added] = [notIn(change.to, change.from), notIn(change.from, change.to)];
  const parts = [
    ...(missing.length === 0 ? [] : [`without ${firstFive(missing)}`]),
    ...(added.length === 0 ? [] : [`with ${firstFive(added)}`]),
  ];
  return parts.length === 0 ? `${what} (in another order)` : `${what} (${parts.join(", ")})`;
}

/** The summary of a plan for the journal: counts only, because file contents are private. */
export function machineForecast(plan: ChangePlan, booted: ObservedDeployment, target: NodeConfig): Metrics {
  const of = (...kinds: readonly Change["kind"][]) => plan.changes.filter(({ kind }) => kinds.includes(kind)).length;
  const words = plan.changes.flatMap((change) => (change.kind === "kernelArguments" ? [change] : []));
  const added = words.flatMap(({ from, to }) => notIn(to, from)).length;
  const removed = words.flatMap(({ from, to }) => notIn(from, to)).length;
  return {
    files: of("file", "sshKeys", "password"),
    units: of("unit"),
    ...(added + removed === 0 ? {} : { kernelArguments: `+${added} -${removed}` }),
    ...(of("extensions") === 0 ? {} : { extensions: target.extensions.join(" ") }),
    ...(of("kernelType") === 0 ? {} : { kernelType: target.kernelType }),
    ...(of("osImage") === 0 ? {} : { fromImage: booted.image, toImage: target.osImage }),
    drain: plan.steps.some((step) => step.do === "drain"),
    reboot: plan.steps.some((step) => step.do === "reboot"),
    actions: plan.because.map(({ consequence }) => describeConsequence(consequence)).join(", "),
  };
}

/** Paths and units that a plan writes: how many, and the first of them. */
export function writtenBy({ steps }: ChangePlan): Readonly<Record<string, string | number>> {
  const names = steps.flatMap((step): readonly string[] => {
    if ("paths" in step && step.do !== "openLedger") return step.paths;
    if (step.do === "makeFolder") return [step.path];
    return isWrite(step) && "unit" in step ? [step.unit] : [];
  });
  const distinct = [...new Set(names)].sort();
  return {
    count: distinct.length,
    paths: distinct.slice(0, 50).join(" "),
    digest: bytesToHex(sha256(utf8ToBytes(distinct.join("\n")))).slice(0, 16),
  };
}

/** The journal's reason for a plan's actions on services. */
export function reasonOfActions({
  steps,
}: ChangePlan): "ServiceRestarted" | "ServiceReloaded" | "DaemonReloaded" | "None" {
  const has = (verb: Step["do"]) => steps.some((step) => step.do === verb);
  if (has("restart")) return "ServiceRestarted";
  if (has("reload")) return "ServiceReloaded";
  return has("daemonReload") ? "DaemonReloaded" : "None";
}

/** Actions of a plan as commands. */
export const describeActions = ({ steps }: ChangePlan): string =>
  steps
    .filter(isAction)
    .map((step) => ("unit" in step ? `${step.do} ${step.unit}` : "daemon-reload"))
    .join(", ");
