import { poolSelects } from "../config/pool-selector.ts";
import type { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { Problem } from "../../ignition/problem.ts";
import { imageBuildDegraded } from "../build/build-conditions.ts";
import { problemsOfBudget } from "../pool/judge-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import { annotations, labels, machineConfigNodeConditions as phases, namespace, objects } from "../../api/names.ts";
import { type Condition, conditionOf, timestampOf } from "../../api/schema/object.ts";
import { isRendered } from "../config/is-rendered.ts";
import { type ReportReason, reasonText } from "../../api/books/report-table.ts";
import { errorCodes } from "../../api/errors.ts";
import type { MemberFacts } from "../pool/member-facts.ts";
import {
  type Answer,
  type Facts,
  clusterMayUpgrade,
  nodePair,
  nodePosition,
  nodeWait,
  poolFacts,
  poolRunsConfig,
  poolProgressOf,
  renderRefusal,
  renderRemedy,
  renderWait,
} from "../pool/pool-queries.ts";
import { isOldIgnition, recentIgnition } from "../join/boot-program.ts";
import { isOfUnknownMachine } from "../join/join-changes.ts";
import { lastWriterText } from "../config/changed-sources.ts";
import { titleOfChange } from "../config/describe-diff.ts";
import { diffConfigs } from "../config/diff-configs.ts";
import { type ReadChapter, chapterLine } from "../books/book-text.ts";
import { type Join, overdueText } from "../books/judge-joins.ts";
import {
  type Estimate,
  type Past,
  estimateMachine,
  estimateText,
  newestOf,
  noPast,
  pastLike,
  spreads,
  whoChanged,
} from "../books/past.ts";
import { durationText } from "../books/fold-book.ts";
import { poolOffers } from "../pool/pool-of-node.ts";
import { type Mover, type PoolProgress, isBlocked, poolBlockers } from "../pool/pool-progress.ts";
import { registriesProblem } from "../pool/registries-condition.ts";
import { type ConfigRetention, describeRetention } from "../pool/retained-configs.ts";
import type { Wait } from "../pool/select-nodes.ts";
import { resolvesItself } from "../pool/rollout-holds.ts";
import { listText } from "../text/list-text.ts";
import { pinnedImagesOf, pinnedImagesOfPool } from "./explain-pinned-images.ts";
import { refusedRequests } from "./explain-joining-kinds.ts";
import { type Explanation, type Sections, section, shown } from "./explanation.ts";

const listed = (items: readonly string[], all: number = items.length) => listText(items, shown, all);
const moved = ({ node, phase, since, says }: Mover) =>
  `${node}: ${phase}${since === "" ? "" : ` since ${since}`}${says === "" ? "" : ` (${says})`}`;
const waits = ({ reason, message, remedy, first, count }: Wait) =>
  `${listed(first, count)}: ${reason}, ${message}; ${remedy}`;
const from = <T>({ asOf, freshness, because }: Answer<T>) => ({ asOf, freshness, reason: because.reason });

/** The changes on a machine from one rendered config to another; secrets masked. */
function differences(before: MachineConfig | undefined, after: MachineConfig | undefined): readonly string[] {
  if (before === undefined || after === undefined || before.metadata.name === after.metadata.name) return [];
  return diffConfigs(before, after).map(titleOfChange);
}

/** The state that a pool's machines are to reach, as its headline names it. */
const goalText = ({ target, image, awaits, reverting }: PoolProgress): string =>
  reverting ? `${target} on the stock OS` : image === "" && awaits === "" ? target : `${target} with its image`;

const headlines: Readonly<Record<PoolProgress["verdict"], (name: string, progress: PoolProgress) => string>> = {
  NotRendered: (name) => `Pool ${name} has no configuration yet, so that none of its machines gets one.`,
  Done: (name, progress) => {
    const { total, target, paused } = progress;
    const whole =
      total === 0
        ? `Pool ${name} has no machines; new ones get ${target}`
        : total === 1
          ? `The one machine of pool ${name} has ${goalText(progress)}`
          : `All ${total} machines of pool ${name} have ${goalText(progress)}`;
    return `${whole}${paused ? ", and the pool is paused" : ""}.`;
  },
  Paused: (name, progress) =>
    `Pool ${name} is paused: ${progress.done} of ${progress.total} machines have ${goalText(progress)}, and no other gets it.`,
  Blocked: (name, { target, waiting }) => {
    const [first] = waiting;
    if (first === undefined || waiting.some(({ reason }) => reason === "TargetQuarantined"))
      return `The roll-out of pool ${name} stands still: machines went back from ${target}, and no other healthy machine is given it.`;
    return first.reason === "MachineExcluded"
      ? `The roll-out of pool ${name} has ended but for ${listed(first.first, first.count)}, which went back from ${target} and is excluded from it.`
      : `The roll-out of pool ${name} stands still: ${first.message}.`;
  },
  RollingOut: (name, progress) =>
    `Pool ${name} is rolling out: ${progress.done} of ${progress.total} machines have ${goalText(progress)}.`,
};

const forPrograms = ({ likely, earliest, latest, of }: Estimate) => ({
  likely: timestampOf(likely),
  earliest: timestampOf(earliest),
  latest: timestampOf(latest),
  updates: of,
});

/** Estimated ends of the machines and of the whole; empty without past data. */
function likelyEnd({ eta, working, target }: PoolProgress, past: Past, now: number): readonly string[] {
  if (eta === undefined) return [];
  const { whole, sections } = spreads(pastLike(past, target));
  const longest = [...sections]
    .filter(([, { medianMs }]) => medianMs >= 1000)
    .sort(([, a], [, b]) => b.medianMs - a.medianMs)
    .slice(0, 3);
  const took = (spread: { readonly medianMs: number; readonly p10Ms: number; readonly p90Ms: number }) =>
    `${durationText(spread.medianMs)} (${durationText(spread.p10Ms)} to ${durationText(spread.p90Ms)})`;
  return [
    ...(eta.whole === undefined ? [] : [`the roll-out: ${estimateText(eta.whole, now)}`]),
    ...(eta.without.length === 0 ? [] : [`the roll-out: not foreseeable until ${listed(eta.without)} can go on`]),
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
  readonly sections: Sections;
  readonly next: readonly string[];
  readonly todo: readonly string[];
} {
  const newest = newestOf(past, "Build");
  const optOut = newestOf(past, "OptOut");
  // A pool that has opted out since wants no image.
  const build =
    newest !== undefined && optOut !== undefined && optOut.startedAt >= newest.startedAt ? undefined : newest;
  const rollOut = newestOf(past, "Rollout");
  const canary =
    rollOut?.state === "Open"
      ? rollOut.sections.findLast(({ path, endedAt }) => path === "Canary" && endedAt === undefined)
      : undefined;
  const since = (text: string, at: string) => `${text === "" ? "" : `${text}, `}since ${at}`;
  const building = build?.state === "Open" ? [since(build.message ?? "", build.startedAt)] : [];
  const overdue = past.overdue ?? [];
  const old = oldBootImages(past.booted ?? []);
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
      ...section("Started from old boot images in the last week, as their requests say", old),
    ],
    next: [
      ...(building.length === 0 ? [] : ["machines get the image when it is built"]),
      ...(canary === undefined ? [] : ["the other machines get the target when the first has proven itself"]),
    ],
    todo: [
      ...(failed.length === 0 ? [] : [build?.next ?? reasonText("BuildFailed").next]),
      ...(overdue.length === 0 ? [] : [reasonText("JoinOverdue").next]),
      ...(old.length === 0
        ? []
        : [
            `start new machines of the pool from a boot image with Ignition ${recentIgnition} or later, such as that of the release: set it where these are made, as in their MachineSet (docs/boot-images.md); machines that have joined need nothing`,
          ]),
    ],
  };
}

