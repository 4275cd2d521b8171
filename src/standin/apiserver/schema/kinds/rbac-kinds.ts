import { pushAll } from "../../../../api/schema/push-all.ts";
import type { FieldError, KubeObject, ResourceDefinition } from "../contract.ts";
import { invalid, notSupported, required } from "../field-errors.ts";
import { equalJson, isObject, listAt, textAt } from "../json-values.ts";
import { pathName, requireFields } from "../validation/object-validation.ts";
import { setDefault, asGo, kind } from "./define-kind.ts";

const rbacGroup = "rbac.authorization.k8s.io";

function prepareBinding(binding: KubeObject): void {
  const reference = binding["roleRef"];
  if (isObject(reference)) setDefault(reference, "apiGroup", rbacGroup);
  for (const subject of listAt(binding, "subjects")) {
    if (!isObject(subject)) continue;
    if (subject["kind"] === "User" || subject["kind"] === "Group") setDefault(subject, "apiGroup", rbacGroup);
  }
}

function validateBinding(binding: KubeObject, before: KubeObject | undefined): readonly FieldError[] {
  const errors: FieldError[] = [];
  const kinds = binding.kind === "RoleBinding" ? ["Role", "ClusterRole"] : ["ClusterRole"];
  if (textAt(binding, "roleRef", "apiGroup") !== rbacGroup)
    errors.push(notSupported("roleRef.apiGroup", textAt(binding, "roleRef", "apiGroup"), [rbacGroup]));
  if (!kinds.includes(textAt(binding, "roleRef", "kind")))
    errors.push(notSupported("roleRef.kind", textAt(binding, "roleRef", "kind"), kinds));
  pushAll(errors, requireFields(binding["roleRef"], "roleRef", "name"));
  listAt(binding, "subjects").forEach((subject, index) => {
    const path = `subjects[${index}]`;
    pushAll(errors, requireFields(subject, path, "name"));
    const type = textAt(subject, "kind");
    if (!subjectKinds.includes(type)) errors.push(notSupported(`${path}.kind`, type, subjectKinds));
    if (type === "ServiceAccount" && textAt(subject, "namespace") === "") errors.push(required(`${path}.namespace`));
  });
  if (before !== undefined && !equalJson(binding["roleRef"], before["roleRef"]))
    errors.push(invalid("roleRef", asGo(binding["roleRef"], ["apiGroup", "kind", "name"]), "cannot change roleRef"));
  return errors;
}

const subjectKinds = ["ServiceAccount", "User", "Group"];

function validateRole(role: KubeObject): readonly FieldError[] {
  return listAt(role, "rules").flatMap((rule, index) => {
    const path = `rules[${index}]`;
    const errors =
      listAt(rule, "verbs").length === 0 ? [required(`${path}.verbs`, "verbs must contain at least one value")] : [];
    const urls = listAt(rule, "nonResourceURLs");
    if (urls.length > 0) {
      if (role.kind === "Role")
        errors.push(invalid(`${path}.nonResourceURLs`, urls, "namespaced rules cannot apply to non-resource URLs"));
      if (
        listAt(rule, "apiGroups").length + listAt(rule, "resources").length + listAt(rule, "resourceNames").length >
        0
      ) {
        errors.push(
          invalid(
            `${path}.nonResourceURLs`,
            urls,
            "rules cannot apply to both regular resources and non-resource URLs",
          ),
        );
      }
      return errors;
    }
    if (listAt(rule, "apiGroups").length === 0)
      errors.push(required(`${path}.apiGroups`, "resource rules must supply at least one api group"));
    if (listAt(rule, "resources").length === 0)
      errors.push(required(`${path}.resources`, "resource rules must supply at least one resource"));
    return errors;
  });
}

export const rbacKinds: readonly ResourceDefinition[] = [
  kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", {
    clusterScoped: true,
    name: pathName,
    generation: "never",
    prepare: prepareBinding,
    validate: validateBinding,
  }),
  kind("rbac.authorization.k8s.io", "v1", "ClusterRole", {
    clusterScoped: true,
    name: pathName,
    generation: "never",
    validate: validateRole,
  }),
  kind("rbac.authorization.k8s.io", "v1", "RoleBinding", {
    name: pathName,
    generation: "never",
    prepare: prepareBinding,
    validate: validateBinding,
  }),
  kind("rbac.authorization.k8s.io", "v1", "Role", { name: pathName, generation: "never", validate: validateRole }),
];
