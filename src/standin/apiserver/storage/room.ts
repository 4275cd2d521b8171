import { defined } from "../../../api/schema/defined.ts";
import { credentialIn } from "../../../core/join/certificate-holder.ts";
import type { KubeObject, Part, UserInfo } from "../schema/contract.ts";
import { isObject, listAt, textAt } from "../schema/json-values.ts";
import { clusterNamespaces, isJoiningAccount, shareOf } from "../schema/shares.ts";
import type { StoreKey } from "./store.ts";

/** How much memory stored objects may take, in bytes. All of them are in memory, and are there again at each start. */
export interface RoomLimits {
  /** Objects of one resource in one namespace. */
  readonly resourceBytes: number;
  /** All objects of one namespace: more than what nodes can fill of it. */
  readonly namespaceBytes: number;
  /** All objects of all namespaces but the cluster's own, in which no tenant writes. */
  readonly tenantsBytes: number;
  /**
   * Objects of one resource in all namespaces but the cluster's own: nodes write these in any. More than one namespace may
   * have.
   */
  readonly everywhereBytes: Readonly<Record<string, number>>;
  /** The same in the cluster's own namespaces, which only nodes fill: what tenants store takes nothing of these. */
  readonly clusterBytes: Readonly<Record<string, number>>;
  /** Events about objects without a namespace: these lie in `default`, where tenants may write as well. */
  readonly clusterScopedEventsBytes: number;
}

/**
 * Limits for a heap: all that tenants (5/16), nodes (3/16) and authors of certificate requests (1/16) may store, and Events
 * about objects without a namespace (1/32), leaves much of it to the work of the server.
 */
export const roomIn = (heapBytes: number): RoomLimits => ({
  resourceBytes: heapBytes / 16,
  namespaceBytes: (heapBytes / 16) * 3,
  tenantsBytes: (heapBytes / 16) * 5,
  everywhereBytes: { events: heapBytes / 8, pods: heapBytes / 8 },
  clusterBytes: { events: heapBytes / 16, pods: heapBytes / 8 },
  clusterScopedEventsBytes: heapBytes / 32,
});

/**
 * How much of the room of such Events there may be for a writer to have room for another: whatever tenants write there, some is
 * left to machines, and more to the components of the cluster.
 */
const shareOfWriter: Readonly<Record<Part, number>> = { others: 1 / 2, nodes: 3 / 4, cluster: 1 };

/** The same of all certificate requests, and of those of one requester, where a request is made. */
const sharesOfRequests = {
  ofAll: { others: 1 / 2, nodes: 3 / 4, cluster: 1 },
  ofOne: { others: 1 / 8, nodes: 1 / 8, cluster: 1 },
} satisfies Record<string, Readonly<Record<Part, number>>>;
/**
 * The same for changes of requests, whoever makes them. Requesters may not change theirs; approvers and signers add
 * decisions and certificates, for which there is always room.
 */
const shareOfDecisions = 2;

/**
 * Room beyond each limit for changes of stored objects, as a part of the limit, by the author of the change: machines and
 * components of the cluster can write statuses and finalizers in a full namespace. Others have theirs for objects that are
 * being deleted, whose finalizers they remove.
 */
const reserveOfWriter: Readonly<Record<Part, number>> = { others: 1 / 16, nodes: 3 / 32, cluster: 1 / 8 };

/** A larger object takes nothing of what is reserved: root on a machine may make the statuses of its pods long. */
const mostReservedBytes = 128 * 1024;

/** For the heap that V8 takes on a machine of 8 GiB. */
export const defaultRoom: RoomLimits = roomIn(2 * 1024 * 1024 * 1024);

/** Of resources without namespace, the one whose objects somebody with few rights can create in any number. */
const certificateRequests = "certificatesigningrequests.certificates.k8s.io";

/**
 * A field, an object, a list or an item of one, decoded. Measured with V8 13 (Node.js 24): a list of empty objects takes 60
 * bytes for each, empty texts under many keys 72, and objects of few unusual keys 91 for each object and key.
 */
const nodeBytes = 96;

/**
 * What an object takes in memory at most: its text, which is kept, and its values, which repeat most of the text. Many short
 * fields take ten times and more of what they take in the text.
 */
export function weightOf(json: string, object: KubeObject): number {
  let nodes = 0;
  const open: unknown[] = [object];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value !== "object" || value === null) continue;
    const children: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
    nodes += 1 + children.length;
    for (const child of children) if (typeof child === "object" && child !== null) open.push(child);
  }
  // V8 keeps a text with one character beyond Latin-1 in two bytes for each.
  const characterBytes = /[\u0100-\uffff]/.test(json) ? 2 : 1;
  return 2 * characterBytes * json.length + nodeBytes * nodes;
}

/** What {@link Room} weighs of an object that is stored, or is to be. */
interface Weighed {
  readonly key: StoreKey;
  readonly object: KubeObject;
  readonly weight: number;
}

