import { pushAll } from "../../../../api/schema/push-all.ts";
import type { FieldError, KubeObject, ResourceDefinition } from "../contract.ts";
import { forbidden, invalid, notSupported } from "../field-errors.ts";
import { at, equalJson, isObject, textAt } from "../json-values.ts";
import { immutable, notNegative, validateWorkload } from "../validation/object-validation.ts";
import { objectIn, setDefault, isZero, kind } from "./define-kind.ts";
import { prepareTemplate } from "./pods.ts";
import { text } from "./event-kinds.ts";

function prepareDeployment(deployment: KubeObject): void {
  const spec = prepareTemplate(deployment);
  const { strategy } = spec;
  if (isObject(strategy) && strategy["type"] === "RollingUpdate") {
    const rolling = objectIn(strategy, "rollingUpdate");
    setDefault(rolling, "maxUnavailable", "25%");
    setDefault(rolling, "maxSurge", "25%");
  }
}

function validateDeployment(deployment: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const errors = [...validateWorkload(deployment, before, ["Always"])];
  const strategy = at(deployment, "spec", "strategy");
  const type = textAt(strategy, "type");
  if (type === "Recreate" && at(strategy, "rollingUpdate") !== undefined)
    errors.push(forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"));
  else if (isObject(strategy) && type !== "Recreate" && type !== "RollingUpdate")
    errors.push(
      notSupported("spec.strategy", { Type: type, RollingUpdate: strategy["rollingUpdate"] ?? null }, [
        "Recreate",
        "RollingUpdate",
      ]),
    );
  const rolling = type === "RollingUpdate" ? at(strategy, "rollingUpdate") : undefined;
  const [deadline, ready] = [
    at(deployment, "spec", "progressDeadlineSeconds"),
    at(deployment, "spec", "minReadySeconds") ?? 0,
  ];
  if (isZero(at(rolling, "maxUnavailable")) && isZero(at(rolling, "maxSurge")))
    errors.push(
      invalid(
        "spec.strategy.rollingUpdate.maxUnavailable",
        at(rolling, "maxUnavailable"),
        "may not be 0 when `maxSurge` is 0",
      ),
    );
  if (before !== undefined && !equalJson(before["status"] ?? {}, deployment["status"] ?? {}))
    pushAll(errors, validateReplicaCounts(deployment["status"]));
  if (typeof deadline === "number" && typeof ready === "number" && deadline <= ready)
    errors.push(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"));
  return errors;
}

/** `pkg/apis/apps/validation/validation.go (v1.34)` ValidateDeploymentStatus */
function validateReplicaCounts(status: unknown): readonly FieldError[] {
  const count = (field: string): number => {
    const value = at(status, field);
    return typeof value === "number" ? value : 0;
  };
  const errors = [
    ...notNegative(
      status,
      "status",
      "observedGeneration",
      "replicas",
      "updatedReplicas",
      "readyReplicas",
      "availableReplicas",
      "unavailableReplicas",
      "terminatingReplicas",
      "collisionCount",
    ),
  ];
  for (const field of ["updatedReplicas", "readyReplicas", "availableReplicas"])
    if (count(field) > count("replicas"))
      errors.push(invalid(`status.${field}`, count(field), "cannot be greater than status.replicas"));
  if (count("availableReplicas") > count("readyReplicas"))
    errors.push(
      invalid("status.availableReplicas", count("availableReplicas"), "cannot be greater than readyReplicas"),
    );
  return errors;
}

function prepareDaemonSet(object: KubeObject): void {
  const spec = prepareTemplate(object);
  const strategy = objectIn(spec, "updateStrategy");
  if (strategy["type"] === "RollingUpdate") {
    const rolling = objectIn(strategy, "rollingUpdate");
    setDefault(rolling, "maxUnavailable", 1);
    setDefault(rolling, "maxSurge", 0);
  }
}

export const appsKinds: readonly ResourceDefinition[] = [
  kind("apps", "v1", "ControllerRevision", {
    generation: "never",
    validate: (object, before) => immutable(object, before, "data"),
  }),
  kind("apps", "v1", "DaemonSet", {
    shortNames: ["ds"],
    categories: ["all"],
    status: true,
    prepare: prepareDaemonSet,
    validate: (object, before) => validateWorkload(object, before, ["Always"]),
  }),
  kind("apps", "v1", "Deployment", {
    generation: "annotations",
    shortNames: ["deploy"],
    categories: ["all"],
    status: true,
    scale: true,
    prepare: prepareDeployment,
    validate: validateDeployment,
  }),
  kind("apps", "v1", "ReplicaSet", {
    shortNames: ["rs"],
    categories: ["all"],
    status: true,
    scale: true,
    prepare: prepareTemplate,
    validate: (object, before) => validateWorkload(object, before, ["Always"]),
    selectableFields: { "status.replicas": text("status", "replicas") },
  }),
  kind("apps", "v1", "StatefulSet", {
    shortNames: ["sts"],
    categories: ["all"],
    status: true,
    scale: true,
    prepare: prepareTemplate,
    validate: (object, before) => [
      ...validateWorkload(object, before, ["Always"]),
      ...(before === undefined ||
      (equalJson(at(object, "spec", "serviceName"), at(before, "spec", "serviceName")) &&
        equalJson(at(object, "spec", "volumeClaimTemplates"), at(before, "spec", "volumeClaimTemplates")))
        ? []
        : [
            forbidden(
              "spec",
              "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
            ),
          ]),
    ],
  }),
];
