import fc from "fast-check";

/**
 * Freely written Containerfiles, and how builders read them, as plainly as their sources say: openshift/imagebuilder
 * dockerfile/parser/parser.go (without here-documents, as before buildah 1.33, and with them), moby/buildkit
 * frontend/dockerfile/parser/parser.go and shell/lex.go (master).
 */

const pieces = [
  ..."<>'\"\\$#[]{}();,-=1N ".split(""),
  "<<",
  "<<-",
  "<<<",
  " <<EOF",
  " <<'EOF'",
  ' <<-"N"',
  " 3<<N",
  "EOF",
  "$((1<<N))",
  "${A}",
  "${A:-b}",
  "${A@}",
  "${A:- <<N}",
  "\t",
  " --from=x",
  '["a", "<<EOF"]',
  "\\\n",
  "\\\\",
  "\u0085",
  "\u00a0",
  "à",
];
const beginnings = ["RUN ", "RUN ", "COPY ", "ADD ", "LABEL a=", "ONBUILD RUN ", "FROM ", "run ", "\tRUN ", "# ", ""];
const bodies = [
  "EOF",
  "N",
  "\tEOF",
  " EOF",
  "\tN",
  "FROM x",
  "RUN true",
  "# no",
  "",
  "RUN cat <<EOF\nFROM x\nEOF",
  "COPY <<-'N' /x\n\tRUN\n\tN",
  'RUN echo "${A:-b}" <<EOF 3<<"N"\nEOF\nEOF\nN',
];

const anyLine = fc
  .tuple(fc.constantFrom(...beginnings), fc.array(fc.constantFrom(...pieces), { maxLength: 6 }))
  .map(([beginning, rest]) => `${beginning}${rest.join("")}`);

export const anyContainerfile = fc
  .array(fc.oneof(anyLine, fc.constantFrom(...bodies)), { minLength: 1, maxLength: 8 })
  .map((lines) => ["FROM configs", ...lines].join("\n"));

interface Rules {
  /** `cat << EOF` has blanks between. */
  readonly blanksInHeredocs: boolean;
  /** Modifiers of variables without a colon. */
  readonly moreModifiers: boolean;
}

class Broken extends Error {}

const isSpace = (char: string) => /^[\s\u0085]$/.test(char) && char !== "\ufeff";

/** Words of a shell as BuildKit's lexer has them. @throws Broken */
function lex(text: string, { blanksInHeredocs, moreModifiers }: Rules, isRaw: boolean): readonly string[] {
  const chars = Array.from(text);
  let at = 0;
  const peek = () => chars[at];
  const next = () => chars[at++];
  const nameAt = () => {
    if (/^\d$/.test(peek() ?? "")) {
      let digits = "";
      while (/^\d$/.test(peek() ?? "")) digits += next();
      return digits;
    }
    if (peek() !== undefined && "@*#?-$!0".includes(peek() ?? "")) return next() ?? "";
    let name = "";
    while (/^[\p{L}\p{Nd}_]$/u.test(peek() ?? "")) name += next();
    return name;
  };
  const quoted = (): string => {
    const quote = next() ?? "";
    let inside = isRaw ? quote : "";
    for (;;) {
      const char = peek();
      if (char === undefined) throw new Broken();
      if (char === quote) {
        next();
        return isRaw ? inside + quote : inside;
      }
      if (quote === "'") inside += next();
      else if (char === "$") inside += dollar();
      else if (char === "\\") {
        next();
        if (isRaw) inside += "\\";
        const escaped = peek();
        if (escaped === undefined) continue;
        inside += escaped === '"' || escaped === "$" || escaped === "\\" ? next() : "\\";
      } else inside += next();
    }
  };
  const dollar = (): string => {
    next();
    if (peek() !== "{") return `$${nameAt()}`;
    next();
    if (peek() === undefined || "{}:".includes(peek() ?? "")) throw new Broken();
    const name = nameAt();
    let modifier = next();
    if (modifier === "}") return `\${${name}}`;
    const hasColon = modifier === ":";
    if (hasColon) modifier = next();
    if (modifier === undefined || !(hasColon ? "+-?#%" : moreModifiers ? "+-?#%" : "").includes(modifier))
      throw new Broken();
    if (modifier === "?" && !moreModifiers) throw new Broken();
    return `\${${name}${hasColon ? ":" : ""}${modifier}${until("}").text}}`;
  };
  function until(stop: string | undefined): { readonly text: string; readonly words: readonly string[] } {
    const words: string[] = [];
    let [whole, word, inWord] = ["", "", false];
    const addChar = (char: string) => {
      if (!isSpace(char)) [word, inWord] = [word + char, true];
      else if (inWord && word !== "") {
        words.push(word);
        [word, inWord] = ["", false];
      }
    };
    for (;;) {
      const char = peek();
      if (char === undefined) {
        if (stop !== undefined) throw new Broken();
        break;
      }
      if (char === stop) {
        next();
        break;
      }
      if (char === "$") {
        const found = dollar();
        whole += found;
        for (const each of found) addChar(each);
      } else if (char === "'" || char === '"') {
        const found = quoted();
        [whole, word, inWord] = [whole + found, word + found, true];
      } else if (char === "<" && blanksInHeredocs) {
        next();
        let found = "<";
        if (peek() === "<") {
          found += next();
          while (/^[ \t\v\f\r]$/.test(peek() ?? "")) found += next();
        }
        [whole, word, inWord] = [whole + found, word + found, true];
      } else if (char === "\\") {
        next();
        const escaped = next();
        const found = `${isRaw ? "\\" : ""}${escaped ?? ""}`;
        [whole, word, inWord] = [whole + found, word + found, true];
      } else {
        next();
        whole += char;
        addChar(char);
      }
    }
    return { text: whole, words: word === "" ? words : [...words, word] };
  }
  return until(undefined).words;
}

