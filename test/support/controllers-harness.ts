import { onTestFinished } from "vitest";
import { createApiServer } from "../../src/standin/apiserver/server.ts";
import type { UserInfo } from "../../src/standin/apiserver/schema/contract.ts";
import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import { sharedSecretKeys } from "../../src/standin/apiserver/access/service-account-tokens.ts";
import { type Node, type Pod, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { type KubeObject, type Resource, conditionOf, keyOf } from "../../src/api/schema/object.ts";
import {
  type ClusterControllersOptions,
  runClusterControllers,
} from "../../src/standin/cluster/controllers/run-cluster-controllers.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { type KubeClient, type Selection, createKubeClient } from "../../src/kube/kube-client.ts";
import { WatchCache } from "../../src/kube/watch-cache.ts";
import type { HttpHandler } from "../../src/ports/http.ts";
import { type Clock, clockFrom } from "../../src/ports/clock.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import { notWithin } from "./not-within.ts";

/** How long a wait takes until it fails: a shared machine takes many times as long as a calm one. */
const patienceMs = 100_000;

/** The machine's clock, ahead by what a test skips. Timers that the skip passes fire at once. */
export function skippableClock(): Clock & { skip(milliseconds: number): void } {
  let skipped = 0;
  const timers = new Set<() => void>();
  return {
    ...clockFrom({
      now: () => systemClock.now() + skipped,
      monotonic: () => systemClock.monotonic() + skipped,
      after(milliseconds, run) {
        const due = systemClock.monotonic() + skipped + milliseconds;
        let cancel = () => undefined as void;
        const arm = () => {
          cancel = systemClock.after(Math.max(0, due - systemClock.monotonic() - skipped), () => {
            timers.delete(rearm);
            run();
          });
        };
        const rearm = () => {
          cancel();
          arm();
        };
        arm();
        timers.add(rearm);
        return () => {
          timers.delete(rearm);
          cancel();
        };
      },
    }),
    skip(milliseconds) {
      skipped += milliseconds;
      for (const rearm of timers) rearm();
    },
  };
}

export interface TestCluster {
  readonly kube: KubeClient;
  readonly clock: ReturnType<typeof skippableClock>;
  readonly signal: AbortSignal;
  /** A client that acts as another user. */
  as(user: UserInfo): KubeClient;
  /** Resolves with the first state of an object that `holds`; fails with the last one seen after 10 s of real time. */
  until<T extends KubeObject>(
    resource: Resource<T>,
    key: { name: string; namespace?: string },
    holds: (object: T | undefined) => boolean,
  ): Promise<T | undefined>;
  /** As `until`, for all objects of a kind. */
  untilAll<T extends KubeObject>(
    resource: Resource<T>,
    selection: Selection,
    holds: (objects: readonly T[]) => boolean,
  ): Promise<readonly T[]>;
  /** Lets time run fast, five seconds in ten milliseconds, until `work` ends; runs `eachStep` after each skip. */
  whileTimeFlies<T>(work: Promise<T>, eachStep?: () => Promise<void>): Promise<T>;
  /** Every pod that was ever made, by uid. */
  readonly podsMade: ReadonlySet<string>;
  /** Stops the controllers and runs new ones. */
  restart(): Promise<void>;
  /** Pods for which this is true never become ready. */
  neverReady: (pod: Pod) => boolean;
  /** Pods for which this gives an exit code end with it as soon as they run. */
  exitOf: (pod: Pod) => number | undefined;
  close(): Promise<void>;
}

export async function testCluster(
  options: {
    readonly nodes?: readonly Partial<Node>[];
    readonly between?: (next: HttpHandler) => HttpHandler;
    readonly controllers?: Partial<ClusterControllersOptions>;
  } = {},
): Promise<TestCluster> {
  const clock = skippableClock();
  const ports = { clock, random: systemRandom, log: silentLogger, journal: memoryJournal() };
  const server = createApiServer({
    store: memoryStore(),
    ...ports,
    tokenKeys: sharedSecretKeys(systemRandom.bytes(32)),
  });
  const transport = server.as({ name: "admin", groups: ["system:masters"] });
  const kube = createKubeClient({ transport, clock, random: systemRandom, userAgent: "test" });
  const ending = new AbortController();
  const { signal } = ending;

  for (const [index, node] of (options.nodes ?? []).entries())
    await addNode(kube, clock, { ...node, metadata: { name: `node-${index}`, ...node.metadata } });

  // The kubelets of all nodes.
  const podsMade = new Set<string>();
  const pods = new WatchCache<Pod>({ kube, resource: kubernetes.Pod, clock, random: systemRandom, log: silentLogger });
  const cluster = {
    kube,
    clock,
    signal,
    as: (user: UserInfo) =>
      createKubeClient({ transport: server.as(user), clock, random: systemRandom, userAgent: "test" }),
    podsMade,
    neverReady: (_: Pod): boolean => false,
    exitOf: (_: Pod): number | undefined => undefined,
  };
  const kubelet = async (pod: Pod): Promise<void> => {
    const { spec, metadata, status } = pod;
    if ((spec?.nodeName ?? "") === "") return;
    if (metadata.deletionTimestamp !== undefined) {
      await kube.delete(kubernetes.Pod, metadata, {
        gracePeriodSeconds: 0,
        ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
      });
      return;
    }
    const at = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
    const exit = cluster.exitOf(pod);
    const ready = exit === undefined && !cluster.neverReady(pod);
    const phase = exit === undefined ? "Running" : exit === 0 ? "Succeeded" : "Failed";
    if (status?.phase === phase || status?.phase === "Succeeded" || status?.phase === "Failed") return;
    const conditions = [
      ...(status?.conditions ?? []).filter(({ type }) => type !== "Ready"),
      { type: "Ready", status: ready ? "True" : "False", lastTransitionTime: at },
    ];
    await kube.patch(
      kubernetes.Pod,
      metadata,
      { type: "merge", body: { metadata: { uid: metadata.uid }, status: { phase, startTime: at, conditions } } },
      { subresource: "status" },
    );
  };
  pods.onChange(({ after }) => {
    if (after === undefined) return;
    podsMade.add(after.metadata.uid ?? "");
    kubelet(after).catch(() => undefined);
  });
  const running = [pods.run(signal)];

  let life = new AbortController();
  let controllers: Promise<void>;
  const start = () => {
    life = new AbortController();
    const controllerKube = createKubeClient({
      transport: options.between?.(transport) ?? transport,
      clock,
      random: systemRandom,
      userAgent: "controllers",
    });
    const events = createEventRecorder({ ...ports, kube: controllerKube, component: "cluster-controllers" });
    controllers = runClusterControllers(
      {
        ...ports,
        kube: controllerKube,
        events,
        rootCa: "the root",
        nodeMonitorGraceSeconds: 1e6,
        ...options.controllers,
      },
      life.signal,
    );
  };
  start();

  async function untilAll<T extends KubeObject>(
    resource: Resource<T>,
    selection: Selection,
    holds: (objects: readonly T[]) => boolean,
  ): Promise<readonly T[]> {
    const watching = new AbortController();
    const cache = new WatchCache<T>({
      kube,
      resource,
      selection,
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
    });
    let fail: (error: Error) => void = () => undefined;
    const cancel = systemClock.after(patienceMs, () =>
      fail(notWithin(patienceMs / 1000, `${resource.kind} as wanted`, cache.list(), 4000)),
    );
    try {
      return await new Promise((resolve, reject) => {
        fail = reject;
        const look = () => {
          if (holds(cache.list())) resolve(cache.list());
        };
        cache.run(watching.signal).catch(reject);
        cache.synced.then(() => {
          cache.onChange(look);
          look();
        }, reject);
      });
    } finally {
      cancel();
      watching.abort();
    }
  }

  return Object.assign(cluster, {
    untilAll,
    async until<T extends KubeObject>(
      resource: Resource<T>,
      key: { name: string; namespace?: string },
      holds: (object: T | undefined) => boolean,
    ): Promise<T | undefined> {
      const find = (objects: readonly T[]) => objects.find((object) => keyOf(object) === keyOf({ metadata: key }));
      const selection = {
        fieldSelector: `metadata.name=${key.name}`,
        ...(key.namespace === undefined ? {} : { namespace: key.namespace }),
      };
      return find(await untilAll(resource, selection, (objects) => holds(find(objects))));
    },
    async whileTimeFlies<T>(work: Promise<T>, eachStep?: () => Promise<void>): Promise<T> {
      let flying = true;
      const flight = (async () => {
        while (flying) {
          clock.skip(5_000);
          await eachStep?.();
          await systemClock.sleep(10);
        }
      })();
      try {
        return await work;
      } finally {
        flying = false;
        await flight;
      }
    },
    async restart() {
      life.abort();
      await controllers;
      start();
    },
    async close() {
      life.abort();
      ending.abort();
      await Promise.all([controllers, ...running]);
      server.close();
    },
  });
}

/** A node that is ready, labelled by its name. */
export async function addNode(
  kube: KubeClient,
  clock: Clock,
  node: Partial<Node> & { metadata: { name: string } },
): Promise<void> {
  const { name } = node.metadata;
  const made: Node = {
    apiVersion: "v1",
    kind: "Node",
    ...node,
    metadata: { ...node.metadata, labels: { "kubernetes.io/hostname": name, ...node.metadata.labels } },
  };
  await kube.create(kubernetes.Node, made);
  const at = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
  const status = {
    allocatable: { pods: "110" },
    conditions: [{ type: "Ready", status: "True", lastTransitionTime: at, lastHeartbeatTime: at }],
    ...node.status,
  };
  await kube.patch(kubernetes.Node, { name }, { type: "merge", body: { status } }, { subresource: "status" });
}

export const podIsReady = (pod: Pod): boolean =>
  conditionOf(pod.status?.conditions, "Ready")?.status === "True" && pod.metadata.deletionTimestamp === undefined;

export const template = (app: string, more: object = {}, labels: Record<string, string> = {}) => ({
  metadata: { labels: { app, ...labels } },
  spec: { containers: [{ name: "main", image: "mco.local/pause:1", ...more }] },
});

/** A cluster that ends with the test that starts it. */
export async function startCluster(...given: Parameters<typeof testCluster>): Promise<TestCluster> {
  const cluster = await testCluster(...given);
  onTestFinished(() => cluster.close());
  return cluster;
}

/** The namespace of the tests' objects. */
export const namespace = "default";
export const inDefault = { namespace };
