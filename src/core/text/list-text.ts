/** What a shortened list says of its rest. */
export const andMore = (count: number): string => `and ${count} more`;

/**
 * The first `most` items, and how many more there are: `a, b and 3 more`.
 *
 * @param count how many there are in all, where `items` are only the first of them.
 */
export function listText(items: readonly string[], most: number, count: number = items.length): string {
  const shown = items.slice(0, most);
  return `${shown.join(", ")}${count > most ? ` ${andMore(count - shown.length)}` : ""}`;
}

/** The first `most` items, each as `print` has it, and how many more there are. No item beyond them is printed. */
export function shortList<T>(items: readonly T[], most: number, print: (item: T) => string): readonly string[] {
  const texts = items.slice(0, most).map(print);
  return items.length > most ? [...texts, andMore(items.length - most)] : texts;
}
