import type { ASTNode, Environment, ParseResult } from "@marcbachmann/cel-js";
import type { Schema } from "../contract.ts";
import { isList, isObject } from "../json-values.ts";
import { compilationSize, largestProgram } from "../regular-expressions.ts";
import {
  givenPatterns,
  globalFunctions,
  isKubernetesFunction,
  kubernetesEnvironment,
  isExpression,
  type LiteralPatterns,
  methodFunctions,
  operatorFunctions,
  quote,
  withLiteralPatterns,
} from "./cel-functions.ts";
import { metered, tooCostly } from "./cel-cost.ts";
import { hasName, pairVariables, stepName } from "./cel-macros.ts";
import { TooManyLooks, declareTypes, mostLooks, typesOf } from "./cel-types.ts";
import { namedPropertiesOf } from "./cel-values.ts";
import { own } from "../../../../api/schema/own.ts";

/**
 * An expression is type-checked in one environment and evaluated in another. The check declares `self` with the type of
 * its schema, so that a type error refuses the definition. The evaluation is dynamic, and replaces equality, addition and
 * membership by functions of our own: the library does not know the list types `set` and `map`.
 */
export type CompiledExpression =
  | {
      readonly verdict: "compiled";
      readonly run: ParseResult;
      readonly mentions: ReadonlySet<string>;
      /** What the patterns compile to that stand in it. */ readonly patternSize: number;
    }
  | {
      readonly verdict: "refused";
      readonly message: string;
      /** Its type, if the type is the error. */ readonly got?: string;
    };

/** What an expression must evaluate to. */
export type WantedType = "bool" | "string" | "any";

const shared = new Map<"check" | "run", Environment>();

/** The environment of Kubernetes without variables, for a clone of the caller. */
function environment(use: "check" | "run"): Environment {
  const known = shared.get(use) ?? kubernetesEnvironment(use);
  shared.set(use, known);
  return known.clone();
}

let ruleValues: Environment | undefined;

/** The fields that an expression selects, by its text. */
const knownFields = new Map<string, ReadonlySet<string>>();
/** Compiled expressions, by their text and types. */
const knownRules = new Map<string, CompiledExpression>();
/** Bound of each cache: definitions hold hundreds of rules, and are compiled again each time they are read. */
const cacheSize = 5_000;
/** Longer expressions are compiled each time: their author could fill the memory with them. */
const longestKey = 20_000;

/** Bound of the instructions of patterns that the cache of expressions keeps. */
const keptPatterns = 1_000_000;
let patternsKept = 0;

function rememberRule(key: string, compiled: CompiledExpression): CompiledExpression {
  const size = compiled.verdict === "compiled" ? compiled.patternSize : 0;
  if (size > keptPatterns / 100 || key.length > longestKey) return compiled;
  if (patternsKept + size > keptPatterns) knownRules.clear();
  remember(knownRules, key, compiled);
  patternsKept = knownRules.size === 1 ? size : patternsKept + size;
  return compiled;
}

function remember<T>(cache: Map<string, T>, key: string, value: T): T {
  if (key.length > longestKey) return value;
  if (cache.size >= cacheSize) cache.clear();
  cache.set(key, value);
  return value;
}

const ruleEnvironment = (): Environment =>
  (ruleValues ??= environment("run").registerVariable("self", "dyn").registerVariable("oldSelf", "dyn"));

/** Compiles an expression of a rule on the values of a schema; the same expression with the same types only once. */
export function compileRuleExpression(
  text: string,
  schema: Schema,
  { optionalOldSelf, wanted }: { readonly optionalOldSelf: boolean; readonly wanted: WantedType },
): CompiledExpression {
  const env = ruleEnvironment();
  try {
    const types = typesOf(schema, fieldsOf(text));
    const key = JSON.stringify([text, wanted, optionalOldSelf, types]);
    const known = knownRules.get(key);
    if (known !== undefined) return known;
    const variables = new Map([["self", schema]]);
    if (!optionalOldSelf) variables.set("oldSelf", schema);
    const compiled = compileIn(env, text, {
      wanted,
      variables,
      typed() {
        const checking = environment("check");
        declareTypes(checking, types);
        return checking
          .registerVariable("self", types.type)
          .registerVariable("oldSelf", optionalOldSelf ? `optional<${types.type}>` : types.type);
      },
    });
    return rememberRule(key, compiled);
  } catch (error) {
    return failed(sentence(error));
  }
}

