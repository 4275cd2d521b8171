import type { FieldError, KubeObject, ResourceDefinition } from "../contract.ts";
import { at, isObject } from "../json-values.ts";
import { immutable, notNegative, oneOf, requireFields, validatePodTemplate } from "../validation/object-validation.ts";
import { objectIn, setDefault, kind } from "./define-kind.ts";
import { prepareTemplate, preparePodSpec } from "./pods.ts";
import { text } from "./event-kinds.ts";

function prepareJob(job: KubeObject, before: KubeObject | undefined): void {
  const spec = prepareTemplate(job);
  if (spec["completions"] === undefined && spec["parallelism"] === undefined) {
    spec["completions"] = 1;
    spec["parallelism"] = 1;
  }
  setDefault(spec, "parallelism", 1);
  const { uid, name } = job.metadata;
  if (before !== undefined || spec["manualSelector"] === true || uid === undefined || !isObject(spec["template"]))
    return;
  // kubernetes/kubernetes pkg/registry/batch/job/strategy.go (master), generateSelector
  const labels = objectIn(objectIn(spec["template"], "metadata"), "labels");
  labels["controller-uid"] = uid;
  labels["batch.kubernetes.io/controller-uid"] = uid;
  if (name !== undefined) {
    labels["job-name"] = name;
    labels["batch.kubernetes.io/job-name"] = name;
  }
  spec["selector"] ??= { matchLabels: { "batch.kubernetes.io/controller-uid": uid } };
}

function validateJob(job: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  return [
    ...validatePodTemplate(at(job, "spec", "template"), "spec.template", ["OnFailure", "Never"]),
    ...notNegative(
      job,
      "",
      "spec.parallelism",
      "spec.completions",
      "spec.backoffLimit",
      "spec.activeDeadlineSeconds",
      "spec.ttlSecondsAfterFinished",
    ),
    ...immutable(job, before, "spec.completions", "spec.selector", "spec.template", "spec.completionMode"),
  ];
}

export const batchKinds: readonly ResourceDefinition[] = [
  kind("batch", "v1", "CronJob", {
    shortNames: ["cj"],
    categories: ["all"],
    status: true,
    prepare: (object) => {
      const template = at(object, "spec", "jobTemplate", "spec", "template", "spec");
      if (isObject(template)) preparePodSpec(template);
    },
    validate: (object) => [
      ...requireFields(object, "", "spec.schedule"),
      ...oneOf(object, "", "spec.concurrencyPolicy", ["Allow", "Forbid", "Replace"]),
      ...validatePodTemplate(at(object, "spec", "jobTemplate", "spec", "template"), "spec.jobTemplate.spec.template", [
        "OnFailure",
        "Never",
      ]),
    ],
  }),
  kind("batch", "v1", "Job", {
    categories: ["all"],
    status: true,
    prepare: prepareJob,
    validate: validateJob,
    selectableFields: { "status.successful": (job) => text("status", "succeeded")(job) || "0" },
  }),
];
