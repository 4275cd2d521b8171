import { isRecord } from "../../ignition/shape.ts";

/** The result of the emitter. */
export type EmittedYaml =
  | { readonly verdict: "emitted"; readonly text: string }
  | { readonly verdict: "refused"; readonly reason: string };

/**
 * Writes a JSON value as the YAML that rendered names are hashed from, byte for byte as JSON → gopkg.in/yaml.v2 2.4.0 →
 * YAML does it (ghodss/yaml, as vendored in openshift/machine-config-operator main). Changing one byte of this output
 * renames every rendered config of every cluster.
 *
 * Refuses texts that the YAML reader does not take: with DEL, C1 but U+0085, U+FFFE or U+FFFF, or with a document mark
 * at the start of what U+0085 makes a line.
 */
export function yamlForHash(value: unknown): EmittedYaml {
  const out = new Emitter();
  try {
    if (Array.isArray(value) && value.length > 0) out.sequence(value, 0, false);
    else if (isRecord(value) && Object.keys(value).length > 0) out.mapping(value, 0, false);
    else out.inline(value, 0);
  } catch (error) {
    if (error instanceof UnreadableText) return { verdict: "refused", reason: error.message };
    throw error;
  }
  return { verdict: "emitted", text: out.finish() };
}

class UnreadableText extends Error {}

/** Lines may grow this long before a long text is folded at its next space. */
const bestWidth = 80;

// The patterns below match control characters on purpose.
/* oxlint-disable no-control-regex */
const refusedByReader = /[\u007f-\u0084\u0086-\u009f\ufffe\uffff]/;
/**
 * Not printable to the emitter: it forces double quotes. Characters beyond U+FFFF count, by an oversight of the
 * library.
 */
