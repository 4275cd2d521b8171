/**
 * What the controller and the daemon of a machine say to each other about pinned images, as annotations of the Node: the
 * controller which sets the machine is to have and that it may fetch them now; the daemon how that ended.
 */

import { mostPinnedSets } from "../../api/kinds/pinned-image-set.ts";

/** One state of one PinnedImageSet: an object that is created again under its name is another one. */
export interface PinnedSetVersion {
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
}

export interface PinGrant {
  /** Counts the grants of a machine: an answer names the grant that it is about. */
  readonly number: number;
  /** Milliseconds since the epoch: when the grant was given. */
  readonly at: number;
  /** Failures in a row before this grant. */
  readonly failures: number;
  /** Sorted by name. */
  readonly sets: readonly PinnedSetVersion[];
}

/** `unfinished`: the time for one turn was over, or an update began; what was fetched stays, and the rest needs a turn. */
export type PinOutcome = "done" | "failed" | "unfinished";

export interface PinAnswer {
  /** {@link PinGrant.number} */
  readonly of: number;
  readonly is: PinOutcome;
  /** Of a failure: the first set that cannot be had, with the field, and the code of the error. */
  readonly set?: string;
  readonly field?: string;
  readonly code?: string;
  readonly problem?: string;
}

/** Of what a machine says: it is shown to people, and a machine may say anything. */
const textLimit = 300;
const outcomes: readonly PinOutcome[] = ["done", "failed", "unfinished"];

/** A greater count is none: root on a machine writes its annotations, and every count must have a next one. */
export const mostCount = 2 ** 51;

const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= mostCount;

function parsed(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

/** The grant in an annotation; `undefined`: there is none, or the text is not one. */
export function parsePinGrant(text: string | undefined): PinGrant | undefined {
  const { number, at, failures, sets } = parsed(text) ?? {};
  if (!isCount(number) || !isCount(at) || !isCount(failures) || !Array.isArray(sets) || sets.length > mostPinnedSets)
    return undefined;
  const read = (sets as readonly unknown[]).flatMap((set): readonly PinnedSetVersion[] => {
    const { name, uid, generation } = (set ?? {}) as Readonly<Record<string, unknown>>;
    return typeof name === "string" && typeof uid === "string" && isCount(generation)
      ? [{ name, uid, generation }]
      : [];
  });
  return read.length === sets.length ? { number, at, failures, sets: read } : undefined;
}

export const pinGrantText = ({ number, at, failures, sets }: PinGrant): string =>
  JSON.stringify({ number, at, failures, sets: sets.map(({ name, uid, generation }) => ({ name, uid, generation })) });

/** The answer in an annotation; `undefined`: there is none, or the text is not one. */
export function parsePinAnswer(text: string | undefined): PinAnswer | undefined {
  const value = parsed(text) ?? {};
  const { of, is } = value;
  const outcome = outcomes.find((one) => one === is);
  if (!isCount(of) || outcome === undefined) return undefined;
  const words = Object.fromEntries(
    (["set", "field", "code", "problem"] as const).flatMap((key) => {
      const word = value[key];
      return typeof word === "string" ? [[key, word.slice(0, textLimit)]] : [];
    }),
  );
  return { of, is: outcome, ...words };
}

export const pinAnswerText = ({ of, is, set, field, code, problem }: PinAnswer): string =>
  JSON.stringify({
    of,
    is,
    ...(set === undefined ? {} : { set }),
    ...(field === undefined ? {} : { field }),
    ...(code === undefined ? {} : { code }),
    ...(problem === undefined ? {} : { problem: problem.slice(0, textLimit) }),
  });

/** Whether two lists name the same states of the same sets. */
export const sameSets = (a: readonly PinnedSetVersion[], b: readonly PinnedSetVersion[]): boolean =>
  a.length === b.length &&
  a.every(({ name, uid, generation }, index) => {
    const other = b[index];
    return other?.name === name && other.uid === uid && other.generation === generation;
  });

/** How long one turn of a machine lasts at most; then it gives the rest back. */
export const pinTurnSeconds = 1200;
