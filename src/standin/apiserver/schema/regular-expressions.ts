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
/** Bound of the cache in instructions; schemas hold few expressions, CEL may build them from data. */
const cacheSize = 200_000;
let cached = 0;

/**
 * Most that one pattern of a definition, or those of one expression together, may compile to: many times what real ones
 * do, and some tenths of a second.
 */
export const largestProgram = 50_000;

/** Compiles an RE2 expression; the same text is compiled once, as long as the cache holds it. */
export function compileExpression(pattern: string): Expression {
  const before = known.get(pattern);
  if (before !== undefined) return before;
  const compiled = compileAlone(pattern);
  const size = compilationSize(pattern);
  if (size > cacheSize / 10) return compiled;
  if (cached + size > cacheSize) {
    known.clear();
    cached = 0;
  }
  known.set(pattern, compiled);
  cached += size;
  return compiled;
}

/** About how many instructions an expression becomes: `x{3}` becomes `xxx`. */
export function compiledSize(pattern: string): number {
  const tokens = /\\[pP]\{[^}]*\}|\\x\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d{1,4})(?:,(\d{0,4}))?\}|[^]/g;
  /** Of each open group: its size so far, and that of its last part. */
  const groups = [{ size: 0, last: 0 }];
  const add = (size: number) => {
    const group = groups.at(-1);
    if (group === undefined) return;
    group.size += size;
    group.last = size;
  };
  for (const [token, least, most = least] of pattern.matchAll(tokens)) {
    const group = groups.at(-1);
    if (token === "(") groups.push({ size: 0, last: 0 });
    else if (token === ")") {
      if (groups.length > 1) groups.pop();
      add((group?.size ?? 0) + 2);
    } else if (least !== undefined && group !== undefined)
      add(group.last * Math.max(Number(least), Number(most), 1) - group.last);
    else add(1);
  }
  return groups.reduce((sum, { size }) => sum + size, 0);
}

/** A class by a property of Unicode has thousands of ranges, which take as long to compile as so many instructions. */
const propertySize = 300;
/** The same of a range without case that reaches beyond ASCII: the cases of each of its characters are looked up. */
const foldedRangeSize = 3_000;

/** About how many instructions take as long to compile as a pattern. What stands in a class counts by its characters. */
export function compilationSize(pattern: string): number {
  const properties = Array.from(pattern.matchAll(/\\[^]/g)).filter(([escape]) => /[pP]/.test(escape)).length;
  const foldedRanges = /\(\?[A-Za-z]*i/.test(pattern) ? (pattern.match(/-(?:\\|[^\0-\x7f])/g)?.length ?? 0) : 0;
  return pattern.length + compiledSize(pattern) + properties * propertySize + foldedRanges * foldedRangeSize;
}

/** Compiles an RE2 expression that the caller keeps. */
export function compileAlone(pattern: string): Expression {
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
