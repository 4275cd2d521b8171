const never = () => false;

/**
 * The items of a list after a change of each; the list itself where none of them changes.
 *
 * @param isEnough once true, the other items stay as they are.
 */
export function mapItems(
  list: readonly unknown[],
  change: (item: unknown, i: number) => unknown,
  isEnough: () => boolean = never,
): readonly unknown[] {
  let items: unknown[] | undefined;
  for (let i = 0; i < list.length && !isEnough(); i += 1) {
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

/**
 * The values of a map after a change of each; the map itself where none of them changes.
 *
 * @param isEnough once true, the other values stay as they are.
 */
export function mapValues(
  map: Readonly<Record<string, unknown>>,
  change: (value: unknown, key: string) => unknown,
  isEnough: () => boolean = never,
): Readonly<Record<string, unknown>> {
  const keys = keysOf(map);
  let changed: Record<string, unknown> | undefined;
  for (let i = 0; i < keys.length && !isEnough(); i += 1) {
    const key = keys[i] ?? "";
    const before = map[key];
    const value = change(before, key);
    if (value === before) continue;
    changed ??= copyOf(map, keys);
    changed[key] = value;
  }
  if (changed !== undefined && keys.length >= large) namesOfLarge.set(changed, keys);
  return changed ?? map;
}

/** A copy that has every name as its own member, so that none of them is a setter. Of a large map, a spread costs three times as much. */
function copyOf(map: Readonly<Record<string, unknown>>, keys: readonly string[]): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key of keys) {
    if (key === "__proto__") Object.defineProperty(copy, key, { value: map[key], ...ownMember });
    else copy[key] = map[key];
  }
  return copy;
}

const ownMember = { writable: true, enumerable: true, configurable: true } as const;

/** A copy of the first members of an object, whose keys are given. */
export const firstMembers = (
  of: Readonly<Record<string, unknown>>,
  keys: readonly string[],
  count: number,
): Record<string, unknown> => Object.fromEntries(keys.slice(0, count).map((key) => [key, of[key]]));
