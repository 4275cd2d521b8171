import { greatestOf, leastOf } from "../api/schema/extremes.ts";
import { ClusterOperator } from "../api/foreign/cluster-operator.ts";
import type { JournalLine } from "../api/books/journal-line.ts";
import { type DaemonSet, type Lease, type Pod, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { journals, namespace, objects } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import type { ReportReason } from "../api/books/report-table.ts";
import type { ReportedShortLineOf } from "../api/books/reports.ts";
import { completeLine } from "../api/books/short-lines.ts";
import { factsAbout } from "../core/pool/pool-queries.ts";
import { stuckBuild } from "../core/build/build-queue.ts";
import { buildSettings } from "../core/build/build-settings.ts";
import { ClusterMembers } from "../core/pool/cluster-members.ts";
import { daemonSetFacts, deploymentFacts } from "../core/pool/component-facts.ts";
import {
  type UnavailableDaemon,
  type Failing,
  type HealthFacts,
  type HealthType,
  type LeaderFacts,
  type ReportedCondition,
  healthConditions,
  healthReasonKey,
} from "../core/operator/health.ts";
import { lineOf } from "../core/books/journal.ts";
import { poolStatusInputs } from "../core/pool/pool-status.ts";
import { relevantOfMember, trimBuild, trimNode, trimReadiness } from "../core/pool/trim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Caches, type Context, type Controller, type Watch, watching } from "../kube/controller.ts";
import type { Clock } from "../ports/clock.ts";
import { done } from "../kube/outcome.ts";
import { watchMachineConfigNodes } from "../kube/watch-members.ts";
import { type KeeperChild, type ChildContext, runAsChild } from "./child.ts";
import { type HealthChapter, componentDegraded, componentRecovered } from "./reports.ts";

const one = "health";
const named = (name: string) => ({ fieldSelector: `metadata.name=${name}` });
const ours = { namespace } as const;
/** Everything is checked again after this time; a condition whose message alone changes waits for it. */
const passSeconds = 30;
/** Changes within this time cause one pass: root on a machine writes its Node as often as the API server takes it. */
const coalesceMs = 1000;
/** Passes ask once in this time for objects that no watch brings, however many passes there are: all daemons' pods are many. */
const askAgainMs = 10_000;
/** Names of leases: of the operator and of the controller, which are the reference's. */
const leases = { operator: "machine-config", controller: objects.controller } as const;
const optionalParts = { server: "machine-config-server", builder: "machine-os-builder" } as const;

/** Chapter of the cluster's book that reports on a component, and the possible reasons of its section Degraded. */
const chapters = {
  OperatorHealthy: { chapter: "Operator", reasons: ["SyncFailing", "SyncStalled", "VersionSkew", "NotAvailable"] },
  // Its own lines record a controller that fails.
  ControllerHealthy: {
    chapter: "Controller",
    reasons: ["NoLeader", "RenderFailing", "ChildStalled", "VersionSkew", "NotAvailable"],
  },
  DaemonsHealthy: { chapter: "Daemons", reasons: ["DaemonSilent", "DaemonCrashLoop", "DaemonOldVersion"] },
  ServerHealthy: { chapter: "Server", reasons: ["ServerDown"] },
  BuilderHealthy: { chapter: "OsBuilder", reasons: ["BuilderDown", "BuildQueueStuck"] },
} as const satisfies Partial<
  Record<HealthType, { readonly chapter: HealthChapter; readonly reasons: readonly ReportReason[] }>
>;

/**
 * Observes the suite's parts, and reports their health: conditions now, and chapters of the cluster's book on changes.
 */
export function healthChild(): KeeperChild {
  return {
    name: "health",
    run: (context, signal) => runAsChild(() => healthController(context), context, signal, { coalesceMs }),
  };
}

/** What the child remembers between two passes. */
interface HealthMemory {
  readonly members: ClusterMembers;
  readonly leases: LeaseObserver;
  readonly asked: {
    readonly leases: LastAnswer<readonly LeaderFacts[]>;
    /** Those that are not ready. */
    readonly daemons: LastAnswer<readonly UnavailableDaemon[]>;
  };
  /** Since when a change waits for its owner to observe it, in milliseconds since the epoch. */
  readonly unseenSince: Map<string, number>;
  readonly transitions: TransitionWriter;
  /** When the conditions were last written (monotonic milliseconds), and their content except messages. */
  written: { readonly at: number; readonly verdicts: string } | undefined;
}

function healthController(context: ChildContext): Controller {
  const memory: HealthMemory = {
    members: new ClusterMembers(),
    leases: new LeaseObserver(),
    asked: { leases: new LastAnswer(context.clock), daemons: new LastAnswer(context.clock) },
    unseenSince: new Map(),
    transitions: new TransitionWriter(context),
    written: undefined,
  };
  return {
    name: one,
    watches: [
      ...membersWatches(memory.members, context.clock),
      ...partWatches(),
      ...[journals.operator, journals.controller, journals.server, journals.osBuilder].map((name) =>
        watching({ resource: MachineStateJournal, selection: named(name), concerns: everything }),
      ),
    ],
    owns: [],
    start(add) {
      add(one);
    },
    async reconcile(_key, inner) {
      const { facts, againSeconds } = await observeHealth(context, memory, inner);
      const conditions = healthConditions(facts);
      memory.transitions.take(conditions);
      const verdicts = JSON.stringify(conditions.map(({ status, reason }) => [status, reason]));
      const now = context.clock.monotonic();
      // Messages that change with every step of a roll-out are written now and then; a verdict at once.
      const isDue =
        memory.written === undefined ||
        memory.written.verdicts !== verdicts ||
        now - memory.written.at >= passSeconds * 1000;
      if (isDue) {
        await context.writeHealth(conditions, inner.signal);
        memory.written = { at: now, verdicts };
      }
      return done(againSeconds);
    },
  };
}

const everything = () => [one];

/** Watches that keep `members` current, and ask for a pass when something relevant changed. */
const membersWatches = (members: ClusterMembers, clock: Clock): [Watch, ...Watch[]] => [
  watching({
    resource: MachineConfigPool,
    concerns: ({ key, before, after }) => {
      members.putPool(key, after, clock.now());
      return before !== undefined && after !== undefined && equalValues(relevantOfPool(before), relevantOfPool(after))
        ? []
        : [one];
    },
  }),
  watching({
    resource: MachineOSConfig,
    concerns: ({ key, after }) => (members.putMachineOSConfig(key, after, clock.now()).length > 0 ? [one] : []),
  }),
  watching({
    resource: MachineOSBuild,
    keep: trimBuild,
    concerns: ({ key, before, after }) =>
      members.putMachineOSBuild(key, after, before, clock.now()).length > 0 ? [one] : [],
  }),
  watchMachineConfigNodes(members, () => clock.now(), [one]),
  watching({
    resource: kubernetes.Node,
    keep: trimNode,
    concerns: ({ key, before, after }) => {
      if (before !== undefined && after !== undefined && equalValues(relevantOfMember(before), relevantOfMember(after)))
        return [];
      members.putNode(key, after, clock.now());
      return [one];
    },
  }),
  watching({
    resource: kubernetes.ConfigMap,
    selection: { ...ours, ...named(objects.buildConfig) },
    concerns: ({ after }) =>
      members.setGrace(buildSettings(after?.data).optOutGraceMs, clock.now()).length > 0 ? [one] : [],
  }),
];

const relevantOfPool = (pool: MachineConfigPool) => [
  pool.spec,
  pool.metadata.generation,
  pool.status?.observedGeneration,
  poolStatusInputs(pool),
];

/** Watches of the suite's own parts: every change asks for a pass. */
const partWatches = (): readonly Watch[] => [
  watching({ resource: kubernetes.Deployment, selection: ours, concerns: everything }),
  watching({ resource: kubernetes.DaemonSet, selection: ours, concerns: everything }),
  watching({ resource: ClusterOperator, selection: named(objects.clusterOperator), concerns: everything }),
  watching({ resource: MachineConfiguration, concerns: everything }),
];

async function observeHealth(
  { clock, version }: ChildContext,
  { members, asked, leases: observer, unseenSince }: HealthMemory,
  { caches, kube, signal }: Context,
): Promise<{ readonly facts: HealthFacts; readonly againSeconds: number }> {
  const now = clock.now();
  const silentMs = greatestOf(caches.all().map((cache) => cache.silentForMs()));
  const deployment = (name: string) =>
    deploymentFacts(caches.of(kubernetes.Deployment, ours).get(`${namespace}/${name}`), version);
  const daemonSet = (name: string) => caches.of(kubernetes.DaemonSet, ours).get(`${namespace}/${name}`);
  const journal = (name: string) => caches.of(MachineStateJournal, named(name)).get(name)?.spec.lines ?? [];
  const holders = await asked.leases.get(() =>
    Promise.all(
      [leases.operator, leases.controller].map(async (name) =>
        observer.see(name, await kube.get(kubernetes.Lease, { name, namespace }, { signal }), now),
      ),
    ),
  );
  const [operatorLeader = nobody, controllerLeader = nobody] = holders.answer;
  const daemons = daemonSet(objects.daemon);
  const cluster = { ...factsAbout(members, now), heardAt: now - silentMs };
  const operator = deployment(objects.operator);
  const server = daemonSetFacts(daemonSet(optionalParts.server), version);
  const builder = deployment(optionalParts.builder);
  const away = hasGap(daemons) ? await asked.daemons.get(() => unavailableDaemons(kube, signal)) : { answer: [] };
  const counts = [holders, away].flatMap(({ countsForMs = [] }) => countsForMs);
  const facts: HealthFacts = {
    version,
    cluster,
    clusterOperator: caches.of(ClusterOperator).get(objects.clusterOperator),
    operator: {
      deployment: operator,
      leader: operatorLeader,
      failing: failingParts(journal(journals.operator), "Operator", "Sync/"),
    },
    controller: {
      deployment: deployment(objects.controller),
      leader: controllerLeader,
      failing: failingParts(journal(journals.controller), "Controller", "Child/"),
    },
    daemons: {
      daemonSet: daemonSetFacts(daemons, version),
      away: away.answer.filter(({ node }) => members.node(node)?.facts.kubeletReady === true),
    },
    server:
      server === undefined
        ? undefined
        : { daemonSet: server, certificateEnds: certificateEnd(journal(journals.server)) },
    builder:
      builder === undefined ? undefined : { deployment: builder, stuck: stuckBuild(caches.of(MachineOSBuild).list()) },
    unseen: unseen(caches, unseenSince, now),
  };
  return { facts, againSeconds: leastOf([passSeconds, ...counts.map((ms) => ms / 1000)]) };
}

const nobody: LeaderFacts = { holder: "", renewedAt: undefined };

/** The answer to one question, which is asked again {@link askAgainMs} later at the earliest. */
class LastAnswer<T> {
  readonly #clock: Clock;
  /** At a monotonic time. */
  #last: { readonly answer: T; readonly at: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns beside an earlier answer, how long it counts: what changed since then is to be looked at after that. */
  async get(ask: () => Promise<T>): Promise<{ readonly answer: T; readonly countsForMs?: number }> {
    const now = this.#clock.monotonic();
    const countsForMs = this.#last === undefined ? 0 : this.#last.at + askAgainMs - now;
    if (this.#last !== undefined && countsForMs > 0) return { answer: this.#last.answer, countsForMs };
    this.#last = { answer: await ask(), at: now };
    return this.#last;
  }
}

/** When leases last changed, by this process's clock: the holder's clock may differ. */
class LeaseObserver {
  readonly #seen = new Map<string, { readonly version: string; readonly at: number }>();

  see(name: string, lease: Lease | undefined, now: number): LeaderFacts {
    if (lease === undefined) return { holder: "", renewedAt: undefined };
    const version = lease.metadata.resourceVersion ?? "";
    if (this.#seen.get(name)?.version !== version) this.#seen.set(name, { version, at: now });
    return { holder: lease.spec?.holderIdentity ?? "", renewedAt: this.#seen.get(name)?.at };
  }
}

const hasGap = (daemonSet: DaemonSet | undefined): boolean =>
  (daemonSet?.status?.numberReady ?? 0) < (daemonSet?.status?.desiredNumberScheduled ?? 0);

/** Daemons that are not ready. */
async function unavailableDaemons(kube: Context["kube"], signal: AbortSignal): Promise<readonly UnavailableDaemon[]> {
  const { items } = await kube.list(
    kubernetes.Pod,
    { namespace, labelSelector: `k8s-app=${objects.daemon}` },
    { signal, keep: (pod) => (isAway(pod) ? withRestarts(pod) : undefined) },
  );
  return items.map(({ metadata, spec, status }) => ({
    node: spec?.nodeName ?? "",
    since: readiness(status)?.lastTransitionTime ?? metadata.creationTimestamp ?? "",
    restarts: greatestOf(
      (status?.containerStatuses ?? []).map(({ restartCount }) => restartCount),
      0,
    ),
  }));
}

const readiness = (status: Pod["status"]) =>
  conditionOf((status?.conditions ?? []) as { type: string; status: string; lastTransitionTime?: string }[], "Ready");

const isAway = ({ metadata, spec, status }: Pod): boolean =>
  (spec?.nodeName ?? "") !== "" && readiness(status)?.status !== "True" && metadata.deletionTimestamp === undefined;

/** A pod's readiness, with the statuses of its containers that do not run. */
function withRestarts(pod: Pod): Pod {
  const containerStatuses = (pod.status?.containerStatuses ?? []).filter(({ state }) => state?.running === undefined);
  const trimmed = trimReadiness(pod);
  return { ...trimmed, status: { ...trimmed.status, containerStatuses } };
}

/** When the certificate of the config server ends, as its newest process that named it says, RFC 3339. */
const certificateEnd = (lines: readonly JournalLine[]): string | undefined => {
  const until = lines.findLast(({ chapter, data }) => chapter === "Server" && data?.["until"] !== undefined)?.data?.[
    "until"
  ];
  return until === undefined ? undefined : String(until);
};

/** Parts of a component that its newest process reported as failing, and not as recovered since. */
function failingParts(lines: readonly JournalLine[], chapter: string, prefix: string): readonly Failing[] {
  const newest = lines.findLast((line) => line.chapter === chapter);
  const last = new Map<string, JournalLine>();
  for (const line of lines)
    if (
      line.chapter === chapter &&
      line.path.startsWith(prefix) &&
      line.writer.instance === newest?.writer.instance &&
      line.boot === newest.boot
    )
      last.set(line.path.slice(prefix.length), line);
  return [...last].flatMap(([part, { mark, msg }]) => (mark === "end" ? [] : [{ part, message: msg }]));
}

/** Objects whose owner has not observed their generation yet. */
function unseen(caches: Caches, since: Map<string, number>, now: number): HealthFacts["unseen"] {
  const waiting = [
    ...caches
      .of(MachineConfigPool)
      .list()
      .filter(({ metadata, status }) => (status?.observedGeneration ?? 0) < (metadata.generation ?? 0))
      .map(({ metadata }) => ({ by: "controller" as const, part: "node", what: `the pool ${metadata.name}` })),
    ...caches
      .of(MachineConfiguration)
      .list()
      .filter(({ metadata, status }) => (status?.observedGeneration ?? 0) < (metadata.generation ?? 0))
      .map(() => ({ by: "operator" as const, part: "MachineConfiguration", what: "the MachineConfiguration cluster" })),
  ];
  const still = new Set(waiting.map(({ what }) => what));
  for (const key of since.keys()) if (!still.has(key)) since.delete(key);
  return waiting.map((one_) => {
    const at = since.get(one_.what) ?? now;
    since.set(one_.what, at);
    return { ...one_, since: at };
  });
}

/** Reports to the cluster's book when a component becomes unhealthy, and when it recovers. */
class TransitionWriter {
  readonly #context: ChildContext;
  readonly #bad = new Map<HealthType, string>();
  readonly #life: string;
  #seq = 0;

  constructor(context: ChildContext) {
    this.#context = context;
    this.#life = context.random.uuid();
  }

  take(conditions: readonly ReportedCondition<HealthType>[]): void {
    for (const { type, status, reason, message } of conditions) {
      if (type === "UpdateProgressing" || status === "Unknown") continue;
      const { chapter, reasons } = chapters[type];
      const key = healthReasonKey(reason);
      const allowed = (reasons as readonly string[]).find((each) => each === key);
      const before = this.#bad.get(type);
      if (status === "False" && allowed !== undefined && before !== allowed) {
        this.#bad.set(type, allowed);
        this.#write(componentDegraded(chapter, allowed, message));
      } else if (status === "True" && before !== undefined) {
        this.#bad.delete(type);
        this.#write(componentRecovered(chapter, message));
      }
    }
  }

  #write(line: ReportedShortLineOf<"cluster">): void {
    const { clock, version, report } = this.#context;
    const at = clock.now();
    const stamp = {
      writer: { component: "state", instance: one, version },
      boot: this.#life,
      number: { seq: (this.#seq += 1) },
      at,
      mono: clock.monotonic(),
    };
    report({ ...lineOf(completeLine(line), stamp), via: "seen" });
  }
}

export { chapters as healthChapters };
