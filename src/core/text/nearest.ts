/**
 * The candidate that a misspelt word most likely means: the one that the fewest insertions, deletions, replacements and
 * exchanges of neighbours lead to, at most one for each four characters of the word; the first in order among equals.
 */
export function nearestOf(word: string, candidates: Iterable<string>): string | undefined {
  let best: { readonly candidate: string; readonly distance: number } | undefined;
  const most = Math.floor(word.length / 4);
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) > most) continue;
    const distance = distanceOf(word, candidate);
    if (distance <= most && distance < (best?.distance ?? Infinity)) best = { candidate, distance };
  }
  return best?.candidate;
}

/** Optimal string alignment distance. */
function distanceOf(a: string, b: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const isSame = a[i - 1] === b[j - 1];
      const isExchange = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(
        Math.min(
          (last[j] ?? 0) + 1,
          (row[j - 1] ?? 0) + 1,
          (last[j - 1] ?? 0) + (isSame ? 0 : 1),
          isExchange ? (beforeLast[j - 2] ?? 0) + 1 : Infinity,
        ),
      );
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length] ?? 0;
}
