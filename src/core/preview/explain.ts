import type { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, machineConfigNodeConditions as phases } from "../../api/names.ts";
import { type Condition, conditionOf, selectorMatches, timestampOf } from "../../api/schema/object.ts";
import { isRendered } from "../config/is-rendered.ts";
import { reasonText } from "../../api/books/report-table.ts";
import {
  type Answer,
  type Facts,
  type Freshness,
  clusterMayUpgrade,
  nodePair,
  nodePosition,
  nodeWait,
  poolFacts,
  poolIsAt,
  poolProgressOf,
  renderRefusal,
} from "../pool/pool-queries.ts";
import { lastWriterText } from "../config/changed-sources.ts";
import { describeDiff } from "../config/describe-diff.ts";
import { diffConfigs } from "../config/diff-configs.ts";
import { type ReadChapter, chapterLine } from "../books/book-text.ts";
import { overdueText } from "../books/judge-joins.ts";
import {
  type Estimate,
  type Past,
  estimateMachine,
  estimateText,
  newestOf,
  noPast,
  spreads,
  whoChanged,
} from "../books/past.ts";
import { durationText } from "../books/fold-book.ts";
import { type Mover, type PoolProgress, poolBlockers } from "../pool/pool-progress.ts";
import { type Retention, describeRetention } from "../pool/retained-configs.ts";
import type { Wait } from "../pool/select-nodes.ts";
import { endsByItself } from "../pool/rollout-holds.ts";
import { andMore, listText } from "../text/list-text.ts";

/** The state of one object, its cause, what comes next, and what a person should do. */
export interface Explanation {
  /** `pool/worker`, `node/worker-0`, `clusteroperator/machine-config`, `mc/99-worker-ssh`. */
  readonly subject: string;
  readonly asOf: string;
  readonly freshness: Freshness;
  /** The reason of the answer, for programs. */
  readonly reason: string;
  /** One sentence. */
  readonly headline: string;
  readonly sections: readonly { readonly title: string; readonly lines: readonly string[] }[];
  /** What happens automatically. */
  readonly next: readonly string[];
  /** The recommended action; empty: none. */
  readonly todo: readonly string[];
  /** The estimated end, based on earlier updates. */
  readonly likelyEnd?: {
    readonly likely: string;
    readonly earliest: string;
    readonly latest: string;
    readonly updates: number;
  };
}

const shown = 10;
const listed = (items: readonly string[], all: number = items.length) => listText(items, shown, all);
const moved = ({ node, phase, since, says }: Mover) =>
  `${node}: ${phase}${since === "" ? "" : ` since ${since}`}${says === "" ? "" : ` (${says})`}`;
const waits = ({ reason, message, remedy, first, count }: Wait) =>
  `${listed(first, count)}: ${reason}, ${message}; ${remedy}`;
type Sections = Explanation["sections"];
const section = (title: string, lines: readonly string[]) =>
  lines.length === 0
    ? []
    : [
        {
          title,
          lines: lines.length <= shown ? lines : [...lines.slice(0, shown), andMore(lines.length - shown)],
        },
      ];
const from = <T>({ asOf, freshness, because }: Answer<T>) => ({ asOf, freshness, reason: because.reason });

/** The changes on a machine from one rendered config to another; secrets masked. */
function differences(before: MachineConfig | undefined, after: MachineConfig | undefined): readonly string[] {
  if (before === undefined || after === undefined || before.metadata.name === after.metadata.name) return [];
  return describeDiff(diffConfigs(before, after)).map(({ title }) => title);
}

