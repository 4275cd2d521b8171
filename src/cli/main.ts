import { McoError, errorCodes } from "../api/errors.ts";
import { errorText } from "../ports/node/json-logger.ts";
import { ownThread } from "../ports/node/worker-threads.ts";
import { didYouMean } from "./arguments.ts";
import { exitCodes } from "./exit-codes.ts";
import { type Command, commands } from "./commands.ts";
import { takeGlobalFlags } from "./global-flags.ts";
import { commandHelp, overview, usageLines } from "./help.ts";
import { topicHelp, topics } from "./help-topics.ts";
import { verbOf } from "./program-names.ts";
import { endProcess, endWithReader, processIo } from "./io.ts";
import { own } from "../api/schema/own.ts";

/** Runs one command line and ends the process with its exit code. */
async function main(): Promise<never> {
  endWithReader();
  const words = verbOf(process.argv[1] ?? "", process.argv.slice(2));
  const [verb, ...args] = words;
  const command: Command | undefined = verb === undefined ? undefined : own(commands, verb);
  if (verb === undefined || verb === "help" || verb === "--help" || verb === "-h") return await help(args);
  if (command === undefined) return await noCommand(verb);
  if (args.includes("--help") || args.includes("-h")) {
    processIo().out(commandHelp(verb, command, process.stdout.columns));
    return await endProcess(0);
  }
  try {
    const { run } = await command.load();
    return await endProcess(await run(takeGlobalFlags(args, command)));
  } catch (error) {
    if (error instanceof McoError && error.code === "MCO_USAGE") {
      processIo().err(`mco ${verb}: ${error.message}\n${usageLines(verb, command)}\n`);
      return await endProcess(exitCodes.usage);
    }
    const code = error instanceof McoError ? ` [${error.code}]` : "";
    processIo().err(`mco ${verb}: ${error instanceof McoError ? error.message : errorText(error)}${code}\n`);
    if (error instanceof McoError) processIo().err(`  ${errorCodes[error.code].remedy}\n`);
    if (error instanceof McoError && error.cause !== undefined)
      processIo().err(`  because: ${errorText(error.cause)}\n`);
    return await endProcess(exitCodes.failed);
  }
}

/** `mco help`, `mco help COMMAND`, `mco help TOPIC`, and `mco help CODE`. */
async function help([name]: readonly string[]): Promise<never> {
  const text = await helpText(name, process.stdout.columns);
  if (text === undefined) return await noHelp(name ?? "");
  processIo().out(text);
  return await endProcess(exitCodes.ok);
}

async function helpText(name: string | undefined, columns: number | undefined): Promise<string | undefined> {
  if (name === undefined) return overview(columns);
  const command = own(commands, name);
  if (command !== undefined) return commandHelp(name, command, columns);
  // The tables of codes are large.
  return topicHelp(name, columns) ?? (await import("./help-codes.ts")).codeHelp(name, columns);
}

async function noHelp(name: string): Promise<never> {
  const { helpCodes } = await import("./help-codes.ts");
  const meant = didYouMean(name, [...Object.keys(commands), ...Object.keys(topics), ...helpCodes()]);
  processIo().err(`mco: there is no command, topic or code "${name}"${meant}\n\n${overview(process.stderr.columns)}`);
  return await endProcess(exitCodes.usage);
}

async function noCommand(name: string): Promise<never> {
  const meant = didYouMean(name, Object.keys(commands));
  processIo().err(`mco: there is no command "${name}"${meant}\n\n${overview(process.stderr.columns)}`);
  return await endProcess(exitCodes.usage);
}

const thread = ownThread();
// Loaded when asked for, as commands are.
if (thread === undefined) await main();
else await (await import("./own-thread.ts")).runThread(thread);
