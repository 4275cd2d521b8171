import { describe, expect, test } from "vitest";
import { ClusterOperator } from "../api/foreign/cluster-operator.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { type JournalEntry, healthReasons } from "../api/books/report-table.ts";
import { completeLine } from "../api/books/short-lines.ts";
import { annotations, namespace, objects, poolConditions } from "../api/names.ts";
import { timestampOf } from "../api/schema/object.ts";
import { reportingFailures } from "../controller/report-failing.ts";
import { type HealthType, healthReasonKey, healthTypes } from "../core/operator/health.ts";
import type { Context, Controller } from "../kube/controller.ts";
import type { Report } from "../kube/report.ts";
import { reportTasks } from "../operator/operator-status.ts";
import { heldClock } from "../../test/support/held-clock.ts";
import { ServerHarness } from "../../test/support/server-harness.ts";
import { StateHarness } from "../../test/support/state-harness.ts";

const minutes = (count: number) => count * 60_000;
const merge = (body: object) => ({ type: "merge", body }) as const;
const status = { subresource: "status" } as const;

/** What is made of a cluster whose parts are well, so that a condition gets a reason. */
type Make = (harness: StateHarness) => Promise<unknown>;
interface Way {
  /** Before the state process starts. */
  readonly before?: Make;
  readonly make: Make;
}

const patched =
  (resource: Parameters<StateHarness["kube"]["patch"]>[0], name: string, body: object, of?: typeof status): Make =>
  ({ kube }) =>
    kube.patch(resource as typeof kubernetes.Deployment, { name, namespace }, merge(body), of);

const deployment = (name: string, body: object): Make => patched(kubernetes.Deployment, name, { status: body }, status);
const daemons = (body: object): Make => patched(kubernetes.DaemonSet, objects.daemon, { status: body }, status);
const operatorSays = (body: object): Make =>
  patched(ClusterOperator, objects.clusterOperator, { status: body }, status);
const leaseless = (name: string): Make => patched(kubernetes.Lease, name, { spec: { holderIdentity: "" } });
/** A Deployment of another release, of which its controller knows. */
const ofOldRelease =
  (name: string): Make =>
  async (harness) => {
    const { kube } = harness;
    const metadata = { annotations: { [annotations.releaseImageVersion]: "0.9.0" } };
    const { generation } = (await kube.patch(kubernetes.Deployment, { name, namespace }, merge({ metadata }))).metadata;
    await deployment(name, { observedGeneration: generation })(harness);
  };

/** A part of the suite that is there only when it is needed. */
const part =
  (kind: "Deployment" | "DaemonSet", name: string, is: "well" | "down" | "new"): Make =>
  async ({ kube }) => {
    const resource = kind === "Deployment" ? kubernetes.Deployment : (kubernetes.DaemonSet as never);
    const labels = { a: name };
    const made = await kube.create(resource, {
      apiVersion: "apps/v1",
      kind,
      metadata: { name, namespace, annotations: { [annotations.releaseImageVersion]: "1.0.0" } },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } },
      },
    });
    const up = is === "well" ? 1 : 0;
    const body = {
      observedGeneration: is === "new" ? 0 : made.metadata.generation,
      ...(kind === "Deployment"
        ? { replicas: 1, updatedReplicas: 1, readyReplicas: up, availableReplicas: up }
        : {
            currentNumberScheduled: 1,
            numberMisscheduled: 0,
            desiredNumberScheduled: 1,
            updatedNumberScheduled: 1,
            numberReady: up,
          }),
    };
    await kube.patch(resource, { name, namespace }, merge({ status: body }), status);
  };
const server = (is: "well" | "down" | "new") => part("DaemonSet", "machine-config-server", is);
const builder = (is: "well" | "down" | "new") => part("Deployment", "machine-os-builder", is);

/** The lines that a program's own code reports. */
function linesOf(work: (report: Report) => void): readonly JournalEntry[] {
  const lines: JournalEntry[] = [];
  work(((line: JournalEntry) => void lines.push(completeLine(line))) as unknown as Report);
  return lines;
}