/** The names of fields in an expression. @throws Error if it does not parse. */
const fieldsOf = (text: string): ReadonlySet<string> =>
  knownFields.get(text) ?? remember(knownFields, text, fieldsIn(ruleEnvironment().parse(text).ast));

/**
 * The cost of finding the types of an expression: the places of the schema that it looks at. 0 for one that does not
 * compile.
 */
export function looksOf(text: string, schema: Schema): number {
  try {
    return typesOf(schema, fieldsOf(text)).looks;
  } catch (error) {
    return error instanceof TooManyLooks ? mostLooks : 0;
  }
}

const policyVariables = ["object", "oldObject", "request", "params", "namespaceObject", "variables"];
let policyEnvironments: { readonly check: Environment; readonly run: Environment } | undefined;

/** Compiles an expression of an admission policy, whose variables have no types. */
export function compilePolicyExpression(text: string, wanted: WantedType): CompiledExpression {
  const declared = (env: Environment): Environment =>
    policyVariables.reduce((declaring, name) => declaring.registerVariable(name, "dyn"), env);
  policyEnvironments ??= { check: declared(environment("check")), run: declared(environment("run")) };
  const { check, run } = policyEnvironments;
  return compileIn(run, text, { wanted, variables: new Map(), typed: () => check });
}

interface Given {
  readonly wanted: WantedType;
  /** Variables whose schemas are known. */
  readonly variables: ReadonlyMap<string, Schema>;
  /** The environment in which types are checked. */
  typed(): Environment;
}

const failed = (what: string): CompiledExpression => ({
  verdict: "refused",
  message: `compilation failed: ERROR: <input>:1:1: ${what}`,
});

/** Compiles one expression and reports what a server would refuse: other result types, unknown functions and fields. */
function compileIn(env: Environment, text: string, { wanted, variables, typed }: Given): CompiledExpression {
  try {
    const parsed = env.parse(text);
    const patternSize = patternsIn(parsed.ast).reduce((sum, pattern) => sum + compilationSize(pattern), 0);
    if (patternSize > largestProgram)
      return failed(`the patterns of an expression must not compile to more than ${largestProgram} instructions`);
    const survey: Survey = {
      mentions: new Set(),
      // The library declares a macro's namespace that Kubernetes does not have.
      isDeclared: (name) => name !== "cel" && env.hasVariable(name),
    };
    const { problem } = inspect(parsed.ast, variables, survey);
    if (problem !== undefined) return failed(problem);
    const checked = typed().parse(checkable(parsed.ast)).check();
    if (!checked.valid) return failed(sentence(checked.error));
    if (wanted !== "any" && checked.type !== wanted && (checked.type !== "dyn" || variables.size > 0)) {
      return {
        verdict: "refused",
        message:
          wanted === "bool" ? "cel expression must evaluate to a bool" : "messageExpression must evaluate to a string",
        got: String(checked.type),
      };
    }
    const run = env.parse(runnable(parsed.ast));
    const executable = run.check();
    if (!executable.valid) return failed(sentence(executable.error));
    return { verdict: "compiled", run, mentions: survey.mentions, patternSize };
  } catch (error) {
    return failed(sentence(error));
  }
}

