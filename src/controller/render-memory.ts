import type { PoolRenderMemory } from "../core/render/render-decision.ts";
import { type RenderPace, renderPace } from "./render-pace.ts";

/** The renderer's memory between passes: earlier reports about pools, so that each is made once, and what they wait for. */
export interface RenderMemory extends RenderPace {
  /** Pool → the configuration that it points to. */
  readonly pointed: Map<string, string>;
  /** Pool → why it cannot be rendered. */
  readonly refused: Map<string, string>;
  /** A pool's objects with settings, or a generated MachineConfig → since when (monotonic milliseconds). */
  readonly awaited: Map<string, number>;
}

export const renderMemory = (): RenderMemory => ({
  pointed: new Map(),
  refused: new Map(),
  awaited: new Map(),
  ...renderPace(),
});

/** The renderer's memory of one pool. */
export const memoryOfPool = (pool: string, { pointed, refused, awaited }: RenderMemory): PoolRenderMemory => ({
  pointed: pointed.get(pool),
  refused: refused.get(pool),
  awaited,
});
