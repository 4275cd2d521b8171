import { asMatched, describeRequest, selectorsMatch } from "./admission-match.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./admission.ts";
import { type Catalog, splitApiVersion } from "../schema/kinds/catalog.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import {
  compileAdmissionPolicy,
  policyRequest,
  type CompiledPolicy,
  type PolicyRequest,
} from "../schema/validation/cel-policies.ts";
import type { KubeObject, Served } from "../schema/contract.ts";
import { isObject } from "../schema/json-values.ts";
import { labelSelectorMatches } from "../schema/selectors.ts";
import { forbidden, Refusal } from "../schema/status.ts";
import type { Exchange } from "../access/exchange.ts";
import { own } from "../../../api/schema/own.ts";

const policiesResource = "validatingadmissionpolicies.admissionregistration.k8s.io";
const bindingsResource = "validatingadmissionpolicybindings.admissionregistration.k8s.io";

interface Policy {
  readonly name: string;
  readonly constraints: Readonly<Record<string, unknown>>;
  readonly paramKind: Readonly<Record<string, unknown>> | undefined;
  readonly compiled: CompiledPolicy | { readonly failurePolicy: "Fail" | "Ignore"; readonly broken: string };
  readonly bindings: readonly Binding[];
}

interface Binding {
  readonly name: string;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly actions: readonly unknown[];
}

/**
 * ValidatingAdmissionPolicies and their bindings: `k8s.io/apiserver pkg/admission/plugin/policy/validating (master)`.
 */
export function admissionPolicyPlugin(live: LiveObjects, catalog: () => Catalog): AdmissionPlugin {
  let policies: readonly Policy[] | undefined;
  const changed = () => {
    policies = undefined;
  };
  live.subscribe({ resource: policiesResource }, changed);
  live.subscribe({ resource: bindingsResource }, changed);

  return {
    validate(request, exchange) {
      policies ??= readPolicies(live);
      if (policies.length === 0 || request.served.definition.group === "admissionregistration.k8s.io") return undefined;
      const asked = onceRead(request, exchange, live);
      for (const policy of policies) {
        const matched = constrained(policy.constraints, request, live, catalog());
        if (matched === undefined) continue;
        for (const binding of policy.bindings) {
          const match = binding.spec["matchResources"];
          if (isObject(match) && !bindingMatches(match, request, live, catalog())) continue;
          const parts = { asked: () => asked(matched), live, catalog: catalog() };
          const refusal = decide(policy, binding, request, exchange, parts);
          if (refusal !== undefined) return refusal;
        }
      }
      return undefined;
    },
  };
}

function readPolicies(live: LiveObjects): readonly Policy[] {
  const bindings = live.list(bindingsResource).map(({ object }) => object);
  return live.list(policiesResource).flatMap(({ object }): Policy[] => {
    const name = object.metadata.name ?? "";
    const spec = isObject(object["spec"]) ? object["spec"] : {};
    const bound = bindings.flatMap((binding): Binding[] => {
      const bindingSpec = isObject(binding["spec"]) ? binding["spec"] : {};
      if (bindingSpec["policyName"] !== name) return [];
      return [
        {
          name: binding.metadata.name ?? "",
          spec: bindingSpec,
          actions: Array.isArray(bindingSpec["validationActions"]) ? bindingSpec["validationActions"] : ["Deny"],
        },
      ];
    });
    // A policy without a binding has no effect.
    if (bound.length === 0) return [];
    const compilation = compileAdmissionPolicy(spec);
    return [
      {
        name,
        constraints: isObject(spec["matchConstraints"]) ? spec["matchConstraints"] : {},
        paramKind: isObject(spec["paramKind"]) ? spec["paramKind"] : undefined,
        compiled:
          compilation.verdict === "compiled"
            ? compilation.policy
            : {
                failurePolicy: spec["failurePolicy"] === "Ignore" ? "Ignore" : "Fail",
                broken: compilation.errors.map((error) => `${error.field}: ${error.message}`).join("; "),
              },
        bindings: bound,
      },
    ];
  });
}

/** The write in the version that a policy's rules name; `undefined`: they do not speak of it. */
function constrained(
  constraints: Readonly<Record<string, unknown>>,
  request: AdmissionRequest,
  live: LiveObjects,
  catalog: Catalog,
): AdmissionRequest | undefined {
  const { resourceRules, excludeResourceRules, matchPolicy } = constraints;
  const matched = asMatched(resourceRules, matchPolicy, request, catalog);
  if (matched === undefined || asMatched(excludeResourceRules, matchPolicy, request, catalog) !== undefined)
    return undefined;
  return selectorsMatch(constraints, request, live) ? matched : undefined;
}

