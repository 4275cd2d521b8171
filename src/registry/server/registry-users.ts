import { scrypt } from "@noble/hashes/scrypt.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, hexToBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { McoError } from "../../api/errors.ts";
import type { Random } from "../../ports/random.ts";

export type RegistryRight = "pull" | "push" | "delete";

export interface RegistryUser {
  readonly name: string;
  /** `scrypt:<log2 N>:<salt>:<hash>`, in hex. */
  readonly password: string;
  readonly may: readonly RegistryRight[];
}

/** Cost of one guess: 16 MiB and some 50 ms (RFC 7914). */
const cost = { log2N: 14, r: 8, p: 1, dkLen: 32 } as const;
const passwordPattern = /^scrypt:(1[0-8]):([0-9a-f]{32}):([0-9a-f]{64})$/;
/** Of answers that are remembered, so that not every request costs a guess. */
const maxRemembered = 256;

/** @param log2N less costs less, for who guesses too. */
export function hashPassword(password: string, random: Random, log2N: number = cost.log2N): string {
  const salt = random.bytes(16);
  return `scrypt:${log2N}:${bytesToHex(salt)}:${bytesToHex(scrypt(utf8ToBytes(password), salt, { N: 2 ** log2N, r: cost.r, p: cost.p, dkLen: cost.dkLen }))}`;
}

/** Reads a file of users. @throws McoError `MCO_REGISTRY_USERS_INVALID` */
export function readUsers(text: string): readonly RegistryUser[] {
  const invalid = (problem: string) => new McoError("MCO_REGISTRY_USERS_INVALID", { problem });
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    throw invalid("it is no JSON");
  }
  const users = (read as { readonly users?: unknown } | null)?.users;
  if (!Array.isArray(users)) throw invalid("it has no list of users");
  return users.map((user: Partial<RegistryUser> | null, index): RegistryUser => {
    const { name, password, may } = user ?? {};
    if (typeof name !== "string" || !/^[A-Za-z0-9._-]{1,64}$/.test(name))
      throw invalid(`users[${index}].name is no name`);
    if (typeof password !== "string" || !passwordPattern.test(password))
      throw invalid(`users[${index}].password is no hash by scrypt`);
    if (!Array.isArray(may) || may.some((right) => !["pull", "push", "delete"].includes(right)))
      throw invalid(`users[${index}].may is no list of pull, push, delete`);
    return { name, password, may };
  });
}

/** Authenticates by name and password; takes the same time for an unknown name. */
export function passwordCheck(
  users: readonly RegistryUser[],
): (name: string, password: string) => RegistryUser | undefined {
  const remembered = new Map<string, RegistryUser>();
  const nobody = `scrypt:${cost.log2N}:${"0".repeat(32)}:${"0".repeat(64)}`;
  return (name, password) => {
    const key = bytesToHex(sha256(utf8ToBytes(`${name}\0${password}`)));
    const known = remembered.get(key);
    if (known !== undefined) return known;
    const user = users.find((one) => one.name === name);
    const [, log2N = "", salt = "", hash = ""] = passwordPattern.exec(user?.password ?? nobody) ?? [];
    const shown = scrypt(utf8ToBytes(password), hexToBytes(salt), {
      N: 2 ** Number(log2N),
      r: cost.r,
      p: cost.p,
      dkLen: cost.dkLen,
    });
    if (!equal(shown, hexToBytes(hash)) || user === undefined) return undefined;
    if (remembered.size >= maxRemembered) remembered.clear();
    remembered.set(key, user);
    return user;
  };
}

/** In the same time, wherever they differ. */
function equal(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i += 1) difference |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return difference === 0;
}