/** The message of an error of the library, as Kubernetes begins it. */
function sentence(error: unknown): string {
  const summary = isObject(error) ? error["summary"] : undefined;
  if (typeof summary === "string") return lowerFirst(summary);
  return lowerFirst(error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error));
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** What became of an expression, and what it cost. `exceeded`: more than one expression may cost. */
export type Evaluation = { readonly cost: number } & (
  | { readonly verdict: "evaluated"; readonly value: unknown }
  | { readonly verdict: "failed" | "exceeded"; readonly message: string }
);

/** The compiled patterns of expressions, for as long as these are kept. */
const patternsOf = new WeakMap<ParseResult, LiteralPatterns>();

/** Runs an expression. */
export function evaluate(run: ParseResult, context: Record<string, unknown>): Evaluation {
  const patterns = patternsOf.get(run) ?? new Map();
  patternsOf.set(run, patterns);
  const result = metered((): unknown => withLiteralPatterns(patterns, (): unknown => run(context)));
  const { verdict, cost } = result;
  if (verdict === "evaluated") return result;
  return { verdict, cost, message: verdict === "exceeded" ? tooCostly : sentence(result.error) };
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

/** The names of fields that an expression selects. */
function fieldsIn(ast: ASTNode): ReadonlySet<string> {
  const fields = new Set<string>();
  const look = (node: ASTNode): void => {
    if (node.op === "." || node.op === ".?") fields.add(node.args[1]);
    childNodes(node).forEach(look);
  };
  look(ast);
  return fields;
}

/** The patterns that stand in the text of an expression; none in what does not parse. */
export function literalPatternsOf(text: string): readonly string[] {
  if (!/\b(?:matches|find|findAll)\b/.test(text)) return [];
  try {
    return patternsIn(ruleEnvironment().parse(text).ast);
  } catch {
    return [];
  }
}

/** The patterns that stand in an expression. */
function patternsIn(ast: ASTNode): readonly string[] {
  const patterns = new Set<string>();
  const look = (node: ASTNode): void => {
    const pattern = patternOf(node);
    if (pattern?.op === "value" && typeof pattern.args === "string") patterns.add(pattern.args);
    childNodes(node).forEach(look);
  };
  look(ast);
  return [...patterns];
}

/** The pattern of a search. */
function patternOf(node: ASTNode): ASTNode | undefined {
  if (node.op === "call" && own(givenPatterns, node.args[0]) !== undefined) return node.args[1][1];
  return node.op === "rcall" && own(givenPatterns, node.args[0]) !== undefined ? node.args[2][0] : undefined;
}

/** The text of a node, or undefined if it needs no change. */
type Replacement = (node: ASTNode, write: (node: ASTNode) => string) => string | undefined;

/** The text of an expression, with parentheses around every operand: the library's serializer omits necessary ones. */
function textOf(node: ASTNode, replace: Replacement): string {
  const write = (one: ASTNode): string => replace(one, write) ?? plainText(one, write);
  return write(node);
}

function plainText(node: ASTNode, write: (node: ASTNode) => string): string {
  const list = (nodes: readonly ASTNode[]): string => nodes.map(write).join(", ");
  const { op, args } = node;
  switch (op) {
    case "value":
      return literalText(args);
    case "id":
      return args;
    case ".":
    case ".?":
      return `(${write(args[0])})${op}${args[1]}`;
    case "[]":
      return `(${write(args[0])})[${write(args[1])}]`;
    case "[?]":
      return `(${write(args[0])})[?${write(args[1])}]`;
    case "call":
      return `${args[0]}(${list(args[1])})`;
    case "rcall":
      return `(${write(args[1])}).${args[0]}(${list(args[2])})`;
    case "list":
      return `[${list(args)}]`;
    case "map":
      return `{${args.map(([key, value]) => `${write(key)}: ${write(value)}`).join(", ")}}`;
    case "?:":
      return `(${write(args[0])}) ? (${write(args[1])}) : (${write(args[2])})`;
    case "!_":
    case "-_":
      return `${op[0]}(${write(args)})`;
    default:
      return `(${write(args[0])}) ${op} (${write(args[1])})`;
  }
}

function literalText(value: Extract<ASTNode, { op: "value" }>["args"]): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return quote(value);
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number") return /^-?\d+$/.test(String(value)) ? `${value}.0` : String(value);
  if (value instanceof Uint8Array)
    return `b"${Array.from(value, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}"`;
  return `${String(value)}u`;
}

