import type { FieldError, KubeObject, ResourceDefinition } from "../contract.ts";
import { invalid } from "../field-errors.ts";
import { at, textAt } from "../json-values.ts";
import { kind } from "./define-kind.ts";

export function validateEvent(event: KubeObject): readonly FieldError[] {
  const about = textAt(event, "involvedObject", "namespace") || textAt(event, "regarding", "namespace");
  const own = event.metadata.namespace ?? "";
  // Events of cluster-scoped objects live in `default`; a namespace is never made up, or `describe node` would not find
  // them.
  if (about === "" ? own !== "default" && own !== "" && own !== "kube-system" : about !== own)
    return [invalid("involvedObject.namespace", about, "does not match event.namespace")];
  return [];
}

export const text =
  (...path: readonly string[]) =>
  (object: KubeObject): string => {
    const value = at(object, ...path);
    return value === undefined || value === null
      ? ""
      : typeof value === "object"
        ? JSON.stringify(value)
        : String(value as string | number | boolean);
  };

export const eventFields: ResourceDefinition["selectableFields"] = {
  "involvedObject.kind": text("involvedObject", "kind"),
  "involvedObject.namespace": text("involvedObject", "namespace"),
  "involvedObject.name": text("involvedObject", "name"),
  "involvedObject.uid": text("involvedObject", "uid"),
  "involvedObject.apiVersion": text("involvedObject", "apiVersion"),
  "involvedObject.resourceVersion": text("involvedObject", "resourceVersion"),
  "involvedObject.fieldPath": text("involvedObject", "fieldPath"),
  reason: text("reason"),
  reportingComponent: (event) => textAt(event, "reportingComponent") || textAt(event, "source", "component"),
  source: (event) => textAt(event, "source", "component") || textAt(event, "reportingComponent"),
  type: text("type"),
};

/** events.k8s.io names the same values differently. */
const newEventFields: ResourceDefinition["selectableFields"] = {
  ...Object.fromEntries(
    ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].map((field) => [
      `regarding.${field}`,
      (event: KubeObject): string => textAt(event, "regarding", field) || textAt(event, "involvedObject", field),
    ]),
  ),
  reason: text("reason"),
  reportingController: (event) => textAt(event, "reportingController") || textAt(event, "reportingComponent"),
  type: text("type"),
};

export const eventKinds: readonly ResourceDefinition[] = [
  kind("events.k8s.io", "v1", "Event", {
    type: "EventsEvent",
    shortNames: ["ev"],
    generation: "never",
    validate: validateEvent,
    selectableFields: newEventFields,
  }),
];
