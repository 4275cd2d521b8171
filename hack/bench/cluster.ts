import { readFileSync, readdirSync } from "node:fs";
import { MachineConfig, MachineConfigPool, kubernetes, names } from "../../src/api/index.ts";
import { TestCluster, annotation, machineConfig } from "../../test/support/test-cluster.ts";
import { type Summary, summary } from "./statistics.ts";

export interface UpMetrics {
  readonly controlPlane: number;
  readonly workers: number;
  /** As `mco up` counts: from its start, bundling included, until every machine is in service on its pool's target. */
  readonly seconds: readonly number[];
}

/** Resident memory in MiB (VmRSS of proc(5)); `anonymous` is its private part (RssAnon). */
export interface Memory {
  readonly process: string;
  readonly resident: number;
  readonly anonymous: number;
}

export interface MemorySnapshot {
  readonly when: string;
  readonly processes: readonly Memory[];
}

export interface RollOutMetrics {
  readonly writeToDesiredConfigMs: readonly number[];
  readonly writeToDesiredConfig: Summary;
  /** A file that no policy names: three workers one after the other, each with drain and reboot. */
  readonly rebootRollOutSeconds: number;
  readonly memory: readonly MemorySnapshot[];
}

const shape = { controlPlane: 1, workers: 3 };

export async function measureUp(runs: number, tell: (line: string) => void): Promise<UpMetrics> {
  const seconds: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    const cluster = await TestCluster.start(shape);
    seconds.push(Math.round(cluster.secondsToUp * 100) / 100);
    tell(`mco up, run ${run + 1}: ${cluster.secondsToUp.toFixed(1)} s`);
    await cluster.stop();
  }
  return { ...shape, seconds };
}

/** Every process of the cluster in a folder, by what it is. */
export function memoryOf(directory: string): readonly Memory[] {
  const found: Memory[] = [];
  for (const pid of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      const program = args.findIndex(
        (word) => word === `${directory}/bin/mco.mjs` || (word.endsWith("src/cli/main.ts") && args.includes(directory)),
      );
      if (program < 0) continue;
      const verb = args[program + 1] ?? "";
      const on =
        verb === "host" ? args[program + 3] : verb === "daemon" ? args[args.indexOf("--node-name") + 1] : undefined;
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      const mib = (key: string) =>
        Math.round((Number(new RegExp(`^${key}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1024) * 10) / 10;
      found.push({
        process: on === undefined ? verb : `${verb} ${on}`,
        resident: mib("VmRSS"),
        anonymous: mib("RssAnon"),
      });
    } catch {
      // It ended while it was looked at.
    }
  }
  return found.toSorted((a, b) => (a.process < b.process ? -1 : 1));
}

/**
 * Writes MachineConfigs and waits for the first node with a target; samples the memory of every process meanwhile.
 */
export async function measureRollOuts(
  {
    writes,
    idleSeconds,
    idleSteps,
  }: { readonly writes: number; readonly idleSeconds: number; readonly idleSteps: number },
  tell: (line: string) => void,
): Promise<RollOutMetrics> {
  const cluster = await TestCluster.start(shape);
  try {
    const memory: MemorySnapshot[] = [];
    const look = (when: string) => {
      const processes = memoryOf(cluster.directory);
      memory.push({ when, processes });
      const daemons = processes.filter(({ process }) => process.startsWith("daemon")).map(({ resident }) => resident);
      tell(`memory ${when}: daemons ${daemons.join(", ")} MiB`);
    };
    look("after start");

    const name = "99-worker-bench";
    const keys = (text: string) =>
      machineConfig(
        name,
        {},
        { config: { passwd: { users: [{ name: "core", sshAuthorizedKeys: [`ssh-ed25519 AAAA ${text}`] }] } } },
      );
    const took: number[] = [];
    for (let write = 0; write < writes; write += 1) {
      const before = await cluster.target("worker");
      const stop = new AbortController();
      const list = await cluster.kube.list(kubernetes.Node);
      const known = new Map(
        list.items.map((node) => [node.metadata.name, annotation(node, names.annotations.desiredConfig)]),
      );
      const told = (async () => {
        for await (const event of cluster.kube.watch(
          kubernetes.Node,
          {},
          { resourceVersion: list.resourceVersion, timeoutSeconds: 300 },
          stop.signal,
        )) {
          if (event.type === "BOOKMARK" || event.type === "DELETED") continue;
          const desired = annotation(event.object, names.annotations.desiredConfig);
          if (desired !== known.get(event.object.metadata.name)) return performance.now();
        }
        throw new Error("no node was told");
      })();
      const began = performance.now();
      if (write === 0) await cluster.kube.create(MachineConfig, keys("0") as never);
      else
        await cluster.kube.patch(MachineConfig, { name }, { type: "merge", body: { spec: keys(String(write)).spec } });
      const ms = (await told) - began;
      stop.abort();
      took.push(Math.round(ms));
      tell(`write ${write + 1}: first node's new desiredConfig after ${ms.toFixed(0)} ms`);
      await cluster.untilRolledOut("worker", before);
    }
    look(`after ${writes} roll-outs without reboot`);

    const before = await cluster.target("worker");
    const began = performance.now();
    await cluster.kube.create(
      MachineConfig,
      machineConfig("99-worker-bench-file", { "/etc/bench.conf": "x" }) as never,
    );
    await cluster.untilRolledOut("worker", before, 300);
    const rebootRollOutSeconds = Math.round((performance.now() - began) / 100) / 10;
    tell(`roll-out with reboots: ${rebootRollOutSeconds} s`);
    look("after a roll-out with reboots");
    for (let step = 1; step <= idleSteps; step += 1) {
      await new Promise((resolve) => setTimeout(resolve, (idleSeconds * 1000) / idleSteps));
      look(`${Math.round((idleSeconds * step) / idleSteps)} s idle`);
    }
    const pool = await cluster.kube.get(MachineConfigPool, { name: "worker" });
    if (pool?.status?.updatedMachineCount !== shape.workers) throw new Error("the pool did not stay updated");
    return { writeToDesiredConfigMs: took, writeToDesiredConfig: summary(took), rebootRollOutSeconds, memory };
  } finally {
    await cluster.stop();
  }
}