/** Of whom an object takes room. */
interface Counter {
  readonly name: string;
  readonly limit: number | undefined;
  /** Of the limit, as much as each writer may fill. */
  readonly shares?: Readonly<Record<Part, number>>;
  /** The same for changes of stored objects, instead of `shares`. */
  readonly shareOfChanges?: number;
}

/** Weighs what is stored, so that nobody who may write in some namespaces fills the memory of the server. */
export class Room {
  readonly #limits: RoomLimits;
  readonly #bytes = new Map<string, number>();

  constructor(limits: RoomLimits) {
    this.#limits = limits;
  }

  /**
   * Whether an object may become so much heavier; one that becomes lighter always may. What an earlier version stored is
   * never refused, whatever it weighs.
   */
  has(before: Weighed | undefined, after: Weighed, by: Part): boolean {
    const had = new Set(before === undefined ? [] : this.#countersOf(before).map(({ name }) => name));
    const reserve = reserveFor(before, after, by);
    return this.#countersOf(after).every(({ name, limit, shares, shareOfChanges }) => {
      const more = after.weight - (before !== undefined && had.has(name) ? before.weight : 0);
      const ofWriter = (before === undefined ? undefined : shareOfChanges) ?? shares?.[by] ?? 1;
      return more <= 0 || limit === undefined || this.#of(name) + more <= limit * (ofWriter + reserve);
    });
  }

  /** Counts an object in the place of the one that was there; `undefined` where there is none. */
  replace(before: Weighed | undefined, after: Weighed | undefined): void {
    if (before !== undefined) this.#add(before, -before.weight);
    if (after !== undefined) this.#add(after, after.weight);
  }

  #add(object: Weighed, more: number): void {
    for (const { name } of this.#countersOf(object)) {
      const sum = this.#of(name) + more;
      if (sum === 0) this.#bytes.delete(name);
      else this.#bytes.set(name, sum);
    }
  }

  #of(counter: string): number {
    return this.#bytes.get(counter) ?? 0;
  }

  /** Where an object counts. No name of a namespace or resource has a slash or a star. */
  #countersOf({ key: { resource, namespace }, object }: Weighed): readonly Counter[] {
    const { resourceBytes, namespaceBytes, tenantsBytes, everywhereBytes, clusterBytes } = this.#limits;
    if (namespace === "") {
      if (resource !== certificateRequests) return [];
      const ofRequests = { limit: resourceBytes, shareOfChanges: shareOfDecisions };
      return [
        { name: `${resource}/`, ...ofRequests, shares: sharesOfRequests.ofAll },
        { name: `${resource}//${requesterOf(object)}`, ...ofRequests, shares: sharesOfRequests.ofOne },
      ];
    }
    if (isClusterScopedEvent(resource, namespace, object))
      return [{ name: "events/default/", limit: this.#limits.clusterScopedEventsBytes, shares: shareOfWriter }];
    const isOfCluster = clusterNamespaces.has(namespace);
    const together = isOfCluster ? clusterBytes : everywhereBytes;
    return [
      { name: `${resource}/${namespace}`, limit: resourceBytes },
      { name: namespace, limit: namespaceBytes },
      ...(Object.hasOwn(together, resource)
        ? [{ name: `${resource}/${isOfCluster ? "*cluster" : "*"}`, limit: together[resource] }]
        : []),
      ...(isOfCluster ? [] : [{ name: "*", limit: tenantsBytes }]),
    ];
  }
}

/** Room of an update beyond the limits, as a part of them. Events have none: they have no status, and come without end. */
function reserveFor(before: Weighed | undefined, after: Weighed, by: Part): number {
  if (before === undefined) return 0;
  const goes = after.object.metadata.deletionTimestamp !== undefined;
  if (by === "others") return goes ? reserveOfWriter.others : 0;
  const isOfReserve = after.weight <= mostReservedBytes && after.key.resource !== "events";
  return isOfReserve ? reserveOfWriter[by] : 0;
}

/**
 * Who made a certificate request, as the server recorded it. Machines that join share their accounts, and have a credential
 * each.
 */
function requesterOf(request: KubeObject): string {
  const spec = isObject(request["spec"]) ? request["spec"] : {};
  const extra = isObject(spec["extra"]) ? (spec["extra"] as UserInfo["extra"]) : undefined;
  const user = { name: textAt(spec, "username"), groups: listAt(spec, "groups").map(String), ...defined({ extra }) };
  const { of } = shareOf(user);
  return isJoiningAccount(user) ? `${of} ${credentialIn(extra) ?? ""}` : of;
}

/**
 * An Event about a Node, a pool or another object without a namespace. Whoever may write Events in `default` can say that
 * theirs is one: {@link shareOfWriter} limits them.
 */
function isClusterScopedEvent(resource: string, namespace: string, { involvedObject }: KubeObject): boolean {
  if (resource !== "events" || namespace !== "default") return false;
  const about = isObject(involvedObject) ? (involvedObject["namespace"] ?? "") : "";
  return about === "";
}
