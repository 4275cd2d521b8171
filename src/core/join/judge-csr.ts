import { nodeIdentity, objects, signers } from "../../api/names.ts";
import { isDnsName } from "../../api/schema/schema.ts";
import { listText } from "../text/list-text.ts";
import type { CertificateHolder } from "./certificate-holder.ts";
import { canonicalHost } from "./canonical-host.ts";
import type { FormerMachine, PlaceOfRequest } from "./join-places.ts";
import { type KubeletRequest, kubeletRequestProblem } from "./kubelet-request.ts";
import type { ShortForm } from "./service-names.ts";
import { clipText } from "../text/clip-text.ts";
import { shellWord } from "../text/shell-word.ts";
import { longestNodeName } from "./refused-certificates.ts";

/** The Node with the requested name, as far as it affects the decision. */
export interface NodeOfName {
  /** The pool that it belongs to by its labels. */
  readonly pool: string | undefined;
  /** Its kubelet has once reported ready, or a daemon has managed it. */
  readonly inService: boolean;
}

/** The NodeBinding of the name; see its kind. */
export interface NameBinding {
  readonly pool: string;
  readonly publicKey: string;
  /** A certificate for its key is valid. */
  readonly isGood: boolean;
  /** The place by which its machine joined; `undefined`: an administrator admitted it. */
  readonly place: string | undefined;
  /** The binding can list another certificate of its machine beside all that were granted. */
  readonly hasRoom: boolean;
  /** Addresses and names that it may serve under, beside its own name. */
  readonly addresses: readonly string[];
}

export interface MachineOfNode {
  readonly name: string;
  readonly addresses: readonly string[];
}

/** The inputs of the decision about a CertificateSigningRequest. */
export interface CsrFacts {
  /** Namespace of the accounts that machines join with. */
  readonly namespace: string;
  readonly requester: { readonly username: string; readonly groups: readonly string[] };
  /** `undefined`: the request cannot be read. */
  readonly request: KubeletRequest | undefined;
  /** SHA-256 of its public key, in hexadecimal digits. */
  readonly publicKey: string;
  readonly pools: readonly string[];
  /** The Node of the common name; `undefined`: there is none. */
  readonly node: NodeOfName | undefined;
  readonly binding: NameBinding | undefined;
  /** An administrator released the name, and no other machine has taken it since. */
  readonly isRevoked: boolean;
  /** By whose certificate a request of the node was sent. */
  readonly holder: CertificateHolder;
  /** Whether the configuration that the machine was served admits the name. */
  readonly place: PlaceOfRequest;
  /** Of the name and of the requested names, those that pods resolve as names of Services. */
  readonly shortForms: readonly ShortForm[];
  /** The pool for another machine of which a token or a place holds the name. */
  readonly heldFor: string | undefined;
  /** The machine that had the name before, if it would get into the control plane by it. */
  readonly former: FormerMachine | undefined;
  /** Requested names and addresses that belong to another owner, each as a clause with that owner. */
  readonly others: readonly string[];
  /** Those that the kubelet of another node reports, likewise. */
  readonly claimed: readonly string[];
  /** Addresses that were recorded of the node, and that are hosts of the API server or the config server. */
  readonly contested: readonly string[];
  /** The Machines of the machine API that name this Node. A kubelet cannot write Machines. */
  readonly machines: readonly MachineOfNode[];
}

export type CsrVerdict =
  /** The suite does not decide this request. */
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
  | "NameOfService"
  | "NameRevoked"
  | "NameOfFormer"
  | "NoPlace"
  | "PlaceSpent"
  | "CredentialUnknown"
  | "PoolUnknown"
  | "AddressClaimed"
  | "AddressUnknown";

/**
 * How long a served configuration keeps its place: meanwhile the machine installs itself and requests its certificate.
 */
export const placeLifeMs = 60 * 60_000;

