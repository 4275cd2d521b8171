/** One instruction of a Containerfile, continued lines joined. */
export interface Instruction {
  /** In upper case. */
  readonly name: string;
  readonly arguments: string;
  /** Line that it begins on, from 1. */
  readonly line: number;
  /** Here-documents that follow it. */
  readonly heredocs: number;
}

export type InstructionReading =
  | { readonly verdict: "read"; readonly instructions: readonly Instruction[] }
  /** Builders do not agree on which lines are instructions. */
  | { readonly verdict: "refused"; readonly instruction: Instruction; readonly problem: string };

const takesHeredocs: ReadonlySet<string> = new Set(["RUN", "COPY", "ADD"]);
const isIgnored = (line: string) => line.trim() === "" || line.trimStart().startsWith("#");
const continued = /\\[ \t]*$/;
/** The first is a blank for Go alone, the second for JavaScript alone. */
const disputedBlanks = /[\u0085\ufeff]/;

/**
 * Reads a Containerfile as builders do: lines, continued lines, here-documents. Versions of builders differ in some of
 * it; a text that one of them could read otherwise is refused, since what is judged has to be what is built. Sources:
 * openshift/imagebuilder dockerfile/parser/parser.go (before and after here-documents, which buildah has since 1.33),
 * moby/buildkit frontend/dockerfile/parser/parser.go and shell/lex.go (master).
 */
export function readInstructions(text: string): InstructionReading {
  const lines = text.split("\n");
  const instructions: Instruction[] = [];
  for (let index = 0; index < lines.length; index += 1) {
    if (isIgnored(lines[index] ?? "")) continue;
    const line = index + 1;
    const parts: string[] = [];
    for (; index < lines.length; index += 1) {
      const part = lines[index] ?? "";
      // Comments and empty lines between continued lines do not count.
      if (parts.length > 0 && isIgnored(part)) continue;
      parts.push(part);
      if (!continued.test(part)) break;
    }
    const whole = parts
      .map((part) => part.replace(continued, ""))
      .join("")
      .trim();
    const [, name = "", rest = ""] = /^(\S+)\s*([\s\S]*)$/.exec(whole) ?? [];
    const read = { name: name.toUpperCase(), arguments: rest.trim(), line };
    const refused = (problem: string): InstructionReading => ({
      verdict: "refused",
      instruction: { ...read, heredocs: 0 },
      problem,
    });
    if (parts.some((part) => disputedBlanks.test(part)))
      return refused("it holds U+0085 or U+FEFF, which some builders take for a blank");
    if (parts.some((part) => /\\\\[ \t]*$/.test(part)))
      return refused("a line ends with two backslashes: some builders continue it, and some do not");
    const found = heredocsOf(read);
    if (found.verdict === "unclear") return refused(found.problem);
    for (const { word, stripsTabs } of found.heredocs) {
      do index += 1;
      while (index < lines.length && (stripsTabs ? lines[index]?.replace(/^\t+/, "") : lines[index]) !== word);
      if (index >= lines.length) return refused(`the here-document ${word} does not end: a line ${word} is missing`);
    }
    instructions.push({ ...read, heredocs: found.heredocs.length });
  }
  return { verdict: "read", instructions };
}

/** The instruction that an `ONBUILD` holds, and every other one itself. */
export function innerInstruction<T extends Pick<Instruction, "name" | "arguments">>(instruction: T): T {
  if (instruction.name !== "ONBUILD") return instruction;
  // From word to word, without a copy of what follows for each.
  const word = /(\S*)\s*/y;
  const nextWord = () => word.exec(instruction.arguments)?.[1]?.toUpperCase() ?? "";
  let name = nextWord();
  while (name === "ONBUILD") name = nextWord();
  return { ...instruction, name, arguments: instruction.arguments.slice(word.lastIndex) };
}

interface Heredoc {
  /** The line that ends it. */
  readonly word: string;
  /** `<<-`: tabs before that line do not count. */
  readonly stripsTabs: boolean;
}

type HeredocReading =
  | { readonly verdict: "clear"; readonly heredocs: readonly Heredoc[] }
  | { readonly verdict: "unclear"; readonly problem: string };

const none: HeredocReading = { verdict: "clear", heredocs: [] };

