/** The items of a list after a change of each; the list itself where none of them changes. */
export function mapItems(list: readonly unknown[], change: (item: unknown, i: number) => unknown): readonly unknown[] {
  let items: unknown[] | undefined;
  for (let i = 0; i < list.length; i += 1) {
    const item = change(list[i], i);
    if (item !== list[i]) items ??= list.slice(0, i);
    items?.push(item);
  }
  return items ?? list;
}

/**
 * Large maps that somebody went through: to look at one member costs as much as all names. Small ones are not remembered:
 * of them there may be ten thousands, and each costs memory here.
 */
const filled = new WeakSet<object>();
const large = 1000;

/** Whether an object has members of its own. Values of the API are never modified. */
export function hasMembers(value: object): boolean {
  if (filled.has(value)) return true;
  for (const name in value) if (Object.hasOwn(value, name)) return true;
  return false;
}

/** The values of a map after a change of each; the map itself where none of them changes. */
export function mapValues(
  map: Readonly<Record<string, unknown>>,
  change: (value: unknown, key: string) => unknown,
): Readonly<Record<string, unknown>> {
  const keys = Object.keys(map);
  let entries: (readonly [string, unknown])[] | undefined;
  for (let i = 0; i < keys.length; i += 1) {
    const key = keys[i] ?? "";
    const before = map[key];
    const value = change(before, key);
    if (value !== before) entries ??= keys.slice(0, i).map((one) => [one, map[one]] as const);
    entries?.push([key, value]);
  }
  const changed = entries === undefined ? map : Object.fromEntries(entries);
  if (keys.length >= large) filled.add(changed);
  return changed;
}

/** A copy of the first members of an object, whose keys are given. */
export const firstMembers = (
  of: Readonly<Record<string, unknown>>,
  keys: readonly string[],
  count: number,
): Record<string, unknown> => Object.fromEntries(keys.slice(0, count).map((key) => [key, of[key]]));