/** A binding narrows; without rules of its own it takes those of the policy. */
function bindingMatches(
  match: Readonly<Record<string, unknown>>,
  request: AdmissionRequest,
  live: LiveObjects,
  catalog: Catalog,
): boolean {
  const { resourceRules: rules, excludeResourceRules, matchPolicy } = match;
  const isOpen = !Array.isArray(rules) || rules.length === 0;
  if (!isOpen && asMatched(rules, matchPolicy, request, catalog) === undefined) return false;
  if (asMatched(excludeResourceRules, matchPolicy, request, catalog) !== undefined) return false;
  return selectorsMatch(match, request, live);
}

/** The request as expressions see it, read when the first policy judges it in a version: an object may be large. */
function onceRead({ namespace }: AdmissionRequest, { user }: Exchange, live: LiveObjects) {
  const known = new Map<Served, PolicyRequest>();
  return (request: AdmissionRequest): PolicyRequest => {
    let read = known.get(request.served);
    if (read === undefined) {
      read = policyRequest({
        object: request.object,
        oldObject: request.before,
        request: describeRequest(request, user, ""),
        namespaceObject:
          namespace === "" ? null : live.get({ resource: "namespaces", namespace: "", name: namespace })?.object,
      });
      known.set(request.served, read);
    }
    return read;
  };
}

function decide(
  policy: Policy,
  binding: Binding,
  request: AdmissionRequest,
  exchange: Exchange,
  {
    asked,
    live,
    catalog,
  }: { readonly asked: () => PolicyRequest; readonly live: LiveObjects; readonly catalog: Catalog },
): Refusal | undefined {
  const { compiled } = policy;
  const refuse = (message: string, reason = "Invalid"): Refusal | undefined => {
    if (binding.actions.includes("Warn"))
      exchange.warnings.push(
        `Validation failed for ValidatingAdmissionPolicy '${policy.name}' with binding '${binding.name}': ${message}`,
      );
    if (!binding.actions.includes("Deny")) return undefined;
    const text = `ValidatingAdmissionPolicy '${policy.name}' with binding '${binding.name}' denied request: ${message}`;
    const { status } = forbidden(request.served.definition, request.name === "" ? "Unknown" : request.name, text);
    return new Refusal(own(codes, reason) ?? 422, reason, status.message ?? text, {
      ...status.details,
      causes: [{ message: text }],
    });
  };
  const fail = (message: string) => (compiled.failurePolicy === "Ignore" ? undefined : refuse(message));
  if ("broken" in compiled) return fail(`compilation error: ${compiled.broken}`);

  const params =
    policy.paramKind === undefined
      ? [null]
      : paramsOf(policy.paramKind, binding.spec["paramRef"], request, live, catalog);
  if (params === "missing")
    return fail(
      `failed to configure binding: no params found for policy binding with \`Deny\` parameterNotFoundAction`,
    );
  for (const param of params) {
    const decision = compiled.decide(asked(), param);
    if (decision.verdict === "denied") {
      const refusal = refuse(decision.message, decision.reason);
      if (refusal !== undefined) return refusal;
    } else if (decision.verdict === "failed") {
      const refusal = fail(decision.message);
      if (refusal !== undefined) return refusal;
    }
  }
  return undefined;
}

const codes: Readonly<Record<string, number>> = {
  Invalid: 422,
  Forbidden: 403,
  Unauthorized: 401,
  RequestEntityTooLarge: 413,
};

/** Objects that parameterise the policy for this request. No objects and `Allow`: nothing to check. */
function paramsOf(
  kind: Readonly<Record<string, unknown>>,
  reference: unknown,
  request: AdmissionRequest,
  live: LiveObjects,
  catalog: Catalog,
): readonly KubeObject[] | "missing" {
  if (!isObject(reference)) return "missing";
  const { group, version } = splitApiVersion(String(kind["apiVersion"]));
  const served = catalog.findKind(group, version, String(kind["kind"]));
  if (served === undefined) return "missing";
  const namespace = served.definition.namespaced
    ? typeof reference["namespace"] === "string"
      ? reference["namespace"]
      : request.namespace
    : "";
  const found =
    typeof reference["name"] === "string"
      ? [live.get({ resource: served.stored, namespace, name: reference["name"] })].filter((one) => one !== undefined)
      : live
          .list(served.stored, served.definition.namespaced ? namespace : undefined)
          .filter(({ object }) => labelSelectorMatches(reference["selector"], object.metadata.labels));
  if (found.length === 0 && reference["parameterNotFoundAction"] !== "Allow") return "missing";
  return found.map(({ object }) => object);
}
