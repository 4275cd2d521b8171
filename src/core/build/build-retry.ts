import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations } from "../../api/names.ts";
import {
  type BuildFailure,
  type FailureClass,
  failureClasses,
  failureSentence,
  isFailureClass,
  nextActionOf,
  verdictOf,
} from "./build-failures.ts";

/** The number of the present attempt of a build, from 1. */
export const attemptOf = ({ metadata }: Pick<MachineOSBuild, "metadata">): number =>
  Number(metadata.annotations?.[annotations.buildAttempt] ?? "1") || 1;

/** What a build keeps of its failures, as JSON in an annotation. */
export interface FailureRecord extends BuildFailure {
  readonly attempt: number;
  /** RFC 3339; of this class in this build. */
  readonly firstSeen: string;
  readonly lastSeen: string;
  readonly nextAction: string;
  /** How often each class was seen in this build. */
  readonly counts: Readonly<Partial<Record<FailureClass, number>>>;
  /** Starts after infrastructure failures, which do not count. */
  readonly infrastructure: number;
  /** The pool's counter before and after this failure, if it counts; present until the next attempt is scheduled. */
  readonly charge?: { readonly from: number; readonly to: number };
  /** The decision, stored once, so that an interrupted process continues with the same one. */
  readonly follows?:
    | { readonly do: "fail"; readonly reason: FailureClass; readonly message: string }
    | { readonly do: "again"; readonly at: string; readonly message: string };
}

export type RetryDecision =
  | {
      readonly decision: "failed";
      readonly reason: FailureClass;
      readonly message: string;
      readonly record: FailureRecord;
    }
  | { readonly decision: "again"; readonly afterMs: number; readonly message: string; readonly record: FailureRecord };

/** Starts after lost nodes and the like that do not count. */
const mostInfrastructure = 3;
const backoff = { firstMs: 30_000, lastMs: 600_000, spread: 0.2 };
const limits = { retryOnce: 1, retryTwice: 2 } as const;

export interface FailedAttempt {
  readonly failure: BuildFailure;
  readonly before: FailureRecord | undefined;
  /** From 1. */
  readonly attempt: number;
  /** The pool's counter. */
  readonly retries: number;
  readonly maxRetries: number;
  /** RFC 3339 */
  readonly now: string;
  /** A number in [0, 1). */
  readonly chance: number;
}

/** The consequence of a failed attempt: the end, or another attempt, which counts or not. */
export function retryAfterFailure({
  failure,
  before,
  attempt,
  retries,
  maxRetries,
  now,
  chance,
}: FailedAttempt): RetryDecision {
  const seen = before?.counts[failure.class] ?? 0;
  const verdict = verdictOf(failure);
  const isFree =
    (verdict === "infrastructure" && (before?.infrastructure ?? 0) < mostInfrastructure) || verdict === "wait";
  const isPermanent = verdict === "permanent" || (verdict in limits && seen >= limits[verdict as keyof typeof limits]);
  const after = isPermanent || (!isFree && retries >= maxRetries) ? "end" : "again";
  const record: FailureRecord = {
    ...failure,
    attempt,
    firstSeen: before?.class === failure.class ? before.firstSeen : now,
    lastSeen: now,
    nextAction: nextActionOf(failure, after),
    counts: { ...before?.counts, [failure.class]: seen + 1 },
    infrastructure: (before?.infrastructure ?? 0) + (verdict === "infrastructure" ? 1 : 0),
  };
  const says = failureSentence(failure, attempt, maxRetries + 1, after);
  if (isPermanent) return { decision: "failed", reason: failure.class, message: says, record };
  if (isFree)
    return {
      decision: "again",
      afterMs: backoffMs(0, chance),
      message: `${says} This does not count as a retry.`,
      record,
    };
  if (after === "end")
    return {
      decision: "failed",
      reason: "RetryLimitReached",
      message: `${retries} of ${maxRetries} retries are spent; the last failure (${failure.class}): ${says} ${failureClasses.RetryLimitReached.next}.`,
      record,
    };
  return {
    decision: "again",
    afterMs: backoffMs(retries, chance),
    message: says,
    record: { ...record, charge: { from: retries, to: retries + 1 } },
  };
}

/** The wait before a retry when `spent` have been: 30 s, doubling, 10 min at the most, spread by a fifth. */
function backoffMs(spent: number, chance: number): number {
  const base = Math.min(backoff.lastMs, backoff.firstMs * 2 ** Math.min(spent, 20));
  return Math.round(base * (1 - backoff.spread + 2 * backoff.spread * chance));
}

/** The pool's counter; `valid`: it is a plausible number. Anything else counts as absent. */
export function readRetries(text: string | undefined): { readonly retries: number; readonly valid: boolean } {
  if (text === undefined) return { retries: 0, valid: true };
  return /^\d{1,6}$/.test(text) ? { retries: Number(text), valid: true } : { retries: 0, valid: false };
}

/** Reads the text of {@link retryAfterFailure}; `undefined` for any other text. */
export function readFailure(text: string | undefined): FailureRecord | undefined {
  if (text === undefined) return undefined;
  try {
    const read = JSON.parse(text) as Partial<FailureRecord> | null;
    if (
      typeof read !== "object" ||
      read === null ||
      typeof read.class !== "string" ||
      !isFailureClass(read.class) ||
      typeof read.attempt !== "number"
    )
      return undefined;
    return {
      ...read,
      class: read.class,
      attempt: read.attempt,
      step: read.step ?? "",
      cause: read.cause ?? "",
      excerpt: read.excerpt ?? "",
      firstSeen: read.firstSeen ?? "",
      lastSeen: read.lastSeen ?? "",
      nextAction: read.nextAction ?? "",
      counts: read.counts ?? {},
      infrastructure: read.infrastructure ?? 0,
    };
  } catch {
    return undefined;
  }
}

/** `attempt 2 of 6 at 2026-01-01T00:00:30Z; previous: PushUnavailable: registry answered 503` */
export const retrySentence = (
  attempt: number,
  maxRetries: number,
  at: string,
  record: Pick<FailureRecord, "class" | "cause">,
): string => `attempt ${attempt} of ${maxRetries + 1} at ${at}; previous: ${record.class}: ${record.cause}`;
