/** The items of a list after a change of each; the list itself where none of them changes. */
export function mapItems(list: readonly unknown[], change: (item: unknown, i: number) => unknown): readonly unknown[] {
  const items = list.map(change);
  return items.every((item, i) => item === list[i]) ? list : items;
}

/** The values of a map after a change of each; the map itself where none of them changes. */
export function mapValues(
  map: Readonly<Record<string, unknown>>,
  change: (value: unknown, key: string) => unknown,
): Readonly<Record<string, unknown>> {
  const keys = Object.keys(map);
  const values = keys.map((key) => change(map[key], key));
  if (values.every((value, i) => value === map[keys[i] ?? ""])) return map;
  return Object.fromEntries(keys.map((key, i) => [key, values[i]]));
}
