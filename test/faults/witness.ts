import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ClusterOperator, MachineConfigPool, type Node, kubernetes, names } from "../../src/api/index.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import { WatchCache } from "../../src/kube/watch-cache.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { type TestCluster, annotation } from "../support/test-cluster.ts";

const { annotations, namespace } = names;

/** One process of the suite, as it would differ after a restart. */
interface Running {
  readonly name: string;
  readonly id: string;
}

/** A container of a pod of the suite. */
interface Container {
  readonly pod: string;
  readonly node: string;
  readonly uid: string;
  readonly restarts: number;
  readonly id: string;
}

/** The state of processes and machines at one time. */
export interface Picture {
  readonly processes: readonly Running[];
  readonly containers: readonly Container[];
  readonly boots: Readonly<Record<string, number>>;
}

/** When a process led, in milliseconds since the epoch. */
interface Term {
  readonly who: string;
  readonly from: number;
  to: number;
}

/** Observes over a connection of its own, which no fault touches, and records every violation. */
export class Witness {
  /** The violations, as sentences. */
  readonly wrongs: string[] = [];
  readonly #cluster: TestCluster;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>[] = [];

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
  }

  async start(): Promise<void> {
    await Promise.all([
      this.#watch(kubernetes.Node, (nodes) => this.#lookAtNodes(nodes)),
      this.#watch(MachineConfigPool, (pools) => {
        for (const { metadata, status } of pools)
          for (const type of ["Degraded", "NodeDegraded", "RenderDegraded"])
            this.#mustNotBeTrue(`pool ${metadata.name}`, status?.conditions, type);
      }),
      this.#watch(ClusterOperator, (operators) => {
        for (const { metadata, status } of operators)
          this.#mustNotBeTrue(`operator ${metadata.name}`, status?.conditions, "Degraded");
      }),
    ]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error("stop"));
    await Promise.all(this.#running);
  }

  /** Calls `look` with all objects after each change; after a new list, once the cache has taken all of it. */
  async #watch<T extends KubeObject>(resource: Resource<T>, look: (objects: readonly T[]) => void): Promise<void> {
    const cache = new WatchCache({
      kube: this.#cluster.kube,
      resource,
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
    });
    cache.onChange(() => queueMicrotask(() => look(cache.list())));
    this.#running.push(cache.run(this.#stopping.signal));
    await cache.synced;
  }

  #lookAtNodes(nodes: readonly Node[]): void {
    for (const node of nodes) {
      if (annotation(node, annotations.state) === "Degraded")
        this.#add(`${node.metadata.name} is degraded: ${annotation(node, annotations.reason)}`);
    }
    const unavailable = nodes.filter(
      (node) =>
        node.metadata.name.startsWith("worker") &&
        (node.spec?.unschedulable === true ||
          annotation(node, annotations.currentConfig) !== annotation(node, annotations.desiredConfig)),
    );
    if (unavailable.length > 1)
      this.#add(
        `more machines are unavailable than maxUnavailable allows: ${unavailable.map(({ metadata }) => metadata.name).join(", ")}`,
      );
  }

  /** Records a violation, which stands once in the list however often it is seen. */
  #add(wrong: string): void {
    if (!this.wrongs.includes(wrong)) this.wrongs.push(wrong);
  }

  #mustNotBeTrue(
    what: string,
    conditions: readonly { readonly type?: string; readonly status?: string; readonly message?: string }[] | undefined,
    type: string,
  ): void {
    const condition = conditions?.find((one) => one.type === type);
    if (condition?.status === "True") this.#add(`${what} is ${type}: ${condition.message ?? ""}`);
  }

  async picture(): Promise<Picture> {
    const { directory, kube } = this.#cluster;
    const { hosts } = this.#cluster.record();
    const processes: Running[] = [];
    for (const words of [...hosts.map(({ name }) => ["host", "run", name]), ["cluster-controllers"]]) {
      for (const id of await this.#cluster.processes(...words))
        processes.push({ name: words.join(" "), id: String(id) });
    }
    const pods = await kube.list(kubernetes.Pod, { namespace });
    const containers = pods.items.flatMap(({ metadata, spec, status }) =>
      (status?.containerStatuses ?? []).map(({ restartCount, containerID = "" }): Container => ({
        pod: metadata.name,
        node: spec?.nodeName ?? "",
        uid: metadata.uid ?? "",
        restarts: restartCount,
        id: containerID,
      })),
    );
    // Each boot of a machine is one line of its log, whether or not it was reported.
    const boots = Object.fromEntries(
      hosts.map(({ name }) => [
        name,
        linesOf(join(directory, "logs", `host-${name}.log`)).filter(({ msg }) => msg === "booted").length,
      ]),
    );
    return { processes, containers, boots };
  }

  /** The terms of all controllers of this cluster, from their logs; `others` adds logs. */
  terms(others: Readonly<Record<string, string>>): readonly Term[] {
    const { directory } = this.#cluster;
    const logs = new Map(Object.entries(others));
    for (const { name: host } of this.#cluster.record().hosts) {
      const pods = join(directory, "hosts", host, "pods");
      for (const pod of readdirSync(pods)) {
        const log = join(pods, pod, `${names.objects.controller}.log`);
        if (existsSync(log)) logs.set(pod, log);
      }
    }
    if (logs.size === Object.keys(others).length) this.#add("no machine has a log of the controller");
    return [...logs].flatMap(([who, path]) => {
      const terms: Term[] = [];
      // Only one process at a time writes to a log: the next one leads after the previous one has ended.
      const end = (at: string) => {
        for (const term of terms) term.to = Math.min(term.to, Date.parse(at));
      };
      for (const { msg, lease, t } of linesOf(path)) {
        if (msg === "stopping") end(t);
        if (lease !== names.objects.controller) continue;
        if (msg === "leading" || msg === "lease lost") end(t);
        if (msg === "leading") terms.push({ who, from: Date.parse(t), to: Infinity });
      }
      return terms;
    });
  }

  /** Adds every time at which two processes led at once. */
  compareTerms(terms: readonly Term[]): void {
    const sorted = terms.toSorted((a, b) => a.from - b.from);
    for (const [index, term] of sorted.entries()) {
      const next = sorted[index + 1];
      if (next !== undefined && next.from < term.to)
        this.#add(`${next.who} led ${term.to - next.from} ms before ${term.who} had ended`);
    }
  }
}