/** The expression for the type check: arguments of `format` may have different types, unlike items of other lists. */
const checkable = (ast: ASTNode): string =>
  textOf(ast, ({ op, args }, write) => {
    if (op === "call" && args[0] === "has") return `${hasName}(${args[1].map(write).join(", ")})`;
    if (op !== "rcall" || args[0] !== "format" || args[2][0]?.op !== "list") return undefined;
    return `(${write(args[1])}).format([${args[2][0].args.map((item) => `dyn(${write(item)})`).join(", ")}])`;
  });

/** Cost of what an expression names or builds: see cel-cost.ts. Operators and functions cost 1, and what they look at. */
const costs: Readonly<Record<string, number>> = { value: 0, "&&": 0, "||": 0, "?:": 0, list: 10, map: 30 };

/** What each round of a macro costs besides its parts: google/cel-go parser/macro.go and ext/comprehensions.go (v0.26). */
const roundCosts: Readonly<Record<string, number>> = {
  all: 3,
  exists: 4,
  map: 12,
  transformList: 12,
  transformMap: 4,
  transformMapEntry: 4,
};

/** A function of a time in a time zone: some 100 µs. */
const inTimeZone = 500;

/** Whether a node is a constant, or a list or map of constants, which kube-apiserver builds once. */
const isLiteral = (node: ASTNode): boolean =>
  node.op === "value" || ((node.op === "list" || node.op === "map") && childNodes(node).every(isLiteral));

/** The parts of an expression that have a cost of their own: the whole, and what is evaluated many times or not at all. */
function stepsOf(ast: ASTNode): ReadonlyMap<ASTNode, number> {
  const steps = new Map<ASTNode, number>();
  const mark = (part: ASTNode, isInLoop: boolean, more: number): void => {
    const cost = weigh(part, isInLoop) + more;
    if (cost > 0) steps.set(part, cost);
  };
  /** What a node costs, without the steps in it. */
  const weigh = (node: ASTNode, isInLoop: boolean): number => {
    if (isLiteral(node)) return Math.floor(childNodes(node).length / 10);
    const own = costs[node.op] ?? 1;
    let parts = childNodes(node);
    if (node.op === "call" && node.args[0] === "has") {
      const [holder] = parts[0] === undefined ? [] : childNodes(parts[0]);
      return holder === undefined ? 0 : weigh(holder, isInLoop);
    }
    if (node.op === "rcall") {
      const [name, receiver, args] = node.args;
      const declared = declaredBy(name, args, undefined);
      if (declared?.isLoop === true) {
        // Each round costs something, whatever is in it.
        const [first, ...others] = args.slice(declared.variables.size);
        if (first !== undefined) mark(first, true, roundCosts[name] ?? 1);
        for (const part of others) mark(part, true, 0);
        parts = [receiver];
      } else if (name.startsWith("get") && args.length > 0) return inTimeZone + weigh(receiver, isInLoop);
    } else if (isInLoop && (node.op === "&&" || node.op === "||" || node.op === "?:")) {
      const [first, ...others] = parts;
      for (const part of others) mark(part, true, 0);
      parts = first === undefined ? [] : [first];
    }
    return parts.reduce((cost, part) => cost + weigh(part, isInLoop), own);
  };
  mark(ast, false, 0);
  return steps;
}

/**
 * The expression for the evaluation, with operators and functions of the library replaced by our own, and with what its
 * parts cost.
 */
function runnable(ast: ASTNode): string {
  const steps = stepsOf(ast);
  return textOf(ast, (node, write) => {
    const text = replaced(node, write) ?? plainText(node, write);
    const cost = steps.get(node);
    return cost === undefined ? text : `${stepName}(${cost}, ${text})`;
  });
}

