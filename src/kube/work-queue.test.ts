import { describe, expect, test } from "vitest";
import { Kernel } from "../../test/simulation/kernel.ts";
import { countWork } from "../../test/support/count-work.ts";
import { WorkQueue, type WorkQueueOptions } from "./work-queue.ts";

function queueOn(kernel: Kernel, work: WorkQueueOptions["work"], more: Partial<WorkQueueOptions> = {}) {
  const failures: { key: string; retryInMs: number }[] = [];
  const queue = new WorkQueue({
    clock: kernel.clock,
    random: kernel.random,
    workers: 1,
    work,
    onFailure: (key, _error, retryInMs) => failures.push({ key, retryInMs }),
    ...more,
  });
  return { queue, failures };
}

const until = (kernel: Kernel, maxMs: number) => kernel.run({ until: () => false, maxMs });

describe("a work queue", () => {
  test("makes one run of many events of a key within the coalescing time", async () => {
    const kernel = new Kernel(1);
    const runs: number[] = [];
    const { queue } = queueOn(kernel, async () => {
      runs.push(kernel.now);
      return {};
    });
    for (let i = 0; i < 50; i += 1) queue.add("a");
    await until(kernel, 1000);
    expect(runs).toEqual([250]);
  });

  test("keys that are always due again keep no other key waiting [work-queue-fair-1]", async () => {
    const kernel = new Kernel(1);
    const runs: string[] = [];
    const { queue } = queueOn(kernel, async (key) => {
      runs.push(key);
      if (key !== "other") queue.add(key);
      await kernel.clock.sleep(150);
      return {};
    });
    for (const key of ["a", "b", "c"]) queue.add(key);
    await until(kernel, 2000);
    const before = runs.length;
    queue.add("other");
    await until(kernel, 2000);
    expect(runs.slice(before, before + 6)).toContain("other");
  });

  test("[work-queue-many-1] takes many keys in time in proportion to their number, and begins with the earliest", async () => {
    const kernel = new Kernel(1);
    const runs: string[] = [];
    const { queue } = queueOn(kernel, async (key) => {
      runs.push(key);
      return {};
    });
    const work = await countWork(() => {
      for (let i = 0; i < 3000; i += 1) queue.add(`k${i}`, 1000);
    });
    expect(work).toBeLessThan(30_000);
    for (const [key, afterMs] of [
      ["third", 30],
      ["first", 10],
      ["second", 20],
    ] as const)
      queue.add(key, afterMs);
    await until(kernel, 500);
    expect(runs).toEqual(["first", "second", "third"]);
    await until(kernel, 1000);
    expect([runs.length, runs[3]]).toEqual([3003, "k0"]);
  });

  test("a run costs no more with tens of thousands of keys that wait [work-queue-many-2]", async () => {
    const kernel = new Kernel(1);
    const runs: string[] = [];
    const { queue } = queueOn(kernel, async (key) => {
      runs.push(key);
      return { again: { afterMs: 5 } };
    });
    for (let index = 0; index < 20_000; index += 1) queue.add(`full/${index}`, 1_000_000);
    queue.add("full/one", 0);
    queue.add("node", 0);
    const work = await countWork(() => kernel.complete(kernel.clock.sleep(1000), 2000));
    expect(runs.length).toBeGreaterThan(300);
    expect(work).toBeLessThan(100 * runs.length);
  });

  test("thousands of keys of one namespace keep those of others waiting for one turn [work-queue-fair-2]", async () => {
    const kernel = new Kernel(1);
    const runs: string[] = [];
    const { queue } = queueOn(kernel, async (key) => {
      runs.push(key);
      await kernel.clock.sleep(10);
      if (key.startsWith("full/")) throw new Error("exceeded quota");
      return {};
    });
    for (let index = 0; index < 3000; index += 1) queue.add(`full/${index}`);
    await until(kernel, 1000);
    const begun = runs.length;
    for (const key of ["a/1", "a/2", "b/1", "c/1", "node"]) queue.add(key);
    await until(kernel, 1000);
    const others = runs.slice(begun).filter((key) => !key.startsWith("full/"));
    expect(others).toEqual(["a/1", "b/1", "c/1", "node", "a/2"]);
    const last = runs.indexOf("a/2") - runs.indexOf("a/1");
    expect(last).toBe(5);
    await until(kernel, 60_000);
    expect(new Set(runs).size).toBe(3005);
  });

  test("keys of preferred namespaces have every second turn, and no more [work-queue-fair-3]", async () => {
    const kernel = new Kernel(1);
    const runs: string[] = [];
    const { queue } = queueOn(
      kernel,
      async (key) => {
        runs.push(key);
        await kernel.clock.sleep(10);
        return { again: { afterMs: 0 } };
      },
      { preferred: new Set(["suite", "kube-system"]) },
    );
    for (const key of ["a/1", "b/1", "c/1", "d/1", "suite/1", "suite/2", "kube-system/1"]) queue.add(key, 0);
    await until(kernel, 95);
    expect(runs.slice(0, 8)).toEqual([
      "suite/1",
      "a/1",
      "kube-system/1",
      "b/1",
      "suite/2",
      "c/1",
      "kube-system/1",
      "d/1",
    ]);
  });

  test("by other keys, namespaces take turns as well [work-queue-fair-4]", async () => {
    const kernel = new Kernel(1);
    const runs: string[] = [];
    const { queue } = queueOn(
      kernel,
      async (key) => {
        runs.push(key);
        return {};
      },
      { namespaceOf: (key) => key.slice(0, 1) },
    );
    for (const key of ["a1", "a2", "a3", "b1"]) queue.add(key, 0);
    await until(kernel, 100);
    expect(runs).toEqual(["a1", "b1", "a2", "a3"]);
  });

  test("runs a key once more when it was added while it ran, and never twice at once", async () => {
    const kernel = new Kernel(1);
    let running = 0;
    let most = 0;
    let runs = 0;
    const { queue } = queueOn(
      kernel,
      async () => {
        running += 1;
        most = Math.max(most, running);
        runs += 1;
        await kernel.clock.sleep(1000);
        running -= 1;
        return {};
      },
      { workers: 4 },
    );
    queue.add("a");
    kernel.schedule(500, "more", () => queue.add("a"));
    await until(kernel, 10_000);
    expect({ most, runs }).toEqual({ most: 1, runs: 2 });
  });

  test("works on as many keys at once as it has workers", async () => {
    const kernel = new Kernel(1);
    let running = 0;
    let most = 0;
    const { queue } = queueOn(
      kernel,
      async () => {
        running += 1;
        most = Math.max(most, running);
        await kernel.clock.sleep(100);
        running -= 1;
        return {};
      },
      { workers: 3 },
    );
    for (const key of ["a", "b", "c", "d", "e"]) queue.add(key);
    await until(kernel, 10_000);
    expect(most).toBe(3);
  });

  test("tries a failing key again with doubling waits, and starts over after a success", async () => {
    const kernel = new Kernel(1);
    let failing = true;
    const { queue, failures } = queueOn(kernel, async () => {
      if (failing) throw new Error("no");
      return {};
    });
    queue.add("a");
    await until(kernel, 2000);
    const waits = failures.map(({ retryInMs }) => retryInMs);
    expect(waits.length).toBeGreaterThan(3);
    for (const [index, wait] of waits.entries()) expect(wait / (100 * 2 ** index)).toBeCloseTo(1, 0);
    failing = false;
    await until(kernel, 10_000);
    failing = true;
    queue.add("a");
    const before = failures.length;
    await until(kernel, 300);
    expect(failures[before]?.retryInMs).toBeLessThan(120);
  });

  test("leaves a failing key alone for as long as the failure asks, and not longer than its own bound", async () => {
    const kernel = new Kernel(1);
    const { queue, failures } = queueOn(kernel, () => Promise.reject(new Error("busy")), {
      notBeforeMs: () => (failures.length === 0 ? 5000 : 3_600_000),
      maxRetryMs: 30_000,
    });
    queue.add("a");
    await until(kernel, 60_000);
    const [first = 0, second = 0] = failures.map(({ retryInMs }) => retryInMs);
    expect(first).toBeGreaterThanOrEqual(5000);
    expect(first).toBeLessThanOrEqual(6000);
    expect(second).toBeGreaterThanOrEqual(30_000);
    expect(second).toBeLessThanOrEqual(36_000);
  });

  test("comes back when a run asks for it", async () => {
    const kernel = new Kernel(1);
    const runs: number[] = [];
    const { queue } = queueOn(kernel, async () => {
      runs.push(kernel.now);
      return runs.length < 3 ? { again: { afterMs: 1000 } } : {};
    });
    queue.add("a", 0);
    await until(kernel, 10_000);
    expect(runs).toEqual([0, 1000, 2000]);
    expect(queue.size).toBe(0);
  });

  test("starts nothing after it was stopped", async () => {
    const kernel = new Kernel(1);
    let runs = 0;
    const { queue } = queueOn(kernel, async () => {
      runs += 1;
      return {};
    });
    queue.add("a");
    queue.stop();
    queue.add("b");
    await until(kernel, 10_000);
    expect(runs).toBe(0);
  });
});
