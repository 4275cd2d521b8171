import { expect, test } from "vitest";
import {
  ControllerConfig,
  MachineConfig,
  MachineConfigNode,
  MachineConfigPool,
  MachineConfiguration,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { McoError } from "../../src/api/errors.ts";
import { isInvalid } from "../../src/kube/kube-error.ts";
import { snapshotOf } from "../support/agreement-snapshot.ts";
import { Simulation } from "./simulation.ts";

const { annotations, labels } = names;

/** Values that somebody types into a field that wants another. */
const wrongValues = [
  "",
  "abc",
  "-1",
  "true",
  "rendered-worker-00000000000000000000000000000000",
  "[]",
  "{",
  '[{"config":1}]',
  "drain-",
  "2026-13-45T99:99:99Z",
  "os/other@sha256:0",
  "x".repeat(5000),
] as const;

/** Everything that the suite keeps in annotations of Nodes. */
const nodeKeys = [
  annotations.currentConfig,
  annotations.desiredConfig,
  annotations.state,
  annotations.reason,
  annotations.desiredDrain,
  annotations.lastAppliedDrain,
  annotations.desiredImage,
  annotations.currentImage,
  annotations.cordonedFor,
  annotations.drainSkipped,
  annotations.postConfigAction,
  annotations.controlPlaneTopology,
] as const;
const poolKeys = [
  annotations.quarantined,
  annotations.rolloutCanary,
  annotations.canarySeconds,
  annotations.optOutAfter,
] as const;

/** One clumsy act of an administrator; refusals are fine, and counted. */
async function act(simulation: Simulation, done: Record<string, number>): Promise<void> {
  const { kernel, kube, keeper } = simulation;
  const any = <T>(list: readonly T[]): T => {
    const one = list[Math.floor(kernel.random.next() * list.length)];
    if (one === undefined) throw new Error("an empty list");
    return one;
  };
  const node = any([...keeper.nodes.objects.keys()]);
  const pool = any(["worker", "master"]);
  const value = any(wrongValues);
  const merge = (body: object) => ({ type: "merge", body }) as const;
  const note = (key: string) => merge({ metadata: { annotations: { [key]: kernel.chance(0.3) ? null : value } } });
  const base = (text: string, source = `data:,${text}`, version = "3.4.0") => ({
    apiVersion: MachineConfig.apiVersion,
    kind: "MachineConfig",
    metadata: { name: `70-${pool}-clumsy`, labels: { [labels.role]: pool } },
    spec: {
      config: {
        ignition: { version },
        storage: { files: [{ path: "/etc/test/base", mode: 0o644, overwrite: true, contents: { source } }] },
      },
    },
  });
  const acts: Readonly<Record<string, () => Promise<unknown>>> = {
    "annotates a Node": () => kube.patch(kubernetes.Node, { name: node }, note(any(nodeKeys))),
    "annotates a pool": () => kube.patch(MachineConfigPool, { name: pool }, note(any(poolKeys))),
    "annotates a MachineConfigNode": () =>
      kube.patch(MachineConfigNode, { name: node }, note(any([annotations.refusedTargets, annotations.givenConfigs]))),
    "sets maxUnavailable": () =>
      kube.patch(
        MachineConfigPool,
        { name: pool },
        merge({ spec: { maxUnavailable: any(["abc", "0%", "1000%", 0, -1, 3, "50%"]) } }),
      ),
    "pauses or resumes": () =>
      kube.patch(MachineConfigPool, { name: pool }, merge({ spec: { paused: kernel.chance(0.4) } })),
    "takes a role label away": () =>
      kube.patch(kubernetes.Node, { name: node }, merge({ metadata: { labels: { [labels.workerRole]: null } } })),
    "gives a role label": () =>
      kube.patch(kubernetes.Node, { name: node }, merge({ metadata: { labels: { [labels.workerRole]: "" } } })),
    "cordons or uncordons": () =>
      kube.patch(kubernetes.Node, { name: node }, merge({ spec: { unschedulable: kernel.chance(0.5) } })),
    "removes a MachineConfigNode": () => kube.delete(MachineConfigNode, { name: node }),
    "moves a MachineConfigNode": () =>
      kube.patch(MachineConfigNode, { name: node }, merge({ spec: { pool: { name: any(["worker", "none"]) } } })),
    "removes a MachineConfig": () => kube.delete(MachineConfig, { name: any([...keeper.configs.objects.keys()]) }),
    "writes a MachineConfig": () =>
      kube.apply(MachineConfig, base(`v${kernel.events}`) as never, { owner: "people", force: true }),
    "writes a broken MachineConfig": () =>
      kube.apply(
        MachineConfig,
        base("x", any(["data:;base64,***", "", "data:,ok"]), any(["3.4.0", "9.9.9", "2.0.0"])) as never,
        { owner: "people", force: true },
      ),
    "selects nothing": () =>
      kube.patch(
        MachineConfigPool,
        { name: pool },
        merge({ spec: { machineConfigSelector: { matchLabels: { [labels.role]: any([pool, "nobody"]) } } } }),
      ),
    "changes the ControllerConfig": () =>
      kube.patch(
        ControllerConfig,
        { name: names.objects.controllerConfig },
        merge({ spec: { baseOSContainerImage: any(["os/stock@sha256:0", "os/unknown@sha256:1"]) } }),
      ),
    "changes the MachineConfiguration": () =>
      kube.patch(
        MachineConfiguration,
        { name: "cluster" },
        merge({ metadata: { annotations: { x: value.slice(0, 9) } } }),
      ),
    "kills a controller": () => Promise.resolve(simulation.killController()),
    "kills a daemon": () => Promise.resolve(simulation.machines.get(node)?.killDaemon()),
  };
  const name = any(Object.keys(acts));
  kernel.note(`clumsy: ${name} ${node} ${pool} ${value.slice(0, 20)}`);
  try {
    await acts[name]?.();
    done[name] = (done[name] ?? 0) + 1;
  } catch (error) {
    if (isInvalid(error)) done["is refused"] = (done["is refused"] ?? 0) + 1;
  }
}

/** What is not settled and has no remedy, in words. */
function unexplained(simulation: Simulation): readonly string[] {
  const { pools, nodes, machineConfigNodes, configs } = simulation.keeper;
  const { explained = [] } = snapshotOf({
    now: simulation.kernel.clock.now(),
    pools: [...pools.objects.values()],
    nodes: [...nodes.objects.values()],
    machineConfigNodes: [...machineConfigNodes.objects.values()],
    machineConfigs: [...configs.objects.values()],
    chapters: new Map(),
    clusterOperator: "as the operator would",
  });
  const settled = new Set(["Done", "HasTarget"]);
  return explained.flatMap(({ json, text }) =>
    settled.has(json.reason) || json.todo.length > 0 ? [] : [`${json.subject}: ${json.reason}\n${text}`],
  );
}

const refusal = "MCO_CONFIG_NOT_DELIVERED";
/** What holds whatever people do: everything that they see describes one state, and nothing is claimed that did not happen. */
const always: ReadonlySet<number> = new Set([24, 26]);
/** Moments at which everything must agree, in the 6 clusters of `make test`. */
const momentsOfAll = 5000;
/** `CLUMSY=n`: so many clusters. */
const seeds = Number(process.env["CLUMSY"] ?? 6);

test(
  "a cluster in clumsy hands says one thing everywhere, and ends settled, or says of everything that is not why and what to do [simulation-clumsy-1]",
  { timeout: 3_600_000 },
  async () => {
    const done: Record<string, number> = {};
    const found: string[] = [];
    let moments = 0;
    for (let seed = 1; seed <= seeds; seed += 1) {
      const simulation = new Simulation({ seed, workers: 3, faults: false });
      await simulation.setUp();
      await simulation.kernel.run({ until: () => simulation.keeper.isQuiet, maxMs: 15 * 60_000 });
      for (let acts = 0; acts < 25; acts += 1) {
        await simulation.pass(simulation.kernel.between(1000, 60_000));
        await simulation.act(act(simulation, done));
      }
      await simulation.pass(60 * 60_000);
      moments += simulation.keeper.checks.agreements;
      const broken = simulation.keeper.violations.filter(({ invariant }) => always.has(invariant));
      found.push(...broken.map(({ invariant, what }) => `seed ${seed}: invariant ${invariant}: ${what}`));
      found.push(...unexplained(simulation).map((text) => `seed ${seed}: ${text}`));
      // What the config server refuses to a machine ends no process.
      const ended = simulation.failures.filter((error) => !(error instanceof McoError && error.code === refusal));
      found.push(...ended.map((error) => `seed ${seed}: a process ended: ${String(error)}`));
    }
    expect(found).toEqual([]);
    if (seeds < 6) return;
    // Nearly each act happened, and something was refused.
    expect(Object.keys(done).length).toBeGreaterThanOrEqual(17);
    expect(moments).toBeGreaterThanOrEqual(momentsOfAll);
  },
);
