import { randomBytes, randomUUID } from "node:crypto";
import type { Random } from "../random.ts";

/** The kernel's randomness. */
export const systemRandom: Random = {
  next: () => randomBytes(6).readUIntBE(0, 6) / 2 ** 48,
  uuid: () => randomUUID(),
  bytes: (length) => new Uint8Array(randomBytes(length)),
};
