import type { Node, Pod } from "../../api/foreign/kubernetes.ts";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, labels, poolConditions } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { ClusterMembers } from "./cluster-members.ts";
import { type UpgradeBlocker, imageBlocker } from "./image-blocker.ts";
import { givenConfigs, isOfNode } from "../config/given-configs.ts";
import { baseOf, shortImage } from "../config/image-pair.ts";
import { type MemberFacts, isControlPlane, isDone, isUnderUpdate } from "./member-facts.ts";
import { isMirror, isStatic } from "./mirror-pods.ts";
import type { Phase } from "../books/phase.ts";
import type { Past } from "../books/past.ts";
import { type PoolBlocker, type PoolFacts, type PoolProgress, poolBlockers, poolProgress } from "./pool-progress.ts";
import { poolPolicy } from "./pool-policy.ts";
import { isQuarantined } from "./quarantine.ts";
import { type StorageOverride, describeIrreconcilable, irreconcilableBetween } from "../config/reconcilable.ts";
import { isOpenShiftBy, openshiftNamespaces } from "../render/openshift-inputs.ts";
import { storageOverridesOf } from "../render/render-for-pool.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import type { PoolMembers } from "./pool-members.ts";
import { selectNodes } from "./select-nodes.ts";
import type { EtcdMember, RolloutPolicy, WaitReason } from "./rollout-holds.ts";
import { listText } from "../text/list-text.ts";

/** How current the facts are that an answer rests on. `Unknown`: not everything has been read even once. */
export type Freshness = "Fresh" | "Stale" | "Unknown";

/** Why it is so, for people (`message`) and programs (`reason`), with the objects that say so. */
export interface Reasoned {
  readonly reason: string;
  readonly message: string;
  /** `node/worker-0`, `machineconfigpool/worker`. */
  readonly refs: readonly string[];
}

/** A value that never comes without when it was true, and why. */
export interface Answer<T> {
  readonly value: T;
  /** RFC 3339 */
  readonly asOf: string;
  readonly freshness: Freshness;
  readonly because: Reasoned;
}

/** A snapshot of a cluster, from caches or from lists. */
export interface Facts {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /**
   * Milliseconds since the epoch of when the server was last heard on every kind; `undefined`: some kind was never
   * read.
   */
  readonly heardAt: number | undefined;
  readonly members: ClusterMembers;
  readonly machineConfig: (name: string) => MachineConfig | undefined;
  /** What running machines need not follow, as the administrator has allowed. */
  readonly storageOverrides: readonly StorageOverride[];
  readonly etcd: readonly EtcdMember[];
  readonly operatorNode: string;
}

/** Servers report at least once a minute; longer silence means stale data. */
const staleMs = 150_000;

function answer<T>(facts: Pick<Facts, "now" | "heardAt">, value: T, because: Reasoned): Answer<T> {
  const { heardAt, now } = facts;
  const freshness = heardAt === undefined ? "Unknown" : now - heardAt > staleMs ? "Stale" : "Fresh";
  return { value, asOf: new Date(heardAt ?? now).toISOString(), freshness, because };
}

/** Facts from whole lists, for the command line and tests. */
export function factsOf(
  objects: {
    readonly pools: readonly MachineConfigPool[];
    readonly nodes: readonly Node[];
    readonly machineConfigNodes: readonly MachineConfigNode[];
    readonly machineConfigs?: readonly MachineConfig[];
    readonly machineConfiguration?: MachineConfiguration | undefined;
    readonly machineOSConfigs?: readonly MachineOSConfig[];
    readonly machineOSBuilds?: readonly MachineOSBuild[];
    readonly daemonPods?: readonly Pod[];
    readonly etcdPods?: readonly Pod[];
    /** Says whether members of etcd are pods of OpenShift's namespace. */
    readonly controllerConfig?: ControllerConfig | undefined;
    readonly operatorPods?: readonly Pod[];
  },
  now: number,
): Facts {
  const configs = new Map((objects.machineConfigs ?? []).map((config) => [config.metadata.name, config]));
  return {
    now,
    heardAt: now,
    members: ClusterMembers.of(objects, now),
    machineConfig: (name) => configs.get(name),
    storageOverrides: storageOverridesOf(objects.machineConfiguration),
    etcd: etcdMembers(objects.etcdPods ?? [], isOpenShiftBy(objects.controllerConfig)),
    operatorNode: operatorNodeOf(objects.operatorPods ?? []),
  };
}

