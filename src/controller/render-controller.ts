import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { poolConditions } from "../api/names.ts";
import { withOverallDegraded } from "../core/pool/pool-status.ts";
import { decideRender } from "../core/render/decide-render.ts";
import type { Controller } from "../kube/controller.ts";
import { type Outcome, done } from "../kube/outcome.ts";
import { observeRender } from "./observe-render.ts";
import { type RenderActs, performRender } from "./perform-render.ts";
import { memoryOfPool, renderMemory } from "./render-memory.ts";
import type { RenderOptions } from "./render-options.ts";
import { renderWatches } from "./render-watches.ts";

/** Merges a pool's MachineConfigs into one rendered config and points the pool at it. */
export function renderController(options: RenderOptions): Controller {
  const memory = renderMemory();
  return {
    name: "render",
    watches: renderWatches(options),
    owns: ["MachineConfig/rendered", "MachineConfigPool.spec.configuration"],
    workers: 2,
    degradedCondition: poolConditions.renderDegraded,
    withSummary: withOverallDegraded,
    reconcile: (name, context) => runPass(name, options, { memory, context }),
  };
}

/** Decides until a decision ends the pass: steps lead to another decision. */
async function runPass(name: string, options: RenderOptions, acts: RenderActs): Promise<Outcome> {
  const { memory, context } = acts;
  const pool = context.caches.of(MachineConfigPool).get(name);
  if (pool === undefined) return done();
  let view = observeRender(pool, options, context);
  for (;;) {
    const performed = await performRender(decideRender(view, memoryOfPool(name, memory)), view, acts);
    if ("kind" in performed) return performed;
    view = performed;
  }
}
