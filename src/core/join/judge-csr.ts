import { nodeIdentity, objects, signers } from "../../api/names.ts";
import { type KubeletRequest, kubeletRequestProblem } from "./kubelet-request.ts";

/** A Node of the name that a certificate is asked for, as far as it matters for whether its machine may have one. */
export interface NodeOfName {
  /** The pool that it belongs to by its labels. */
  readonly pool: string | undefined;
  /** The pool for which it was let into the cluster, where that was us. Its kubelet can write this: it is no proof. */
  readonly joinedPool: string | undefined;
  /** Its kubelet has reported itself ready at some time, or a daemon has looked after it. */
  readonly inService: boolean;
  /** Host names that its kubelet reports. */
  readonly names: readonly string[];
}

/** What the NodeBinding of the name says; see its kind. */
export interface NameBinding {
  readonly pool: string;
  readonly publicKey: string;
  /** A certificate for its key is good. */
  readonly isGood: boolean;
  readonly addresses: readonly string[];
}

/** Everything that decides about a CertificateSigningRequest. */
export interface CsrFacts {
  /** Namespace of the accounts that machines join with. */
  readonly namespace: string;
  readonly requester: { readonly username: string; readonly groups: readonly string[] };
  /** `undefined`: what it asks for cannot be read. */
  readonly request: KubeletRequest | undefined;
  /** SHA-256 of its public key, in hexadecimal digits. */
  readonly publicKey: string;
  readonly pools: readonly string[];
  /** The Node of the common name; `undefined`: there is none. */
  readonly node: NodeOfName | undefined;
  readonly binding: NameBinding | undefined;
  /** Whether a configuration was served by which the name may join; `undefined`: none is left. */
  readonly place: string | undefined;
  /** The other pool that a token or a place holds the name for. */
  readonly reservedFor: string | undefined;
  /** Names and addresses that it asks for and that belong to somebody else, each with its owner. */
  readonly others: readonly string[];
}

export type CsrVerdict =
  /** Not a request that the suite decides. */
  | { readonly verdict: "leave" }
  | { readonly verdict: "approve" | "deny" | "wait"; readonly reason: CsrReason; readonly message: string };

export type CsrReason =
  | "NodeJoins"
  | "NodeServes"
  | "NodeRenews"
  | "Malformed"
  | "NotItsOwn"
  | "NodeInService"
  | "NodeOfOtherPool"
  | "NodeNotOurs"
  | "NameBound"
  | "NameReserved"
  | "NoPlace"
  | "PoolUnknown"
  | "AddressUnknown";

/** How long a served configuration keeps its place: a machine installs itself and asks for its certificate meanwhile. */
export const placeLifeMs = 60 * 60_000;

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * Whether a machine gets the certificate that it requests. A joining machine requests it with the account of its pool
 * (`node-bootstrapper-<pool>`), later as its node; other requests are ignored.
 */
export function judgeCsr(facts: CsrFacts): CsrVerdict {
  const { requester, namespace, request } = facts;
  const accounts = `system:serviceaccount:${namespace}:${objects.nodeBootstrapperPrefix}`;
  if (requester.username.startsWith(accounts)) return judgeFirst(facts, requester.username.slice(accounts.length));
  const isNode =
    requester.username.startsWith(nodeIdentity.userPrefix) && requester.groups.includes(nodeIdentity.group);
  // Nodes that others let in are theirs to look after.
  const isOurs = facts.binding !== undefined || facts.node?.joinedPool !== undefined;
  if (
    !isNode ||
    facts.node === undefined ||
    !isOurs ||
    (request !== undefined && !(kubeletSigners as readonly string[]).includes(request.signer))
  )
    return { verdict: "leave" };
  return judgeOwn(facts, facts.node);
}

const kubeletSigners = [signers.kubeletClient, signers.kubeletServing] as const;
const deny = (reason: CsrReason, message: string): CsrVerdict => ({ verdict: "deny", reason, message });
const wait = (reason: CsrReason, message: string): CsrVerdict => ({ verdict: "wait", reason, message });

