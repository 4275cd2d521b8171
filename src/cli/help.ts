import { greatestOf } from "../api/schema/extremes.ts";
import { type Command, commands } from "./commands.ts";
import { flagsOf } from "./global-flags.ts";
import { topics } from "./help-topics.ts";
import { widest, wrapped } from "./wrap-text.ts";

/** If terms are longer than this, their texts start on a line of their own. */
const longestTerm = 24;

/** Terms and their texts as two columns. */
function table(rows: readonly (readonly [term: string, text: string])[], width: number): string {
  const fitting = rows.map(([term]) => term.length).filter((length) => length <= longestTerm);
  const indent = 2 + greatestOf(fitting, 0) + 2;
  return rows
    .map(([term, text]) => {
      const lead = `  ${term}`;
      const gap = term.length > longestTerm ? `\n${" ".repeat(indent)}` : " ".repeat(indent - lead.length);
      return `${lead}${gap}${wrapped(text, indent, width)}`;
    })
    .join("\n");
}

/** The ways to call a command, a line each. */
export const usageLines = (name: string, { usage }: Pick<Command, "usage">): string =>
  usage.map((form, index) => `${index === 0 ? "usage:" : "      "} mco ${name} ${form}`).join("\n");

/** The output of `mco NAME --help`. @param width columns of the terminal; never wider than 120. */
export function commandHelp(name: string, command: Command, width = widest): string {
  const columns = Math.min(width, widest);
  const { summary, words = [], notes = [], exitCodes = [] } = command;
  const flags = flagsOf(command);
  const sections = [
    wrapped(`${summary}.`, 0, columns),
    usageLines(name, command),
    words.length === 0
      ? ""
      : table(
          words.map(({ word, text }) => [word, text]),
          columns,
        ),
    flags.length === 0
      ? ""
      : `flags:\n${table(
          flags.map(({ flag, value, text }) => [value === undefined ? flag : `${flag} ${value}`, text]),
          columns,
        )}`,
    ...notes.map((note) => wrapped(note, 0, columns)),
    exitCodes.length === 0
      ? ""
      : `exit codes:\n${table(
          exitCodes.map(({ code, means }) => [code, means]),
          columns,
        )}`,
  ];
  return `${sections.filter((section) => section !== "").join("\n\n")}\n`;
}

/** The output of `mco help`: every command with its summary. */
export function overview(width = widest): string {
  const section = (title: string, kind: Command["kind"]) =>
    `${title}\n${table(
      Object.entries(commands)
        .filter(([, command]) => command.kind === kind)
        .map(([name, { summary }]) => [name, summary]),
      Math.min(width, widest),
    )}\n`;
  return [
    "mco manages the operating system of Kubernetes nodes.\n",
    "usage: mco COMMAND [ARGUMENTS]   (mco COMMAND --help says more)\n",
    section("For people:", "people"),
    section("Processes:", "process"),
    `Topics (mco help TOPIC):\n${table(
      [
        ...Object.entries(topics).map(([name, { summary }]) => [name, summary] as const),
        ["CODE", "a code or reason of a failure, such as MCO_POOL_ABSENT or DaemonSilent"],
      ],
      Math.min(width, widest),
    )}\n`,
    `${wrapped(
      "Exit codes: 0 fine, 1 failed, 64 the command line is not understood, 141 the reader of its output ended first; where a command has others, its help says so.",
      0,
      Math.min(width, widest),
    )}\n`,
  ].join("\n");
}
