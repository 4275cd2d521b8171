import type { Context } from "../kube/controller.ts";
import type { BuildBackend } from "./backend.ts";
import type { WantObserver } from "./observe-want.ts";

/** What the builder remembers between two passes. Whatever has to outlive the process is on objects. */
export interface BuilderMemory {
  /** Build → its pool, of known builds: an event of a run may arrive after its build is gone. */
  readonly pools: Map<string, string>;
  /** Pool → key that steps are to be run for, and since when it is wanted (monotonic). */
  readonly still: Map<string, { readonly key: string; readonly since: number }>;
  /** Builds whose objects were removed since this process began. */
  readonly cleaned: Set<string>;
  /** Pools whose request to rebuild was reported to be of no use. */
  readonly ignored: Map<string, string>;
}

export const builderMemory = (): BuilderMemory => ({
  pools: new Map(),
  still: new Map(),
  cleaned: new Set(),
  ignored: new Map(),
});

/** Of builds that are gone, so many are remembered: their runs may still have news. */
const mostGone = 1000;

/** Remembers the pools of builds, and forgets those of builds that have been gone for longest. */
export function rememberPools({ pools }: Pick<BuilderMemory, "pools">, builds: readonly KnownBuild[]): void {
  for (const { name, pool } of builds) {
    // Behind those that are gone.
    pools.delete(name);
    pools.set(name, pool);
  }
  for (const name of pools.keys()) {
    if (pools.size <= builds.length + mostGone) return;
    pools.delete(name);
  }
}

interface KnownBuild {
  readonly name: string;
  readonly pool: string;
}

/** What everything that makes images works with. */
export interface BuilderContext extends Context {
  /** In the order in which they are asked: cheaper ones first. */
  readonly backends: readonly BuildBackend[];
  readonly observer: WantObserver;
  readonly memory: BuilderMemory;
  /** How long inputs must have been still before steps are run, in milliseconds. */
  readonly stillMs: number;
}
