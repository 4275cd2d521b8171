import { MachineConfig } from "../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { poolOfRendered } from "../core/config/is-rendered.ts";
import { poolPolicy } from "../core/pool/pool-policy.ts";
import type { Context } from "../kube/controller.ts";
import { type BucketLimits, SourceBuckets } from "../ports/source-buckets.ts";

/** Targets that a pool gets at once, and then one in ten seconds: each is stored whole. */
const newTargets: BucketLimits = { burst: 6, perSecond: 1 / 10, sources: 1000 };

/**
 * Configurations beside those that are kept for going back, of which a pool gets further ones more slowly: an hour's worth
 * of them are no more than so many again.
 */
const mostLeft = 15;
const slowMs = 180_000;

/** When each pool got its last targets. */
export interface RenderPace {
  readonly targets: SourceBuckets;
  /** Pool → its last new target, and since when (monotonic milliseconds). */
  readonly lastTarget: Map<string, { readonly name: string; readonly at: number }>;
  /** Pools whose next target waits. */
  readonly paced: Set<string>;
}

export const renderPace = (): RenderPace => ({
  targets: new SourceBuckets(newTargets),
  lastTarget: new Map(),
  paced: new Set(),
});

/**
 * Seconds until a pool may be pointed at what was rendered; 0: now. Sources that change without end would store the pool's
 * whole configuration at each change; the last change always gets its turn.
 */
export function secondsToTarget(
  pool: MachineConfigPool,
  rendered: string,
  { targets, lastTarget, paced }: RenderPace,
  { caches, clock, log }: Pick<Context, "caches" | "clock" | "log">,
): number {
  const { name } = pool.metadata;
  const now = clock.monotonic();
  const last = lastTarget.get(name);
  // What had its turn, and is tried again.
  if (pool.spec.configuration?.name === rendered || last?.name === rendered) {
    paced.delete(name);
    return 0;
  }
  const isStored = caches.of(MachineConfig).get(rendered) !== undefined;
  const isSlow = !isStored && last !== undefined && isCrowded(pool, { caches });
  const slow = isSlow ? Math.ceil((last.at + slowMs - now) / 1000) : 0;
  const wait = slow > 0 ? slow : targets.take(name, now);
  if (wait <= 0) {
    lastTarget.set(name, { name: rendered, at: now });
    paced.delete(name);
    return 0;
  }
  if (!paced.has(name))
    log.info(
      { pool: name, rendered, waitSeconds: wait },
      "MachineConfigs of the pool change often; its next target waits",
    );
  paced.add(name);
  return wait;
}

/** Whether a pool has many configurations that it no longer points to. */
function isCrowded(pool: MachineConfigPool, { caches }: Pick<Context, "caches">): boolean {
  const named = new Set([pool.spec.configuration?.name, pool.status?.configuration?.name]);
  const left = caches
    .of(MachineConfig)
    .list()
    .filter((config) => poolOfRendered(config) === pool.metadata.name && !named.has(config.metadata.name));
  return left.length - poolPolicy(pool).policy.retainedConfigs >= mostLeft;
}
