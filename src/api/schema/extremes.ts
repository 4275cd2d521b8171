/** The least of numbers, which may be any number of them: a call takes a hundred thousand; `Infinity` of none. */
export function leastOf(values: Iterable<number>): number {
  let least = Number.POSITIVE_INFINITY;
  for (const value of values) least = Math.min(least, value);
  return least;
}

/**
 * The greatest of numbers, which may be any number of them.
 *
 * @param floor the result of none, and of those that are all below it.
 */
export function greatestOf(values: Iterable<number>, floor = Number.NEGATIVE_INFINITY): number {
  let greatest = floor;
  for (const value of values) greatest = Math.max(greatest, value);
  return greatest;
}
