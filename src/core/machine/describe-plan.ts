import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { type Because, type Change, type Consequence, describeConsequence } from "../config/change.ts";
import type { NodeConfig } from "../config/node-config.ts";
import type { Deployment } from "./observed-node.ts";
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
  "enableUnit",
  "disableUnit",
  "presetUnit",
  "setPassword",
];

/** Whether a step acts on services in place of a reboot. */
export const isAction = (step: Step): boolean => actions.includes(step.do);

/** Whether a step writes files, units or accounts. */
export const isWrite = (step: Step): boolean => writes.includes(step.do);

/** Whether a change is one of the operating system. */
export const isOfTheSystem = ({ kind }: Change): boolean =>
  kind === "osImage" || kind === "kernelArguments" || kind === "extensions" || kind === "kernelType";

/** Consequences with their causes, in words. */
export const describeBecause = (because: readonly Because[]): string =>
  because.map(({ consequence, why }) => `${describeConsequence(consequence)} because ${why}`).join("; ");

/** The first five of many, and how many more there are. */
export const firstFive = (words: readonly string[]): string => listText(words, 5);

/** What the machine boots, as far as it is not what it should boot. */
export function describeDeployment(booted: Deployment, wanted: Deployment): string {
  if (booted.image !== wanted.image) return `${booted.image} in place of ${wanted.image}`;
  const wordsOf = ({ kernelArguments, packages, kernelType }: Deployment) => [
    ...kernelArguments,
    ...packages,
    kernelType,
  ];
  const has = wordsOf(booted);
  const missing = wordsOf(wanted).filter((word) => !has.includes(word));
  return `without ${missing.join(", ") || "what was staged"}`;
}

/** What a plan comes to, for the journal: counts only, because contents of files are private. */
export function forecastOf(plan: ChangePlan, booted: Deployment, target: NodeConfig): Metrics {
  const of = (...kinds: readonly Change["kind"][]) => plan.changes.filter(({ kind }) => kinds.includes(kind)).length;
  const words = plan.changes.flatMap((change) => (change.kind === "kernelArguments" ? [change] : []));
  const added = words.flatMap(({ from, to }) => to.filter((word) => !from.includes(word))).length;
  const removed = words.flatMap(({ from, to }) => from.filter((word) => !to.includes(word))).length;
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

/** The reason that the journal gives for what a plan did to services. */
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
