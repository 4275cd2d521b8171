import { type ASTNode, type Environment, Optional } from "@marcbachmann/cel-js";
import { isList } from "../json-values.ts";
import { spend } from "./cel-cost.ts";
import { mapOf } from "./cel-equality.ts";

// What the library hands to a macro of ours, as far as macros use it.

interface Type {
  readonly kind: string;
  readonly keyType: Type;
  readonly valueType: Type;
  isDynOrBool(): boolean;
}

interface Scope {
  forkWithVariable(name: string, type: Type): Frame;
}

interface Frame extends Scope {
  reuse(parent: Scope): Frame;
  setIterValue(value: unknown, evaluator: Evaluator): Frame;
}

interface Checker {
  check(node: ASTNode, scope: Scope): Type;
  getType(name: string): Type;
  createError(code: string, message: string, node: ASTNode): Error;
  readonly registry: {
    getListType(value: Type): Type;
    getMapType(key: Type, value: Type): Type;
    getOptionalType(value: Type): Type;
  };
}

interface Evaluator {
  run(node: ASTNode, scope: Scope): unknown;
}

interface Call {
  readonly args: readonly ASTNode[];
  readonly receiver: ASTNode;
}

interface Macro {
  /** Whether the evaluation may be a promise: false makes the library faster. */
  readonly async?: boolean;
  typeCheck(checker: Checker, macro: unknown, scope: Scope): Type;
  evaluate(evaluator: Evaluator, macro: unknown, scope: Scope): unknown;
}

/** What became of one expression for each pair, in order; the generator's consumer may stop early. */
type Results = Iterable<() => unknown>;

interface PairMacro {
  /** Whether each expression must be true or false. */
  readonly isPredicate: boolean;
  result(checker: Checker, transformed: Type, key: Type, at: ASTNode): Type;
  /** The value of the whole macro. */
  collect(results: Results): unknown;
}

const predicate = { isPredicate: true, result: (checker: Checker) => checker.getType("bool") };

/** Answers as soon as one result decides; an error counts if none does. */
function quantified(results: Results, decisive: boolean): boolean {
  let failure: unknown;
  for (const result of results) {
    let value: unknown;
    try {
      value = result();
    } catch (error) {
      failure ??= error;
      continue;
    }
    if (value === decisive) return decisive;
  }
  if (failure !== undefined) throw failure;
  return !decisive;
}

const existsOne: PairMacro = {
  ...predicate,
  collect(results) {
    let count = 0;
    for (const result of results) if (result() === true) count++;
    return count === 1;
  },
};

/** Results of transformations: undefined where the filter leaves a pair out. */
function* kept(results: Results): Iterable<unknown> {
  for (const result of results) {
    const value = result();
    if (value !== undefined) yield value;
  }
}

/** The entries of all maps that pairs are transformed into, one after the other: the first double one ends that. */
function* entriesOf(results: Results): Iterable<Entry> {
  for (const entry of kept(results))
    for (const one of mapOf((entry as Entry)[1]) ?? []) {
      spend(1);
      yield one;
    }
}

/** A pair's key and what it is transformed into. */
type Entry = readonly [key: unknown, value: unknown];

function asMap(entries: Iterable<Entry>): ReadonlyMap<unknown, unknown> {
  const map = new Map<unknown, unknown>();
  for (const [key, value] of entries) {
    if (map.has(key)) throw new Error(`insert failed: key ${String(key)} already exists`);
    map.set(key, value);
  }
  return map;
}

/**
 * The macros with two variables, for keys and values of maps and for indexes and items of lists: google/cel-go
 * ext/comprehensions.go (v0.26).
 */
const pairMacros: Readonly<Record<string, PairMacro>> = {
  all: { ...predicate, collect: (results) => quantified(results, false) },
  exists: { ...predicate, collect: (results) => quantified(results, true) },
  existsOne,
  exists_one: existsOne,
  transformList: {
    isPredicate: false,
    result: (checker, transformed) => checker.registry.getListType(transformed),
    collect: (results) => [...kept(results)].map((entry) => (entry as Entry)[1]),
  },
  transformMap: {
    isPredicate: false,
    result: (checker, transformed, key) => checker.registry.getMapType(key, transformed),
    collect: (results) => asMap(kept(results) as Iterable<Entry>),
  },
  transformMapEntry: {
    isPredicate: false,
    result(checker, transformed, _key, at) {
      if (transformed.kind === "map" || transformed.kind === "dyn") return transformed;
      throw checker.createError("invalid_macro_argument", "transformMapEntry() expects a map", at);
    },
    collect: (results) => asMap(entriesOf(results)),
  },
};

/** Names of macros whose first two arguments are variables if they have so many more. */
export function pairVariables(name: string, args: readonly ASTNode[]): boolean {
  return args.length >= 3 && Object.hasOwn(pairMacros, name);
}

/** Registers the macros that Kubernetes has and the library lacks. */
export function addMacros(env: Environment): void {
  for (const [name, macro] of Object.entries(pairMacros)) {
    env.registerFunction(`list.${name}(ast, ast, ast): dyn`, (call: Call) => overPairs(name, macro, call));
    if (!macro.isPredicate)
      env.registerFunction(`list.${name}(ast, ast, ast, ast): dyn`, (call: Call) => overPairs(name, macro, call));
  }
  env.registerFunction(`${hasName}(ast): bool`, presence);
  env.registerFunction(`${stepName}(ast, ast): dyn`, step);
  env.registerFunction("optional.optMap(ast, ast): dyn", (call: Call) => withValue("optMap", call));
  env.registerFunction("optional.optFlatMap(ast, ast): dyn", (call: Call) => withValue("optFlatMap", call));
}