/** Words that every builder takes for the beginning of a here-document. */
const heredocWord = /^\d*<<(-?)(?:([\w.]+)|'([\w.]+)'|"([\w.]+)")$/;
/** Words that some builder takes for one, or for one together with what follows: some drop the blanks behind `<<`. */
const perhapsHeredoc = /^\d*<<(?!<)|(?<!<)(?:<<)+$|\\<{2,}$/;

/** Of the words of an instruction those that begin a here-document: `<<WORD` by itself, which is not in quotes. */
function heredocsOf(instruction: Pick<Instruction, "name" | "arguments">): HeredocReading {
  const { name, arguments: rest } = innerInstruction(instruction);
  if (!takesHeredocs.has(name) || !rest.includes("<<")) return none;
  const afterOptions = optionsOf(rest)?.rest.trim();
  if (afterOptions !== undefined && isListOfWords(afterOptions)) return none;
  const words = afterOptions?.startsWith("[") === true ? undefined : shellWords(rest);
  if (words === undefined)
    return {
      verdict: "unclear",
      problem:
        "whether << in it begins a here-document depends on a quote, on ${…} or on [, which builders read differently",
    };
  const heredocs: Heredoc[] = [];
  for (const word of words) {
    if (!perhapsHeredoc.test(word)) continue;
    const [, tabs, plain, single, double] = heredocWord.exec(word) ?? [];
    const ends = plain ?? single ?? double;
    if (ends === undefined)
      return {
        verdict: "unclear",
        problem: `some builders take ${word} for a here-document: write <<WORD for one, with blanks around it, and put << that is none in quotes`,
      };
    heredocs.push({ word: ends, stripsTabs: tabs === "-" });
  }
  return { verdict: "clear", heredocs };
}

/** JSON, in which nothing is a here-document. */
function isListOfWords(text: string): boolean {
  if (!text.startsWith("[")) return false;
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.every((word) => typeof word === "string");
  } catch {
    return false;
  }
}

/** Variables that every version of the builders' shell words reads alike. */
const plainVariable = /\$\{[A-Za-z_]\w*(?::[-+][^\s<>"'\\${}]*)?\}/y;

/** Words of a shell with their quotes; `undefined`: builders differ in what the words are. */
function shellWords(text: string): readonly string[] | undefined {
  const words: string[] = [];
  let word = "";
  let quote: string | undefined;
  for (let at = 0; at < text.length;) {
    const char = text[at] ?? "";
    let taken = char;
    if (char === "\\" && quote !== "'") taken = text.slice(at, at + 2);
    else if (text.startsWith("${", at) && quote !== "'") {
      plainVariable.lastIndex = at;
      const [variable] = plainVariable.exec(text) ?? [];
      if (variable === undefined) return undefined;
      taken = variable;
    } else if (char === quote) quote = undefined;
    else if (quote === undefined && (char === '"' || char === "'")) quote = char;
    if (quote === undefined && /^\s$/.test(taken)) {
      if (word !== "") words.push(word);
      word = "";
    } else word += taken;
    at += taken.length;
  }
  if (quote !== undefined) return undefined;
  return word === "" ? words : [...words, word];
}

export interface Options {
  /** `--name=value`, without their quotes. */
  readonly options: readonly string[];
  readonly rest: string;
}

const isBlank = (char: string | undefined) => char !== undefined && /[\t\n\v\f\r ]/.test(char);

/** The options before the arguments of an instruction; `undefined`: builders read them differently. */
export function optionsOf(text: string): Options | undefined {
  const options: string[] = [];
  let at = 0;
  for (;;) {
    while (isBlank(text[at])) at += 1;
    if (!text.startsWith("--", at)) return { options, rest: text.slice(at) };
    let option = "";
    let quote: string | undefined;
    for (; at < text.length && (quote !== undefined || !isBlank(text[at])); at += 1) {
      const char = text[at] ?? "";
      // Builders look at the bytes of an option, one of which may be a blank.
      if (char > "~") return undefined;
      if (char === "\\") option += text[(at += 1)] ?? "";
      else if (char === quote) quote = undefined;
      else if (quote === undefined && (char === '"' || char === "'")) quote = char;
      else option += char;
    }
    if (quote !== undefined) return undefined;
    if (option === "--") return { options, rest: text.slice(at) };
    options.push(option);
  }
}
