/**
 * Text for people without what the log of a pipeline takes as a command: the first character of such a word is shown as an
 * escape, which in JSON stands for the same text. Texts of manifests come from strangers, who could otherwise set outputs and
 * paths of the steps that follow.
 *
 * Sources: `::name …::` at the begin of a line, after spaces as well, and `##[name]` anywhere (actions/runner
 * src/Runner.Common/ActionCommand.cs, TryParseV2 and TryParse, main); `##vso[` (Azure Pipelines, logging commands) and
 * `##teamcity[` (TeamCity, service messages).
 */
export const withoutPipelineCommands = (text: string): string =>
  text
    .replaceAll(/##(?=\[|vso\[|teamcity\[)/gi, "\\u0023#")
    .split("\n")
    .map(withoutLineCommand)
    .join("\n");

function withoutLineCommand(line: string): string {
  const command = line.trimStart();
  if (!command.startsWith("::") || !command.includes("::", 2)) return line;
  return `${line.slice(0, line.length - command.length)}\\u003a${command.slice(1)}`;
}
