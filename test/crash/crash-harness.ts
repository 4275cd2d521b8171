import { type Node, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { type MachineConfig, MachineConfigNode, MachineStateJournal } from "../../src/api/index.ts";
import type { JournalLine } from "../../src/api/books/journal-line.ts";
import { McoError } from "../../src/api/errors.ts";
import { annotations, fieldManagers, labels, nodeStates, notYetSet } from "../../src/api/names.ts";
import { type EffectivePolicies, type UserPolicies, mergePolicies } from "../../src/core/config/disruption-policy.ts";
import { journalOfNode } from "../../src/core/books/journal.ts";
import { drainStep } from "../../src/core/pool/drain-step.ts";
import { openNodeJournal } from "../../src/daemon/machine-books.ts";
import { daemonController } from "../../src/daemon/daemon-controller.ts";
import type { Host, HostWrite } from "../../src/host/host.ts";
import { runControllers } from "../../src/kube/controller.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import type { HttpHandler, HttpRequest, HttpResponse } from "../../src/ports/http.ts";
import type { LogFields, Logger } from "../../src/ports/logger.ts";
import { type Journal, memoryJournal } from "../../src/ports/journal.ts";
import { administrator } from "../simulation/in-process-cluster.ts";
import { Kernel } from "../simulation/kernel.ts";
import { Life } from "../simulation/process.ts";
import { machineFixture, fullName } from "./machine-fixture.ts";
import { type Content, nodeConfig } from "./contents.ts";
import { type Invariant, Keeper, type Past } from "./invariants.ts";
import type { MakeSubject, Subject } from "./subjects.ts";
import { clusterConfigs } from "../support/cluster-configs.ts";

/** What can go wrong at one effect of the daemon: a change of its machine, or a mutating request. */
export const hostFaults = ["before", "after", "replyLost", "refused", "powerCut"] as const;
export const apiFaults = ["before", "after", "replyLost", "refused", "conflict"] as const;
/**
 * `before`, `after`: the daemon is killed before or after the effect. `replyLost`: the effect happens, the daemon gets
 * an error, and lives. `refused`, `conflict` (409): the effect does not happen, and the daemon gets the error.
 * `powerCut`: the effect happens, and the machine loses its power.
 */
export type FaultKind = (typeof hostFaults)[number] | (typeof apiFaults)[number];

export interface Fault {
  /** Number of the effect, from 0, counted over all lives of the daemon. */
  readonly at: number;
  readonly kind: FaultKind;
}

/** Something that happens to the machine; without `when`, as soon as the machine is at rest. */
export interface Happening {
  readonly what: string;
  readonly when?: (harness: CrashHarness) => boolean;
  readonly happens: (harness: CrashHarness) => Promise<void>;
}

export interface Scenario {
  readonly title: string;
  readonly contents: Readonly<Record<string, Content>>;
  /** The machine's configuration before faults begin; `undefined`: it joins. */
  readonly start: string | undefined;
  readonly happenings: readonly Happening[];
  readonly policies?: UserPolicies;
  readonly onlyControlPlane?: boolean;
  readonly cordonedByPerson?: boolean;
  /** The machine drifts, and waits for people. */
  readonly drifts?: boolean;
  /** Services that read the files of this scenario. */
  readonly services?: readonly string[];
  /** What a person does once the machine is up again. */
  readonly afterPowerCut?: (harness: CrashHarness) => Promise<void>;
  /** At the end, the disk is as it was before the first configuration. */
  readonly leavesNothing?: boolean;
}

/** A planted bug, which an invariant must find. */
export interface Plant {
  readonly host?: (host: Host, harness: CrashHarness) => Host;
  readonly transport?: (transport: HttpHandler, harness: CrashHarness) => HttpHandler;
}

export interface CrashHarnessOptions {
  readonly scenario: Scenario;
  readonly subject: MakeSubject;
  /** A machine that has already reached its start; otherwise it joins and gets there first. */
  readonly start?: Start | undefined;
  readonly faults?: readonly Fault[];
  readonly plant?: Plant | undefined;
  /** Checks the machine after each of its changes; otherwise only when it starts and ends. */
  readonly closely?: boolean;
  /**
   * The daemon writes its journal to disk and to the API, which takes as long as everything else; otherwise only to
   * memory. `counted`: these writes are effects, too, and meet faults.
   */
  readonly books?: "kept" | "counted";
  /** How long a machine at rest is watched. */
  readonly quietMs?: number;
  /** Ends the run as soon as this invariant is broken: what a planted bug causes after that does not matter. */
  readonly until?: Invariant | "any";
  /** Called once the machine is at the scenario's start. */
  readonly atStart?: (harness: CrashHarness) => Promise<void>;
  /** Called before the machine is removed. */
  readonly atEnd?: (harness: CrashHarness) => Promise<void>;
}

/** A machine with the first configuration of a scenario: how to copy it, and the state of the API server. */
export interface Start {
  readonly subject: MakeSubject;
  readonly annotations: Readonly<Record<string, string>>;
  readonly status: MachineConfigNode["status"];
  readonly past: Past;
  readonly cordoned?: boolean;
  /** The machine's power has just come back, and nothing else happens any more. */
  readonly afterPowerCut?: boolean;
}

/** What a run is compared with: the results of a run without faults. */
export interface Expectation {
  readonly reboots: number;
  readonly disturbances: Readonly<Record<string, number>>;
}

/** Verbs that only read. Every other verb is an effect, so that a new verb counts by itself. */
const looking = new Set([
  "files.read",
  "files.vendor",
  "files.freeBytes",
  "files.madeFolder",
  "files.placeOf",
  "units.state",
  "units.links",
  "os.status",
  "os.installed",
  "os.finaliseFailure",
  "os.labels",
  "users.lookup",
  "users.group",
  "users.passwordHash",
  "ledger.read",
  "books.read",
]);

/** A new promise each time: one that all dead processes waited for would keep every run in memory. */
const never = () => new Promise<never>(() => undefined);
/** Thrown through the harness when the daemon has died: the daemon's own code never sees it. */
const dead = new Error("the daemon is dead");
/** A run that takes longer in virtual time has not converged. */
const patienceMs = 2 * 3_600_000;

/** More effects than this within that time are not work but a loop. */
const hasteLimit = { effects: 400, ms: 5 * 60_000 };

/** A clock for real input and output: no virtual time passes while a machine's disk works. */
class PatientKernel extends Kernel {
  busy = 0;

  override async untilIdle(): Promise<void> {
    do await super.untilIdle();
    while (this.busy > 0);
  }
}

/** One machine, its daemon, a fake drain controller and an API server in virtual time, with a list of faults. */
export class CrashHarness {
  readonly kernel = new PatientKernel(1);
  readonly scenario: Scenario;
  readonly never = new AbortController().signal;
  readonly keeper = new Keeper(this);
  readonly policies: EffectivePolicies;
  /** Effects since the machine was ready, in order: `files.write /etc/a`, `PATCH nodes`. */
  readonly effects: string[] = [];
  configs: ReadonlyMap<string, MachineConfig> = new Map();
  /** Every target that the machine was given. */
  readonly everDesired = new Set<string>();
  readonly failures: unknown[] = [];
  reboots = 0;
  handReboots = 0;
  /** Whether a person is changing the machine. */
  byHand = false;
  cuts = 0;
  faultsMet = 0;
  kube!: KubeClient;
  subject!: Subject;
  node!: Node;
  nodeName = "";
  #transport!: HttpHandler;
  readonly #options: CrashHarnessOptions;
  readonly #faults: Map<number, FaultKind>;
  #status: MachineConfigNode["status"];
  readonly #documents = new Set<string>();
  #life: Life | undefined;
  #power: "on" | "goingDown" | "off" = "off";
  #recording = false;
  #apiAway = false;
  #drainPlanned = false;
  #isHasty = false;
  readonly #times: number[] = [];
  readonly #streams = new Set<AbortController>();
  readonly #logged: unknown[] = [];
  readonly #journals: ReturnType<typeof memoryJournal>[] = [];

  private constructor(options: CrashHarnessOptions) {
    this.#options = options;
    this.scenario = options.scenario;
    this.policies = mergePolicies(options.scenario.policies);
    this.#faults = new Map((options.faults ?? []).map(({ at, kind }) => [at, kind]));
  }

  /** Runs a scenario to its end. */
  static async run(options: CrashHarnessOptions, expected?: Expectation | "start"): Promise<CrashHarness> {
    const harness = new CrashHarness(options);
    try {
      await harness.#play(expected);
      await options.atEnd?.(harness);
    } finally {
      harness.#life?.kill();
      for (const stream of harness.#streams) stream.abort();
      // A failure during the machine's preparation is reported instead.
      await (harness.subject as Subject | undefined)?.close();
    }
    return harness;
  }

  get description(): string {
    return `${this.scenario.title}; ${[...this.#faults].map(([at, kind]) => `${kind} at effect ${at} (${this.effects[at] ?? "never reached"})`).join(", ") || "no fault"}`;
  }

  /** The results of the run without faults. */
  async expectation(): Promise<Expectation> {
    const disturbances: Record<string, number> = {};
    for (const service of this.scenario.services ?? []) {
      const { restarts, reloads } = await this.subject.service(service);
      disturbances[service] = restarts + reloads;
    }
    return { reboots: this.reboots, disturbances };
  }

  /** The machine's state, as its Node reports it. */
  get history(): string {
    return `${this.has(annotations.state)} ${this.has(annotations.reason)}, has ${this.has(annotations.currentConfig)} of ${this.has(annotations.desiredConfig)}, drain ${this.has(annotations.desiredDrain)}/${this.has(annotations.lastAppliedDrain)}`;
  }

  /** What a later run needs to begin here. */
  async startState(): Promise<Start> {
    return {
      subject: await this.subject.copier([...this.#documents]),
      annotations: this.node.metadata.annotations ?? {},
      status: this.#status,
      past: this.keeper.past,
    };
  }

  get status(): MachineConfigNode["status"] {
    return this.#status;
  }

  phase(type: string): string | undefined {
    return this.#status?.conditions?.find((condition) => condition.type === type)?.status;
  }

  has(key: string): string {
    return this.node.metadata.annotations?.[key] ?? "";
  }

  /** Nothing is left to check. */
  get #isOver(): boolean {
    const { until } = this.#options;
    return this.keeper.violations.some(({ invariant }) => until === "any" || invariant === until);
  }

  get allPoolsUpdated(): boolean {
    const drain = this.has(annotations.desiredDrain);
    return (
      this.#power === "on" &&
      this.#life?.alive === true &&
      this.has(annotations.state) === nodeStates.done &&
      this.has(annotations.currentConfig) === this.has(annotations.desiredConfig) &&
      !drain.startsWith("drain-") &&
      (drain === "" || drain === this.has(annotations.lastAppliedDrain))
    );
  }

  // What happens to the machine.

  /** Gives the machine a target, as the node controller does. */
  async target(name: string): Promise<void> {
    const full = fullName(this.scenario, name);
    this.everDesired.add(full);
    await this.annotate({ [annotations.desiredConfig]: full });
  }

  async annotate(
    changes: Readonly<Record<string, string | null>>,
    spec?: { readonly unschedulable: boolean },
  ): Promise<void> {
    await this.kube.patch(
      kubernetes.Node,
      { name: this.nodeName },
      { type: "merge", body: { metadata: { annotations: changes }, ...(spec === undefined ? {} : { spec }) } },
    );
  }

  /** A person changes a file of the machine; `undefined` deletes it. */
  async edit(path: string, text: string | undefined): Promise<void> {
    const { files } = this.subject.host;
    this.byHand = true;
    if (text === undefined) await files.remove(path, this.never);
    else
      await files.write(
        [{ path, entry: { kind: "file", contents: new TextEncoder().encode(text), mode: 0o640, uid: 7, gid: 8 } }],
        this.never,
      );
    await this.keeper.handMade(path);
    this.byHand = false;
  }

  /** Restores what the machine's present configuration says about a path. */
  async restore(path: string): Promise<void> {
    const entry = nodeConfig(this.configs.get(this.has(annotations.currentConfig))).entries.get(path);
    if (entry?.kind !== "file") throw new Error(`bug in a scenario: ${path} is not managed`);
    await this.subject.host.files.write(
      [{ path, entry: { kind: "file", contents: entry.contents, mode: entry.mode, uid: 0, gid: 0 } }],
      this.never,
    );
  }

  /** A person reboots the machine. */
  async handReboot(): Promise<void> {
    this.handReboots += 1;
    this.#goDown(true);
  }

  powerCut(): void {
    if (this.#power === "off") return;
    this.cuts += 1;
    this.#goDown(false);
  }

  /** The API server is unavailable for a time. */
  apiAway(ms: number): void {
    this.#apiAway = true;
    for (const stream of this.#streams) stream.abort(new Error("the connection was cut"));
    this.kernel.schedule(ms, "API server comes back", () => {
      this.#apiAway = false;
    });
  }

  killDaemon(): void {
    this.#life?.kill();
    this.kernel.schedule(2000, "daemon starts again", () => this.#startDaemon());
  }

  /** Called by the machine's driver when a reboot is requested. */
  readonly #onReboot = (): void => {
    if (this.#power !== "on") return;
    this.#power = "goingDown";
    this.reboots += 1;
    this.kernel.schedule(1000, "goes down", () => {
      if (this.#power === "goingDown") this.#goDown(true);
    });
  };

  // The harness itself.

  async #play(expected: Expectation | "start" | undefined): Promise<void> {
    const { kernel, scenario } = this;
    await this.#act(this.#setUp());
    if (scenario.start !== undefined && this.#options.start?.afterPowerCut !== true) {
      await this.#reach(scenario.start);
      if (expected === "start") return;
    }
    await this.#act(this.#options.atStart?.(this) ?? Promise.resolve());
    this.reboots = 0;
    this.#recording = true;
    let settled = true;
    for (const { what, when, happens } of this.#options.start?.afterPowerCut === true ? [] : scenario.happenings) {
      // A machine that joins waits for its first target.
      const ready = () =>
        this.#isOver || this.has(annotations.desiredConfig) === "" || (when?.(this) ?? false) || this.allPoolsUpdated;
      if ((await kernel.run({ until: ready, maxMs: patienceMs, maxEvents: 200_000 })) !== "done") {
        this.keeper.violated("converges", `it does not settle before this: ${what}: ${this.history}`);
      }
      await this.#act(happens(this));
      if (this.#isOver) return;
      // A request takes time to be noticed.
      await kernel.run({
        until: () => this.#isOver || (when?.(this) ?? false) || !this.allPoolsUpdated,
        maxMs: this.subject.host.driver === "memory" ? 10_000 : 310_000,
      });
    }
    settled =
      (await kernel.run({
        until: () => this.#isOver || this.allPoolsUpdated,
        maxMs: patienceMs,
        maxEvents: 200_000,
      })) === "done";
    if (this.#isOver) return;
    if (settled) {
      // Events are still on their way. Reports that could not be sent, which may meet faults too, are sent again at the
      // next full pass.
      for (let looks = 0, said = -1; said < this.effects.length && looks <= this.#faults.size; looks += 1) {
        said = this.effects.length;
        await this.#pass(this.#options.quietMs === undefined ? 330_000 : 60_000);
      }
      settled = this.allPoolsUpdated;
      const before = this.effects.length;
      await this.#pass(this.#options.quietMs ?? 11 * 60_000);
      if (this.effects.length > before)
        this.keeper.violated(
          "quiet",
          `it goes on after it has settled: ${this.effects.slice(before, before + 5).join(", ")}`,
        );
      settled &&= this.allPoolsUpdated;
    }
    this.keeper.said("a log line", this.#logged);
    this.keeper.said(
      "a journal line",
      this.#journals.flatMap(({ lines }) => lines),
    );
    if (this.#options.books !== undefined) {
      const journal = await this.#act(this.kube.get(MachineStateJournal, { name: journalOfNode(this.nodeName) }));
      await this.#act(this.keeper.books(journal?.spec.lines ?? [], settled, kernel.clock.now()));
    }
    await this.#act(
      this.keeper.end(
        settled,
        typeof expected !== "object" ? undefined : { ...expected, faults: this.faultsMet, cuts: this.cuts },
      ),
    );
    for (const failure of this.failures)
      this.keeper.violated(
        "converges",
        `the daemon ended: ${failure instanceof Error ? (failure.stack ?? failure.message) : String(failure)}`,
      );
  }

  async #reach(name: string): Promise<void> {
    if (this.#options.start === undefined) await this.#act(this.target(name));
    else this.everDesired.add(fullName(this.scenario, name));
    if ((await this.kernel.run({ until: () => this.allPoolsUpdated, maxMs: patienceMs })) !== "done")
      throw new Error(
        `bug in a scenario: ${this.scenario.title} does not reach its start: ${JSON.stringify(this.node.metadata.annotations)}`,
      );
    await this.#pass(5000);
  }

  #pass(ms: number): Promise<unknown> {
    return this.kernel.run({ until: () => false, maxMs: ms });
  }

  async #act<T>(work: Promise<T>): Promise<T> {
    let outcome: { readonly value: T } | { readonly error: unknown } | undefined;
    work.then(
      (value) => {
        outcome = { value };
      },
      (error: unknown) => {
        outcome = { error };
      },
    );
    // This work needs no virtual time.
    for (let turns = 0; outcome === undefined; turns += 1) {
      if (turns > 1_000_000) throw new Error(`bug: ${this.scenario.title} waits for time to pass`);
      await this.kernel.untilIdle();
    }
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  async #setUp(): Promise<void> {
    const { scenario } = this;
    const { subject, start } = this.#options;
    const { server, configs, serial } = await machineFixture.enter(this.kernel, scenario);
    this.configs = configs;
    this.nodeName = `node-${serial}`;
    this.#transport = this.#noticing(server.as(administrator));
    this.kube = createKubeClient({
      transport: this.#transport,
      clock: this.kernel.clock,
      random: this.kernel.random,
      userAgent: "crash",
    });
    this.subject = await (start?.subject ?? subject)({ random: this.kernel.random, onReboot: this.#onReboot });
    const role = scenario.onlyControlPlane === true ? labels.controlPlaneRole : labels.workerRole;
    const topology = scenario.onlyControlPlane === true ? { [annotations.controlPlaneTopology]: "SingleReplica" } : {};
    await this.kube.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: this.nodeName, labels: { [role]: "" }, annotations: { ...topology, ...start?.annotations } },
      spec: start?.cordoned === true ? { unschedulable: true } : {},
    });
    await this.kube.create(MachineConfigNode, {
      apiVersion: MachineConfigNode.apiVersion,
      kind: "MachineConfigNode",
      metadata: { name: this.nodeName },
      spec: { node: { name: this.nodeName }, pool: { name: "worker" }, configVersion: { desired: notYetSet } },
    } as MachineConfigNode);
    if (this.#options.books !== undefined)
      await this.kube.create(MachineStateJournal, {
        apiVersion: MachineStateJournal.apiVersion,
        kind: "MachineStateJournal",
        metadata: { name: journalOfNode(this.nodeName) },
        spec: { lines: [], last: [] },
      });
    if (start?.status !== undefined)
      await this.kube.patch(
        MachineConfigNode,
        { name: this.nodeName },
        { type: "merge", body: { status: start.status } },
        { subresource: "status" },
      );
    await this.keeper.begin(start?.past);
    if (start?.afterPowerCut === true) {
      for (const name of this.configs.keys()) this.everDesired.add(name);
      await this.#boot(false);
      return;
    }
    this.#power = "on";
    this.#startDaemon();
  }

  /** Keeps the current Node and MachineConfigNode, from the answers to all writes. */
  #noticing(transport: HttpHandler): HttpHandler {
    return async (request, signal) => {
      const response = await transport(request, signal);
      if (request.method === "GET" || response.status >= 300 || typeof response.body !== "string") return response;
      const object = JSON.parse(response.body) as { kind?: string; metadata?: { name?: string } };
      if (object.metadata?.name !== this.nodeName) return response;
      if (object.kind === "Node") {
        this.node = object as Node;
        this.#planDrain();
      } else if (object.kind === "MachineConfigNode") this.#status = (object as MachineConfigNode).status;
      return response;
    };
  }

  /** The fake drain controller: slow, and one action after the other. */
  #planDrain(): void {
    if (this.#drainPlanned || ["nothing", "refuse"].includes(drainStep(this.node).do)) return;
    this.#drainPlanned = true;
    this.kernel.schedule(3000, "drain controller", () => {
      this.#drainPlanned = false;
      void this.#drain().catch((error: unknown) => this.failures.push(error));
    });
  }

  async #drain(): Promise<void> {
    const step = drainStep(this.node);
    const write = (body: object) =>
      this.kube.patch(
        kubernetes.Node,
        { name: this.nodeName },
        { type: "merge", body },
        { owner: fieldManagers.drain },
      );
    if (step.do === "cordon")
      await write({
        metadata: { annotations: { [annotations.cordonedFor]: step.request, [annotations.lastAppliedDrain]: null } },
        spec: { unschedulable: true },
      });
    else if (step.do === "evict")
      await write({ metadata: { annotations: { [annotations.lastAppliedDrain]: step.request } } });
    else if (step.do === "uncordon")
      await write({
        metadata: { annotations: { [annotations.cordonedFor]: null, [annotations.lastAppliedDrain]: step.request } },
        ...(step.remedy ? { spec: { unschedulable: null } } : {}),
      });
    this.#planDrain();
  }

  #goDown(orderly: boolean): void {
    if (this.#power === "off") return;
    this.#power = "off";
    this.#life?.kill();
    this.kernel.schedule(
      10_000,
      "comes up",
      () => void this.#boot(orderly).catch((error: unknown) => this.failures.push(error)),
    );
  }

  async #boot(orderly: boolean): Promise<void> {
    await this.#working(() => this.subject.machine.boot({ orderly }));
    this.#power = "on";
    await this.#working(() => this.keeper.after());
    if (!orderly) await this.scenario.afterPowerCut?.(this);
    this.kernel.schedule(2000, "daemon starts", () => this.#startDaemon());
  }

  /** The result of `work` while the daemon lives; a dead daemon never gets an answer. */
  async #whileAlive<T>(life: Life, work: () => Promise<T>): Promise<T> {
    try {
      return await life.guard(work);
    } catch (error) {
      if (!life.alive) return never();
      throw error;
    }
  }

  async #working<T>(work: () => Promise<T>): Promise<T> {
    this.kernel.busy += 1;
    try {
      return await work();
    } finally {
      this.kernel.busy -= 1;
    }
  }

  #startDaemon(): void {
    if (this.#life?.alive === true || this.#power !== "on") return;
    const { plant } = this.#options;
    const life = new Life(this.kernel, "daemon");
    this.#life = life;
    const ports = { ...life.ports, log: this.#logger() };
    const faulty = this.#faultyTransport(life);
    const transport = plant?.transport?.(faulty, this) ?? faulty;
    const kube = createKubeClient({
      transport,
      clock: ports.clock,
      random: ports.random,
      userAgent: "daemon",
      requestTimeoutMs: 10_000,
    });
    const events = createEventRecorder({ ...ports, kube, component: "machineconfigdaemon", host: this.nodeName });
    const counted = this.#faultyHost(life);
    const host = plant?.host?.(counted, this) ?? counted;
    void (async () => {
      const { journal, past, stop } =
        this.#options.books === undefined
          ? this.#journalInMemory()
          : await this.#journalOnDisk({ ...ports, host, kube }, life);
      life.signal.addEventListener("abort", stop, { once: true });
      await runControllers(
        [daemonController({ host, nodeName: this.nodeName, configs: clusterConfigs, past })],
        { ...ports, journal, kube, events, coalesceMs: 50 },
        life.signal,
      );
    })().catch((error: unknown) => {
      if (life.alive) this.failures.push(error);
    });
  }

  #journalInMemory(): { readonly journal: Journal; readonly past: readonly JournalLine[]; readonly stop: () => void } {
    const journal = memoryJournal(500);
    this.#journals.push(journal);
    return { journal, past: [], stop: () => undefined };
  }

  async #journalOnDisk(options: Omit<Parameters<typeof openNodeJournal>[0], "nodeName">, life: Life) {
    const made = await openNodeJournal({ ...options, nodeName: this.nodeName }, life.signal);
    return { ...made, stop: () => made.journal.stop() };
  }

  #logger(): Logger {
    const note = (fields: LogFields, message: string) => {
      if (this.#logged.length < 2000) this.#logged.push({ fields, message });
    };
    const logger: Logger = { debug: note, info: note, warn: note, error: note, child: () => logger };
    return logger;
  }

  /** One effect: it happens unless a fault says otherwise. `work(true)` does all of it; `work(false)` was refused. */
  async #effect<T>(
    life: Life,
    name: string,
    faultyKinds: readonly string[],
    work: () => Promise<T>,
    refuse: (kind: FaultKind) => T | Promise<T>,
  ): Promise<T> {
    if (!life.alive) throw dead;
    const fault = this.#count(name, faultyKinds);
    if (fault === "before") this.#die(life);
    if (fault === "refused" || fault === "conflict") return refuse(fault);
    const result = await work();
    if (fault === "after") this.#die(life);
    if (fault === "powerCut") this.powerCut();
    if (!life.alive) throw dead;
    return fault === "replyLost" ? refuse(fault) : result;
  }

  #count(name: string, kinds: readonly string[]): FaultKind | undefined {
    if (!this.#recording) return undefined;
    const fault = this.#faults.get(this.effects.length);
    this.effects.push(name);
    this.#times.push(this.kernel.now);
    const before = this.#times.at(-hasteLimit.effects);
    if (before !== undefined && this.kernel.now - before < hasteLimit.ms && !this.#isHasty) {
      this.#isHasty = true;
      this.keeper.violated(
        "patient",
        `${hasteLimit.effects} effects in ${Math.round(this.kernel.now - before)} ms: ${this.history}`,
      );
    }
    // A fault that does not apply to this kind of effect has no effect here.
    if (fault === undefined || !kinds.includes(fault)) return undefined;
    this.faultsMet += 1;
    return fault;
  }

  #die(life: Life): never {
    if (life === this.#life && life.alive) this.killDaemon();
    throw dead;
  }

  #faultyHost(life: Life): Host {
    const { host } = this.subject;
    const failed = (effect: string, kind: FaultKind) =>
      new McoError("MCO_HOST_COMMAND_FAILED", {
        effect,
        problem: kind === "replyLost" ? "no answer" : "it did not work",
      });

    const write = async (writes: readonly HostWrite[], signal: AbortSignal): Promise<void> => {
      await this.keeper.before("files.write", [writes]);
      // Each entry is an effect of its own: a list may be cut short at any point.
      for (const [index, { path }] of writes.entries()) {
        const fault = this.#count(`files.write ${path}`, hostFaults);
        if (fault === undefined) continue;
        const done =
          fault === "before" || fault === "refused" ? index : fault === "replyLost" ? writes.length : index + 1;
        await host.files.write(writes.slice(0, done), signal);
        await this.#lookClosely();
        if (fault === "before" || fault === "after") this.#die(life);
        if (fault === "powerCut") this.powerCut();
        if (!life.alive) throw dead;
        throw failed(`files.write ${path}`, fault);
      }
      await host.files.write(writes, signal);
      await this.#lookClosely();
      await this.#takeTime(life);
    };

    const verb =
      (group: string, name: string, bound: (...args: unknown[]) => unknown) =>
      (...args: unknown[]) => {
        const effect = `${group}.${name}`;
        if (!life.alive) return never();
        // Virtual time cannot wait for notifications of a real disk: the next full pass finds drift.
        if (effect === "files.watch") return host.driver === "memory" ? bound(...args) : () => undefined;
        return this.#whileAlive(life, () =>
          this.#working(async () => {
            if (looking.has(effect) || (effect === "books.append" && this.#options.books !== "counted"))
              return bound(...args);
            if (effect === "files.write") return write(args[0] as readonly HostWrite[], args[1] as AbortSignal);
            const full = typeof args[0] === "string" && group !== "os" ? `${effect} ${args[0]}` : effect;
            if (effect === "ledger.write") this.#documents.add(String(args[0]));
            await this.keeper.before(full, args);
            return this.#effect(
              life,
              full,
              hostFaults,
              async () => {
                const result = await bound(...args);
                await this.#lookClosely();
                await this.#takeTime(life);
                return result;
              },
              (kind) => Promise.reject(failed(full, kind)),
            );
          }),
        );
      };
    return new Proxy(host, {
      get(target, group: keyof Host) {
        const part = target[group];
        if (typeof part === "string") return part;
        return new Proxy(part, {
          get: (object, name) =>
            verb(group, String(name), (Reflect.get(object, name) as (...args: unknown[]) => unknown).bind(object)),
        });
      },
    });
  }

  /** Every effect takes time, in which other things can happen. */
  async #takeTime(life: Life): Promise<void> {
    this.kernel.busy -= 1;
    await life.ports.clock.sleep(20);
    this.kernel.busy += 1;
  }

  async #lookClosely(): Promise<void> {
    if (this.#options.closely !== false) await this.keeper.after();
  }

  #faultyTransport(life: Life): HttpHandler {
    const answer = async (request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> => {
      if (this.#apiAway) throw new Error("connection refused");
      const stream = new AbortController();
      if (request.target.includes("watch=")) {
        this.#streams.add(stream);
        life.signal.addEventListener("abort", () => stream.abort(life.signal.reason), { once: true });
      }
      return this.#transport(request, AbortSignal.any([signal, stream.signal]));
    };
    return (request, signal) =>
      this.#whileAlive(life, async () => {
        if (request.method === "GET") return answer(request, signal);
        await this.#working(() =>
          this.keeper.sending(request.method, request.target, typeof request.body === "string" ? request.body : ""),
        );
        if (request.target.includes("/machinestatejournals/") && this.#options.books !== "counted")
          return answer(request, signal);
        const what = `${request.method} ${/\/(nodes|machineconfignodes|machinestatejournals|events)\b/.exec(request.target)?.[1] ?? request.target}`;
        return this.#effect(
          life,
          what,
          apiFaults,
          () => answer(request, signal),
          (kind) => {
            if (kind === "replyLost") throw new Error("the connection was cut before the answer came");
            const code = kind === "conflict" ? 409 : 500;
            const status = {
              kind: "Status",
              apiVersion: "v1",
              metadata: {},
              status: "Failure",
              message: "planned",
              reason: code === 409 ? "Conflict" : "InternalError",
              code,
            };
            return { status: code, headers: { "content-type": "application/json" }, body: JSON.stringify(status) };
          },
        );
      });
  }
}