/** A controller fails three times in a row for one object. */
const controllerFails: Make = async (harness) => {
  const lines: JournalEntry[] = [];
  const fails: Controller = {
    name: "render",
    watches: [] as unknown as Controller["watches"],
    owns: [],
    reconcile: () => Promise.reject(new Error("the template is broken")),
  };
  const report = ((line: JournalEntry) => void lines.push(completeLine(line))) as unknown as Report;
  const reporting = reportingFailures(fails, report, "c-1");
  const context = { signal: new AbortController().signal } as Context;
  for (let time = 0; time < 3; time += 1) await reporting.reconcile("worker", context).catch(() => undefined);
  await harness.component("controller").report(...lines);
};

/** A task of the operator fails before there is a ClusterOperator that says so. */
const taskFails: Make = async (harness) => {
  await harness.kube.delete(ClusterOperator, { name: objects.clusterOperator });
  const outcomes = [{ task: "RBAC", kind: "failed", message: "a role may not be written" }] as const;
  const lines = linesOf((report) =>
    reportTasks(outcomes, { report, memory: { failing: new Set() }, options: { identity: "o-1" } }),
  );
  await harness.component("operator").report(...lines);
};

/** What a config server says of its certificate, which ends within a week. */
const serverLines = async (): Promise<readonly JournalEntry[]> => {
  const harness = await ServerHarness.make();
  return (await harness.start({ clock: heldClock() })).journal.lines;
};

/** The lines as a server says them whose certificate ends as long after the harness's time as `clock`'s does after its own. */
const inTimeOf = (harness: StateHarness, lines: readonly JournalEntry[], now: number): readonly JournalEntry[] =>
  lines.map((line) => {
    const until = line.data?.["until"];
    if (until === undefined) return line;
    return {
      ...line,
      data: { ...line.data, until: timestampOf(Date.parse(String(until)) - now + harness.kernel.clock.now()) },
    };
  });

/** A daemon's pod on a machine whose kubelet is well. */
const daemonPod =
  (name: string, restarts: number, ago: number): Make =>
  async (harness) => {
    const { kube } = harness;
    await harness.node(name);
    const lastTransitionTime = timestampOf(harness.kernel.clock.now() - ago);
    await kube.create(kubernetes.Pod, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: `daemon-${name}`, namespace, labels: { "k8s-app": objects.daemon } },
      spec: { nodeName: name, containers: [{ name: "c", image: "i" }] },
    });
    const containerStatuses = [{ name: "c", ready: false, restartCount: restarts, image: "i", imageID: "i" }];
    const conditions = [{ type: "Ready", status: "False", lastTransitionTime }];
    const body = { phase: "Running", conditions, containerStatuses };
    await kube.patch(kubernetes.Pod, { name: `daemon-${name}`, namespace }, merge({ status: body }), status);
    await daemons({ desiredNumberScheduled: 1, numberReady: 0 })(harness);
  };

const refusedPool: Make = patched(
  MachineConfigPool,
  "worker",
  {
    status: {
      conditions: [
        {
          type: poolConditions.renderDegraded,
          status: "True",
          reason: "RenderRefused",
          message: "two files of one path",
          lastTransitionTime: timestampOf(0),
        },
      ],
    },
  },
  status,
);

const waitingBuild: Make = async (harness) => {
  await builder("well")(harness);
  await harness.kube.create(MachineOSBuild, {
    apiVersion: MachineOSBuild.apiVersion,
    kind: MachineOSBuild.kind,
    metadata: { name: "worker-1" },
    spec: {
      machineConfig: { name: "rendered-worker-1" },
      machineOSConfig: { name: "worker" },
      renderedImagePushSpec: "registry.example.com/os:1",
    },
  });
};

