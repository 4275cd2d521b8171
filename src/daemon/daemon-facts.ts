import type { DaemonMetrics } from "../core/metrics/daemon-metrics.ts";

/**
 * What this process knows about itself and its machine, for those who ask: written by the loop, read by the listener.
 * Nothing is decided by it.
 */
export type DaemonFacts = { -readonly [Key in keyof DaemonMetrics]: DaemonMetrics[Key] } & {
  /** Monotonic milliseconds at which the look that is under way began; `undefined` between looks. */
  lookingSince: number | undefined;
  /** The own node has been seen through the watch. */
  hasSeenNode: boolean;
};

export const newDaemonFacts = (): DaemonFacts => ({
  state: "",
  reason: "",
  config: "",
  os: undefined,
  driftSince: undefined,
  osFailures: 0,
  rebootFailures: 0,
  kubeletFailures: 0,
  foreignPackages: 0,
  lookingSince: undefined,
  hasSeenNode: false,
});
