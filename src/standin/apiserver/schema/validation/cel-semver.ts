import type { Comparable } from "./cel-equality.ts";

/** An identifier of a pre-release: a number, or a text. */
type Identifier = bigint | string;

/** A semantic version as CEL sees it: semver.org 2.0.0. What stands behind a plus decides nothing. */
export class Semver implements Comparable {
  readonly numbers: readonly [bigint, bigint, bigint];
  readonly prerelease: readonly Identifier[];
  constructor(numbers: readonly [bigint, bigint, bigint], prerelease: readonly Identifier[]) {
    this.numbers = numbers;
    this.prerelease = prerelease;
  }
  equals(other: unknown): boolean {
    return other instanceof Semver && compareSemver(this, other) === 0n;
  }
}

const number = "0|[1-9]\\d*";
const version = new RegExp(
  `^(${number})\\.(${number})\\.(${number})(?:-([0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*))?(?:\\+[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?$`,
);
const highest = 2n ** 64n - 1n;

/** Reads a version; undefined if it is none. */
export function parseSemver(text: string): Semver | undefined {
  const found = version.exec(text);
  if (found === null) return undefined;
  const [, major = "", minor = "", patch = "", prerelease] = found;
  const numbers = [BigInt(major), BigInt(minor), BigInt(patch)] as const;
  const parts = prerelease?.split(".") ?? [];
  if (parts.some((part) => /^0\d+$/.test(part))) return undefined;
  const identifiers = parts.map((part) => (/^\d+$/.test(part) ? BigInt(part) : part));
  const all: readonly Identifier[] = [...numbers, ...identifiers];
  return all.some((one) => typeof one === "bigint" && one > highest) ? undefined : new Semver(numbers, identifiers);
}

/**
 * A version with a `v` before it, without its last numbers or with zeros before one, as a version: kubernetes/apiserver
 * pkg/cel/library/semverlib.go (v1.34).
 */
export function normalizedSemver(text: string): string {
  const [first = "", second, ...rest] = text.replace(/^v/, "").split(".");
  const parts = [first, ...(second === undefined ? [] : [second]), ...(rest.length === 0 ? [] : [rest.join(".")])].map(
    (part) => (part.length < 2 ? part : part.replace(/^0+/, "").replace(/^(?!\d)/, "0")),
  );
  if (parts.length < 3 && /[-+]/.test(parts.at(-1) ?? "")) return "";
  while (parts.length < 3) parts.push("0");
  return parts.join(".");
}

/** -1, 0 or 1, by the precedence of semver.org. */
export function compareSemver(a: Semver, b: Semver): bigint {
  for (const index of [0, 1, 2] as const)
    if (a.numbers[index] !== b.numbers[index]) return a.numbers[index] < b.numbers[index] ? -1n : 1n;
  if (a.prerelease.length === 0 || b.prerelease.length === 0)
    return BigInt(Math.sign(b.prerelease.length - a.prerelease.length));
  for (const [index, left] of a.prerelease.entries()) {
    const right = b.prerelease[index];
    if (right === undefined) return 1n;
    if (left === right) continue;
    if (typeof left !== typeof right) return typeof left === "bigint" ? -1n : 1n;
    return left < right ? -1n : 1n;
  }
  return a.prerelease.length < b.prerelease.length ? -1n : 0n;
}
