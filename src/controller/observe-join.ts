import { type CertificateSigningRequest, type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { JoinPlace } from "../api/kinds/join-place.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { annotations, joinNamespace, objects } from "../api/names.ts";
import { type KubeObject, conditionOf } from "../api/schema/object.ts";
import { canonicalHost } from "../core/join/canonical-host.ts";
import { credentialIn } from "../core/join/certificate-holder.ts";
import { apiServerHosts } from "../core/join/config-server.ts";
import type { RequestFacts, JoinPass, JoinView } from "../core/join/join-decision.ts";
import {
  type AddressOwners,
  type ForeignHosts,
  type JoinQuestion,
  foreignHosts,
  formerMachine,
  heldFor,
  isReleased,
  joinedAt,
  mayReturn,
  placeOf,
} from "../core/join/join-places.ts";
import type { CsrFacts, NameBinding, NodeOfName } from "../core/join/judge-csr.ts";
import { mostNames } from "../core/join/kubelet-request.ts";
import {
  type CertificateLines,
  certificateLines,
  hasRoomForCertificate,
  holderOfRequest,
  isByHand,
  noLines,
  nodeOfRequest,
  poolOfRequester,
  readRequest,
} from "../core/join/node-request.ts";
import { protectedHosts } from "../core/join/protected-hosts.ts";
import { type ClusterServices, shortFormsIn } from "../core/join/service-names.ts";
import { isControlPlane } from "../core/pool/member-facts.ts";
import { makesControlPlane, poolOfNode } from "../core/pool/pool-of-node.ts";
import type { Caches, Context } from "../kube/controller.ts";
import { type JoinMemory, bindingOf } from "./join-memory.ts";
import { joinIndexes } from "./join-watches.ts";

/** The findings of the pass, and the binding of the name as it is known now. */
export function observeJoin(pass: JoinPass, memory: JoinMemory, context: Context): JoinView {
  const name = pass.request === undefined ? undefined : nodeOfRequest(pass.request);
  return { ...pass, binding: bindingOf(name ?? "", memory, context) };
}

/**
 * Everything that decides about one request. A binding or a place that the cache does not show yet, or not as it is, is
 * found out when the name is bound and the place is spent: that write is refused then.
 */
export function readFacts(
  request: CertificateSigningRequest,
  memory: JoinMemory,
  { caches, clock }: Pick<Context, "caches" | "clock">,
): RequestFacts {
  const name = nodeOfRequest(request) ?? "";
  const now = clock.now();
  const binding = bindingOf(name, memory, { caches, clock });
  const node = name === "" ? undefined : caches.of(kubernetes.Node).get(name);
  const pools = caches.of(MachineConfigPool).list();
  const { granted } = memory;
  const requests =
    binding === undefined || poolOfRequester(request) === undefined ? [] : requestsAbout(binding.metadata.name, caches);
  const others = requests.filter(({ metadata }) => metadata.name !== request.metadata.name);
  const lines = binding === undefined || requests.length === 0 ? noLines : certificateLines(binding, requests);
  const known =
    binding === undefined
      ? undefined
      : bindingFacts(binding, node, { now, hasRoom: hasRoomForCertificate(binding, others, { lines, granted }) });
  return {
    name,
    binding,
    nodeCreatedAt: node === undefined ? undefined : (node.metadata.creationTimestamp ?? ""),
    lines,
    csr: {
      namespace: joinNamespace,
      requester: { username: request.spec.username ?? "", groups: request.spec.groups ?? [] },
      request: readRequest(request)?.asked,
      pools: pools.map(({ metadata }) => metadata.name),
      node: node === undefined ? undefined : nodeFacts(node, pools),
      binding: known,
      isRevoked: binding?.spec.revoked === true,
      holder:
        binding === undefined
          ? "holder"
          : holderOfRequest(request, binding, () => requestsAbout(binding.metadata.name, caches), now),
      machines: [],
      ...nameFacts(request, { name, binding, now }, caches),
      ...hostFacts(request, { name, node, own: known?.addresses ?? [], binding }, caches),
    },
  };
}

/** Certificates of the machines of a name. */
export const linesOfCertificates = (binding: NodeBinding, { caches }: Pick<Context, "caches">): CertificateLines =>
  certificateLines(binding, requestsAbout(binding.metadata.name, caches));

const requestsAbout = (node: string, caches: Caches): readonly CertificateSigningRequest[] =>
  caches.of(kubernetes.CertificateSigningRequest).byIndex(joinIndexes.node, node);

/** Whether the name of a request may go to another one, which was approved by hand and comes later in the queue. */
export const awaitsApprovalByHand = (
  request: CertificateSigningRequest,
  { byHand }: Pick<JoinMemory, "byHand">,
  { caches }: Pick<Context, "caches">,
): boolean =>
  poolOfRequester(request) !== undefined &&
  caches
    .of(kubernetes.CertificateSigningRequest)
    .byIndex(joinIndexes.node, nodeOfRequest(request) ?? "")
    .some((other) => isByHand(other) && !byHand.has(other.metadata.name));

/** A released name is free, unless the machine of its key has registered by it again, in time to come back. */
function bindingFacts(
  { spec }: NodeBinding,
  node: Node | undefined,
  { now, hasRoom }: { readonly now: number } & Pick<NameBinding, "hasRoom">,
): NameBinding | undefined {
  const isGood = Date.parse(spec.expiresAt) > now;
  const isBack = node !== undefined && isGood && mayReturn(spec, now);
  if (spec.revoked === true || (spec.releasedAt !== undefined && !isBack)) return undefined;
  const { pool, publicKey, place, addresses = [] } = spec;
  return { pool, publicKey, place, isGood, hasRoom, addresses };
}

function nodeFacts(node: Node, pools: readonly MachineConfigPool[]): NodeOfName {
  const membership = poolOfNode(node, pools);
  const ready = conditionOf(node.status?.conditions, "Ready")?.status;
  return {
    pool: membership.verdict === "member" ? membership.pool : undefined,
    // A kubelet that is unavailable now was heard from before.
    inService:
      ready === "True" || ready === "Unknown" || node.metadata.annotations?.[annotations.currentConfig] !== undefined,
  };
}

/** To whom the name goes by places, tokens and the binding of the name. */
function nameFacts(
  request: CertificateSigningRequest,
  { name, binding, now }: Pick<JoinQuestion, "name" | "binding" | "now">,
  caches: Caches,
): Pick<CsrFacts, "publicKey" | "place" | "heldFor" | "former"> {
  const places = caches.of(JoinPlace);
  const credential = credentialIn(request.spec.extra);
  const question: JoinQuestion = {
    name,
    pool: poolOfRequester(request) ?? "",
    publicKey: readRequest(request)?.publicKey ?? "",
    credential,
    places: credential === undefined ? [] : places.byIndex(joinIndexes.credential, credential),
    tokens: caches.of(ProvisioningToken).list(),
    binding,
    now,
  };
  const { pool, publicKey } = question;
  const place = placeOf(question);
  const joined = caches
    .of(MachineConfigPool)
    .list()
    .find(({ metadata }) => metadata.name === pool);
  return {
    publicKey,
    place,
    heldFor: heldFor(
      { ...question, places: places.byIndex(joinIndexes.held, name) },
      place.verdict === "free" && place.isHeld,
    ),
    former: makesControlPlane(joined) ? formerMachine(binding, pool, now) : undefined,
  };
}

const noForeignHosts: ForeignHosts = { others: [], claimed: [], contested: [] };

interface HostQuestion {
  readonly name: string;
  readonly node: Node | undefined;
  /** Names and addresses that the suite recorded of the node. */
  readonly own: readonly string[];
  /** Of the name. */
  readonly binding: NodeBinding | undefined;
}

/** To whom the requested names and addresses belong. */
function hostFacts(
  request: CertificateSigningRequest,
  { name, node, own, binding }: HostQuestion,
  caches: Caches,
): Pick<CsrFacts, "shortForms"> & ForeignHosts {
  const { dnsNames = [], ipAddresses = [] } = readRequest(request)?.asked.asked ?? {};
  const asked = [...dnsNames, ...ipAddresses];
  if (asked.length > mostNames) return { shortForms: [], ...noForeignHosts };
  const foreign =
    asked.length === 0 ? noForeignHosts : foreignHosts(name, asked, addressOwners(caches, { name, node, own, asked }));
  const since = binding === undefined ? undefined : joinedAt(binding);
  return { shortForms: shortFormsIn([name, ...dnsNames], servicesIn(caches), since), ...foreign };
}

const servicesIn = (caches: Caches): ClusterServices => ({
  namespaceSince: (name) => madeAt(caches.of(kubernetes.Namespace).get(name)),
  serviceSince: (namespace, name) => madeAt(caches.of(kubernetes.Service).get(`${namespace}/${name}`)),
});

const madeAt = (object: Pick<Node, "metadata"> | undefined) =>
  object === undefined ? undefined : (object.metadata.creationTimestamp ?? "");

/** Objects of a cache that have one of the hosts. */
const havingHosts = <T extends KubeObject>(
  cache: { byIndex(index: string, value: string): readonly T[] },
  hosts: readonly string[],
): readonly T[] => [...new Set(hosts.flatMap((host) => cache.byIndex(joinIndexes.host, host)))];

/** The owners of the requested hosts: a cluster may have tens of thousands of Services. */
function addressOwners(
  caches: Caches,
  { name, node, own, asked }: Pick<HostQuestion, "name" | "node" | "own"> & { readonly asked: readonly string[] },
): AddressOwners {
  const hosts = asked.map(canonicalHost);
  const itself = caches.of(NodeBinding).get(name);
  const others = havingHosts(caches.of(NodeBinding), hosts).filter((binding) => binding !== itself);
  return {
    own,
    nodes: havingHosts(caches.of(kubernetes.Node), hosts).map(ownedBy),
    bindings: [...(itself === undefined ? [] : [itself]), ...others].filter(({ spec }) => !isReleased(spec)),
    ...protectedHosts(
      {
        services: havingHosts(caches.of(kubernetes.Service), hosts),
        // A small cluster's API server is reached by the name of its control-plane machine. Kubelets cannot set that label.
        apiServer:
          node !== undefined && isControlPlane(node)
            ? []
            : apiServerHosts(caches.of(ControllerConfig).get(objects.controllerConfig)),
      },
      asked,
    ),
  };
}

/** Name and addresses of a Node. */
const ownedBy = ({ metadata, status: { addresses = [] } = {} }: Node): AddressOwners["nodes"][number] => ({
  name: metadata.name,
  addresses: addresses.map(({ address }) => canonicalHost(address)),
});
