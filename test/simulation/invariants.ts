import { type Node, type Pod, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import type { JournalLine } from "../../src/api/books/journal-line.ts";
import { MachineStateJournal } from "../../src/api/books/machine-state-journal.ts";
import { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import { annotations, labels, nodeStates } from "../../src/api/names.ts";
import { type KubeObject, type Resource, keyOf } from "../../src/api/schema/object.ts";
import { factsOf, poolFacts } from "../../src/core/pool/pool-queries.ts";
import { foldBook } from "../../src/core/books/fold-book.ts";
import { journalOfNode } from "../../src/core/books/journal.ts";
import { linesOnDisk } from "../../src/daemon/machine-books.ts";
import { nodeConfigOf } from "../../src/core/config/node-config.ts";
import { poolOfNode } from "../../src/core/pool/pool-of-node.ts";
import { poolStatus } from "../../src/core/pool/pool-status.ts";
import { quarantinedTargets } from "../../src/core/pool/quarantine.ts";
import { withPhases } from "../../src/core/books/update-conditions.ts";
import { equalValues } from "../../src/ignition/canonical.ts";
import { ignitionOf } from "../../src/core/config/validate-machine-config.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { AgreementKeeper } from "./agreement-keeper.ts";
import { EffectsKeeper } from "./effects-keeper.ts";
import type { Kernel } from "./kernel.ts";
import type { SimulatedMachine } from "./machines.ts";
import { type Blindness, stormy } from "./network.ts";

/** Numbers of the watched invariants, each with what it states. */
export const invariants = {
  1: "we never take a healthy node of a pool while its unavailable nodes already reach the budget",
  2: "never two control-plane nodes at once",
  3: "no pod is removed against its disruption budget",
  4: "after recovery a host is wholly on one configuration",
  5: "currentConfig never names what the disk does not hold",
  6: "no reboot without the drain that the plan names, and none that no plan announced",
  9: "no healthy node is given a quarantined target, and one node alone quarantines none for others",
  15: "a pool's status follows from the objects as they are, and its counts move only when a machine does",
  16: "no machine of a paused pool is taken",
  18: "once faults stop, every healthy node ends on the newest target and stays there",
  19: "a node that is out of service gets a newer target before any healthy one",
  21: "a story line that a machine has settled comes to its journal once, in its writer's order, and as it was written down",
  22: "the story of a machine's last update ends when the update does, and well",
  23: "of an update nothing is told twice, however often a daemon looks and whatever starts it again",
  24: "everything that users see of pools and machines describes one state, but for the time that it may lag behind",
  25: "of a MachineConfigNode no condition is lost, goes back in time, or contradicts the phases that it is made of, in any version",
  26: "what a chapter or a phase says that succeeded has happened, and what was done to a machine and its Node is told",
} as const;

export interface Violation {
  readonly invariant: keyof typeof invariants;
  readonly atMs: number;
  readonly what: string;
  /** What happened just before. */
  readonly before: readonly string[];
}

/** A failure younger than this does not count against a choice: the report of it may still be on its way. */
const newsMs = 15_000;
/** How long an answer of the API server is under way at most: what happens meanwhile, its reader cannot know. */
const answerMs = Math.max(stormy.slowMs[1], stormy.delayMs[1]);

/** A message may be lost and sent again within this time. */
const cureMs = 30_000;

/** The true, always current state of the API server, for checks: what a process sees may be old. */
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
      for await (const event of kube.watch(
        resource,
        {},
        { resourceVersion, timeoutSeconds: 10_000_000 },
        new AbortController().signal,
      )) {
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
const allPoolsUpdated = (node: Node) =>
  annotation(node, annotations.currentConfig) !== "" &&
  annotation(node, annotations.currentConfig) === annotation(node, annotations.desiredConfig) &&
  annotation(node, annotations.state) === nodeStates.done;

export function budgetOf({ maxUnavailable }: Pick<ArgumentRequests, "maxUnavailable">, members: number): number {
  if (maxUnavailable === undefined) return 1;
  const count =
    typeof maxUnavailable === "string"
      ? Math.floor((Number.parseInt(maxUnavailable, 10) * members) / 100)
      : maxUnavailable;
  return Math.max(1, count);
}

/** The fields of a pool that decide about a roll-out. */
interface ArgumentRequests {
  readonly maxUnavailable: number | string | undefined;
  readonly paused: boolean;
  readonly quarantined: readonly string[];
}

const requestsOf = (pool: MachineConfigPool): ArgumentRequests => ({
  maxUnavailable: pool.spec.maxUnavailable,
  paused: pool.spec.paused === true,
  quarantined: quarantinedTargets(pool),
});

type Status = NonNullable<MachineConfigPool["status"]>;
type Counts = readonly (number | undefined)[];

const countsOf = ({ status }: Pick<MachineConfigPool, "status">): Counts => [
  status?.machineCount,
  status?.updatedMachineCount,
  status?.readyMachineCount,
  status?.unavailableMachineCount,
  status?.degradedMachineCount,
];
/** Times are those of the writer. */
const timeless = (status: Status | undefined) => ({
  ...status,
  conditions: (status?.conditions ?? [])
    .map(({ lastTransitionTime: _, ...condition }) => condition)
    .toSorted((a, b) => ((a.type ?? "") < (b.type ?? "") ? -1 : 1)),
});

/** People write anything into an annotation. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Watches a simulated cluster from outside and records every breach. */
export class InvariantKeeper {
  readonly violations: Violation[] = [];
  readonly nodes: Mirror<Node>;
  readonly pools: Mirror<MachineConfigPool>;
  readonly configs: Mirror<MachineConfig>;
  readonly pods: Mirror<Pod>;
  readonly machineConfigNodes: Mirror<MachineConfigNode>;
  readonly journals: Mirror<MachineStateJournal>;
  readonly #kernel: Kernel;
  readonly #machines: ReadonlyMap<string, SimulatedMachine>;
  readonly #unavailableSince = new Map<string, number>();
  readonly #changedAt = new Map<string, number>();
  /** When a cordon was removed. */
  readonly #uncordonedAt = new Map<string, number>();
  /** Earlier versions of pools, and until when they held. */
  readonly #earlier: { readonly pool: string; readonly requests: ArgumentRequests; readonly until: number }[] = [];
  /** When the processes that choose machines saw less than the whole cluster. */
  readonly #blindness: () => readonly Blindness[];
  #countsStand = false;
  /**
   * Journal → every line that it ever held, by writer, boot and number; and the number of the last line of each writer.
   */
  readonly told = new Map<string, Map<string, JournalLine>>();
  readonly #lastReported = new Map<string, number>();
  readonly agreement: AgreementKeeper;
  readonly effects: EffectsKeeper;
  /**
   * How often each check had something to judge: choices of machines (also in a quarantine, with a machine excluded, in
   * a pause, and of a machine that was out of service), reboots, evictions, claims, pool statuses, versions of conditions, journal lines,
   * update chapters, moments at which everything had to agree, successes that were said, and effects on machines. A check with nothing to judge proves nothing.
   */
  readonly checks = {
    choices: 0,
    reboots: 0,
    removals: 0,
    claims: 0,
    quarantines: 0,
    exclusions: 0,
    pauses: 0,
    cures: 0,
    statuses: 0,
    conditions: 0,
    lines: 0,
    updates: 0,
    agreements: 0,
    successes: 0,
    effects: 0,
  };

  /** How many processes that choose machines have run, so that a change of process is noticed. */
  readonly #controllersSoFar: () => number;

  constructor(
    kernel: Kernel,
    machines: ReadonlyMap<string, SimulatedMachine>,
    controllers: { readonly blindness: () => readonly Blindness[]; readonly soFar: () => number },
  ) {
    this.#kernel = kernel;
    this.#machines = machines;
    this.#blindness = controllers.blindness;
    this.#controllersSoFar = controllers.soFar;
    this.agreement = new AgreementKeeper(kernel, this);
    this.effects = new EffectsKeeper(
      () => kernel.clock.now(),
      (what) => this.violated(26, what),
      this.checks,
    );
    this.pools = new Mirror(MachineConfigPool, (before, after) => this.#poolChanged(before, after));
    this.machineConfigNodes = new Mirror(MachineConfigNode, (before, after) => this.#conditionsChanged(before, after));
    this.journals = new Mirror(MachineStateJournal, (_before, after) => this.#journalChanged(after));
    this.configs = new Mirror(MachineConfig, () => undefined);
    this.pods = new Mirror<Pod>(kubernetes.Pod, (before, after) => this.#podChanged(before, after));
    this.nodes = new Mirror<Node>(kubernetes.Node, (before, after) => this.#nodeChanged(before, after));
  }

  /** Begins to watch once the kinds exist; again after the watched server is gone. */
  follow(kube: KubeClient): void {
    for (const mirror of [this.pools, this.configs, this.pods, this.machineConfigNodes, this.journals, this.nodes])
      mirror.follow(kube);
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

  /** Whether the processes that choose machines may not know yet what happened then. */
  #mayBeUnseen(at: number): boolean {
    const { now } = this.#kernel;
    return (
      now - at <= newsMs ||
      this.#blindness().some(({ from, to }) => at >= from - newsMs && (to === undefined || to + newsMs >= now))
    );
  }

  /** The versions of the pool's spec that a process may act on now. */
  #believable(pool: MachineConfigPool): readonly ArgumentRequests[] {
    return [
      requestsOf(pool),
      ...this.#earlier
        .filter((one) => one.pool === pool.metadata.name && this.#mayBeUnseen(one.until))
        .map(({ requests }) => requests),
    ];
  }

  #poolChanged(before: MachineConfigPool | undefined, after: MachineConfigPool | undefined): void {
    if (before === undefined || after === undefined) return;
    const requests = requestsOf(before);
    if (!equalValues(requests, requestsOf(after)))
      this.#earlier.push({ pool: before.metadata.name, requests, until: this.#kernel.now });
    if (
      after.metadata.annotations?.[annotations.quarantined] !== undefined &&
      before.metadata.annotations?.[annotations.quarantined] === undefined
    )
      this.checks.quarantines += 1;
    this.#checkWitnesses(after);
    if (after.spec.paused === true && before.spec.paused !== true) this.checks.pauses += 1;
    if (this.#countsStand && !equalValues(countsOf(before), countsOf(after)))
      this.violated(
        15,
        `counts of ${after.metadata.name} moved from ${countsOf(before).join("/")} to ${countsOf(after).join("/")}, and no machine did`,
      );
  }

  /** 9: a quarantine of the controllers names two machines, unless the pool has no second one. */
  #checkWitnesses(pool: MachineConfigPool): void {
    const text = pool.metadata.annotations?.[annotations.quarantined] ?? "[]";
    const entries: unknown = isJson(text) ? JSON.parse(text) : [];
    for (const entry of Array.isArray(entries) ? (entries as readonly { readonly nodes?: readonly string[] }[]) : [])
      if (entry.nodes?.length === 1 && this.membersOf(pool).length > 1)
        this.violated(9, `pool ${pool.metadata.name} has a quarantine that rests on ${entry.nodes.join()} alone`);
  }

  /** 15: from now until `false`, nothing happens to machines, so no count may change. */
  countsStand(stand: boolean): void {
    this.#countsStand = stand;
  }

  /** 21: a journal has grown. Lines that leave the ring are remembered here. */
  #journalChanged(after: MachineStateJournal | undefined): void {
    if (after === undefined) return;
    const { name } = after.metadata;
    const told = this.told.get(name) ?? new Map<string, JournalLine>();
    this.told.set(name, told);
    const now = new Set<string>();
    for (const line of after.spec.lines) {
      const writer = `${line.writer.component}/${line.writer.instance}/${line.boot}`;
      const key = `${writer}/${line.seq}`;
      if (now.has(key)) this.violated(21, `${name} has ${key} twice`);
      now.add(key);
      if (told.has(key)) continue;
      this.checks.lines += 1;
      const last = this.#lastReported.get(`${name} ${writer}`) ?? 0;
      if (line.seq <= last) this.violated(21, `${name}: ${key} comes after ${last}`);
      this.#lastReported.set(`${name} ${writer}`, line.seq);
      told.set(key, line);
      this.agreement.reported(line);
    }
  }

  /** 21 and 22: the journals hold what the machines recorded, and every run has its end. */
  async checkJournals(): Promise<void> {
    const all = [...this.told.values()].flatMap((lines) => [...lines.values()]);
    for (const machine of this.#machines.values()) {
      const book = `node/${machine.name}`;
      const told = this.told.get(journalOfNode(machine.name)) ?? new Map<string, JournalLine>();
      const settled = (await linesOnDisk(machine.host, machine.name, new AbortController().signal)).filter(
        ({ level }) => level === "boundary",
      );
      for (const line of settled) {
        const key = `${line.writer.component}/${line.writer.instance}/${line.boot}/${line.seq}`;
        const has = told.get(key);
        if (has === undefined)
          this.violated(
            21,
            `${machine.name} has written down ${key} (${line.path} ${line.mark}), and its journal has never told it`,
          );
        else if (has.path !== line.path || has.mark !== line.mark || has.at !== line.at)
          this.violated(
            21,
            `${key} is ${line.path} ${line.mark} on ${machine.name}, and ${has.path} ${has.mark} in its journal`,
          );
      }
      this.#checkRepetitions(machine.name, settled);
      this.effects.checkEnd(machine.name, all);
      const node = this.nodes.objects.get(machine.name);
      const last = foldBook(
        book,
        all.filter((line) => line.book === book),
        { now: this.#kernel.clock.now() },
      ).findLast(({ chapter }) => chapter === "Update");
      if (node === undefined || last === undefined) continue;
      this.checks.updates += 1;
      const target = annotation(node, annotations.currentConfig);
      // A target that was withdrawn before any effect is superseded by what the machine has; so is one that the machine
      // went back from.
      const isWell =
        (last.run === target && last.outcome === "Succeeded") ||
        (last.run !== target && (last.outcome === "Superseded" || last.outcome === "RolledBack"));
      if (allPoolsUpdated(node) && (last.state !== "Closed" || !isWell))
        this.violated(
          22,
          `${machine.name} has ${target}, and the last update of its book, to ${last.run}, is ${last.state} ${last.outcome ?? ""}: ${last.sections.map(({ path, outcome }) => `${path} ${outcome ?? "goes on"}`).join(", ")}`,
        );
    }
  }

  /**
   * 23: within one update a section begins again only after it has ended or was interrupted, and the other way round.
   */
  #checkRepetitions(machine: string, lines: readonly JournalLine[]): void {
    let run = "";
    const last = new Map<string, string>();
    for (const line of lines.filter(({ chapter }) => chapter === "Update")) {
      if (line.run !== run) last.clear();
      run = line.run ?? "";
      // It may be interrupted repeatedly.
      if (line.mark !== "note" && line.mark !== "retry" && last.get(line.path) === line.mark)
        this.violated(23, `${machine} tells ${line.path} ${line.mark} of ${run} again: ${line.msg}`);
      last.set(line.path, line.mark);
      // Reports of a new object of the same name belong to another object.
      if (line.path === "Updated") last.clear();
    }
  }

  /** 25: a version of a MachineConfigNode. */
  #conditionsChanged(before: MachineConfigNode | undefined, after: MachineConfigNode | undefined): void {
    const conditions = after?.status?.conditions ?? [];
    if (after === undefined || conditions.length === 0) return;
    this.checks.conditions += 1;
    this.effects.machineConfigNodeChanged(before, after);
    const refuses = (object: MachineConfigNode | undefined) =>
      object?.metadata.annotations?.[annotations.refusedTargets] !== undefined;
    if (refuses(after) && !refuses(before)) this.checks.exclusions += 1;
    const { name } = after.metadata;
    const made = withPhases(conditions, [], this.#kernel.clock.now());
    if (made !== conditions) {
      const wrong = made
        .filter((condition) => !conditions.includes(condition))
        .map(({ type, status, reason }) => `${type} should be ${status} (${reason})`);
      this.violated(
        25,
        `${name}: ${wrong.join(", ")}; it says ${conditions.map(({ type, status }) => `${type}=${status}`).join(" ")}`,
      );
    }
    for (const old of before?.status?.conditions ?? []) {
      const is = conditions.find(({ type }) => type === old.type);
      if (is === undefined) this.violated(25, `${name} has lost ${old.type}`);
      else if (is.lastTransitionTime < old.lastTransitionTime)
        this.violated(
          25,
          `${name}: ${old.type} went back from ${old.lastTransitionTime} (${old.status}) to ${is.lastTransitionTime} (${is.status})`,
        );
      else if (is.lastTransitionTime !== old.lastTransitionTime && is.status === old.status)
        this.violated(25, `${name}: ${old.type} says that it changed, and is ${is.status} as before`);
    }
  }

  #nodeChanged(before: Node | undefined, after: Node | undefined): void {
    const name = (after ?? before)?.metadata.name ?? "";
    if (after === undefined) return;
    if (before?.spec?.unschedulable === true && after.spec?.unschedulable !== true)
      this.#uncordonedAt.set(name, this.#kernel.now);
    this.effects.nodeChanged(before, after, this.#runningOn(name).length);
    if (isReady(after) && after.spec?.unschedulable !== true) this.#unavailableSince.delete(name);
    else if (!this.#unavailableSince.has(name)) this.#unavailableSince.set(name, this.#kernel.now);
    if (
      before !== undefined &&
      annotation(before, annotations.desiredConfig) !== annotation(after, annotations.desiredConfig)
    )
      this.#chosen(before, after);
    if (annotation(before, annotations.currentConfig) !== annotation(after, annotations.currentConfig))
      this.#claimed(after);
    this.#changedAt.set(name, this.#kernel.now);
  }

  /** 1, 2 and 9: a node got a target. */
  #chosen(before: Node, after: Node): void {
    this.checks.choices += 1;
    const pool = this.poolOf(after);
    if (pool === undefined) return;
    const name = after.metadata.name;
    const others = this.membersOf(pool).filter((node) => node.metadata.name !== name);
    const wasHealthy = isReady(before) && before.spec?.unschedulable !== true && allPoolsUpdated(before);
    if (!wasHealthy && annotation(before, annotations.desiredConfig) !== "") this.checks.cures += 1;
    if (annotation(before, annotations.desiredConfig) !== "" && this.#believable(pool).every(({ paused }) => paused))
      this.violated(16, `${name} was taken while pool ${pool.metadata.name} was paused`);
    if (wasHealthy) {
      const gone = others.filter((node) => {
        const since = this.#unavailableSince.get(node.metadata.name);
        // Updating machines count from the time of the choice; other failures count once the report of them can have
        // arrived.
        return !allPoolsUpdated(node) || (since !== undefined && !this.#mayBeUnseen(since));
      });
      const believable = this.#believable(pool);
      const budget = Math.max(...believable.map((requests) => budgetOf(requests, others.length + 1)));
      const target = annotation(after, annotations.desiredConfig);
      if (believable.every(({ quarantined }) => quarantined.includes(target)))
        this.violated(9, `${name} was given ${target}, which pool ${pool.metadata.name} has in quarantine`);
      const patients = others.filter(
        (node) =>
          annotation(node, annotations.currentConfig) !== "" &&
          !isControlPlane(node) &&
          annotation(node, annotations.desiredConfig) !== target &&
          this.#isKnownAway(node) &&
          !this.#mayBeUnseen(this.#changedAt.get(node.metadata.name) ?? 0),
      );
      if (patients.length > 0) this.#expectCured(name, target, patients);
      if (gone.length >= budget)
        this.violated(
          1,
          `${name} was taken in pool ${pool.metadata.name} (budget ${budget}) while ${gone.map((node) => this.#describe(node)).join(", ")} were away`,
        );
    }
    if (isControlPlane(after)) {
      const busy = [...this.nodes.objects.values()].filter(
        (node) =>
          node.metadata.name !== name &&
          isControlPlane(node) &&
          annotation(node, annotations.desiredConfig) !== "" &&
          !allPoolsUpdated(node) &&
          annotation(node, annotations.desiredConfig) !== annotation(node, annotations.currentConfig),
      );
      if (busy.length > 0)
        this.violated(2, `${name} was taken while ${busy.map((node) => node.metadata.name).join(", ")} was under way`);
    }
  }

  /** 19: machines out of service get the target that healthy ones get: at the same time, as far as a network allows. */
  #expectCured(healthy: string, target: string, patients: readonly Node[]): void {
    const before = this.#controllersSoFar();
    this.#kernel.schedule(cureMs, "are the patients cured?", () => {
      if (this.#controllersSoFar() !== before) return;
      const left = patients
        .flatMap(({ metadata }) => this.nodes.objects.get(metadata.name) ?? [])
        .filter(
          (node) =>
            annotation(node, annotations.desiredConfig) !== target &&
            this.poolOf(node)?.spec.configuration?.name === target &&
            this.poolOf(node)?.spec.paused !== true &&
            this.#isKnownAway(node) &&
            !this.#mayBeUnseen(this.#changedAt.get(node.metadata.name) ?? 0),
        );
      if (left.length > 0)
        this.violated(
          19,
          `${healthy} was given ${target}, and ${left.map((node) => this.#describe(node)).join(", ")} was not`,
        );
    });
  }

  /** Out of service for a cause that every process knows. */
  #isKnownAway(node: Node): boolean {
    const since = this.#unavailableSince.get(node.metadata.name);
    const isFailing =
      annotation(node, annotations.state) === nodeStates.degraded ||
      annotation(node, annotations.state) === nodeStates.unreconcilable;
    return isFailing || (since !== undefined && !this.#mayBeUnseen(since));
  }

  /** 5: the node reports its configuration. */
  #claimed(node: Node): void {
    this.checks.claims += 1;
    const name = annotation(node, annotations.currentConfig);
    const difference = this.differenceFrom(node.metadata.name, name);
    if (difference !== undefined) this.violated(5, `${node.metadata.name} claims ${name}, but ${difference}`);
  }

  /** What a machine's disk lacks of a configuration; `undefined` when it matches wholly. */
  differenceFrom(machine: string, config: string): string | undefined {
    const rendered = this.configs.objects.get(config);
    if (rendered === undefined) return `${config} does not exist`;
    const ignition = ignitionOf(rendered);
    const read = nodeConfigOf(rendered, ignition?.verdict === "valid" ? ignition.config : undefined);
    if (read.verdict === "refused") return read.reason;
    const disk = this.#machines.get(machine)?.host.snapshot();
    for (const [path, wanted] of read.config.entries) {
      const has = disk?.get(path);
      if (wanted.kind === "file" && has?.endsWith(` ${new TextDecoder().decode(wanted.contents)}`) !== true)
        return `${path} is ${has ?? "absent"}`;
    }
    // Paths that only other configurations name must be as the OS ships them, or absent.
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
    if (
      annotation(node, annotations.state) !== nodeStates.working ||
      annotation(node, annotations.postConfigAction) !== "Rebooting"
    )
      this.violated(6, `${machine.name} reboots, and nobody announced it`);
    const joining = annotation(node, annotations.currentConfig) === "";
    const exempt = annotation(node, annotations.controlPlaneTopology) === "SingleReplica" && isControlPlane(node);
    if (joining || exempt) return;
    const request = annotation(node, annotations.desiredDrain);
    const done = annotation(node, annotations.lastAppliedDrain);
    if (!request.startsWith("drain-") || done !== request)
      this.violated(6, `${machine.name} reboots to ${desired} without its drain (asked ${request}, done ${done})`);
    if (node.spec?.unschedulable !== true) {
      // An administrator removed the cordon after the daemon's last question: no reboot can be told apart from it.
      const since = this.#kernel.now - (this.#uncordonedAt.get(machine.name) ?? Number.NEGATIVE_INFINITY);
      if (since <= answerMs) return;
      this.violated(
        6,
        `${machine.name} reboots to ${desired}, and has been back in service for ${Math.round(since)} ms`,
      );
    }
    const left = this.#runningOn(machine.name);
    if (left.length > 0) this.violated(6, `${machine.name} reboots with ${left.join(", ")} on it`);
  }

  /** Names of the pods that run on a node and are not leaving it. */
  #runningOn(node: string): readonly string[] {
    return [...this.pods.objects.values()].flatMap(({ metadata, spec, status }) =>
      spec?.nodeName === node && metadata.deletionTimestamp === undefined && status?.phase === "Running"
        ? [metadata.name]
        : [],
    );
  }

  /** 3: the pods of the guarded application may not fall below its budget. */
  #podChanged(before: Pod | undefined, after: Pod | undefined): void {
    const wasUp =
      before !== undefined &&
      before.metadata.deletionTimestamp === undefined &&
      before.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
    if (!wasUp || (after !== undefined && after.metadata.deletionTimestamp === undefined)) return;
    this.checks.removals += 1;
    const keep = Number(before.metadata.annotations?.["test/min-available"] ?? 0);
    const app = before.metadata.labels?.["app"];
    const left = [...this.pods.objects.values()].filter(
      (pod) =>
        pod.metadata.labels?.["app"] === app &&
        pod.metadata.uid !== before.metadata.uid &&
        pod.metadata.deletionTimestamp === undefined &&
        pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true,
    );
    const node = this.nodes.objects.get(before.spec?.nodeName ?? "");
    // A machine that lost its power takes its pods with it; no controller removed them.
    if (left.length < keep && node !== undefined && isReady(node))
      this.violated(3, `${before.metadata.name} was removed: ${left.length} of ${app} are left, ${keep} must be`);
  }

  /** 15: the status that follows from a consistent view of everything. */
  checkStatus(): void {
    const objects = {
      pools: [...this.pools.objects.values()],
      nodes: [...this.nodes.objects.values()],
      machineConfigNodes: [...this.machineConfigNodes.objects.values()],
      machineConfigs: [...this.configs.objects.values()],
    };
    const facts = factsOf(objects, this.#kernel.clock.now());
    for (const pool of objects.pools) {
      this.checks.statuses += 1;
      const seen = poolFacts(facts, pool.metadata.name);
      if (seen === undefined) continue;
      const [wanted, is] = [timeless(poolStatus(seen)), timeless(pool.status)];
      if (!equalValues(wanted, is))
        this.violated(15, `${pool.metadata.name} says ${JSON.stringify(is)}, and should say ${JSON.stringify(wanted)}`);
    }
  }

  /** 4 and 18: when everything is quiet, every machine is wholly on the newest target. */
  checkEnd(): void {
    for (const node of this.nodes.objects.values()) {
      const pool = this.poolOf(node);
      const target = pool?.spec.configuration?.name ?? "";
      const name = node.metadata.name;
      if (annotation(node, annotations.currentConfig) !== target || !allPoolsUpdated(node)) {
        this.violated(
          18,
          `${name} is on ${annotation(node, annotations.currentConfig)} (${annotation(node, annotations.state)}: ${annotation(node, annotations.reason)}), not on ${target}; desired ${annotation(node, annotations.desiredConfig)}, drain ${annotation(node, annotations.desiredDrain)}/${annotation(node, annotations.lastAppliedDrain)}`,
        );
      }
      if (node.spec?.unschedulable === true && node.metadata.annotations?.["test/cordoned"] === undefined)
        this.violated(18, `${name} is still cordoned`);
      const difference = this.differenceFrom(name, annotation(node, annotations.currentConfig));
      if (difference !== undefined)
        this.violated(4, `${name} says ${annotation(node, annotations.currentConfig)}, but ${difference}`);
    }
  }

  /** Whether every node has its pool's target and is in service. */
  get isQuiet(): boolean {
    return [...this.nodes.objects.values()].every(
      (node) =>
        isReady(node) &&
        allPoolsUpdated(node) &&
        annotation(node, annotations.currentConfig) === (this.poolOf(node)?.spec.configuration?.name ?? "?") &&
        (node.spec?.unschedulable !== true || node.metadata.annotations?.["test/cordoned"] !== undefined),
    );
  }
}
