/**
 * Runs `work` for every item, at most `atOnce` at a time, and returns the results in the order of the items. After a
 * failure no further item starts; the first failure is thrown once all started items have ended.
 */
export async function eachAtOnce<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const failures: unknown[] = [];
  const rest = items.entries();
  const worker = async () => {
    for (const [index, item] of rest) {
      try {
        results[index] = await work(item);
      } catch (error) {
        failures.push(error);
      }
      if (failures.length > 0) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
  return results;
}
