import type { JournalLine } from "../../src/api/books/journal-line.ts";
import { ClusterOperator } from "../../src/api/foreign/cluster-operator.ts";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../../src/api/kinds/machine-configuration.ts";
import { MachineStateBook } from "../../src/api/books/machine-state-book.ts";
import { type Chapter, MachineStateChapter } from "../../src/api/books/machine-state-chapter.ts";
import { MachineStateJournal } from "../../src/api/books/machine-state-journal.ts";
import { annotations, labels, namespace, objects } from "../../src/api/names.ts";
import { type Condition, conditionOf } from "../../src/api/schema/object.ts";
import type { JournalEntry } from "../../src/api/books/report-table.ts";
import { appendLines, lineOf } from "../../src/core/books/journal.ts";
import type { StateChild } from "../../src/core/operator/state-settings.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import type { KeeperChild } from "../../src/state/child.ts";
import { StateController } from "../../src/state/state-controller.ts";
import { inProcessCluster } from "../simulation/in-process-cluster.ts";
import { Kernel } from "../simulation/kernel.ts";
import { VirtualHarness } from "./virtual-harness.ts";

/** A write that changed an object. */
export interface Write {
  readonly by: string;
  readonly method: string;
  readonly kind: string;
  readonly name: string;
  readonly bytes: number;
  readonly at: number;
}

/** For tests that span a long time: renews a lease now and then. */
export const patientLease = { leaseSeconds: 3600, renewSeconds: 3000, retrySeconds: 600 } as const;

/** Writes lines in a test, numbered as a journal numbers them. */
export class TestWriter {
  readonly #harness: StateHarness;
  readonly #journal: string;
  readonly #who: { readonly component: string; readonly instance: string };
  readonly #sent: JournalLine[] = [];
  boot = "boot-1";
  seq = 0;

  constructor(harness: StateHarness, journal: string, who: { readonly component: string; readonly instance: string }) {
    this.#harness = harness;
    this.#journal = journal;
    this.#who = who;
  }

  /** Lines as they would be written now, or a while ago. */
  lines(lines: readonly JournalEntry[], agoMs = 0): readonly JournalLine[] {
    const { clock } = this.#harness.kernel;
    return lines.map((line) =>
      lineOf(line, {
        writer: this.#who,
        boot: this.boot,
        number: { seq: (this.seq += 1) },
        at: clock.now() - agoMs,
        mono: clock.monotonic() - agoMs,
      }),
    );
  }

  /** Puts lines into the journal, as a component does. */
  async report(...lines: readonly JournalEntry[]): Promise<void> {
    await this.append(this.lines(lines));
  }

  async append(lines: readonly JournalLine[]): Promise<void> {
    this.#sent.push(...lines);
    const { kube } = this.#harness;
    const journal = await kube.get(MachineStateJournal, { name: this.#journal });
    if (journal === undefined) throw new Error(this.#journal);
    const added = appendLines(journal.spec, lines);
    if (added !== undefined)
      await kube.patch(
        MachineStateJournal,
        { name: this.#journal },
        { type: "json", operations: [...added.operations] },
      );
  }
}

/** The state process in virtual time on an API server in memory, with objects that a test controls. */
export class StateHarness extends VirtualHarness {
  /** Of the state process alone. */
  readonly writes: Write[] = [];
  controller: StateController | undefined;
  /** Replaces children. */
  plant: Partial<Record<StateChild, (own: () => KeeperChild) => KeeperChild>> = {};
  /** The answer to requests of the state process; `undefined`: the server answers. */
  refuse: ((target: string, method: string) => boolean) | undefined;

  static async make(): Promise<StateHarness> {
    const kernel = new Kernel(11);
    const harness = new StateHarness(kernel, await kernel.complete(inProcessCluster(kernel), 60_000));
    const { kube } = harness;
    await harness.act(async () => {
      await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
      await kube.apply(
        MachineConfiguration,
        { metadata: { name: "cluster" }, spec: { managementState: "Managed" } },
        { owner: "mco-operator" },
      );
      await kube.patch(
        MachineConfiguration,
        { name: "cluster" },
        { type: "merge", body: { status: { observedGeneration: 1 } } },
        { subresource: "status" },
      );
      await kube.create(ClusterOperator, {
        apiVersion: ClusterOperator.apiVersion,
        kind: "ClusterOperator",
        metadata: { name: objects.clusterOperator },
        spec: {},
      });
      for (const name of ["operator", "controller", "server", "os-builder"]) await harness.journal(name);
      for (const name of ["master", "worker"]) await harness.pool(name);
    });
    // Objects made now existed long before the state process.
    await harness.pass(60_000);
    return harness;
  }

  journal(name: string) {
    return this.kube.create(MachineStateJournal, {
      apiVersion: MachineStateJournal.apiVersion,
      kind: MachineStateJournal.kind,
      metadata: { name },
      spec: { lines: [], last: [] },
    });
  }

  pool(name: string) {
    return this.kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: "MachineConfigPool",
      metadata: { name },
      spec: {
        machineConfigSelector: { matchLabels: { [labels.role]: name } },
        nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } },
        configuration: { name: `rendered-${name}-1` },
      },
    });
  }

