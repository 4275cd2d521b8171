/** How the first character of a command is written instead. */
export interface CommandEscapes {
  readonly hash: string;
  readonly colon: string;
}

/** In JSON they stand for the same text, and people see them. */
const visible: CommandEscapes = { hash: "\\u0023", colon: "\\u003a" };
/** In XML they stand for the same text. */
export const commandEscapesOfXml: CommandEscapes = { hash: "&#35;", colon: "&#58;" };

/**
 * Text for people without what the log of a pipeline takes as a command: the first character of such a word is shown as an
 * escape. Texts of manifests come from strangers, who could otherwise set outputs and paths of the steps that follow.
 *
 * Sources: `::name …::` at the begin of a line, after spaces as well, and `##[name]` anywhere (actions/runner
 * src/Runner.Common/ActionCommand.cs, TryParseV2 and TryParse, main); `##vso[` (Azure Pipelines, logging commands) and
 * `##teamcity[` (TeamCity, service messages).
 */
export const withoutPipelineCommands = (text: string, escapes: CommandEscapes = visible): string =>
  withoutHashCommands(text, escapes)
    .split("\n")
    .map((line) => withoutLineCommand(line, escapes))
    .join("\n");

/** The same without commands that stand anywhere in a line: for lines that are themselves commands at their begin. */
export const withoutHashCommands = (text: string, { hash }: CommandEscapes = visible): string =>
  text.replaceAll(/##(?=\[|vso\[|teamcity\[)/gi, `${hash}#`);

function withoutLineCommand(line: string, { colon }: CommandEscapes): string {
  const command = line.trimStart();
  if (!command.startsWith("::") || !command.includes("::", 2)) return line;
  return `${line.slice(0, line.length - command.length)}${colon}${command.slice(1)}`;
}
