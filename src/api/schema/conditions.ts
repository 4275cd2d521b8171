import { timestampOf } from "./object.ts";

/** A condition of any form: some kinds omit reason and message, others add further times. */
interface AnyCondition {
  readonly type?: string;
  readonly status?: string;
  readonly lastTransitionTime?: string | null | undefined;
}

/** A condition as its writer gives it; the transition time follows from the previous condition. */
export type ConditionInput<C extends AnyCondition> = Omit<C, "lastTransitionTime">;

/**
 * A condition that replaces the previous one of its type and keeps its transition time while the status is the same.
 * Returns the previous object if nothing changed.
 *
 * @param now milliseconds since the epoch.
 */
export function withTransition<C extends AnyCondition>(
  before: C | undefined,
  next: ConditionInput<C>,
  now: number,
): C & { lastTransitionTime: string } {
  const { status } = next as AnyCondition;
  const since = before?.status === status ? before?.lastTransitionTime : undefined;
  const after = { ...next, lastTransitionTime: since ?? timestampOf(now) } as C & { lastTransitionTime: string };
  return before !== undefined && saysSame(before, after) ? (before as typeof after) : after;
}

/**
 * Sets one condition: replaces the one of its type or appends it. An unchanged condition stays the same object.
 *
 * @param now milliseconds since the epoch.
 */
export function setCondition<C extends AnyCondition>(
  conditions: readonly C[] | undefined,
  next: ConditionInput<C>,
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
