import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { group } from "../../api/names.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { fieldsNotHeld } from "../config/held-fields.ts";
import { poolOfRendered } from "../config/is-rendered.ts";
import { selectorProblem } from "../config/pool-selector.ts";
import { listText, shortList } from "../text/list-text.ts";
import { versionGate } from "./controller-config-of.ts";
import { isCurrentStream, renderStreamOf } from "./os-streams.ts";
import type {
  KeptConfig,
  PoolRenderMemory,
  RenderCase,
  RenderDecision,
  RenderTarget,
  RenderView,
  RenderedPool,
  TargetNews,
} from "./render-decision.ts";
import { renderForPool } from "./render-for-pool.ts";
import type { RenderRefusal } from "./render-pool.ts";

const waitSeconds = 30;
/** For what this process is about to write. */
const shortWaitSeconds = 2;
/** How long a pool waits for an object with settings that was just written, so that one change is one roll-out. */
const longestAwaitMs = 10_000;
const mostRefusals = 20;
const mostFields = 7;

const wait = (reason: string, because: string, seconds: number): RenderCase<"wait"> => ({
  do: "wait",
  because,
  reason,
  seconds,
});

/**
 * Decides what a pass over a pool does next. A pool is rendered once its selectors and its sources are in order, and it is
 * pointed at the rendered config when that has a turn and the API server keeps all of it. A case that remembers, stores or
 * tries something is followed by another decision on the updated view.
 */
export function decideRender(view: RenderView, memory: PoolRenderMemory): RenderDecision {
  const { pool, target } = view;
  if (pool.metadata.deletionTimestamp !== undefined) return { do: "rest", because: "the pool is being deleted" };
  if (target !== undefined) return decideTarget(view, target, memory);
  return decideSelectors(pool, memory) ?? decideSources(view, memory);
}

function decideSelectors({ metadata, spec }: MachineConfigPool, memory: PoolRenderMemory): RenderDecision | undefined {
  const { machineConfigSelector } = spec;
  if (machineConfigSelector !== undefined && selectorProblem(machineConfigSelector)?.is === "empty")
    return {
      do: "refuseAll",
      because: "the machineConfigSelector is empty and would select every MachineConfig",
    };
  const malformed = malformedSelector(spec);
  return malformed === undefined ? undefined : refuseRender(metadata.name, malformed, memory);
}

/** The problem of a malformed selector of a pool; `undefined`: both are well-formed. */
function malformedSelector(spec: MachineConfigPool["spec"]): string | undefined {
  for (const field of ["machineConfigSelector", "nodeSelector"] as const) {
    const selector = spec[field];
    const problem = selector === undefined ? undefined : selectorProblem(selector);
    if (problem?.is === "malformed") return `spec.${field}${problem.field} ${problem.reason}: ${problem.remedy}`;
  }
  return undefined;
}

/** Renders the pool when all of its sources are there and are current. */
function decideSources(view: RenderView, memory: PoolRenderMemory): RenderDecision {
  const { controllerConfig, missingBase, osImageStream } = view;
  const gate = versionGate(controllerConfig, view.version);
  const isOpen =
    gate.verdict === "open" || (view.baseConfigs === "absent" && gate.reason === "ControllerConfigNotCompleted");
  if (!isOpen) return wait(gate.reason, gate.message, waitSeconds);
  if (controllerConfig === undefined) return { do: "rest", because: "there is no ControllerConfig" };
  // The template controller recreates a deleted one at once; until then, machines keep what it gave them.
  if (missingBase !== undefined)
    return wait("ControllerConfigNotCompleted", `the base configuration ${missingBase} is not there yet`, waitSeconds);
  const awaits = awaitSettings(view, memory) ?? awaitGenerated(view, memory);
  if (awaits !== undefined) return awaits;
  if (osImageStream?.status !== undefined && !isCurrentStream(osImageStream, controllerConfig.spec))
    return wait(
      "StreamsNotRead",
      "the OS image streams of the cluster's present images are not known yet",
      shortWaitSeconds,
    );
  return render(view, controllerConfig, memory);
}

/**
 * Waits for an object with settings that is about to become a MachineConfig. A pool waits again only after all were judged:
 * whoever writes such objects without end holds up no configuration of others.
 */
function awaitSettings(
  { pool, unjudged, monotonic }: RenderView,
  { awaited }: PoolRenderMemory,
): RenderDecision | undefined {
  const what = `settings of ${pool.metadata.name}`;
  const since = awaited.get(what);
  if (unjudged === undefined)
    return since === undefined
      ? undefined
      : { do: "endWait", because: "all objects with settings of the pool were judged", what: [what] };
  const because = `${unjudged} has not been judged yet`;
  if (since === undefined) return { do: "await", because, what };
  return monotonic - since < longestAwaitMs ? wait("SettingsNotJudged", because, shortWaitSeconds) : undefined;
}

/**
 * Waits for a MachineConfig that is about to be made for the pool, so that machines of a new cluster do not lose for a moment
 * what they were installed with.
 */
function awaitGenerated(
  { generated, monotonic }: RenderView,
  { awaited }: PoolRenderMemory,
): RenderDecision | undefined {
  const came = generated.filter(({ name, isThere }) => isThere && awaited.has(name)).map(({ name }) => name);
  if (came.length > 0) return { do: "endWait", because: `${listText(came, mostFields)} came`, what: came };
  const name = generated
    .filter(({ isThere }) => !isThere)
    .map((one) => one.name)
    .find((one) => monotonic - (awaited.get(one) ?? monotonic) < longestAwaitMs);
  if (name === undefined) return undefined;
  const because = `${name} has not been written yet`;
  return awaited.has(name)
    ? wait("SettingsNotJudged", because, shortWaitSeconds)
    : { do: "await", because, what: name };
}

