/** `bag` without one occurrence for each of `taken`. */
export function withoutMultiset(bag: readonly string[], taken: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const word of taken) counts.set(word, (counts.get(word) ?? 0) + 1);
  return bag.filter((word) => {
    const count = counts.get(word) ?? 0;
    if (count > 0) counts.set(word, count - 1);
    return count === 0;
  });
}

/** Whether two lists hold the same words equally often, in any order. */
export const sameMultiset = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && withoutMultiset(a, b).length === 0;
