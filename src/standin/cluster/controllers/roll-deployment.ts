import { intOrPercent } from "./int-or-percent.ts";

/** The part of a ReplicaSet that decides how far to roll. */
export interface SetSize {
  /** spec.replicas */
  readonly wanted: number;
  /** status.availableReplicas */
  readonly available: number;
}

export interface RollLimits {
  readonly desired: number;
  readonly maxSurge: number;
  readonly maxUnavailable: number;
}

/**
 * `maxSurge` rounds up, `maxUnavailable` down; if both are zero, the roll-out would not progress: k8s.io/kubernetes
 * pkg/controller/deployment/util (master) ResolveFenceposts.
 */
export function rollLimits(
  desired: number,
  rollingUpdate: { readonly maxSurge?: number | string; readonly maxUnavailable?: number | string } | undefined,
): RollLimits {
  const maxSurge = intOrPercent(rollingUpdate?.maxSurge ?? "25%", desired, "up");
  const maxUnavailable = Math.min(desired, intOrPercent(rollingUpdate?.maxUnavailable ?? "25%", desired, "down"));
  return { desired, maxSurge, maxUnavailable: maxSurge === 0 && maxUnavailable === 0 ? 1 : maxUnavailable };
}

/**
 * The next sizes of a rolling update: first the new set grows as far as the surge allows, then old ones shrink as far
 * as availability allows, those of their pods that are not available first.
 *
 * @param old oldest first
 */
export function rollSizes(
  current: SetSize,
  old: readonly SetSize[],
  { desired, maxSurge, maxUnavailable }: RollLimits,
): { readonly current: number; readonly old: readonly number[] } {
  const unchanged = old.map(({ wanted }) => wanted);
  const total = current.wanted + sum(unchanged);
  if (current.wanted > desired) return { current: desired, old: unchanged };
  if (current.wanted < desired && total < desired + maxSurge)
    return { current: current.wanted + Math.min(desired + maxSurge - total, desired - current.wanted), old: unchanged };

  const minAvailable = desired - maxUnavailable;
  const available = ({ wanted, available: count }: SetSize) => Math.min(wanted, count);
  let mayGo = total - minAvailable - (current.wanted - available(current));
  const sizes = [...unchanged];
  for (const [index, set] of old.entries()) {
    const gone = Math.max(0, Math.min(mayGo, set.wanted - available(set)));
    sizes[index] = set.wanted - gone;
    mayGo -= gone;
  }
  let spare = Math.min(mayGo, available(current) + sum(old.map(available)) - minAvailable);
  for (const [index, size] of sizes.entries()) {
    const gone = Math.max(0, Math.min(spare, size));
    sizes[index] = size - gone;
    spare -= gone;
  }
  return { current: current.wanted, old: sizes };
}

export const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
