import { expect } from "vitest";
import { unsoundConditions } from "./lint-conditions.ts";
import type { TestCluster } from "./test-cluster.ts";

/** Checks the conditions of everything that a scenario leaves behind, then ends its cluster. */
export async function endScenario(cluster: TestCluster | undefined): Promise<void> {
  if (cluster === undefined) return;
  try {
    expect(await unsoundConditions(cluster.kube)).toEqual([]);
  } finally {
    await cluster.stop();
  }
}
