/**
 * Schemas and CEL speak RE2; JavaScript's expressions differ in spelling and in what they can cost. An expression
 * that RE2 does not know (look-around, back references) is refused, the rest is translated.
 */
export type Expression =
  | { readonly verdict: "compiled"; readonly test: (text: string) => boolean; readonly source: RegExp }
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
  const foreign = /\(\?(?:=|!|<=|<!)|\\[1-9]|\\k</.exec(pattern.replaceAll("\\\\", ""));
  if (foreign !== null)
    return {
      verdict: "refused",
      message: `error parsing regexp: invalid or unsupported Perl syntax: \`${foreign[0]}\``,
    };
  const source = translate(pattern);
  // The strict form refuses braces that RE2 takes literally; the second try is the lenient one.
  for (const flags of ["u", ""]) {
    try {
      const expression = new RegExp(source, flags);
      return { verdict: "compiled", test: (text) => expression.test(text), source: expression };
    } catch {
      continue;
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

/** Characters that must keep their backslash under the `u` flag. */
const syntax = "^$\\.*+?()[]{}|/";

/** One pass over the expression: inside of brackets other rules hold than outside. */
function translate(pattern: string): string {
  let out = "";
  let inClass = false;
  /** For each open group, how many groups of flags end with it. */
  const closers = [0];
  for (let index = 0; index < pattern.length; index++) {
    const letter = pattern.charAt(index);
    const rest = pattern.slice(index);
    if (letter === "\\") {
      const escape = translateEscape(rest, inClass);
      out += escape.text;
      index += escape.length - 1;
    } else if (inClass) {
      const posix = /^\[:(\w+):\]/.exec(rest);
      if (posix !== null) {
        out += posixClasses[posix[1] ?? ""] ?? posix[0];
        index += posix[0].length - 1;
      } else if (letter === "]") {
        inClass = false;
        out += letter;
      } else out += letter === "[" ? "\\[" : letter;
    } else if (letter === "[") {
      inClass = true;
      // A bracket that closes nothing yet is a character of the class.
      const start = /^\[(\^?)(\]?)/.exec(rest);
      out += `[${start?.[1] ?? ""}${start?.[2] === "]" ? "\\]" : ""}`;
      index += (start?.[0].length ?? 1) - 1;
    } else if (letter === "(") {
      const flags = /^\(\?([imsU]+)\)/.exec(rest);
      const named = rest.startsWith("(?P<");
      if (flags !== null) {
        out += `(?${flags[1] ?? ""}:`;
        closers[closers.length - 1] = (closers.at(-1) ?? 0) + 1;
        index += flags[0].length - 1;
      } else {
        out += named ? "(?<" : "(";
        if (named) index += 3;
        closers.push(0);
      }
    } else if (letter === ")") out += ")".repeat((closers.pop() ?? 0) + 1);
    else out += letter;
  }
  return out + ")".repeat(closers[0] ?? 0);
}

function translateEscape(rest: string, inClass: boolean): { readonly text: string; readonly length: number } {
  const letter = rest.charAt(1);
  if (letter === "A" && !inClass) return { text: "^", length: 2 };
  if (letter === "z" && !inClass) return { text: "$", length: 2 };
  if (letter === "a") return { text: "\\x07", length: 2 };
  if (letter === "Q") {
    const quoted = /^\\Q(.*?)(?:\\E|$)/s.exec(rest);
    return { text: (quoted?.[1] ?? "").replaceAll(/[\^$\\.*+?()[\]{}|/-]/g, "\\$&"), length: quoted?.[0].length ?? 2 };
  }
  const property = /^\\([pP])([A-Z])(?!\{)/.exec(rest);
  if (property !== null) return { text: `\\${property[1] ?? ""}{${property[2] ?? ""}}`, length: 3 };
  const plain = !/[A-Za-z0-9]/.test(letter) && !syntax.includes(letter) && !(inClass && letter === "-");
  return { text: plain ? letter : `\\${letter}`, length: 2 };
}
