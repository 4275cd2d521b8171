import type { PassMemory } from "../../src/core/machine/pass-plan.ts";

/** What a daemon remembers that has seen a boot through and has nothing under way. */
export const memoryOf = (boot: string): PassMemory => ({
  tidiedBoot: boot,
  resumedBoot: boot,
  rebootAsked: undefined,
  restartAwaitedSince: undefined,
  policiesAwaitedSince: undefined,
  healedDrift: undefined,
  announced: undefined,
  failing: undefined,
  fetchedImages: new Set(),
});
