import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { reasonText } from "../../api/books/report-table.ts";
import {
  annotations,
  controllerConfigConditions as templates,
  machineConfigurationConditions,
  namespace,
  objects,
  settingsConditions,
} from "../../api/names.ts";
import { type Condition, conditionOf, timestampOf } from "../../api/schema/object.ts";
import type { SettingsObject } from "../kubelet/decide-generated.ts";
import { isGeneratedName } from "../kubelet/generated-names.ts";
import { bootImageConditions, bootImageReasons } from "./boot-image-report.ts";
import { healthReasonKey, healthTypes, keepingTypes } from "./health.ts";
import { type Facts, renderRefusal } from "../pool/pool-queries.ts";
import { logOf } from "../preview/explain.ts";
import { type Explanation, type Remedies, section } from "../preview/explanation.ts";

const conditionText = ({ type, status, reason, message }: Partial<Condition>) =>
  `${type ?? ""}: ${status ?? ""} (${reason ?? ""})${(message ?? "") === "" ? "" : `, ${message ?? ""}`}`;

/** Where the controller is with the settings of the cluster. @param now milliseconds since the epoch. */
export function explainControllerConfig(config: ControllerConfig, now: number): Explanation {
  const { name, generation = 1 } = config.metadata;
  const conditions = (config.status?.conditions ?? []) as readonly Condition[];
  const is = (type: string) => conditionOf(conditions, type)?.status === "True";
  const failing = is(templates.failing);
  const isCurrent = is(templates.completed) && config.status?.observedGeneration === generation;
  const reason = failing ? "Failing" : isCurrent ? "Completed" : is(templates.running) ? "Running" : "NotSeen";
  const message = conditionOf(conditions, templates.failing)?.message ?? "";
  return {
    subject: `controllerconfig/${name}`,
    asOf: timestampOf(now),
    freshness: "Fresh",
    reason,
    headline: failing
      ? `The base configurations cannot be made from ${name}: ${message}.`
      : isCurrent
        ? `The base configurations are those of ${name}.`
        : `The base configurations of ${name} are being made.`,
    sections: section("Conditions", conditions.map(conditionText)),
    next: failing || isCurrent ? [] : ["the controller makes them by itself"],
    todo: failing
      ? [
          `fix what the message names; the controller tries again by itself, and its log says more: ${logOf(objects.controller)}`,
        ]
      : [],
  };
}

/** What became of a KubeletConfig or a ContainerRuntimeConfig. @param now milliseconds since the epoch. */
export function explainSettingsObject(object: SettingsObject, now: number): Explanation {
  const { kind, metadata, status } = object;
  const subject = `${kind.toLowerCase()}/${metadata.name}`;
  const conditions = (status?.conditions ?? []) as readonly Condition[];
  const { accepted, effective } = settingsConditions;
  const [isAccepted, isEffective] = [conditionOf(conditions, accepted), conditionOf(conditions, effective)];
  const isSeen = status?.observedGeneration === (metadata.generation ?? 1);
  const leaves = metadata.deletionTimestamp !== undefined;
  const state = leaves
    ? "Deleting"
    : !isSeen || isAccepted === undefined
      ? "NotSeen"
      : isAccepted.status === "True"
        ? (isEffective?.reason ?? "AsWritten")
        : "Invalid";
  const made = (metadata.finalizers ?? []).filter(
    (name) => isGeneratedName(name, "kubelet") || isGeneratedName(name, "containerruntime"),
  );
  return {
    subject,
    asOf: timestampOf(now),
    freshness: "Fresh",
    reason: state,
    headline: `${kind} ${metadata.name} ${settingsHeadline(state, isAccepted?.message ?? "", isEffective?.message ?? "")}.`,
    sections: [
      ...section(
        "MachineConfigs made of it",
        made.map((name) => `mc/${name}`),
      ),
      ...section("Conditions", conditions.map(conditionText)),
    ],
    next:
      state === "NotSeen" ? ["the controller judges it by itself"] : leaves ? ["its MachineConfigs are removed"] : [],
    todo: settingsTodo(state, subject),
  };
}

function settingsHeadline(state: string, refusal: string, lost: string): string {
  switch (state) {
    case "NotSeen":
      return "has not been judged yet";
    case "Deleting":
      return "is being deleted";
    case "Invalid":
      return `is refused: ${refusal}`;
    case "AsWritten":
      return "is in its pools' configurations";
    default:
      return `is in its pools' configurations, but not all of it counts: ${lost}`;
  }
}

function settingsTodo(state: string, subject: string): readonly string[] {
  const edit = `kubectl edit ${subject}`;
  switch (state) {
    case "Invalid":
      return [`correct the named field: ${edit}`];
    case "Overridden":
      return [`put all settings of a pool into one object, and delete the others; or: kubectl delete ${subject}`];
    case "Replaced":
      return [`take the named file out of the named MachineConfig; or: kubectl delete ${subject}`];
    case "FieldsWithoutEffect":
      return [`correct the named fields: ${edit}`];
    default:
      return [];
  }
}