const headlines: Readonly<Record<PoolProgress["verdict"], (name: string, progress: PoolProgress) => string>> = {
  NotRendered: (name) => `Pool ${name} has no configuration yet, so that none of its machines gets one.`,
  Done: (name, { total, target, paused }) =>
    `${total === 0 ? `Pool ${name} has no machines; new ones get ${target}` : total === 1 ? `The one machine of pool ${name} has ${target}` : `All ${total} machines of pool ${name} have ${target}`}${paused ? ", and the pool is paused" : ""}.`,
  Paused: (name, { done, total, target }) =>
    `Pool ${name} is paused: ${done} of ${total} machines have ${target}, and no other gets it.`,
  Blocked: (name, { target, waiting }) => {
    const [first] = waiting;
    if (first === undefined || waiting.some(({ reason }) => reason === "TargetQuarantined"))
      return `The roll-out of pool ${name} stands still: machines went back from ${target}, and no other healthy machine is given it.`;
    return first.reason === "MachineExcluded"
      ? `The roll-out of pool ${name} has ended but for ${listed(first.first, first.count)}, which went back from ${target} and is excluded from it.`
      : `The roll-out of pool ${name} stands still: ${first.message}.`;
  },
  RollingOut: (name, { done, total, target }) =>
    `Pool ${name} is rolling out: ${done} of ${total} machines have ${target}.`,
};

const forPrograms = ({ likely, earliest, latest, of }: Estimate) => ({
  likely: timestampOf(likely),
  earliest: timestampOf(earliest),
  latest: timestampOf(latest),
  updates: of,
});

/** Estimated ends of the machines and of the whole; empty without past data. */
function likelyEnd({ eta, working }: PoolProgress, past: Past, now: number): readonly string[] {
  if (eta === undefined) return [];
  const { whole, sections } = spreads(past);
  const longest = [...sections]
    .filter(([, { medianMs }]) => medianMs >= 1000)
    .sort(([, a], [, b]) => b.medianMs - a.medianMs)
    .slice(0, 3);
  const took = (spread: { readonly medianMs: number; readonly p10Ms: number; readonly p90Ms: number }) =>
    `${durationText(spread.medianMs)} (${durationText(spread.p10Ms)} to ${durationText(spread.p90Ms)})`;
  return [
    ...(eta.whole === undefined
      ? []
      : [
          `the roll-out: ${estimateText(eta.whole, now)}${eta.without.length === 0 ? "" : `; not counting ${listed(eta.without)}`}`,
        ]),
    ...working.slice(0, shown - 2).flatMap(({ node }) => {
      const estimate = eta.machines.get(node);
      return estimate === undefined ? [] : [`${node}: ${estimateText(estimate, now)}`];
    }),
    ...(whole === undefined
      ? []
      : [
          `a machine takes ${took(whole)}${longest.length === 0 ? "" : `, of that ${longest.map(([path, spread]) => `${path} ${took(spread)}`).join(", ")}`}`,
        ]),
  ];
}

/** What the pool's own book adds to the state of its machines: an image build or its failure, a canary. */
function historyOf(past: Past): {
  readonly sections: Explanation["sections"];
  readonly next: readonly string[];
  readonly todo: readonly string[];
} {
  const build = newestOf(past, "Build");
  const rollOut = newestOf(past, "Rollout");
  const canary =
    rollOut?.state === "Open"
      ? rollOut.sections.findLast(({ path, endedAt }) => path === "Canary" && endedAt === undefined)
      : undefined;
  const since = (text: string, at: string) => `${text === "" ? "" : `${text}, `}since ${at}`;
  const building = build?.state === "Open" ? [since(build.message ?? "", build.startedAt)] : [];
  const overdue = past.overdue ?? [];
  const failed =
    build?.state === "Closed" && build.outcome === "Failed"
      ? [since(build.message ?? "", build.endedAt ?? build.startedAt)]
      : [];
  return {
    sections: [
      ...section("Image being built", building),
      ...section("Image cannot be built", failed),
      ...section("One machine goes first", canary === undefined ? [] : [since(canary.message ?? "", canary.startedAt)]),
      ...section("Served and not joined", overdue.map(overdueText)),
    ],
    next: [
      ...(building.length === 0 ? [] : ["machines get the image when it is built"]),
      ...(canary === undefined ? [] : ["the other machines get the target when the first has proven itself"]),
    ],
    todo: [
      ...(failed.length === 0 ? [] : [build?.next ?? reasonText("BuildFailed").next]),
      ...(overdue.length === 0 ? [] : [reasonText("JoinOverdue").next]),
    ],
  };
}

/** What the sections of a pool's explanation are written from. */
interface PoolView {
  readonly progress: PoolProgress;
  readonly about: NonNullable<ReturnType<typeof poolFacts>>;
  readonly history: ReturnType<typeof historyOf>;
  /** Why its configuration cannot be rendered. */
  readonly refused: string | undefined;
  readonly facts: Facts;
  readonly past: Past;
}

