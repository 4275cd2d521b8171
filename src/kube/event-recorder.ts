import { type KubeObject, timestampOf } from "../api/schema/object.ts";
import { type Event, kubernetes } from "../api/foreign/kubernetes.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { Random } from "../ports/random.ts";
import type { KubeClient } from "./kube-client.ts";

export interface EventNote {
  readonly type: "Normal" | "Warning";
  /** CamelCase. */
  readonly reason: string;
  /** A sentence about what happened. */
  readonly message: string;
}

export interface EventRecorder {
  /** Never throws and never waits. Equal notes about one object become one Event with a count. */
  event(
    object: { readonly apiVersion: string; readonly kind: string; readonly metadata: KubeObject["metadata"] },
    note: EventNote,
  ): void;
  /** Resolves when everything recorded so far has been sent or given up. */
  flush(): Promise<void>;
}

interface Known {
  readonly name: string;
  readonly namespace: string;
  readonly firstTimestamp: string;
  count: number;
}

/** Limits: distinct Events that are remembered for counting, and Events that wait to be sent, of all namespaces. */
const rememberedEvents = 512;
const pendingEvents = 256;

export function createEventRecorder(options: {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly component: string;
  readonly host?: string;
}): EventRecorder {
  const { kube, clock, random, log } = options;
  const known = new Map<string, Known>();
  const waiting = new WaitingEvents(pendingEvents);
  let isSending = false;
  const timestamp = () => timestampOf(clock.now());

  async function send(object: KubeObject, note: EventNote): Promise<void> {
    const { name, namespace, uid, resourceVersion } = object.metadata;
    const id = JSON.stringify([object.kind, namespace, name, uid, note.type, note.reason, note.message]);
    const now = timestamp();
    const before = known.get(id);
    if (before !== undefined) {
      known.delete(id);
      before.count += 1;
      known.set(id, before);
      try {
        await kube.patch(kubernetes.Event, before, {
          type: "merge",
          body: { count: before.count, lastTimestamp: now },
        });
        return;
      } catch {
        known.delete(id); // It has expired: write it again.
      }
    }
    const eventNamespace = namespace ?? "default";
    const eventName = `${name.slice(0, 220)}.${[...random.bytes(8)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    const event: Event = {
      apiVersion: "v1",
      kind: "Event",
      metadata: { name: eventName, namespace: eventNamespace },
      involvedObject: {
        apiVersion: object.apiVersion,
        kind: object.kind,
        name,
        ...(namespace === undefined ? {} : { namespace }),
        ...(uid === undefined ? {} : { uid }),
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      },
      type: note.type,
      reason: note.reason,
      message: note.message.slice(0, 1024),
      source: { component: options.component, ...(options.host === undefined ? {} : { host: options.host }) },
      reportingComponent: options.component,
      reportingInstance: options.host ?? options.component,
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    };
    await kube.create(kubernetes.Event, event);
    known.set(id, { name: eventName, namespace: eventNamespace, firstTimestamp: now, count: 1 });
    const oldest = known.keys().next();
    if (known.size > rememberedEvents && oldest.done !== true) known.delete(oldest.value);
  }

  /** One at a time. */
  async function sendAll(): Promise<void> {
    if (isSending) return;
    isSending = true;
    for (let next = waiting.take(); next !== undefined; next = waiting.take()) {
      const { object, note } = next;
      await send(object, note).catch((error: unknown) => log.debug({ error, reason: note.reason }, "event not sent"));
      waiting.settle(next);
    }
    isSending = false;
  }

  return {
    event(object, note) {
      const dropped = waiting.add(object, note);
      if (dropped !== undefined)
        log.warn(
          { reason: dropped.note.reason, object: dropped.object.metadata.name },
          "event dropped: too many are waiting to be sent",
        );
      void sendAll();
    },
    flush: () => waiting.settled(),
  };
}

interface WaitingEvent {
  readonly object: KubeObject;
  readonly note: EventNote;
  readonly sent: PromiseWithResolvers<void>;
}

/** Events in the order in which they are sent: namespaces take turns, and those of none are one of them. */
class WaitingEvents {
  readonly #most: number;
  /** By namespace; the one whose last turn is the longest ago stands first. */
  readonly #namespaces = new Map<string, WaitingEvent[]>();
  readonly #unsettled = new Set<WaitingEvent>();
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** @returns the Event that is dropped for lack of room: the newest of the namespace with the most. */
  add(object: KubeObject, note: EventNote): WaitingEvent | undefined {
    const event = { object, note, sent: Promise.withResolvers<void>() };
    const namespace = object.metadata.namespace ?? "";
    const own = this.#namespaces.get(namespace) ?? [];
    const longest = [...this.#namespaces.values()].reduce((a, b) => (b.length > a.length ? b : a), own);
    const isFull = this.#size >= this.#most;
    if (isFull && longest.length <= own.length + 1) return event;
    this.#namespaces.set(namespace, own);
    own.push(event);
    this.#unsettled.add(event);
    this.#size += 1;
    const dropped = isFull ? longest.pop() : undefined;
    if (dropped === undefined) return undefined;
    this.#size -= 1;
    this.settle(dropped);
    return dropped;
  }

  /** The next to be sent. */
  take(): WaitingEvent | undefined {
    for (const [namespace, events] of this.#namespaces) {
      this.#namespaces.delete(namespace);
      const event = events.shift();
      if (event === undefined) continue;
      this.#size -= 1;
      if (events.length > 0) this.#namespaces.set(namespace, events);
      return event;
    }
    return undefined;
  }

  /** Ends the wait for an Event that was sent or dropped. */
  settle(event: WaitingEvent): void {
    this.#unsettled.delete(event);
    event.sent.resolve();
  }

  /** Resolves when everything that was added so far is settled. */
  async settled(): Promise<void> {
    await Promise.all([...this.#unsettled].map(({ sent }) => sent.promise));
  }
}
