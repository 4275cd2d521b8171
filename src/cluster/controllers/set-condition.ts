import { timestamp } from "./timestamp.ts";

interface WantedCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

type Stored = WantedCondition & { lastTransitionTime?: string };

/**
 * The list with one condition set; the time of its last transition moves only when its status does. The list itself
 * when nothing changes.
 */
export function setCondition<C extends Stored>(
  conditions: readonly C[] | undefined,
  wanted: WantedCondition & Partial<C>,
  now: number,
): C[] {
  const list = [...(conditions ?? [])];
  const index = list.findIndex(({ type }) => type === wanted.type);
  const before = list[index];
  const lastTransitionTime =
    before !== undefined && before.status === wanted.status
      ? (before.lastTransitionTime ?? timestamp(now))
      : timestamp(now);
  const next = { ...wanted, lastTransitionTime } as unknown as C;
  if (before === undefined) list.push(next);
  else list[index] = next;
  return list;
}
