import { canonicalQuantity } from "../../api/schema/quantities.ts";
import { type Decoded, zeroOf } from "./decode-go.ts";
import type { GoStruct, GoType } from "./kubelet-fields.ts";

/**
 * A decoded value as Go writes it in JSON: members without a value are left out, except durations, structs and those
 * that their struct always writes.
 */
export function encodeGo(value: Decoded, type: GoStruct): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(type.struct).flatMap(([name, member]) => {
      const written = encodeMember(value[name], member, type.always?.includes(name) === true);
      return written === undefined ? [] : [[name, written]];
    }),
  );
}

/** @returns `undefined` for what is left out. */
function encodeMember(value: unknown, type: GoType, isAlways: boolean): unknown {
  if (typeof type !== "string") {
    // An item that is not set; see `zeroItemOf`.
    if (value === null) return null;
    if ("list" in type) {
      const items = (value ?? []) as readonly unknown[];
      return items.length === 0 && !isAlways ? undefined : items.map((item) => encodeMember(item, type.list, true));
    }
    if ("map" in type) {
      const entries = Object.entries((value ?? {}) as Decoded);
      if (entries.length === 0) return isAlways ? null : undefined;
      return Object.fromEntries(entries.map(([key, item]) => [key, encodeMember(item, type.map, true)]));
    }
    return value === undefined && type.isPointer === true ? undefined : encodeGo((value ?? {}) as Decoded, type);
  }
  return encodeScalar(value, type, isAlways);
}

/** A value that is neither a list nor a map nor a struct; `undefined` for what is left out. */
export function encodeScalar(value: unknown, type: Extract<GoType, string>, isAlways: boolean): unknown {
  if (type.startsWith("*")) return value;
  const isEmpty = value === undefined || value === zeroOf(type);
  switch (type) {
    case "duration":
      return value ?? "0s";
    case "timeOrDuration":
      return value ?? 0;
    case "quantity":
      return canonicalQuantity(String((value as string | number | undefined) ?? "0"));
    case "time":
      return value ?? null;
    default:
      return isEmpty && !isAlways ? undefined : (value ?? zeroOf(type));
  }
}
