import { type Node, type Pod, kubernetes } from "../../src/api/kubernetes.ts";
import { MachineConfig } from "../../src/api/machine-config.ts";
import { MachineConfigPool } from "../../src/api/machine-config-pool.ts";
import { annotations, labels, nodeStates } from "../../src/api/names.ts";
import { type KubeObject, type Resource, keyOf } from "../../src/api/object.ts";
import { nodeConfigOf } from "../../src/core/node-config.ts";
import { poolOfNode } from "../../src/core/pool-of-node.ts";
import { ignitionOf } from "../../src/core/validate-machine-config.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import type { Kernel } from "./kernel.ts";
import type { SimulatedMachine } from "./machines.ts";

/** Numbers of the invariants that are watched, with what each says. */
export const invariants = {
  1: "we never take a healthy node of a pool while its unavailable nodes already reach the budget",
  2: "never two control-plane nodes at once",
  3: "no pod is removed against its disruption budget",
  4: "after recovery a host is wholly on one configuration",
  5: "currentConfig never names what the disk does not hold",
  6: "no reboot without the drain that the plan names, and none that no plan announced",
  18: "once faults stop, every healthy node ends on the newest target and stays there",
} as const;

export interface Violation {
  readonly invariant: keyof typeof invariants;
  readonly atMs: number;
  readonly what: string;
  /** What happened just before. */
  readonly before: readonly string[];
}

/** Nobody can know of a failure before word of it has had time to travel: failures younger than this do not count against a choice. */
const newsMs = 15_000;

/** The true state of the API server, always current, for checks: what a process sees may be old. */
class Mirror<T extends KubeObject> {
  readonly objects = new Map<string, T>();
  readonly #resource: Resource<T>;
  readonly #onChange: (before: T | undefined, after: T | undefined) => void;

  constructor(resource: Resource<T>, onChange: (before: T | undefined, after: T | undefined) => void) {
    this.#resource = resource;
    this.#onChange = onChange;
  }

  follow(kube: KubeClient): void {
    const resource = this.#resource;
    void (async () => {
      const { items, resourceVersion } = await kube.list(resource);
      const gone = new Set(this.objects.keys());
      for (const item of items) {
        const key = keyOf(item);
        gone.delete(key);
        const before = this.objects.get(key);
        this.objects.set(key, item);
        if (before?.metadata.resourceVersion !== item.metadata.resourceVersion) this.#onChange(before, item);
      }
      for (const key of gone) {
        const before = this.objects.get(key);
        this.objects.delete(key);
        this.#onChange(before, undefined);
      }
      for await (const event of kube.watch(resource, {}, { resourceVersion, timeoutSeconds: 10_000_000 }, new AbortController().signal)) {
        if (event.type === "BOOKMARK") continue;
        const key = keyOf(event.object);
        const before = this.objects.get(key);
        if (event.type === "DELETED") this.objects.delete(key);
        else this.objects.set(key, event.object);
        this.#onChange(before, event.type === "DELETED" ? undefined : event.object);
      }
    })();
  }
}

const annotation = (node: Node | undefined, key: string) => node?.metadata.annotations?.[key] ?? "";
const isReady = (node: Node) => node.status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
const isControlPlane = (node: Node) => node.metadata.labels?.[labels.controlPlaneRole] !== undefined;
const isSettled = (node: Node) => annotation(node, annotations.currentConfig) !== "" && annotation(node, annotations.currentConfig) === annotation(node, annotations.desiredConfig) && annotation(node, annotations.state) === nodeStates.done;

export function budgetOf(pool: MachineConfigPool, members: number): number {
  const { maxUnavailable } = pool.spec;
  if (maxUnavailable === undefined) return 1;
  const count = typeof maxUnavailable === "string" ? Math.floor((Number.parseInt(maxUnavailable, 10) * members) / 100) : maxUnavailable;
  return Math.max(1, count);
}

/** Watches a simulated cluster from outside and writes down every breach. */
export class InvariantKeeper {
  readonly violations: Violation[] = [];
  readonly nodes: Mirror<Node>;
  readonly pools: Mirror<MachineConfigPool>;
  readonly configs: Mirror<MachineConfig>;
  readonly pods: Mirror<Pod>;
  readonly #kernel: Kernel;
  readonly #machines: ReadonlyMap<string, SimulatedMachine>;
  readonly #unavailableSince = new Map<string, number>();
  /** How many choices, reboots, evictions and claims were looked at: a check that never looks proves nothing. */
  readonly checks = { choices: 0, reboots: 0, removals: 0, claims: 0 };