  /** A node with its pool's configuration and the objects that the operator makes for it. */
  async node(name: string, pool = "worker"): Promise<TestWriter> {
    const config = `rendered-${pool}-1`;
    const made = await this.kube.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name,
        labels: { [`node-role.kubernetes.io/${pool}`]: "" },
        annotations: {
          [annotations.currentConfig]: config,
          [annotations.desiredConfig]: config,
          [annotations.state]: "Done",
        },
      },
      spec: {},
    });
    await this.kube.patch(
      kubernetes.Node,
      { name },
      {
        type: "merge",
        body: {
          status: {
            conditions: [
              { type: "Ready", status: "True", lastTransitionTime: new Date(this.kernel.clock.now()).toISOString() },
            ],
          },
        },
      },
      { subresource: "status" },
    );
    const ownerReferences = [{ apiVersion: "v1", kind: "Node", name, uid: made.metadata.uid ?? "" }];
    await this.kube.create(MachineConfigNode, {
      apiVersion: MachineConfigNode.apiVersion,
      kind: MachineConfigNode.kind,
      metadata: { name, ownerReferences },
      spec: { node: { name }, pool: { name: pool }, configVersion: { desired: config } },
    });
    await this.journal(`node-${name}`);
    await this.kernel.clock.sleep(2000);
    return this.daemon(name);
  }

  daemon(name: string): TestWriter {
    return new TestWriter(this, `node-${name}`, { component: "daemon", instance: name });
  }

  component(name: string): TestWriter {
    return new TestWriter(this, name, { component: name, instance: `${name}-0` });
  }

  settings(data: Record<string, string>) {
    return this.kube.apply(
      kubernetes.ConfigMap,
      { metadata: { name: objects.stateConfig, namespace }, data },
      { owner: "people" },
    );
  }

  /** Puts the other components into their healthy state, and renews their leases. */
  async well(): Promise<void> {
    const { kube, kernel } = this;
    const named = (name: string) => ({ name, namespace, annotations: { [annotations.releaseImageVersion]: "1.0.0" } });
    for (const name of [objects.operator, objects.controller]) {
      const made = await kube.create(kubernetes.Deployment, {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: named(name),
        spec: {
          replicas: 1,
          selector: { matchLabels: { a: name } },
          template: { metadata: { labels: { a: name } }, spec: { containers: [{ name: "c", image: "i" }] } },
        },
      });
      await kube.patch(
        kubernetes.Deployment,
        { name, namespace },
        {
          type: "merge",
          body: {
            status: {
              observedGeneration: made.metadata.generation,
              replicas: 1,
              updatedReplicas: 1,
              readyReplicas: 1,
              availableReplicas: 1,
            },
          },
        },
        { subresource: "status" },
      );
    }
    const made = await kube.create(kubernetes.DaemonSet, {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: named(objects.daemon),
      spec: {
        selector: { matchLabels: { a: "d" } },
        template: { metadata: { labels: { a: "d" } }, spec: { containers: [{ name: "c", image: "i" }] } },
      },
    });
    await kube.patch(
      kubernetes.DaemonSet,
      { name: objects.daemon, namespace },
      {
        type: "merge",
        body: {
          status: {
            observedGeneration: made.metadata.generation,
            currentNumberScheduled: 1,
            numberMisscheduled: 0,
            desiredNumberScheduled: 1,
            updatedNumberScheduled: 1,
            numberReady: 1,
          },
        },
      },
      { subresource: "status" },
    );
    await kube.patch(
      ClusterOperator,
      { name: objects.clusterOperator },
      {
        type: "merge",
        body: {
          status: {
            conditions: [
              {
                type: "Degraded",
                status: "False",
                reason: "AsExpected",
                message: "",
                lastTransitionTime: "2026-01-01T00:00:00Z",
              },
            ],
            versions: [{ name: "operator", version: "1.0.0" }],
          },
        },
      },
      { subresource: "status" },
    );
    for (const name of ["master", "worker"])
      await kube.patch(
        MachineConfigPool,
        { name },
        { type: "merge", body: { status: { observedGeneration: 1 } } },
        { subresource: "status" },
      );
    for (const name of ["machine-config", objects.controller])
      await kube.create(kubernetes.Lease, {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name, namespace },
        spec: { holderIdentity: `${name}_0`, leaseDurationSeconds: 15 },
      });
    let turn = 0;
    const renew = () => {
      turn += 1;
      for (const name of ["machine-config", objects.controller])
        void kube.patch(
          kubernetes.Lease,
          { name, namespace },
          { type: "merge", body: { spec: { renewTime: `2026-01-01T00:00:00.${String(turn).padStart(6, "0")}Z` } } },
        );
      kernel.schedule(10_000, "leases", renew);
    };
    renew();
  }

  /** Starts a state process. `kill` ends it like a crash: it sends nothing more. */
  start(
    identity = "state-0",
    lease: { readonly leaseSeconds: number; readonly renewSeconds: number; readonly retrySeconds: number } = {
      leaseSeconds: 15,
      renewSeconds: 10,
      retrySeconds: 2,
    },
  ): { readonly stop: () => Promise<void>; readonly kill: () => void; readonly controller: StateController } {
    const stopping = new AbortController();
    let isDead = false;
    const transport = this.cluster.transport;
    const kube = this.cluster.client(async (request, signal) => {
      if (isDead) return new Promise(() => undefined);
      if (this.refuse?.(request.target, request.method) === true)
        return {
          status: 503,
          headers: {},
          body: JSON.stringify({ kind: "Status", code: 503, reason: "ServiceUnavailable", message: "away" }),
        };
      const [, kind = "", name = ""] =
        /\/([a-z]+)\/?([^/?]*)(?:\/status)?(?:\?|$)/.exec(request.target.replace("/status", "")) ?? [];
      const before = request.method === "GET" ? undefined : await this.#versionOf(request.target);
      const response = await transport(request, signal);
      if (
        request.method !== "GET" &&
        response.status < 300 &&
        !request.target.includes("/leases") &&
        before !== (await this.#versionOf(request.target))
      ) {
        this.writes.push({
          by: /fieldManager=([^&]*)/.exec(request.target)?.[1] ?? "",
          method: request.method,
          kind,
          name,
          bytes: typeof request.body === "string" ? request.body.length : 0,
          at: this.kernel.now,
        });
      }
      return response;
    });
    const ports = { clock: this.kernel.clock, random: this.kernel.random, log: silentLogger, journal: memoryJournal() };
    const events = createEventRecorder({ ...ports, kube, component: "machine-state-controller" });
    const controller = new StateController({
      ...ports,
      kube,
      events,
      identity,
      version: "1.0.0",
      lease,
      plant: (name, own) => this.plant[name]?.(own) ?? own(),
    });
    this.controller = controller;
    const running = controller.run(stopping.signal);
    void running.catch(() => undefined);
    return {
      controller,
      stop: () => {
        stopping.abort(new Error("asked to stop"));
        return this.kernel.complete(running, 60_000);
      },
      kill: () => {
        isDead = true;
        stopping.abort(new Error("killed"));
      },
    };
  }

  async #versionOf(target: string): Promise<string | undefined> {
    const response = await this.cluster.transport(
      { method: "GET", target: target.replace(/\?.*/, "").replace(/\/status$/, ""), headers: {} },
      new AbortController().signal,
    );
    return typeof response.body === "string" && response.status < 300
      ? (JSON.parse(response.body) as { metadata: { resourceVersion?: string } }).metadata.resourceVersion
      : undefined;
  }

  async chapters(book: string): Promise<readonly Chapter[]> {
    const { items } = await this.act(() => this.kube.list(MachineStateChapter));
    return items
      .map(({ spec }) => spec)
      .filter((spec) => spec.book === book)
      .sort((a, b) => a.number - b.number);
  }

  async index(name: string): Promise<MachineStateBook["spec"] | undefined> {
    return (await this.act(() => this.kube.get(MachineStateBook, { name })))?.spec;
  }

  async condition(type: string): Promise<Condition | undefined> {
    const object = await this.act(() => this.kube.get(MachineConfiguration, { name: "cluster" }));
    return conditionOf(object?.status?.conditions as Condition[] | undefined, type);
  }
}

