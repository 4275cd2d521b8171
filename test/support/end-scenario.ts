import { expect } from "vitest";
import { unsoundConditions } from "./lint-conditions.ts";
import type { TestCluster } from "./test-cluster.ts";

/** Books that are shown with what disagrees. */
const mostBooks = 3;

/**
 * Ends a scenario's cluster, and checks what it leaves behind: every condition is sound, no secret has left the
 * places where secrets belong, and everything that users see describes one state.
 */
export async function endScenario(cluster: TestCluster | undefined): Promise<void> {
  if (cluster === undefined) return;
  try {
    expect(await unsoundConditions(cluster.kube)).toEqual([]);
    expect(await cluster.leaks()).toEqual([]);
    const disagreements = await cluster.disagreements();
    expect(disagreements, await booksOf(cluster, disagreements)).toEqual([]);
  } finally {
    await cluster.stop();
  }
}

/** The books of what disagreements are about, as users read them. */
async function booksOf(cluster: TestCluster, disagreements: readonly string[]): Promise<string> {
  const subjects = new Set(disagreements.flatMap((text) => /^[^:]+: ((?:node|pool)\/[^:]+):/.exec(text)?.[1] ?? []));
  const books = await Promise.all([...subjects].slice(0, mostBooks).map((subject) => cluster.mco(["book", subject])));
  return books.map(({ stdout, stderr }) => `${stdout}${stderr}`).join("\n");
}
