import { timestampOf } from "./object.ts";

/** A condition of whatever form: some kinds leave reason and message out, or have further times. */
interface AnyCondition {
  readonly type?: string;
  readonly status?: string;
  readonly lastTransitionTime?: string | null | undefined;
}

/** A condition as its writer words it; when its status last changed follows from the one before. */
export type Worded<C extends AnyCondition> = Omit<C, "lastTransitionTime">;

/**
 * A condition that takes the place of the one of its type: its last transition is the moment at which its status became
 * what it is. The condition before itself, when it says the same.
 *
 * @param now milliseconds since the epoch.
 */
export function withTransition<C extends AnyCondition>(
  before: C | undefined,
  next: Worded<C>,
  now: number,
): C & { lastTransitionTime: string } {
  const { status } = next as AnyCondition;
  const since = before?.status === status ? before?.lastTransitionTime : undefined;
  const after = { ...next, lastTransitionTime: since ?? timestampOf(now) } as C & { lastTransitionTime: string };
  return before !== undefined && saysSame(before, after) ? (before as typeof after) : after;
}

/**
 * The conditions with one of them set, in the place of the one of its type or at the end. A condition that says the same
 * already stays the very object.
 *
 * @param now milliseconds since the epoch.
 */
export function setCondition<C extends AnyCondition>(
  conditions: readonly C[] | undefined,
  next: Worded<C>,
  now: number,
): C[] {
  const list = [...(conditions ?? [])];
  const { type } = next as AnyCondition;
  const index = list.findIndex((condition) => condition.type === type);
  const after = withTransition(list[index], next, now);
  if (index < 0) list.push(after);
  else list[index] = after;
  return list;
}

function saysSame(a: object, b: object): boolean {
  const [one, other] = [a, b].map((condition) => Object.entries(condition).filter(([, value]) => value !== undefined));
  const has = new Map(other);
  return one?.length === has.size && one.every(([key, value]) => has.get(key) === value);
}