/** Facts from cached members, without the data that only the selection of machines needs. */
export function factsAbout(members: ClusterMembers, now: number): Facts {
  return {
    now,
    heardAt: now,
    members,
    machineConfig: () => undefined,
    storageOverrides: [],
    etcd: [],
    operatorNode: "",
  };
}

/** Pods of etcd on OpenShift, and on clusters that kubeadm made. */
export const etcdPods = [
  { namespace: openshiftNamespaces.etcd, labelSelector: "app=etcd" },
  { namespace: "kube-system", labelSelector: "component=etcd" },
] as const;

/**
 * Members of etcd, from their pods. Of OpenShift's namespace only static pods count, and only where the cluster is
 * OpenShift's: elsewhere a tenant may have created the namespace.
 */
export function etcdMembers(pods: readonly Pod[], onOpenShift: boolean): readonly EtcdMember[] {
  return pods
    .filter((pod) => pod.metadata.namespace !== openshiftNamespaces.etcd || (onOpenShift && isStatic(pod)))
    .filter(
      ({ spec, status }) =>
        (spec?.nodeName ?? "") !== "" && status?.phase !== "Succeeded" && status?.phase !== "Failed",
    )
    .map(({ spec, status }) => ({
      node: spec?.nodeName ?? "",
      ready: (status?.conditions ?? []).some(({ type, status: is }) => type === "Ready" && is === "True"),
    }))
    .sort((a, b) => (a.node < b.node ? -1 : 1));
}

/** The node that the operator runs on; empty if unknown. */
export function operatorNodeOf(pods: readonly Pod[]): string {
  const running = pods.find(
    (pod) => pod.metadata.deletionTimestamp === undefined && pod.status?.phase === "Running" && !isMirror(pod),
  );
  return running?.spec?.nodeName ?? "";
}

/** The settings of a pool and of the whole cluster that control a roll-out. */
export function rolloutPolicy(facts: Facts, pool: MachineConfigPool): RolloutPolicy {
  const { oneZoneAtATime, canary } = poolPolicy(pool).policy;
  const members = facts.members.members(pool.metadata.name);
  const count =
    members.image.image === "" ? 0 : (canary.count ?? (isNewBase(facts, pool.metadata.name, members) ? 1 : 0));
  return {
    oneZoneAtATime,
    controlPlane: facts.members.controlPlane.values(),
    // Any kubelet makes a pod that looks like a member.
    etcd: facts.etcd.filter(({ node }) => mayRunEtcd(facts.members.node(node)?.node)),
    operatorNode: facts.operatorNode,
    ...(count === 0 ? {} : { canary: { count, wellMs: canary.seconds * 1000 } }),
    afterOthers: workersFirst(facts, pool, members),
  };
}

/** Whether a machine has a role that members of etcd run on. No kubelet can give itself one. */
const mayRunEtcd = (node: Node | undefined): boolean =>
  node !== undefined && (isControlPlane(node) || node.metadata.labels?.[labels.arbiterRole] !== undefined);

/**
 * Whether no machine of the pool has run an image on this base before. What a node says of its image counts only where it is
 * one of the pool's own builds, for a configuration that the machine was given.
 */