/** Whether Kubernetes takes this as the name of a node. */
export const isNodeName = isDnsName;

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
  // Nodes that others admitted are theirs to manage. What a Node says of itself makes it none of ours.
  const isOurs = facts.binding !== undefined || facts.isRevoked;
  if (
    !isNode ||
    facts.node === undefined ||
    !isOurs ||
    (request !== undefined && !(kubeletSigners as readonly string[]).includes(request.signer))
  )
    return { verdict: "leave" };
  return judgeOwn(facts);
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
  if (!isNodeName(name)) return deny("Malformed", "the common name holds no name of a node");
  if (name.length > longestNodeName && binding === undefined)
    return deny("Malformed", `names of machines that join have at most ${longestNodeName} characters`);
  if (!pools.includes(pool)) return wait("PoolUnknown", `there is no pool ${pool}`);
  if (node !== undefined) {
    // Whose a bound name is says its record.
    const of = node.pool ?? (binding?.isGood === true ? undefined : binding?.pool);
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
    if (binding === undefined)
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

/**
 * A name bound to a key: only the machine with the key may request again. A request shows who has the key, and not who sends
 * it: requests can be read, and sent again by the credential of another machine. By another configuration than the one that the
 * name was bound by, it is granted only while that takes no certificate out of the record of the machine.
 */
function judgeBound({ publicKey, place }: CsrFacts, binding: NameBinding, asker: Asker): CsrVerdict {
  const { name, pool } = asker;
  if (binding.pool === pool && binding.publicKey === publicKey) {
    if (place.verdict !== "free" && place.verdict !== "unrecorded") return judgePlace(place, asker);
    const isOwn = place.verdict === "free" && place.place.metadata.name === binding.place;
    if (!isOwn && !binding.hasRoom)
      return wait(
        "NameBound",
        `the name ${name} has as many certificates as are recorded of a machine, and this request for its key came by another configuration than the one that it joined by: somebody may send its request again; if its machine has none of these certificates: kubectl certificate approve, with the name of this request`,
      );
    return { verdict: "approve", reason: "NodeJoins", message: `${name} joins pool ${pool}: it asks again` };
  }
  const what =
    binding.pool === pool ? "was given to another key" : `was given to a machine of the pool ${binding.pool}`;
  return wait(
    "NameBound",
    `the name ${name} ${what}, whose certificate is good; if that machine is gone or reinstalled: mco node release ${name}`,
  );
}

function judgeUnbound(facts: CsrFacts, { name, pool }: Asker): CsrVerdict {
  const { place, heldFor, former, shortForms } = facts;
  const newToken = newTokenFor({ name, pool });
  if (heldFor !== undefined)
    return wait(
      "NameReserved",
      `the name ${name} is held for a machine of the pool ${heldFor} by its token, and this machine was not served its configuration by that token`,
    );
  const form = shortForms.find((one) => one.name === name);
  const isHeld = place.verdict === "free" && place.isHeld;
  // The name of an endpoint is often one of a domain. Its machine serves under it only if a token, an administrator or the
  // machine API gives it that name.
  if (form !== undefined && !form.isEndpoint && (form.service !== undefined || !isHeld))
    return wait(
      "NameOfService",
      `pods resolve ${name} ${textOfForm(form)}; give the machine another name${
        form.service === undefined ? `, or name it by a token of its own: ${newToken}` : ""
      }`,
    );
  const verdict = judgePlace(place, { name, pool });
  if (former === undefined || verdict.verdict !== "approve") return verdict;
  // Whoever has a certificate for the name is the node, whichever machine registers first.
  return wait(
    "NameOfFormer",
    `a machine of the pool ${former.pool} had the name ${name}, and has a certificate for it that is good until ${former.until}: it would be one of the control plane by that; give the machine another name, or, if the former one is gone for good: kubectl certificate approve, with the name of this request`,
  );
}

/** What the credential of a request says of the machine that sent it. */
function judgePlace(place: PlaceOfRequest, { name, pool }: Asker): CsrVerdict {
  const newToken = newTokenFor({ name, pool });
  switch (place.verdict) {
    case "free":
      return { verdict: "approve", reason: "NodeJoins", message: `${name} joins pool ${pool}` };
    case "none":
      return wait(
        "NoPlace",
        `no configuration of the pool ${pool} was served with the credential of this request within ${placeLifeMs / 60_000} minutes; start the machine with a token of its own: ${newToken}`,
      );
    case "spent":
      return wait(
        "PlaceSpent",
        `the configuration that was served with the credential of this request let in ${place.machine}, ${
          place.isEnded
            ? "which has lost its name since (mco node release, or another machine has it)"
            : "and lets in no other machine or key"
        }; start the machine with a token of its own: ${newToken}`,
      );
    case "otherName":
      return wait(
        "NameReserved",
        `the token by which this machine was served its configuration is for ${place.machine}; name the machine so, or start it with a token of its own: ${newToken}`,
      );
    case "unrecorded":
      return wait(
        "CredentialUnknown",
        "the API server does not record by which credential the request came (Kubernetes before 1.30), so that nothing says which machine sent it; if it is yours, approve it by hand: kubectl certificate approve",
      );
  }
}

const newTokenFor = ({ name, pool }: Asker) => `mco token create --pool ${shellWord(pool)} --node ${name} --pointer`;

const textOfForm = ({ service, namespace }: ShortForm) =>
  service === undefined ? `as a Service of the namespace ${namespace}` : `as the Service ${service}`;

/** The requests of a registered node: its serving certificate, and its next client certificate. */
function judgeOwn(facts: CsrFacts): CsrVerdict {
  const { requester, request, isRevoked, holder } = facts;
  if (request === undefined) return deny("Malformed", "what is asked for cannot be read");
  const problem = kubeletRequestProblem(request);
  if (problem !== undefined) return deny("Malformed", problem);
  if (request.asked.commonNames[0] !== requester.username)
    return deny("NotItsOwn", `${requester.username} asks for a certificate of ${request.asked.commonNames[0]}`);
  const name = nodeNameIn(request);
  if (isRevoked)
    return wait(
      "NameRevoked",
      `an administrator released the name ${name}, so that its former machine gets no certificate; it can join again by its pool's account, or take the release back: kubectl delete nodebinding ${name}`,
    );
  const isClient = request.signer === signers.kubeletClient;
  // A certificate to serve with gives nobody the identity of the node: it does not wait for what may never be known.
  if (holder === "former" || (holder === "unknown" && isClient)) return wait("NameRevoked", formerText(name, holder));
  return isClient
    ? { verdict: "approve", reason: "NodeRenews", message: `${name} renews its certificate` }
    : judgeServing(facts, { name, request });
}

const formerText = (name: string, holder: "former" | "unknown") =>
  holder === "former"
    ? `this request was sent with a certificate that was not issued for the machine to which the name ${name} belongs; if it is that machine: kubectl certificate approve, with the name of this request`
    : `another machine joined by the name ${name} while a certificate of the former one was valid, and the API server names no certificates of requests (Kubernetes before 1.32), so that the two cannot be told apart until the former one has ended; if the former machine is gone for good: kubectl patch nodebinding ${name} --type merge -p '{"spec":{"formerExpiresAt":null}}'`;

/** A certificate to serve with: for names and addresses of the machine itself, and of nobody else. */
function judgeServing(
  { binding, others, claimed, contested, machines, shortForms }: CsrFacts,
  { name, request }: { readonly name: string; readonly request: KubeletRequest },
): CsrVerdict {
  const { dnsNames, ipAddresses } = request.asked;
  const internal = dnsNames.filter((dns) => isClusterName(dns));
  const noHost = dnsNames.find((dns) => !isDnsName(canonicalHost(dns)));
  if (noHost !== undefined) return deny("Malformed", `${JSON.stringify(clipText(noHost, 253))} is no name of a host`);
  if (others.length > 0 || internal.length > 0)
    return deny(
      "NotItsOwn",
      [...others, ...internal.map((dns) => `${dns} is a name of the cluster's services`)].join("; "),
    );
  const recorded = new Set((binding?.addresses ?? []).map(canonicalHost));
  const isOwnName = (dns: string) => canonicalHost(dns) === canonicalHost(name);
  const form = shortForms.find(
    (one) =>
      dnsNames.includes(one.name) &&
      takesName(one, { isOwn: isOwnName(one.name), isRecorded: recorded.has(canonicalHost(one.name)) }),
  );
  if (form !== undefined)
    return wait(
      "NameOfService",
      `pods resolve ${form.name} ${textOfForm(form)}; give ${
        isOwnName(form.name) ? "the machine another name" : "the machine another host name"
      }, or the ${form.service === undefined ? "namespace" : "Service"}`,
    );
  if (contested.length > 0)
    return wait(
      "AddressClaimed",
      `${contested.join("; ")}, and ${name} joined from there or was given it: see kubectl get endpointslices -n default kubernetes; if it is right that ${name} serves under it: kubectl certificate approve, with the name of this request`,
    );
  if (claimed.length > 0)
    return wait(
      "AddressClaimed",
      `${claimed.join("; ")}; if it is the address of ${name}: mco node address ${name} ADDRESS; if it is not, its kubelet reports what is not its own`,
    );
  // What links Machines with Nodes believes addresses that kubelets report: two Machines of one Node prove nothing.
  const machineAddresses = machines.length === 1 ? (machines[0]?.addresses ?? []) : [];
  // A machine chooses its own name when it joins. By a name with a dot in it, clients outside of the cluster may know something
  // else: it counts only where a token, an administrator or the machine API gave it to the machine.
  const known = new Set([...recorded, ...machineAddresses.map(canonicalHost)]);
  const isOwn = (dns: string) =>
    recorded.has(canonicalHost(dns)) ||
    (isOwnName(dns) && (!canonicalHost(name).includes(".") || known.has(canonicalHost(name))));
  const strange = [
    ...dnsNames.filter((dns) => !isOwn(dns)),
    ...ipAddresses.filter((address) => !known.has(canonicalHost(address))),
  ];
  if (strange.length > 0) {
    const services = shortForms.filter((one) => one.service !== undefined && strange.includes(one.name));
    return wait(
      "AddressUnknown",
      `nothing but the kubelet of ${name} says that ${strange.join(", ")} is its own${
        machines.length > 1
          ? `, and the Machines ${listText(
              machines.map((one) => one.name),
              3,
            )} name it as their Node`
          : ""
      }${services
        .map((one) => `, and pods resolve ${one.name} ${textOfForm(one)}`)
        .join("")}; if so: mco node address ${name} ${strange.map(shellWord).join(" ")}`,
    );
  }
  return { verdict: "approve", reason: "NodeServes", message: `${name} serves under its own names and addresses` };
}

/**
 * Whether a Service or namespace takes a name from the machine that requests to serve under it. A machine serves under its own
 * name with a dot in it only if more than the machine says that it is its own.
 *
 * @param name `isRecorded`: a token or an administrator gave it to the machine.
 */
function takesName(
  { service, isEndpoint, isLater }: ShortForm,
  name: { readonly isOwn: boolean; readonly isRecorded: boolean },
): boolean {
  if (!name.isOwn && !name.isRecorded) return true;
  // An author of a Service by the name of a machine that is there has what the machine had, and loses nothing.
  if (isLater || isEndpoint) return false;
  return service !== undefined || !name.isOwn;
}

/** Names that resolve inside a cluster, so never a machine's: of Services, and of pods by their addresses. */
const isClusterName = (dns: string) =>
  /(^|\.)svc(\.|$)|\.pod$|\.cluster\.local$|^(kubernetes|localhost)(\.|$)/.test(canonicalHost(dns));

/** The node that a readable request names. */
export const nodeNameIn = (request: Pick<KubeletRequest, "asked">): string =>
  (request.asked.commonNames[0] ?? "").slice(nodeIdentity.userPrefix.length);
