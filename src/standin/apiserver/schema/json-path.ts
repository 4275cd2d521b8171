import { equalJson, isList, isObject } from "./json-values.ts";

/**
 * The part of JSONPath that printer columns and `-o jsonpath` share: fields, quoted fields, indexes and slices,
 * wildcards, and filters of one comparison. kubernetes/client-go util/jsonpath (master)
 */
export type JsonPath =
  | {
      readonly verdict: "compiled";
      /** Steps of the path, those of its filters included. */ readonly steps: number;
      /**
       * The first value of the path, as columns and selectable fields show it. Where `..` stands below `..`, each value is
       * visited once. `undefined` where nothing is found, or nothing among the first {@link mostVisits} values.
       */
      readonly first: (value: unknown) => unknown;
    }
  | { readonly verdict: "refused"; readonly message: string };

/** Values that a path looks at in one object. */
export const mostVisits = 10_000;
/** Steps of one path. */
export const mostSteps = 32;

interface Visits {
  left: number;
}

type Values = Iterable<unknown>;
/** The values that a step gives for each of some values, made as they are asked for. */
type Step = (values: Values, visits: Visits) => Values;

/**
 * Compiles `.status.conditions[?(@.type=="Ready")].status`; the leading dot or `$` may be absent, braces are dropped.
 */
export function compileJsonPath(text: string): JsonPath {
  const read = readSteps(text);
  if (read.verdict === "refused") return read;
  const { steps, find } = read;
  return {
    verdict: "compiled",
    steps,
    first(value) {
      for (const found of find(value, { left: mostVisits })) return found;
      return undefined;
    },
  };
}

type ReadSteps =
  | {
      readonly verdict: "read";
      readonly steps: number;
      readonly find: (value: unknown, visits: Visits) => Values;
    }
  | { readonly verdict: "refused"; readonly message: string };

function readSteps(text: string): ReadSteps {
  const steps: Step[] = [];
  let count = 0;
  let rest = text
    .trim()
    .replace(/^\{(.*)\}$/s, "$1")
    .replace(/^\$/, "");
  if (rest !== "" && !/^[.[]/.test(rest)) rest = `.${rest}`;
  while (rest !== "" && rest !== ".") {
    const step = readStep(rest);
    if (typeof step === "string") return { verdict: "refused", message: step };
    steps.push(step.apply);
    count += step.count ?? 1;
    if (count > mostSteps)
      return {
        verdict: "refused",
        message: `must not have more than ${mostSteps} steps: name a field closer to the root`,
      };
    rest = rest.slice(step.length);
  }
  return {
    verdict: "read",
    steps: count,
    find: (value, visits) => steps.reduce<Values>((values, step) => step(values, visits), [value]),
  };
}

/** A step that gives some values for each value. */
const forEach = (apply: (value: unknown, visits: Visits) => Values): Step =>
  function* (values, visits) {
    for (const value of values) {
      for (const found of apply(value, visits)) {
        if (visits.left-- <= 0) return;
        yield found;
      }
    }
  };

/** The values of a field here and below, each once, those above first. */
const descent = (name: string): Step =>
  function* (values, visits) {
    const seen = new Set<unknown>();
    for (const value of values) {
      const open: unknown[] = [value];
      while (open.length > 0) {
        const one = open.pop();
        if (typeof one !== "object" || one === null || seen.has(one)) continue;
        if (visits.left-- <= 0) return;
        seen.add(one);
        yield* member(one, name);
        for (const child of children(one).toReversed()) open.push(child);
      }
    }
  };

function readStep(text: string): { readonly length: number; readonly apply: Step; readonly count?: number } | string {
  const wildcard = /^(?:\.\*|\[\*\])/.exec(text);
  if (wildcard !== null) return { length: wildcard[0].length, apply: forEach(children) };
  const recursive = /^\.\.([\w-]+)/.exec(text);
  if (recursive !== null) {
    const name = recursive[1] ?? "";
    return { length: recursive[0].length, apply: descent(name) };
  }
  const field = /^\.((?:\\.|[^.[\]\\(){}])+)/.exec(text);
  if (field !== null) {
    const name = (field[1] ?? "").replaceAll(/\\(.)/g, "$1");
    return { length: field[0].length, apply: forEach((value) => member(value, name)) };
  }
  const quoted = /^\.?\[\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")\s*\]/.exec(text);
  if (quoted !== null) {
    const name = (quoted[1] ?? quoted[2] ?? "").replaceAll(/\\(.)/g, "$1");
    return { length: quoted[0].length, apply: forEach((value) => member(value, name)) };
  }
  const slice = /^\.?\[(-?\d+)?(:)?(-?\d+)?\]/.exec(text);
  if (slice !== null && (slice[1] !== undefined || slice[2] !== undefined)) {
    const [whole, from, colon, to] = slice;
    const start = from === undefined ? 0 : Number(from);
    return {
      length: whole.length,
      apply: forEach((value) => {
        if (!isList(value)) return [];
        if (colon !== undefined) return value.slice(start, to === undefined ? undefined : Number(to));
        const item = value.at(start);
        return item === undefined ? [] : [item];
      }),
    };
  }
  const filter =
    /^\.?\[\?\(\s*@((?:\.[\w-]+|\[[^\]]*\])*)\s*(?:(==|!=|<=|>=|<|>)\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|-?[\d.]+|true|false))?\s*\)\]/.exec(
      text,
    );
  if (filter !== null) {
    const [whole, path = "", operator, literal = ""] = filter;
    const inner = readSteps(path === "" ? "." : path);
    if (inner.verdict === "refused") return inner.message;
    const wanted = readLiteral(literal);
    const isMeant = (item: unknown, visits: Visits): boolean => {
      for (const one of inner.find(item, visits))
        if (operator === undefined || holds(one, operator, wanted)) return true;
      return false;
    };
    return {
      length: whole.length,
      count: 1 + inner.steps,
      apply: forEach(function* (value, visits) {
        if (!isList(value)) return;
        for (const item of value) {
          if (visits.left-- <= 0) return;
          if (isMeant(item, visits)) yield item;
        }
      }),
    };
  }
  return `unterminated or unsupported JSONPath at ${JSON.stringify(text)}`;
}

function readLiteral(text: string): unknown {
  if (text.startsWith("'") || text.startsWith('"')) return text.slice(1, -1).replaceAll(/\\(.)/g, "$1");
  if (text === "true" || text === "false") return text === "true";
  return Number(text);
}

function holds(value: unknown, operator: string, wanted: unknown): boolean {
  if (operator === "==") return equalJson(value, wanted);
  if (operator === "!=") return !equalJson(value, wanted);
  if (typeof value !== typeof wanted || (typeof value !== "number" && typeof value !== "string")) return false;
  const [left, right] = [value, wanted as number | string];
  if (operator === "<") return left < right;
  if (operator === ">") return left > right;
  return operator === "<=" ? left <= right : left >= right;
}

function member(value: unknown, name: string): readonly unknown[] {
  if (!isObject(value) || !Object.hasOwn(value, name)) return [];
  return [value[name]];
}

function children(value: unknown): readonly unknown[] {
  if (isList(value)) return value;
  return isObject(value) ? Object.values(value) : [];
}