function isNewBase(facts: Facts, pool: string, members: PoolMembers): boolean {
  const { image, base } = members.image;
  if (base === "") return true;
  const configsOf = Map.groupBy(
    facts.members.buildsOf(pool).filter((build) => baseOf(build) === base),
    ({ status }) => status?.digestedImagePushSpec ?? "",
  );
  for (const { name, currentImage } of members.all()) {
    const builds = currentImage === "" || currentImage === image ? undefined : configsOf.get(currentImage);
    if (builds === undefined) continue;
    const given = givenTo(facts, name);
    if (builds.some(({ spec }) => given.includes(spec.machineConfig.name))) return false;
  }
  return true;
}

/** The configurations that the controller has recorded as given to a machine. */
function givenTo({ members }: Facts, name: string): readonly string[] {
  const known = members.node(name);
  return known?.machineConfigNode !== undefined && isOfNode(known.machineConfigNode, known.node.metadata.uid)
    ? givenConfigs(known.machineConfigNode)
    : [];
}

/** If all pools were opted in at once, pools with the control plane get their first image after the others. */
function workersFirst(facts: Facts, pool: MachineConfigPool, members: PoolMembers): RolloutPolicy["afterOthers"] {
  if (!members.image.byDefault || members.image.image === "") return undefined;
  const all = [...members.all()];
  if (!all.some(({ controlPlane }) => controlPlane) || all.some(({ desiredImage }) => desiredImage !== ""))
    return undefined;
  const behind = facts.members.pools().find((other) => {
    const others = facts.members.members(other.metadata.name);
    if (other.metadata.name === pool.metadata.name || !others.image.byDefault || other.spec.paused === true)
      return false;
    return others.updated < others.size && ![...others.all()].some(({ controlPlane }) => controlPlane);
  });
  if (behind === undefined) return undefined;
  const { name } = behind.metadata;
  return {
    message: `machines of the control plane get their first image when those of pool ${name} have theirs`,
    remedy: `mco explain pool/${name}; pausing that pool lets this one go on`,
  };
}

/** All facts about one pool, with the machines that it would select now. `undefined`: the pool does not exist. */
export function poolFacts(
  facts: Facts,
  name: string,
  options: {
    readonly alsoQuarantined?: readonly string[];
    readonly named?: number;
  } = {},
): PoolFacts | undefined {
  const pool = facts.members.pool(name);
  if (pool === undefined) return undefined;
  const members = facts.members.members(name);
  const selection = selectNodes(
    {
      paused: pool.spec.paused === true || pool.metadata.deletionTimestamp !== undefined,
      maxUnavailable: pool.spec.maxUnavailable,
      quarantined: [
        ...(isQuarantined(pool, members.target, members.image.image) ? [members.target] : []),
        ...(options.alsoQuarantined ?? []),
      ],
    },
    members,
    rolloutPolicy(facts, pool),
    facts.now,
    ...(options.named === undefined ? [] : [options.named]),
  );
  const ambiguous = new Map(
    [...facts.members.unassigned].flatMap(([node, membership]) =>
      membership.verdict === "ambiguous" && membership.pools.includes(name) ? [[node, membership.pools] as const] : [],
    ),
  );
  return {
    pool,
    members,
    selection,
    irreconcilable: irreconcilableOf(facts, pool),
    ambiguous,
    now: facts.now,
  };
}

/** Why machines with the pool's previous config cannot be brought to the desired one. */
function irreconcilableOf({ machineConfig, storageOverrides }: Facts, pool: MachineConfigPool): readonly string[] {
  const [from, to] = [
    machineConfig(pool.status?.configuration?.name ?? ""),
    machineConfig(pool.spec.configuration?.name ?? ""),
  ];
  return irreconcilableBetween(from, to, storageOverrides).map(describeIrreconcilable);
}

/** Where a node can be in its update. */
export const nodePlaces = [
  "Unmanaged",
  "Joining",
  "Idle",
  "NeedsUpdate",
  "Preparing",
  "Executing",
  "PostAction",
  "Resuming",
  "Completing",
  "Degraded",
  "Unreconcilable",
  "Lost",
  "Silent",
  "Leaving",
] as const;

