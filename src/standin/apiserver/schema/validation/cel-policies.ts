import type { ParseResult } from "@marcbachmann/cel-js";
import type { FieldError } from "../contract.ts";
import { duplicate, invalid, required } from "../field-errors.ts";
import { isList, isObject, type JsonObject } from "../json-values.ts";
import { type Budget, conditionsLimit, isSpent, objectLimit, outOfBudget } from "./cel-cost.ts";
import { compilePolicyExpression, evaluate } from "./cel-expression.ts";
import { toCel } from "./cel-values.ts";

/** What admission policies judge. All values are plain JSON; absent ones are null in expressions. */
export interface PolicyInput {
  readonly object: unknown;
  readonly oldObject: unknown;
  readonly request: unknown;
  readonly namespaceObject: unknown;
}

/** A request as expressions see it: read once, however many policies and parameters judge it. */
export type PolicyRequest = Readonly<Record<keyof PolicyInput, unknown>>;

/** Reads a request for the policies that judge it. Afterwards changes of its objects are not seen. */
export function policyRequest({ object, oldObject, request, namespaceObject }: PolicyInput): PolicyRequest {
  return {
    object: toCel(object ?? null),
    oldObject: toCel(oldObject ?? null),
    request: toCel(request ?? null),
    namespaceObject: toCel(namespaceObject ?? null),
  };
}

export type PolicyDecision =
  | { readonly verdict: "allowed" }
  /** `conditions` did not match: the policy does not speak of this request. */
  | { readonly verdict: "skipped" }
  | { readonly verdict: "denied"; readonly reason: string; readonly message: string }
  /** An expression could not be evaluated; failurePolicy decides. */
  | { readonly verdict: "failed"; readonly message: string };

/** A ValidatingAdmissionPolicy ready for use. */
export interface CompiledPolicy {
  readonly failurePolicy: "Fail" | "Ignore";
  /**
   * The first decision against the request, or `allowed`; `auditAnnotations` are not computed.
   *
   * @param params plain JSON, or null.
   */
  decide(request: PolicyRequest, params: unknown): PolicyDecision;
}

export type PolicyCompilation =
  | { readonly verdict: "compiled"; readonly policy: CompiledPolicy }
  | { readonly verdict: "refused"; readonly errors: readonly FieldError[] };

interface Expression {
  readonly run: ParseResult;
}

type Result =
  | { readonly verdict: "evaluated"; readonly value: unknown }
  | { readonly verdict: "failed" | "unaffordable"; readonly message: string };

/** Evaluates an expression at the expense of a budget. */
function evaluateWithin({ run }: Expression, context: Record<string, unknown>, budget: Budget): Result {
  const result = isSpent(budget) ? undefined : evaluate(run, context);
  budget.left -= result?.cost ?? 0;
  if (result === undefined || isSpent(budget)) return { verdict: "unaffordable", message: outOfBudget };
  return result.verdict === "evaluated" ? result : { verdict: "failed", message: result.message };
}

interface Named extends Expression {
  readonly name: string;
  /** As it was written. */
  readonly expression: string;
}

interface Validation extends Expression {
  readonly expression: string;
  readonly message: string | undefined;
  readonly messageExpression: Expression | undefined;
  readonly reason: string;
}