/** Machines of one Ignition that are named; more add nothing. */
const mostNamed = 10;

/** Machines whose configurations had to be converted for their boot images, by what they started with. */
function oldBootImages(booted: readonly Join[]): readonly string[] {
  const machines = new Map<string, Set<string>>();
  for (const { ignition, is, node, requester } of booted) {
    if (ignition === undefined || !isOldIgnition(ignition)) continue;
    const name = is === "joined" ? node : is === "probable" ? `probably ${node}` : undefined;
    machines.set(ignition, (machines.get(ignition) ?? new Set()).add(name ?? `the machine ${requester}`));
  }
  return [...machines].map(([ignition, names]) => `Ignition ${ignition}: ${listText([...names], mostNamed)}`).sort();
}

/** The inputs of the sections of a pool's explanation. */
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
  const waits = renderWait(pool);
  const registries = registriesProblem(pool);
  const failing = history.todo.length > 0 ? undefined : imageBuildDegraded(pool);
  return [
    ...section(
      "Target",
      progress.target === ""
        ? []
        : [
            `${progress.target}${sinceText(rollOut?.run === progress.target ? rollOut.startedAt : undefined, target)}`,
            ...changes.map((change) => `  ${change}`),
          ],
    ),
    ...section("Changed", changed.length > 0 ? changed : cause),
    ...section("Cannot be rendered", refused === undefined ? [] : [refused]),
    ...section("Rendering waits", waits === undefined ? [] : [waits]),
    ...section("Registries are not written", registries === undefined ? [] : [registries]),
    ...section("Pinned images", pinnedImagesOfPool(pool, facts).lines),
    ...section("Next image cannot be built", failing === undefined ? [] : failing.message.split("\n")),
    ...history.sections,
  ];
}

