import { isShortQuantity } from "../../api/schema/quantities.ts";
import { type Decoded, emptyStruct, zeroItemOf } from "./decode-go.ts";
import { encodeScalar } from "./encode-go.ts";
import type { GoStruct, GoType } from "./kubelet-fields.ts";
import { hasMembers, mapItems, mapValues } from "./map-items.ts";

/**
 * A decoded value as a Go program reads it back from what Go wrote of it: members without a value are gone, except those
 * that are always written. The same as decoding what `encodeGo` makes, at a fraction of the cost for large values: what
 * is read as it is, is not copied.
 */
export const asRead = (value: Decoded, type: GoStruct): Decoded =>
  hasMembers(value) ? readStruct(value, type) : emptyAsRead(type);

const emptiesAsRead = new WeakMap<GoStruct, Decoded>();

/** A struct without members is read the same each time: of a list of them, none costs its own. */
function emptyAsRead(type: GoStruct): Decoded {
  const known = emptiesAsRead.get(type);
  if (known !== undefined) return known;
  const read = Object.freeze(readStruct(emptyStruct, type));
  emptiesAsRead.set(type, read);
  return read;
}

function readStruct(value: Decoded, type: GoStruct): Decoded {
  let members: Record<string, unknown> | undefined;
  for (const name in type.struct) {
    const member = type.struct[name];
    const read = member && readMember(value[name], member, type.always?.includes(name) === true);
    if (read !== value[name]) members ??= membersBefore(name, value, type);
    if (members !== undefined && read !== undefined) members[name] = read;
  }
  return members ?? value;
}

/** A copy of the members that their struct has before one of them. */
function membersBefore(name: string, value: Decoded, type: GoStruct): Record<string, unknown> {
  const members: Record<string, unknown> = {};
  for (const before in type.struct) {
    if (before === name) break;
    if (value[before] !== undefined) members[before] = value[before];
  }
  return members;
}

/** Whether a value is read as it is whatever its place: a text or a number with a value, most members by far. */
const isRead = (value: unknown, type: GoType): boolean =>
  typeof value === "number"
    ? value !== 0 && type !== "quantity"
    : typeof value === "string" && (type === "quantity" ? isShortQuantity(value) : value !== "");

/** @returns `undefined` for what is not set when it is read. */
function readMember(value: unknown, type: GoType, isAlways: boolean): unknown {
  if (isRead(value, type)) return value;
  if (typeof type !== "string") {
    // An item that is not set; see `zeroItemOf`.
    if (value === null) return null;
    if ("list" in type) {
      const items = (value ?? []) as readonly unknown[];
      if (items.length === 0) return isAlways ? [] : undefined;
      return type.list === "string" ? items : mapItems(items, (item) => readItem(item, type.list));
    }
    if ("map" in type) {
      const map = (value ?? {}) as Decoded;
      if (!hasMembers(map)) return undefined;
      return isUnchanged(type.map) ? map : mapValues(map, (item) => readItem(item, type.map));
    }
    return value === undefined && type.isPointer === true ? undefined : asRead((value ?? {}) as Decoded, type);
  }
  // A time that is not set is written as null, which reads as not set.
  return encodeScalar(value, type, isAlways) ?? undefined;
}

/** Whether items of a type are read as they are: texts, lists of them, and true or false. */
const isUnchanged = (type: GoType): boolean =>
  type === "string" || type === "bool" || (typeof type !== "string" && "list" in type && type.list === "string");

/** An item of a list or a map, which is always written. */
const readItem = (item: unknown, type: GoType): unknown => readMember(item, type, true) ?? zeroItemOf(type);
