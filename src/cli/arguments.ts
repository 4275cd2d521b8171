import { isIP } from "node:net";
import { parseArgs } from "node:util";
import { McoError } from "../api/errors.ts";
import { isDnsName } from "../api/schema/schema.ts";
import { nearestOf } from "../core/text/nearest.ts";
import { type Flag, type ValuesOf, valueNameOf } from "./flags.ts";

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>["options"]>;

/**
 * Reads a command's arguments by its flags.
 *
 * @throws McoError `MCO_USAGE`: what it does not know, with what was probably meant.
 */
export function readArguments<const Flags extends readonly Flag[]>(
  args: readonly string[],
  flags: Flags,
  allowed: { readonly positionals?: boolean } = {},
): { readonly values: ValuesOf<Flags>; readonly positionals: readonly string[] } {
  const options = Object.fromEntries(flags.map((flag) => [valueNameOf(flag), optionOf(flag)]));
  try {
    const read = parseArgs({ args: [...args], options, allowPositionals: allowed.positionals === true, strict: true });
    return { values: read.values as unknown as ValuesOf<Flags>, positionals: read.positionals };
  } catch (error) {
    throw usageError(whyUnreadable(args, options) ?? (error instanceof Error ? error.message : String(error)));
  }
}

function optionOf(flag: Flag): Options[string] {
  const short = flag.short ?? (flag.flag.startsWith("--") ? undefined : flag.flag.slice(1));
  const letter = short === undefined ? {} : { short };
  if (flag.value === undefined) return { type: "boolean", default: false, ...letter };
  if (flag.repeats === true) return { type: "string", multiple: true, default: [], ...letter };
  return { type: "string", ...(flag.default === undefined ? {} : { default: flag.default }), ...letter };
}

/** The first argument that a command cannot take; `undefined`: Node.js says what is wrong. */
function whyUnreadable(args: readonly string[], options: Options): string | undefined {
  const { tokens } = parseArgs({ args: [...args], options, allowPositionals: true, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const known = Object.hasOwn(options, token.name) ? options[token.name] : undefined;
    if (known === undefined) return unknownFlag(token.rawName, options);
    if (known.type === "string" && token.value === undefined) return `${token.rawName} needs a value`;
    if (known.type === "boolean" && token.value !== undefined) return `${token.rawName} takes no value`;
  }
  const word = tokens.find(({ kind }) => kind === "positional");
  return word?.kind === "positional" ? `"${word.value}" is one word too many` : undefined;
}

const unknownFlag = (flag: string, options: Options): string =>
  `there is no flag ${flag}${didYouMean(
    flag,
    Object.keys(options).map((name) => `--${name}`),
  )}`;

/** `; did you mean --json?`, where one of the words is so near that it is probably meant; else nothing. */
export function didYouMean(word: string, words: Iterable<string>): string {
  const meant = nearestOf(word, words);
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}

export function usageError(message: string): McoError {
  return new McoError("MCO_USAGE", {}, { message });
}

/** A command line that is understood, and names something that is not there. */
export function absentError(message: string): McoError {
  return new McoError("MCO_NAME_ABSENT", {}, { message });
}

/** A whole number within bounds. */
export function countOf(text: string, name: string, least: number, most: number): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < least || value > most)
    throw usageError(`${name} must be a whole number from ${least} to ${most}, not "${text}"`);
  return value;
}

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `90m`, `2h`, `1d12h`. */
export function durationOf(text: string, name: string): number {
  const parts = [...text.matchAll(/(\d+)([smhd])/g)];
  const ms = parts.reduce((sum, [, count, unit = ""]) => sum + Number(count) * (units[unit] ?? 0), 0);
  if (parts.map(([part]) => part).join("") !== text || ms <= 0)
    throw usageError(`${name} must be a time like 90m, 2h or 1d12h, not "${text}"`);
  return ms;
}

/** @returns IP addresses in their canonical form, and host names as they are. */
export function readHosts(texts: readonly string[], what: string): readonly string[] {
  return texts.flatMap((text) => {
    if (isIP(text) !== 0) return readAddresses([text], what);
    if (!isDnsName(text) || !/[a-z]/.test(text))
      throw usageError(`${what} must be an IP address or a host name in lower case, not "${text}"`);
    return [text];
  });
}

/** @returns the IP addresses, each in its canonical form. */
export function readAddresses(texts: readonly string[], what: string): readonly string[] {
  return texts.map((text) => {
    if (isIP(text) === 0) throw usageError(`${what} must be an IP address, not "${text}"`);
    return isIP(text) === 4 ? text : new URL(`http://[${text}]`).hostname.slice(1, -1);
  });
}

/** The form in which a command prints: `--json` is short for `--format json`. */
export function outputFormat<Format extends string>(
  { json, format = json ? "json" : "text" }: { readonly json: boolean; readonly format?: string | undefined },
  formats: readonly Format[],
): Format {
  const found = formats.find((one) => one === format);
  if (found === undefined)
    throw usageError(`there is no format ${format}${didYouMean(format, formats)}: one of ${formats.join(", ")}`);
  if (json && format !== "json") throw usageError("--json and --format contradict each other");
  return found;
}