/** Since when a config is the target. One may be much older: a pool that goes back to it does not make it again. */
function sinceText(since: string | undefined, target: MachineConfig | undefined): string {
  if (since !== undefined) return ` since ${since}`;
  const made = target?.metadata.creationTimestamp;
  return made === undefined ? "" : `, made ${made}`;
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
    ...section("Cordoned outside the suite", progress.cordonedByOthers),
    ...section(
      "In several pools, and so in none",
      [...progress.ambiguous].map(([node, pools]) => `${node} (${pools.join(", ")})`),
    ),
  ];
}

/** Values of a pool that were stored before they were judged, with what they count as. */
const uncountedValues = ({ spec }: MachineConfigPool): readonly Problem[] =>
  problemsOfBudget(spec.maxUnavailable).filter(({ severity }) => severity === "error");

function courseSections({ progress, about: { pool }, facts, past }: PoolView): Sections {
  const { max, unavailable } = progress.budget;
  const isUnfinished = progress.verdict === "RollingOut" || progress.verdict === "Blocked";
  return [
    ...section("Cannot be applied to running machines", progress.irreconcilable),
    ...section("Budget", isUnfinished ? [`${unavailable} of ${max} machines that may be away are`] : []),
    ...section(
      "Does not count as written",
      uncountedValues(pool).map(({ path, reason }) => `${path} ${reason}`),
    ),
    ...section("Likely end", likelyEnd(progress, past, facts.now)),
  ];
}

function poolNext({ progress, about: { pool, selection }, history, refused }: PoolView): readonly string[] {
  const first = progress.waiting[0]?.first[0];
  const isRolling = progress.verdict === "RollingOut";
  return [
    ...(renderWait(pool) === undefined ? [] : ["its configuration is rendered when what rendering waits for is there"]),
    ...history.next,
    ...progress.working.slice(0, shown).map(({ node, phase }) => `${node} continues from ${phase} on its own`),
    ...(isRolling && first !== undefined
      ? [`next in turn: ${listed(progress.waiting.flatMap((wait) => wait.first))}`]
      : []),
    ...(isRolling && selection.chosen.length > 0
      ? [`given the target now: ${listed(selection.chosen.map(({ node }) => node))}`]
      : []),
    ...(progress.verdict === "Done" && progress.failed.length === 0 && !progress.paused && refused === undefined
      ? ["nothing, until a MachineConfig of the pool changes"]
      : []),
  ];
}

