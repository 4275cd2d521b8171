import type { FieldError, KubeObject, ResourceDefinition } from "../contract.ts";
import { definitionsOf } from "../validation/custom-resource-definition.ts";
import { textAt } from "../json-values.ts";
import { immutable } from "../validation/object-validation.ts";
import { objectIn, setDefault, kind } from "./define-kind.ts";

function prepareDefinition(object: KubeObject): void {
  const names = objectIn(objectIn(object, "spec"), "names");
  const name = textAt(names, "kind");
  if (name === "") return;
  setDefault(names, "singular", name.toLowerCase());
  setDefault(names, "listKind", `${name}List`);
}

function validateDefinition(object: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const lowered = definitionsOf(object);
  const errors = lowered.verdict === "refused" ? [...lowered.errors] : [];
  return before === undefined
    ? errors
    : [...errors, ...immutable(object, before, "spec.group", "spec.names.plural", "spec.scope", "spec.names.kind")];
}

export const extensionKinds: readonly ResourceDefinition[] = [
  kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", {
    shortNames: ["crd", "crds"],
    categories: ["api-extensions"],
    clusterScoped: true,
    status: true,
    prepare: prepareDefinition,
    validate: validateDefinition,
  }),
];
