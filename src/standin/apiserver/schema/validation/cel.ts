import { Optional } from "@marcbachmann/cel-js";
import type { FieldError, Schema, ValidationRule } from "../contract.ts";
import { child, duplicate, forbidden, invalid, notSupported, required } from "../field-errors.ts";
import { isObject, type JsonObject } from "../json-values.ts";
import { type Budget, isSpent, outOfBudget } from "./cel-cost.ts";
import { compileRuleExpression, evaluate, type Evaluation } from "./cel-expression.ts";
import { type DecodedValues, toCel } from "./cel-values.ts";
import { own } from "../../../../api/schema/own.ts";

/** A broken rule: the error and the steps from the value that carries the rule to the field that is meant. */
export interface RuleFinding {
  readonly error: FieldError;
  readonly steps: readonly (string | number)[];
  /** The rule looks at the old value too. */
  readonly transition: boolean;
}

/** The rules of one node of a schema. */
export interface CompiledRules {
  /**
   * `old` undefined: the value is new, transition rules are skipped. The rules of an object share a budget; once it is
   * spent, one finding says so, and no other rule is asked.
   */
  run(value: unknown, old: unknown, path: string, budget: Budget, decoded?: DecodedValues): readonly RuleFinding[];
}

/**
 * Compiles `x-kubernetes-validations` of one node (not of its children). A rule that does not compile refuses every
 * value; `ruleProblems` refuses a CustomResourceDefinition with such a rule earlier.
 */
export function compileRules(schema: Schema): CompiledRules | undefined {
  const rules = schema["x-kubernetes-validations"];
  if (rules === undefined || rules.length === 0) return undefined;
  let compiled: readonly CompiledRule[] | undefined;
  return {
    run(value, old, path, budget, decoded) {
      if (isSpent(budget)) return [];
      compiled ??= rules.map((rule) => compileRule(rule, schema));
      const input: RuleInput = {
        self: toCel(value, schema, decoded),
        oldSelf: old === undefined ? undefined : toCel(old, schema, decoded),
        type: schema.type ?? "object",
        path,
        budget,
      };
      const findings: RuleFinding[] = [];
      for (const rule of compiled) {
        const finding = rule(input);
        if (finding !== undefined) findings.push(finding);
        if (isSpent(budget)) break;
      }
      return findings;
    },
  };
}

const ruleReasons = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/** A rule as the real server prints its own struct. */
function asGo({
  rule,
  message = "",
  messageExpression = "",
  reason,
  fieldPath = "",
  optionalOldSelf,
}: ValidationRule): JsonObject {
  return {
    Rule: rule,
    Message: message,
    MessageExpression: messageExpression,
    Reason: reason ?? null,
    FieldPath: fieldPath,
    OptionalOldSelf: optionalOldSelf ?? null,
  };
}

/** The problems of the rules of one node; `path` is the node's position in the CustomResourceDefinition. */
export function ruleProblems(schema: Schema, path: string): readonly FieldError[] {
  const problems: FieldError[] = [];
  (schema["x-kubernetes-validations"] ?? []).forEach((rule, index) => {
    const at = `${path}.x-kubernetes-validations[${index}]`;
    if (rule.rule === undefined || rule.rule.trim() === "")
      problems.push(required(`${at}.rule`, "rule is not specified"));
    else {
      const compiled = compileRuleExpression(rule.rule, schema, {
        optionalOldSelf: rule.optionalOldSelf === true,
        wanted: "bool",
      });
      if (compiled.verdict === "refused") problems.push(invalid(`${at}.rule`, asGo(rule), compiled.message));
      else if (rule.optionalOldSelf !== undefined && !compiled.mentions.has("oldSelf")) {
        problems.push(
          invalid(`${at}.optionalOldSelf`, rule.optionalOldSelf, "may not be set if oldSelf is not used in rule"),
        );
      }
    }
    if (rule.message !== undefined && rule.message !== "" && rule.message.trim() === "") {
      problems.push(invalid(`${at}.message`, rule.message, "message must be non-empty if specified"));
    } else if (rule.message?.trim().includes("\n") === true)
      problems.push(invalid(`${at}.message`, rule.message, "must not contain line breaks"));
    if (rule.messageExpression !== undefined && rule.messageExpression !== "") {
      const compiled = compileRuleExpression(rule.messageExpression, schema, {
        optionalOldSelf: rule.optionalOldSelf === true,
        wanted: "string",
      });
      if (compiled.verdict === "refused")
        problems.push(
          invalid(
            `${at}.messageExpression`,
            asGo(rule),
            compiled.message.replace("compilation failed", "messageExpression compilation failed"),
          ),
        );
    }
    if (rule.reason !== undefined && rule.reason !== "" && !ruleReasons.includes(rule.reason))
      problems.push(notSupported(`${at}.reason`, rule.reason, ruleReasons));
    if (rule.fieldPath !== undefined && rule.fieldPath !== "" && fieldSteps(rule.fieldPath, schema) === undefined) {
      problems.push(invalid(`${at}.fieldPath`, rule.fieldPath, "fieldPath must be a valid path"));
    }
  });
  return problems;
}

