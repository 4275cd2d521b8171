/** Chance. Production asks the kernel; the simulation gives a seeded stream. */
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