/**
 * `undefined`: the pool does not exist.
 *
 * @param past from its chapters; without them nothing is estimated
 */
export function explainPool(facts: Facts, name: string, past: Past = noPast): Explanation | undefined {
  const answer = poolProgressOf(facts, name, past);
  const about = poolFacts(facts, name);
  if (answer === undefined || about === undefined) return undefined;
  const progress = answer.value;
  const view: PoolView = {
    progress,
    about,
    history: historyOf(past),
    refused: renderRefusal(about.pool),
    facts,
    past,
  };
  return {
    subject: `pool/${name}`,
    ...from(answer),
    headline: headlines[progress.verdict](name, progress),
    sections: [...targetSections(view), ...machineSections(view), ...courseSections(view)],
    next: poolNext(view),
    todo: poolTodo(view),
    ...(progress.eta?.whole === undefined ? {} : { likelyEnd: forPrograms(progress.eta.whole) }),
  };
}

/** The pool's target: what it changes, who changed it, and what keeps it from being rendered or built. */
function targetSections({ progress, about: { pool }, history, refused, facts, past }: PoolView): Sections {
  const target = facts.machineConfig(progress.target);
  const changes = differences(facts.machineConfig(pool.status?.configuration?.name ?? ""), target);
  const rollOut = newestOf(past, "Rollout");
  const cause =
    rollOut?.run === progress.target && rollOut.cause !== undefined
      ? [`${rollOut.cause.text}${rollOut.cause.by === undefined ? "" : `, by ${rollOut.cause.by}`}`]
      : [];
  const changed = whoChanged(pool, facts.machineConfig);
  return [
    ...section(
      "Target",
      progress.target === ""
        ? []
        : [
            `${progress.target}${target?.metadata.creationTimestamp === undefined ? "" : ` since ${target.metadata.creationTimestamp}`}`,
            ...changes.map((change) => `  ${change}`),
          ],
    ),
    ...section("Changed", changed.length > 0 ? changed : cause),
    ...section("Cannot be rendered", refused === undefined ? [] : [refused]),
    ...history.sections,
  ];
}

/** The machines of the pool, by where they are. */
function machineSections({ progress, about: { members } }: PoolView): Sections {
  const updated = () =>
    [...members.all()].flatMap((member) => (members.isUpdated(member.name) ? [member.name] : [])).sort();
  return [
    ...section("Done", progress.verdict === "Done" || progress.done === 0 ? [] : [listed(updated(), progress.done)]),
    ...section("Working", progress.working.map(moved)),
    ...section("Blocked", progress.blocked.map(moved)),
    ...section("Failed", progress.failed.map(moved)),
    ...section("Out of reach", progress.lost.map(moved)),
    ...section("Daemon silent", progress.silent.map(moved)),
    ...section("Waiting", progress.waiting.map(waits)),
    ...section("Excluded from the target", progress.excluded),
    ...section("Joining", progress.joining),
    ...section("Cordoned by somebody else", progress.cordonedByOthers),
    ...section(
      "In several pools, and so in none",
      [...progress.ambiguous].map(([node, pools]) => `${node} (${pools.join(", ")})`),
    ),
  ];
}

function courseSections({ progress, facts, past }: PoolView): Sections {
  const { max, unavailable } = progress.budget;
  const isUnfinished = progress.verdict === "RollingOut" || progress.verdict === "Blocked";
  return [
    ...section("Cannot be applied to running machines", progress.irreconcilable),
    ...section("Budget", isUnfinished ? [`${unavailable} of ${max} machines that may be away are`] : []),
    ...section("Likely end", likelyEnd(progress, past, facts.now)),
  ];
}

