import type { ClusterOperator } from "../../src/api/foreign/cluster-operator.ts";
import type { Node } from "../../src/api/foreign/kubernetes.ts";
import type { Chapter } from "../../src/api/books/machine-state-chapter.ts";
import type { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { annotations, labels, machineConfigNodeConditions as phases, nodeStates } from "../../src/api/names.ts";
import { conditionOf } from "../../src/api/schema/object.ts";
import { poolOfNode } from "../../src/core/pool/pool-of-node.ts";
import type { ClusterStatus } from "../../src/core/preview/cluster-status.ts";
import type { Explanation } from "../../src/core/preview/explanation.ts";

/** One object's explanation in both of its forms. */
export interface Explained {
  readonly json: Explanation;
  readonly text: string;
}

/** One value of a metric. */
export interface Measured {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What is compared of a chapter. */
export type BookChapter = Pick<Chapter, "book" | "chapter" | "run" | "state" | "outcome" | "sections" | "startedAt">;

/** Everything that says something about a cluster, at one time. */
export interface AgreementSnapshot {
  /** Milliseconds since the epoch, by the cluster's clock. */
  readonly now: number;
  readonly pools: readonly MachineConfigPool[];
  readonly nodes: readonly Node[];
  readonly machineConfigNodes: readonly MachineConfigNode[];
  /** `undefined`: there is none, and nothing is compared with it. */
  readonly clusterOperator: ClusterOperator | undefined;
  /** What `mco status` shows. */
  readonly status: ClusterStatus;
  /** What `mco explain` says of pools and nodes; `undefined`: nobody asked at this time. */
  readonly explained: readonly Explained[] | undefined;
  /** By book, oldest first. */
  readonly chapters: ReadonlyMap<string, readonly BookChapter[]>;
  readonly metrics: readonly Measured[];
  /** Pools whose machines get a separate image: their targets are more than a configuration. */
  readonly imagePools: ReadonlySet<string>;
}

/** Two places that say different things of one subject at one time. */
export interface Contradiction {
  readonly subject: string;
  readonly one: string;
  readonly other: string;
}

/** A contradiction, and for how long it has been there. */
export interface Disagreement extends Contradiction {
  readonly rule: RuleName;
  readonly sinceMs: number;
}

export interface Rule {
  /** The two that are compared. */
  readonly pair: readonly [one: string, other: string];
  /** What must agree. */
  readonly agrees: string;
  /** How long one may lag behind the other, by the cluster's clock. */
  readonly lagMs: number;
  readonly find: (view: View) => readonly Contradiction[];
}

/** A machine as its Node says it is: read here again, and not with the functions that are judged. */
interface Machine {
  readonly name: string;
  readonly node: Node;
  readonly machineConfigNode: MachineConfigNode | undefined;
  /** Empty: it is in none. */
  readonly pool: string;
  readonly current: string;
  readonly desired: string;
  readonly state: string;
  /** It has what it was given, and its daemon says so. */
  readonly isDone: boolean;
  readonly isFailing: boolean;
  readonly isReady: boolean;
  readonly isCordoned: boolean;
  readonly chapters: readonly BookChapter[];
}

/** A snapshot with its machines sorted out. */
interface View extends AgreementSnapshot {
  readonly machines: readonly Machine[];
  readonly membersOf: (pool: string) => readonly Machine[];
  readonly explanationOf: (subject: string) => Explained | undefined;
}

interface Said {
  readonly type: string;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
}

const poolSays = (pool: MachineConfigPool, type: string): Said | undefined =>
  conditionOf(pool.status?.conditions as readonly Said[] | undefined, type);
const isTrue = (condition: { readonly status?: string } | undefined) => condition?.status === "True";
const phaseSays = (machine: Machine, type: string) => conditionOf(machine.machineConfigNode?.status?.conditions, type);
const has = (node: Node, key: string) => node.metadata.annotations?.[key] ?? "";
/** Conditions of a pool that say what is degraded of it. */
const degradedParts = ({ status }: MachineConfigPool): readonly string[] =>
  ((status?.conditions ?? []) as readonly Said[]).flatMap((said) =>
    said.type.endsWith("Degraded") && said.type !== "Degraded" && isTrue(said) ? [said.type] : [],
  );
const poolName = ({ metadata }: MachineConfigPool) => `pool/${metadata.name}`;
const nodeName = ({ name }: Machine) => `node/${name}`;

/** The one contradiction of a subject, or none. */
const unless = (agrees: boolean, subject: string, one: string, other: string): readonly Contradiction[] =>
  agrees ? [] : [{ subject, one, other }];

function machineOf(
  node: Node,
  { pools, chapters }: AgreementSnapshot,
  machineConfigNode: MachineConfigNode | undefined,
): Machine {
  const { name } = node.metadata;
  const member = poolOfNode(node, pools);
  const [current, desired] = [has(node, annotations.currentConfig), has(node, annotations.desiredConfig)];
  const state = has(node, annotations.state);
  return {
    name,
    node,
    machineConfigNode,
    pool: member.verdict === "member" ? member.pool : "",
    current,
    desired,
    state,
    isDone:
      current !== "" &&
      current === desired &&
      has(node, annotations.currentImage) === has(node, annotations.desiredImage) &&
      state === nodeStates.done,
    isFailing: state === nodeStates.degraded || state === nodeStates.unreconcilable,
    isReady: isTrue(conditionOf(node.status?.conditions as readonly Said[] | undefined, "Ready")),
    isCordoned: node.spec?.unschedulable === true,
    chapters: chapters.get(`node/${name}`) ?? [],
  };
}

function viewOf(snapshot: AgreementSnapshot): View {
  const byName = new Map(snapshot.machineConfigNodes.map((object) => [object.metadata.name, object]));
  const machines = snapshot.nodes.map((node) => machineOf(node, snapshot, byName.get(node.metadata.name)));
  const explained = new Map((snapshot.explained ?? []).map((each) => [each.json.subject, each]));
  return {
    ...snapshot,
    machines,
    membersOf: (pool) => machines.filter((machine) => machine.pool === pool),
    explanationOf: (subject) => explained.get(subject),
  };
}

/** The machine is where it should be, and nothing is being done to it. */
const isIdle = (machine: Machine) =>
  machine.isDone &&
  machine.isReady &&
  !machine.isCordoned &&
  has(machine.node, annotations.desiredDrain) === has(machine.node, annotations.lastAppliedDrain);

const isJoining = ({ current }: Machine) => current === "";

/** The counts of a pool that follow from its machines' annotations, as the range that each may be in. */
function countsOf(
  pool: MachineConfigPool,
  view: View,
): Readonly<Record<string, readonly [least: number, most: number]>> {
  const members = view.membersOf(pool.metadata.name);
  const target = pool.spec.configuration?.name ?? "";
  const count = (is: (machine: Machine) => boolean) => members.filter(is).length;
  const isUpdated = (machine: Machine) => target !== "" && machine.isDone && machine.current === target;
  const isOurCordon = ({ node, isCordoned }: Machine) => isCordoned && has(node, annotations.cordonedFor) !== "";
  // An image that is not there yet is part of the target, too: then no machine has it.
  const least = (number: number) => (view.imagePools.has(pool.metadata.name) ? 0 : number);
  const updated = count(isUpdated);
  const ready = count((machine) => isUpdated(machine) && machine.isReady && !isOurCordon(machine));
  const isFailingAway = (machine: Machine) => machine.isFailing && machine.current !== machine.desired;
  const isOut = (machine: Machine) => !machine.isReady || machine.isCordoned;
  const failing = count(({ isFailing }) => isFailing);
  return {
    machineCount: [members.length, members.length],
    updatedMachineCount: [least(updated), updated],
    readyMachineCount: [least(ready), ready],
    degradedMachineCount: [failing, failing],
    // A machine whose drain was given up serves, though it is not done.
    unavailableMachineCount: [
      count((machine) => isOut(machine) && !isFailingAway(machine)),
      count((machine) => (isOut(machine) || !machine.isDone) && !isFailingAway(machine)),
    ],
  };
}

/** The conditions of a pool in words, for a message. */
const wordsOf = (pool: MachineConfigPool) =>
  ["Updated", "Updating", "Degraded"].filter((type) => isTrue(poolSays(pool, type))).join("+") || "none";

/**
 * Phases of a MachineConfigNode that speak of a step of an update. A daemon reports Resumed after every boot, whether or
 * not an update asked for it.
 */
const steps: readonly string[] = Object.values(phases).filter(
  (type) => type !== phases.updated && type !== phases.nodeDegraded && type !== phases.resumed,
);

/** Reasons of the phase Drained while a person has to help, or the drain was given up for now. */
const drainIsHeld: ReadonlySet<string> = new Set(["PodsBlocked", "DrainDeadlineExceeded", "DrainSkipped"]);

/** Sections of a node's Update chapter, and the phase that is under way while they are. */
const phaseOfSection: Readonly<Record<string, string>> = {
  "Executed/Drained": phases.drained,
  "Executed/Files": phases.appliedFiles,
  "Executed/OS": phases.appliedOSImage,
  "PostAction/Rebooted": phases.rebootedNode,
};

/** Chapters of a machine that end before it is idle. */
const chaptersOfTrouble: ReadonlySet<string> = new Set(["Update", "Degraded", "Revert", "Rollback", "Lost"]);

/** How the headline of a pool's explanation says its verdict. */
const headlineOf: Readonly<Record<string, RegExp>> = {
  NotRendered: /has no configuration yet/,
  Done: /has no machines; |The one machine of pool \S+ has |All \d+ machines of pool \S+ have /,
  Paused: /is paused: /,
  Blocked: /stands still|has ended but for /,
  RollingOut: /is rolling out: /,
};

/** Reasons of the condition Updating of a pool that does not go on by itself. */
const standsStill: ReadonlySet<string> = new Set([
  "Paused",
  "RolloutBlocked",
  "MachineExcluded",
  "CanaryFailed",
  "BuildFailed",
  "BuildInterrupted",
]);

/** Positions of `mco explain node/…` and the words of `mco status` for the same. */
const phasesOfReason: Readonly<Record<string, ReadonlySet<string>>> = {
  KubeletSilent: new Set(["Lost"]),
  DaemonReportsFailure: new Set(["Degraded"]),
  CannotBeApplied: new Set(["Unreconcilable"]),
  NothingApplied: new Set(["Joining"]),
  Rebooting: new Set(["Rebooting"]),
  PostAction: new Set(["PostAction"]),
  Resuming: new Set(["Resuming"]),
  HasTarget: new Set(["Updated"]),
  WaitsForTurn: new Set(["NeedsUpdate"]),
  WaitingForBuild: new Set(["NeedsUpdate"]),
  BuildFailed: new Set(["NeedsUpdate"]),
  BuildInterrupted: new Set(["NeedsUpdate"]),
  OptOutGrace: new Set(["NeedsUpdate"]),
};

const metric = (view: View, name: string, wanted: Readonly<Record<string, string>>) =>
  view.metrics.find(
    (each) => each.name === name && Object.entries(wanted).every(([label, value]) => each.labels[label] === value),
  )?.value;

/** What is under "What to do", line by line; `undefined`: the text has no such part. */
function todoInText(text: string): readonly string[] | undefined {
  const lines = text.split("\n");
  if (lines.includes("What to do: nothing")) return [];
  const at = lines.indexOf("What to do:");
  return at < 0
    ? undefined
    : lines
        .slice(at + 1)
        .filter((line) => line !== "")
        .map((line) => line.trim());
}

/** The last part of a text: sections of one machine name "the last" of a kind of chapter. */
const lastOf = (machine: Machine, chapter: string) => machine.chapters.findLast((each) => each.chapter === chapter);

const seconds = 1000;
const minutes = 60 * seconds;
/**
 * An object that another process writes. A watch may stall for two and a half minutes before a client ends it; processes
 * are killed, leases run out, and messages are lost.
 */
const objectLagMs = 4 * minutes;
/** Lines are sent at turning points besides, and a machine may reboot before it could send them. */
const journalLagMs = 5 * minutes;

/** The rules of agreement: a row for each pair of places that speak of one thing. */
export const rules = {
  membership: {
    pair: ["MachineConfigNode", "Node"],
    agrees: "the pool that a MachineConfigNode names is the one that selects its Node",
    lagMs: objectLagMs,
    find: (view) =>
      view.machines.flatMap((machine) => {
        const named = machine.machineConfigNode?.spec.pool.name;
        return named === undefined || machine.pool === ""
          ? []
          : unless(named === machine.pool, nodeName(machine), `MachineConfigNode: ${named}`, `labels: ${machine.pool}`);
      }),
  },
  "pool counts": {
    pair: ["MachineConfigPool status", "annotations of Nodes"],
    agrees: "each count of a pool is the number of its machines whose Nodes say so",
    lagMs: objectLagMs,
    find: (view) =>
      view.pools.flatMap((pool) =>
        Object.entries(countsOf(pool, view)).flatMap(([name, [least, most]]) => {
          const says = (pool.status as Readonly<Record<string, unknown>> | undefined)?.[name];
          return typeof says !== "number"
            ? []
            : unless(
                says >= least && says <= most,
                poolName(pool),
                `${name}: ${says}`,
                `Nodes: ${least === most ? least : `${least} to ${most}`}`,
              );
        }),
      ),
  },
  "pool conditions": {
    pair: ["conditions of a pool", "counts of the same pool"],
    agrees:
      "Updated and Updating exclude each other; NodeDegraded is True exactly with degraded machines, Degraded with each part that the controller writes, and no pool is Updated with fewer ready machines than updated ones say",
    lagMs: 0,
    find: (view) =>
      view.pools.flatMap((pool) => {
        const { status } = pool;
        if ((status?.conditions ?? []).length === 0) return [];
        const own = degradedParts(pool).filter((type) => type !== "ImageBuildDegraded");
        const degraded = status?.degradedMachineCount ?? 0;
        return [
          ...unless(
            !(isTrue(poolSays(pool, "Updated")) && isTrue(poolSays(pool, "Updating"))),
            poolName(pool),
            "Updated: True",
            "Updating: True",
          ),
          ...unless(
            // The builder writes its part alone, and the controller follows.
            own.length === 0 || isTrue(poolSays(pool, "Degraded")),
            poolName(pool),
            `Degraded: ${poolSays(pool, "Degraded")?.status ?? "absent"}`,
            `parts: ${own.join()}`,
          ),
          ...unless(
            isTrue(poolSays(pool, "NodeDegraded")) === degraded > 0,
            poolName(pool),
            `NodeDegraded: ${poolSays(pool, "NodeDegraded")?.status ?? "absent"}`,
            `degradedMachineCount: ${degraded}`,
          ),
          ...unless(
            (status?.readyMachineCount ?? 0) <= (status?.updatedMachineCount ?? 0) &&
              (status?.updatedMachineCount ?? 0) <= (status?.machineCount ?? 0),
            poolName(pool),
            `readyMachineCount: ${status?.readyMachineCount ?? 0}`,
            `updatedMachineCount: ${status?.updatedMachineCount ?? 0} of ${status?.machineCount ?? 0}`,
          ),
        ];
      }),
  },
  "parts of Degraded": {
    pair: ["Degraded of a pool", "its *Degraded conditions"],
    agrees: "Degraded is True exactly with a *Degraded that is, of which the builder writes one",
    lagMs: objectLagMs,
    find: (view) =>
      view.pools.flatMap((pool) => {
        const [degraded, parts] = [poolSays(pool, "Degraded"), degradedParts(pool)];
        return degraded === undefined
          ? []
          : unless(
              isTrue(degraded) === parts.length > 0,
              poolName(pool),
              `Degraded: ${degraded.status ?? "absent"}`,
              `parts: ${parts.join()}`,
            );
      }),
  },
  "pool conditions and machines": {
    pair: ["conditions of a pool", "annotations of Nodes"],
    agrees:
      "a pool is Updated exactly when each of its machines that has joined is done with its target and in service, and Degraded when one of them is",
    lagMs: objectLagMs,
    find: (view) =>
      view.pools.flatMap((pool) => {
        const target = pool.spec.configuration?.name ?? "";
        const members = view.membersOf(pool.metadata.name);
        const behind = members.filter((each) => !isJoining(each) && !(each.isDone && each.current === target));
        const done = members.filter((each) => isIdle(each) && each.current === target);
        const failing = members.filter(({ isFailing }) => isFailing);
        const names = (list: readonly Machine[]) => list.map(({ name }) => name).join(",");
        const updated = isTrue(poolSays(pool, "Updated"));
        return [
          ...unless(!updated || behind.length === 0, poolName(pool), "Updated: True", `behind: ${names(behind)}`),
          ...unless(
            updated ||
              view.imagePools.has(pool.metadata.name) ||
              target === "" ||
              members.length === 0 ||
              done.length < members.length,
            poolName(pool),
            `Updated: ${poolSays(pool, "Updated")?.status ?? "absent"} (${wordsOf(pool)})`,
            "every machine is in service with the target",
          ),
          ...unless(
            failing.length === 0 || isTrue(poolSays(pool, "Degraded")),
            poolName(pool),
            `Degraded: ${poolSays(pool, "Degraded")?.status ?? "absent"}`,
            `degraded: ${names(failing)}`,
          ),
        ];
      }),
  },
  "pool target": {
    pair: ["status of a pool", "spec of the same pool"],
    agrees: "an Updated pool names its target in its status, and has observed no generation that is still to come",
    lagMs: objectLagMs,
    find: (view) =>
      view.pools.flatMap((pool) => [
        ...unless(
          !isTrue(poolSays(pool, "Updated")) || pool.status?.configuration?.name === pool.spec.configuration?.name,
          poolName(pool),
          `Updated with ${pool.status?.configuration?.name ?? ""}`,
          `target: ${pool.spec.configuration?.name ?? ""}`,
        ),
        ...unless(
          (pool.status?.observedGeneration ?? 0) <= (pool.metadata.generation ?? 0),
          poolName(pool),
          `observed: ${pool.status?.observedGeneration ?? 0}`,
          `generation: ${pool.metadata.generation ?? 0}`,
        ),
      ]),
  },
  "status of pools": {
    pair: ["mco status: pools", "mco status: machines"],
    agrees: "the word for a pool fits to the words for its machines",
    lagMs: objectLagMs,
    find: ({ status }) =>
      status.pools.flatMap((pool) => {
        const members = status.nodes.filter((node) => node.pool === pool.name);
        const moving = members.filter(
          ({ phase }) => !["Updated", "Joining", "Lost", "Degraded", "Unreconcilable", "Unknown"].includes(phase),
        );
        const failing = members.filter(({ phase }) => phase === "Degraded" || phase === "Unreconcilable");
        const words = (list: typeof members) => list.map(({ name, phase }) => `${name} ${phase}`).join(", ");
        return [
          ...unless(!pool.updated || moving.length === 0, `pool/${pool.name}`, "updated", words(moving)),
          ...unless(failing.length === 0 || pool.degraded, `pool/${pool.name}`, "not degraded", words(failing)),
          ...unless(
            pool.machines === members.length,
            `pool/${pool.name}`,
            `machines: ${pool.machines}`,
            `listed: ${members.length}`,
          ),
        ];
      }),
  },
  "status of the operator": {
    pair: ["mco status", "ClusterOperator"],
    agrees:
      "mco status says available, progressing and degraded as the ClusterOperator does, and when it is degraded, why",
    lagMs: 0,
    find: ({ status, clusterOperator }) => {
      if (clusterOperator === undefined) return [];
      const is = (type: string) => conditionOf(clusterOperator.status?.conditions as readonly Said[] | undefined, type);
      const words = (["Available", "Progressing", "Degraded"] as const).map((type) => `${type}=${isTrue(is(type))}`);
      const { operator } = status;
      return [
        ...unless(
          operator !== undefined &&
            words.join() ===
              `Available=${operator.available},Progressing=${operator.progressing},Degraded=${operator.degraded}`,
          "clusteroperator/machine-config",
          JSON.stringify(operator),
          words.join(", "),
        ),
        ...unless(
          !isTrue(is("Degraded")) || operator?.message === is("Degraded")?.message,
          "clusteroperator/machine-config",
          operator?.message ?? "",
          is("Degraded")?.message ?? "",
        ),
      ];
    },
  },
  "operator and pools": {
    pair: ["ClusterOperator", "conditions of pools"],
    agrees:
      "Progressing names exactly the pools that are Updating, Degraded every degraded pool that upgrades wait for, and Upgradeable every degraded one",
    lagMs: objectLagMs,
    find: (view) => {
      const says = (type: string) =>
        conditionOf(view.clusterOperator?.status?.conditions as readonly Said[] | undefined, type);
      const [progressing, degraded, upgradeable] = ["Progressing", "Degraded", "Upgradeable"].map(says);
      if (progressing === undefined) return [];
      return view.pools.flatMap((pool) => {
        const { name, labels: own = {} } = pool.metadata;
        const isRequired = own[labels.builtInPool] !== undefined || own[labels.requiredForUpgrade] !== undefined;
        const isNamed = new RegExp(`under way: (?:.*, )?${name} \\(`).test(progressing.message ?? "");
        const isUpdating = isTrue(poolSays(pool, "Updating"));
        const isDegraded = isTrue(poolSays(pool, "NodeDegraded")) || isTrue(poolSays(pool, "RenderDegraded"));
        const names = (condition: Said | undefined) => new RegExp(`\\bpool ${name}\\b`).test(condition?.message ?? "");
        return [
          ...unless(
            isTrue(progressing) || isNamed === isUpdating,
            poolName(pool),
            `Progressing ${isNamed ? "names it" : "does not name it"}`,
            `Updating: ${isUpdating ? "True" : "False"}`,
          ),
          ...unless(
            !isDegraded || !isRequired || isTrue(degraded),
            poolName(pool),
            `operator Degraded: ${degraded?.status ?? "absent"}`,
            "pool Degraded: True",
          ),
          ...unless(
            isDegraded || !isTrue(degraded) || degraded?.reason !== "DegradedPool" || !names(degraded),
            poolName(pool),
            "operator Degraded names it",
            "pool Degraded: False",
          ),
          ...unless(
            !isDegraded || (upgradeable?.status === "False" && names(upgradeable)),
            poolName(pool),
            `Upgradeable: ${upgradeable?.status ?? "absent"}`,
            "pool Degraded: True",
          ),
        ];
      });
    },
  },
  "Updated of a machine": {
    pair: ["MachineConfigNode Updated", "annotations of the Node"],
    agrees: "Updated is True exactly when the machine is done with what it was given, and names that configuration",
    lagMs: objectLagMs,
    find: (view) =>
      view.machines.flatMap((machine) => {
        const updated = phaseSays(machine, phases.updated);
        if (updated === undefined) return [];
        const says = isTrue(updated) ? (machine.machineConfigNode?.status?.configVersion?.current ?? "") : "";
        // A Node without a word of what it was given, which somebody took away, leaves the machine with what it has.
        const isGivenNothing = machine.desired === "" && says !== "";
        const is = machine.isDone || isGivenNothing ? machine.current : "";
        return unless(
          says === is || machine.isFailing,
          nodeName(machine),
          `Updated: ${says === "" ? updated.status : says}`,
          `Node: ${machine.state}, has ${machine.current}, wants ${machine.desired}`,
        );
      }),
  },
  "degraded machine": {
    pair: ["MachineConfigNode NodeDegraded", "state annotation of the Node"],
    agrees: "NodeDegraded is True exactly while the Node's state is Degraded or Unreconcilable",
    lagMs: objectLagMs,
    find: (view) =>
      view.machines.flatMap((machine) => {
        const says = phaseSays(machine, phases.nodeDegraded);
        return says === undefined
          ? []
          : unless(
              isTrue(says) === machine.isFailing,
              nodeName(machine),
              `NodeDegraded: ${says.status}`,
              `Node: ${machine.state}`,
            );
      }),
  },
  "target of a machine": {
    pair: ["MachineConfigNode spec", "annotations of the Node"],
    agrees: "the desired configuration is the one that the Node was given",
    lagMs: objectLagMs,
    find: (view) =>
      view.machines.flatMap((machine) => {
        const wants = machine.machineConfigNode?.spec.configVersion.desired;
        return wants === undefined || machine.desired === ""
          ? []
          : unless(
              wants === machine.desired,
              nodeName(machine),
              `MachineConfigNode: ${wants}`,
              `desiredConfig: ${machine.desired}`,
            );
      }),
  },
  "phases of an idle machine": {
    pair: ["phases of a MachineConfigNode", "annotations of the Node"],
    agrees: "no phase of an update is under way or done on a machine that is idle: all are behind it",
    lagMs: objectLagMs,
    find: (view) =>
      view.machines.flatMap((machine) => {
        if (!isIdle(machine)) return [];
        const left = steps.filter((type) => (phaseSays(machine, type)?.status ?? "False") !== "False");
        return unless(left.length === 0, nodeName(machine), left.join(), "idle");
      }),
  },
  "open update and phases": {
    pair: ["open Update chapter", "phases of a MachineConfigNode"],
    agrees: "a section that is under way has a phase that is, and an update that is open is to what the Node was given",
    lagMs: journalLagMs,
    find: (view) =>
      view.machines.flatMap((machine) => {
        const last = lastOf(machine, "Update");
        if (last?.state !== "Open" || machine.machineConfigNode === undefined) return [];
        const running = last.sections.filter(
          ({ path, endedAt }) => endedAt === undefined && phaseOfSection[path] !== undefined,
        );
        return [
          ...unless(
            last.run === machine.desired,
            nodeName(machine),
            `open Update to ${last.run}`,
            `desiredConfig: ${machine.desired}`,
          ),
          ...running.flatMap(({ path }) => {
            const type = phaseOfSection[path] ?? "";
            const is = phaseSays(machine, type);
            return unless(
              is?.status === "Unknown" || machine.isFailing,
              nodeName(machine),
              `${path} is under way`,
              `${type}: ${is?.status ?? "absent"} ${is?.reason ?? ""}`,
            );
          }),
        ];
      }),
  },
  "phase and open update": {
    pair: ["phases of a MachineConfigNode", "open Update chapter"],
    agrees: "a machine with a phase under way has an open Update chapter in its book, or one of its way back",
    lagMs: journalLagMs,
    find: (view) =>
      view.machines.flatMap((machine) => {
        const running = steps.filter((type) => phaseSays(machine, type)?.status === "Unknown");
        const last = lastOf(machine, "Update");
        // A way back that cannot be gone, because no boot succeeds, stays under way until somebody helps.
        const isOnWayBack = lastOf(machine, "Rollback")?.state === "Open";
        return unless(
          running.length === 0 || last?.state !== "Closed" || isOnWayBack,
          nodeName(machine),
          running.join(),
          `last Update: ${last?.state ?? "none"}, ${last?.outcome ?? ""}`,
        );
      }),
  },
  "open chapters of an idle machine": {
    pair: ["open chapters of a node's book", "annotations of the Node"],
    agrees: "no update, failure, loss or way back is open in the book of a machine that is idle",
    lagMs: journalLagMs,
    find: (view) =>
      view.machines.flatMap((machine) => {
        if (!isIdle(machine)) return [];
        const open = machine.chapters.filter(
          ({ chapter, state }) => state !== "Closed" && chaptersOfTrouble.has(chapter),
        );
        return unless(
          open.length === 0,
          nodeName(machine),
          open.map(({ chapter, run, state }) => `${chapter} ${run} ${state}`).join(),
          "idle",
        );
      }),
  },
  "update that succeeded": {
    pair: ["closed Update chapter", "annotations of the Node"],
    agrees: "no machine works on, or fails with, the target of an update that its book says has succeeded",
    lagMs: objectLagMs,
    find: (view) =>
      view.machines.flatMap((machine) => {
        const last = lastOf(machine, "Update");
        return unless(
          last?.state !== "Closed" ||
            last.outcome !== "Succeeded" ||
            last.run !== machine.desired ||
            machine.current === machine.desired ||
            machine.current === "",
          nodeName(machine),
          `Update to ${last?.run ?? ""} succeeded`,
          `Node: ${machine.state}, has ${machine.current}, wants ${machine.desired}`,
        );
      }),
  },
  "book of a pool": {
    pair: ["open chapters of a pool's book", "conditions of the pool"],
    agrees: "Rollout, Paused, Blocked and Degraded are open only while the pool says so",
    lagMs: journalLagMs,
    find: (view) =>
      view.pools.flatMap((pool) => {
        const open = (chapter: string) =>
          (view.chapters.get(poolName(pool)) ?? []).findLast((each) => each.chapter === chapter)?.state === "Open";
        const updating = poolSays(pool, "Updating");
        return [
          ...unless(
            !open("Rollout") || !isTrue(poolSays(pool, "Updated")),
            poolName(pool),
            "Rollout is open",
            "Updated: True",
          ),
          ...unless(
            !open("Paused") || pool.spec.paused === true,
            poolName(pool),
            "Paused is open",
            "spec.paused: false",
          ),
          ...unless(
            !open("Blocked") || !(isTrue(updating) || isTrue(poolSays(pool, "Updated"))),
            poolName(pool),
            "Blocked is open",
            wordsOf(pool),
          ),
          ...unless(
            !open("Degraded") || isTrue(poolSays(pool, "Degraded")),
            poolName(pool),
            "Degraded is open",
            `Degraded: ${poolSays(pool, "Degraded")?.status ?? "absent"}`,
          ),
        ];
      }),
  },
  "pool in its book": {
    pair: ["conditions of a pool", "open chapters of its book"],
    agrees: "a pool that is rolling out, paused before its target or degraded by a machine has that chapter open",
    lagMs: journalLagMs,
    find: (view) =>
      view.pools.flatMap((pool) => {
        const chapters = view.chapters.get(poolName(pool)) ?? [];
        const open = (chapter: string) => chapters.findLast((each) => each.chapter === chapter)?.state === "Open";
        return [
          ...unless(
            chapters.length === 0 || open("Degraded") || !isTrue(poolSays(pool, "NodeDegraded")),
            poolName(pool),
            "NodeDegraded: True",
            "no Degraded chapter is open",
          ),
        ];
      }),
  },
  "explain text and JSON": {
    pair: ["mco explain", "mco explain --json"],
    agrees: "both have the same verdict, the same sections, the same next steps and the same remedies",
    lagMs: 0,
    find: (view) =>
      (view.explained ?? []).flatMap(({ json, text }) => {
        const lines = text.split("\n");
        const verdict = headlineOf[json.reason];
        const todo = todoInText(text);
        const missing = [...json.sections.flatMap(({ lines: each }) => each), ...json.next].filter(
          (line) => !lines.includes(`  ${line}`),
        );
        return [
          ...unless(lines[0] === json.headline, json.subject, `text: ${lines[0] ?? ""}`, `JSON: ${json.headline}`),
          ...unless(
            !json.subject.startsWith("pool/") || verdict?.test(lines[0] ?? "") === true,
            json.subject,
            `text: ${lines[0] ?? ""}`,
            `JSON: ${json.reason}`,
          ),
          ...unless(
            todo !== undefined && todo.join("\n") === json.todo.map((line) => line.trim()).join("\n"),
            json.subject,
            `text, to do: ${todo === undefined ? "absent" : todo.join("; ")}`,
            `JSON, todo: ${json.todo.join("; ")}`,
          ),
          ...unless(missing.length === 0, json.subject, "text leaves out", missing.join("; ")),
        ];
      }),
  },
  "explain and pool": {
    pair: ["mco explain pool", "conditions of the pool"],
    agrees: "the verdict of the explanation is the one that the pool's conditions give",
    lagMs: objectLagMs,
    find: (view) =>
      view.pools.flatMap((pool) => {
        const verdict = view.explanationOf(poolName(pool))?.json.reason;
        const updating = poolSays(pool, "Updating");
        if (verdict === undefined || updating === undefined) return [];
        const is = isTrue(poolSays(pool, "Updated"))
          ? "Done"
          : isTrue(updating)
            ? "RollingOut"
            : updating.reason === "Paused" || updating.reason === "NotRendered"
              ? updating.reason
              : "Blocked";
        return unless(verdict === is, poolName(pool), `explain: ${verdict}`, `pool: ${is}`);
      }),
  },
  "explain and status": {
    pair: ["mco explain node", "mco status: machines"],
    agrees: "the reason of the explanation fits to the word for the machine",
    lagMs: 0,
    find: ({ status, explanationOf }) =>
      status.nodes.flatMap(({ name, phase }) => {
        const reason = explanationOf(`node/${name}`)?.json.reason;
        const fits = reason === undefined ? undefined : phasesOfReason[reason];
        return fits === undefined
          ? []
          : unless(fits.has(phase), `node/${name}`, `explain: ${reason ?? ""}`, `status: ${phase}`);
      }),
  },
  "nothing to do": {
    pair: ["mco explain: what to do", "Nodes, pools and MachineConfigNodes"],
    agrees: "nothing is to be done only where nothing is degraded, out of reach, or waiting for a person",
    lagMs: objectLagMs,
    find: (view) => {
      const isNothing = (subject: string) => view.explanationOf(subject)?.json.todo.length === 0;
      return [
        ...view.pools.flatMap((pool) => {
          const reason = poolSays(pool, "Updating")?.reason ?? "";
          return isNothing(poolName(pool))
            ? [
                ...unless(!isTrue(poolSays(pool, "Degraded")), poolName(pool), "to do: nothing", "Degraded: True"),
                ...unless(!standsStill.has(reason), poolName(pool), "to do: nothing", `Updating: ${reason}`),
              ]
            : [];
        }),
        ...view.machines.flatMap((machine) => {
          if (!isNothing(nodeName(machine))) return [];
          const pool = view.pools.find(({ metadata }) => metadata.name === machine.pool);
          const isPausedBefore =
            pool?.spec.paused === true &&
            machine.isDone &&
            machine.current !== (pool.spec.configuration?.name ?? machine.current);
          return [
            ...unless(
              !machine.isFailing && !isTrue(phaseSays(machine, phases.nodeDegraded)),
              nodeName(machine),
              "to do: nothing",
              `degraded: ${machine.state}`,
            ),
            ...unless(
              !isPausedBefore || isJoining(machine),
              nodeName(machine),
              "to do: nothing",
              `pool ${machine.pool} is paused before ${pool?.spec.configuration?.name ?? ""}`,
            ),
          ];
        }),
      ];
    },
  },
  estimate: {
    pair: ["mco explain: likely end", "time, Nodes and pools"],
    agrees: "no likely end is past or out of order",
    lagMs: 0,
    find: (view) =>
      (view.explained ?? []).flatMap(({ json: { subject, likelyEnd } }) => {
        if (likelyEnd === undefined) return [];
        const [earliest, likely, latest] = [likelyEnd.earliest, likelyEnd.likely, likelyEnd.latest].map((time) =>
          Date.parse(time),
        ) as [number, number, number];
        // Times of explanations are whole seconds.
        return unless(
          earliest + seconds > view.now && earliest <= likely && likely <= latest && likelyEnd.updates > 0,
          subject,
          `likely end: ${likelyEnd.earliest}, ${likelyEnd.likely}, ${likelyEnd.latest}`,
          `now: ${new Date(view.now).toISOString()}`,
        );
      }),
  },
  "estimate and obstacle": {
    pair: ["mco explain: likely end", "waits that do not end by themselves"],
    agrees: "nothing has a likely end while it is degraded, out of reach or held by pods, or its pool stands still",
    // The phase is written once, and a lost answer holds that back for the 30 s of a request, twice at worst.
    lagMs: 90 * seconds,
    find: (view) =>
      (view.explained ?? []).flatMap(({ json: { subject, reason, likelyEnd, sections } }) => {
        if (likelyEnd === undefined) return [];
        const isPool = subject.startsWith("pool/");
        const machine = view.machines.find((each) => nodeName(each) === subject);
        const drained = machine === undefined ? undefined : phaseSays(machine, phases.drained);
        const ends = (sections.find(({ title }) => title === "Likely end")?.lines ?? []).join("\n");
        return [
          ...unless(
            !isPool || reason === "RollingOut",
            subject,
            `likely end: ${likelyEnd.likely}`,
            `explain: ${reason}`,
          ),
          ...unless(
            machine === undefined ||
              !(machine.isFailing || (drained?.status === "Unknown" && drainIsHeld.has(drained.reason))),
            subject,
            "likely end",
            `${machine?.state ?? ""}, Drained: ${drained?.status ?? "absent"} ${drained?.reason ?? ""}`,
          ),
          ...unless(ends !== "", subject, "JSON has a likely end", "text has none"),
        ];
      }),
  },
  "machine counts in metrics": {
    pair: ["metrics", "Nodes"],
    agrees: "mco_machine_count, mco_updated_machine_count, mco_degraded_machine_count and mco_state count the machines",
    lagMs: objectLagMs,
    find: (view) => [
      ...view.pools.flatMap((pool) => {
        const counts = countsOf(pool, view);
        return Object.entries({
          mco_machine_count: "machineCount",
          mco_updated_machine_count: "updatedMachineCount",
          mco_degraded_machine_count: "degradedMachineCount",
          mco_unavailable_machine_count: "unavailableMachineCount",
        }).flatMap(([name, count]) => {
          const value = metric(view, name, { pool: pool.metadata.name });
          const [least, most] = counts[count] ?? [0, 0];
          return value === undefined
            ? []
            : unless(
                value >= least && value <= most,
                poolName(pool),
                `${name}: ${value}`,
                `Nodes: ${least} to ${most}`,
              );
        });
      }),
      ...view.machines.flatMap((machine) => {
        const states = view.metrics.filter(
          ({ name, labels: of }) => name === "mco_state" && of["node"] === machine.name,
        );
        return view.metrics.length === 0 || machine.pool === ""
          ? []
          : unless(
              states.length === 1 && states[0]?.labels["state"] === machine.state,
              nodeName(machine),
              `mco_state: ${states.map(({ labels: of }) => of["state"]).join()}`,
              `Node: ${machine.state}`,
            );
      }),
    ],
  },
  "pool states in metrics": {
    pair: ["metrics", "MachineConfigPools"],
    agrees: "mco_pool_paused, mco_node_phase and mco_waiting_machines say what the pools and mco status say",
    lagMs: objectLagMs,
    find: (view) =>
      view.metrics.length === 0
        ? []
        : view.pools.flatMap((pool) => {
            const { name } = pool.metadata;
            const words = new Map<string, number>();
            for (const node of view.status.nodes)
              if (node.pool === name) words.set(node.phase, (words.get(node.phase) ?? 0) + 1);
            const counted = view.metrics.filter(
              (each) => each.name === "mco_node_phase" && each.labels["pool"] === name,
            );
            const sum = counted.reduce((all, { value }) => all + value, 0);
            const waiting = view.metrics
              .filter((each) => each.name === "mco_waiting_machines" && each.labels["pool"] === name)
              .reduce((all, { value }) => all + value, 0);
            return [
              ...unless(
                (metric(view, "mco_pool_paused", { pool: name }) === 1) === (pool.spec.paused === true),
                poolName(pool),
                `mco_pool_paused: ${metric(view, "mco_pool_paused", { pool: name }) ?? "absent"}`,
                `spec.paused: ${pool.spec.paused === true}`,
              ),
              ...unless(
                sum === view.membersOf(name).length,
                poolName(pool),
                `mco_node_phase: ${sum}`,
                `machines: ${view.membersOf(name).length}`,
              ),
              ...["Degraded", "Lost", "Rebooting", "Draining"].flatMap((phase) => {
                const value = counted.find(({ labels: of }) => of["phase"] === phase)?.value ?? 0;
                return unless(
                  value === (words.get(phase) ?? 0),
                  poolName(pool),
                  `mco_node_phase ${phase}: ${value}`,
                  `mco status: ${words.get(phase) ?? 0}`,
                );
              }),
              ...unless(
                waiting === 0 || !isTrue(poolSays(pool, "Updated")),
                poolName(pool),
                `mco_waiting_machines: ${waiting}`,
                "Updated: True",
              ),
            ];
          }),
  },
  "open chapters in metrics": {
    pair: ["metrics", "annotations of Nodes"],
    agrees: "mco_open_chapter_age_seconds of an Update is there only while some machine is on its way to a target",
    lagMs: journalLagMs,
    find: (view) => {
      const age = metric(view, "mco_open_chapter_age_seconds", { book_kind: "node", chapter: "Update" });
      const open = [...view.chapters].flatMap(([book, list]) =>
        list.some(({ chapter, state }) => chapter === "Update" && state !== "Closed") ? [book] : [],
      );
      return unless(
        age === undefined || view.machines.some((machine) => !isIdle(machine)),
        open.find((book) => book.startsWith("node/")) ?? "books of nodes",
        `mco_open_chapter_age_seconds of Update: open in ${open.join()}`,
        "every machine is idle",
      );
    },
  },
} as const satisfies Readonly<Record<string, Rule>>;

export type RuleName = keyof typeof rules;
export const ruleNames = Object.keys(rules) as readonly RuleName[];

/** Rules that need explanations. */
const ofExplanations: ReadonlySet<RuleName> = new Set<RuleName>([
  "explain text and JSON",
  "explain and pool",
  "explain and status",
  "nothing to do",
  "estimate",
  "estimate and obstacle",
]);

/** What contradicts each other in one snapshot, whether or not one side may still lag behind. */
export function contradictionsIn(
  snapshot: AgreementSnapshot,
): readonly (Contradiction & { readonly rule: RuleName })[] {
  const view = viewOf(snapshot);
  return ruleNames.flatMap((rule) => rules[rule].find(view).map((found) => ({ rule, ...found })));
}

/**
 * Compares snapshots one after the other. A contradiction becomes a disagreement when the same one was there at every
 * sample for longer than its rule lets one side lag.
 */
export class AgreementWatch {
  readonly #since = new Map<string, number>();
  readonly #reported = new Set<string>();
  /** How long each rule was contradicted at most, and by what. */
  readonly longest = new Map<RuleName, { readonly ms: number; readonly what: Contradiction }>();
  samples = 0;

  /** @returns disagreements that are new with this sample. */
  sample(snapshot: AgreementSnapshot): readonly Disagreement[] {
    this.samples += 1;
    const seen = new Set<string>();
    const found: Disagreement[] = [];
    for (const each of contradictionsIn(snapshot)) {
      const key = JSON.stringify([each.rule, each.subject, each.one, each.other]);
      seen.add(key);
      const since = this.#since.get(key) ?? snapshot.now;
      this.#since.set(key, since);
      const ms = snapshot.now - since;
      if (ms >= (this.longest.get(each.rule)?.ms ?? 0)) this.longest.set(each.rule, { ms, what: each });
      const { lagMs } = rules[each.rule];
      if ((lagMs > 0 && ms <= lagMs) || this.#reported.has(key)) continue;
      this.#reported.add(key);
      found.push({ ...each, sinceMs: ms });
    }
    for (const key of this.#since.keys()) {
      const [rule] = JSON.parse(key) as [RuleName];
      // What nobody asked for at this time may be as it was.
      if (seen.has(key) || (snapshot.explained === undefined && ofExplanations.has(rule))) continue;
      this.#since.delete(key);
      this.#reported.delete(key);
    }
    return found;
  }
}

/** A disagreement as a sentence. */
export const describeDisagreement = ({ rule, subject, one, other, sinceMs }: Disagreement): string =>
  `${rule}: ${subject}: ${rules[rule].pair[0]} (${one}) and ${rules[rule].pair[1]} (${other}) have disagreed for ${Math.round(sinceMs / 1000)} s`;