/** The lines of a daemon and the controllers for an update without trouble, in their order. */
export function updateLines(
  node: string,
  target: string,
): { readonly begun: readonly JournalEntry[]; readonly rest: readonly JournalEntry[] } {
  const here = { book: `node/${node}`, chapter: "Update", run: target, level: "boundary", message: "…" } as const;
  return {
    begun: [
      {
        ...here,
        path: "Requested",
        mark: "begin",
        reason: "TargetSeen",
        data: { from: "rendered-worker-1", to: target },
      },
      { ...here, path: "Prepared", mark: "begin", reason: "Checking" },
      { ...here, path: "Prepared", mark: "end", reason: "Planned" },
    ],
    rest: [
      { ...here, path: "Executed/Cordoned", mark: "end", reason: "Cordoned" },
      { ...here, path: "Executed/Drained", mark: "begin", reason: "Draining" },
      { ...here, path: "Executed/Drained", mark: "end", reason: "Drained" },
      { ...here, path: "Executed/Files", mark: "begin", reason: "Writing" },
      { ...here, path: "Executed/Files", mark: "end", reason: "Written" },
      { ...here, path: "PostAction/Rebooted", mark: "begin", reason: "RebootRequested" },
      { ...here, path: "PostAction/Rebooted", mark: "end", reason: "Rebooted" },
      { ...here, path: "Resumed", mark: "end", reason: "Resumed" },
      { ...here, path: "Complete/Uncordoned", mark: "end", reason: "Uncordoned" },
      { ...here, path: "Updated", mark: "end", reason: "Succeeded" },
    ],
  };
}