/** What a node is doing, in the terms of its update. */
export type NodePosition =
  | { readonly at: Exclude<(typeof nodePlaces)[number], "Executing" | "PostAction" | "Degraded" | "Unreconcilable"> }
  | { readonly at: "Executing"; readonly step: Phase }
  | { readonly at: "PostAction"; readonly kind: "Reboot" | "Services" }
  | { readonly at: "Degraded" | "Unreconcilable"; readonly message: string };

/** `undefined`: the node does not exist. */
export function nodePosition(facts: Facts, name: string): Answer<NodePosition> | undefined {
  const known = facts.members.node(name);
  if (known === undefined) return undefined;
  const { node, membership, facts: member } = known;
  const say = (value: NodePosition, reason: string, message: string, refs: readonly string[] = []) =>
    answer(facts, value, { reason, message, refs: [`node/${name}`, ...refs] });
  if (node.metadata.deletionTimestamp !== undefined)
    return say({ at: "Leaving" }, "NodeDeleted", "the node is being deleted");
  if (membership.verdict === "ambiguous")
    return say(
      { at: "Unmanaged" },
      "SeveralPools",
      `the pools ${membership.pools.join(" and ")} select it, so that it belongs to none of them`,
      membership.pools.map((pool) => `machineconfigpool/${pool}`),
    );
  if (membership.verdict === "none") return say({ at: "Unmanaged" }, "NoPool", membership.reason);
  const refs = [`machineconfigpool/${membership.pool}`, `machineconfignode/${name}`];
  const members = facts.members.members(membership.pool);
  const { at, reason, message } =
    positionOfPhase(member) ?? (members.isSilent(name) ? silentPosition(member) : positionOnTarget(member, members));
  return say(at, reason, message, refs);
}

/** A position with its reason. */
interface Placed {
  readonly at: NodePosition;
  readonly reason: string;
  readonly message: string;
}

const placed = (at: NodePosition, reason: string, message: string): Placed => ({ at, reason, message });

/**
 * The position of a machine that is updating or needs help; `undefined`: neither, so its target determines the
 * position.
 */
function positionOfPhase({ phase, says, kubeletReason }: MemberFacts): Placed | undefined {
  const detail = says === "" ? "" : `: ${says}`;
  switch (phase) {
    case "Lost":
      return placed(
        { at: "Lost" },
        "KubeletSilent",
        `its kubelet is not ready (${kubeletReason}), and no reboot was announced`,
      );
    case "Degraded":
      return placed(
        { at: "Degraded", message: says },
        "DaemonReportsFailure",
        `the daemon cannot go on without help${detail}`,
      );
    case "Unreconcilable":
      return placed(
        { at: "Unreconcilable", message: says },
        "CannotBeApplied",
        `the target cannot be applied to a running machine${detail}`,
      );
    case "Joining":
      return placed({ at: "Joining" }, "NothingApplied", "nothing has been applied to it yet");
    case "Preparing":
      return placed({ at: "Preparing" }, "Working", "its daemon has taken the target on and checks it");
    case "Cordoning":
    case "Draining":
    case "ApplyingFiles":
    case "ApplyingOS":
    case "PullingImage":
      return placed({ at: "Executing", step: phase }, "Working", `it carries its plan out${detail}`);
    case "Rebooting":
      return placed({ at: "PostAction", kind: "Reboot" }, "Rebooting", `it reboots${detail}`);
    case "PostAction":
      return placed({ at: "PostAction", kind: "Services" }, "PostAction", `it puts services in order${detail}`);
    case "Resuming":
      return placed({ at: "Resuming" }, "Resuming", "it is up again, and its daemon checks the booted system");
    case "Uncordoning":
      return placed({ at: "Completing" }, "Uncordoning", "it is being put back into service");
    case "NeedsUpdate":
    case "Updated":
    case "Unknown":
      return undefined;
  }
}