/** The workload behind a health condition: where its pods and its log are. */
const partOf: Readonly<Record<string, { readonly app: string; readonly log: string } | undefined>> = {
  OperatorHealthy: { app: objects.operator, log: logOf(objects.operator) },
  ControllerHealthy: { app: objects.controller, log: logOf(objects.controller) },
  DaemonsHealthy: { app: objects.daemon, log: `kubectl logs -n ${namespace} -p -l k8s-app=${objects.daemon}` },
  ServerHealthy: { app: objects.configServer, log: `kubectl logs -n ${namespace} -l k8s-app=${objects.configServer}` },
  BuilderHealthy: { app: objects.osBuilder, log: logOf(objects.osBuilder) },
  StateKeeping: { app: objects.state, log: logOf(objects.state) },
  BootstrapComplete: undefined,
};

/** Reasons that the pods and the log of the part explain no further. */
const speaksForItself: ReadonlySet<string> = new Set([
  "SyncFailing",
  "RenderFailing",
  "BuildQueueStuck",
  "Off",
  "Gap",
  "InProgress",
]);

/** What the condition of one part asks for; empty: it is as it should be. */
export function healthRemedies(
  { type, status, reason }: Pick<Condition, "type" | "status" | "reason">,
  facts: Facts,
): Remedies {
  if (status === "True" || type === "UpdateProgressing") return { next: [], todo: [] };
  const key = healthReasonKey(reason);
  if (key === "InProgress") return { next: [`${type}: it continues on its own`], todo: [] };
  const { next, isNone } = reasonText(key ?? reason);
  if (isNone === true) return { next: [`${type}: ${next}`], todo: [] };
  const part = partOf[type];
  const refused = facts.members
    .pools()
    .flatMap((pool) => (renderRefusal(pool) === undefined ? [] : [`mco explain pool/${pool.metadata.name}`]));
  return {
    next: [],
    todo: [
      `${type}: ${next}`,
      ...(key === "RenderFailing" ? refused : []),
      ...(part === undefined || key === undefined || speaksForItself.has(key)
        ? []
        : [`its pods: kubectl get pods -n ${namespace} -l k8s-app=${part.app}; its log: ${part.log}`]),
    ],
  };
}

/** What settings of the suite itself ask for. */
function settingTodo({ type, status, reason }: Condition): readonly string[] {
  const { configServerInsecure } = machineConfigurationConditions;
  if (type === bootImageConditions.degraded && status === "True")
    return reason === bootImageReasons.unsupported
      ? [
          "set selection.mode of each of spec.managedBootImages.machineManagers to None, for those that the message names",
        ]
      : [`${type}: do for each of the named MachineSets what the message says behind it`];
  if (type !== configServerInsecure) return [];
  if (reason === "NotUnderstood")
    return [`set the annotation ${annotations.configServerAccess} to required or insecure, or remove it`];
  return status === "True"
    ? [
        `give machines tokens (mco token create), then: kubectl annotate machineconfiguration cluster ${annotations.configServerAccess}-`,
      ]
    : [];
}

const healthConditions: ReadonlySet<string> = new Set([...healthTypes, ...keepingTypes]);

/** How the parts of the suite are, and which of its settings ask for something. */
export function explainMachineConfiguration(configuration: MachineConfiguration, facts: Facts): Explanation {
  const conditions = (configuration.status?.conditions ?? []) as readonly Condition[];
  const health = conditions.filter(({ type }) => healthConditions.has(type));
  const remedies = health.map((condition) => healthRemedies(condition, facts));
  const settings = conditions.flatMap(settingTodo);
  const troubled = health.filter(
    (_, index) => [...(remedies[index]?.todo ?? []), ...(remedies[index]?.next ?? [])].length > 0,
  );
  const [first] = troubled;
  const isSeen = configuration.status?.observedGeneration === (configuration.metadata.generation ?? 1);
  return {
    subject: `machineconfiguration/${configuration.metadata.name}`,
    asOf: timestampOf(facts.heardAt ?? facts.now),
    freshness: facts.heardAt === undefined ? "Unknown" : "Fresh",
    reason: first?.reason ?? (settings.length > 0 ? "Settings" : isSeen ? "AsExpected" : "NotSeen"),
    headline:
      first === undefined
        ? settings.length > 0
          ? "The suite works; some of its settings ask for attention."
          : isSeen
            ? "Every part of the suite is as it should be."
            : "The operator has not taken these settings on yet."
        : `${first.type}: ${first.message}.`,
    sections: section("Conditions", conditions.map(conditionText)),
    next: [
      ...remedies.flatMap(({ next }) => next),
      ...conditions.flatMap(({ type, status }) =>
        type === bootImageConditions.progressing && status === "True" ? [`${type}: it continues on its own`] : [],
      ),
      ...(isSeen
        ? []
        : ["the operator takes the settings on by itself; if it does not: mco explain co/machine-config"]),
    ],
    todo: [...remedies.flatMap(({ todo }) => todo), ...settings],
  };
}