interface RuleInput {
  readonly self: unknown;
  /** Undefined: the value is new. */
  readonly oldSelf: unknown;
  readonly type: string;
  readonly path: string;
  readonly budget: Budget;
}

type CompiledRule = (input: RuleInput) => RuleFinding | undefined;

function compileRule(rule: ValidationRule, schema: Schema): CompiledRule {
  const compiled = compileRuleExpression(rule.rule, schema, {
    optionalOldSelf: rule.optionalOldSelf === true,
    wanted: "bool",
  });
  const message =
    rule.messageExpression === undefined || rule.messageExpression === ""
      ? undefined
      : compileRuleExpression(rule.messageExpression, schema, {
          optionalOldSelf: rule.optionalOldSelf === true,
          wanted: "string",
        });
  const fixed = rule.message === undefined || rule.message === "" ? `failed rule: ${rule.rule.trim()}` : rule.message;
  const steps = rule.fieldPath === undefined || rule.fieldPath === "" ? [] : (fieldSteps(rule.fieldPath, schema) ?? []);
  const spoken = rule.message?.trim() ?? "";
  const named = spoken === "" ? rule.rule.trim() : spoken;
  return ({ self, oldSelf, type, path, budget }) => {
    if (compiled.verdict === "refused")
      return {
        error: invalid(joined(path, []), type, `rule compile error: ${compiled.message}`),
        steps: [],
        transition: false,
      };
    const transition = compiled.mentions.has("oldSelf");
    if (transition && oldSelf === undefined && rule.optionalOldSelf !== true) {
      budget.left -= leastCost;
      return isSpent(budget)
        ? { error: invalid(joined(path, []), type, outOfBudget), steps: [], transition }
        : undefined;
    }
    const context: Record<string, unknown> = { self };
    if (rule.optionalOldSelf === true)
      context["oldSelf"] = oldSelf === undefined ? Optional.none() : Optional.of(oldSelf);
    else if (oldSelf !== undefined) context["oldSelf"] = oldSelf;
    const result = charge(evaluate(compiled.run, context), budget);
    if (result.verdict !== "evaluated")
      return { error: invalid(joined(path, []), type, problemOf(result, named)), steps: [], transition };
    if (result.value === true) return undefined;
    let detail = fixed;
    if (message?.verdict === "compiled") {
      const said = charge(evaluate(message.run, context), budget);
      if (
        said.verdict === "evaluated" &&
        typeof said.value === "string" &&
        said.value.trim() !== "" &&
        !said.value.includes("\n")
      )
        detail = said.value.trim();
    }
    return { error: ruleError(rule.reason, joined(path, steps), type, detail), steps, transition };
  };
}

/** The cost of a rule at each value, even of one that names nothing or is skipped: there may be many of both. */
const leastCost = 1;

/** An expression that cost more than was left, or more than one may cost, spends the whole budget. */
function charge(result: Evaluation, budget: Budget): Evaluation | { readonly verdict: "unaffordable" } {
  budget.left = result.verdict === "exceeded" ? -1 : budget.left - Math.max(leastCost, result.cost);
  return isSpent(budget) && result.verdict !== "exceeded" ? { verdict: "unaffordable" } : result;
}

/** Why a rule could not be judged. @param named the rule, as errors name it. */
function problemOf(
  result: { readonly verdict: "unaffordable" } | { readonly verdict: "failed" | "exceeded"; readonly message: string },
  named: string,
): string {
  switch (result.verdict) {
    case "unaffordable":
      return outOfBudget;
    case "exceeded":
      return `'${result.message}': no further validation rules will be run due to call cost exceeds limit for rule: ${named}`;
    case "failed":
      return result.message.startsWith("no such overload")
        ? `'${result.message}': call arguments did not match a supported operator, function or macro signature for rule: ${named}`
        : `${result.message} evaluating rule: ${named}`;
  }
}

function ruleError(reason: string | undefined, path: string, type: string, detail: string): FieldError {
  switch (reason) {
    case "FieldValueForbidden":
      return forbidden(path, detail);
    case "FieldValueRequired":
      return required(path, detail);
    case "FieldValueDuplicate":
      return duplicate(path, type);
    default:
      return invalid(path, type, detail);
  }
}

function joined(path: string, steps: readonly string[]): string {
  const whole = steps.reduce(child, path);
  return whole === "" ? "<nil>" : whole;
}

/** `.spec.replicas`, `.annotations['a/b']` → steps; undefined when the schema has no such field. */
function fieldSteps(path: string, schema: Schema): string[] | undefined {
  const steps: string[] = [];
  let rest = path;
  let node: Schema | undefined = schema;
  while (rest !== "") {
    const step = /^\.([A-Za-z_$][\w$]*)|^\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]/.exec(rest);
    if (step === null) return undefined;
    const name = step[1] ?? step[2] ?? step[3] ?? "";
    steps.push(name);
    node =
      own(node?.properties, name) ??
      (isObject(node?.additionalProperties) ? (node.additionalProperties as Schema) : undefined);
    if (node === undefined) return undefined;
    rest = rest.slice(step[0].length);
  }
  return steps;
}
