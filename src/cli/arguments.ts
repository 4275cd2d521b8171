import { isIP } from "node:net";
import { parseArgs } from "node:util";
import { McoError } from "../api/errors.ts";
import { isDnsName } from "../api/schema/schema.ts";

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>["options"]>;

/** Reads a command's arguments; an unknown one is a usage error with Node's own message. */
export function readArguments<const O extends Options>(
  args: readonly string[],
  options: O,
  allowed: { readonly positionals?: boolean } = {},
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: allowed.positionals === true, strict: true });
  } catch (error) {
    throw new McoError("MCO_USAGE", {}, { message: error instanceof Error ? error.message : String(error) });
  }
}

export function usageError(message: string): McoError {
  return new McoError("MCO_USAGE", {}, { message });
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