/** What to do about machines that do not go on by themselves, and so hold places of the budget. */
const machinesToHelp = ({
  blocked,
  failed,
  lost,
  silent,
  cordonedByOthers,
  waiting,
}: PoolProgress): readonly { readonly node: string; readonly todo: string }[] => [
  ...blocked.map(({ node }) => ({ node, todo: `look at what holds the drain of ${node}: mco explain node/${node}` })),
  ...failed.map(({ node }) => ({ node, todo: `repair ${node}: mco explain node/${node}` })),
  ...lost.map(({ node }) => ({ node, todo: `bring ${node} back, or delete its Node` })),
  ...silent.map(({ node }) => ({ node, todo: `look at the daemon's pod on ${node}: ${podsOn(node)}` })),
  ...(waiting.some(({ reason }) => reason === "BudgetUsed")
    ? cordonedByOthers.map((node) => ({
        node,
        todo: `put ${node} back into service, which was cordoned by hand: kubectl uncordon ${node}`,
      }))
    : []),
];

/** What a failed build of the pool's image asks for, also while machines have the image that they should have. */
function imageTodo(pool: MachineConfigPool, progress: PoolProgress, known: readonly string[]): readonly string[] {
  const isNamed = known.length > 0 || progress.awaitsRemedy !== "" || imageBuildDegraded(pool) === undefined;
  return isNamed ? known : [`have its next image built: mco build explain ${pool.metadata.name}`];
}

const poolTodo = ({ progress, about: { pool }, history, refused, facts }: PoolView): readonly string[] =>
  [
    ...(refused === undefined ? [] : [renderRemedy(pool)]),
    ...uncountedValues(pool).map(({ path, remedy = "" }) => `${path} of pool/${pool.metadata.name}: ${remedy}`),
    ...(registriesProblem(pool) === undefined ? [] : ["correct the object and field under Registries are not written"]),
    ...imageTodo(pool, progress, history.todo),
    ...new Set(
      [...poolBlockers(progress).map(({ remedy }) => remedy), progress.awaitsRemedy].filter((remedy) => remedy !== ""),
    ),
    ...machinesToHelp(progress).map(({ todo }) => todo),
    ...pinnedImagesOfPool(pool, facts).todo,
    ...progress.excluded.map((node) => `find out why ${node} went back; to have it try again: ${tryAgain(node)}`),
    ...[...progress.ambiguous.keys()].map((node) => `take a label from ${node} that only one of its pools selects by`),
  ].slice(0, shown);

/** Reasons of a degraded machine that its MachineConfigs did not bring. */
const broughtByNoConfig: ReadonlySet<string> = new Set<ReportReason>([
  "ConfigDrift",
  "CurrentConfigMissing",
  "WrittenByNewerVersion",
  "ConflictingImageAnnotations",
  "ImageNotDigest",
  "ImageContentMismatch",
  "PoliciesNotMerged",
  "ConfigNotDelivered",
]);
/** Reasons that a machine keeps until its list of refused targets is removed, or its target changes. */
const endWithRefusal: ReadonlySet<string> = new Set<ReportReason>(["TargetRefused", "RevertFailed"]);

const tryAgain = (node: string) => `kubectl annotate machineconfignode ${node} ${annotations.refusedTargets}-`;

/** The remedy of a failure whose message begins as its code means it; empty: the message has words of its own. */
const remedyOfCode = (message: string): string =>
  Object.values(errorCodes).find(({ meaning }) => message.startsWith(meaning))?.remedy ?? "";

