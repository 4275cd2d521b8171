import type { KubeObject } from "../api/schema/object.ts";
import {
  compileAdmissionPolicy,
  type CompiledPolicy,
  policyRequest,
  type ResourceDefinition,
} from "../standin/schemas.ts";
import type { Problem } from "../ignition/problem.ts";
import { objectPolicies } from "../operator/admission-policies.ts";

/** A policy as commands use it. */
interface ReadPolicy {
  readonly warns: boolean;
  readonly rules: readonly ResourceRule[];
  readonly param: { readonly apiVersion: string; readonly kind: string; readonly name: string | undefined } | undefined;
  /** Compiled when it is first needed: most commands meet few policies. */
  readonly compiled: () => CompiledPolicy;
}

interface ResourceRule {
  readonly apiGroups: readonly string[];
  readonly operations: readonly string[];
  readonly resources: readonly string[];
}

interface PolicyManifest extends KubeObject {
  readonly spec: {
    readonly paramKind?: { readonly apiVersion: string; readonly kind: string };
    readonly matchConstraints: { readonly resourceRules: readonly ResourceRule[] };
  };
}

interface BindingManifest extends KubeObject {
  readonly spec: {
    readonly policyName: string;
    readonly validationActions: readonly string[];
    readonly paramRef?: { readonly name?: string };
  };
}

/** One write, as an API server would be asked for it. */
export interface JudgedWrite {
  readonly definition: ResourceDefinition;
  readonly object: KubeObject;
  /** `undefined`: the object is created. */
  readonly before: KubeObject | undefined;
}

/**
 * Judges writes by the policies that the operator gives to API servers, with the same expressions.
 *
 * @param around the objects that are known: a policy whose parameters are not among them says nothing.
 */
export function judgeByPolicies(around: readonly KubeObject[]): (write: JudgedWrite) => readonly Problem[] {
  const policies = readPolicies();
  return ({ definition: { group, plural }, object, before }) => {
    const operation = before === undefined ? "CREATE" : "UPDATE";
    const speakOfIt = policies.filter(({ rules }) =>
      rules.some(
        ({ apiGroups, operations, resources }) =>
          apiGroups.includes(group) && resources.includes(plural) && operations.includes(operation),
      ),
    );
    if (speakOfIt.length === 0) return [];
    const request = policyRequest({
      object,
      oldObject: before ?? null,
      request: { operation, name: object.metadata.name, userInfo: { username: "", groups: [] } },
      namespaceObject: null,
    });
    return speakOfIt.flatMap(({ warns, param, compiled }) =>
      paramsAmong(around, param).flatMap((one): readonly Problem[] => {
        const decision = compiled().decide(request, one);
        return decision.verdict === "denied" ? [problemOf(decision.message, warns)] : [];
      }),
    );
  };
}

function readPolicies(): readonly ReadPolicy[] {
  const manifests = objectPolicies();
  const bindings = manifests.filter((one): one is BindingManifest => one.kind === "ValidatingAdmissionPolicyBinding");
  return bindings.flatMap(({ spec: { policyName, validationActions, paramRef } }): readonly ReadPolicy[] => {
    const policy = manifests.find(
      (one): one is PolicyManifest => one.kind === "ValidatingAdmissionPolicy" && one.metadata.name === policyName,
    );
    if (policy === undefined) return [];
    const { paramKind, matchConstraints } = policy.spec;
    let known: CompiledPolicy | undefined;
    return [
      {
        warns: !validationActions.includes("Deny"),
        rules: matchConstraints.resourceRules,
        param: paramKind === undefined ? undefined : { ...paramKind, name: paramRef?.name },
        compiled: () => (known ??= compile(policy)),
      },
    ];
  });
}

function compile(policy: PolicyManifest): CompiledPolicy {
  const compilation = compileAdmissionPolicy(policy.spec);
  if (compilation.verdict === "refused")
    throw new Error(`bug: ${policy.metadata.name}: ${compilation.errors.map(({ message }) => message).join("; ")}`);
  return compilation.policy;
}

function paramsAmong(around: readonly KubeObject[], param: ReadPolicy["param"]): readonly (KubeObject | null)[] {
  if (param === undefined) return [null];
  const { apiVersion, kind, name } = param;
  return around.filter(
    (one) => one.apiVersion === apiVersion && one.kind === kind && (name === undefined || one.metadata.name === name),
  );
}

/** The message of a policy begins with the field, if it is about one. */
function problemOf(message: string, warns: boolean): Problem {
  const [, path = "", reason = message] = /^((?:spec|metadata)[\w.]*): (.*)$/s.exec(message) ?? [];
  return { severity: warns ? "warning" : "error", path, reason };
}
