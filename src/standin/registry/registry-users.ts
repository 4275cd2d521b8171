import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { McoError } from "../../api/errors.ts";
import type { Random } from "../../ports/random.ts";

export type RegistryRight = "pull" | "push" | "delete";

export interface RegistryUser {
  readonly name: string;
  /** `scrypt:<log2 N>:<salt>:<hash>`, in hex; of a password that nobody can guess `sha256:<salt>:<hash>`. */
  readonly password: string;
  readonly may: readonly RegistryRight[];
}

/** Cost of one guess: 16 MiB and some 50 ms (RFC 7914). */
const cost = { log2N: 14, r: 8, p: 1, dkLen: 32 } as const;
const randomPattern = /^sha256:([0-9a-f]{32}):([0-9a-f]{64})$/;
const passwordPattern = /^scrypt:(1[0-8]):([0-9a-f]{32}):([0-9a-f]{64})$/;
/** Guesses that wait for the one under way, of all clients together; others are told to come again. */
const maxWaiting = 16;

/** Hash of a password that is at least 16 random bytes: no number of guesses finds it, so that a guess may be cheap. */
export function hashRandomPassword(password: string, random: Random): string {
  const salt = random.bytes(16);
  return `sha256:${bytesToHex(salt)}:${bytesToHex(sha256(concatBytes(salt, utf8ToBytes(password))))}`;
}

/** Whether a user's hash is one of {@link hashRandomPassword}. */
export const isOfRandomPassword = ({ password }: RegistryUser): boolean => randomPattern.test(password);

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
    if (typeof password !== "string" || !(passwordPattern.test(password) || randomPattern.test(password)))
      throw invalid(`users[${index}].password is no hash by scrypt or sha256`);
    if (!Array.isArray(may) || may.some((right) => !["pull", "push", "delete"].includes(right)))
      throw invalid(`users[${index}].may is no list of pull, push, delete`);
    return { name, password, may };
  });
}

/** scrypt (RFC 7914) that does not hold up others. */
export type DeriveKey = (
  password: string,
  salt: Uint8Array,
  parameters: { readonly N: number; readonly r: number; readonly p: number; readonly dkLen: number },
) => Promise<Uint8Array>;

export type Checked =
  | { readonly verdict: "user"; readonly user: RegistryUser }
  | { readonly verdict: "unknown" }
  /** So many guesses wait already. */
  | { readonly verdict: "busy" };

/** One guess at a time, and a bounded number of those that wait. */
class Guesses {
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** `undefined`: too many wait. */
  run<T>(guess: () => Promise<T>): Promise<T> | undefined {
    if (this.#waiting > maxWaiting) return undefined;
    this.#waiting += 1;
    const run = this.#last.then(guess).finally(() => (this.#waiting -= 1));
    this.#last = run.catch(() => undefined);
    return run;
  }
}

/**
 * Authenticates by name and password. A user has one password: once it was shown, others are compared with it, so that
 * wrong ones cost a user nothing. Until then each costs a guess, unless the password is one that nobody can guess. Names that nobody has take the same time, and no place of
 * those who have one.
 */
export function passwordCheck(
  users: readonly RegistryUser[],
  deriveKey: DeriveKey,
): (name: string, password: string) => Promise<Checked> {
  const shown = new Map<RegistryUser, Uint8Array>();
  const guesses = { ofUsers: new Guesses(), ofOthers: new Guesses() };
  const nobody = `scrypt:${cost.log2N}:${"0".repeat(32)}:${"0".repeat(64)}`;
  return async (name, password) => {
    const user = users.find((one) => one.name === name);
    const verdictOf = (isRight: boolean): Checked =>
      isRight && user !== undefined ? { verdict: "user", user } : { verdict: "unknown" };
    const [, randomSalt, randomHash = ""] = randomPattern.exec(user?.password ?? "") ?? [];
    if (randomSalt !== undefined)
      return verdictOf(
        equal(sha256(concatBytes(hexToBytes(randomSalt), utf8ToBytes(password))), hexToBytes(randomHash)),
      );
    const digest = sha256(utf8ToBytes(password));
    const known = user === undefined ? undefined : shown.get(user);
    if (known !== undefined) return verdictOf(equal(digest, known));
    const [, log2N = "", salt = "", hash = ""] = passwordPattern.exec(user?.password ?? nobody) ?? [];
    const guess = guesses[user === undefined ? "ofOthers" : "ofUsers"].run(async () => {
      // It may have been shown while this one waited.
      const meanwhile = user === undefined ? undefined : shown.get(user);
      if (meanwhile !== undefined) return equal(digest, meanwhile);
      const parameters = { N: 2 ** Number(log2N), r: cost.r, p: cost.p, dkLen: cost.dkLen };
      const isRight = equal(await deriveKey(password, hexToBytes(salt), parameters), hexToBytes(hash));
      if (isRight && user !== undefined) shown.set(user, digest);
      return isRight;
    });
    return guess === undefined ? { verdict: "busy" } : verdictOf(await guess);
  };
}

/** In the same time, wherever they differ. */
function equal(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i += 1) difference |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return difference === 0;
}
