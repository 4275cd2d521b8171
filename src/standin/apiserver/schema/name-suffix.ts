import type { Random } from "../../../ports/random.ts";

const suffixLetters = "bcdfghjklmnpqrstvwxz2456789";

/** Five letters that make no words: `k8s.io/apimachinery pkg/util/rand (master)`. */
export function nameSuffix(random: Random): string {
  let suffix = "";
  for (let length = 0; length < 5; length++)
    suffix += suffixLetters[Math.floor(random.next() * suffixLetters.length)] ?? "";
  return suffix;
}
