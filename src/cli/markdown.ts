import { andMore } from "../core/text/list-text.ts";
import { printable, printableLine } from "../core/text/printable.ts";
import { escapeMarkup } from "./escape-markup.ts";

/** Words of the suite's own, or a text from manifests. */
type Cell = string | { readonly code: string };

/** A part of a comment that its reader unfolds. */
interface MarkdownPart {
  readonly title: string;
  readonly lines: readonly string[];
}

export interface MarkdownComment {
  /** Words of the suite's own. */
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  /** How the lines of parts are colored: `text` means not at all. */
  readonly language: "diff" | "text";
  readonly parts: readonly MarkdownPart[];
}

/** A comment of GitHub holds 65,536 characters (docs.github.com, errors of its API), a note of GitLab a million. */
const mostCharacters = 60_000;
const mostRows = 100;
const longestText = 200;
/** Characters around the lines of a part, without its title. */
const roomAround = 300;

/**
 * A comment in the Markdown of GitHub and GitLab. Texts of manifests come from the authors of pull requests: all of them
 * are code, in which nobody is mentioned, nothing is a link, and no character ends the block.
 */
export function markdownComment({ title, columns, rows, language, parts }: MarkdownComment): string {
  const row = (cells: readonly Cell[]): string => `| ${cells.map(cellText).join(" | ")} |\n`;
  const head = [
    `### ${title}\n`,
    ...(rows.length === 0 ? [] : ["\n", row(columns), `|${" --- |".repeat(columns.length)}\n`]),
    ...rows.slice(0, mostRows).map(row),
    ...(rows.length > mostRows ? [`\n${andMore(rows.length - mostRows)}\n`] : []),
  ].join("");
  let left = mostCharacters - head.length;
  const texts: string[] = [];
  for (const part of parts) {
    const text = partText(part, language, left);
    if (text === undefined) {
      texts.push(`\n${andMore(parts.length - texts.length)}: the command prints them all.\n`);
      break;
    }
    left -= text.length;
    texts.push(text);
  }
  return head + texts.join("");
}

/** @param room characters that it may have. @returns `undefined` where its title alone has more. */
function partText({ title, lines }: MarkdownPart, language: string, room: number): string | undefined {
  const heading = htmlCode(title);
  let left = room - roomAround - heading.length;
  if (left < 0) return undefined;
  const kept: string[] = [];
  for (const line of lines) {
    const text = printable(line).replaceAll("\n", String.raw`\u000a`);
    left -= text.length + 1;
    if (left < 0) break;
    kept.push(text);
  }
  const quotes = "`".repeat(Math.max(3, longestRun(kept.join("\n")) + 1));
  const unsaid = lines.length - kept.length;
  return [
    `\n<details><summary>${heading}</summary>\n\n`,
    `${quotes}${language}\n${kept.map((line) => `${line}\n`).join("")}${quotes}\n`,
    ...(unsaid === 0 ? [] : [`\n${andMore(unsaid)} lines: the command prints them all.\n`]),
    "\n</details>\n",
  ].join("");
}

/** The most backticks in a row: what surrounds them needs more. */
const longestRun = (text: string): number =>
  [...text.matchAll(/`+/g)].reduce((most, [run]) => Math.max(most, run.length), 0);

const shortLine = (text: string): string =>
  printableLine(text.length > longestText ? `${text.slice(0, longestText - 1)}…` : text);

/** A cell of a table, in which a bar ends the cell even in code. */
function cellText(cell: Cell): string {
  if (typeof cell === "string") return cell;
  const text = shortLine(cell.code);
  if (text.trim() === "") return "";
  const quote = "`".repeat(longestRun(text) + 1);
  const code = text.startsWith("`") || text.endsWith("`") ? ` ${text} ` : text;
  return `${quote}${code.replaceAll("|", String.raw`\|`)}${quote}`;
}

const htmlCode = (text: string): string => `<code>${escapeMarkup(shortLine(text))}</code>`;
