import { Optional, serialize, type ASTNode, type Environment, type ParseResult } from "@marcbachmann/cel-js";
import { kubernetesEnvironment, matchesName } from "./cel-functions.ts";
import { decodeBase64 } from "../../../ignition/data-url.ts";
import type { FieldError, Schema, ValidationRule } from "../contract.ts";
import { child, duplicate, forbidden, invalid, notSupported, required } from "../field-errors.ts";
import { formats, isTimestamp } from "../formats.ts";
import { isList, isObject, type JsonObject } from "../json-values.ts";
import { objectMeta, string } from "../schema-parts.ts";

/** A broken rule: the error and the steps from the value that carries the rule to the field that is meant. */
export interface RuleFinding {
  readonly error: FieldError;
  readonly steps: readonly (string | number)[];
  /** The rule looks at the old value too. */
  readonly transition: boolean;
}

/** The rules of one node of a schema. */
export interface CompiledRules {
  /** `old` undefined: the value is new, transition rules are skipped. */
  run(value: unknown, old: unknown, path: string): readonly RuleFinding[];
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
    run(value, old, path) {
      compiled ??= rules.map((rule) => compileRule(rule, schema));
      const input: RuleInput = {
        self: convert(value, schema),
        oldSelf: old === undefined ? undefined : convert(old, schema),
        type: schema.type ?? "object",
        path,
      };
      return compiled.flatMap((rule) => {
        const finding = rule(input);
        return finding === undefined ? [] : [finding];
      });
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
      const compiled = compileExpressionOf(rule.rule, schema, rule.optionalOldSelf === true, "bool");
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
      const compiled = compileExpressionOf(rule.messageExpression, schema, rule.optionalOldSelf === true, "string");
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

/** Bound of elements looked at by one expression: elements of its values to the power of nested loops. */
const costLimit = 20_000_000;

/** What decides how often the loops of an expression run. */
interface LoopCost {
  /** Depth of nested loops. */
  readonly loops: number;
  /** Items of the longest list or map that stands in the expression. */
  readonly literal: number;
}

/** Whether the loops of an expression look at too many elements. @param elements of its values. */
const isTooCostly = ({ loops, literal }: LoopCost, elements: number): boolean =>
  (elements + literal) ** Math.max(1, loops) > costLimit;

interface Converted {
  readonly value: unknown;
  readonly elements: number;
}

interface RuleInput {
  readonly self: Converted;
  readonly oldSelf: Converted | undefined;
  readonly type: string;
  readonly path: string;
}

type CompiledRule = (input: RuleInput) => RuleFinding | undefined;

type CompiledExpression =
  | {
      readonly verdict: "compiled";
      readonly run: ParseResult;
      readonly mentions: ReadonlySet<string>;
      readonly cost: LoopCost;
    }
  | {
      readonly verdict: "refused";
      readonly message: string;
      /** Its type, if the type is the error. */ readonly got?: string;
    };

function compileRule(rule: ValidationRule, schema: Schema): CompiledRule {
  const compiled = compileExpressionOf(rule.rule, schema, rule.optionalOldSelf === true, "bool");
  const message =
    rule.messageExpression === undefined || rule.messageExpression === ""
      ? undefined
      : compileExpressionOf(rule.messageExpression, schema, rule.optionalOldSelf === true, "string");
  const fixed = rule.message === undefined || rule.message === "" ? `failed rule: ${rule.rule.trim()}` : rule.message;
  const steps = rule.fieldPath === undefined || rule.fieldPath === "" ? [] : (fieldSteps(rule.fieldPath, schema) ?? []);
  return ({ self, oldSelf, type, path }) => {
    if (compiled.verdict === "refused")
      return {
        error: invalid(joined(path, []), type, `rule compile error: ${compiled.message}`),
        steps: [],
        transition: false,
      };
    const transition = compiled.mentions.has("oldSelf");
    if (transition && oldSelf === undefined && rule.optionalOldSelf !== true) return undefined;
    const elements = self.elements + (oldSelf?.elements ?? 0);
    const costs = message?.verdict === "compiled" ? [compiled.cost, message.cost] : [compiled.cost];
    if (costs.some((cost) => isTooCostly(cost, elements))) {
      return {
        error: invalid(
          joined(path, []),
          type,
          `validation rule ${JSON.stringify(rule.rule)} exceeded the cost budget: no further validation rules will be run`,
        ),
        steps: [],
        transition,
      };
    }
    const context: Record<string, unknown> = { self: self.value };
    if (rule.optionalOldSelf === true)
      context["oldSelf"] = oldSelf === undefined ? Optional.none() : Optional.of(oldSelf.value);
    else if (oldSelf !== undefined) context["oldSelf"] = oldSelf.value;
    const result = evaluate(compiled.run, context);
    if (result.verdict === "failed")
      return {
        error: invalid(joined(path, []), type, `${result.message} evaluating rule: ${fixed}`),
        steps: [],
        transition,
      };
    if (result.value === true) return undefined;
    let detail = fixed;
    if (message?.verdict === "compiled") {
      const said = evaluate(message.run, context);
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
      node?.properties?.[name] ??
      (isObject(node?.additionalProperties) ? (node.additionalProperties as Schema) : undefined);
    if (node === undefined) return undefined;
    rest = rest.slice(step[0].length);
  }
  return steps;
}

let shared: Environment | undefined;

function environment(): Environment {
  shared ??= kubernetesEnvironment();
  return shared.clone();
}

let ruleEnvironments: { readonly plain: Environment; readonly optional: Environment } | undefined;

function ruleEnvironment(optionalOldSelf: boolean): Environment {
  ruleEnvironments ??= {
    plain: environment().registerVariable("self", "dyn").registerVariable("oldSelf", "dyn"),
    optional: environment().registerVariable("self", "dyn").registerVariable("oldSelf", "optional<dyn>"),
  };
  return optionalOldSelf ? ruleEnvironments.optional : ruleEnvironments.plain;
}

function compileExpressionOf(
  text: string,
  schema: Schema,
  optionalOldSelf: boolean,
  wanted: "bool" | "string",
): CompiledExpression {
  const variables = new Map<string, Schema>([["self", schema]]);
  if (!optionalOldSelf) variables.set("oldSelf", schema);
  return compileIn(ruleEnvironment(optionalOldSelf), text, wanted, variables);
}

/** Compiles one expression and reports what a server would refuse: other result types, unknown functions and fields. */
function compileIn(
  env: Environment,
  text: string,
  wanted: "bool" | "string" | "any",
  variables: ReadonlyMap<string, Schema>,
): CompiledExpression {
  try {
    let parsed = env.parse(text);
    if (renameMatches(parsed.ast)) parsed = env.parse(serialize(parsed.ast));
    const checked = parsed.check();
    if (!checked.valid)
      return { verdict: "refused", message: `compilation failed: ERROR: <input>:1:1: ${sentence(checked.error)}` };
    if (wanted !== "any" && checked.type !== wanted && checked.type !== "dyn") {
      return {
        verdict: "refused",
        message:
          wanted === "bool" ? "cel expression must evaluate to a bool" : "messageExpression must evaluate to a string",
        got: String(checked.type),
      };
    }
    const survey: Survey = { mentions: new Set(), loops: 0, literal: 0 };
    const problem = inspect(parsed.ast, variables, survey, 0);
    if (problem.problem !== undefined)
      return { verdict: "refused", message: `compilation failed: ERROR: <input>:1:1: ${problem.problem}` };
    const type = problem.schema?.type;
    if (wanted === "bool" && type !== undefined && type !== "boolean")
      return { verdict: "refused", message: "cel expression must evaluate to a bool" };
    return { verdict: "compiled", run: parsed, mentions: survey.mentions, cost: survey };
  } catch (error) {
    return { verdict: "refused", message: `compilation failed: ERROR: <input>:1:1: ${sentence(error)}` };
  }
}

function sentence(error: unknown): string {
  if (error instanceof Error && error.message.startsWith("int() type error: cannot convert to int"))
    return "type conversion error from 'string' to 'int'";
  const summary = isObject(error) ? error["summary"] : undefined;
  if (typeof summary === "string") return lowerFirst(summary);
  return lowerFirst(error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error));
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function evaluate(
  run: ParseResult,
  context: Record<string, unknown>,
):
  | { readonly verdict: "evaluated"; readonly value: unknown }
  | { readonly verdict: "failed"; readonly message: string } {
  try {
    const value: unknown = run(context);
    return { verdict: "evaluated", value };
  } catch (error) {
    return { verdict: "failed", message: sentence(error) };
  }
}

const tooCostly = "operation cancelled: actual cost limit exceeded";

/** Evaluates an expression over values with so many elements, unless its loops would look at too many. */
function evaluateWithin(
  { run, cost }: Expression,
  context: Record<string, unknown>,
  elements: number,
): ReturnType<typeof evaluate> {
  return isTooCostly(cost, elements) ? { verdict: "failed", message: tooCostly } : evaluate(run, context);
}

function isNode(value: unknown): value is ASTNode {
  return isObject(value) && typeof value["op"] === "string";
}

/** Nodes directly below `node`. */
function childNodes(node: ASTNode): readonly ASTNode[] {
  const found: ASTNode[] = [];
  const look = (value: unknown): void => {
    if (isNode(value)) found.push(value);
    else if (isList(value)) value.forEach(look);
  };
  look(node.args);
  return found;
}

/** The name stands first in the arguments of a method call; the tree is ours alone, so it may be changed. */
function renameMatches(node: ASTNode): boolean {
  let renamed = false;
  if (node.op === "rcall" && node.args[0] === "matches") {
    node.args[0] = matchesName;
    renamed = true;
  }
  for (const one of childNodes(node)) if (renameMatches(one)) renamed = true;
  return renamed;
}

interface Survey {
  readonly mentions: Set<string>;
  loops: number;
  literal: number;
}

interface Inspected {
  /** What is known about the value; undefined: nothing. */
  readonly schema?: Schema | undefined;
  readonly problem?: string | undefined;
}

const loops = new Set(["all", "exists", "exists_one", "existsOne", "map", "filter"]);

/** Follows field selections through the schema, so that a rule on a field that does not exist is refused. */
function inspect(node: ASTNode, scope: ReadonlyMap<string, Schema>, survey: Survey, depth: number): Inspected {
  switch (node.op) {
    case "id":
      survey.mentions.add(node.args);
      return { schema: scope.get(node.args) };
    case ".":
    case ".?": {
      const base = inspect(node.args[0], scope, survey, depth);
      if (base.problem !== undefined || base.schema === undefined || node.op === ".?") return { problem: base.problem };
      return fieldOf(base.schema, node.args[1]);
    }
    case "[]":
    case "[?]": {
      const base = inspect(node.args[0], scope, survey, depth);
      const index = inspect(node.args[1], scope, survey, depth);
      const problem = base.problem ?? index.problem;
      return node.op === "[]" && problem === undefined ? { schema: elementOf(base.schema) } : { problem };
    }
    case "rcall": {
      const [name, receiver, args] = node.args;
      const base = inspect(receiver, scope, survey, depth);
      if (base.problem !== undefined) return base;
      let inner = scope;
      let rest: readonly ASTNode[] = args;
      const [variable] = args;
      if (loops.has(name) && variable?.op === "id" && args.length > 1) {
        survey.loops = Math.max(survey.loops, depth + 1);
        const known = new Map(scope);
        const element = base.schema?.type === "array" ? base.schema.items : undefined;
        if (element === undefined) known.delete(variable.args);
        else known.set(variable.args, element);
        inner = known;
        rest = args.slice(1);
      }
      for (const one of rest) {
        const { problem } = inspect(one, inner, survey, inner === scope ? depth : depth + 1);
        if (problem !== undefined) return { problem };
      }
      return name === "filter" ? { schema: base.schema } : {};
    }
    default:
      if (node.op === "list" || node.op === "map") survey.literal = Math.max(survey.literal, node.args.length);
      for (const one of childNodes(node)) {
        const { problem } = inspect(one, scope, survey, depth);
        if (problem !== undefined) return { problem };
      }
      return {};
  }
}

function fieldOf(schema: Schema, name: string): Inspected {
  const { properties } = fieldsOf(schema);
  if (properties !== undefined) {
    for (const [key, property] of Object.entries(properties)) if (escapeName(key) === name) return { schema: property };
  }
  if (isObject(schema.additionalProperties)) return { schema: schema.additionalProperties as Schema };
  const closed = schema.type === "object" && properties !== undefined && schema.additionalProperties === undefined;
  if (closed || (schema.type !== undefined && schema.type !== "object"))
    return { problem: `undefined field '${name}'` };
  return {};
}

/** Fields that a rule may name: unknown fields are preserved but not accessible, metadata of resources is reduced. */
function fieldsOf(schema: Schema): { readonly properties: Readonly<Record<string, Schema>> | undefined } {
  const { properties } = schema;
  if (schema["x-kubernetes-embedded-resource"] === true)
    return { properties: { ...properties, apiVersion: string, kind: string, metadata: objectMeta } };
  if (properties === undefined)
    return { properties: schema["x-kubernetes-preserve-unknown-fields"] === true ? undefined : {} };
  return { properties };
}

function elementOf(schema: Schema | undefined): Schema | undefined {
  if (schema?.type === "array") return schema.items;
  return isObject(schema?.additionalProperties) ? (schema.additionalProperties as Schema) : undefined;
}

/** Words that are no names in CEL; a property so called is written `__word__`. */
const reserved = new Set([
  "true",
  "false",
  "null",
  "in",
  "as",
  "break",
  "const",
  "continue",
  "else",
  "for",
  "function",
  "if",
  "import",
  "let",
  "loop",
  "package",
  "namespace",
  "return",
  "var",
  "void",
  "while",
]);

/** How a property is called in rules: kubernetes/apiserver pkg/cel/escaping.go (master). */
export function escapeName(name: string): string {
  if (reserved.has(name)) return `__${name}__`;
  return name.replaceAll(
    /__|[./-]/g,
    (found) => ({ __: "__underscores__", ".": "__dot__", "/": "__slash__", "-": "__dash__" })[found] ?? found,
  );
}

/**
 * A JSON value as CEL sees it under a schema: whole numbers are integers (BigInt) unless the schema says `number`,
 * formatted strings are times, durations and bytes, names of properties are escaped. Objects are Maps: the library
 * takes a plain one for something else if it has a key `constructor`.
 */
function convert(value: unknown, schema: Schema | undefined): Converted {
  const counter = { elements: 0 };
  return { value: converted(value, schema, counter), elements: counter.elements };
}

/** An untyped JSON value as CEL sees it. */
export function toCel(value: unknown): unknown {
  return converted(value, undefined, { elements: 0 });
}

function converted(value: unknown, schema: Schema | undefined, counter: { elements: number }): unknown {
  counter.elements++;
  if (typeof value === "number") return schema?.type !== "number" && Number.isInteger(value) ? BigInt(value) : value;
  if (typeof value === "string") return schema?.format === undefined ? value : formatted(value, schema.format);
  if (isList(value)) return value.map((item) => converted(item, schema?.items, counter));
  if (!isObject(value)) return value;
  const result = new Map<string, unknown>();
  const properties = schema?.properties;
  const rest = isObject(schema?.additionalProperties) ? (schema.additionalProperties as Schema) : undefined;
  for (const key of Object.keys(value)) {
    if (properties !== undefined && Object.hasOwn(properties, key))
      result.set(escapeName(key), converted(value[key], properties[key], counter));
    else result.set(key, converted(value[key], rest, counter));
  }
  return result;
}

let durations: ParseResult | undefined;

function formatted(value: string, format: string): unknown {
  if ((format === "date-time" || format === "datetime") && isTimestamp(value)) return new Date(Date.parse(value));
  if (format === "byte" && formats["byte"]?.(value) === true) return decodeBase64(value);
  if (format === "date" && formats["date"]?.(value) === true) return new Date(Date.parse(value));
  if (format === "duration") {
    durations ??= environment().registerVariable("text", "string").parse("duration(text)");
    const result = evaluate(durations, { text: value });
    return result.verdict === "evaluated" ? result.value : value;
  }
  return value;
}

/** What admission policies judge. All values are plain JSON; absent ones are null in expressions. */
export interface PolicyInput {
  readonly object: unknown;
  readonly oldObject: unknown;
  readonly request: unknown;
  readonly namespaceObject: unknown;
}

/** A request as expressions see it: read once, however many policies and parameters judge it. */
export interface PolicyRequest {
  readonly values: Readonly<Record<keyof PolicyInput, unknown>>;
  readonly elements: number;
}

/** Reads a request for the policies that judge it. Afterwards changes of its objects are not seen. */
export function policyRequest(input: PolicyInput): PolicyRequest {
  const counter = { elements: 0 };
  const read = (value: unknown) => converted(value ?? null, undefined, counter);
  const { object, oldObject, request, namespaceObject } = input;
  const values = {
    object: read(object),
    oldObject: read(oldObject),
    request: read(request),
    namespaceObject: read(namespaceObject),
  };
  return { values, elements: counter.elements };
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
  readonly cost: LoopCost;
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
  const env = policyEnvironment();
  const absent = [
    ...(isList(given["variables"]) && given["variables"].length > 0 ? [] : ["variables"]),
    ...(given["paramKind"] === undefined ? ["params"] : []),
  ];
  const compile = (text: unknown, path: string, wanted: "bool" | "string" | "any"): Expression | undefined => {
    if (typeof text !== "string" || text.trim() === "") {
      errors.push(required(path, `${path.split(".").pop() ?? ""} is not specified`));
      return undefined;
    }
    const compiled = compileIn(env, text, wanted, new Map());
    if (compiled.verdict === "compiled") {
      const undeclared = absent.find((name) => compiled.mentions.has(name));
      if (undeclared === undefined) return { run: compiled.run, cost: compiled.cost };
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

let policies: Environment | undefined;

function policyEnvironment(): Environment {
  if (policies === undefined) {
    policies = environment();
    for (const name of ["object", "oldObject", "request", "params", "namespaceObject", "variables"])
      policies.registerVariable(name, "dyn");
  }
  return policies;
}

function decide(
  request: PolicyRequest,
  params: unknown,
  variables: readonly Named[],
  conditions: readonly Named[],
  validations: readonly Validation[],
): PolicyDecision {
  const given = convert(params ?? null, undefined);
  const context: Record<string, unknown> = { ...request.values, params: given.value };
  const elements = request.elements + given.elements;
  context["variables"] = lazily(variables, context, elements);
  // Conditions are asked before the namespace is looked up: k8s.io/apiserver
  // pkg/admission/plugin/policy/validating/validator.go (master).
  const before = { ...context, namespaceObject: toCel({}) };
  for (const condition of conditions) {
    const { expression } = condition;
    const result = evaluateWithin(condition, before, elements);
    if (result.verdict === "failed")
      return { verdict: "failed", message: `expression '${expression}' resulted in error: ${result.message}` };
    if (result.value !== true) return { verdict: "skipped" };
  }
  for (const validation of validations) {
    const { expression, message, messageExpression, reason } = validation;
    const result = evaluateWithin(validation, context, elements);
    if (result.verdict === "failed")
      return { verdict: "failed", message: `expression '${expression}' resulted in error: ${result.message}` };
    if (result.value === true) continue;
    const said = messageExpression === undefined ? undefined : evaluateWithin(messageExpression, context, elements);
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

/** Variables are computed when first read, once; a failing one fails its reader. */
function lazily(variables: readonly Named[], context: Record<string, unknown>, elements: number): JsonObject {
  const holder: JsonObject = {};
  for (const { name, run, cost } of variables) {
    let known: { readonly value: unknown } | undefined;
    Object.defineProperty(holder, name, {
      enumerable: true,
      get(): unknown {
        if (isTooCostly(cost, elements)) throw new Error(tooCostly);
        known ??= { value: run(context) as unknown };
        return known.value;
      },
    });
  }
  return holder;
}
