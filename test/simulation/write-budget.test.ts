import { beforeAll, describe, expect, test } from "vitest";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import {
  annotations,
  fieldManagers,
  journals,
  labels,
  machineConfigNodeConditions as types,
} from "../../src/api/names.ts";
import type { Condition } from "../../src/api/schema/object.ts";
import { journalOfNode } from "../../src/core/books/journal.ts";
import { encodeDataUrl } from "../../src/ignition/data-url.ts";
import { Simulation } from "./simulation.ts";

interface Write {
  readonly by: string;
  /** `nodes`, `machineconfignodes`, … */
  readonly kind: string;
  readonly name: string;
  readonly bytes: number;
  /** Virtual milliseconds. */
  readonly at: number;
  readonly isTarget: boolean;
}

/**
 * The requests of a roll-out to three workers, one after the other, and the conditions of one worker's
 * MachineConfigNode on the way.
 */
interface RollOut {
  readonly writes: readonly Write[];
  readonly walks: ReadonlyMap<string, readonly (readonly Condition[])[]>;
}

async function rollOut(path: string): Promise<RollOut> {
  const writes: Write[] = [];
  const walks = new Map<string, (readonly Condition[])[]>();
  const simulation = new Simulation({
    seed: 5,
    faults: false,
    plant: {
      transport: (transport) => async (request, signal) => {
        const response = await transport(request, signal);
        const [, kind = "", name = ""] =
          /\/(nodes|machineconfignodes|machineconfigpools|machinestatejournals|events)\/?([^/?]*)/.exec(
            request.target,
          ) ?? [];
        const by = /fieldManager=([^&]*)/.exec(request.target)?.[1] ?? "";
        const body = typeof request.body === "string" ? request.body : "";
        // Leases are renewed by the clock, independently of updates.
        if (request.method !== "GET" && response.status < 300 && !request.target.includes("/leases"))
          writes.push({
            by,
            kind,
            name,
            bytes: body.length,
            at: simulation.kernel.now,
            isTarget: by === fieldManagers.node && body.includes(annotations.desiredConfig),
          });
        return response;
      },
    },
  });
  await simulation.setUp();
  await simulation.kernel.run({ until: () => simulation.keeper.isQuiet, maxMs: 3_600_000 });
  await simulation.pass(60_000);
  void (async () => {
    const { resourceVersion } = await simulation.kube.list(MachineConfigNode);
    for await (const { object, type } of simulation.kube.watch(
      MachineConfigNode,
      {},
      { resourceVersion, timeoutSeconds: 100_000 },
      new AbortController().signal,
    )) {
      if (type === "BOOKMARK" || type === "DELETED") continue;
      walks.set(object.metadata.name, [...(walks.get(object.metadata.name) ?? []), object.status?.conditions ?? []]);
    }
  })();
  await simulation.pass(1000);
  writes.length = 0;
  const before = simulation.keeper.pools.objects.get("worker")?.spec.configuration?.name;
  await simulation.act(
    simulation.kube.create(MachineConfig, {
      apiVersion: MachineConfig.apiVersion,
      kind: "MachineConfig",
      metadata: { name: "60-budget", labels: { [labels.role]: "worker" } },
      spec: {
        config: {
          ignition: { version: "3.4.0" },
          storage: { files: [{ path, mode: 0o644, contents: { source: encodeDataUrl("changed") } }] },
        },
      },
    }),
  );
  await simulation.kernel.run({
    until: () =>
      simulation.keeper.isQuiet && simulation.keeper.pools.objects.get("worker")?.spec.configuration?.name !== before,
    maxMs: 3_600_000,
  });
  await simulation.pass(60_000);
  expect(simulation.keeper.violations).toEqual([]);
  return { writes, walks };
}

const workers = ["worker-0", "worker-1", "worker-2"];

/** Which conditions changed their status from one version to the next, as `Type Status`. */
function changesOf(walk: readonly (readonly Condition[])[]): readonly (readonly string[])[] {
  const steps: string[][] = [];
  for (const [index, conditions] of walk.entries()) {
    const before = walk[index - 1];
    if (before === undefined) continue;
    const changed = conditions.filter(
      (condition) => before.find(({ type }) => type === condition.type)?.status !== condition.status,
    );
    if (changed.length > 0) steps.push(changed.map(({ type, status }) => `${type} ${status}`));
  }
  return steps;
}