/** The function for a pattern that does not stand in the expression. */
const givenPattern = (name: string, pattern: ASTNode | undefined): string | undefined =>
  pattern === undefined || pattern.op === "value" ? undefined : own(givenPatterns, name);

function replaced({ op, args }: ASTNode, write: (node: ASTNode) => string): string | undefined {
  switch (op) {
    case "==":
    case "+":
    case "in":
    case "<":
    case "<=":
    case ">":
    case ">=":
      return `${operatorFunctions[op]}(${args.map(write).join(", ")})`;
    case "!=":
      return `!${operatorFunctions["=="]}(${args.map(write).join(", ")})`;
    case "map":
      return `${operatorFunctions.map}([${args.map((entry) => `[${entry.map(write).join(", ")}]`).join(", ")}])`;
    case "call": {
      const name = args[0] === "has" ? hasName : (givenPattern(args[0], args[1][1]) ?? own(globalFunctions, args[0]));
      return `${name ?? args[0]}(${args[1].map(write).join(", ")})`;
    }
    case "rcall": {
      const name = givenPattern(args[0], args[2][0]) ?? own(methodFunctions, args[0]) ?? args[0];
      return `(${write(args[1])}).${name}(${args[2].map(write).join(", ")})`;
    }
    default:
      return undefined;
  }
}

interface Survey {
  /** Names of variables. */
  readonly mentions: Set<string>;
  /** Whether the expression may name such a variable or constant. */
  isDeclared(name: string): boolean;
}

interface Inspected {
  /** What is known about the value; undefined: nothing. */
  readonly schema?: Schema | undefined;
  readonly problem?: string | undefined;
}

const oneVariable = new Set(["all", "exists", "exists_one", "map", "filter"]);
const ofOptionals = new Set(["optMap", "optFlatMap"]);

/** Variables that a macro declares, with the schemas of their values as far as they are known. */
function declaredBy(
  name: string,
  args: readonly ASTNode[],
  range: Schema | undefined,
): { readonly variables: ReadonlyMap<string, Schema | undefined>; readonly isLoop: boolean } | undefined {
  const [first, second] = args;
  if (first?.op !== "id") return undefined;
  if (pairVariables(name, args) && second?.op === "id") {
    const variables = new Map<string, Schema | undefined>([
      [first.args, undefined],
      [second.args, elementOf(range)],
    ]);
    return { variables, isLoop: true };
  }
  const item = range?.type === "array" ? range.items : undefined;
  if (args.length > 1 && oneVariable.has(name)) return { variables: new Map([[first.args, item]]), isLoop: true };
  return args.length === 2 && ofOptionals.has(name)
    ? { variables: new Map([[first.args, undefined]]), isLoop: false }
    : undefined;
}

/** Follows field selections through the schema, so that a rule on a field that does not exist is refused. */
function inspect(node: ASTNode, scope: ReadonlyMap<string, Schema | undefined>, survey: Survey): Inspected {
  switch (node.op) {
    case "id":
      if (!scope.has(node.args) && !survey.isDeclared(node.args)) return { problem: undeclared(node.args) };
      survey.mentions.add(node.args);
      return { schema: scope.get(node.args) };
    case ".":
    case ".?": {
      const base = inspect(node.args[0], scope, survey);
      if (base.problem !== undefined || base.schema === undefined) return { problem: base.problem };
      const field = fieldOf(base.schema, node.args[1]);
      return node.op === "." ? field : { problem: field.problem };
    }
    case "[]":
    case "[?]": {
      const base = inspect(node.args[0], scope, survey);
      const index = inspect(node.args[1], scope, survey);
      const problem = base.problem ?? index.problem;
      return node.op === "[]" && problem === undefined ? { schema: elementOf(base.schema) } : { problem };
    }
    case "call": {
      const problem = problemOf(node, node.args[0], node.args[1]);
      return problem === undefined ? inspectAll(node.args[1], scope, survey) : { problem };
    }
    case "rcall": {
      const [name, receiver, args] = node.args;
      const base = inspect(receiver, scope, survey);
      if (base.problem !== undefined) return base;
      const wrong = problemOf(node, name, args);
      if (wrong !== undefined) return { problem: wrong };
      const declared = declaredBy(name, args, base.schema);
      if (declared === undefined) return inspectAll(args, scope, survey);
      const { variables } = declared;
      const { problem } = inspectAll(args.slice(variables.size), new Map([...scope, ...variables]), survey);
      return problem === undefined && name === "filter" ? { schema: base.schema } : { problem };
    }
    default:
      return inspectAll(childNodes(node), scope, survey);
  }
}

