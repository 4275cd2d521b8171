import { printableLine } from "./printable.ts";

/**
 * A word of a command line that people are told to run, in a POSIX shell (IEEE Std 1003.1, 2.2.2): a value that somebody
 * else chose stays one argument, whatever is in it.
 */
export const shellWord = (text: string): string =>
  /^[A-Za-z0-9_./:@%+,=-]+$/.test(text) && !text.startsWith("-")
    ? text
    : `'${printableLine(text).replaceAll("'", String.raw`'\''`)}'`;
