/** Randomness. Production asks the kernel; the simulation supplies a seeded stream. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** A version 4 UUID, lower case. */
  uuid(): string;
  /** `length` unpredictable bytes. */
  bytes(length: number): Uint8Array;
}

/** A delay of `base` milliseconds spread by ± `spread` (0..1), so that many waiters do not wake at once. */
export function jittered(random: Random, base: number, spread: number): number {
  return base * (1 - spread + 2 * spread * random.next());
}

/**
 * The wait after the n-th consecutive failure (from 1): doubles from `firstMs` up to `lastMs`, spread by ± `spread`.
 */
export function backedOff(
  random: Random,
  failures: number,
  { firstMs, lastMs, spread }: { readonly firstMs: number; readonly lastMs: number; readonly spread: number },
): number {
  return jittered(random, Math.min(lastMs, firstMs * 2 ** Math.min(Math.max(0, failures - 1), 20)), spread);
}
