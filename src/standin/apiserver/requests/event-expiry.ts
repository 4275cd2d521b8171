import { greatestOf } from "../../../api/schema/extremes.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { OwnTurns } from "../access/exchange.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import type { KubeObject } from "../schema/contract.ts";
import { isObject } from "../schema/json-values.ts";
import type { StoreKey } from "../storage/store.ts";

/** How long events are kept after their last write: `--event-ttl` of the real server. */
export const eventLifeMs = 3_600_000;

/** Events that are removed in one turn: each is a write to the disk. */
const removalsOfOneTurn = 50;

/**
 * Removes old events whenever a new one is written, so that no timer is needed: some in the turn of that write, and the rest
 * in further turns of the server's own.
 */
export function expireEvents({
  live,
  clock,
  log,
  own,
}: {
  readonly live: LiveObjects;
  readonly clock: Clock;
  readonly log: Logger;
  readonly own: OwnTurns;
}): void {
  /** In order of expiry: a written event goes to the end. */
  const expiries = new Map<string, { readonly key: StoreKey; readonly at: number }>();
  /** A turn for what is due is waited for. */
  let isWaiting = false;
  const path = (key: StoreKey) => `${key.namespace}/${key.name}`;
  const lastSeen = (event: Readonly<Record<string, unknown>>): number => {
    const times = [
      isObject(event["metadata"]) ? event["metadata"]["creationTimestamp"] : undefined,
      event["lastTimestamp"],
      event["eventTime"],
    ];
    return greatestOf(
      times.map((time) => (typeof time === "string" ? Date.parse(time) || 0 : 0)),
      0,
    );
  };
  const begun = clock.now();
  // An event says itself when it was seen; none is kept for times that are still to come.
  const expiryOf = (event: KubeObject) => Math.min(lastSeen(event), begun) + eventLifeMs;
  const known = live.list("events").map(({ key, object }) => ({ key, at: expiryOf(object) }));
  for (const one of known.sort((a, b) => a.at - b.at)) expiries.set(path(one.key), one);

  live.subscribe({ resource: "events" }, ({ type, live: { key } }) => {
    expiries.delete(path(key));
    if (type === "DELETED") return;
    expiries.set(path(key), { key, at: clock.now() + eventLifeMs });
    expireSome();
  });

  function expireSome(): void {
    const now = clock.now();
    let removed = 0;
    for (const expiry of expiries.values()) {
      if (expiry.at > now) return;
      if (removed === removalsOfOneTurn) {
        if (!isWaiting) void expireMore();
        return;
      }
      const old = live.get(expiry.key);
      expiries.delete(path(expiry.key));
      if (old !== undefined) live.remove(old.key, old.revision, old.object);
      removed++;
    }
  }

  async function expireMore(): Promise<void> {
    isWaiting = true;
    try {
      await own.turn();
      isWaiting = false;
      expireSome();
    } catch (error) {
      isWaiting = false;
      // The next server removes what is due.
      if (!own.signal.aborted) log.error({ error: String(error) }, "old events cannot be removed");
    }
  }
}
