import { RE2JS, type RE2JSException } from "re2js";

/**
 * Schemas and CEL speak RE2, which JavaScript's own expressions do not: they spell some things differently, and a
 * hostile one costs them exponential time. RE2JS is a translation of Go's package: the same syntax, the same refusals,
 * and time that is linear in the text.
 */
export type Expression =
  | { readonly verdict: "compiled"; readonly expression: RE2JS; readonly test: (text: string) => boolean }
  | { readonly verdict: "refused"; readonly message: string };

const known = new Map<string, Expression>();
/** Bound of the cache; schemas hold few expressions, CEL may build them from data. */
const cacheSize = 2_000;

/** Compiles an RE2 expression; the same text is compiled once. */
export function compileExpression(pattern: string): Expression {
  const cached = known.get(pattern);
  if (cached !== undefined) return cached;
  const compiled = compile(pattern);
  if (known.size >= cacheSize) known.clear();
  known.set(pattern, compiled);
  return compiled;
}

function compile(pattern: string): Expression {
  try {
    const expression = RE2JS.compile(pattern);
    return { verdict: "compiled", expression, test: (text) => expression.test(text) };
  } catch (error) {
    return { verdict: "refused", message: (error as RE2JSException).message };
  }
}

/** The matches of an expression in a text, in order. */
export function allMatches(expression: RE2JS, text: string, limit: number): readonly string[] {
  const found: string[] = [];
  const matcher = expression.matcher(text);
  while (found.length < limit && matcher.find()) found.push(matcher.group() ?? "");
  return found;
}
