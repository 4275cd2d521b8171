import { equalValues } from "../ignition/canonical.ts";
import type { Patch } from "./patch.ts";

type Operations = Extract<Patch, { readonly type: "json" }>["operations"];
type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const escaped = (key: string) => key.replaceAll("~", "~0").replaceAll("/", "~1");

/**
 * The JSON patch (RFC 6902) that sets the fields of `changed`, provided that the object still has the version that was
 * read. Fields absent from `changed` stay; `null` removes a field. A list of unchanged length is patched item by item:
 * of a list of conditions, only the changed ones are sent.
 */
export function itemPatch(
  object: { readonly metadata: { readonly resourceVersion?: string } },
  changed: Fields,
): Operations {
  return [
    { op: "replace", path: "/metadata/resourceVersion", value: object.metadata.resourceVersion },
    ...fieldsPatch(object, changed, ""),
  ];
}

function fieldsPatch(before: Fields, changed: Fields, at: string): Operations {
  return Object.entries(changed).flatMap(([key, value]): Operations => {
    const path = `${at}/${escaped(key)}`;
    const old = before[key];
    if (value === undefined) return [];
    if (value === null) return old === undefined ? [] : [{ op: "remove", path }];
    if (old === undefined) return [{ op: "add", path, value }];
    if (equalValues(old, value)) return [];
    if (isFields(old) && isFields(value)) return fieldsPatch(old, value, path);
    if (Array.isArray(old) && Array.isArray(value) && old.length === value.length)
      return value.flatMap((item: unknown, index): Operations =>
        equalValues(old[index], item) ? [] : [{ op: "replace", path: `${path}/${index}`, value: item }],
      );
    return [{ op: "replace", path, value }];
  });
}

/** Whether `value` has what a merge patch (RFC 7386) writes, which names only fields that it changes. */
export function hasPatch(value: unknown, patch: unknown): boolean {
  if (patch === undefined) return true;
  if (patch === null) return value === undefined;
  // Kubernetes keeps no empty list.
  if (value === undefined && Array.isArray(patch)) return patch.length === 0;
  if (!isFields(patch)) return equalValues(value, patch);
  return Object.entries(patch).every(([key, field]) => hasPatch(isFields(value) ? value[key] : undefined, field));
}