function variableOf(name: string, node: ASTNode | undefined): string {
  if (node?.op === "id") return node.args;
  throw new Error(`${name}() variable name must be a simple identifier`);
}

function argument(args: readonly ASTNode[], index: number): ASTNode {
  const node = args[index];
  if (node === undefined) throw new Error(`argument ${index} is missing`);
  return node;
}

function overPairs(name: string, macro: PairMacro, { args, receiver }: Call): Macro {
  const [first, second] = [variableOf(name, args[0]), variableOf(name, args[1])];
  if (first === second) throw new Error(`duplicate variable name: ${first}`);
  const filter = args.length === 4 ? argument(args, 2) : undefined;
  const body = argument(args, args.length - 1);
  let frames: { readonly outer: Frame; readonly inner: Frame } | undefined;
  return {
    typeCheck(checker, _macro, scope) {
      const range = checker.check(receiver, scope);
      if (!["list", "map", "dyn"].includes(range.kind))
        throw checker.createError(
          "invalid_comprehension_range",
          `expression of type '${range.kind}' cannot be range of a comprehension (must be list, map, or dynamic)`,
          receiver,
        );
      const key = range.kind === "list" ? checker.getType("int") : range.kind === "map" ? range.keyType : range;
      const outer = scope.forkWithVariable(first, key);
      const inner = outer.forkWithVariable(second, range.kind === "dyn" ? range : range.valueType);
      frames = { outer, inner };
      for (const condition of [filter, ...(macro.isPredicate ? [body] : [])])
        if (condition !== undefined && !checker.check(condition, inner).isDynOrBool())
          throw checker.createError("invalid_macro_argument", `${name}() predicate must return bool`, condition);
      return macro.result(checker, checker.check(body, inner), key, body);
    },
    evaluate(evaluator, _macro, scope) {
      if (frames === undefined) throw new Error("the expression was not checked");
      const range = evaluator.run(receiver, scope);
      const pairs = isList(range) ? range.map((item, index): Entry => [BigInt(index), item]) : mapOf(range);
      if (pairs === undefined) throw new Error("expression cannot be range of a comprehension");
      const outer = frames.outer.reuse(scope);
      const inner = frames.inner.reuse(outer);
      const bind = ([key, value]: Entry): void => {
        outer.setIterValue(key, evaluator);
        inner.setIterValue(value, evaluator);
      };
      function* results(): Results {
        for (const pair of pairs ?? []) {
          yield () => {
            bind(pair);
            if (filter !== undefined && evaluator.run(filter, inner) !== true) return undefined;
            const value = evaluator.run(body, inner);
            return macro.isPredicate ? value : ([pair[0], value] satisfies Entry);
          };
        }
      }
      return macro.collect(results());
    },
  };
}

/** The macro that runs in place of `has`: the library's takes fields of variables alone, and none of an item of a list. */
export const hasName = "kubernetesHas";

function presence({ args }: Call): Macro {
  const [selected] = args;
  if (selected?.op !== ".") throw new Error("invalid argument to has() macro");
  const [holder, field] = selected.args;
  return {
    typeCheck(checker, _macro, scope) {
      checker.check(selected, scope);
      return checker.getType("bool");
    },
    evaluate(evaluator, _macro, scope) {
      let value = evaluator.run(holder, scope);
      if (value instanceof Optional) {
        if (!value.hasValue()) return false;
        value = value.value();
      }
      const map = mapOf(value);
      if (map === undefined) throw new Error("no such overload: has");
      return map.has(field);
    },
  };
}

/**
 * The macro around a part of an expression that may be evaluated any number of times, or not at all: it charges what the
 * part costs each time, its first argument.
 */
export const stepName = "kubernetesStep";

function step({ args }: Call): Macro {
  const [cost, part] = [argument(args, 0), argument(args, 1)];
  if (cost.op !== "value" || typeof cost.args !== "bigint") throw new Error("the cost of a step must be a number");
  const units = Number(cost.args);
  return {
    async: false,
    typeCheck: (checker, _macro, scope) => checker.check(part, scope),
    evaluate(evaluator, _macro, scope) {
      spend(units);
      return evaluator.run(part, scope);
    },
  };
}

/** `optMap` and `optFlatMap`: an expression over the value of an optional, if it has one. */
function withValue(name: "optMap" | "optFlatMap", { args, receiver }: Call): Macro {
  const variable = variableOf(name, args[0]);
  const body = argument(args, 1);
  let frame: Frame | undefined;
  return {
    typeCheck(checker, _macro, scope) {
      const type = checker.check(receiver, scope);
      if (type.kind !== "optional" && type.kind !== "dyn")
        throw checker.createError("optional_expected", `${name}() is a macro of optionals`, receiver);
      frame = scope.forkWithVariable(variable, type.kind === "dyn" ? type : type.valueType);
      const result = checker.check(body, frame);
      return name === "optMap" ? checker.registry.getOptionalType(result) : result;
    },
    evaluate(evaluator, _macro, scope) {
      if (frame === undefined) throw new Error("the expression was not checked");
      const given = evaluator.run(receiver, scope);
      if (!(given instanceof Optional)) throw new Error(`no such overload: ${name}`);
      if (!given.hasValue()) return given;
      const inner = frame.reuse(scope).setIterValue(given.value(), evaluator);
      const result = evaluator.run(body, inner);
      return name === "optMap" ? Optional.of(result) : result;
    },
  };
}