const special = /[^\n\u0020-\u007e\u00a0-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
const lineBreak = /[\n\r\u0085\u2028\u2029]/;
/** Texts that need no further check: plain, and too short to fold or without a place to fold. */
const surelyPlain =
  /^[A-Za-z/$][A-Za-z0-9/$_.,=+%;@()*!&'"?<>|~^[\]{}\\-]*(?::[A-Za-z0-9/$_.,=+%;@()*!&'"?<>|~^[\]{}\\-]+)*$/;
const wordsWithMeaning = new Set(
  [
    "y Y yes Yes YES n N no No NO true True TRUE false False FALSE on On ON off Off OFF ~ null Null NULL",
    ".nan .NaN .NAN .inf .Inf .INF +.inf +.Inf +.INF -.inf -.Inf -.INF",
  ]
    .join(" ")
    .split(" "),
);
/* oxlint-enable no-control-regex */

/** After a line break, the reader takes this for the end of the document. */
const documentMark = /\u0085(?:---|\.\.\.)[ \u0085]/;
/** With a break or without: a pattern that asks for one would search a long run of blanks again from each of them. */
const blankRun = /[ \u0085]+/g;

/** A JSON string as the YAML reader understands it: U+0085 is a line break there and is folded. */
function folded(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed();
  if (refusedByReader.test(wellFormed))
    throw new UnreadableText("a text has control characters that cannot be hashed (DEL, C1, U+FFFE or U+FFFF)");
  if (!wellFormed.includes("\u0085")) return wellFormed;
  if (documentMark.test(wellFormed))
    throw new UnreadableText("a text has U+0085 followed by --- or ..., which cannot be hashed");
  return wellFormed.replace(blankRun, (run) => {
    const breaks = run.replaceAll(" ", "").length;
    if (breaks === 0) return run;
    return breaks === 1 ? " " : "\n".repeat(breaks - 1);
  });
}

class Emitter {
  readonly #parts: string[] = [];
  /** Characters since the line began. */
  #column = 0;

  finish(): string {
    if (this.#column > 0) this.#parts.push("\n");
    return this.#parts.join("");
  }

  #put(text: string): void {
    this.#parts.push(text);
    this.#column += text.length;
  }

  #newLine(indent: number): void {
    if (this.#column > 0) this.#parts.push("\n");
    this.#parts.push(" ".repeat(indent));
    this.#column = indent;
  }

  mapping(value: Readonly<Record<string, unknown>>, indent: number, onLine: boolean): void {
    let fresh = onLine;
    // The library's order goes in a circle for some keys (10 < 1A < 2~ < 10, with ~ for a space): where they begin must
    // not depend on the object.
    for (const key of Object.keys(value).toSorted().toSorted(compareYamlKeys)) {
      if (!fresh) this.#newLine(indent);
      fresh = false;
      this.#text(folded(key), indent, true);
      this.#put(":");
      const field = value[key];
      if (Array.isArray(field) && field.length > 0) this.sequence(field, indent, false);
      else if (isRecord(field) && Object.keys(field).length > 0) this.mapping(field, indent + 2, false);
      else {
        this.#put(" ");
        this.inline(field, indent);
      }
    }
  }

  sequence(value: readonly unknown[], indent: number, onLine: boolean): void {
    let fresh = onLine;
    for (const item of value) {
      if (!fresh) this.#newLine(indent);
      fresh = false;
      this.#put("- ");
      if (Array.isArray(item) && item.length > 0) this.sequence(item, indent + 2, true);
      else if (isRecord(item) && Object.keys(item).length > 0) this.mapping(item, indent + 2, true);
      else this.inline(item, indent);
    }
  }

  /** A scalar or something empty, at the end of a line. */
  inline(value: unknown, indent: number): void {
    if (typeof value === "string") this.#text(folded(value), indent, false);
    else if (Array.isArray(value)) this.#put("[]");
    else if (value === null || value === undefined) this.#put("null");
    else if (typeof value === "object") this.#put("{}");
    else this.#put(String(value as number | boolean));
  }

  #text(text: string, indent: number, isKey: boolean): void {
    if (surelyPlain.test(text) && !wordsWithMeaning.has(text)) return this.#put(text);
    const form = formOf(text);
    const multiline = lineBreak.test(text);
    let style: "plain" | "single" | "double" | "literal" = text.includes("\n")
      ? "literal"
      : hasMeaning(text)
        ? "double"
        : "plain";
    if (isKey && multiline) style = "double";
    if (style === "plain" && !form.plain) style = "single";
    if (style === "single" && !form.single) style = "double";
    if (style === "literal" && (!form.literal || isKey)) style = "double";
    switch (style) {
      case "plain":
        return this.#foldable(text, indent + 2, isKey, "plain");
      case "single":
        this.#put("'");
        this.#foldable(text, indent + 2, isKey, "single");
        return this.#put("'");
      case "double":
        this.#put('"');
        this.#doubleQuoted(text, indent + 2, isKey);
        return this.#put('"');
      case "literal":
        return this.#literal(text, indent + 2);
    }
  }

  /** Plain and single-quoted texts: folded at single spaces once the line is long. */
  #foldable(text: string, indent: number, isKey: boolean, style: "plain" | "single"): void {
    const canFold = !isKey && this.#column + text.length > bestWidth && text.includes(" ");
    if (!canFold && (style === "plain" || (!text.includes("'") && !lineBreak.test(text)))) return this.#put(text);
    let afterSpace = false;
    let afterBreak = false;
    const chars = Array.from(text);
    for (const [i, char] of chars.entries()) {
      if (char === " ") {
        const inner = style === "plain" || (i > 0 && i < chars.length - 1);
        if (!isKey && !afterSpace && this.#column > bestWidth && inner && chars[i + 1] !== " ") this.#newLine(indent);
        else this.#put(char);
        afterSpace = true;
      } else if (lineBreak.test(char)) {
        // Only breaks other than LF get here: they are written unchanged, and the next line is indented.
        this.#parts.push(char);
        this.#column = 0;
        afterBreak = true;
      } else {
        if (afterBreak) this.#newLine(indent);
        if (char === "'" && style === "single") this.#put("'");
        this.#put(char);
        afterSpace = false;
        afterBreak = false;
      }
    }
  }

  #doubleQuoted(text: string, indent: number, isKey: boolean): void {
    let afterSpace = false;
    const chars = Array.from(text);
    // The library looks for a byte order mark at the start of the text only, for every character.
    const escapeAll = text.startsWith("\ufeff");
    for (const [i, char] of chars.entries()) {
      if (escapeAll || special.test(char) || lineBreak.test(char) || char === '"' || char === "\\") {
        this.#put(escaped(char));
        afterSpace = false;
      } else if (char === " ") {
        if (!isKey && !afterSpace && this.#column > bestWidth && i > 0 && i < chars.length - 1) {
          this.#newLine(indent);
          if (chars[i + 1] === " ") this.#put("\\");
        } else this.#put(" ");
        afterSpace = true;
      } else {
        this.#put(char);
        afterSpace = false;
      }
    }
  }

  #literal(text: string, indent: number): void {
    const chars = Array.from(text);
    const isBreak = (char: string | undefined) => char !== undefined && lineBreak.test(char);
    const startsBlank = chars[0] === " " || isBreak(chars[0]);
    const end = !isBreak(chars.at(-1)) ? "-" : chars.length === 1 || isBreak(chars.at(-2)) ? "+" : "";
    this.#parts.push(`|${startsBlank ? "2" : ""}${end}\n`);
    this.#column = 0;
    let afterBreak = true;
    const padding = " ".repeat(indent);
    for (const char of chars) {
      if (isBreak(char)) {
        this.#parts.push(char);
        this.#column = 0;
        afterBreak = true;
        continue;
      }
      if (afterBreak) this.#put(padding);
      afterBreak = false;
      this.#put(char);
    }
  }
}