/**
 * What a degraded machine asks for: what the tables say of its failure's code and of its reason, and what holds for
 * every failure.
 */
function degradedTodo(name: string, { saysReason: reason, says }: MemberFacts): readonly string[] {
  const { next, isNone } = reasonText(reason);
  const ofCode = remedyOfCode(says);
  return [
    ...(ofCode === "" ? [] : [ofCode]),
    next === "" || isNone === true
      ? "fix what the message says; the daemon tries again by itself, and at once when its target changes"
      : next,
    ...(endWithRefusal.has(reason) ? [`to have it tried again: ${tryAgain(name)}`] : []),
    ...(broughtByNoConfig.has(reason)
      ? []
      : ["or take the MachineConfig back that brought it: the node gets that first"]),
  ];
}

/** The command that shows the log of a Deployment of the suite. */
export const logOf = (deployment: string) => `kubectl logs -n ${namespace} deployment/${deployment}`;
const podsOn = (node: string) => `kubectl get pods -n ${namespace} -o wide --field-selector spec.nodeName=${node}`;

/** The recommended action for a node that needs help, by its position. */
function remediesOf({ name, at, known: { facts } }: NodeView): readonly string[] {
  switch (at) {
    case "Degraded":
      return degradedTodo(name, facts);
    case "Unreconcilable":
      return [
        "do what the message says: the machine looks again by itself, twice a minute",
        "or take the change back, or replace the machine with a new one",
      ];
    case "Lost":
      return [
        `look at the machine's console and its kubelet; if it is gone for good, delete its Node: kubectl delete node ${name}`,
      ];
    case "Silent":
      return [`look at the daemon's pod on the node, whose log says why it is not ready: ${podsOn(name)}`];
    default:
      return [];
  }
}

