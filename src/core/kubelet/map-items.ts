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

/** The values of a map after a change of each; the map itself where none of them changes. */
export function mapValues(
  map: Readonly<Record<string, unknown>>,
  change: (value: unknown, key: string) => unknown,
): Readonly<Record<string, unknown>> {
  let entries: (readonly [string, unknown])[] | undefined;
  for (const key in map) {
    if (!Object.hasOwn(map, key)) continue;
    const value = change(map[key], key);
    if (value !== map[key]) entries ??= Object.entries(membersBefore(key, map));
    entries?.push([key, value]);
  }
  return entries === undefined ? map : Object.fromEntries(entries);
}

/** A copy of the members that an object has before one of them. */
export function membersBefore(name: string, of: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const keys = Object.keys(of);
  return Object.fromEntries(keys.slice(0, keys.indexOf(name)).map((key) => [key, of[key]]));
}
