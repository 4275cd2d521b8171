import { greatestOf } from "../api/schema/extremes.ts";
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
import type { JournalEntryOf, ReportReason } from "../api/books/report-table.ts";
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
import { relevantOfNode, trimBuild, trimNode } from "../core/pool/trim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Caches, type Context, type Controller, type Watch, watching } from "../kube/controller.ts";
import type { Clock } from "../ports/clock.ts";
import { done } from "../kube/outcome.ts";
import { watchMachineConfigNodes } from "../kube/watch-members.ts";
import { type KeeperChild, type ChildContext, runAsChild } from "./child.ts";

const one = "health";
const named = (name: string) => ({ fieldSelector: `metadata.name=${name}` });
const ours = { namespace } as const;
/** Everything is checked again after this time; a condition whose message alone changes waits for it. */
const passSeconds = 30;
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
  Record<HealthType, { readonly chapter: string; readonly reasons: readonly ReportReason[] }>
>;

/**
 * Observes the suite's parts, and reports their health: conditions now, and chapters of the cluster's book on changes.
 */
export function healthChild(): KeeperChild {
  return {
    name: "health",
    run: (context, signal) => runAsChild(() => healthController(context), context, signal),
  };
}

/** What the child remembers between two passes. */
interface HealthMemory {
  readonly members: ClusterMembers;
  readonly leases: LeaseObserver;
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
      const conditions = healthConditions(await observeHealth(context, memory, inner));
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
      return done(passSeconds);
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
      if (before !== undefined && after !== undefined && equalValues(relevantOfNode(before), relevantOfNode(after)))
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
  { members, leases: observer, unseenSince }: HealthMemory,
  { caches, kube, signal }: Context,
): Promise<HealthFacts> {
  const now = clock.now();
  const silentMs = greatestOf(caches.all().map((cache) => cache.silentForMs()));
  const deployment = (name: string) =>
    deploymentFacts(caches.of(kubernetes.Deployment, ours).get(`${namespace}/${name}`), version);
  const daemonSet = (name: string) => caches.of(kubernetes.DaemonSet, ours).get(`${namespace}/${name}`);
  const journal = (name: string) => caches.of(MachineStateJournal, named(name)).get(name)?.spec.lines ?? [];
  const [operatorLease, controllerLease] = await Promise.all(
    [leases.operator, leases.controller].map((name) => kube.get(kubernetes.Lease, { name, namespace }, { signal })),
  );
  const daemons = daemonSet(objects.daemon);
  const cluster = { ...factsAbout(members, now), heardAt: now - silentMs };
  const operator = deployment(objects.operator);
  const server = daemonSetFacts(daemonSet(optionalParts.server), version);
  const builder = deployment(optionalParts.builder);
  return {
    version,
    cluster,
    clusterOperator: caches.of(ClusterOperator).get(objects.clusterOperator),
    operator: {
      deployment: operator,
      leader: observer.see(leases.operator, operatorLease, now),
      failing: failingParts(journal(journals.operator), "Operator", "Sync/"),
    },
    controller: {
      deployment: deployment(objects.controller),
      leader: observer.see(leases.controller, controllerLease, now),
      failing: failingParts(journal(journals.controller), "Controller", "Child/"),
    },
    daemons: {
      daemonSet: daemonSetFacts(daemons, version),
      away: hasGap(daemons) ? await unavailableDaemons(members, kube, signal) : [],
    },
    server:
      server === undefined
        ? undefined
        : { daemonSet: server, certificateEnds: certificateEnd(journal(journals.server)) },
    builder:
      builder === undefined ? undefined : { deployment: builder, stuck: stuckBuild(caches.of(MachineOSBuild).list()) },
    unseen: unseen(caches, unseenSince, now),
  };
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

/** Daemons that are not ready on machines whose kubelets are. */
async function unavailableDaemons(
  members: ClusterMembers,
  kube: Context["kube"],
  signal: AbortSignal,
): Promise<readonly UnavailableDaemon[]> {
  const { items } = await kube.list(
    kubernetes.Pod,
    { namespace, labelSelector: `k8s-app=${objects.daemon}` },
    { signal },
  );
  return items.flatMap((pod: Pod) => {
    const ready = conditionOf(
      (pod.status?.conditions ?? []) as { type: string; status: string; lastTransitionTime?: string }[],
      "Ready",
    );
    const node = pod.spec?.nodeName ?? "";
    if (
      node === "" ||
      ready?.status === "True" ||
      pod.metadata.deletionTimestamp !== undefined ||
      members.node(node)?.facts.kubeletReady !== true
    )
      return [];
    const restarts = greatestOf(
      (pod.status?.containerStatuses ?? [])
        .filter(({ state }) => state?.running === undefined)
        .map(({ restartCount }) => restartCount),
      0,
    );
    return [{ node, since: ready?.lastTransitionTime ?? pod.metadata.creationTimestamp ?? "", restarts }];
  });
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
  for (const key of since.keys()) if (!waiting.some(({ what }) => what === key)) since.delete(key);
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
        this.#write({ chapter, path: "Degraded", mark: "fail", reason: allowed, message });
      } else if (status === "True" && before !== undefined) {
        this.#bad.delete(type);
        this.#write({ chapter, path: "Degraded", mark: "end", reason: "Recovered", message });
      }
    }
  }

  #write(line: {
    readonly chapter: string;
    readonly path: "Degraded";
    readonly mark: "fail" | "end";
    readonly reason: string;
    readonly message: string;
  }): void {
    const { clock, version, report } = this.#context;
    const at = clock.now();
    const stamp = {
      writer: { component: "state", instance: one, version },
      boot: this.#life,
      number: { seq: (this.#seq += 1) },
      at,
      mono: clock.monotonic(),
    };
    // Chapter and reason come from one row of the table above; a test compares it with the table of reports.
    report({
      ...lineOf({ book: "cluster", level: "boundary", ...line } as JournalEntryOf<"cluster">, stamp),
      via: "seen",
    });
  }
}

export { chapters as healthChapters };