const silentPosition = ({ daemonAwaySince }: MemberFacts): Placed =>
  placed(
    { at: "Silent" },
    "DaemonSilent",
    `its daemon's pod has not been ready since ${daemonAwaySince}, so the machine is not managed`,
  );

/** The position of an idle machine relative to its pool's target. */
function positionOnTarget(member: MemberFacts, members: PoolMembers): Placed {
  if (isUnderUpdate(member) && isDone(member))
    return placed({ at: "Completing" }, "Uncordoning", "it has its target and is being put back into service");
  const { image, target } = members;
  const withImage = (of: string) => (of === "" ? "" : ` in image ${shortImage(of)}`);
  if (target !== "" && image.awaits !== undefined)
    return placed({ at: "NeedsUpdate" }, image.awaits.reason, image.awaits.message);
  if (target !== "" && !members.isTargeted(member))
    return placed(
      { at: "NeedsUpdate" },
      "WaitsForTurn",
      `it has ${member.current}${withImage(member.currentImage)} and should have ${target}${withImage(image.image)}`,
    );
  if (isDone(member))
    return placed({ at: "Idle" }, "HasTarget", `it has ${member.current}${withImage(member.currentImage)}`);
  return placed(
    { at: "NeedsUpdate" },
    "NotTakenOn",
    `it was given ${member.desired}, and its daemon has not taken that on yet`,
  );
}

/** The current and desired target of a node; empty texts: none. */
export function nodePair(
  facts: Facts,
  name: string,
):
  | Answer<{
      readonly config: string;
      readonly desiredConfig: string;
      readonly image: string;
      readonly desiredImage: string;
    }>
  | undefined {
  const node = facts.members.node(name)?.node;
  if (node === undefined) return undefined;
  const has = (key: string) => node.metadata.annotations?.[key] ?? "";
  return answer(
    facts,
    {
      config: has(annotations.currentConfig),
      desiredConfig: has(annotations.desiredConfig),
      image: has(annotations.currentImage),
      desiredImage: has(annotations.desiredImage),
    },
    { reason: "Annotations", message: "as the node's annotations say", refs: [`node/${name}`] },
  );
}

/** Why a node that should get its pool's target does not get it now; `undefined`: it does, or has it already. */
export function nodeWait(
  facts: Facts,
  name: string,
): Answer<{ readonly reason: WaitReason; readonly remedy: string }> | undefined {
  const membership = facts.members.node(name)?.membership;
  if (membership?.verdict !== "member") return undefined;
  const wait = poolFacts(facts, membership.pool, { named: Number.POSITIVE_INFINITY })?.selection.waits.find(
    ({ first }) => first.includes(name),
  );
  return wait === undefined
    ? undefined
    : answer(
        facts,
        { reason: wait.reason, remedy: wait.remedy },
        { reason: wait.reason, message: wait.message, refs: [`machineconfigpool/${membership.pool}`] },
      );
}

/**
 * The progress of a pool towards its target. `undefined`: the pool does not exist.
 *
 * @param past durations of earlier updates; without it nothing is estimated
 */
export function poolProgressOf(facts: Facts, pool: string, past?: Past): Answer<PoolProgress> | undefined {
  const about = poolFacts(facts, pool);
  if (about === undefined) return undefined;
  const progress = poolProgress(about, past);
  return answer(facts, progress, {
    reason: progress.verdict,
    message: `${progress.done} of ${progress.total} machines have ${progress.target === "" ? "a target" : progress.target}`,
    refs: [`machineconfigpool/${pool}`, ...(progress.target === "" ? [] : [`machineconfig/${progress.target}`])],
  });
}

export type Clearance = { readonly may: "Yes" } | { readonly may: "No"; readonly blockers: readonly PoolBlocker[] };

