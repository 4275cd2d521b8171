import type { Paint } from "../core/text/paint.ts";
import { withoutPipelineCommands } from "../core/text/pipeline-commands.ts";
import { printable, printableLine } from "../core/text/printable.ts";
import { systemRandom } from "../ports/node/system-random.ts";
import { exitCodes } from "./exit-codes.ts";
import { globalFlags } from "./global-flags.ts";

/** Where a command prints, and what that output can show. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  /** Of a terminal; elsewhere `undefined`. */
  readonly screen: { readonly columns: number; readonly rows: number } | undefined;
  /** Absent: what is printed has no colours. */
  readonly colours?: false | Paint;
}

/** A block of lines that is redrawn in place. */
export interface Screen {
  draw(lines: readonly string[]): void;
  readonly colours: false | Paint;
  readonly width: number;
}

/** Stands for the escape character of our own colours until the text leaves. No object can hold it: it is random. */
const escapeMark = systemRandom.uuid();

const paint: Paint = (text, code) => `${escapeMark}[${code}m${text}${escapeMark}[0m`;

/** Splits a text at its marks of colours, and keeps them. */
const ownMark = new RegExp(`(${escapeMark}\\[\\d+m)`);

const withColours = (text: string) => text.replaceAll(escapeMark, "\u001b");

/** `NO_COLOR` is honoured, unless the command line asks for colours: https://no-color.org */
function coloursOf(stream: NodeJS.WriteStream): false | Paint {
  const { color } = globalFlags();
  const { NO_COLOR = "", TERM } = process.env;
  const isWanted = color === "always" || (color === "auto" && stream.isTTY && NO_COLOR === "" && TERM !== "dumb");
  return isWanted ? paint : false;
}

/**
 * Standard output and error of this process. Only here does text leave the program for people, and whatever text of
 * objects is in it controls no terminal: a character that would is shown as `\u001b`.
 */
export function processIo(): Io {
  const { isTTY, columns, rows } = process.stdout;
  return {
    out: (text) => process.stdout.write(withColours(printable(text))),
    err: (text) => process.stderr.write(withColours(withoutPipelineCommands(printable(text)))),
    screen: isTTY ? { columns, rows } : undefined,
    colours: coloursOf(process.stdout),
  };
}

/**
 * A reader of this process's output may end first, as `head` does: the process then ends as other programs do, without
 * a word. Nobody hears what standard error says then, which ends nothing.
 */
export function endWithReader(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(exitCodes.readerGone);
  });
  process.stderr.on("error", () => undefined);
}

const written = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    stream.write("", () => resolve());
  });

/** Ends this process once its output is written: a pipe takes 64 KiB at once, and the rest as its reader reads. */
export async function endProcess(code: number): Promise<never> {
  await Promise.all([written(process.stdout), written(process.stderr)]);
  process.exit(code);
}

/** Columns that a character may take: those of East Asian scripts and pictures take two. */
const columnsOf = (character: string): number => ((character.codePointAt(0) ?? 0) < 0x1100 ? 1 : 2);

/** A printable line in one row of a terminal: what has no room is cut off, and our colours end. */
function inOneRow(line: string, width: number): string {
  let columns = 0;
  let shown = "";
  // Our own marks of colours take no room.
  for (const part of line.split(ownMark)) {
    if (part.startsWith(escapeMark)) {
      shown += part;
      continue;
    }
    for (const character of part) {
      columns += columnsOf(character);
      if (columns > width) return shown.includes(escapeMark) ? `${shown}${escapeMark}[0m` : shown;
      shown += character;
    }
  }
  return shown;
}

/** Redraws a block of lines in place on a terminal; elsewhere prints it when it changed. */
export function processScreen(out: NodeJS.WriteStream = process.stdout): Screen {
  let height = 0;
  let last = "";
  const width = () => out.columns ?? 120;
  return {
    colours: coloursOf(out),
    width: width(),
    draw(lines) {
      // A line feed in a text of an object would move all that is drawn after it.
      const rows = lines.map(printableLine);
      // A line of two rows would leave one of them standing at the next drawing.
      const shown = (out.isTTY ? rows.map((row) => inOneRow(row, width())) : rows).map(withColours);
      const text = shown.join("\n");
      if (text === last) return;
      last = text;
      if (out.isTTY) {
        out.write(
          `${height > 0 ? `\u001b[${height}A` : ""}${shown.map((line) => `\u001b[2K${line}`).join("\n")}\n\u001b[J`,
        );
        height = lines.length;
      } else out.write(`${text}\n\n`);
    },
  };
}