/** Compiles the spec of a ValidatingAdmissionPolicy (also the matchConditions of a webhook, with no validations). */
export function compileAdmissionPolicy(spec: unknown): PolicyCompilation {
  const errors: FieldError[] = [];
  const given = isObject(spec) ? spec : {};
  const absent = [
    ...(isList(given["variables"]) && given["variables"].length > 0 ? [] : ["variables"]),
    ...(given["paramKind"] === undefined ? ["params"] : []),
  ];
  const compile = (text: unknown, path: string, wanted: "bool" | "string" | "any"): Expression | undefined => {
    if (typeof text !== "string" || text.trim() === "") {
      errors.push(required(path, `${path.split(".").pop() ?? ""} is not specified`));
      return undefined;
    }
    const compiled = compilePolicyExpression(text, wanted);
    if (compiled.verdict === "compiled") {
      const undeclared = absent.find((name) => compiled.mentions.has(name));
      if (undeclared === undefined) return { run: compiled.run };
      const column = text.indexOf(undeclared);
      errors.push(
        invalid(
          path,
          text,
          `compilation failed: ERROR: <input>:1:${column + 1}: undeclared reference to '${undeclared}' (in container '')\n | ${text}\n | ${".".repeat(column)}^`,
        ),
      );
    } else
      errors.push(
        invalid(
          path,
          text,
          compiled.got === undefined ? compiled.message : `must evaluate to ${wanted} but got ${compiled.got}`,
        ),
      );
    return undefined;
  };
  const named = new Set<string>();
  const expressions = (field: "matchConditions" | "variables"): Named[] =>
    (isList(given[field]) ? given[field] : []).flatMap((one, index) => {
      const entry = isObject(one) ? one : {};
      const name = typeof entry["name"] === "string" ? entry["name"] : "";
      const at = `spec.${field}[${index}].name`;
      if (name === "") errors.push(required(at, "name is not specified"));
      else if (field === "variables" && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
        errors.push(invalid(at, name, "must be a valid CEL identifier"));
      else if (named.has(`${field}/${name}`)) errors.push(duplicate(at, name));
      named.add(`${field}/${name}`);
      const compiled = compile(
        entry["expression"],
        `spec.${field}[${index}].expression`,
        field === "variables" ? "any" : "bool",
      );
      return compiled === undefined ? [] : [{ name, ...compiled, expression: String(entry["expression"]) }];
    });
  const variables = expressions("variables");
  const conditions = expressions("matchConditions");
  const validations = (isList(given["validations"]) ? given["validations"] : []).flatMap((one, index): Validation[] => {
    const entry = isObject(one) ? one : {};
    const compiled = compile(entry["expression"], `spec.validations[${index}].expression`, "bool");
    const messageExpression =
      entry["messageExpression"] === undefined
        ? undefined
        : compile(entry["messageExpression"], `spec.validations[${index}].messageExpression`, "string");
    if (compiled === undefined) return [];
    return [
      {
        ...compiled,
        expression: String(entry["expression"]),
        message: typeof entry["message"] === "string" && entry["message"] !== "" ? entry["message"] : undefined,
        messageExpression,
        reason: typeof entry["reason"] === "string" ? entry["reason"] : "Invalid",
      },
    ];
  });
  if (errors.length > 0) return { verdict: "refused", errors };
  const failurePolicy = given["failurePolicy"] === "Ignore" ? "Ignore" : "Fail";
  return {
    verdict: "compiled",
    policy: { failurePolicy, decide: (request, params) => decide(request, params, variables, conditions, validations) },
  };
}

function decide(
  request: PolicyRequest,
  params: unknown,
  variables: readonly Named[],
  conditions: readonly Named[],
  validations: readonly Validation[],
): PolicyDecision {
  const context: Record<string, unknown> = { ...request, params: toCel(params ?? null) };
  const budgets = { ofConditions: { left: conditionsLimit }, ofValidations: { left: objectLimit } };
  // Conditions are asked before the namespace is looked up: k8s.io/apiserver
  // pkg/admission/plugin/policy/validating/validator.go (master).
  const before: Record<string, unknown> = { ...context, namespaceObject: toCel({}) };
  context["variables"] = lazily(variables, context, budgets.ofValidations);
  before["variables"] = lazily(variables, before, budgets.ofConditions);
  for (const condition of conditions) {
    const result = evaluateWithin(condition, before, budgets.ofConditions);
    if (result.verdict !== "evaluated") return failed(condition, result);
    if (result.value !== true) return { verdict: "skipped" };
  }
  for (const validation of validations) {
    const { expression, message, messageExpression, reason } = validation;
    const result = evaluateWithin(validation, context, budgets.ofValidations);
    if (result.verdict !== "evaluated") return failed(validation, result);
    if (result.value === true) continue;
    const said =
      messageExpression === undefined ? undefined : evaluateWithin(messageExpression, context, budgets.ofValidations);
    const spoken =
      said?.verdict === "evaluated" &&
      typeof said.value === "string" &&
      said.value.trim() !== "" &&
      !said.value.includes("\n")
        ? said.value.trim()
        : undefined;
    return { verdict: "denied", reason, message: spoken ?? message ?? `failed expression: ${expression.trim()}` };
  }
  return { verdict: "allowed" };
}

function failed(
  { expression }: { readonly expression: string },
  { verdict, message }: Exclude<Result, { readonly verdict: "evaluated" }>,
): PolicyDecision {
  const text = verdict === "unaffordable" ? message : `expression '${expression}' resulted in error: ${message}`;
  return { verdict: "failed", message: text };
}

/** Variables are computed when first read, once; a failing one fails each reader. */
function lazily(variables: readonly Named[], context: Record<string, unknown>, budget: Budget): JsonObject {
  const holder: JsonObject = {};
  for (const variable of variables) {
    let known: Result | undefined;
    Object.defineProperty(holder, variable.name, {
      enumerable: true,
      get(): unknown {
        known ??= evaluateWithin(variable, context, budget);
        if (known.verdict === "evaluated") return known.value;
        throw new Error(known.message);
      },
    });
  }
  return holder;
}