/** Whether a pool may proceed, or what stops it as a whole. */
export function poolMayRollOut(facts: Facts, pool: string): Answer<Clearance> | undefined {
  const about = poolFacts(facts, pool);
  if (about === undefined) return undefined;
  return mayOrNot(facts, pool, poolBlockers(poolProgress(about)));
}

/**
 * Whether an OS image may be built for a pool: only what cannot be rendered forbids it, no state of its machines does.
 */
export function poolMayBuild(facts: Facts, pool: string): Answer<Clearance> | undefined {
  const found = facts.members.pool(pool);
  if (found === undefined) return undefined;
  const refused = renderRefusal(found);
  const blockers: readonly PoolBlocker[] = [
    ...((found.spec.configuration?.name ?? "") === ""
      ? [
          {
            reason: "NotRendered" as const,
            message: "no configuration has been rendered for the pool yet",
            remedy: "see the condition RenderDegraded of the pool",
          },
        ]
      : []),
    ...(refused === undefined
      ? []
      : [{ reason: "RenderRefused" as const, message: refused, remedy: renderRemedy(found) }]),
  ];
  return mayOrNot(facts, pool, blockers);
}

function mayOrNot(facts: Facts, pool: string, blockers: readonly PoolBlocker[]): Answer<Clearance> {
  const [first] = blockers;
  return answer(facts, first === undefined ? { may: "Yes" } : { may: "No", blockers }, {
    reason: first?.reason ?? "NothingInTheWay",
    message: first?.message ?? "nothing is in the way",
    refs: [`machineconfigpool/${pool}`],
  });
}

/** What the renderer reports of a pool. */
const renderingOf = (pool: MachineConfigPool) =>
  conditionOf(
    pool.status?.conditions as { type: string; status?: string; reason?: string; message?: string }[] | undefined,
    poolConditions.renderDegraded,
  );

/** Why the renderer refuses a pool; `undefined`: it does not. */
export function renderRefusal(pool: MachineConfigPool): string | undefined {
  const condition = renderingOf(pool);
  return condition?.status === "True" ? (condition.message ?? "") : undefined;
}

/** What has a refused pool rendered. The message names the object, and most often the act. */
export const renderRemedy = (pool: MachineConfigPool): string =>
  renderingOf(pool)?.reason === "SelectingAll"
    ? `give spec.machineConfigSelector of pool ${pool.metadata.name} a label to select by`
    : "correct, label, delete or make again what the message names: a MachineConfig, or a field of the pool";

/** What the renderer waits for before it renders a pool; `undefined`: it waits for nothing. */
export function renderWait(pool: MachineConfigPool): string | undefined {
  const condition = renderingOf(pool);
  return condition?.status === "False" && (condition.message ?? "") !== "" ? condition.message : undefined;
}

/** How many machines of a pool run a configuration (and an OS image, if given). */
export function poolRunsConfig(
  facts: Facts,
  pool: string,
  config: string,
  image?: string,
):
  | Answer<
      | { readonly is: "All" | "None"; readonly machines: number }
      | { readonly is: "Some"; readonly machines: number; readonly of: number }
    >
  | undefined {
  if (facts.members.pool(pool) === undefined) return undefined;
  const members = facts.members.members(pool);
  const has = (member: MemberFacts) =>
    isDone(member) &&
    member.current === config &&
    (image === undefined ||
      facts.members.node(member.name)?.node.metadata.annotations?.[annotations.currentImage] === image);
  // The pool's own target is counted already.
  const machines =
    config === members.target && image === undefined ? members.updated : [...members.all()].filter(has).length;
  const value =
    machines === members.size
      ? ({ is: "All", machines } as const)
      : machines === 0
        ? ({ is: "None", machines } as const)
        : ({ is: "Some", machines, of: members.size } as const);
  return answer(facts, value, {
    reason: `${value.is}Machines`,
    message: `${machines} of ${members.size} machines have ${config}`,
    refs: [`machineconfigpool/${pool}`, `machineconfig/${config}`],
  });
}

