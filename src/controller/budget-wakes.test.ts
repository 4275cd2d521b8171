import { describe, expect, test } from "vitest";
import { Kernel } from "../../test/simulation/kernel.ts";
import { countWork } from "../../test/support/count-work.ts";
import type { Pod, PodDisruptionBudget } from "../api/foreign/kubernetes.ts";
import { BudgetWakes, mostComparisons } from "./budget-wakes.ts";

const pod = (app: string, namespace = "n"): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: app, namespace, labels: { app } },
  spec: { containers: [] },
});
const budget = (app: string, namespace = "n"): PodDisruptionBudget => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: app, namespace, generation: 1 },
  spec: { selector: { matchLabels: { app } } },
  status: { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2 },
});
const changed = (of: PodDisruptionBudget) => ({ before: of, after: of });

function harness() {
  const kernel = new Kernel(1);
  const woken: (readonly [node: string, at: number])[] = [];
  const wakes = new BudgetWakes(kernel.clock, (node) => woken.push([node, kernel.now]));
  const pass = (ms: number) => kernel.complete(kernel.clock.sleep(ms), 2 * ms);
  return { wakes, woken, pass };
}

describe("changes of disruption budgets", () => {
  test("wake the nodes with a blocked pod that the budget covers, or covered, and no other [budget-wakes-1]", async () => {
    const { wakes, woken, pass } = harness();
    wakes.block("web", [pod("web")]);
    wakes.block("db", [pod("db")]);
    wakes.block("elsewhere", [pod("web", "other"), pod("db", "other")]);
    wakes.changed(changed(budget("web")));
    expect(woken).toEqual([["web", 0]]);
    await pass(6000);
    wakes.changed({ before: budget("db"), after: budget("cache") });
    wakes.changed({ before: budget("web", "other"), after: undefined });
    wakes.changed(changed(budget("cache")));
    expect(woken.slice(1)).toEqual([
      ["db", 6000],
      ["elsewhere", 6000],
    ]);
    wakes.forget("web");
    await pass(6000);
    wakes.changed(changed(budget("web")));
    expect(woken).toHaveLength(3);
  });

  test("wake a node at once, and then once at the end of every five seconds in which one changed [budget-wakes-2]", async () => {
    const { wakes, woken, pass } = harness();
    wakes.block("w", [pod("web")]);
    for (let turn = 0; turn < 60; turn += 1) {
      wakes.changed(changed(budget("web")));
      await pass(200);
    }
    // A pass in the meantime changes nothing of it.
    wakes.block("w", [pod("web")]);
    await pass(60_000);
    expect(woken.map(([, at]) => at)).toEqual([0, 5000, 10_000, 15_000]);
    wakes.changed(changed(budget("web")));
    expect(woken).toHaveLength(5);
    wakes.changed(changed(budget("web")));
    wakes.forget("w");
    await pass(60_000);
    expect([woken.length, wakes.isEmpty]).toEqual([5, true]);
  });

  test("that give no eviction a way wake nobody; those of a budget that is not kept wake its namespace [budget-wakes-3]", () => {
    const { wakes, woken } = harness();
    wakes.block("w", [pod("web")]);
    wakes.block("x", [pod("db")]);
    wakes.block("elsewhere", [pod("web", "other")]);
    const none = {
      ...budget("web"),
      status: { ...budget("web").status, disruptionsAllowed: 0 },
    } as PodDisruptionBudget;
    wakes.changed({ before: none, after: none });
    expect(woken).toEqual([]);
    wakes.changed({ before: undefined, after: budget("cache"), isKept: false });
    expect(woken.map(([node]) => node)).toEqual(["w", "x"]);
  });

  test("are compared with a bounded number of pods: what exceeds it counts as covering one [budget-wakes-4]", async () => {
    const { wakes, woken, pass } = harness();
    wakes.block(
      "w",
      Array.from({ length: 100 }, () => pod("web")),
    );
    const work = await countWork(() => {
      for (let turn = 0; turn < 5000; turn += 1) wakes.changed(changed(budget("other")));
    });
    // Each comparison visits some labels.
    expect(work).toBeLessThan(20 * mostComparisons + 10 * 5000);
    expect(woken).toEqual([["w", 0]]);
    await pass(60_000);
    expect(woken).toHaveLength(2);
    wakes.changed(changed(budget("other")));
    expect(woken).toHaveLength(2);
  });
});
