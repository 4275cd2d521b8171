import { parseArgs } from "node:util";
import { McoError } from "../api/errors.ts";

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>["options"]>;

/** Reads a command's arguments; what it does not know is a usage error with Node's own sentence. */
export function readArguments<const O extends Options>(args: readonly string[], options: O, allowed: { readonly positionals?: boolean } = {}) {
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
  if (!Number.isInteger(value) || value < least || value > most) throw usageError(`${name} must be a whole number from ${least} to ${most}, not "${text}"`);
  return value;
}
