import type { Decoded } from "./decode-go.ts";
import type { GoStruct, GoType } from "./kubelet-fields.ts";
import { hasMembers } from "./map-items.ts";
import { type LostField, emptyField } from "./lost-fields.ts";

export interface GoMerge {
  readonly value: Decoded;
  /** Fields that a user set and that change nothing, because the base has another value and they are empty. */
  readonly withoutEffect: readonly LostField[];
}

/**
 * Lays a configuration over another one as the reference does: a value that is not empty replaces the base's, maps are
 * merged key by key, lists replaced whole. `false`, 0, "" and an empty list do not replace a value of the base.
 */
export function mergeGo(base: Decoded, over: Decoded, type: GoStruct): GoMerge {
  const withoutEffect: LostField[] = [];
  return { value: mergeStruct(base, over, type, "", withoutEffect), withoutEffect };
}

function mergeStruct(base: Decoded, over: Decoded, type: GoStruct, path: string, lost: LostField[]): Decoded {
  const merged: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const member = type.struct[name];
    if (member === undefined) continue;
    const at = path === "" ? name : `${path}.${name}`;
    merged[name] = mergeMember(base[name], value, member, at, lost);
  }
  return merged;
}

function mergeMember(base: unknown, over: unknown, type: GoType, path: string, lost: LostField[]): unknown {
  if (typeof type !== "string" && "struct" in type)
    return mergeStruct((base ?? {}) as Decoded, over as Decoded, type, path, lost);
  if (typeof type !== "string" && "map" in type)
    return base === undefined ? over : !hasMembers(over as Decoded) ? base : { ...base, ...(over as Decoded) };
  if (base === undefined || !isEmpty(over)) return over;
  if (!isEmpty(base)) lost.push(emptyField(path, over, base));
  return base;
}

const isEmpty = (value: unknown): boolean =>
  value === false || value === 0 || value === "" || value === "0s" || (Array.isArray(value) && value.length === 0);
