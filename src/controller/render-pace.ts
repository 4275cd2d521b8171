import { MachineConfig } from "../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { poolOfRendered } from "../core/config/is-rendered.ts";
import { poolPolicy } from "../core/pool/pool-policy.ts";
import type { Context } from "../kube/controller.ts";
import { type BucketLimits, SourceBuckets } from "../ports/source-buckets.ts";
import { isUsed } from "./collect-controller.ts";

/** A pool gets so many targets at once, and then one in ten seconds: each is stored whole. */
const newTargets: BucketLimits = { burst: 6, perSecond: 1 / 10, sources: 1000 };

/**
 * With so many configurations beside those kept for going back, a pool gets further ones more slowly: within the hour that each
 * stays, at most about as many more.
 */
const mostLeft = 15;
const slowMs = 180_000;

/** When each pool got its last targets. */
export interface RenderPace {
  readonly targets: SourceBuckets;
  /** Pool → its last new target, and since when (monotonic milliseconds). */
  readonly lastTarget: Map<string, { readonly name: string; readonly at: number }>;
}

export const renderPace = (): RenderPace => ({ targets: new SourceBuckets(newTargets), lastTarget: new Map() });

/** How long a pool's next target waits, and why, in words that stay the same while it waits. */
export interface PacedTarget {
  readonly seconds: number;
  readonly message: string;
}

/**
 * How long a pool waits before the controller points it at a rendered configuration; `undefined`: not at all. Without a
 * pace, sources that change without end would store the pool's whole configuration at each change. The last change always
 * gets its turn.
 */
export function pacedTarget(
  pool: MachineConfigPool,
  rendered: string,
  { targets, lastTarget }: RenderPace,
  { caches, clock }: Pick<Context, "caches" | "clock">,
): PacedTarget | undefined {
  const { name } = pool.metadata;
  const now = clock.monotonic();
  const last = lastTarget.get(name);
  // The configuration had its turn already: this is a retry.
  if (pool.spec.configuration?.name === rendered || last?.name === rendered) return undefined;
  const isStored = caches.of(MachineConfig).get(rendered) !== undefined;
  const isSlow = !isStored && last !== undefined && isCrowded(pool, { caches });
  const slow = isSlow ? Math.ceil((last.at + slowMs - now) / 1000) : 0;
  if (slow > 0)
    return {
      seconds: slow,
      message: `the pool's configuration changes often, and ${mostLeft} that no machine has are kept for a while: until they are removed, one change in three minutes is rendered, the last one in any case`,
    };
  const seconds = targets.take(name, now);
  if (seconds > 0)
    return {
      seconds,
      message:
        "the pool's configuration changes often: one change in ten seconds is rendered, the last one in any case",
    };
  lastTarget.set(name, { name: rendered, at: now });
  return undefined;
}

/**
 * Whether a pool has many configurations that nothing uses. A machine of whichever pool names as many as it likes, which then
 * stay: they slow no pool down.
 */
function isCrowded(pool: MachineConfigPool, { caches }: Pick<Context, "caches">): boolean {
  const left = caches
    .of(MachineConfig)
    .list()
    .filter((config) => poolOfRendered(config) === pool.metadata.name && !isUsed(caches, config.metadata.name));
  return left.length - poolPolicy(pool).policy.retainedConfigs >= mostLeft;
}
