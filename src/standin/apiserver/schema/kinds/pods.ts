import { canonicalJson } from "../../../../core/text/canonical-json.ts";
import type { FieldError, KubeObject, ResourceDefinition } from "../contract.ts";
import { forbidden, invalid } from "../field-errors.ts";
import { at, cloneJson, equalJson, isObject, listAt, objectAt, textAt, type JsonObject } from "../json-values.ts";
import { validatePodSpec } from "../validation/object-validation.ts";
import { objectIn, setDefault } from "./define-kind.ts";
import { text } from "./event-kinds.ts";

/** kubernetes/kubernetes pkg/apis/core/v1/defaults.go (master): what depends on other fields. */
export function preparePodSpec(spec: JsonObject): void {
  for (const field of ["initContainers", "containers"]) {
    for (const container of listAt(spec, field)) {
      if (!isObject(container)) continue;
      const image = textAt(container, "image");
      if (container["imagePullPolicy"] === undefined && image !== "")
        container["imagePullPolicy"] = imageTag(image) === "latest" ? "Always" : "IfNotPresent";
    }
  }
  // A volume without a source is an empty folder.
  for (const volume of listAt(spec, "volumes"))
    if (isObject(volume) && Object.keys(volume).every((key) => key === "name")) volume["emptyDir"] = {};
  const account = spec["serviceAccountName"] ?? spec["serviceAccount"];
  if (typeof account === "string" && account !== "") {
    spec["serviceAccountName"] = account;
    spec["serviceAccount"] = account;
  }
}

/** Defaults for pods that do not apply to pod templates. */
function preparePlainPod(spec: JsonObject): void {
  for (const field of ["initContainers", "containers"]) {
    for (const container of listAt(spec, field)) {
      if (!isObject(container)) continue;
      const { resources } = container;
      if (isObject(resources) && isObject(resources["limits"])) {
        const requests = objectIn(resources, "requests");
        for (const [name, value] of Object.entries(resources["limits"])) setDefault(requests, name, value);
      }
    }
  }
  if (spec["hostNetwork"] === true) {
    for (const container of listAt(spec, "containers"))
      for (const port of listAt(container, "ports"))
        if (isObject(port)) setDefault(port, "hostPort", port["containerPort"]);
  }
}

/** A value and the list that it is the first of: the single one wins. `pkg/apis/core/v1/conversion.go (v1.34)` */
export function keepSingleFirst(
  object: JsonObject,
  single: string,
  list: string,
  read: (item: unknown) => unknown,
  write: (value: unknown) => unknown,
): void {
  const [value, items] = [object[single], listAt(object, list)];
  if (value === undefined || value === "") {
    if (items.length > 0) object[single] = read(items[0]);
  } else if (items.length === 0 || read(items[0]) !== value) object[list] = [write(value)];
}

function imageTag(image: string): string {
  if (image.includes("@")) return "";
  const last = image.slice(image.lastIndexOf("/") + 1);
  const colon = last.lastIndexOf(":");
  return colon === -1 ? "latest" : last.slice(colon + 1);
}

export function prepareTemplate(object: KubeObject): JsonObject {
  const spec = objectIn(object, "spec");
  const template = spec["template"];
  if (isObject(template)) {
    setDefault(template, "metadata", {});
    if (isObject(template["spec"])) preparePodSpec(template["spec"]);
  }
  return spec;
}

const resourceNames = ["cpu", "memory"];

