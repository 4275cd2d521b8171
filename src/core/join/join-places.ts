import type { JoinPlace } from "../../api/kinds/join-place.ts";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import type { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { canonicalHost, isAddress } from "./canonical-host.ts";

/** What places and tokens determine about a name that requests its first certificate. */
export interface JoinQuestion {
  readonly name: string;
  readonly pool: string;
  /** SHA-256 of the requested key, in hexadecimal digits. */
  readonly publicKey: string;
  /** By which the request came, as the API server recorded it; `undefined`: it records none. */
  readonly credential: string | undefined;
  /** Those of that credential, or more. */
  readonly places: readonly JoinPlace[];
  /** Of the name, also if it is released. */
  readonly binding: NodeBinding | undefined;
  readonly tokens: readonly ProvisioningToken[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const isOver = (expiresAt: string | undefined, now: number) =>
  expiresAt !== undefined && !(Date.parse(expiresAt) > now);

const isGood = ({ metadata, spec }: ProvisioningToken, now: number) =>
  metadata.deletionTimestamp === undefined && !isOver(spec.expiresAt, now);

/**
 * The place of the machine that sent a request, by the credential in the configuration that it was served: no other
 * machine has it. What was recorded of one machine therefore never goes to another one, in whatever order they ask.
 */
export type PlaceOfRequest =
  /** `isHeld`: the place is for this name alone: an administrator's token named the machine. */
  | { readonly verdict: "free"; readonly place: JoinPlace; readonly isHeld: boolean }
  /** The API server does not record by which credential a request came. */
  | { readonly verdict: "unrecorded" }
  /** No configuration was served with the credential, or its hour is over. */
  | { readonly verdict: "none" }
  /**
   * A machine has joined by it: it is spent, also after the Node, the binding or the name of that machine are gone.
   * `isEnded`: not that machine either, because an administrator has released its name since, or another machine has it.
   */
  | { readonly verdict: "spent"; readonly machine: string; readonly isEnded: boolean }
  /** Its token names another machine. */
  | { readonly verdict: "otherName"; readonly machine: string };

export function placeOf(question: JoinQuestion): PlaceOfRequest {
  const { name, pool, publicKey, credential, places, binding, now } = question;
  if (credential === undefined) return { verdict: "unrecorded" };
  const place = places.find(({ spec }) => spec.credential === credential);
  if (place === undefined || place.spec.pool !== pool || isOver(place.spec.expiresAt, now)) return { verdict: "none" };
  const { machine, publicKey: key } = place.status ?? {};
  const isEnded = machine === name && binding !== undefined && hasEnded(place, binding);
  if (machine !== undefined && (machine !== name || key !== publicKey || isEnded))
    return { verdict: "spent", machine, isEnded };
  const { node } = place.spec;
  return node === undefined || node === name
    ? { verdict: "free", place, isHeld: node === name }
    : { verdict: "otherName", machine: node };
}

/**
 * Whether the machine that a place let in has lost its name since. A binding that is older than the join is that of a former
 * machine: the process ended after it had noted the join in the place.
 */
function hasEnded({ metadata, status = {} }: JoinPlace, binding: NodeBinding): boolean {
  const { place, publicKey, revoked } = binding.spec;
  if (revoked === true && (place === metadata.name || publicKey === status.publicKey)) return true;
  return place !== metadata.name && joinedAt(binding) > (status.joinedAt ?? "");
}

/**
 * The pool for whose machine a token or a place holds the name, unless that is the machine which asks; `undefined`: the
 * name is not held.
 *
 * @param isHeld the machine that asks was served its configuration by such a token.
 */
export function heldFor(
  { name, places, tokens, now }: Pick<JoinQuestion, "name" | "places" | "tokens" | "now">,
  isHeld: boolean,
): string | undefined {
  if (isHeld) return undefined;
  const holders = [
    ...places.filter(({ spec, status }) => !isOver(spec.expiresAt, now) && status?.machine === undefined),
    ...tokens.filter((token) => isGood(token, now)),
  ];
  return holders.find(({ spec }) => spec.node === name)?.spec.pool;
}

/** Whether another machine may take the name of a binding: its Node was deleted, or an administrator released it. */
export const isReleased = ({ releasedAt, revoked }: NodeBinding["spec"]): boolean =>
  releasedAt !== undefined || revoked === true;

/** When the machine joined that has a name, as the API server writes times. An object outlives the machine it was made for. */
export const joinedAt = ({ metadata, spec }: NodeBinding): string => spec.joinedAt ?? metadata.creationTimestamp ?? "";

/** A machine of another pool that had a name, and whose certificate for it is good: the API server takes it for that node. */
export interface FormerMachine {
  readonly pool: string;
  /** When its certificate ends, in ISO 8601. */
  readonly until: string;
}

/**
 * The machine of another pool that has a certificate for a name, and so the identity of the next node of that name.
 *
 * @param pool that the next machine joins.
 */
export function formerMachine(
  binding: Pick<NodeBinding, "spec"> | undefined,
  pool: string,
  now: number,
): FormerMachine | undefined {
  if (binding === undefined || binding.spec.pool === pool) return undefined;
  const end = lastEnd(binding.spec);
  return end > now ? { pool: binding.spec.pool, until: timestampOf(end) } : undefined;
}

export interface AddressOwners {
  /** Names and addresses that the suite itself recorded of the node: nobody's report takes them from it. */
  readonly own: readonly string[];
  /**
   * Nodes with the names and addresses that their kubelets report, these in canonical form: all that have one of the hosts that
   * are asked about, in any order; others make no difference.
   */
  readonly nodes: readonly { readonly name: string; readonly addresses: readonly string[] }[];
  /** Likewise, and that of the node itself. */
  readonly bindings: readonly NodeBinding[];
  /** Hosts that belong to the cluster, in canonical form, each with a clause that names the owner. */
  readonly cluster: ReadonlyMap<string, string>;
  /** Those of the API server and of the config server, likewise. */
  readonly apiServer: ReadonlyMap<string, string>;
  /** Hosts that authors of Services chose, likewise: often those of nodes. */
  readonly external: ReadonlyMap<string, string>;
}

/** Names and addresses that a node requests and that are not, or maybe not, its own: each as a clause. */
export interface ForeignHosts {
  /** By the suite's records or the cluster's own objects they are others'. */
  readonly others: readonly string[];
  /** The kubelet of another node reports them. That may be a lie, so that it takes them from nobody for good. */
  readonly claimed: readonly string[];
  /**
   * They were recorded of the node, and are hosts of the API server as well. One of the two is wrong: a pod of a machine of the
   * control plane may have joined a machine from there, or somebody has changed the endpoints of default/kubernetes.
   */
  readonly contested: readonly string[];
}

/** Hosts by which a binding is found, in canonical form. */
export const hostsOfBinding = ({ metadata, spec }: NodeBinding): readonly string[] =>
  [metadata.name, ...(spec.addresses ?? [])].map(canonicalHost);

/** Compares each requested host with all owners in one pass over them. */
export function foreignHosts(
  node: string,
  asked: readonly string[],
  { own, nodes, bindings, cluster, apiServer, external }: AddressOwners,
): ForeignHosts {
  const recorded = new Set(own.map(canonicalHost).filter(isAddress));
  const record = new Set([node, ...own].map(canonicalHost));
  const owners = new Map<string, string>();
  const recordedOwners = new Map<string, string>();
  const claims = new Map<string, string>();
  const wanted = new Set(asked.map(canonicalHost));
  // Of several owners, the first by name is told, in whatever order they come.
  const add = (to: Map<string, string>, owner: string, hosts: readonly string[]) => {
    for (const host of owner === node ? [] : hosts)
      if (wanted.has(host) && !((to.get(host) ?? "\uffff") < owner)) to.set(host, owner);
  };
  for (const { name, addresses } of nodes) {
    add(owners, name, [canonicalHost(name)]);
    add(claims, name, addresses);
  }
  // Who joins from an address later, from a pod of that node for example, does not take it from the node.
  const ownBinding = bindings.find(({ metadata }) => metadata.name === node);
  for (const binding of bindings) {
    const { metadata, spec } = binding;
    const isLater = ownBinding !== undefined && joinedAt(binding) > joinedAt(ownBinding);
    const addresses = (spec.addresses ?? []).map(canonicalHost);
    add(recordedOwners, metadata.name, [
      canonicalHost(metadata.name),
      ...(isLater ? addresses.filter((host) => !record.has(host)) : addresses),
    ]);
  }
  const others: string[] = [];
  const claimed: string[] = [];
  const contested: string[] = [];
  for (const one of asked) {
    const host = canonicalHost(one);
    const isContested = recorded.has(host) && apiServer.has(host);
    const clause =
      cluster.get(host) ??
      (isContested ? undefined : apiServer.get(host)) ??
      (record.has(host) ? undefined : external.get(host));
    const owner = owners.get(host) ?? recordedOwners.get(host);
    const claim = record.has(host) ? undefined : claims.get(host);
    if (clause !== undefined) others.push(`${one} ${clause}`);
    else if (owner !== undefined) others.push(`${one} belongs to the node ${owner} as well`);
    else if (isContested) contested.push(`${one} ${apiServer.get(host) ?? ""}`);
    else if (claim !== undefined) claimed.push(`${one} is reported by the node ${claim} as well`);
  }
  return { others, claimed, contested };
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
  /** The Node of its machine lacks the labels of the pool that the machine joined. */
  | { readonly verdict: "joins"; readonly labels: Readonly<Record<string, string>> }
  /** A Node has registered by the key after the release, and lacks the labels of the pool that the machine was in. */
  | { readonly verdict: "returns"; readonly labels: Readonly<Record<string, string>> }
  /** Nothing uses it any more: its certificate has expired, or its machine did not come back in time. */
  | { readonly verdict: "goes" };

/** The Node of a bound name. */
export interface BoundNode {
  readonly uid: string | undefined;
  /** As the API server writes times. */
  readonly createdAt: string | undefined;
  /** The pool that it belongs to by its labels. */
  readonly pool: string | undefined;
  /** Labels of the pool that its machine joined, if it lacks one and is in no other pool. */
  readonly joins: Readonly<Record<string, string>> | undefined;
  /** Labels that it lacks if its machine has come back; `undefined`: an administrator gives them. */
  readonly returns: Readonly<Record<string, string>> | undefined;
}

/** How long a machine comes back into its pool after its Node was deleted. */
const returnMs = 7 * 24 * 3_600_000;

/**
 * Beyond so many bindings, those of Nodes that were deleted more than a week ago go: clusters that make and remove machines all
 * the time use most names once.
 */
export const mostKeptBindings = 10_000;

/** Whether the machine of a deleted Node may still come back as what it was. */
export const mayReturn = ({ releasedAt }: NodeBinding["spec"], now: number): boolean =>
  releasedAt !== undefined && Date.parse(releasedAt) + returnMs > now;

/**
 * What to do with a binding. Once its machine may not come back any more, it is kept until the certificates of the name have ended:
 * the next machine of the name learns from it which are those of a former one.
 *
 * @param node of its name; `undefined`: there is none.
 * @param isCrowded there are more bindings than are kept.
 */
export function bindingStay(
  { metadata, spec }: Pick<NodeBinding, "metadata" | "spec">,
  node: BoundNode | undefined,
  { now, isCrowded = false }: { readonly now: number; readonly isCrowded?: boolean },
): BindingStay {
  if (metadata.deletionTimestamp !== undefined) return { verdict: "stays", until: undefined };
  if (spec.revoked === true && spec.releasedAt === undefined) return { verdict: "released" };
  if (spec.releasedAt !== undefined) return releasedStay(spec, node, { now, isCrowded });
  if (spec.nodeUID !== undefined) {
    if (node === undefined || spec.nodeUID !== node.uid) return { verdict: "released" };
    // Once it was in a pool, its labels are an administrator's.
    if (spec.lastPool === undefined && node.joins !== undefined) return { verdict: "joins", labels: node.joins };
    // Before its first labels, a machine that has just joined is in no pool.
    const lastPool = node.pool ?? (spec.lastPool === undefined ? undefined : "");
    return lastPool === undefined || lastPool === spec.lastPool
      ? { verdict: "stays", until: undefined }
      : { verdict: "moved", lastPool };
  }
  // A Node that appears after the end is not that of the machine.
  if (node?.uid !== undefined && !isOver(spec.expiresAt, Date.parse(node.createdAt ?? "")))
    return { verdict: "registered", nodeUID: node.uid };
  return lastsUntil(lastEnd(spec), now);
}

/** When the last certificate ends by which anybody has the name. Until then, its record tells one machine from another. */
const lastEnd = ({ expiresAt, formerExpiresAt = expiresAt }: NodeBinding["spec"]) =>
  Math.max(Date.parse(expiresAt), Date.parse(formerExpiresAt));

const lastsUntil = (until: number, now: number): BindingStay =>
  until > now ? { verdict: "stays", until } : { verdict: "goes" };

function releasedStay(
  spec: NodeBinding["spec"],
  node: BoundNode | undefined,
  { now, isCrowded }: { readonly now: number; readonly isCrowded: boolean },
): BindingStay {
  const end = lastEnd(spec);
  // While its certificate is good, the machine could register and renew it.
  if (spec.revoked === true) return lastsUntil(end, now);
  if (node?.uid !== undefined && node.pool !== undefined) return { verdict: "registered", nodeUID: node.uid };
  if (!mayReturn(spec, now)) return isCrowded ? { verdict: "goes" } : lastsUntil(end, now);
  const stay = lastsUntil(Math.min(end, Date.parse(spec.releasedAt ?? "") + returnMs), now);
  if (stay.verdict === "goes" || node?.returns === undefined || isOver(spec.expiresAt, now)) return stay;
  return { verdict: "returns", labels: node.returns };
}
