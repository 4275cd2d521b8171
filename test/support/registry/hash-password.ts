import { scrypt } from "@noble/hashes/scrypt.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { systemRandom } from "../../../src/ports/node/index.ts";

/** The hash of a password that may be guessed, as files of users of a registry have it: cheap, for who guesses too. */
export function hashPassword(password: string): string {
  const [salt, log2N] = [systemRandom.bytes(16), 10];
  const hash = scrypt(utf8ToBytes(password), salt, { N: 2 ** log2N, r: 8, p: 1, dkLen: 32 });
  return `scrypt:${log2N}:${bytesToHex(salt)}:${bytesToHex(hash)}`;
}