  constructor(kernel: Kernel, machines: ReadonlyMap<string, SimulatedMachine>) {
    this.#kernel = kernel;
    this.#machines = machines;
    this.pools = new Mirror(MachineConfigPool, () => undefined);
    this.configs = new Mirror(MachineConfig, () => undefined);
    this.pods = new Mirror<Pod>(kubernetes.Pod, (before, after) => this.#podChanged(before, after));
    this.nodes = new Mirror<Node>(kubernetes.Node, (before, after) => this.#nodeChanged(before, after));
  }

  /** Begins to watch, once the kinds are there; again after the server that it watched is gone. */
  follow(kube: KubeClient): void {
    for (const mirror of [this.pools, this.configs, this.pods, this.nodes]) mirror.follow(kube);
  }

  violated(invariant: keyof typeof invariants, what: string): void {
    this.#kernel.note(`VIOLATION ${invariant}: ${what}`);
    this.violations.push({ invariant, atMs: Math.round(this.#kernel.now), what, before: [...this.#kernel.recent] });
  }

  poolOf(node: Node): MachineConfigPool | undefined {
    const member = poolOfNode(node, [...this.pools.objects.values()]);
    return member.verdict === "member" ? this.pools.objects.get(member.pool) : undefined;
  }

  #describe(node: Node): string {
    const since = this.#unavailableSince.get(node.metadata.name);
    return `${node.metadata.name} (${isReady(node) ? "ready" : "not ready"}${node.spec?.unschedulable === true ? ", cordoned" : ""}, ${annotation(node, annotations.state)}, has ${annotation(node, annotations.currentConfig).slice(-6)}, wants ${annotation(node, annotations.desiredConfig).slice(-6)}${since === undefined ? "" : `, away for ${Math.round(this.#kernel.now - since)} ms`})`;
  }

  membersOf(pool: MachineConfigPool): readonly Node[] {
    return [...this.nodes.objects.values()].filter((node) => this.poolOf(node)?.metadata.name === pool.metadata.name);
  }

  #nodeChanged(before: Node | undefined, after: Node | undefined): void {
    const name = (after ?? before)?.metadata.name ?? "";
    if (after === undefined) return;
    if (isReady(after) && after.spec?.unschedulable !== true) this.#unavailableSince.delete(name);
    else if (!this.#unavailableSince.has(name)) this.#unavailableSince.set(name, this.#kernel.now);
    if (before !== undefined && annotation(before, annotations.desiredConfig) !== annotation(after, annotations.desiredConfig)) this.#chosen(before, after);
    if (annotation(before, annotations.currentConfig) !== annotation(after, annotations.currentConfig)) this.#claimed(after);
  }

  /** 1 and 2: a node got a target. */
  #chosen(before: Node, after: Node): void {
    this.checks.choices += 1;
    const pool = this.poolOf(after);
    if (pool === undefined) return;
    const name = after.metadata.name;
    const others = this.membersOf(pool).filter((node) => node.metadata.name !== name);
    const wasHealthy = isReady(before) && before.spec?.unschedulable !== true && isSettled(before);
    if (wasHealthy) {
      const gone = others.filter((node) => {
        const since = this.#unavailableSince.get(node.metadata.name);
        // Machines in our own hands count from the moment that we chose them; foreign failures once word of them can have come.
        return !isSettled(node) || (since !== undefined && this.#kernel.now - since > newsMs);
      });
      const budget = budgetOf(pool, others.length + 1);
      if (gone.length >= budget) this.violated(1, `${name} was taken in pool ${pool.metadata.name} (budget ${budget}) while ${gone.map((node) => this.#describe(node)).join(", ")} were away`);
    }
    if (isControlPlane(after)) {
      const busy = [...this.nodes.objects.values()].filter((node) => node.metadata.name !== name && isControlPlane(node) && annotation(node, annotations.desiredConfig) !== "" && !isSettled(node) && annotation(node, annotations.desiredConfig) !== annotation(node, annotations.currentConfig));
      if (busy.length > 0) this.violated(2, `${name} was taken while ${busy.map((node) => node.metadata.name).join(", ")} was under way`);
    }
  }

  /** 5: the node says what it has. */
  #claimed(node: Node): void {
    this.checks.claims += 1;
    const name = annotation(node, annotations.currentConfig);
    const difference = this.differenceFrom(node.metadata.name, name);
    if (difference !== undefined) this.violated(5, `${node.metadata.name} claims ${name}, but ${difference}`);
  }

  /** What a machine's disk lacks of a configuration, or `undefined` when it holds it wholly. */
  differenceFrom(machine: string, config: string): string | undefined {
    const rendered = this.configs.objects.get(config);
    if (rendered === undefined) return `${config} does not exist`;
    const ignition = ignitionOf(rendered);
    const read = nodeConfigOf(rendered, ignition?.verdict === "valid" ? ignition.config : undefined);
    if (read.verdict === "refused") return read.reason;
    const disk = this.#machines.get(machine)?.host.snapshot();
    for (const [path, wanted] of read.config.entries) {
      const has = disk?.get(path);
      if (wanted.kind === "file" && has?.endsWith(` ${new TextDecoder().decode(wanted.contents)}`) !== true) return `${path} is ${has ?? "absent"}`;
    }
    // Paths that only other configurations name must be what the OS ships, or absent.
    for (const [path, has] of disk ?? []) {
      if (path.startsWith("/etc/test/") && !read.config.entries.has(path)) return `${path} (${has}) is left over`;
    }
    return undefined;
  }

  /** 6: the daemon asks for a reboot. */
  rebooting(machine: SimulatedMachine): void {
    this.checks.reboots += 1;
    const node = this.nodes.objects.get(machine.name);
    if (node === undefined) return;
    const desired = annotation(node, annotations.desiredConfig);
    if (annotation(node, annotations.state) !== nodeStates.working || annotation(node, annotations.postConfigAction) !== "Rebooting") this.violated(6, `${machine.name} reboots, and nobody announced it`);
    const joining = annotation(node, annotations.currentConfig) === "";
    const exempt = annotation(node, annotations.controlPlaneTopology) === "SingleReplica" && isControlPlane(node);
    if (joining || exempt) return;
    const request = annotation(node, annotations.desiredDrain);
    if (!request.startsWith("drain-") || annotation(node, annotations.lastAppliedDrain) !== request || node.spec?.unschedulable !== true) this.violated(6, `${machine.name} reboots to ${desired} without its drain (asked ${request}, done ${annotation(node, annotations.lastAppliedDrain)})`);
    const left = [...this.pods.objects.values()].filter((pod) => pod.spec?.nodeName === machine.name && pod.metadata.deletionTimestamp === undefined && pod.status?.phase === "Running");
    if (left.length > 0) this.violated(6, `${machine.name} reboots with ${left.map((pod) => pod.metadata.name).join(", ")} on it`);
  }

  /** 3: pods of the guarded application may not fall below what its budget keeps. */
  #podChanged(before: Pod | undefined, after: Pod | undefined): void {
    const wasUp = before !== undefined && before.metadata.deletionTimestamp === undefined && before.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
    if (!wasUp || (after !== undefined && after.metadata.deletionTimestamp === undefined)) return;
    this.checks.removals += 1;
    const keep = Number(before.metadata.annotations?.["test/min-available"] ?? 0);
    const app = before.metadata.labels?.["app"];
    const left = [...this.pods.objects.values()].filter((pod) => pod.metadata.labels?.["app"] === app && pod.metadata.uid !== before.metadata.uid && pod.metadata.deletionTimestamp === undefined && pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true);
    const node = this.nodes.objects.get(before.spec?.nodeName ?? "");
    // A machine that lost its power takes its pods with it; nobody removed them.
    if (left.length < keep && node !== undefined && isReady(node)) this.violated(3, `${before.metadata.name} was removed: ${left.length} of ${app} are left, ${keep} must be`);
  }

  /** 4 and 18: when everything is quiet, every machine is wholly on the newest target. */
  checkEnd(): void {
    for (const node of this.nodes.objects.values()) {
      const pool = this.poolOf(node);
      const target = pool?.spec.configuration?.name ?? "";
      const name = node.metadata.name;
      if (annotation(node, annotations.currentConfig) !== target || !isSettled(node)) {
        this.violated(18, `${name} is on ${annotation(node, annotations.currentConfig)} (${annotation(node, annotations.state)}: ${annotation(node, annotations.reason)}), not on ${target}; desired ${annotation(node, annotations.desiredConfig)}, drain ${annotation(node, annotations.desiredDrain)}/${annotation(node, annotations.lastAppliedDrain)}`);
      }
      if (node.spec?.unschedulable === true && node.metadata.annotations?.["test/cordoned"] === undefined) this.violated(18, `${name} is still cordoned`);
      const difference = this.differenceFrom(name, annotation(node, annotations.currentConfig));
      if (difference !== undefined) this.violated(4, `${name} says ${annotation(node, annotations.currentConfig)}, but ${difference}`);
    }
  }

  /** Whether every node has its pool's target and is in service. */
  get isQuiet(): boolean {
    return [...this.nodes.objects.values()].every((node) => isReady(node) && isSettled(node) && annotation(node, annotations.currentConfig) === (this.poolOf(node)?.spec.configuration?.name ?? "?") && (node.spec?.unschedulable !== true || node.metadata.annotations?.["test/cordoned"] !== undefined));
  }
}