function poolNext({ progress, about: { selection }, history }: PoolView): readonly string[] {
  const first = progress.waiting[0]?.first[0];
  const isRolling = progress.verdict === "RollingOut";
  return [
    ...history.next,
    ...progress.working.slice(0, shown).map(({ node, phase }) => `${node} goes on from ${phase} by itself`),
    ...(isRolling && first !== undefined
      ? [`next in turn: ${listed(progress.waiting.flatMap((wait) => wait.first))}`]
      : []),
    ...(isRolling && selection.chosen.length > 0
      ? [`given the target now: ${listed(selection.chosen.map(({ node }) => node))}`]
      : []),
    ...(progress.verdict === "Done" && progress.failed.length === 0 && !progress.paused
      ? ["nothing, until a MachineConfig of the pool changes"]
      : []),
  ];
}

const poolTodo = ({ progress, history, refused }: PoolView): readonly string[] =>
  [
    ...(refused === undefined ? [] : ["mend or delete the MachineConfig that is named under Cannot be rendered"]),
    ...history.todo,
    ...poolBlockers(progress).map(({ remedy }) => remedy),
    ...progress.blocked.map(({ node }) => `look at what holds the drain of ${node}: mco explain node/${node}`),
    ...progress.excluded.map(
      (node) =>
        `find out why ${node} went back; to have it try again: kubectl annotate machineconfignode ${node} ${annotations.refusedTargets}-`,
    ),
    ...progress.failed.map(({ node }) => `mend ${node}: mco explain node/${node}`),
    ...progress.lost.map(({ node }) => `bring ${node} back, or delete its Node`),
    ...progress.silent.map(
      ({ node }) =>
        `look at the daemon's pod on ${node}: kubectl get pods -n openshift-machine-config-operator -o wide --field-selector spec.nodeName=${node}`,
    ),
    ...[...progress.ambiguous.keys()].map((node) => `take a label from ${node} that only one of its pools selects by`),
  ].slice(0, shown);

/** What a person should do about a node that needs help, by its position. */
const nodeRemedies: Partial<Record<string, readonly string[]>> = {
  Degraded: [
    "put right what the message says; the daemon tries again by itself, and at once when its target changes",
    "or take the MachineConfig back that brought it: the node gets that first",
  ],
  Unreconcilable: ["take the change back, or replace the machine with a new one"],
  Lost: ["look at the machine's console and its kubelet; if it is gone for good, delete its Node"],
  Silent: ["look at the daemon's pod on the node: its log says why it is not ready"],
};

/** What the sections of a node's explanation are written from. */
interface NodeView {
  readonly name: string;
  readonly facts: Facts;
  readonly known: NonNullable<ReturnType<Facts["members"]["node"]>>;
  readonly at: NonNullable<ReturnType<typeof nodePosition>>["value"]["at"];
  readonly pair: NonNullable<ReturnType<typeof nodePair>>["value"];
  readonly wait: ReturnType<typeof nodeWait>;
  /** The target of its pool; empty in none. */
  readonly target: string;
  readonly estimate: Estimate | undefined;
  readonly chapters: readonly ReadChapter[];
}

const updating: ReadonlySet<string> = new Set<NodeView["at"]>([
  "Executing",
  "Preparing",
  "PostAction",
  "Resuming",
  "Completing",
]);

/**
 * `undefined`: there is no such node.
 *
 * @param before the chapters of its pool and its own, oldest first
 */
export function explainNode(
  facts: Facts,
  name: string,
  before: { readonly past?: Past; readonly chapters?: readonly ReadChapter[] } = {},
): Explanation | undefined {
  const position = nodePosition(facts, name);
  const pair = nodePair(facts, name);
  const known = facts.members.node(name);
  if (position === undefined || pair === undefined || known === undefined) return undefined;
  const { at } = position.value;
  const pool = known.membership.verdict === "member" ? known.membership.pool : "";
  const { phase, since } = known.facts;
  const estimate =
    updating.has(at) && before.past !== undefined
      ? estimateMachine(before.past, phase, since === "" ? undefined : Date.parse(since), facts.now)
      : undefined;
  const view: NodeView = {
    name,
    facts,
    known,
    at,
    pair: pair.value,
    wait: nodeWait(facts, name),
    target: pool === "" ? "" : facts.members.members(pool).target,
    estimate,
    chapters: before.chapters ?? [],
  };
  return {
    subject: `node/${name}`,
    ...from(position),
    headline: `Node ${name}${pool === "" ? "" : ` of pool ${pool}`}: ${position.because.message}.`,
    sections: nodeSections(view),
    next: nodeNext(view),
    todo: nodeTodo(view),
    ...(estimate === undefined ? {} : { likelyEnd: forPrograms(estimate) }),
  };
}

