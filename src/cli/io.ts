import type { Paint } from "../core/text/paint.ts";
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

/** A block of lines that is drawn anew in place. */
export interface Screen {
  draw(lines: readonly string[]): void;
  readonly colours: false | Paint;
  readonly width: number;
}

/** Stands for the escape character of our own colours until the text leaves. No object can hold it: it is random. */
const escapeMark = systemRandom.uuid();

const paint: Paint = (text, code) => `${escapeMark}[${code}m${text}${escapeMark}[0m`;

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
    err: (text) => process.stderr.write(withColours(printable(text))),
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

/** Redraws a block of lines in place on a terminal; elsewhere prints it when it changed. */
export function processScreen(out: NodeJS.WriteStream = process.stdout): Screen {
  let height = 0;
  let last = "";
  return {
    colours: coloursOf(out),
    width: out.columns ?? 120,
    draw(lines) {
      // A line feed in a text of an object would move all that is drawn after it.
      const shown = lines.map((line) => withColours(printableLine(line)));
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