/** A machine that was given another configuration and works on it. */
const updatingMachine: Make = async (harness) => {
  await harness.node("worker-0");
  const { kube } = harness;
  const next = { [annotations.desiredConfig]: "rendered-worker-2", [annotations.state]: "Working" };
  await kube.patch(
    MachineConfigPool,
    { name: "worker" },
    merge({ spec: { configuration: { name: "rendered-worker-2" } } }),
  );
  await kube.patch(MachineConfigPool, { name: "worker" }, merge({ status: { observedGeneration: 2 } }), status);
  await kube.patch(kubernetes.Node, { name: "worker-0" }, merge({ metadata: { annotations: next } }));
  await kube.patch(
    MachineConfigNode,
    { name: "worker-0" },
    merge({ spec: { configVersion: { desired: "rendered-worker-2" } } }),
  );
};

/** The API server takes what the process writes, and tells it nothing: no watch opens, and no list answers. */
const silence: Way = {
  before: (harness) => {
    harness.refuse = (target) => target.includes("watch=");
    return Promise.resolve();
  },
  make: (harness) => {
    harness.refuse = (target, method) => method === "GET" && !target.includes("/leases/");
    return Promise.resolve();
  },
};
const well: Make = () => Promise.resolve();

type Reasons<T extends HealthType> = Exclude<(typeof healthReasons)[T][number], "Off">;
/** For each condition, the way to each of its reasons; `Off` is what an orderly stop leaves. */
const ways: { readonly [T in HealthType]: Readonly<Record<Reasons<T>, Way | Make>> } = {
  OperatorHealthy: {
    AsExpected: well,
    NotKnown: silence,
    InProgress: operatorSays({ versions: [] }),
    NotAvailable: deployment(objects.operator, { availableReplicas: 0 }),
    VersionSkew: operatorSays({ versions: [{ name: "operator", version: "0.9.0" }] }),
    SyncFailing: taskFails,
    SyncStalled: leaseless("machine-config"),
  },
  ControllerHealthy: {
    AsExpected: well,
    NotKnown: silence,
    InProgress: deployment(objects.controller, { observedGeneration: 0 }),
    NotAvailable: deployment(objects.controller, { availableReplicas: 0 }),
    VersionSkew: ofOldRelease(objects.controller),
    NoLeader: leaseless(objects.controller),
    ChildFailing: controllerFails,
    ChildStalled: patched(MachineConfigPool, "worker", { spec: { paused: true } }),
    RenderFailing: refusedPool,
  },
  DaemonsHealthy: {
    AsExpected: well,
    NotKnown: silence,
    InProgress: daemons({ observedGeneration: 0 }),
    DaemonSilent: daemonPod("worker-0", 0, minutes(10)),
    DaemonCrashLoop: daemonPod("worker-0", 3, 0),
    DaemonOldVersion: daemons({ updatedNumberScheduled: 0 }),
  },
  ServerHealthy: {
    AsExpected: server("well"),
    NotKnown: silence,
    InProgress: server("new"),
    NotNeeded: well,
    ServerDown: server("down"),
    CertExpiring: async (harness) => {
      await server("well")(harness);
      const clock = heldClock();
      await harness.component("server").report(...inTimeOf(harness, await endingCertificate, clock.now()));
    },
  },
  BuilderHealthy: {
    AsExpected: builder("well"),
    NotKnown: silence,
    InProgress: builder("new"),
    NotNeeded: well,
    BuilderDown: builder("down"),
    BuildQueueStuck: waitingBuild,
  },
  UpdateProgressing: { AsExpected: well, NotKnown: silence, PoolsUpdating: updatingMachine },
};
/** A real server answers in real time, before the time of a harness begins. */
let endingCertificate: Promise<readonly JournalEntry[]> = Promise.resolve([]);

