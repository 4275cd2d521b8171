import type { JoinPlace } from "../../api/kinds/join-place.ts";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import type { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";

/** What places and tokens say about a name that asks for its first certificate. */
export interface JoinQuestion {
  readonly name: string;
  readonly pool: string;
  readonly places: readonly JoinPlace[];
  readonly tokens: readonly ProvisioningToken[];
  readonly bindings: readonly NodeBinding[];
  /** Places that bindings take which the cache does not show yet. */
  readonly taken: ReadonlySet<string>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const isOver = (expiresAt: string | undefined, now: number) =>
  expiresAt !== undefined && !(Date.parse(expiresAt) > now);

/**
 * The place that a name takes: one that is held for it before one that any name of its pool may take, the oldest first.
 * A place is taken as soon as a binding names it, so that one served configuration gives one new name.
 */
export function placeFor({ name, pool, places, bindings, taken, now }: JoinQuestion): JoinPlace | undefined {
  const used = new Set([...taken, ...bindings.flatMap(({ spec }) => spec.place ?? [])]);
  const isFree = ({ metadata, spec }: JoinPlace) =>
    spec.pool === pool && !isOver(spec.expiresAt, now) && !used.has(metadata.name);
  const free = places.filter(isFree).toSorted((a, b) => (a.spec.expiresAt < b.spec.expiresAt ? -1 : 1));
  return free.find(({ spec }) => spec.node === name) ?? free.find(({ spec }) => spec.node === undefined);
}

/** The other pool for which a token, or a place, holds the name; `undefined`: none does. */
export function reservedFor({ name, pool, places, tokens, now }: JoinQuestion): string | undefined {
  const holders = [
    ...places.filter(({ spec }) => !isOver(spec.expiresAt, now)),
    ...tokens.filter(({ metadata, spec }) => metadata.deletionTimestamp === undefined && !isOver(spec.expiresAt, now)),
  ].filter(({ spec }) => spec.node === name);
  return holders.some(({ spec }) => spec.pool === pool)
    ? undefined
    : holders.map(({ spec }) => spec.pool).find((other) => other !== pool);
}

export interface AddressOwners {
  /** Nodes with the names and addresses that they report. */
  readonly nodes: readonly { readonly name: string; readonly addresses: readonly string[] }[];
  readonly bindings: readonly NodeBinding[];
  /** Addresses of Services, each with a name of it. */
  readonly services: ReadonlyMap<string, string>;
  /** Host names and addresses of the API server. */
  readonly apiServer: readonly string[];
}

/** Names and addresses that a node asks for and that belong to somebody else: each as a clause that names its owner. */
export function othersIn(
  node: string,
  asked: readonly string[],
  { nodes, bindings, services, apiServer }: AddressOwners,
): readonly string[] {
  return asked.flatMap((one) => {
    const service = services.get(one);
    if (service !== undefined) return [`${one} is an address of the Service ${service}`];
    if (apiServer.includes(one)) return [`${one} is the API server`];
    const other =
      nodes.find(({ name, addresses }) => name !== node && (name === one || addresses.includes(one)))?.name ??
      bindings.find(
        ({ metadata, spec }) =>
          metadata.name !== node && (metadata.name === one || spec.addresses?.includes(one) === true),
      )?.metadata.name;
    return other === undefined ? [] : [`${one} belongs to the node ${other} as well`];
  });
}

export type BindingStay =
  /** `until`: milliseconds since the epoch; before, nothing is to be done unless something changes. */
  | { readonly verdict: "stays"; readonly until: number | undefined }
  /** Its machine has registered as this Node. */
  | { readonly verdict: "registered"; readonly nodeUID: string }
  /** The Node that its machine was is gone, or it never registered and its certificate has ended. */
  | { readonly verdict: "goes" };

/** What becomes of a binding. @param nodeUID of the Node of its name; `undefined`: there is none. */
export function bindingStay(
  { metadata, spec }: Pick<NodeBinding, "metadata" | "spec">,
  nodeUID: string | undefined,
  now: number,
): BindingStay {
  if (metadata.deletionTimestamp !== undefined) return { verdict: "stays", until: undefined };
  if (spec.nodeUID !== undefined)
    return spec.nodeUID === nodeUID ? { verdict: "stays", until: undefined } : { verdict: "goes" };
  if (nodeUID !== undefined) return { verdict: "registered", nodeUID };
  return isOver(spec.expiresAt, now) ? { verdict: "goes" } : { verdict: "stays", until: Date.parse(spec.expiresAt) };
}
