/**
 * Schemas and CEL speak RE2; JavaScript's expressions differ in spelling and in what they can cost. An expression
 * that RE2 does not know (look-around, back references) is refused, the rest is translated.
 */
export type Expression = { readonly verdict: "compiled"; readonly test: (text: string) => boolean; readonly source: RegExp } | { readonly verdict: "refused"; readonly message: string };

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
  const flags = new Set(["u"]);
  let source = pattern;
  const leading = /^\(\?([imsU]+)\)/.exec(source);
  if (leading !== null) {
    source = source.slice(leading[0].length);
    for (const flag of leading[1] ?? "") {
      if (flag === "U") return { verdict: "refused", message: `error parsing regexp: invalid or unsupported Perl syntax: \`(?U\`` };
      flags.add(flag);
    }
  }
  const foreign = /\(\?(?:=|!|<=|<!)|\\[1-9]|\\k</.exec(source.replaceAll(/\\\\/g, ""));
  if (foreign !== null) return { verdict: "refused", message: `error parsing regexp: invalid or unsupported Perl syntax: \`${foreign[0]}\`` };
  source = translate(source);
  for (const withFlags of [[...flags].join(""), [...flags].filter((flag) => flag !== "u").join("")]) {
    try {
      const expression = new RegExp(source, withFlags);
      return { verdict: "compiled", test: (text) => expression.test(text), source: expression };
    } catch {
      // The strict form refuses escapes that RE2 allows (`\-`); the second try is the lenient one.
    }
  }
  return { verdict: "refused", message: `error parsing regexp: \`${pattern}\`` };
}

const posixClasses: Readonly<Record<string, string>> = {
  alnum: "0-9A-Za-z",
  alpha: "A-Za-z",
  ascii: "\\x00-\\x7F",
  blank: "\\t ",
  cntrl: "\\x00-\\x1F\\x7F",
  digit: "0-9",
  graph: "!-~",
  lower: "a-z",
  print: " -~",
  punct: "!-\\/:-@\\[-`{-~",
  space: "\\t\\n\\v\\f\\r ",
  upper: "A-Z",
  word: "0-9A-Za-z_",
  xdigit: "0-9A-Fa-f",
};

function translate(source: string): string {
  return source
    .replaceAll(/\[:(\w+):\]/g, (whole: string, name: string) => posixClasses[name] ?? whole)
    .replaceAll(/\(\?P</g, "(?<")
    .replaceAll(/\\(.)/gs, (whole: string, escaped: string) => {
      if (escaped === "A") return "^";
      if (escaped === "z") return "$";
      // Escapes of plain punctuation are fine in RE2 and refused by the `u` flag.
      if (/[!"#%&',:;<=>@`~ _]/.test(escaped)) return escaped;
      return whole;
    });
}