/** Whether the cluster may be upgraded to a new release, or what must be fixed first. */
export function clusterMayUpgrade(
  facts: Facts,
): Answer<{ readonly may: "Yes" } | { readonly may: "No"; readonly blockers: readonly UpgradeBlocker[] }> {
  const blockers = facts.members.pools().flatMap((pool): readonly UpgradeBlocker[] => {
    const { name } = pool.metadata;
    const about = poolFacts(facts, name);
    if (about === undefined) return [];
    const { failed } = poolProgress(about);
    const refused = renderRefusal(pool);
    return [
      ...(refused === undefined
        ? []
        : [
            {
              pool: name,
              reason: "RenderRefused" as const,
              message: `pool ${name} cannot be rendered: ${refused}`,
              remedy: renderRemedy(pool),
            },
          ]),
      ...(failed.length === 0
        ? []
        : [
            {
              pool: name,
              reason: "DegradedPool" as const,
              message: `pool ${name}: ${listText(
                failed.map(({ node, says }) => `${node} is degraded (${says})`),
                3,
              )}`,
              remedy: `mco explain node/${failed[0]?.node ?? ""}`,
            },
          ]),
      ...imageBlocker(pool, facts.members.buildsOf(name)),
      ...(pool.spec.paused === true && pool.metadata.labels?.[labels.requiredForUpgrade] !== undefined
        ? [
            {
              pool: name,
              reason: "PausedPool" as const,
              message: `pool ${name} is required for an upgrade and paused`,
              remedy: "set spec.paused of the pool to false",
            },
          ]
        : []),
    ];
  });
  const [first] = blockers;
  return answer(facts, first === undefined ? { may: "Yes" } : { may: "No", blockers }, {
    reason: first?.reason ?? "AsExpected",
    message: blockers.map(({ message }) => message).join("; "),
    refs: [...new Set(blockers.map(({ pool }) => `machineconfigpool/${pool}`))],
  });
}

/** Copies of a component as the object that keeps them counts. */
export interface ComponentFacts {
  readonly name: string;
  readonly wanted: number;
  readonly ofThisVersion: number;
  readonly available: number;
  /** The counts are of the object as it is now. */
  readonly observed: boolean;
}

export type ComponentHealth =
  | { readonly is: "Healthy" }
  | { readonly is: "Unhealthy"; readonly missing: number }
  | { readonly is: "Unknown" };

/** @param component `undefined`: its object does not exist. */
export function componentHealth(
  facts: Pick<Facts, "now" | "heardAt">,
  name: string,
  component: ComponentFacts | undefined,
): Answer<ComponentHealth> {
  if (component === undefined)
    return answer(
      facts,
      { is: "Unknown" },
      { reason: "NotInstalled", message: `${name} is not installed yet`, refs: [] },
    );
  if (!component.observed)
    return answer(facts, { is: "Unknown" }, { reason: "NotObserved", message: `${name} is being started`, refs: [] });
  const old = component.wanted - component.ofThisVersion;
  if (old > 0)
    return answer(
      facts,
      { is: "Unhealthy", missing: old },
      {
        reason: "OldVersion",
        message: `${old} of ${component.wanted} copies of ${name} are not of this version yet`,
        refs: [],
      },
    );
  const missing = component.wanted - component.available;
  if (missing > 0)
    return answer(
      facts,
      { is: "Unhealthy", missing },
      {
        reason: "NotAvailable",
        message: `${missing} of ${component.wanted} copies of ${name} are not available`,
        refs: [],
      },
    );
  return answer(
    facts,
    { is: "Healthy" },
    {
      reason: "AsExpected",
      message: `${component.available} of ${component.wanted} copies of ${name} are available`,
      refs: [],
    },
  );
}
