import { equalJson, isList, isObject } from "./json-values.ts";

/**
 * The part of JSONPath that printer columns and `-o jsonpath` share: fields, quoted fields, indexes and slices,
 * wildcards, and filters of one comparison. kubernetes/client-go util/jsonpath (master)
 */
export type JsonPath =
  | { readonly verdict: "compiled"; readonly find: (value: unknown) => readonly unknown[] }
  | { readonly verdict: "refused"; readonly message: string };

type Step = (values: readonly unknown[]) => readonly unknown[];

/**
 * Compiles `.status.conditions[?(@.type=="Ready")].status`; the leading dot or `$` may be absent, braces are dropped.
 */
export function compileJsonPath(text: string): JsonPath {
  const steps: Step[] = [];
  let rest = text
    .trim()
    .replace(/^\{(.*)\}$/s, "$1")
    .replace(/^\$/, "");
  if (rest !== "" && !/^[.[]/.test(rest)) rest = `.${rest}`;
  while (rest !== "" && rest !== ".") {
    const step = readStep(rest);
    if (typeof step === "string") return { verdict: "refused", message: step };
    steps.push(step.apply);
    rest = rest.slice(step.length);
  }
  return {
    verdict: "compiled",
    find: (value) => steps.reduce<readonly unknown[]>((values, step) => step(values), [value]),
  };
}

function readStep(text: string): { readonly length: number; readonly apply: Step } | string {
  const wildcard = /^(?:\.\*|\[\*\])/.exec(text);
  if (wildcard !== null) return { length: wildcard[0].length, apply: (values) => values.flatMap(children) };
  const recursive = /^\.\.([\w-]+)/.exec(text);
  if (recursive !== null) {
    const name = recursive[1] ?? "";
    return { length: recursive[0].length, apply: (values) => values.flatMap((value) => descend(value, name)) };
  }
  const field = /^\.((?:\\.|[^.[\]\\(){}])+)/.exec(text);
  if (field !== null) {
    const name = (field[1] ?? "").replaceAll(/\\(.)/g, "$1");
    return { length: field[0].length, apply: (values) => values.flatMap((value) => member(value, name)) };
  }
  const quoted = /^\.?\[\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")\s*\]/.exec(text);
  if (quoted !== null) {
    const name = (quoted[1] ?? quoted[2] ?? "").replaceAll(/\\(.)/g, "$1");
    return { length: quoted[0].length, apply: (values) => values.flatMap((value) => member(value, name)) };
  }
  const slice = /^\.?\[(-?\d+)?(:)?(-?\d+)?\]/.exec(text);
  if (slice !== null && (slice[1] !== undefined || slice[2] !== undefined)) {
    const [whole, from, colon, to] = slice;
    const start = from === undefined ? 0 : Number(from);
    return {
      length: whole.length,
      apply: (values) =>
        values.flatMap((value) => {
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
    const inner = compileJsonPath(path === "" ? "." : path);
    if (inner.verdict === "refused") return inner.message;
    const wanted = readLiteral(literal);
    return {
      length: whole.length,
      apply: (values) =>
        values.flatMap((value) =>
          isList(value)
            ? value.filter((item) => {
                const found = inner.find(item);
                return operator === undefined ? found.length > 0 : found.some((one) => holds(one, operator, wanted));
              })
            : [],
        ),
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

function descend(value: unknown, name: string): readonly unknown[] {
  return [...member(value, name), ...children(value).flatMap((one) => descend(one, name))];
}