function render(view: RenderView, controllerConfig: ControllerConfig, memory: PoolRenderMemory): RenderDecision {
  const { pool, pools, members, current, overrides, generatorVersion } = view;
  const stream = renderStreamOf(pool, pools, view.osImageStream);
  const result = renderForPool({ pool, members, controllerConfig, generatorVersion, ...stream }, current, overrides);
  if (result.verdict === "rendered")
    return { do: "takeTurn", because: "each target is stored whole", rendered: result };
  // A member that is not current yet is only awaited.
  const outdated = result.refusals.find(({ code }) => code === "OutdatedMember");
  return outdated === undefined
    ? refuseRender(pool.metadata.name, sentence(result.refusals), memory)
    : wait("OutdatedMember", outdated.reason, waitSeconds);
}

/** The first reasons, and how many more there are. */
const sentence = (refusals: readonly RenderRefusal[]) =>
  shortList(refusals, mostRefusals, ({ reason, remedy }) =>
    remedy === undefined ? reason : `${reason} (${remedy})`,
  ).join("; ");

/** The rendered config is stored when it has a turn, and the pool is pointed at it when it is kept. */
function decideTarget(view: RenderView, target: RenderTarget, memory: PoolRenderMemory): RenderDecision {
  const { rendered, turn } = target;
  if (turn.verdict === "later") return wait("ChangesPaced", turn.message, turn.seconds);
  const stores = view.kept === undefined ? decideStore(target) : undefined;
  if (stores !== undefined) return stores;
  return view.kept === undefined || view.kept.verdict === "kept"
    ? pointAt(view, rendered, memory)
    : refuseKept(rendered.config.metadata.name, view.kept, memory);
}

/**
 * Makes the rendered config, or adopts one that the installation brought; `undefined`: it is there. One of that name with other
 * contents is neither changed nor adopted: anybody who may create MachineConfigs can give one that name before, or change it
 * after. Contents are compared and not names, whose hash takes U+0085 for a blank or a line break.
 */
function decideStore({ rendered: { config }, known }: RenderTarget): RenderDecision | undefined {
  const { name, ownerReferences } = config.metadata;
  if (known === undefined) return { do: "store", because: `there is no MachineConfig ${name}`, config };
  if (fieldsNotHeld(known, config).length > 0)
    return { do: "tryWrite", because: `the MachineConfig ${name} has other contents`, config };
  // At installation time, the uid of the owning pool was not known.
  return poolOfRendered(known) === undefined && ownerReferences !== undefined
    ? { do: "adopt", because: `the MachineConfig ${name} has no owner`, name, ownerReferences }
    : undefined;
}

function pointAt(view: RenderView, rendered: RenderedPool, memory: PoolRenderMemory): RenderDecision {
  const { config, source } = rendered;
  const { name } = config.metadata;
  const configuration = { name, source: source.map((reference) => ({ ...reference })) };
  return {
    do: "point",
    because: `the MachineConfig ${name} is stored`,
    rendered,
    isRecovered: memory.refused !== undefined,
    news: newsOf(view, name, memory),
    configuration: equalValues(view.pool.spec.configuration, configuration) ? undefined : configuration,
  };
}

/** Reports the first target of a pool, and each one that replaces a known config. */
function newsOf(
  { pool, current }: RenderView,
  rendered: string,
  { pointed }: PoolRenderMemory,
): TargetNews | undefined {
  const target = pool.spec.configuration?.name ?? "";
  const isKnown = pointed === rendered;
  if (target === "") return isKnown ? undefined : { is: "first" };
  return target === rendered || current === undefined ? undefined : { is: "changed", from: current, isKnown };
}

const refuseRender = (pool: string, problem: string, memory: PoolRenderMemory): RenderCase<"refuse"> => ({
  do: "refuse",
  because: problem,
  reason: "RenderRefused",
  message: `Failed to render configuration for pool ${pool}: ${problem}`,
  isNews: memory.refused !== problem,
});

/**
 * The MachineConfig of that name is not what was rendered: the pool is not pointed at it. Its deletion, or a change of it, has
 * it judged again.
 */
function refuseKept(
  rendered: string,
  kept: Exclude<KeptConfig, { readonly verdict: "kept" }>,
  memory: PoolRenderMemory,
): RenderCase<"refuse"> {
  const problem =
    kept.verdict === "partly"
      ? `the API server does not keep ${listText(kept.lost, mostFields)} of the MachineConfig ${rendered} as rendered: the definition of MachineConfig in this cluster is of another release and lacks the field, or an admission webhook changes it; bring the CustomResourceDefinition ${MachineConfig.plural}.${group} to this release, or except rendered MachineConfigs from the webhook, and delete ${rendered}, which is made again`
      : `the MachineConfig ${rendered} has other contents than those that the pool's MachineConfigs give: another writer made or changed it; delete it, and it is made again (if machines use it, bring them to another configuration first)`;
  return {
    do: "refuse",
    because: problem,
    reason: kept.verdict === "partly" ? "RenderedConfigNotKept" : "RenderedNameTaken",
    message: problem,
    isNews: memory.refused !== problem,
  };
}