/** The inputs of the sections of a node's explanation. */
interface NodeView {
  readonly name: string;
  readonly facts: Facts;
  readonly known: NonNullable<ReturnType<Facts["members"]["node"]>>;
  readonly at: NonNullable<ReturnType<typeof nodePosition>>["value"]["at"];
  /** Why it is there. */
  readonly why: string;
  readonly pair: NonNullable<ReturnType<typeof nodePair>>["value"];
  readonly wait: ReturnType<typeof nodeWait>;
  /** The target of its pool; empty without a pool. */
  readonly target: string;
  readonly estimate: Estimate | undefined;
  readonly chapters: readonly ReadChapter[];
  readonly binding: NodeBinding | undefined;
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
 * @param before the chapters of its pool and its own, oldest first, and what its name is bound to
 */
export function explainNode(
  facts: Facts,
  name: string,
  before: {
    readonly past?: Past;
    readonly chapters?: readonly ReadChapter[];
    readonly binding?: NodeBinding | undefined;
  } = {},
): Explanation | undefined {
  const position = nodePosition(facts, name);
  const pair = nodePair(facts, name);
  const known = facts.members.node(name);
  if (position === undefined || pair === undefined || known === undefined) return undefined;
  const { at } = position.value;
  const pool = known.membership.verdict === "member" ? known.membership.pool : "";
  const { phase, since } = known.facts;
  const estimate =
    updating.has(at) && !isBlocked(known.facts) && before.past !== undefined
      ? estimateMachine(
          pastLike(before.past, known.facts.desired),
          phase,
          since === "" ? undefined : Date.parse(since),
          facts.now,
        )
      : undefined;
  const view: NodeView = {
    name,
    facts,
    known,
    at,
    why: position.because.reason,
    pair: pair.value,
    wait: nodeWait(facts, name),
    target: pool === "" ? "" : facts.members.members(pool).target,
    estimate,
    chapters: before.chapters ?? [],
    binding: before.binding,
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

function nodeSections({ name, facts, known, pair, wait, target, estimate, chapters, binding }: NodeView): Sections {
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
    ...section("Pinned images", pinnedImagesOf(conditions)),
    ...section("In no pool", unassignedLines(known, binding)),
    ...section("Requests for certificates", refusedOf({ name, facts, binding }).lines),
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

const nodeNext = (view: NodeView): readonly string[] => {
  const { at, why, wait } = view;
  return [
    ...(wait !== undefined && !isUpToPeople(view) ? [wait.value.remedy] : []),
    ...(wait?.value.reason === "DrainSkipped" ? ["its drain is tried again by itself"] : []),
    ...(updating.has(at) ? ["it continues on its own"] : []),
    ...(at === "Joining" && wait === undefined
      ? ["its daemon takes on what the machine has, or its first target"]
      : []),
    ...(at === "Leaving" ? ["it is gone when those who hold it by a finalizer let it go"] : []),
    ...(at === "NeedsUpdate" && wait === undefined
      ? [why === "NotTakenOn" ? "its daemon takes on what it was given" : "it is given the target now"]
      : []),
    ...(at === "Idle" && wait === undefined ? ["nothing, until its pool's configuration changes"] : []),
  ];
};

/** Whether the remedy of a machine's wait is an act, and not what happens by itself. */
function isUpToPeople({ facts, known, wait }: NodeView): boolean {
  if (wait === undefined) return false;
  const { reason, remedy } = wait.value;
  const pool = known.membership.verdict === "member" ? known.membership.pool : "";
  return (
    !resolvesItself(reason) || reason === "DrainSkipped" || poolProgressOf(facts, pool)?.value.awaitsRemedy === remedy
  );
}

const refusedOf = ({ name, facts, binding }: Pick<NodeView, "name" | "facts" | "binding">) =>
  binding === undefined ? { lines: [], todo: [] } : refusedRequests(name, binding.spec, facts.now);

/** Which pool a node without one was in, as far as the cluster has recorded it. */
function unassignedLines({ membership, node }: NodeView["known"], binding: NodeBinding | undefined): readonly string[] {
  const { lastPool, releasedAt, revoked } = binding?.spec ?? {};
  if (membership.verdict !== "none" || binding === undefined) return [];
  const joined = isOfUnknownMachine(binding.spec)
    ? "this suite did not admit its machine"
    : `its machine joined pool ${binding.spec.pool}`;
  const was =
    lastPool === undefined
      ? []
      : [lastPool === "" ? "it was taken out of every pool later" : `it was in pool ${lastPool} last`];
  const what = revoked === true ? `an administrator released the name` : `the Node ${node.metadata.name} was deleted`;
  const deleted = releasedAt === undefined ? [] : [`${what} on ${releasedAt}`];
  return [[joined, ...was, ...deleted].join("; ")];
}

/** What puts a node without a pool into one; the pool that it was in comes first. */
function unassignedTodo({ name, facts, known: { node, membership }, binding }: NodeView): readonly string[] {
  if (membership.verdict !== "none") return [];
  const pools = facts.members.pools();
  if (node.metadata.labels?.[labels.os] === "windows") return [];
  const last = binding?.spec.lastPool ?? binding?.spec.pool;
  const isLast = (pool: string) => pool === last;
  const offers = [...poolOffers(node, pools)].sort((a, b) => Number(isLast(b.pool)) - Number(isLast(a.pool)));
  return offers.length === 0
    ? [`give ${name} the labels that a pool's nodeSelector asks for: kubectl get mcp -o yaml`]
    : offers.map(
        ({ pool, command }) => `to put it into pool ${pool}${isLast(pool) ? ", where it was" : ""}: ${command}`,
      );
}

/** A machine that waits for others waits for what they need. */
function othersToHelp({ facts, known, name }: NodeView): readonly string[] {
  const pool = known.membership.verdict === "member" ? known.membership.pool : "";
  const progress = poolProgressOf(facts, pool)?.value;
  return progress === undefined
    ? []
    : machinesToHelp(progress).flatMap(({ node, todo }) => (node === name ? [] : [todo]));
}

function nodeTodo(view: NodeView): readonly string[] {
  const { wait, known } = view;
  const drained = conditionOf(known.machineConfigNode?.status?.conditions ?? [], phases.drained);
  return [
    ...unassignedTodo(view),
    ...refusedOf(view).todo,
    ...(wait === undefined ? [] : isUpToPeople(view) ? [wait.value.remedy] : othersToHelp(view)),
    ...remediesOf(view),
    ...(isBlocked(known.facts) && drained?.status === "Unknown"
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
    next: is("Progressing")?.status === "True" ? ["it continues on its own"] : [],
    todo: [
      ...operatorTodo(trouble, facts),
      ...new Set(may.value.may === "No" ? may.value.blockers.map(({ remedy }) => remedy) : []),
    ],
  };
}

/** What a failing task of the operator asks for. Trouble of pools is named by what blocks an upgrade. */
function operatorTodo(trouble: Partial<Condition> | undefined, facts: Facts): readonly string[] {
  if (trouble?.type !== "Degraded") return [];
  switch (trouble.reason) {
    case "DegradedPool":
      return facts.members
        .pools()
        .flatMap(({ metadata: { name } }) =>
          (explainPool(facts, name)?.todo ?? []).length === 0 ? [] : [`mco explain pool/${name}`],
        );
    case "RightsOutdated":
      return ["run the command that the message names, as an administrator"];
    default:
      return [
        `fix what the message names; the operator tries again by itself, and its log says more: ${logOf(objects.operator)}`,
      ];
  }
}

/**
 * Where one MachineConfig is: the pools that take it, and how many of their machines have it; of a rendered one also
 * why it is kept. `undefined`: it does not exist.
 */
export function explainMachineConfig(facts: Facts, name: string, retention?: ConfigRetention): Explanation | undefined {
  const config = facts.machineConfig(name);
  if (config === undefined) return undefined;
  const rendered = isRendered(config, facts.members.pools());
  const pools = facts.members
    .pools()
    .filter((pool) =>
      rendered
        ? [pool.spec.configuration?.name, pool.status?.configuration?.name].includes(name)
        : poolSelects(pool.spec.machineConfigSelector, config.metadata.labels),
    );
  const lines = pools.map((pool) => {
    const { name: poolName } = pool.metadata;
    const target = rendered ? name : (pool.spec.configuration?.name ?? "");
    // The pool's list of members shows that the last rendered config contains it, but not in which version.
    const isMember =
      rendered ||
      (
        (pool.spec.configuration as { readonly source?: readonly { readonly name?: string }[] } | undefined)?.source ??
        []
      ).some((source) => source.name === name);
    const answer = poolRunsConfig(facts, poolName, target);
    return isMember && target !== ""
      ? `${poolName}: part of ${target}, which ${answer?.value.machines ?? 0} of ${facts.members.members(poolName).size} machines have`
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
    next: pools.flatMap((pool) =>
      isOnItsWay(facts, pool, name, rendered) ? [`mco explain pool/${pool.metadata.name} shows how far it is`] : [],
    ),
    todo:
      pools.length === 0 && !rendered
        ? [`give it a label that some pool's machineConfigSelector selects, such as ${labels.role}, or delete it`]
        : pools.flatMap((pool) =>
            renderRefusal(pool) === undefined || rendered
              ? []
              : [`pool ${pool.metadata.name} cannot be rendered with it: mco explain pool/${pool.metadata.name}`],
          ),
  };
}

/** Whether machines of a pool still have to get what a config brings. */
function isOnItsWay(facts: Facts, pool: MachineConfigPool, config: string, rendered: boolean): boolean {
  const target = pool.spec.configuration?.name ?? "";
  if (rendered && config !== target) return false;
  if (!rendered && renderRefusal(pool) !== undefined) return false;
  return target === "" || poolRunsConfig(facts, pool.metadata.name, target)?.value.is !== "All";
}
