/** Levels of nesting that Go takes. */
const mostLevels = 10_000;

const isSpace = (char: string) => char === " " || char === "\t" || char === "\r" || char === "\n";
const isDigit = (char: string) => char >= "0" && char <= "9";

/** A character in an error's text. Source: Go, encoding/json, quoteChar. */
function quoted(char: string): string {
  if (char === "'") return `'\\''`;
  if (char === '"') return `'"'`;
  const code = char.charCodeAt(0);
  const hex = code.toString(16).padStart(2, "0");
  if (code === 0x7f) return `'\\x7f'`;
  if ((code >= 0x80 && code <= 0xa0) || code === 0xad) return `'\\u00${hex}'`;
  return `'${JSON.stringify(char)
    .slice(1, -1)
    .replace(/^\\u00/, "\\x")}'`;
}

type Where = "key" | "value" | "element";
/** Takes the next character: the state for the one after it. */
type State = (char: string) => State;

/**
 * Why Go's encoding/json does not read a document as an object (`map[string]any`); `undefined`: it does. The texts are
 * those of its scanner (encoding/json scanner.go, go1.24), byte by byte.
 */
export function goObjectProblem(bytes: Uint8Array): string | undefined {
  const within: Where[] = [];
  let problem: string | undefined;
  let hasEnded = false;

  const stopped: State = () => stopped;
  const fail = (text: string): State => {
    problem ??= text;
    return stopped;
  };
  const unexpected = (char: string, where: string) => fail(`invalid character ${quoted(char)} ${where}`);
  const enter = (where: Where, next: State): State => {
    within.push(where);
    return within.length <= mostLevels ? next : fail("exceeded max depth");
  };
  const leave = (): State => {
    within.pop();
    if (within.length > 0) return afterValue;
    hasEnded = true;
    return afterAll;
  };

  const beginValue: State = (char) => {
    if (isSpace(char)) return beginValue;
    switch (char) {
      case "{":
        return enter("key", beginKeyOrEnd);
      case "[":
        return enter("element", beginElementOrEnd);
      case '"':
        return inString;
      case "-":
        return inMinus;
      case "0":
        return afterZero;
      case "t":
        return inWord("true", 1);
      case "f":
        return inWord("false", 1);
      case "n":
        return inWord("null", 1);
      default:
        return isDigit(char) ? inDigits : unexpected(char, "looking for beginning of value");
    }
  };
  const beginElementOrEnd: State = (char) => {
    if (isSpace(char)) return beginElementOrEnd;
    return char === "]" ? afterValue(char) : beginValue(char);
  };
  const beginKeyOrEnd: State = (char) => {
    if (isSpace(char)) return beginKeyOrEnd;
    if (char !== "}") return beginKey(char);
    within[within.length - 1] = "value";
    return afterValue(char);
  };
  const beginKey: State = (char) => {
    if (isSpace(char)) return beginKey;
    return char === '"' ? inString : unexpected(char, "looking for beginning of object key string");
  };
  const afterValue: State = (char) => {
    const where = within.at(-1);
    if (where === undefined) {
      hasEnded = true;
      return afterAll(char);
    }
    if (isSpace(char)) return afterValue;
    switch (where) {
      case "key":
        if (char !== ":") return unexpected(char, "after object key");
        within[within.length - 1] = "value";
        return beginValue;
      case "value":
        if (char === "}") return leave();
        if (char !== ",") return unexpected(char, "after object key:value pair");
        within[within.length - 1] = "key";
        return beginKey;
      case "element":
        if (char === "]") return leave();
        return char === "," ? beginValue : unexpected(char, "after array element");
    }
  };
  const afterAll: State = (char) => (isSpace(char) ? afterAll : unexpected(char, "after top-level value"));

  const inString: State = (char) => {
    if (char === '"') return afterValue;
    if (char === "\\") return inEscape;
    return char < " " ? unexpected(char, "in string literal") : inString;
  };
  const inEscape: State = (char) => {
    if (char === "u") return inHex(4);
    return 'bfnrt\\/"'.includes(char) ? inString : unexpected(char, "in string escape code");
  };
  const inHex =
    (left: number): State =>
    (char) => {
      if (!/[0-9a-fA-F]/.test(char)) return unexpected(char, "in \\u hexadecimal character escape");
      return left === 1 ? inString : inHex(left - 1);
    };
  const inWord =
    (word: string, at: number): State =>
    (char) => {
      if (char !== word[at]) return unexpected(char, `in literal ${word} (expecting ${quoted(word[at] ?? "")})`);
      return at === word.length - 1 ? afterValue : inWord(word, at + 1);
    };

  const inMinus: State = (char) => {
    if (char === "0") return afterZero;
    return isDigit(char) ? inDigits : unexpected(char, "in numeric literal");
  };
  const inDigits: State = (char) => (isDigit(char) ? inDigits : afterZero(char));
  const afterZero: State = (char) => {
    if (char === ".") return afterPoint;
    return char === "e" || char === "E" ? afterE : afterValue(char);
  };
  const afterPoint: State = (char) =>
    isDigit(char) ? inFraction : unexpected(char, "after decimal point in numeric literal");
  const inFraction: State = (char) => {
    if (isDigit(char)) return inFraction;
    return char === "e" || char === "E" ? afterE : afterValue(char);
  };
  const afterE: State = (char) => (char === "+" || char === "-" ? beginExponent : beginExponent(char));
  const beginExponent: State = (char) =>
    isDigit(char) ? inExponent : unexpected(char, "in exponent of numeric literal");
  const inExponent: State = (char) => (isDigit(char) ? inExponent : afterValue(char));

  let state = beginValue;
  for (const byte of bytes) {
    state = state(String.fromCharCode(byte));
    if (problem !== undefined) return problem;
  }
  if (!hasEnded) state(" ");
  if (problem !== undefined) return problem;
  return hasEnded ? problemOfType(bytes) : "unexpected end of JSON input";
}

/** Why valid JSON is no object. */
function problemOfType(bytes: Uint8Array): string | undefined {
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (value === null || (typeof value === "object" && !Array.isArray(value))) return undefined;
  const is = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
  return `json: cannot unmarshal ${is} into Go value of type map[string]interface {}`;
}
