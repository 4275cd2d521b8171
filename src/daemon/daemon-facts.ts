import type { DaemonMetrics } from "../core/metrics/daemon-metrics.ts";

/**
 * What this process knows about itself and its machine: the loop writes it, the listener reads it. No decision depends
 * on it.
 */
export type DaemonFacts = { -readonly [Key in keyof DaemonMetrics]: DaemonMetrics[Key] } & {
  /** Monotonic milliseconds at which the current pass began; `undefined` between passes. */
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
  boots: new Map(),
  kubeletFailures: 0,
  foreignPackages: 0,
  lookingSince: undefined,
  hasSeenNode: false,
});