/** Words that end here-documents of an instruction, in their order. @throws Broken */
function heredocs(line: string, rules: Rules): readonly { readonly word: string; readonly stripsTabs: boolean }[] {
  let words: readonly string[];
  try {
    words = lex(line, rules, true);
  } catch {
    return [];
  }
  const pattern = rules.blanksInHeredocs ? /^\d*<<(-?)\s*([^<]*)$/ : /^\d*<<(-?)([^<]*)$/;
  return words.flatMap((each) => {
    const [, tabs, rest = ""] = pattern.exec(each) ?? [];
    if (rest === "") return [];
    const [word, ...more] = lex(rest, rules, false);
    return word === undefined || more.length > 0 ? [] : [{ word, stripsTabs: tabs === "-" }];
  });
}

/** Whether what follows an instruction's options is JSON, with whatever behind it. */
function isJson(rest: string): boolean {
  for (let end = rest.length; rest.startsWith("[") && end > 0; end = rest.lastIndexOf("]", end - 1))
    try {
      const list: unknown = JSON.parse(rest.slice(0, end + 1));
      return Array.isArray(list) && list.every((word) => typeof word === "string");
    } catch {
      if (!rest.includes("]")) return false;
    }
  return false;
}

const afterOptions = (rest: string) => rest.replace(/^(?:--\S+\s+)*/, "");

/** @returns the instructions; `undefined`: the builder fails. */
function read(
  text: string,
  how: { readonly rules: Rules | undefined; readonly endsWithTwo: boolean },
): readonly string[] | undefined {
  const lines = text.split("\n");
  const continued = how.endsWithTwo ? /\\[ \t]*$/ : /(?<=[^\\])\\[ \t]*$|^\\[ \t]*$/;
  const trimmedLeft = (line: string) => line.replace(/^[\s\u0085]+/, "");
  const isComment = (line: string) => trimmedLeft(line).startsWith("#");
  const found: string[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    let physical = trimmedLeft(lines[at] ?? "");
    if (physical === "" || physical.startsWith("#")) continue;
    let line = physical.replace(continued, "");
    while (continued.test(physical) && at + 1 < lines.length) {
      physical = lines[(at += 1)] ?? "";
      if (isComment(physical) || trimmedLeft(physical) === "") physical = "\\";
      line += physical.replace(continued, "");
    }
    const [, name = "", rest = ""] = /^(\S+)\s*([\s\S]*)$/.exec(line.trim()) ?? [];
    found.push(`${name.toUpperCase()} ${rest.trim()}`);
    const inner = /^ONBUILD\s+(\S+)\s*([\s\S]*)$/i.exec(line.trim());
    const [command, inside] = inner === null ? [name, rest] : [inner[1] ?? "", inner[2] ?? ""];
    if (how.rules === undefined || !["RUN", "COPY", "ADD"].includes(command.toUpperCase())) continue;
    if (isJson(afterOptions(inside.trim()))) continue;
    try {
      for (const { word, stripsTabs } of heredocs(line, how.rules)) {
        do at += 1;
        while (at < lines.length && (stripsTabs ? lines[at]?.replace(/^\t+/, "") : lines[at]) !== word);
        if (at >= lines.length) return undefined;
      }
    } catch {
      return undefined;
    }
  }
  return found;
}

export const readers: readonly {
  readonly title: string;
  readonly readsHeredocs: boolean;
  readonly read: (text: string) => readonly string[] | undefined;
}[] = [
  {
    title: "imagebuilder before here-documents",
    readsHeredocs: false,
    read: (text) => read(text, { rules: undefined, endsWithTwo: true }),
  },
  {
    title: "imagebuilder",
    readsHeredocs: true,
    read: (text) => read(text, { rules: { blanksInHeredocs: false, moreModifiers: false }, endsWithTwo: true }),
  },
  {
    title: "imagebuilder with a newer lexer",
    readsHeredocs: true,
    read: (text) => read(text, { rules: { blanksInHeredocs: true, moreModifiers: true }, endsWithTwo: true }),
  },
  {
    title: "BuildKit",
    readsHeredocs: true,
    read: (text) => read(text, { rules: { blanksInHeredocs: true, moreModifiers: true }, endsWithTwo: false }),
  },
];
