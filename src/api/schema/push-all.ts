/** Adds items to a list, any number of them: a call such as `list.push(...items)` takes a hundred thousand. */
export function pushAll<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}
