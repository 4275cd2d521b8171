/** What says whether the builder has to be deployed. */
export interface BuilderFacts {
  /** Some pool boots images that are built on the cluster. */
  readonly isWanted: boolean;
  /** MachineOSConfigs that are being deleted and that the builder still holds on to. */
  readonly leaving: readonly string[];
  readonly isDeployed: boolean;
  /** The policies are in force that bound what its Jobs have. */
  readonly isBound: boolean;
  /** Since when the builder is deployed though no pool boots images; `undefined`: not so far. Monotonic. */
  readonly unwantedSince: number | undefined;
  /** Monotonic. */
  readonly now: number;
  /** Pools that say nothing yet of their machines going back to the stock operating system. */
  readonly pools: readonly string[];
  /** MachineOSConfigs that do not say yet that they count no more. */
  readonly machineOSConfigs: readonly string[];
  /** Jobs of builds. */
  readonly jobs: readonly string[];
}

/** What the builder had not cleaned up. */
export type LeftOver = Pick<BuilderFacts, "pools" | "machineOSConfigs" | "jobs">;

export type BuilderDecision =
  /** Some pool boots images, or what is being deleted waits for the builder to let it go. */
  | { readonly do: "deploy" }
  /** It is wanted, but its account could still create any Job. */
  | { readonly do: "waitForPolicy" }
  /** The builder is not deployed, and nothing needs it. */
  | { readonly do: "nothing" }
  /** The builder has not cleaned up after the last pool. */
  | { readonly do: "wait"; readonly unwantedSince: number }
  /** `left`: the builder did not clean up in time. */
  | { readonly do: "remove"; readonly unwantedSince: number; readonly left: LeftOver | undefined };

/** How long the builder may take to clean up after the last pool. */
const patienceMs = 600_000;

/** The builder is deployed while some pool boots images, and until it has cleaned up after the last one. */
export function decideBuilder(facts: BuilderFacts): BuilderDecision {
  if (facts.isWanted || facts.leaving.length > 0) return { do: facts.isBound ? "deploy" : "waitForPolicy" };
  if (!facts.isDeployed) return { do: "nothing" };
  const { now, unwantedSince = now, pools, machineOSConfigs, jobs } = facts;
  const isLate = now - unwantedSince > patienceMs;
  if (!isLate && pools.length + machineOSConfigs.length + jobs.length > 0) return { do: "wait", unwantedSince };
  return { do: "remove", unwantedSince, left: isLate ? { pools, machineOSConfigs, jobs } : undefined };
}
