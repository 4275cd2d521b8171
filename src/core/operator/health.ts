import type { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import { withTransition } from "../../api/schema/conditions.ts";
import { type Condition, conditionOf, timestampOf } from "../../api/schema/object.ts";
import { objects } from "../../api/names.ts";
import type { ReportReason } from "../../api/books/report-table.ts";
import type { StuckBuild } from "../build/build-queue.ts";
import { type ComponentFacts, type Facts, componentHealth, renderRefusal } from "../pool/pool-queries.ts";
import { poolsUnderWay } from "./cluster-operator-status.ts";
import { silentAfterMs } from "../pool/member-facts.ts";
import { listText } from "../text/list-text.ts";

/** Conditions of MachineConfiguration `cluster` that the health child keeps. */
export const healthTypes = [
  "OperatorHealthy",
  "ControllerHealthy",
  "DaemonsHealthy",
  "ServerHealthy",
  "BuilderHealthy",
  "UpdateProgressing",
] as const;
export type HealthType = (typeof healthTypes)[number];
/** Those that the state process keeps about itself and about what it has read. */
export const keepingTypes = ["StateKeeping", "BootstrapComplete"] as const;
export type KeepingType = (typeof keepingTypes)[number];

/** Derived from those of the parts, for people who look at one line: the worst of them, with its reason and message. */
export const overallType = "Healthy";

/** A condition without the time of its transition. */
export interface ReportedCondition<T extends string = string> {
  readonly type: T;
  readonly status: Condition["status"];
  readonly reason: string;
  readonly message: string;
}

/** Characters of a message, at most. */
const messageLength = 1024;
/** API server data older than this is stale. */
const staleMs = 150_000;
/** A lease without an observed renewal for this long has no holder. */
export const leaderlessAfterMs = 60_000;
/** Work that has waited for longer than this is stuck. */
export const stalledAfterMs = 5 * 60_000;
/** The same for the operator, whose sweep takes its time. */
export const syncStalledAfterMs = 10 * 60_000;
/** Restarts of a container that is not up. */
const crashLoop = 3;

/** Who leads a component, as its lease says. */
export interface LeaderFacts {
  /** Empty: no holder. */
  readonly holder: string;
  /** Milliseconds since the epoch of when the lease was last seen to change; `undefined`: there is no lease. */
  readonly renewedAt: number | undefined;
}

/** A daemon whose pod is not ready though its kubelet works. */
export interface UnavailableDaemon {
  readonly node: string;
  /** RFC 3339 */
  readonly since: string;
  readonly restarts: number;
}

/** A repeated failure, from the component's own lines. */
export interface Failing {
  /** Task or controller: `RBAC`, `render`. */
  readonly part: string;
  readonly message: string;
}

export interface HealthFacts {
  readonly version: string;
  readonly cluster: Facts;
  readonly clusterOperator: ClusterOperator | undefined;
  readonly operator: {
    readonly deployment: ComponentFacts | undefined;
    readonly leader: LeaderFacts;
    readonly failing: readonly Failing[];
  };
  readonly controller: {
    readonly deployment: ComponentFacts | undefined;
    readonly leader: LeaderFacts;
    readonly failing: readonly Failing[];
  };
  /** Looked at only while some are missing. */
  readonly daemons: { readonly daemonSet: ComponentFacts | undefined; readonly away: readonly UnavailableDaemon[] };
  /** `undefined`: it is not installed, and so not needed. */
  readonly server: { readonly daemonSet: ComponentFacts; readonly certificateEnds: string | undefined } | undefined;
  readonly builder: { readonly deployment: ComponentFacts; readonly stuck: StuckBuild | undefined } | undefined;
  /** What its owner has not looked at for a while, and since when (milliseconds since the epoch). */
  readonly unseen: readonly {
    readonly by: "operator" | "controller";
    readonly part: string;
    readonly what: string;
    readonly since: number;
  }[];
}

/** A word as the middle of a reason: `machine-config` → `MachineConfig`. */
const camel = (text: string) =>
  text.replaceAll(/(^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, __, letter: string) => letter.toUpperCase());

const clip = (text: string, length: number = messageLength) =>
  text.length <= length ? text : `${text.slice(0, length - 1)}…`;
const some = (names: readonly string[]) => listText(names, 5);

type Verdict = Omit<ReportedCondition, "type">;
const fine = (message: string, reason: ReportReason = "AsExpected"): Verdict => ({ status: "True", reason, message });
const bad = (reason: string, message: string): Verdict => ({ status: "False", reason, message });
const unknown = (reason: ReportReason, message: string): Verdict => ({ status: "Unknown", reason, message });

/**
 * How the parts of the suite are, from what is seen of them. The ClusterOperator is made of the same answers of core
 * (`componentHealth`, `poolsUnderWay`, `renderRefusal`, the outcomes of the operator's tasks), so that the two agree.
 */
export function healthConditions(facts: HealthFacts): readonly ReportedCondition<HealthType>[] {
  const { heardAt, now } = facts.cluster;
  const judge: Readonly<Record<HealthType, (facts: HealthFacts) => Verdict>> = {
    OperatorHealthy: operatorHealth,
    ControllerHealthy: controllerHealth,
    DaemonsHealthy: daemonsHealth,
    ServerHealthy: serverHealth,
    BuilderHealthy: builderHealth,
    UpdateProgressing: updateProgress,
  };
  return healthTypes.map((type) => {
    const isFresh = heardAt !== undefined && now - heardAt <= staleMs;
    const verdict = isFresh
      ? judge[type](facts)
      : unknown(
          "NotKnown",
          heardAt === undefined
            ? "not everything has been read yet"
            : `nothing was heard of the API server since ${timestampOf(heardAt)}`,
        );
    const chapter = verdict.status === "False" ? chapterOf[type] : undefined;
    const more = chapter === undefined ? "" : `; chapter ${chapter} of the cluster's book records the cause`;
    return { type, ...verdict, message: `${clip(verdict.message, messageLength - more.length)}${more}` };
  });
}

/** The conditions that say how a part is, in the order in which their troubles come first. */
const partTypes = [...healthTypes.filter((type) => type !== "UpdateProgressing"), "StateKeeping"] as const;

/** The worst of what was reported of the parts; `undefined`: nothing was reported yet. */
export function overallHealth(
  reported: readonly ReportedCondition[],
): ReportedCondition<typeof overallType> | undefined {
  const parts = partTypes.flatMap((type) => reported.find((condition) => condition.type === type) ?? []);
  if (parts.length === 0) return undefined;
  const worst = parts.find(({ status }) => status === "False") ?? parts.find(({ status }) => status === "Unknown");
  return worst === undefined
    ? { type: overallType, status: "True", reason: "AsExpected", message: "" }
    : {
        type: overallType,
        status: worst.status,
        reason: worst.reason,
        message: clip(`${worst.type}: ${worst.message}`),
      };
}

/** Chapter of the cluster's book that records a component. */
const chapterOf: Partial<Readonly<Record<HealthType, string>>> = {
  OperatorHealthy: "Operator",
  ControllerHealthy: "Controller",
  DaemonsHealthy: "Daemons",
  ServerHealthy: "Server",
  BuilderHealthy: "OsBuilder",
};

/** Whether copies of a component are there; `undefined`: they are. */
function missing(
  { cluster, version }: HealthFacts,
  name: string,
  component: ComponentFacts | undefined,
): Verdict | undefined {
  const health = componentHealth(cluster, name, component);
  switch (health.value.is) {
    case "Healthy":
      return undefined;
    case "Unknown":
      return unknown("InProgress", health.because.message);
    case "Unhealthy":
      return health.because.reason === "OldVersion"
        ? bad("VersionSkew", `${health.because.message} (${version})`)
        : bad("NotAvailable", health.because.message);
  }
}

function leaderless({ cluster }: HealthFacts, { holder, renewedAt }: LeaderFacts): string | undefined {
  if (renewedAt === undefined || holder === "") return "its lease has no holder";
  return cluster.now - renewedAt > leaderlessAfterMs
    ? `${holder} holds its lease and has not renewed it since ${timestampOf(renewedAt)}`
    : undefined;
}

function operatorHealth(facts: HealthFacts): Verdict {
  const { operator, clusterOperator, cluster, version } = facts;
  // An installation may leave the operator's release unset.
  const gone =
    operator.deployment === undefined
      ? undefined
      : missing(facts, objects.operator, { ...operator.deployment, ofThisVersion: operator.deployment.wanted });
  if (gone !== undefined) return gone;
  const nobody = leaderless(facts, operator.leader);
  if (nobody !== undefined) return bad("SyncStalled", `the operator reconciles nothing: ${nobody}`);
  const [first] = operator.failing;
  const failed =
    clusterOperator === undefined
      ? first === undefined
        ? undefined
        : { task: first.part, message: first.message }
      : failedTask(clusterOperator);
  if (failed !== undefined) return bad(`Sync${camel(failed.task)}Failing`, failed.message);
  const late = facts.unseen.find(({ by, since }) => by === "operator" && cluster.now - since > syncStalledAfterMs);
  if (late !== undefined)
    return bad("SyncStalled", `${late.what} has waited for the operator since ${timestampOf(late.since)}`);
  const reached = clusterOperator?.status?.versions?.find(({ name }) => name === "operator")?.version;
  if (reached === undefined) return unknown("InProgress", "the suite is being installed");
  if (reached !== version)
    return bad(
      "VersionSkew",
      `not everything is at ${version} yet: ${conditionOf(clusterOperator?.status?.conditions, "Progressing")?.message ?? ""}`,
    );
  return fine(`every task of the operator works, at ${reached}`);
}

/** The task of the operator that fails first, as the ClusterOperator says it. */
function failedTask(
  clusterOperator: ClusterOperator | undefined,
): { readonly task: string; readonly message: string } | undefined {
  const degraded = conditionOf(clusterOperator?.status?.conditions, "Degraded");
  const task = /^(.+)Failed$/.exec(degraded?.reason ?? "")?.[1];
  return degraded?.status === "True" && task !== undefined ? { task, message: degraded.message ?? "" } : undefined;
}

function controllerHealth(facts: HealthFacts): Verdict {
  const { controller, cluster } = facts;
  const gone = missing(facts, objects.controller, controller.deployment);
  if (gone !== undefined) return gone;
  const nobody = leaderless(facts, controller.leader);
  if (nobody !== undefined) return bad("NoLeader", nobody);
  const refused = cluster.members.pools().flatMap((pool) => {
    const why = renderRefusal(pool);
    return why === undefined ? [] : [`pool ${pool.metadata.name} cannot be rendered: ${why}`];
  });
  if (refused.length > 0) return bad("RenderFailing", refused.join("; "));
  const [failing] = controller.failing;
  if (failing !== undefined) return bad(failingReason(failing.part), failing.message);
  const late = facts.unseen.find(({ by, since }) => by === "controller" && cluster.now - since > stalledAfterMs);
  if (late !== undefined)
    return bad(
      `${camel(late.part)}Stalled`,
      `${late.what} has waited for the controller ${late.part} since ${timestampOf(late.since)}`,
    );
  return fine(`${controller.leader.holder.split("_")[0] ?? ""} leads, and nothing waits`);
}

/** `DrainFailing`; of a controller whose word is another reason already, `RenderControllerFailing`. */
function failingReason(part: string): string {
  const reason = `${camel(part)}Failing`;
  return isPlain(reason) ? `${camel(part)}ControllerFailing` : reason;
}

function daemonsHealth(facts: HealthFacts): Verdict {
  const { daemons, cluster } = facts;
  const health = componentHealth(cluster, objects.daemon, daemons.daemonSet);
  const crashing = daemons.away
    .filter(({ restarts }) => restarts >= crashLoop)
    .map(({ node, restarts }) => `${node} (${restarts} restarts)`);
  const silent = daemons.away
    .filter(({ since }) => cluster.now - Date.parse(since) > silentAfterMs)
    .map(({ node, since }) => `${node} (since ${since})`);
  if (crashing.length > 0) return bad("DaemonCrashLoop", `daemons end again and again on ${some(crashing)}`);
  if (silent.length > 0)
    return bad("DaemonSilent", `no daemon manages ${some(silent)}: the daemons there are not ready`);
  switch (health.value.is) {
    case "Unknown":
      return unknown("InProgress", health.because.message);
    case "Unhealthy":
      if (health.because.reason === "OldVersion") return bad("DaemonOldVersion", health.because.message);
      // Machines that reboot, and daemons that have just been started, are away for a while.
      return fine(`${health.because.message}; none of them for longer than machines and daemons take to come up`);
    case "Healthy":
      return fine(health.because.message);
  }
}

function serverHealth(facts: HealthFacts): Verdict {
  const { server, cluster } = facts;
  if (server === undefined) return fine("no config server is installed, and none is needed", "NotNeeded");
  const health = componentHealth(cluster, "machine-config-server", server.daemonSet);
  if (health.value.is === "Unknown") return unknown("InProgress", health.because.message);
  if (health.value.is === "Unhealthy" && server.daemonSet.available === 0)
    return bad("ServerDown", health.because.message);
  if (server.certificateEnds !== undefined && Date.parse(server.certificateEnds) - cluster.now < 7 * 86_400_000)
    return bad("CertExpiring", `its certificate ends at ${server.certificateEnds}`);
  return fine(health.because.message);
}

function builderHealth(facts: HealthFacts): Verdict {
  const { builder, cluster } = facts;
  if (builder === undefined || builder.deployment.wanted === 0)
    return fine("no pool has opted in to images that are built on the cluster", "NotNeeded");
  const health = componentHealth(cluster, "machine-os-builder", builder.deployment);
  if (health.value.is === "Unknown") return unknown("InProgress", health.because.message);
  if (health.value.is === "Unhealthy") return bad("BuilderDown", health.because.message);
  const { stuck } = builder;
  if (stuck !== undefined && cluster.now - Date.parse(stuck.since) > stalledAfterMs)
    return bad(
      "BuildQueueStuck",
      `the build ${stuck.name} has waited since ${stuck.since}, and no other one runs${stuck.message === "" ? "" : `: ${stuck.message}`}`,
    );
  return fine(health.because.message);
}

function updateProgress({ cluster }: HealthFacts): Verdict {
  const underWay = poolsUnderWay(cluster);
  if (underWay.length > 0)
    return fine(
      `pools under way: ${underWay.map(({ pool, line }) => `${pool} (${line})`).join(", ")}`,
      "PoolsUpdating",
    );
  return { status: "False", reason: "AsExpected", message: "no machine is being updated" };
}

/** How one child of the state process does. */
export type ChildState =
  | { readonly is: "running" }
  /** It has not read everything yet. */
  | { readonly is: "starting" }
  | { readonly is: "off" }
  /** @property since milliseconds since the epoch */
  | { readonly is: "down"; readonly since: number; readonly why: string };

/** A time span that the books cover only in part. */
export interface KeepingGap {
  /** Child, or book. */
  readonly of: string;
  readonly message: string;
  /** Milliseconds since the epoch of when it ended. */
  readonly at: number;
}

const gapShownMs = 3_600_000;

/** Whether all history is kept. */
export function stateKeeping(
  children: Readonly<Record<string, ChildState>>,
  gaps: readonly KeepingGap[],
  now: number,
): ReportedCondition<"StateKeeping"> {
  const type = "StateKeeping";
  const all = Object.entries(children);
  const answer = (verdict: Verdict): ReportedCondition<"StateKeeping"> => ({
    type,
    ...verdict,
    message: clip(verdict.message),
  });
  const down = all.flatMap(([name, state]) => (state.is === "down" ? [{ name, ...state }] : []));
  const [first] = down;
  if (first !== undefined)
    return answer(
      bad(
        `Child${camel(first.name)}Down`,
        down.map(({ name, since, why }) => `${name} is down since ${timestampOf(since)}: ${why}`).join("; "),
      ),
    );
  const off = all.flatMap(([name, { is }]) => (is === "off" ? [name] : []));
  if (off.length > 0) return answer(bad("Off", `switched off: ${off.join(", ")}`));
  const starting = all.flatMap(([name, { is }]) => (is === "starting" ? [name] : []));
  if (starting.length > 0) return answer(unknown("InProgress", `being started: ${starting.join(", ")}`));
  const recent = gaps.filter(({ at }) => now - at < gapShownMs);
  if (recent.length > 0) return answer(bad("Gap", some(recent.map(({ of, message }) => `${of}: ${message}`))));
  return answer(fine(`all ${all.length} children run`));
}

/** What is known of the journal `bootstrap`. */
export type BootstrapFacts =
  | { readonly journal: "missing" }
  | { readonly journal: "unreadable"; readonly why: string }
  | { readonly journal: "there"; readonly handedOver: boolean; readonly folded: boolean };

/** Whether what happened before there was a cluster is in the books. */
export function bootstrapComplete(facts: BootstrapFacts): ReportedCondition<"BootstrapComplete"> {
  const type = "BootstrapComplete";
  switch (facts.journal) {
    case "missing":
      return {
        type,
        ...bad(
          "BootstrapJournalMissing",
          "there is no MachineStateJournal bootstrap: what happened before the cluster was not handed over",
        ),
      };
    case "unreadable":
      return {
        type,
        ...bad("BootstrapJournalMissing", clip(`the MachineStateJournal bootstrap cannot be read: ${facts.why}`)),
      };
    case "there":
      if (!facts.folded)
        return { type, ...bad("InProgress", "the journal of the bootstrap is being read into the books") };
      if (!facts.handedOver) return { type, ...bad("InProgress", "the bootstrap has not handed over yet") };
      return { type, ...fine("the bootstrap is in the book of the cluster") };
  }
}

/** Replaces the conditions while no process maintains them. */
export const switchedOff = <T extends string>(types: readonly T[]): readonly ReportedCondition<T>[] =>
  types.map((type) => ({
    type,
    ...unknown("Off", "the state process does not run, or this part of it is switched off"),
  }));

/**
 * The conditions with the times of their transitions, which move with the status alone. `undefined`: they are there
 * already.
 */
export function withTransitions(
  answers: readonly ReportedCondition[],
  before: readonly Condition[],
  now: number,
): readonly Condition[] | undefined {
  const conditions = answers.map(({ type, status, reason, message }) =>
    withTransition(conditionOf(before, type), { type, status, reason, message }, now),
  );
  return conditions.every((condition) => before.includes(condition)) ? undefined : conditions;
}

/**
 * The entry of the closed list of reasons that explains the reason of a health condition, which may name a part:
 * `SyncRBACFailing`.
 */
export function healthReasonKey(reason: string): ReportReason | undefined {
  if (isPlain(reason)) return reason;
  if (/^Sync[A-Z]\w*Failing$/.test(reason)) return "SyncFailing";
  if (/^Child[A-Z]\w*Down$/.test(reason)) return "ChildDown";
  if (/^[A-Z]\w*Failing$/.test(reason)) return "ChildFailing";
  return /^[A-Z]\w*Stalled$/.test(reason) ? "ChildStalled" : undefined;
}

const plainReasons = [
  "AsExpected",
  "NotNeeded",
  "NotKnown",
  "InProgress",
  "Off",
  "Gap",
  "BootstrapJournalMissing",
  "PoolsUpdating",
  "SyncStalled",
  "VersionSkew",
  "NotAvailable",
  "NoLeader",
  "RenderFailing",
  "DaemonSilent",
  "DaemonCrashLoop",
  "DaemonOldVersion",
  "ServerDown",
  "CertExpiring",
  "BuilderDown",
  "BuildQueueStuck",
] as const satisfies readonly ReportReason[];
const isPlain = (reason: string): reason is (typeof plainReasons)[number] =>
  plainReasons.some((each) => each === reason);
