/** The items of a list after a change of each; the list itself where none of them changes. */
export function mapItems(list: readonly unknown[], change: (item: unknown, i: number) => unknown): readonly unknown[] {
  let items: unknown[] | undefined;
  for (let i = 0; i < list.length; i += 1) {
    const item = change(list[i], i);
    if (item === list[i]) continue;
    // The whole list at once: one that grows item by item is copied many times.
    items ??= list.slice();
    items[i] = item;
  }
  return items ?? list;
}

/**
 * The names in large maps, which cost more than all that is done with them. Those of small ones are not remembered: of
 * them there may be ten thousands, and each costs memory here.
 */
const namesOfLarge = new WeakMap<object, readonly string[]>();
const large = 1000;

/** The names of an object's own members. Values of the API are never modified. */
export function keysOf(value: object): readonly string[] {
  const known = namesOfLarge.get(value);
  if (known !== undefined) return known;
  const names = Object.keys(value);
  if (names.length >= large) namesOfLarge.set(value, names);
  return names;
}

/** Whether an object has members of its own. */
export function hasMembers(value: object): boolean {
  if (namesOfLarge.has(value)) return true;
  for (const name in value) if (Object.hasOwn(value, name)) return true;
  return false;
}

/** The values of a map after a change of each; the map itself where none of them changes. */
export function mapValues(
  map: Readonly<Record<string, unknown>>,
  change: (value: unknown, key: string) => unknown,
): Readonly<Record<string, unknown>> {
  const keys = keysOf(map);
  let changed: Record<string, unknown> | undefined;
  for (let i = 0; i < keys.length; i += 1) {
    const key = keys[i] ?? "";
    const before = map[key];
    const value = change(before, key);
    if (value === before) continue;
    // A copy has every name as its own member, so that none of them is a setter.
    changed ??= { ...map };
    changed[key] = value;
  }
  if (changed !== undefined && keys.length >= large) namesOfLarge.set(changed, keys);
  return changed ?? map;
}

/** A copy of the first members of an object, whose keys are given. */
export const firstMembers = (
  of: Readonly<Record<string, unknown>>,
  keys: readonly string[],
  count: number,
): Record<string, unknown> => Object.fromEntries(keys.slice(0, count).map((key) => [key, of[key]]));
