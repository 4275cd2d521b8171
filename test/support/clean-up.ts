const cleanups: (() => Promise<unknown>)[] = [];

/**
 * Has something removed, or ended, once all tests of the file that is running have ended: the last first.
 *
 * Tests below `src` share a process, and a module that they share is loaded for the first of them alone: its own
 * `afterAll` would belong to that one.
 */
export function afterFile(cleanup: () => Promise<unknown>): void {
  cleanups.push(cleanup);
}

/** Removes and ends all that was asked for; `test/support/each-file.ts` calls it for each file of tests. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}
