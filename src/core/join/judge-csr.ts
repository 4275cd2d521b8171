import { nodeIdentity, objects, signers } from "../../api/names.ts";
import { type KubeletRequest, kubeletRequestProblem } from "./kubelet-request.ts";

/** A Node of the name that a certificate is asked for, as far as it matters for whether its machine may have one. */
export interface NodeOfName {
  /** The pool that it belongs to by its labels. */
  readonly pool: string | undefined;
  /** The pool for which it was let into the cluster, where that was us. */
  readonly joinedPool: string | undefined;
  /** Its kubelet has reported itself ready at some time, or a daemon has looked after it. */
  readonly inService: boolean;
  /** Names and addresses that it may serve under. */
  readonly names: readonly string[];
  readonly addresses: readonly string[];
}

/** Everything that decides about a CertificateSigningRequest. */
export interface CsrFacts {
  /** Namespace of the suite, where the accounts of bootstrapping machines are. */
  readonly namespace: string;
  readonly requester: { readonly username: string; readonly groups: readonly string[] };
  /** `undefined`: what it asks for cannot be read. */
  readonly request: KubeletRequest | undefined;
  readonly pools: readonly string[];
  /** The Node of the common name; `undefined`: there is none. */
  readonly node: NodeOfName | undefined;
  /** Machines of the account that were let in and of which no Node has come. */
  readonly underWay: number;
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
  | "PoolUnknown"
  | "AddressUnknown"
  | "TooManyUnderWay";

/** More machines of a pool at once than this wait until others have come. */
export const mostUnderWay = 100;

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
  if (
    !isNode ||
    facts.node?.joinedPool === undefined ||
    (request !== undefined && !(kubeletSigners as readonly string[]).includes(request.signer))
  )
    return { verdict: "leave" };
  return judgeOwn(facts, facts.node);
}

const kubeletSigners = [signers.kubeletClient, signers.kubeletServing] as const;
const deny = (reason: CsrReason, message: string): CsrVerdict => ({ verdict: "deny", reason, message });
const wait = (reason: CsrReason, message: string): CsrVerdict => ({ verdict: "wait", reason, message });

/** The first certificate of a machine. */
function judgeFirst({ request, pools, node, underWay }: CsrFacts, pool: string): CsrVerdict {
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
    return {
      verdict: "approve",
      reason: "NodeJoins",
      message: `${name} joins pool ${pool}: its node has not been in service yet`,
    };
  }
  if (underWay >= mostUnderWay)
    return wait("TooManyUnderWay", `${underWay} machines of pool ${pool} were let in and have not come yet`);
  return { verdict: "approve", reason: "NodeJoins", message: `${name} joins pool ${pool}` };
}

/** What a machine asks for when it is a node: the certificate that it serves with, and its next client certificate. */
function judgeOwn({ requester, request }: CsrFacts, node: NodeOfName): CsrVerdict {
  if (request === undefined) return deny("Malformed", "what is asked for cannot be read");
  const problem = kubeletRequestProblem(request);
  if (problem !== undefined) return deny("Malformed", problem);
  if (request.asked.commonNames[0] !== requester.username)
    return deny("NotItsOwn", `${requester.username} asks for a certificate of ${request.asked.commonNames[0]}`);
  const name = nodeNameIn(request);
  if (request.signer === signers.kubeletClient)
    return { verdict: "approve", reason: "NodeRenews", message: `${name} renews its certificate` };
  const strange = [
    ...request.asked.dnsNames.filter((dns) => dns !== name && !node.names.includes(dns)),
    ...request.asked.ipAddresses.filter((address) => !node.addresses.includes(address)),
  ];
  if (strange.length > 0)
    return wait("AddressUnknown", `the node ${name} does not report ${strange.join(", ")} as its own`);
  return { verdict: "approve", reason: "NodeServes", message: `${name} serves under its own names and addresses` };
}

/** The node that a readable request is about. */
export const nodeNameIn = (request: Pick<KubeletRequest, "asked">): string =>
  (request.asked.commonNames[0] ?? "").slice(nodeIdentity.userPrefix.length);