/** The first problem of some nodes. */
function inspectAll(
  nodes: readonly ASTNode[],
  scope: ReadonlyMap<string, Schema | undefined>,
  survey: Survey,
): Inspected {
  for (const one of nodes) {
    const { problem } = inspect(one, scope, survey);
    if (problem !== undefined) return { problem };
  }
  return {};
}

/** Conversions that Kubernetes evaluates for constants at compile time: google/cel-go interpreter/planner.go (v0.26). */
const conversions = new Set(["int", "uint", "double", "bool", "string", "bytes", "duration", "timestamp"]);

const knownConversions = new Map<string, ParseResult>();

/** One of them as an expression, compiled once. */
function conversionBy(name: string): ParseResult {
  const known = knownConversions.get(name);
  if (known !== undefined) return known;
  const run = environment("run")
    .registerVariable("given", "dyn")
    .parse(`${own(globalFunctions, name) ?? name}(given)`);
  knownConversions.set(name, run);
  return run;
}

type Constant =
  | { readonly kind: "constant"; readonly value: unknown }
  | { readonly kind: "wrong"; readonly problem: string }
  | { readonly kind: "open" };

/** The value of a constant, and of a conversion of one. */
function constantOf(node: ASTNode): Constant {
  if (node.op === "value") return { kind: "constant", value: node.args };
  if (node.op !== "call" || !conversions.has(node.args[0])) return { kind: "open" };
  const [name, [given, ...others]] = node.args;
  if (given === undefined || others.length > 0) return { kind: "open" };
  const constant = constantOf(given);
  if (constant.kind !== "constant") return constant;
  const result = evaluate(conversionBy(name), { given: constant.value });
  return result.verdict === "evaluated"
    ? { kind: "constant", value: result.value }
    : { kind: "wrong", problem: result.message };
}

/** The problem of a call at compile time: an unknown function, an invalid pattern, or a constant that does not convert. */
function problemOf(node: ASTNode, name: string, args: readonly ASTNode[]): string | undefined {
  if (!isKubernetesFunction(name)) return undeclared(name);
  const pattern = name === "matches" ? args.at(-1) : undefined;
  if (pattern?.op === "value" && typeof pattern.args === "string" && !isExpression(pattern.args))
    return "invalid matches argument";
  const constant = constantOf(node);
  return constant.kind === "wrong" ? constant.problem : undefined;
}

const undeclared = (name: string): string => `undeclared reference to '${name}' (in container '')`;

function fieldOf(schema: Schema, name: string): Inspected {
  if (schema["x-kubernetes-int-or-string"] === true) return {};
  const isMap = isObject(schema.additionalProperties);
  if (isMap) return { schema: schema.additionalProperties as Schema };
  if (schema.type !== undefined && schema.type !== "object")
    return { problem: `type '${schema.type}' does not support field selection` };
  const property = namedPropertiesOf(schema).get(name);
  return property === undefined ? { problem: `undefined field '${name}'` } : { schema: property };
}

function elementOf(schema: Schema | undefined): Schema | undefined {
  if (schema?.type === "array") return schema.items;
  return isObject(schema?.additionalProperties) ? (schema.additionalProperties as Schema) : undefined;
}