function nodeSections({ name, facts, known, pair, wait, target, estimate, chapters }: NodeView): Sections {
  const { config, desiredConfig } = pair;
  const conditions = known.machineConfigNode?.status?.conditions ?? [];
  const degraded = conditionOf(conditions, phases.nodeDegraded);
  const contradiction = facts.members.contradictions(facts.now).get(name);
  return [
    ...section("Configuration", [
      `has ${config === "" ? "none yet" : config}`,
      ...(desiredConfig === config ? [] : [`was given ${desiredConfig === "" ? "none yet" : desiredConfig}`]),
      ...(target === "" || target === desiredConfig ? [] : [`the pool's target is ${target}`]),
    ]),
    ...section(
      "On its way",
      differences(facts.machineConfig(config), facts.machineConfig(target === "" ? desiredConfig : target)),
    ),
    ...section("Steps", stepLines(conditions)),
    ...section("Why it waits", wait === undefined ? [] : [`${wait.because.reason}: ${wait.because.message}`]),
    ...section("What it reports", degraded?.status === "True" ? [degraded.message] : []),
    ...section("Two sources disagree", contradiction === undefined ? [] : [contradiction]),
    ...section("Likely end", estimate === undefined ? [] : [estimateText(estimate, facts.now)]),
    ...section(
      "Before",
      chapters
        .filter(({ state }) => state !== "Open")
        .slice(-3)
        .map((chapter) => chapterLine(chapter, facts.now)),
    ),
  ];
}

/** The phases of an update that the node has begun, in their order. */
const stepLines = (conditions: readonly Condition[]): readonly string[] =>
  [
    phases.updatePrepared,
    phases.cordoned,
    phases.drained,
    phases.appliedFiles,
    phases.appliedOSImage,
    phases.updatePostActionComplete,
    phases.rebootedNode,
    phases.uncordoned,
  ].flatMap((type) => {
    const condition = conditionOf(conditions, type);
    return condition === undefined || condition.status === "False"
      ? []
      : [
          `${type}: ${condition.status} since ${condition.lastTransitionTime}${condition.message === "" ? "" : `, ${condition.message}`}`,
        ];
  });

const nodeNext = ({ at, wait, pair, target }: NodeView): readonly string[] => [
  ...(wait !== undefined && endsByItself(wait.value.reason) ? [wait.value.remedy] : []),
  ...(updating.has(at) ? ["it goes on by itself"] : []),
  ...(at === "NeedsUpdate" && wait === undefined && pair.desiredConfig === target
    ? ["its daemon takes the target on"]
    : []),
  ...(at === "Idle" && wait === undefined ? ["nothing, until its pool's configuration changes"] : []),
];

function nodeTodo({ at, wait, known }: NodeView): readonly string[] {
  const drained = conditionOf(known.machineConfigNode?.status?.conditions ?? [], phases.drained);
  return [
    ...(wait !== undefined && !endsByItself(wait.value.reason) ? [wait.value.remedy] : []),
    ...(nodeRemedies[at] ?? []),
    ...(at === "Executing" && drained?.status === "Unknown" && drained.reason !== "UpdateExecutedDrained"
      ? ["let the pods go that are named under Steps, or change the disruption budget that holds them"]
      : []),
    ...(known.membership.verdict === "ambiguous"
      ? [`take a label away that only one of ${known.membership.pools.join(" and ")} selects by`]
      : []),
  ];
}

