import type { AdmissionPlugin } from "./admission.ts";
import type { Authorizer } from "../access/authorization.ts";
import { type Catalog, splitApiVersion } from "../schema/kinds/catalog.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import type { AccessAttributes, KubeObject } from "../schema/contract.ts";
import { forbidden } from "../schema/field-errors.ts";
import { equalJson, isObject } from "../schema/json-values.ts";
import { invalid } from "../schema/status.ts";

const group = "admissionregistration.k8s.io";

/** The objects that a policy or binding takes parameters from, and the field that names them. */
interface Parameters {
  readonly field: "spec.paramKind" | "spec.paramRef";
  /** The objects that the author must be allowed to get. */
  readonly objects: Pick<AccessAttributes, "group" | "resource" | "namespace" | "name">;
  readonly refusal: string;
}

/**
 * A policy shows its parameters to everybody whom it refuses, so its author must be allowed to get all objects of
 * `paramKind`, and the author of a binding those of `paramRef`: `k8s.io/kubernetes
 * pkg/registry/admissionregistration/validatingadmissionpolicy/authz.go` and `…binding/authz.go` (master).
 */
export function policyParameters(live: LiveObjects, catalog: () => Catalog, access: Authorizer): AdmissionPlugin {
  const parametersOf = (resource: string, object: KubeObject): Parameters | undefined => {
    if (resource === "validatingadmissionpolicies") return parametersOfPolicy(object, catalog());
    if (resource === "validatingadmissionpolicybindings") return parametersOfBinding(object, live, catalog());
    return undefined;
  };
  return {
    validate({ operation, served: { definition }, name, object, before }, { user }) {
      if (definition.group !== group || object === undefined || operation === "DELETE") return undefined;
      const parameters = parametersOf(definition.plural, object);
      if (parameters === undefined || (before !== undefined && areSame(object, before))) return undefined;
      const { field, objects, refusal } = parameters;
      if (access.allows({ user, verb: "get", subresource: "", ...objects })) return undefined;
      return invalid(definition, name, [forbidden(field, `user ${JSON.stringify(user.name)} ${refusal}`)]);
    },
  };
}

/** Whether both take the same parameters: a change of anything else needs no right to get them. */
function areSame(one: KubeObject, other: KubeObject): boolean {
  const [a, b] = [specOf(one), specOf(other)];
  return ["paramKind", "paramRef", "policyName"].every((key) => equalJson(a[key], b[key]));
}

const specOf = (object: KubeObject): Readonly<Record<string, unknown>> =>
  isObject(object["spec"]) ? object["spec"] : {};

function parametersOfPolicy(object: KubeObject, catalog: Catalog): Parameters | undefined {
  const { paramKind } = specOf(object);
  if (!isObject(paramKind)) return undefined;
  const { kind, apiVersion } = paramKind;
  return {
    field: "spec.paramKind",
    objects: { ...resourceOf(paramKind, catalog), namespace: "*", name: "*" },
    refusal: `must have "get" permission on all objects of the referenced paramKind (kind=${String(kind)}, apiVersion=${String(apiVersion)})`,
  };
}

function parametersOfBinding(object: KubeObject, live: LiveObjects, catalog: Catalog): Parameters | undefined {
  const { paramRef, policyName } = specOf(object);
  if (!isObject(paramRef)) return undefined;
  const policy = live.get({
    resource: `validatingadmissionpolicies.${group}`,
    namespace: "",
    name: String(policyName),
  });
  const paramKind = policy === undefined ? undefined : specOf(policy.object)["paramKind"];
  const { namespace, name } = paramRef;
  return {
    field: "spec.paramRef",
    objects: {
      ...(isObject(paramKind) ? resourceOf(paramKind, catalog) : everyResource),
      namespace: typeof namespace === "string" ? namespace : "",
      name: typeof name === "string" ? name : "",
    },
    refusal: 'does not have "get" permission on the object referenced by paramRef',
  };
}

const everyResource = { group: "*", resource: "*" } as const;

/** A kind that is not served may become any resource of its group. */
function resourceOf(
  paramKind: Readonly<Record<string, unknown>>,
  catalog: Catalog,
): Pick<AccessAttributes, "group" | "resource"> {
  const { group: ofKind, version } = splitApiVersion(String(paramKind["apiVersion"]));
  const served = catalog.findKind(ofKind, version, String(paramKind["kind"]));
  return { group: ofKind, resource: served?.definition.plural ?? everyResource.resource };
}