/** The styles that a text allows. */
function formOf(text: string): { readonly plain: boolean; readonly single: boolean; readonly literal: boolean } {
  if (text === "") return { plain: true, single: true, literal: false };
  const isSpecial = special.test(text);
  const breaks = lineBreak.test(text);
  const spaceAfterBreak = breaks && /[\n\r\u0085\u2028\u2029] /.test(text);
  const spaceBeforeBreak = breaks && / [\n\r\u0085\u2028\u2029]/.test(text);
  const indicators =
    /^(?:---|\.\.\.|[#,[\]{}&*!|>'"%@`]|[?:-](?:[ \t]|$))/.test(text) ||
    /.:(?:[ \t]|$)/s.test(text) ||
    /[ \t\n\r\u0085\u2028\u2029\0]#/.test(text);
  const edges = /^[ \n\r\u0085\u2028\u2029]|[ \n\r\u0085\u2028\u2029]$/.test(text);
  const unfit = isSpecial || spaceBeforeBreak;
  return {
    plain: !indicators && !edges && !breaks && !spaceAfterBreak && !unfit,
    single: !spaceAfterBreak && !unfit,
    literal: !text.endsWith(" ") && !unfit,
  };
}

const base60 = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;
const yamlFloat = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/;

/** Whether the unquoted text would be read as something else than this text. */
function hasMeaning(text: string): boolean {
  if (text === "" || wordsWithMeaning.has(text)) return true;
  const first = text[0] ?? "";
  if (first === ".") return isGoFloat(text);
  if (!/[-+0-9]/.test(first)) return false;
  const digits = text.replaceAll("_", "");
  return (
    base60.test(text) ||
    isTimestamp(text) ||
    isGoInteger(digits) ||
    (yamlFloat.test(digits) && Number.isFinite(Number(digits)))
  );
}

/** A text that starts with a dot, as Go's ParseFloat takes it: underscores only between digits. */
const isGoFloat = (text: string): boolean =>
  /^\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?$/.test(text) && Number.isFinite(Number(text.replaceAll("_", "")));

const digitsOf: Readonly<Record<string, RegExp>> = { x: /^[0-9a-f]+$/i, o: /^[0-7]+$/, b: /^[01]+$/ };

/** An integer in Go's notation that fits 64 bits; also `0b…` after a minus, which the library reads itself. */
function isGoInteger(text: string): boolean {
  const sign = /^[-+]/.exec(text)?.[0] ?? "";
  const body = text.slice(sign.length);
  let magnitude: bigint;
  const prefixed = /^0([xob])(.+)$/i.exec(body);
  if (prefixed !== null) {
    const [, base = "", digits = ""] = prefixed;
    if (digitsOf[base.toLowerCase()]?.test(digits) !== true) return false;
    magnitude = magnitudeOf(digits, `0${base.toLowerCase()}`);
  } else if (/^0[0-7]+$/.test(body)) magnitude = magnitudeOf(body, "0o");
  else if (/^(0|[1-9][0-9]*)$/.test(body)) magnitude = magnitudeOf(body, "");
  else return false;
  const limit = 2n ** 63n;
  return sign === "-" ? magnitude <= limit : sign === "+" ? magnitude < limit : magnitude < 2n ** 64n;
}

/** Too large for 64 bits is all that counts of a longer one, so long texts cost nothing. */
function magnitudeOf(digits: string, prefix: string): bigint {
  const significant = digits.replace(/^0+(?=.)/, "");
  return significant.length > 64 ? 2n ** 65n : BigInt(prefix + significant);
}

function isTimestamp(text: string): boolean {
  const match =
    /^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:([Tt ])([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?)?$/.exec(
      text,
    );
  if (match === null) return false;
  const [, year, month, day, separator, hour, minute, second, zone] = match;
  if ((separator === " ") !== (separator !== undefined && zone === undefined)) return false;
  const [y, m, d] = [Number(year), Number(month), Number(day)];
  const leap = (y % 4 === 0 && y % 100 !== 0) || y % 400 === 0;
  const length = m === 2 ? (leap ? 29 : 28) : [4, 6, 9, 11].includes(m) ? 30 : 31;
  if (m < 1 || m > 12 || d < 1 || d > length) return false;
  if (separator === undefined) return true;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return false;
  return zone === undefined || zone === "Z" || (Number(zone.slice(1, 3)) <= 24 && Number(zone.slice(4)) <= 60);
}

const shortEscapes: Readonly<Record<string, string>> = {
  "\0": "0",
  "\x07": "a",
  "\b": "b",
  "\t": "t",
  "\n": "n",
  "\v": "v",
  "\f": "f",
  "\r": "r",
  "\x1b": "e",
  '"': '"',
  "\\": "\\",
  "\u0085": "N",
  "\u00a0": "_",
  "\u2028": "L",
  "\u2029": "P",
};

function escaped(char: string): string {
  const short = shortEscapes[char];
  if (short !== undefined) return `\\${short}`;
  const point = char.codePointAt(0) ?? 0;
  const hex = (width: number) => point.toString(16).toUpperCase().padStart(width, "0");
  return point <= 0xff ? `\\x${hex(2)}` : point <= 0xffff ? `\\u${hex(4)}` : `\\U${hex(8)}`;
}

const isLetter = (char: string): boolean => /\p{L}/u.test(char);
const isDigit = (char: string | undefined): boolean => char !== undefined && /\p{Nd}/u.test(char);
/** Keys of configs are of this kind, where the order is the plain one. */
const simpleKey = /^[A-Za-z]+$/;

/** The library's order of keys: by character, letters after others, runs of digits by their number. */
export function compareYamlKeys(left: string, right: string): number {
  if (simpleKey.test(left) && simpleKey.test(right)) return left < right ? -1 : left > right ? 1 : 0;
  const a = Array.from(left);
  const b = Array.from(right);
  for (let i = 0; i < a.length && i < b.length; i++) {
    const [x = "", y = ""] = [a[i], b[i]];
    if (x === y) continue;
    if (isLetter(x) && isLetter(y)) return (x.codePointAt(0) ?? 0) - (y.codePointAt(0) ?? 0);
    if (isLetter(x) || isLetter(y)) return isLetter(y) ? -1 : 1;
    let lead = 0;
    if (x === "0" || y === "0") for (let j = i - 1; j >= 0 && isDigit(a[j]); j--) if (a[j] !== "0") lead = 1;
    const number = (chars: readonly string[]): readonly [number, number] => {
      let value = lead;
      let k = i;
      for (; isDigit(chars[k]); k++) value = value * 10 + ((chars[k]?.codePointAt(0) ?? 48) - 48);
      return [value, k];
    };
    const [aValue, aEnd] = number(a);
    const [bValue, bEnd] = number(b);
    if (aValue !== bValue) return aValue - bValue;
    if (aEnd !== bEnd) return aEnd - bEnd;
    return (x.codePointAt(0) ?? 0) - (y.codePointAt(0) ?? 0);
  }
  return a.length - b.length;
}
