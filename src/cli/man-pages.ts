import { type Command, commands } from "./commands.ts";
import { flagsOf } from "./global-flags.ts";
import { version } from "./version.ts";

/**
 * Text in which nothing is a request or an escape, hyphens stay what is typed, and all is ASCII, as groff reads without help.
 * Source: man(7), groff_char(7).
 */
const plain = (text: string): string =>
  text
    .replaceAll("\\", String.raw`\e`)
    .replaceAll("-", String.raw`\-`)
    .replaceAll(/^[.']/gm, String.raw`\&$&`)
    .replaceAll(
      /[^\t\n -~]/gu,
      (char) => String.raw`\[u${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`,
    );
const bold = (text: string): string => String.raw`\fB${plain(text)}\fR`;

/** A term and its text, which the reader sees indented. */
const entry = (term: string, text: string): string => `.TP\n${term}\n${plain(text)}`;

/** A command line: literal words are bold, as `mco plan`, the rest is as help prints it. */
const commandLine = (name: string, usage: string): string => `${bold(`mco ${name}`)} ${plain(usage)}`;

function page(title: string, summary: string, sections: readonly (readonly [heading: string, text: string])[]): string {
  return [
    `.TH "${plain(title.toUpperCase())}" 1 "" "mco ${plain(version)}" "Machine configuration"`,
    `.SH NAME\n${plain(title)} ${String.raw`\-`} ${plain(summary)}`,
    ...sections.flatMap(([heading, text]) => (text === "" ? [] : [`.SH ${heading}\n${text}`])),
    "",
  ].join("\n");
}

/** The page of one command. */
function commandPage(name: string, command: Command): string {
  const { summary, usage, words = [], notes = [], exitCodes = [] } = command;
  const isProcess = command.kind === "process";
  return page(`mco-${name}`, isProcess ? "a process of the suite" : uncapitalized(summary), [
    ["SYNOPSIS", usage.map((form) => commandLine(name, form)).join("\n.br\n")],
    [
      "DESCRIPTION",
      [
        plain(`${summary}.`),
        ...words.map(({ word, text }) => entry(bold(word), text)),
        ...notes.map((note) => `.PP\n${plain(note)}`),
      ].join("\n"),
    ],
    [
      "OPTIONS",
      flagsOf(command)
        .map(({ flag, value, text }) =>
          entry(value === undefined ? bold(flag) : String.raw`${bold(flag)} \fI${plain(value)}\fR`, text),
        )
        .join("\n"),
    ],
    [
      "EXIT STATUS",
      [...exitCodes, { code: "64", means: "the command line is not understood" }]
        .map(({ code, means }) => entry(bold(code), means))
        .join("\n"),
    ],
    ["SEE ALSO", `${bold("mco")}(1)`],
  ]);
}

const uncapitalized = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

/** The page of the program: its commands. */
function overviewPage(): string {
  const of = (kind: Command["kind"]) =>
    Object.entries(commands)
      .filter(([, command]) => command.kind === kind)
      .map(([name, { summary }]) => entry(`${bold(`mco-${name}`)}(1)`, `${summary}.`))
      .join("\n");
  return page("mco", "manages the operating system of Kubernetes nodes", [
    ["SYNOPSIS", `${bold("mco")} ${String.raw`\fICOMMAND\fR`} [${String.raw`\fIARGUMENTS\fR`}]`],
    ["COMMANDS", of("people")],
    ["PROCESSES", of("process")],
    [
      "EXIT STATUS",
      [
        entry(bold("0"), "Fine."),
        entry(bold("1"), "It failed."),
        entry(bold("64"), "The command line is not understood."),
        entry(bold("141"), "The reader of its output ended first."),
        ".PP\nThe page of a command names those that it has beside these.",
      ].join("\n"),
    ],
  ]);
}

/** All pages of section 1, by the names of their files: what `mco help` says, for man(1). */
export const manPages = (): ReadonlyMap<string, string> =>
  new Map([
    ["mco.1", overviewPage()],
    ...Object.entries(commands).map(([name, command]) => [`mco-${name}.1`, commandPage(name, command)] as const),
  ]);