describe("each verdict on the suite's health", () => {
  const rows = healthTypes.flatMap((type) =>
    Object.entries<Way | Make>(ways[type]).map(([reason, way]) => ({
      type,
      reason,
      way: typeof way === "function" ? { make: way } : way,
    })),
  );
  test.for(rows)("$type $reason comes from what the programs write [state-health-1]", async ({ type, reason, way }) => {
    if (reason === "CertExpiring") await (endingCertificate = serverLines());
    const harness = await StateHarness.make();
    await harness.act(() => harness.well());
    await harness.act(() => way.before?.(harness) ?? Promise.resolve());
    harness.start();
    await harness.pass(minutes(1));
    await harness.act(() => way.make(harness));
    // Work that waits for longer than some minutes is stuck.
    await harness.pass(minutes(7));
    const condition = await harness.condition(type);
    expect(healthReasonKey(condition?.reason ?? ""), JSON.stringify(condition)).toBe(reason);
    // What a condition says of the book is so.
    const named = /chapter (\w+) of the cluster's book/.exec(condition?.message ?? "")?.[1];
    if (named === undefined) return;
    const told = await harness.chapters("cluster");
    const open = told.filter(({ chapter, state }) => chapter === named && state === "Open");
    expect(open.flatMap(({ entries }) => entries.map((entry) => entry.reason))).toContain(reason);
  });

  test("is Off after an orderly stop [state-health-2]", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.well());
    const { stop } = harness.start();
    await harness.pass(minutes(1));
    await stop();
    for (const type of healthTypes) expect(await harness.condition(type)).toMatchObject({ reason: "Off" });
  });
});

describe("questions of the health of daemons", () => {
  /** Counts what the state process asks for, beside its watches. */
  function counted(harness: StateHarness): { lists: number; gets: number } {
    const asked = { lists: 0, gets: 0 };
    harness.refuse = (target, method) => {
      if (method === "GET" && /\/pods\?/.test(target) && !target.includes("watch=")) asked.lists += 1;
      if (method === "GET" && /\/leases\/machine-config(-controller)?$/.test(target)) asked.gets += 1;
      return false;
    };
    return asked;
  }
  const annotate = ({ kube }: StateHarness, key: string, value: string) =>
    kube.patch(kubernetes.Node, { name: "worker-0" }, merge({ metadata: { annotations: { [key]: value } } }));

  test("their number does not grow with the writes of a machine, and the last change is looked at soon [attack-rates-2]", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.well());
    await harness.act(() => daemonPod("worker-0", 0, minutes(1))(harness));
    const asked = counted(harness);
    harness.start();
    await harness.pass(35_000);
    expect(await harness.condition("DaemonsHealthy")).toMatchObject({ status: "True" });
    const before = { ...asked };
    expect(before.lists).toBeGreaterThan(0);
    for (let turn = 0; turn < 60; turn += 1) {
      await harness.act(() => annotate(harness, annotations.reason, String(turn)));
      await harness.pass(250);
    }
    // In 15 seconds at most two of each, where each change had one.
    expect(asked.lists - before.lists).toBeLessThanOrEqual(2);
    expect(asked.gets - before.gets).toBeLessThanOrEqual(4);

    // In the middle of such a time: what a list has not shown yet is seen ten seconds later at most.
    const crashed = [{ name: "c", ready: false, restartCount: 3, image: "i", imageID: "i" }];
    await harness.act(() =>
      patched(kubernetes.Pod as never, "daemon-worker-0", { status: { containerStatuses: crashed } }, status)(harness),
    );
    await harness.act(() => annotate(harness, annotations.reason, "last"));
    await harness.pass(11_500);
    expect(await harness.condition("DaemonsHealthy")).toMatchObject({ status: "False", reason: "DaemonCrashLoop" });
  });

  test("an annotation that no fact of a machine is made of causes none [attack-rates-3]", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.well());
    await harness.act(() => harness.node("worker-0"));
    const asked = counted(harness);
    harness.start();
    await harness.pass(15_000);
    const before = { ...asked };
    for (let turn = 0; turn < 8; turn += 1) {
      await harness.act(() => annotate(harness, annotations.pinnedImageSetsAnswer, String(turn)));
      await harness.pass(1000);
    }
    expect(asked).toEqual(before);
  });
});