/**
 * The forbidden differences between two snapshots, as sentences: a process that restarted other than with its machine;
 * a machine of `pool` that did not boot exactly once, for its one target; any other machine that booted. A late report
 * of a kubelet is a difference too, so a test waits until none is left; a forbidden restart never goes away.
 */
export function differences(
  before: Picture,
  after: Picture,
  options: { readonly pool: string; readonly killed?: readonly string[] },
): readonly string[] {
  const wrongs: string[] = [];
  const bootsOf = (node: string) => (after.boots[node] ?? 0) - (before.boots[node] ?? 0);
  for (const node of Object.keys(after.boots)) {
    const wanted = node.startsWith(options.pool) ? 1 : 0;
    if (bootsOf(node) !== wanted) wrongs.push(`${node} booted ${bootsOf(node)} times for one target, not ${wanted}`);
  }
  for (const { name, id } of before.processes) {
    if (
      options.killed?.includes(name) !== true &&
      !after.processes.some((other) => other.name === name && other.id === id)
    )
      wrongs.push(`the process ${name} was started again`);
  }
  for (const container of before.containers) {
    const now = after.containers.find(({ uid }) => uid === container.uid);
    const boots = bootsOf(container.node);
    if (now === undefined) wrongs.push(`the pod ${container.pod} is gone`);
    else if (now.restarts !== container.restarts + boots)
      wrongs.push(
        `the pod ${container.pod} was started ${now.restarts - container.restarts} times again, and its machine ${boots} times`,
      );
    else if (boots === 0 && now.id !== container.id) wrongs.push(`the pod ${container.pod} has another process`);
  }
  return wrongs;
}

interface LogLine {
  readonly msg: string;
  readonly t: string;
  readonly lease?: string;
}

function linesOf(path: string): readonly LogLine[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as LogLine);
}
