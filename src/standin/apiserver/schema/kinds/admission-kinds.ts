import { pushAll } from "../../../../api/schema/push-all.ts";
import { compileAdmissionPolicy } from "../validation/cel-policies.ts";
import type { FieldError, KubeObject, ResourceDefinition } from "../contract.ts";
import { duplicate, forbidden, invalid, notSupported, required } from "../field-errors.ts";
import { at, isObject, listAt, textAt } from "../json-values.ts";
import { oneOf, requireFields, validateSelector } from "../validation/object-validation.ts";
import { kind } from "./define-kind.ts";

const operations = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

function validateWebhooks(object: KubeObject): readonly FieldError[] {
  const seen = new Set<string>();
  return listAt(object, "webhooks").flatMap((webhook, index) => {
    const path = `webhooks[${index}]`;
    const name = textAt(webhook, "name");
    const errors: FieldError[] = [...requireFields(webhook, path, "name", "sideEffects")];
    const versions = listAt(webhook, "admissionReviewVersions");
    if (versions.length === 0)
      errors.push(required(`${path}.admissionReviewVersions`, "must specify one of v1, v1beta1"));
    else if (!versions.includes("v1") && !versions.includes("v1beta1"))
      errors.push(invalid(`${path}.admissionReviewVersions`, versions, "must include at least one of v1, v1beta1"));
    listAt(webhook, "rules").forEach((rule, number) =>
      listAt(rule, "operations").forEach((operation, which) => {
        if (!operations.includes(String(operation)))
          errors.push(notSupported(`${path}.rules[${number}].operations[${which}]`, operation, operations));
      }),
    );
    if (name !== "" && name.split(".").length < 3)
      errors.push(invalid(`${path}.name`, name, "should be a domain with at least three segments separated by dots"));
    if (seen.has(name)) errors.push(duplicate(`${path}.name`, name));
    seen.add(name);
    if (textAt(webhook, "sideEffects") !== "" && !["None", "NoneOnDryRun"].includes(textAt(webhook, "sideEffects")))
      errors.push(notSupported(`${path}.sideEffects`, textAt(webhook, "sideEffects"), ["None", "NoneOnDryRun"]));
    const [url, service] = [at(webhook, "clientConfig", "url"), at(webhook, "clientConfig", "service")];
    if ((url === undefined) === (service === undefined))
      errors.push(required(`${path}.clientConfig`, "exactly one of url or service is required"));
    const parsed = typeof url === "string" ? URL.parse(url) : null;
    if (parsed !== null && parsed.username !== "")
      errors.push(invalid(`${path}.clientConfig.url`, parsed.username, "user information is not permitted in the URL"));
    if (typeof url === "string" && parsed?.protocol !== "https:")
      errors.push(
        invalid(
          `${path}.clientConfig.url`,
          parsed?.protocol.replace(":", "") ?? url,
          "'https' is the only allowed URL scheme; desired format: https://host[/path]",
        ),
      );
    const seconds = at(webhook, "timeoutSeconds");
    if (typeof seconds === "number" && (seconds < 1 || seconds > 30))
      errors.push(invalid(`${path}.timeoutSeconds`, seconds, "the timeout value must be between 1 and 30 seconds"));
    pushAll(errors, [
      ...oneOf(webhook, path, "failurePolicy", ["Fail", "Ignore"]),
      ...oneOf(webhook, path, "matchPolicy", ["Equivalent", "Exact"]),
    ]);
    pushAll(errors, [
      ...validateSelector(at(webhook, "namespaceSelector"), `${path}.namespaceSelector`),
      ...validateSelector(at(webhook, "objectSelector"), `${path}.objectSelector`),
    ]);
    const conditions = compileAdmissionPolicy({ matchConditions: at(webhook, "matchConditions") });
    if (conditions.verdict === "refused")
      pushAll(
        errors,
        conditions.errors.map((error) => ({ ...error, field: error.field.replace(/^spec/, path) })),
      );
    return errors;
  });
}

function validatePolicy(policy: KubeObject): readonly FieldError[] {
  const compiled = compileAdmissionPolicy(policy["spec"]);
  const rules = listAt(policy, "spec", "matchConstraints", "resourceRules");
  return [
    ...(isObject(at(policy, "spec", "matchConstraints"))
      ? rules.length === 0
        ? [required("spec.matchConstraints.resourceRules")]
        : []
      : [required("spec.matchConstraints")]),
    ...(listAt(policy, "spec", "validations").length + listAt(policy, "spec", "auditAnnotations").length === 0
      ? ["spec.validations", "spec.auditAnnotations"].map((field) =>
          required(field, "validations or auditAnnotations must contain at least one item"),
        )
      : []),
    ...listAt(policy, "spec", "validations").flatMap((validation, index) =>
      oneOf(validation, `spec.validations[${index}]`, "reason", ["Forbidden", "Invalid", "RequestEntityTooLarge"]),
    ),
    ...oneOf(policy["spec"], "spec", "failurePolicy", ["Fail", "Ignore"]),
    ...(compiled.verdict === "refused" ? compiled.errors : []),
  ];
}

/** kubernetes/kubernetes pkg/apis/admissionregistration/validation/validation.go (master) */
function validatePolicyBinding(binding: KubeObject): readonly FieldError[] {
  const actions = listAt(binding, "spec", "validationActions");
  const reference = at(binding, "spec", "paramRef");
  const errors: FieldError[] = [...requireFields(binding, "", "spec.policyName")];
  if (isObject(reference)) {
    if (textAt(reference, "name") !== "" && isObject(reference["selector"]))
      for (const field of ["name", "selector"])
        errors.push(forbidden(`spec.paramRef.${field}`, "name and selector are mutually exclusive"));
    pushAll(errors, [
      ...requireFields(reference, "spec.paramRef", "parameterNotFoundAction"),
      ...oneOf(reference, "spec.paramRef", "parameterNotFoundAction", ["Allow", "Deny"]),
    ]);
  }
  if (actions.length === 0)
    errors.push(required("spec.validationActions", "at least one validation action is required"));
  actions.forEach((action, index) =>
    pushAll(
      errors,
      oneOf({ [index]: action }, "", String(index), ["Audit", "Deny", "Warn"]).map((error) => ({
        ...error,
        field: `spec.validationActions[${index}]`,
      })),
    ),
  );
  if (actions.includes("Deny") && actions.includes("Warn")) {
    errors.push(
      invalid(
        "spec.validationActions",
        actions,
        "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
      ),
    );
  }
  return errors;
}

export const admissionKinds: readonly ResourceDefinition[] = [
  kind("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", {
    clusterScoped: true,
    categories: ["api-extensions"],
    validate: validateWebhooks,
  }),
  kind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", {
    plural: "validatingadmissionpolicies",
    clusterScoped: true,
    categories: ["api-extensions"],
    status: true,
    validate: validatePolicy,
  }),
  kind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", {
    clusterScoped: true,
    categories: ["api-extensions"],
    validate: validatePolicyBinding,
  }),
  kind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", {
    clusterScoped: true,
    categories: ["api-extensions"],
    validate: validateWebhooks,
  }),
];