/** What the operator reports about itself, and what prevents an upgrade. */
export function explainClusterOperator(facts: Facts, operator: ClusterOperator): Explanation {
  const may = clusterMayUpgrade(facts);
  const conditions = operator.status?.conditions ?? [];
  const is = (type: string) => conditions.find((condition) => condition.type === type);
  const trouble = ["Degraded", "Progressing"].map(is).find((condition) => condition?.status === "True");
  const versions = (operator.status?.versions ?? []).map(({ name, version }) => `${name} ${version}`);
  return {
    subject: `clusteroperator/${operator.metadata.name}`,
    ...from(may),
    reason: trouble?.reason ?? "AsExpected",
    headline:
      trouble === undefined
        ? `The operator is as it should be${versions.length === 0 ? "" : ` at ${versions.join(", ")}`}.`
        : `${trouble.type}: ${trouble.message ?? ""}`,
    sections: [
      ...section(
        "Conditions",
        conditions.map(
          ({ type, status, reason, message, lastTransitionTime }) =>
            `${type}: ${status} since ${lastTransitionTime} (${reason ?? ""})${(message ?? "") === "" ? "" : `, ${message ?? ""}`}`,
        ),
      ),
      ...section(
        "Pools",
        facts.members.pools().map(({ metadata }) => explainPool(facts, metadata.name)?.headline ?? metadata.name),
      ),
      ...section(
        "In the way of an upgrade",
        may.value.may === "No" ? may.value.blockers.map(({ message }) => message) : [],
      ),
    ],
    next: trouble?.type === "Progressing" ? ["it goes on by itself"] : [],
    todo: may.value.may === "No" ? may.value.blockers.map(({ remedy }) => remedy) : [],
  };
}

/**
 * Where one MachineConfig is: the pools that take it, and how many of their machines have it; of a rendered one also
 * why it is kept. `undefined`: there is no such one.
 */
export function explainMachineConfig(facts: Facts, name: string, retention?: Retention): Explanation | undefined {
  const config = facts.machineConfig(name);
  if (config === undefined) return undefined;
  const rendered = isRendered(config, facts.members.pools());
  const pools = facts.members
    .pools()
    .filter((pool) =>
      rendered
        ? [pool.spec.configuration?.name, pool.status?.configuration?.name].includes(name)
        : selectorMatches(pool.spec.machineConfigSelector, config.metadata.labels),
    );
  const lines = pools.map((pool) => {
    const { name: poolName } = pool.metadata;
    const target = rendered ? name : (pool.spec.configuration?.name ?? "");
    // Whether what was rendered last has this very version of it, the pool's list of members does not say; that it has
    // it at all does.
    const isMember =
      rendered ||
      (
        (pool.spec.configuration as { readonly source?: readonly { readonly name?: string }[] } | undefined)?.source ??
        []
      ).some((source) => source.name === name);
    const answer = poolIsAt(facts, poolName, target);
    return isMember && target !== ""
      ? `${poolName}: part of ${target}, which ${answer?.because.message.replace(/ have .*/, " have") ?? ""}`
      : `${poolName}: selected, and not rendered yet`;
  });
  return {
    subject: `mc/${name}`,
    asOf: new Date(facts.heardAt ?? facts.now).toISOString(),
    freshness: facts.heardAt === undefined ? "Unknown" : "Fresh",
    reason: pools.length === 0 ? "NoPool" : "InPools",
    headline:
      pools.length === 0
        ? `No pool takes ${name}.`
        : `${name} is in ${pools.length === 1 ? "the pool" : "the pools"} ${pools.map(({ metadata }) => metadata.name).join(", ")}.`,
    sections: [
      ...section("Pools", lines),
      ...section("Written", rendered ? [] : lastWriterText(config)),
      ...section("Kept", retention === undefined ? [] : [describeRetention(retention)]),
    ],
    next: [],
    todo:
      pools.length === 0 && !rendered
        ? [
            "give it a label that some pool's machineConfigSelector selects, such as machineconfiguration.openshift.io/role",
          ]
        : [],
  };
}

/** The explanation as text, without colours. */
export function explanationText({ headline, sections, next, todo, freshness, asOf }: Explanation): string {
  const lines = [
    headline,
    ...(freshness === "Fresh"
      ? []
      : [`(${freshness === "Stale" ? `what is known is as of ${asOf}` : "not everything could be read"})`]),
    ...sections.flatMap(({ title, lines: each }) => [`${title}:`, ...each.map((line) => `  ${line}`)]),
    ...(next.length === 0 ? [] : ["What happens next:", ...next.map((line) => `  ${line}`)]),
    todo.length === 0 ? "What to do: nothing" : "What to do:",
    ...todo.map((line) => `  ${line}`),
  ];
  return `${lines.join("\n")}\n`;
}
