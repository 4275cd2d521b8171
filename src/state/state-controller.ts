import type { JournalLine } from "../api/books/journal-line.ts";
import { type ConfigMap, type Lease, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { fieldManagers, namespace, objects } from "../api/names.ts";
import type { Condition } from "../api/schema/object.ts";
import {
  type BootstrapFacts,
  type ChildState,
  type KeepingGap,
  type KeepingType,
  type ReportedCondition,
  bootstrapComplete,
  healthTypes,
  keepingTypes,
  overallHealth,
  overallType,
  stateKeeping,
  switchedOff,
  withTransitions,
} from "../core/operator/health.ts";
import { lineKey } from "../core/books/order-lines.ts";
import { metricsText } from "../core/metrics/metrics.ts";
import { StateMeter } from "../core/metrics/state-metrics.ts";
import { type StateChild, type StateSettings, stateChildren, stateSettings } from "../core/operator/state-settings.ts";
import type { EventRecorder } from "../kube/event-recorder.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { isConflict } from "../kube/kube-error.ts";
import { whileLeader } from "../kube/leader.ts";
import { metricsHandler } from "../kube/metrics-handler.ts";
import { questionLimits } from "../kube/question-limits.ts";
import { WatchCache } from "../kube/watch-cache.ts";
import type { Ports } from "../ports/index.ts";
import { keepListening } from "../ports/keep-listening.ts";
import type { Listen, TlsFiles } from "../ports/listener.ts";
import { linkedSignal } from "../ports/linked-signal.ts";
import { backedOff } from "../ports/random.ts";
import { whenAborted } from "../ports/when-aborted.ts";
import type { BookStore } from "./book-store.ts";
import { buildsChild } from "./builds-child.ts";
import { nodesChild } from "./nodes-child.ts";
import { poolsChild } from "./pools-child.ts";
import type { KeeperChild, ChildContext, ChildNews } from "./child.ts";
import { healthChild } from "./health-child.ts";
import { KubernetesBookStore } from "./kubernetes-book-store.ts";

export interface StateControllerOptions extends Ports {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  /** Unique for each start of the process. */
  readonly identity: string;
  readonly version: string;
  readonly store?: (kube: KubeClient) => BookStore;
  /** Makes a child in place of its own; for tests. */
  readonly plant?: (name: StateChild, own: () => KeeperChild) => KeeperChild;
  /** Where metrics are served; nowhere when absent. */
  readonly metrics?: {
    readonly listen: Listen;
    readonly host: string;
    readonly port: number;
    readonly network?: boolean;
    readonly tls: TlsFiles;
  };
  readonly lease?: { readonly leaseSeconds?: number; readonly renewSeconds?: number; readonly retrySeconds?: number };
}

/** How long a child that ended is left alone: it doubles. */
const restart = { firstMs: 1000, lastMs: 300_000, spread: 0.2 };
/** A child that has run for this long has got over what ended it before. */
const recoveredMs = 600_000;
/** A book that cannot be written for this long keeps its child from its work. */
const stuckMs = 300_000;
/** How often the parent checks its children when nothing happens. */
const lookMs = 30_000;
/** Of an orderly stop, for its last words. */
const lastWordsMs = 2000;
/** Lines for the book of the cluster that are held until its keeper has stored them. */
const mostReports = 500;
const named = (name: string) => ({ fieldSelector: `metadata.name=${name}` });

/** A child with its switch. */
interface Supervised {
  readonly name: StateChild;
  state: ChildState;
  child: KeeperChild | undefined;
  /** Ends it; `undefined`: it is switched off. */
  stop: (() => Promise<void>) | undefined;
  /** Milliseconds since the epoch of when it last stopped working; `undefined`: it never worked. */
  aliveAt: number;
  readonly stuck: Map<string, { readonly since: number; readonly why: string }>;
}

/**
 * The parent of the state process: holds the lease, starts and stops its children as configured, restarts a child that
 * ended, and reports whether all books are kept. A failing child does not affect the others.
 */
export class StateController {
  readonly #options: StateControllerOptions;
  readonly #children: readonly Supervised[];
  readonly #meter = new StateMeter();
  readonly #reported: JournalLine[] = [];
  readonly #reportedKeys = new Set<string>();
  readonly #listeners = new Set<() => void>();
  readonly #settingsListeners = new Set<() => void>();
  #gaps: KeepingGap[] = [];
  #bootstrap: BootstrapFacts = { journal: "missing" };
  #hasBootstrapNews = false;
  #health: readonly ReportedCondition[] = [];
  #keeping: readonly ReportedCondition<KeepingType>[] = [];
  #wake: () => void = () => undefined;

  constructor(options: StateControllerOptions) {
    this.#options = options;
    this.#children = stateChildren.map((name) => ({
      name,
      state: { is: "off" },
      child: undefined,
      stop: undefined,
      aliveAt: Number.NEGATIVE_INFINITY,
      stuck: new Map(),
    }));
  }

  /** How the children are now. */
  get children(): Readonly<Record<StateChild, ChildState>> {
    return Object.fromEntries(this.#children.map((one) => [one.name, this.#stateOf(one)])) as Record<
      StateChild,
      ChildState
    >;
  }

  #stateOf({ state, stuck }: Supervised): ChildState {
    const [key, longest] = [...stuck].sort(([, a], [, b]) => a.since - b.since)[0] ?? [];
    if (state.is !== "running" || longest === undefined || this.#options.clock.now() - longest.since < stuckMs)
      return state;
    return { is: "down", since: longest.since, why: `${key ?? ""} cannot be written: ${longest.why}` };
  }

  /** Figures of this process, as they are now. */
  metrics(): string {
    const kept = this.#children.flatMap(({ child }) => [...(child?.metrics?.().kept ?? [])]);
    return metricsText(this.#meter.families(this.#options.clock.now(), kept, [...this.#health, ...this.#keeping]));
  }

  /** Runs until `signal` aborts; children run only while this process leads. */
  async run(signal: AbortSignal): Promise<void> {
    const { kube, clock, random, log, identity, lease } = this.#options;
    const showing = this.#show(signal);
    // The previous leader has read everything up to then.
    const before = await kube
      .get(kubernetes.Lease, { name: objects.state, namespace }, { signal })
      .catch((): Lease | undefined => undefined);
    const renewed = Date.parse(before?.spec?.renewTime ?? "");
    for (const child of this.#children) if (!Number.isNaN(renewed)) child.aliveAt = renewed;
    await whileLeader(
      { kube, clock, random, log, name: objects.state, namespace, identity, ...lease },
      signal,
      (term) => this.#lead(term, signal),
    );
    await showing;
  }

  async #show(signal: AbortSignal): Promise<void> {
    const { kube, clock, log, metrics } = this.#options;
    if (metrics === undefined) return;
    const handle = metricsHandler({ kube, clock, log, text: () => this.metrics() });
    const listen = (until: AbortSignal) => metrics.listen({ ...metrics, limits: questionLimits }, handle, until);
    await keepListening(listen, "answering readers of metrics", { clock, log }, signal);
  }

  async #lead(term: AbortSignal, signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options;
    const kube = this.#options.kube.within(term);
    const maps = new WatchCache<ConfigMap>({
      kube,
      resource: kubernetes.ConfigMap,
      selection: { namespace, ...named(objects.stateConfig) },
      clock,
      random,
      log,
    });
    const settingsOf = new WatchCache({ kube, resource: MachineConfiguration, clock, random, log });
    const watching = [maps.run(term), settingsOf.run(term)];
    const settings = (): StateSettings => stateSettings(maps.get(`${namespace}/${objects.stateConfig}`)?.data);
    settingsOf.onChange(() => this.#wake());
    maps.onChange(() => {
      this.#wake();
      for (const listener of this.#settingsListeners) listener();
    });
    await Promise.race([Promise.all([maps.synced, settingsOf.synced]), whenAborted(term)]);
    const writer = new ConditionWriter(this.#options, settingsOf);
    let problems = "";
    try {
      while (!term.aborted) {
        const wanted = settings();
        if (problems !== wanted.problems.join("; ")) {
          problems = wanted.problems.join("; ");
          if (problems !== "")
            log.warn({ configMap: objects.stateConfig, problems }, "settings that are not understood");
        }
        // On a cluster there is no folder to read: a process that runs here keeps books.
        for (const one of this.#children)
          await this.#switch(one, wanted.mode !== "off" && wanted.children[one.name], { settings, writer, kube, term });
        this.#keeping =
          wanted.mode === "off"
            ? switchedOff(keepingTypes)
            : [
                stateKeeping(this.children, this.#gaps, clock.now()),
                ...this.#bootstrapReport(settingsOf.get(objects.machineConfiguration)),
              ];
        await writer
          .write(fieldManagers.state, this.#keeping, term)
          .then(() => this.#writeOverall(writer, term))
          .catch((error: unknown) => this.#notWritten(error, term));
        await this.#next(term);
      }
    } finally {
      // A process that has lost the lease reports nothing more: the new leader keeps the conditions now.
      await Promise.all(this.#children.flatMap((one) => one.stop?.() ?? []));
      if (signal.aborted) await this.#lastWords(writer);
      await Promise.all(watching);
    }
  }

  /** Nothing is reported of the bootstrap's journal before it was searched for. */
  #bootstrapReport(before: MachineConfiguration | undefined): readonly ReportedCondition<KeepingType>[] {
    if (this.#children.find(({ name }) => name === "pools")?.state.is === "off")
      return switchedOff(["BootstrapComplete"]);
    if (this.#hasBootstrapNews) return [bootstrapComplete(this.#bootstrap)];
    // The previous report stays until then.
    return (before?.status?.conditions ?? []).flatMap(({ type, status, reason, message }) =>
      type === "BootstrapComplete" ? [{ type: "BootstrapComplete" as const, status, reason, message }] : [],
    );
  }

  /** The health child and the parent report at different times: their summary has an owner of its own. */
  async #writeOverall(writer: ConditionWriter, signal: AbortSignal): Promise<void> {
    const overall = this.#health.length === 0 ? undefined : overallHealth([...this.#health, ...this.#keeping]);
    if (overall !== undefined) await writer.write(fieldManagers.overall, [overall], signal);
  }

  #notWritten(error: unknown, term: AbortSignal): void {
    if (!term.aborted)
      this.#options.log[isConflict(error) ? "debug" : "warn"]({ error }, "conditions not written, trying again");
  }

  /** On an orderly stop, conditions report that they are no longer kept. */
  async #lastWords(writer: ConditionWriter): Promise<void> {
    const deadline = this.#options.clock.deadline(lastWordsMs);
    try {
      await writer.write(fieldManagers.health, switchedOff(healthTypes), deadline.signal);
      await writer.write(fieldManagers.state, switchedOff(keepingTypes), deadline.signal);
      await writer.write(fieldManagers.overall, switchedOff([overallType]), deadline.signal);
    } catch (error) {
      this.#options.log.debug({ error }, "last words not written");
    } finally {
      deadline.cancel();
    }
  }

  /** Waits until something happened, or for a while. */
  async #next(term: AbortSignal): Promise<void> {
    const rest = linkedSignal(term);
    this.#wake = () => rest.abort(new Error("something happened"));
    await this.#options.clock.sleep(lookMs, rest.signal).catch(() => undefined);
    rest.release();
    this.#wake = () => undefined;
  }

  async #switch(
    one: Supervised,
    isOn: boolean,
    given: {
      readonly settings: () => StateSettings;
      readonly writer: ConditionWriter;
      readonly kube: KubeClient;
      readonly term: AbortSignal;
    },
  ): Promise<void> {
    if (isOn === (one.stop !== undefined)) return;
    const { log, clock } = this.#options;
    log.info({ child: one.name, on: isOn }, "switched");
    if (isOn) {
      const stopping = linkedSignal(given.term);
      const running = this.#keep(one, given, stopping.signal).finally(stopping.release);
      one.stop = async () => {
        stopping.abort(new Error("switched off"));
        await running;
        if (one.state.is === "running") one.aliveAt = clock.now();
        one.state = { is: "off" };
        one.stop = undefined;
      };
      return;
    }
    await one.stop?.();
    if (one.name !== "health") return;
    this.#health = switchedOff(healthTypes);
    await given.writer
      .write(fieldManagers.health, this.#health, given.term)
      .catch((error: unknown) => this.#notWritten(error, given.term));
  }

  /** Runs a child, and another one of its kind when it has ended, for as long as it is switched on. */
  async #keep(
    one: Supervised,
    {
      settings,
      writer,
      kube,
    }: { readonly settings: () => StateSettings; readonly writer: ConditionWriter; readonly kube: KubeClient },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, random, log, journal, events, version } = this.#options;
    const own = this.#own(one.name);
    const make = () => this.#options.plant?.(one.name, own) ?? own();
    let failures = 0;
    let downSince: number | undefined;
    while (!signal.aborted) {
      if (downSince === undefined) one.state = { is: "starting" };
      one.stuck.clear();
      const began = clock.monotonic();
      const aliveAt = one.aliveAt;
      const context: ChildContext = {
        clock,
        random,
        log: log.child({ child: one.name }),
        journal,
        kube: kube.within(signal),
        events,
        store: (this.#options.store ?? ((client) => new KubernetesBookStore(client)))(kube.within(signal)),
        version,
        settings,
        aliveAt,
        report: (line) => this.#report(line),
        reported: () => this.#reported,
        onReported: (listener) => {
          this.#listeners.add(listener);
          return () => this.#listeners.delete(listener);
        },
        onSettings: (listener) => {
          this.#settingsListeners.add(listener);
          return () => this.#settingsListeners.delete(listener);
        },
        up: () => {
          if (signal.aborted) return;
          if (downSince !== undefined)
            this.#gap({
              of: one.name,
              message: `down from ${new Date(downSince).toISOString()} to ${new Date(clock.now()).toISOString()}`,
              at: clock.now(),
            });
          downSince = undefined;
          one.state = { is: "running" };
          this.#wake();
        },
        notify: (news) => this.#hear(one, news),
        writeHealth: async (reported, until) => {
          this.#health = reported;
          await writer.write(fieldManagers.health, reported, until);
          await this.#writeOverall(writer, until);
        },
      };
      one.child = make();
      let why = "it ended by itself";
      try {
        await one.child.run(context, signal);
      } catch (error) {
        why = error instanceof Error ? error.message : String(error);
        if (!signal.aborted)
          log.error({ child: one.name, error }, "a child of the state process has ended, starting it again");
      }
      one.child = undefined;
      if (signal.aborted) return;
      if (one.state.is === "running") one.aliveAt = clock.now();
      downSince ??= clock.now();
      one.state = { is: "down", since: downSince, why };
      this.#wake();
      failures = clock.monotonic() - began >= recoveredMs ? 1 : failures + 1;
      await clock.sleep(backedOff(random, failures, restart), signal).catch(() => undefined);
    }
  }

  #own(name: StateChild): () => KeeperChild {
    const startedAt = this.#options.clock.now();
    return { nodes: () => nodesChild(startedAt), pools: poolsChild, builds: buildsChild, health: healthChild }[name];
  }

  #report(line: JournalLine): void {
    const key = lineKey(line);
    if (this.#reportedKeys.has(key)) return;
    this.#reportedKeys.add(key);
    this.#reported.push(line);
    const oldest = this.#reported.length > mostReports ? this.#reported.shift() : undefined;
    if (oldest !== undefined) this.#reportedKeys.delete(lineKey(oldest));
    for (const listener of this.#listeners) listener();
  }

  #gap(gap: KeepingGap): void {
    this.#gaps = [...this.#gaps, gap].slice(-50);
    this.#wake();
  }

  #hear(one: Supervised, news: ChildNews): void {
    switch (news.is) {
      case "closed":
        return this.#meter.closed(news.chapter);
      case "gap":
        return this.#gap({ of: news.of, message: news.message, at: this.#options.clock.now() });
      case "foreign":
        return this.#meter.foreign(news.component, news.lines);
      case "overdue":
        return this.#meter.overdue(news.pool, news.machines);
      case "heard":
        return this.#meter.heard(news.component, news.lagMs);
      case "bootstrap":
        if (!this.#hasBootstrapNews || JSON.stringify(this.#bootstrap) !== JSON.stringify(news.facts)) this.#wake();
        this.#hasBootstrapNews = true;
        this.#bootstrap = news.facts;
        return;
      case "stuck":
        if (news.why === undefined) one.stuck.delete(news.key);
        else
          one.stuck.set(news.key, {
            since: one.stuck.get(news.key)?.since ?? this.#options.clock.now(),
            why: news.why,
          });
        return;
    }
  }
}

/** Writes conditions of MachineConfiguration `cluster`, each an item of the list that one field manager owns. */
class ConditionWriter {
  readonly #options: StateControllerOptions;
  readonly #cache: WatchCache<MachineConfiguration>;

  constructor(options: StateControllerOptions, cache: WatchCache<MachineConfiguration>) {
    this.#options = options;
    this.#cache = cache;
  }

  /** Sends nothing if they are already set, or if the object does not exist yet. */
  async write(owner: string, reported: readonly ReportedCondition[], signal: AbortSignal): Promise<void> {
    const { kube, clock } = this.#options;
    const name = objects.machineConfiguration;
    const before = this.#cache.get(name);
    if (before === undefined || reported.length === 0) return;
    const conditions = withTransitions(
      reported,
      (before.status?.conditions ?? []) as readonly Condition[],
      clock.now(),
    );
    if (conditions === undefined) return;
    await kube.apply(
      MachineConfiguration,
      { metadata: { name }, status: { conditions: [...conditions] } },
      { owner, subresource: "status", signal },
    );
  }
}
