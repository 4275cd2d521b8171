import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { fieldManagers } from "../api/names.ts";
import { fieldsNotHeld } from "../core/config/held-fields.ts";
import type {
  KeptConfig,
  RenderCase,
  RenderDecision,
  RenderTarget,
  RenderView,
  RenderedPool,
  TargetNews,
} from "../core/render/render-decision.ts";
import { describeRendered } from "../core/preview/describe-rendered.ts";
import type { Context } from "../kube/controller.ts";
import { KubeError, isPassing } from "../kube/kube-error.ts";
import { type Outcome, done, stalled, waiting } from "../kube/outcome.ts";
import type { Happening } from "../kube/report.ts";
import {
  configGenerated,
  firstTargetRendered,
  poolSelectsAll,
  renderRecovered,
  renderRefused,
  targetChanged,
} from "./reports.ts";
import type { RenderMemory } from "./render-memory.ts";
import { pacedTarget } from "./render-pace.ts";

/** The means of one pass over a pool. */
export interface RenderActs {
  readonly memory: RenderMemory;
  readonly context: Context;
}

/** The end of a pass, or its view when it decides again. */
export type RenderPerformed = Outcome | RenderView;

/** Carries one decision out. There is no `default`: a case that is missing here does not compile. */
export async function performRender(
  decision: RenderDecision,
  view: RenderView,
  acts: RenderActs,
): Promise<RenderPerformed> {
  const { memory, context } = acts;
  switch (decision.do) {
    case "await":
      memory.awaited.set(decision.what, view.monotonic);
      return view;
    case "endWait":
      for (const what of decision.what) memory.awaited.delete(what);
      return view;
    case "takeTurn":
      return { ...view, target: takeTurn(decision, view, acts) };
    case "store":
      return { ...view, kept: await store(decision, view, context) };
    case "adopt":
      return { ...view, kept: await adopt(decision, view, context) };
    case "tryWrite":
      return { ...view, kept: await tryWrite(decision, context) };
    case "rest":
      return done();
    case "wait":
      return waiting(decision.reason, decision.because, decision.seconds);
    case "refuseAll":
      context.report(poolSelectsAll(view.pool, "machineconfigs"));
      return stalled("SelectingAll", decision.because);
    case "refuse":
      if (decision.isNews) context.report(renderRefused(view.pool.metadata.name, decision.reason, decision.because));
      memory.refused.set(view.pool.metadata.name, decision.because);
      return stalled(decision.reason, decision.message);
    case "point":
      return point(decision, view, acts);
  }
}

function takeTurn(
  { rendered }: RenderCase<"takeTurn">,
  { pool }: RenderView,
  { memory, context }: RenderActs,
): RenderTarget {
  const { name } = rendered.config.metadata;
  const paced = pacedTarget(pool, name, memory, context);
  return {
    rendered,
    turn: paced === undefined ? { verdict: "taken" } : { verdict: "later", ...paced },
    known: context.caches.of(MachineConfig).get(name),
  };
}

/** Creates the rendered config. */
async function store({ config }: RenderCase<"store">, view: RenderView, context: Context): Promise<KeptConfig> {
  const { kube, signal } = context;
  // Not applied: where the cache is behind, that would add to what somebody else has put there.
  const made = await kube.create(MachineConfig, config, { owner: fieldManagers.render, signal });
  const lost = fieldsNotHeld(made, config);
  if (lost.length > 0) return { verdict: "partly", lost };
  context.report(configGenerated(view.pool, config.metadata.name, view));
  return { verdict: "kept" };
}

async function adopt(
  { name, ownerReferences }: RenderCase<"adopt">,
  { pool }: RenderView,
  { kube, log, signal }: Context,
): Promise<KeptConfig> {
  await kube.apply(MachineConfig, { metadata: { name, ownerReferences } }, { owner: fieldManagers.render, signal });
  log.info({ pool: pool.metadata.name, rendered: name }, "rendered config taken over");
  return { verdict: "kept" };
}

async function tryWrite({ config }: RenderCase<"tryWrite">, context: Context): Promise<KeptConfig> {
  const lost = await lostBy(config, context);
  return lost.length === 0 ? { verdict: "taken" } : { verdict: "partly", lost };
}

/**
 * The fields that the API server would not keep if a rendered config were written again: its definition lacks them, or an
 * admission webhook changes them. Nothing is written.
 */
async function lostBy(config: RenderedPool["config"], { kube, signal }: Context): Promise<readonly string[]> {
  const { metadata, spec } = config;
  try {
    const tried = await kube.patch(
      MachineConfig,
      { name: metadata.name },
      { type: "json", operations: [{ op: "add", path: "/spec", value: spec }] },
      { owner: fieldManagers.render, dryRun: true, signal },
    );
    return fieldsNotHeld(tried, config);
  } catch (error) {
    // Gone, or a webhook that judges no tries: what is there is what counts.
    if (error instanceof KubeError && !isPassing(error)) return [];
    throw error;
  }
}

/** The happening of a new target: its changes, or of a pool's first target how many configs it was merged from. */
function targetPointed(rendered: RenderedPool, news: TargetNews, pool: MachineConfigPool, members: number): Happening {
  const to = rendered.config.metadata.name;
  if (news.is === "first") return firstTargetRendered(pool.metadata.name, to, members);
  const changes = describeRendered(news.from, rendered);
  return targetChanged(pool, { from: news.from.metadata.name, to, changes, members }, news.isKnown);
}

/** Reports the new target, and points the pool at it. */
async function point(
  decision: RenderCase<"point">,
  view: RenderView,
  { memory, context }: RenderActs,
): Promise<Outcome> {
  const { kube, log, signal } = context;
  const { rendered, isRecovered, configuration } = decision;
  const { pool, members } = view;
  const { name } = pool.metadata;
  const target = rendered.config.metadata.name;
  if (isRecovered) context.report(renderRecovered(name));
  memory.refused.delete(name);
  if (decision.news !== undefined) {
    context.report(targetPointed(rendered, decision.news, pool, members.length));
    memory.pointed.set(name, target);
  }
  if (configuration === undefined) return done();
  // The installation, and the reference before us, wrote it under other field managers; no other writer may own it.
  await kube.apply(
    MachineConfigPool,
    { metadata: { name }, spec: { configuration } },
    { owner: fieldManagers.render, force: true, signal },
  );
  if (pool.spec.configuration?.name !== target)
    log.info({ pool: name, rendered: target, members: members.length }, "pool rendered");
  return done();
}
