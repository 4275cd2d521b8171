import { expect } from "vitest";
import { unsoundConditions } from "./lint-conditions.ts";
import type { TestCluster } from "./test-cluster.ts";

/** Ends a scenario's cluster, after a look at the conditions of all that the scenario leaves in it. */
export async function endScenario(cluster: TestCluster | undefined): Promise<void> {
  if (cluster === undefined) return;
  try {
    expect(await unsoundConditions(cluster.kube)).toEqual([]);
  } finally {
    await cluster.stop();
  }
}