describe("an update with drain and reboot", () => {
  let told: RollOut;
  beforeAll(async () => {
    told = await rollOut("/etc/test/reboot");
  }, 600_000);

  test("writes no more to each object than its budget allows, and the target once [simulation-write-budget-3]", () => {
    for (const name of workers) {
      const of = (kind: string, by: RegExp) =>
        told.writes.filter(
          (write) => write.name === name && write.kind === kind && by.test(write.by) && !write.isTarget,
        ).length;
      const counts = {
        target: told.writes.filter((write) => write.name === name && write.isTarget).length,
        node: of("nodes", /^(mcd|mcc-node)$/),
        drain: of("nodes", /^mcc-drain$/),
        machineConfigNode: of("machineconfignodes", /./),
        journal: told.writes.filter((write) => write.name === journalOfNode(name)).length,
      };
      expect(counts.target, name).toBe(1);
      expect(counts.node, name).toBeLessThanOrEqual(6);
      expect(counts.drain, name).toBeLessThanOrEqual(4);
      expect(counts.machineConfigNode, name).toBeLessThanOrEqual(8);
      expect(counts.journal, name).toBeLessThanOrEqual(4);
      // The state process writes chapters: one write when they open, one when they close.
      expect(Object.values(counts).reduce((sum, count) => sum + count, 0) + 2, name).toBeLessThanOrEqual(25);
      // A roll-out without counted requests would keep every budget.
      expect(Math.min(counts.node, counts.drain, counts.machineConfigNode, counts.journal), name).toBeGreaterThan(1);
    }
  });

  test("sends at most 40 KiB for each machine, its chapter included; the controllers' shared journal gets one append in ten seconds [simulation-write-budget-4]", () => {
    const kib = (writes: readonly Write[]) => writes.reduce((sum, { bytes }) => sum + bytes, 0) / 1024;
    const shared = told.writes.filter(({ name }) => name === journals.controller);
    const own = told.writes.filter((write) => !shared.includes(write));
    // Events and the pool count, too.
    expect(kib(own) / workers.length).toBeLessThanOrEqual(40);
    const chapterKib = 12;
    for (const name of workers)
      expect(
        kib(own.filter((write) => write.name === name || write.name === journalOfNode(name))) + chapterKib,
        name,
      ).toBeLessThanOrEqual(40);
    expect(kib(shared) / workers.length).toBeLessThanOrEqual(5);
    expect(shared.length).toBeGreaterThan(0);
    for (const [index, { at }] of shared.entries())
      expect(at - (shared[index - 1]?.at ?? -Infinity)).toBeGreaterThanOrEqual(9_000);
  });

  test("passes through the conditions in order, and back to idle [simulation-write-budget-1]", () => {
    for (const name of workers) {
      const steps = changesOf(told.walks.get(name) ?? []);
      const entered = steps
        .flat()
        .filter((change) => !change.endsWith(" False"))
        .map((change) => change.split(" ")[0]);
      const order = [
        types.updatePrepared,
        types.cordoned,
        types.drained,
        types.appliedFiles,
        types.appliedFilesAndOS,
        types.updatePostActionComplete,
        types.rebootedNode,
        types.resumed,
        types.updated,
      ];
      const firsts = [...new Set(entered)].filter((type) => order.some((known) => known === type));
      // Conditions of one version come in the order of the list, whatever that is.
      const stepOf = (type: string) =>
        steps.findIndex((step) => step.some((change) => change.startsWith(`${type} `) && !change.endsWith(" False")));
      expect(firsts.toSorted(), name).toEqual(order.toSorted());
      expect(order.map(stepOf), name).toEqual(order.map(stepOf).toSorted((a, b) => a - b));
      expect(steps[0], name).toContain("Updated False");
      expect(
        (told.walks.get(name) ?? [])
          .at(-1)
          ?.filter(({ status }) => status !== "False")
          .map(({ type }) => type)
          .toSorted(),
        name,
      ).toEqual(["Resumed", "Updated"]);
    }
  });

  test("changes the time of a condition exactly when its status changes [simulation-write-budget-2]", () => {
    for (const name of workers) {
      for (const [index, conditions] of (told.walks.get(name) ?? []).entries()) {
        const before = told.walks.get(name)?.[index - 1];
        for (const condition of conditions) {
          const was = before?.find(({ type }) => type === condition.type);
          if (was !== undefined && was.status === condition.status)
            expect(condition.lastTransitionTime, `${name} ${condition.type}`).toBe(was.lastTransitionTime);
        }
      }
    }
  });
});

describe("an update without reboot", () => {
  test.for([
    { path: "/etc/test/quiet", outcome: "None" },
    { path: "/etc/test/reload", outcome: "ServiceReloaded" },
  ])(
    "of $path reports that no drain was needed, and the action: $outcome [simulation-write-budget-5]",
    { timeout: 600_000 },
    async ({ path, outcome }) => {
      const { writes, walks } = await rollOut(path);
      const messageOf = (type: string) =>
        walks
          .get("worker-0")
          ?.at(-1)
          ?.find((condition) => condition.type === type)?.message ?? "";
      expect(messageOf(types.drained)).toMatch(/^last: NotRequired, target rendered-worker-[0-9a-f]+, ended 2026-/);
      for (const type of [
        types.cordoned,
        types.rebootedNode,
        types.uncordoned,
        types.updateComplete,
        types.imagePulledFromRegistry,
      ])
        expect(messageOf(type), type).toMatch(/^last: NotRequired, target /);
      for (const type of [types.appliedFiles, types.updateExecuted])
        expect(messageOf(type), type).toMatch(/^last: Succeeded, [0-9].*, target /);
      expect(messageOf(types.updatePostActionComplete)).toContain(`: ${outcome}: `);
      expect(writes.filter(({ by }) => by === fieldManagers.drain)).toEqual([]);
    },
  );

  test(
    "differs in its conditions from one with a reboot [simulation-write-budget-6]",
    { timeout: 600_000 },
    async () => {
      const { walks } = await rollOut("/etc/test/reboot");
      const last = walks.get("worker-0")?.at(-1);
      expect(last?.find(({ type }) => type === types.updatePostActionComplete)?.message).toMatch(/: Rebooted$/);
      for (const type of [types.cordoned, types.drained, types.rebootedNode, types.appliedFiles, types.updateExecuted])
        expect(last?.find((condition) => condition.type === type)?.message, type).toMatch(
          /^last: Succeeded, [0-9].*, target /,
        );
      expect(last?.find(({ type }) => type === types.uncordoned)?.message).toMatch(/^last: uncordoned /);
    },
  );
});
