import type { FieldError, KubeObject, ResourceDefinition } from "../contract.ts";
import { forbidden, invalid } from "../field-errors.ts";
import { at, cloneJson, isList } from "../json-values.ts";
import { immutable, pathName, validateSelector } from "../validation/object-validation.ts";
import { validateSigningRequest } from "./signing-request.ts";
import { objectIn, setDefault, asGo, kind } from "./define-kind.ts";
import { text } from "./event-kinds.ts";

function validateBudget(budget: KubeObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const [minimum, maximum] = [at(budget, "spec", "minAvailable"), at(budget, "spec", "maxUnavailable")];
  if (minimum !== undefined && maximum !== undefined)
    errors.push(
      invalid(
        "spec",
        asGo(budget["spec"], ["minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy"]),
        "minAvailable and maxUnavailable cannot be both set",
      ),
    );
  for (const [field, value] of [["minAvailable", minimum] as const, ["maxUnavailable", maximum] as const]) {
    if (typeof value === "string" && !/^\d+%$/.test(value))
      errors.push(
        invalid(
          `spec.${field}`,
          value,
          "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
        ),
      );
    else if (typeof value === "number" && value < 0)
      errors.push(invalid(`spec.${field}`, value, "must be greater than or equal to 0"));
  }
  return [...errors, ...validateSelector(at(budget, "spec", "selector"), "spec.selector")];
}

function validateLease(lease: KubeObject): readonly FieldError[] {
  const [seconds, transitions] = [at(lease, "spec", "leaseDurationSeconds"), at(lease, "spec", "leaseTransitions")];
  return [
    ...(typeof seconds === "number" && seconds <= 0
      ? [invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")]
      : []),
    ...(typeof transitions === "number" && transitions < 0
      ? [invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")]
      : []),
  ];
}

export const certificateKinds: readonly ResourceDefinition[] = [
  kind("certificates.k8s.io", "v1", "CertificateSigningRequest", {
    shortNames: ["csr"],
    clusterScoped: true,
    name: pathName,
    status: true,
    generation: "never",
    subresources: [{ name: "approval", verbs: ["get", "patch", "update"] }],
    // The original request stays, whatever is sent.
    prepare: (object, before) => {
      if (before !== undefined) object["spec"] = cloneJson(before["spec"]);
    },
    validate: validateSigningRequest,
    selectableFields: { "spec.signerName": text("spec", "signerName") },
  }),
];

export const networkingKinds: readonly ResourceDefinition[] = [
  kind("networking.k8s.io", "v1", "NetworkPolicy", {
    plural: "networkpolicies",
    shortNames: ["netpol"],
    prepare: (object) => {
      const spec = objectIn(object, "spec");
      setDefault(spec, "podSelector", {});
      setDefault(spec, "policyTypes", isList(spec["egress"]) ? ["Ingress", "Egress"] : ["Ingress"]);
    },
    validate: (object) => validateSelector(at(object, "spec", "podSelector"), "spec.podSelector"),
  }),
];

export const policyKinds: readonly ResourceDefinition[] = [
  kind("policy", "v1", "PodDisruptionBudget", { shortNames: ["pdb"], status: true, validate: validateBudget }),
];

export const schedulingKinds: readonly ResourceDefinition[] = [
  kind("scheduling.k8s.io", "v1", "PriorityClass", {
    plural: "priorityclasses",
    shortNames: ["pc"],
    clusterScoped: true,
    prepare: (object) => {
      setDefault(object, "preemptionPolicy", "PreemptLowerPriority");
      setDefault(object, "value", 0);
    },
    validate: (object, before) =>
      before === undefined
        ? []
        : immutable(object, before, "value", "preemptionPolicy").map((error) =>
            forbidden(error.field, "may not be changed in an update."),
          ),
  }),

  kind("coordination.k8s.io", "v1", "Lease", { generation: "never", validate: validateLease }),
];