/** kubernetes/kubernetes pkg/apis/core/v1/helper/qos/qos.go (master) */
function qosClass(spec: unknown): string {
  let any = false;
  let guaranteed = true;
  for (const container of [...listAt(spec, "containers"), ...listAt(spec, "initContainers")]) {
    const [limits, requests] = [
      objectAt(container, "resources", "limits"),
      objectAt(container, "resources", "requests"),
    ];
    for (const name of resourceNames) {
      if (limits[name] !== undefined || requests[name] !== undefined) any = true;
      if (limits[name] === undefined || (requests[name] !== undefined && !equalJson(limits[name], requests[name])))
        guaranteed = false;
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

export function preparePod(pod: KubeObject, before: KubeObject | undefined): void {
  const spec = objectIn(pod, "spec");
  preparePodSpec(spec);
  preparePlainPod(spec);
  keepSingleFirst(
    objectIn(pod, "status"),
    "podIP",
    "podIPs",
    (one) => textAt(one, "ip"),
    (ip) => ({ ip }),
  );
  setDefault(spec, "enableServiceLinks", true);
  if (before !== undefined) return;
  const status = objectIn(pod, "status");
  setDefault(status, "phase", "Pending");
  setDefault(status, "qosClass", qosClass(spec));
}

const podUpdateText =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/** `pkg/apis/core/validation/validation.go (v1.34)` ValidatePodUpdate */
export function validatePod(pod: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const errors = [...validatePodSpec(pod["spec"], "spec")];
  if (before === undefined) return errors;
  for (const field of ["containers", "initContainers"]) {
    if (listAt(pod, "spec", field).length !== listAt(before, "spec", field).length)
      return [...errors, forbidden(`spec.${field}`, "pod updates may not add or remove containers")];
  }
  const [deadline, earlier] = [at(pod, "spec", "activeDeadlineSeconds"), at(before, "spec", "activeDeadlineSeconds")];
  if (typeof deadline === "number" && typeof earlier === "number" && earlier < deadline)
    return [...errors, invalid("spec.activeDeadlineSeconds", deadline, "must be less than or equal to previous value")];
  if (deadline === undefined && earlier !== undefined)
    errors.push(invalid("spec.activeDeadlineSeconds", null, "must not update from a positive integer to nil value"));
  const gates = new Set(listAt(before, "spec", "schedulingGates").map((one) => textAt(one, "name")));
  listAt(pod, "spec", "schedulingGates").forEach((gate, index) => {
    const name = textAt(gate, "name");
    if (gates.has(name)) return;
    errors.push(
      forbidden(
        `spec.schedulingGates[${index}].name`,
        `only deletion is allowed, but found new scheduling gate '${name}'`,
      ),
    );
  });
  const timeless = (toleration: unknown) => canonicalJson({ ...objectAt(toleration), tolerationSeconds: 0 });
  const tolerations = new Set(listAt(pod, "spec", "tolerations").map(timeless));
  const kept = listAt(before, "spec", "tolerations").every((toleration) => tolerations.has(timeless(toleration)));
  if (!kept)
    errors.push(forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"));
  if (!equalJson(frozenPodSpec(pod["spec"]), frozenPodSpec(before["spec"])))
    errors.push(forbidden("spec", podUpdateText));
  return errors;
}

function frozenPodSpec(spec: unknown): JsonObject {
  const frozen = cloneJson(objectAt(spec));
  for (const field of ["tolerations", "activeDeadlineSeconds", "schedulingGates"]) delete frozen[field];
  for (const field of ["containers", "initContainers"])
    for (const container of listAt(frozen, field)) if (isObject(container)) delete container["image"];
  return Object.fromEntries(Object.entries(frozen).filter(([, value]) => value !== undefined));
}

export const podFields: ResourceDefinition["selectableFields"] = {
  "spec.nodeName": text("spec", "nodeName"),
  "spec.restartPolicy": text("spec", "restartPolicy"),
  "spec.schedulerName": text("spec", "schedulerName"),
  "spec.serviceAccountName": text("spec", "serviceAccountName"),
  "spec.hostNetwork": (pod) => String(at(pod, "spec", "hostNetwork") === true),
  "status.phase": text("status", "phase"),
  "status.podIP": text("status", "podIP"),
  "status.nominatedNodeName": text("status", "nominatedNodeName"),
};
