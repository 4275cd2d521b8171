import { canonicalJson } from "../../../core/text/canonical-json.ts";
import type { Random } from "../../../ports/random.ts";

/** No vowels and no letters that are easily confused: k8s.io/apimachinery pkg/util/rand (master). */
const alphabet = "bcdfghjklmnpqrstvwxz2456789";

/** A template as it is compared: a field without a value is an absent field. */
const withoutNulls = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined && field !== null);
  return Object.fromEntries(fields.map(([key, field]) => [key, withoutNulls(field)]));
};

/**
 * A label value that stands for a pod template: equal templates, however their fields are ordered, have equal ones.
 * `collisions` makes another of it.
 */
export function templateHash(template: unknown, collisions = 0): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(
    `${canonicalJson(withoutNulls(template))}${collisions === 0 ? "" : collisions}`,
  ))
    hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return Array.from(String(hash), (digit) => alphabet[digit.charCodeAt(0) % alphabet.length]).join("");
}

/** Longest name that leaves room for the five letters of {@link nameByHash}. */
const longestBase = 58;

/**
 * `base` and five letters by chance, as the server makes of `generateName`; made here, so that the name is known before
 * the object is.
 */
export function nameByHash(base: string, random: Random): string {
  let suffix = "";
  for (let index = 0; index < 5; index += 1) suffix += alphabet[Math.floor(random.next() * alphabet.length)] ?? "b";
  return `${base.slice(0, longestBase)}${suffix}`;
}
