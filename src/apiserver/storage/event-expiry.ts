import type { Clock } from "../../ports/clock.ts";
import type { LiveObjects } from "./live-objects.ts";
import type { KubeObject } from "../schema/contract.ts";
import { isObject } from "../schema/json-values.ts";
import type { StoreKey } from "./store.ts";

/** How long events are kept after their last write: `--event-ttl` of the real server. */
export const eventLifeMs = 3_600_000;

/** Removes old events whenever a new one is written, so that no timer is needed. */
export function expireEvents(live: LiveObjects, clock: Clock): void {
  /** In order of expiry: a written event goes to the end. */
  const expiries = new Map<string, { readonly key: StoreKey; readonly at: number }>();
  const path = (key: StoreKey) => `${key.namespace}/${key.name}`;
  const lastSeen = (event: Readonly<Record<string, unknown>>): number => {
    const times = [
      isObject(event["metadata"]) ? event["metadata"]["creationTimestamp"] : undefined,
      event["lastTimestamp"],
      event["eventTime"],
    ];
    return Math.max(0, ...times.map((time) => (typeof time === "string" ? Date.parse(time) || 0 : 0)));
  };
  const begun = clock.now();
  // An event says itself when it was seen; none is kept for times that are still to come.
  const expiryOf = (event: KubeObject) => Math.min(lastSeen(event), begun) + eventLifeMs;
  const known = live.list("events").map(({ key, object }) => ({ key, at: expiryOf(object) }));
  for (const one of known.sort((a, b) => a.at - b.at)) expiries.set(path(one.key), one);

  live.subscribe({ resource: "events" }, ({ type, live: { key } }) => {
    expiries.delete(path(key));
    if (type === "DELETED") return;
    const now = clock.now();
    expiries.set(path(key), { key, at: now + eventLifeMs });
    for (const expiry of expiries.values()) {
      if (expiry.at > now) break;
      const old = live.get(expiry.key);
      expiries.delete(path(expiry.key));
      if (old !== undefined) live.remove(old.key, old.revision, old.object);
    }
  });
}
