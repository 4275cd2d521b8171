import type { JoinPlace } from "../../api/kinds/join-place.ts";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import type { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";

/** What places and tokens determine about a name that requests its first certificate. */
export interface JoinQuestion {
  readonly name: string;
  readonly pool: string;
  readonly places: readonly JoinPlace[];
  readonly tokens: readonly ProvisioningToken[];
  readonly bindings: readonly NodeBinding[];
  /** Places taken by bindings that the cache does not show yet. */
  readonly taken: ReadonlySet<string>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const isOver = (expiresAt: string | undefined, now: number) =>
  expiresAt !== undefined && !(Date.parse(expiresAt) > now);

const isGood = ({ metadata, spec }: ProvisioningToken, now: number) =>
  metadata.deletionTimestamp === undefined && !isOver(spec.expiresAt, now);

/** Places whose uses were given back to their tokens: their configurations were never sent. */
export const withdrawnPlaces = (tokens: readonly Pick<ProvisioningToken, "status">[]): ReadonlySet<string> =>
  new Set(tokens.flatMap(({ status }) => status?.withdrawnPlaces ?? []));

/**
 * The place for a name: first one reserved for the name, then one for any name of its pool, oldest first. A place is
 * taken as soon as a binding names it, so that one served configuration gives one new name.
 */
export function placeFor({ name, pool, places, tokens, bindings, taken, now }: JoinQuestion): JoinPlace | undefined {
  const used = new Set([...taken, ...bindings.flatMap(({ spec }) => spec.place ?? []), ...withdrawnPlaces(tokens)]);
  const isFree = ({ metadata, spec }: JoinPlace) =>
    spec.pool === pool && !isOver(spec.expiresAt, now) && !used.has(metadata.name);
  const free = places.filter(isFree);
  const oldestFor = (node: string | undefined) =>
    free
      .filter(({ spec }) => spec.node === node)
      .reduce<JoinPlace | undefined>(
        (oldest, one) => (oldest === undefined || one.spec.expiresAt < oldest.spec.expiresAt ? one : oldest),
        undefined,
      );
  // Machines of a pool share an account: which of them asks for the name that a token holds cannot be seen.
  const isHeld = tokens.some((token) => token.spec.node === name && isGood(token, now));
  return oldestFor(name) ?? (isHeld ? undefined : oldestFor(undefined));
}

/** The other pool for which a token or a place reserves the name; `undefined`: none. */
export function reservedFor({ name, pool, places, tokens, now }: JoinQuestion): string | undefined {
  const holders = [
    ...places.filter(({ spec }) => !isOver(spec.expiresAt, now)),
    ...tokens.filter((token) => isGood(token, now)),
  ].filter(({ spec }) => spec.node === name);
  return holders.some(({ spec }) => spec.pool === pool)
    ? undefined
    : holders.map(({ spec }) => spec.pool).find((other) => other !== pool);
}

/** Whether another machine may take the name of a binding: its Node was deleted, or an administrator released it. */
export const isReleased = ({ releasedAt, revoked }: NodeBinding["spec"]): boolean =>
  releasedAt !== undefined || revoked === true;

export interface AddressOwners {
  /**
   * Addresses that the suite itself recorded of the node. What another machine's kubelet reports, or the author of a
   * Service names, does not take them from it, nor its name.
   */
  readonly own: readonly string[];
  /** Nodes with the names and addresses that they report. */
  readonly nodes: readonly { readonly name: string; readonly addresses: readonly string[] }[];
  readonly bindings: readonly NodeBinding[];
  /** Addresses that the cluster gave to Services, each with a name of it. */
  readonly services: ReadonlyMap<string, string>;
  /** Addresses that authors of Services named, likewise: often those of nodes. */
  readonly externalAddresses: ReadonlyMap<string, string>;
  /** Host names and addresses of the API server. */
  readonly apiServer: readonly string[];
}

/** A host name as clients compare it: letters have no case, and a final dot says nothing (RFC 4343, RFC 1034, 3.1). */
export const comparableHost = (name: string): string => name.toLowerCase().replace(/\.$/, "");

/** Names and addresses that a node requests but that belong to another owner: each as a clause that names the owner. */
export function othersIn(
  node: string,
  asked: readonly string[],
  { own, nodes, bindings, services, externalAddresses, apiServer }: AddressOwners,
): readonly string[] {
  const record = new Set([node, ...own].map(comparableHost));
  const bound = new Set(bindings.map(({ metadata }) => metadata.name));
  const owners = new Map<string, string>();
  const add = (owner: string, hosts: readonly string[]) => {
    for (const host of owner === node ? [] : hosts) if (!owners.has(host)) owners.set(host, owner);
  };
  for (const { name, addresses } of nodes) {
    const reported = addresses.map(comparableHost);
    // Where its machine joined from is recorded, so that its kubelet's word is not needed. Of other nodes it is all there is.
    add(name, [comparableHost(name), ...(bound.has(name) ? reported.filter((host) => !record.has(host)) : reported)]);
  }
  // Who joins from an address later, from a pod of that node for example, does not take it from the node.
  const since = bindings.find(({ metadata }) => metadata.name === node)?.metadata.creationTimestamp;
  for (const { metadata, spec } of bindings) {
    const isLater = since !== undefined && (metadata.creationTimestamp ?? "") > since;
    const addresses = (spec.addresses ?? []).map(comparableHost);
    add(metadata.name, [metadata.name, ...(isLater ? addresses.filter((host) => !record.has(host)) : addresses)]);
  }
  const servers = new Set(apiServer.map(comparableHost));
  return asked.flatMap((one) => {
    const host = comparableHost(one);
    const service = services.get(one) ?? (record.has(host) ? undefined : externalAddresses.get(one));
    if (service !== undefined) return [`${one} is an address of the Service ${service}`];
    if (servers.has(host)) return [`${one} is the API server`];
    const other = owners.get(host);
    return other === undefined ? [] : [`${one} belongs to the node ${other} as well`];
  });
}

export type BindingStay =
  /** `until`: milliseconds since the epoch; the next time to act, unless something changes. */
  | { readonly verdict: "stays"; readonly until: number | undefined }
  /** Its machine has registered as this Node. */
  | { readonly verdict: "registered"; readonly nodeUID: string }
  /** Its Node is in another pool than recorded; empty: in none any more. */
  | { readonly verdict: "moved"; readonly lastPool: string }
  /** The Node of its machine is gone: the name is free, and the record of the machine stays for a while. */
  | { readonly verdict: "released" }
  /** A Node has registered by the key after the release, and lacks the labels of the pool that the machine was in. */
  | { readonly verdict: "returns"; readonly labels: Readonly<Record<string, string>> }
  /** Nothing uses it any more: its certificate has expired, or its machine did not come back in time. */
  | { readonly verdict: "goes" };

/** The Node of a bound name. */
export interface BoundNode {
  readonly uid: string | undefined;
  /** The pool that it belongs to by its labels. */
  readonly pool: string | undefined;
  /** Labels that it lacks if its machine has come back; `undefined`: an administrator gives them. */
  readonly returns: Readonly<Record<string, string>> | undefined;
}

/** How long the pool and the key of a machine are remembered after its Node was deleted. */
export const returnMs = 7 * 24 * 3_600_000;

/** What to do with a binding. @param node of its name; `undefined`: there is none. */
export function bindingStay(
  { metadata, spec }: Pick<NodeBinding, "metadata" | "spec">,
  node: BoundNode | undefined,
  now: number,
): BindingStay {
  if (metadata.deletionTimestamp !== undefined) return { verdict: "stays", until: undefined };
  if (spec.revoked === true && spec.releasedAt === undefined) return { verdict: "released" };
  if (spec.releasedAt !== undefined) return releasedStay(spec, spec.releasedAt, node, now);
  if (spec.nodeUID !== undefined) {
    if (node === undefined || spec.nodeUID !== node.uid) return { verdict: "released" };
    // Before its first labels, a machine that has just joined is in no pool.
    const lastPool = node.pool ?? (spec.lastPool === undefined ? undefined : "");
    return lastPool === undefined || lastPool === spec.lastPool
      ? { verdict: "stays", until: undefined }
      : { verdict: "moved", lastPool };
  }
  if (node?.uid !== undefined) return { verdict: "registered", nodeUID: node.uid };
  return isOver(spec.expiresAt, now) ? { verdict: "goes" } : { verdict: "stays", until: Date.parse(spec.expiresAt) };
}

function releasedStay(
  { expiresAt, revoked }: NodeBinding["spec"],
  releasedAt: string,
  node: BoundNode | undefined,
  now: number,
): BindingStay {
  // While its certificate is good, the machine could register and renew it.
  if (revoked === true)
    return isOver(expiresAt, now) ? { verdict: "goes" } : { verdict: "stays", until: Date.parse(expiresAt) };
  if (node?.uid !== undefined && node.pool !== undefined) return { verdict: "registered", nodeUID: node.uid };
  const until = Math.min(Date.parse(expiresAt), Date.parse(releasedAt) + returnMs);
  if (!(until > now)) return { verdict: "goes" };
  return node?.returns === undefined ? { verdict: "stays", until } : { verdict: "returns", labels: node.returns };
}
