/** What `systemctl enable` reads of a unit: its [Install] section (systemd.unit(5)). */
export interface InstallSection {
  readonly wantedBy: readonly string[];
  readonly requiredBy: readonly string[];
  readonly alias: readonly string[];
  /** As written, with specifiers; an empty assignment does not clear it. */
  readonly also: readonly string[];
  /** As written, all of them: the last one counts, and systemd stops reading at one that cannot be an instance. `alsoBefore`: how
   * many words of `Also=` stand above. */
  readonly defaultInstances: readonly { readonly word: string; readonly alsoBefore: number }[];
  /** Why systemd cannot read the file. */
  readonly problem?: string;
}

const isBlank = (character: string): boolean =>
  character === " " || character === "\t" || character === "\n" || character === "\r";

/** Without blanks at both ends, in a time that grows with the length of the text alone. */
function stripped(text: string): string {
  let [from, to] = [0, text.length];
  while (from < to && isBlank(text.charAt(from))) from += 1;
  while (to > from && isBlank(text.charAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

/**
 * The lines of a unit file as systemd joins and strips them: systemd.syntax(7); systemd/systemd src/shared/conf-parser.c
 * (v252). A backslash at the end continues a line and counts as a blank; comments in between are left out.
 */
function linesOf(text: string): readonly string[] {
  const lines: string[] = [];
  let parts: string[] = [];
  for (const raw of text.replace(/^\uFEFF/, "").split(/\r\n|\n\r|\n|\r|\0/)) {
    if (/^[ \t\n\r]*[#;]/.test(raw)) continue;
    // What is before a continued line ends with a blank, and with no backslash.
    const isContinued = endsEscaped(raw);
    parts.push(isContinued ? `${raw.slice(0, -1)} ` : raw);
    if (isContinued) continue;
    lines.push(stripped(parts.join("")));
    parts = [];
  }
  if (parts.length > 0) lines.push(stripped(parts.join("")));
  return lines;
}

function endsEscaped(line: string): boolean {
  let from = line.length;
  while (line.charAt(from - 1) === "\\") from -= 1;
  return (line.length - from) % 2 === 1;
}

/** Words of a value, without quotes; escapes stay. An unclosed quote spoils the rest. */
export function wordsOf(value: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let i = 0; i < value.length; i += 1) {
    const character = value.charAt(i);
    if (character === "\\" && i + 1 < value.length) {
      word = (word ?? "") + character + value.charAt(i + 1);
      i += 1;
    } else if (quote !== "") {
      if (character === quote) quote = "";
      else word = (word ?? "") + character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= "";
    } else if (isBlank(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + character;
  }
  if (quote === "" && word !== undefined) words.push(word);
  return words;
}

/** What one text assigns in its [Install] sections, up to what systemd cannot read. */
export interface InstallText {
  readonly assignments: readonly { readonly key: string; readonly value: string; readonly words: readonly string[] }[];
  /** How many of them and of their words there are. */
  readonly size: number;
  readonly problem?: string;
}

const listKeys: ReadonlySet<string> = new Set(["WantedBy", "RequiredBy", "Alias"]);

export function readInstallText(text: string): InstallText {
  const assignments: { key: string; value: string; words: readonly string[] }[] = [];
  let isInstall = false;
  const read = (problem?: string): InstallText => ({
    assignments,
    size: assignments.reduce((sum, { words }) => sum + 1 + words.length, 0),
    ...(problem === undefined ? {} : { problem }),
  });
  for (const line of linesOf(text)) {
    if (line.startsWith("[")) {
      if (!line.endsWith("]")) return read(`the section header ${line} does not end`);
      isInstall = line === "[Install]";
      continue;
    }
    const at = line.indexOf("=");
    if (!isInstall || at < 0) continue;
    const [key, value] = [stripped(line.slice(0, at)), stripped(line.slice(at + 1))];
    if (listKeys.has(key)) assignments.push({ key, value, words: wordsOf(value) });
    else if (key === "Also")
      assignments.push({ key, value, words: value.split(/[ \t\n\r]+/).filter((word) => word !== "") });
    else if (key === "DefaultInstance") assignments.push({ key, value, words: [value] });
  }
  return read();
}

/**
 * Reads the [Install] sections of a unit and of its drop-ins, in this order, in a time that grows with their length alone:
 * whoever reads a configuration reads them.
 */
export function readInstallSection(texts: readonly string[], read = readInstallText): InstallSection {
  const lists = { WantedBy: [] as string[], RequiredBy: [] as string[], Alias: [] as string[] };
  const also: string[] = [];
  const defaultInstances: { word: string; alsoBefore: number }[] = [];
  const result = (problem?: string): InstallSection => ({
    wantedBy: lists.WantedBy,
    requiredBy: lists.RequiredBy,
    alias: lists.Alias,
    also,
    defaultInstances,
    ...(problem === undefined ? {} : { problem }),
  });
  for (const text of texts) {
    const { assignments, problem } = read(text);
    for (const { key, value, words } of assignments) {
      if (key === "WantedBy" || key === "RequiredBy" || key === "Alias") {
        if (value === "") lists[key] = [];
        else for (const word of words) lists[key].push(word);
      } else if (key === "Also") for (const word of words) also.push(word);
      else defaultInstances.push({ word: value, alsoBefore: also.length });
    }
    if (problem !== undefined) return result(problem);
  }
  return result();
}