/** The first certificate of a machine. */
function judgeFirst(facts: CsrFacts, pool: string): CsrVerdict {
  const { request, pools, node, binding } = facts;
  if (request === undefined) return deny("Malformed", "what is asked for cannot be read");
  if (request.signer !== signers.kubeletClient)
    return deny("NotItsOwn", `an account that machines join with gets certificates of ${signers.kubeletClient} alone`);
  const problem = kubeletRequestProblem(request);
  if (problem !== undefined) return deny("Malformed", problem);
  const name = nodeNameIn(request);
  if (name.length > 253 || !subdomain.test(name)) return deny("Malformed", "the common name holds no name of a node");
  if (!pools.includes(pool)) return wait("PoolUnknown", `there is no pool ${pool}`);
  if (node !== undefined) {
    const of = node.joinedPool ?? node.pool;
    if (of !== undefined && of !== pool)
      return wait(
        "NodeOfOtherPool",
        `the node ${name} is there and belongs to pool ${of}, and the machine asks as one of pool ${pool}; delete the Node if its machine is gone`,
      );
    if (node.inService)
      return wait(
        "NodeInService",
        `the node ${name} is there and has been in service; delete the Node if its machine is gone`,
      );
    if (node.joinedPool === undefined && binding === undefined)
      return wait(
        "NodeNotOurs",
        `the node ${name} is there and did not join by a pool's account; delete the Node if its machine is gone`,
      );
  }
  return binding?.isGood === true ? judgeBound(facts, binding, { name, pool }) : judgeUnbound(facts, { name, pool });
}

interface Asker {
  readonly name: string;
  readonly pool: string;
}

/** A name that belongs to a key: the machine that has the key may ask again, nobody else. */
function judgeBound({ publicKey }: CsrFacts, binding: NameBinding, { name, pool }: Asker): CsrVerdict {
  if (binding.pool === pool && binding.publicKey === publicKey)
    return { verdict: "approve", reason: "NodeJoins", message: `${name} joins pool ${pool}: it asks again` };
  const what =
    binding.pool === pool ? "was given to another key" : `was given to a machine of the pool ${binding.pool}`;
  return wait(
    "NameBound",
    `the name ${name} ${what}, whose certificate is good; if that machine is gone or installed anew: mco node release ${name}`,
  );
}

function judgeUnbound({ place, reservedFor }: CsrFacts, { name, pool }: Asker): CsrVerdict {
  if (reservedFor !== undefined)
    return wait("NameReserved", `the name ${name} is held for a machine of the pool ${reservedFor} by its token`);
  if (place === undefined)
    return wait(
      "NoPlace",
      `every configuration of the pool ${pool} that was served within ${placeLifeMs / 60_000} minutes has its machine; start the machine with a token of its own: mco token create --pool ${pool} --node ${name} --pointer`,
    );
  return { verdict: "approve", reason: "NodeJoins", message: `${name} joins pool ${pool}` };
}

/** What a machine asks for when it is a node: the certificate that it serves with, and its next client certificate. */
function judgeOwn({ requester, request, binding, others }: CsrFacts, node: NodeOfName): CsrVerdict {
  if (request === undefined) return deny("Malformed", "what is asked for cannot be read");
  const problem = kubeletRequestProblem(request);
  if (problem !== undefined) return deny("Malformed", problem);
  if (request.asked.commonNames[0] !== requester.username)
    return deny("NotItsOwn", `${requester.username} asks for a certificate of ${request.asked.commonNames[0]}`);
  const name = nodeNameIn(request);
  if (request.signer === signers.kubeletClient)
    return { verdict: "approve", reason: "NodeRenews", message: `${name} renews its certificate` };
  const { dnsNames, ipAddresses } = request.asked;
  const internal = dnsNames.filter((dns) => isClusterName(dns));
  if (others.length > 0 || internal.length > 0)
    return deny(
      "NotItsOwn",
      [...others, ...internal.map((dns) => `${dns} is a name of the cluster's services`)].join("; "),
    );
  const strange = [
    ...dnsNames.filter((dns) => dns !== name && !(isBelow(dns, name) && node.names.includes(dns))),
    ...ipAddresses.filter((address) => binding?.addresses.includes(address) !== true),
  ];
  if (strange.length > 0)
    return wait(
      "AddressUnknown",
      `${name} did not join from ${strange.join(", ")}, and no token named it; if it is the machine's own: mco node address ${name} ${strange[0]}`,
    );
  return { verdict: "approve", reason: "NodeServes", message: `${name} serves under its own names and addresses` };
}

/** A longer form of the same host name, or its first part. */
const isBelow = (dns: string, name: string) => dns.startsWith(`${name}.`) || name.startsWith(`${dns}.`);

/** Names that resolve inside of a cluster: no machine's. */
const isClusterName = (dns: string) =>
  /(^|\.)svc(\.|$)/.test(dns) || dns.endsWith(".cluster.local") || /^(kubernetes|localhost)(\.|$)/.test(dns);

/** The node that a readable request is about. */
export const nodeNameIn = (request: Pick<KubeletRequest, "asked">): string =>
  (request.asked.commonNames[0] ?? "").slice(nodeIdentity.userPrefix.length);
