import {
  type CertificateSigningRequest,
  type Namespace,
  type Node,
  type Service,
  kubernetes,
} from "../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { JoinPlace } from "../api/kinds/join-place.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { annotations } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import { certificateIn, credentialIn } from "../core/join/certificate-holder.ts";
import { canonicalHost } from "../core/join/canonical-host.ts";
import { hostsOfBinding } from "../core/join/join-places.ts";
import { hostsOfService } from "../core/join/protected-hosts.ts";
import { isOpen, nodeOfRequest, poolOfRequester } from "../core/join/node-request.ts";
import { trimRequest } from "../core/join/trim-request.ts";
import { trimNamespace, trimNode, trimService } from "../core/pool/trim.ts";
import { type Caches, type Watch, watching } from "../kube/controller.ts";
import type { JoinMemory } from "./join-memory.ts";
import type { BudgetedRequest, RequestBudget } from "./request-budget.ts";

export const joinIndexes = {
  /** By the node that the request is about. */
  node: "node",
  /** Undecided requests, by the pool of the account that asks. */
  open: "open",
  /** JoinPlaces by their credential. */
  credential: "credential",
  /** JoinPlaces by the name that they hold. */
  held: "held",
  /** Nodes, bindings and Services by each of their hosts, in canonical form. */
  host: "host",
  /** Undecided requests of machines that join, by the credential that they were sent with. */
  sentWith: "sentWith",
} as const;

/** The watches that lead to a pass over certificate requests. */
export const joinWatches = ({ bound, budget }: JoinMemory): readonly [Watch, ...Watch[]] => [
  watchRequests(budget),
  watching<Node>({
    resource: kubernetes.Node,
    keep: trimNode,
    concerns: ({ key, before, after }, caches) =>
      relevant(before) === relevant(after) ? [] : keysOf(caches, joinIndexes.node, key),
    indexes: {
      [joinIndexes.host]: ({ metadata, status: { addresses = [] } = {} }) =>
        [metadata.name, ...addresses.map(({ address }) => address)].map(canonicalHost),
    },
  }),
  // A machine may be waiting for a new pool, for its place, or for its name.
  watching<MachineConfigPool>({
    resource: MachineConfigPool,
    concerns: ({ key, before, after }, caches) =>
      before === undefined || after === undefined ? keysOf(caches, joinIndexes.open, key) : [],
  }),
  watching<JoinPlace>({
    resource: JoinPlace,
    concerns: ({ before, after }, caches) =>
      before === undefined && after?.spec.credential !== undefined
        ? keysOf(caches, joinIndexes.sentWith, after.spec.credential)
        : [],
    indexes: {
      [joinIndexes.credential]: ({ spec }) => (spec.credential === undefined ? [] : [spec.credential]),
      [joinIndexes.held]: ({ spec }) => (spec.node === undefined ? [] : [spec.node]),
    },
  }),
  watching<NodeBinding>({
    resource: NodeBinding,
    concerns: ({ key, after }, caches) => {
      if (after === undefined || after.spec.publicKey === bound.get(key)?.binding.spec.publicKey) bound.delete(key);
      return keysOf(caches, joinIndexes.node, key);
    },
    indexes: { [joinIndexes.host]: hostsOfBinding },
  }),
  watching<ProvisioningToken>({
    resource: ProvisioningToken,
    concerns: ({ before, after }, caches) =>
      [before, after].flatMap((token) => keysOf(caches, joinIndexes.node, token?.spec.node ?? "")),
  }),
  watching<Service>({
    resource: kubernetes.Service,
    keep: trimService,
    concerns: () => [],
    indexes: { [joinIndexes.host]: hostsOfService },
  }),
  watching<Namespace>({ resource: kubernetes.Namespace, keep: trimNamespace, concerns: () => [] }),
  watching<ControllerConfig>({ resource: ControllerConfig, concerns: () => [] }),
];

const watchRequests = (budget: RequestBudget): Watch =>
  watching<CertificateSigningRequest>({
    resource: kubernetes.CertificateSigningRequest,
    keep: trimRequest,
    concerns: ({ key, before, after }) => {
      if (before !== undefined) budget.ended(budgetedRequest(before));
      if (after !== undefined && isOpen(after)) budget.opened(budgetedRequest(after));
      return [key];
    },
    indexes: {
      [joinIndexes.node]: (request) => {
        const node = nodeOfRequest(request);
        return node === undefined ? [] : [node];
      },
      [joinIndexes.open]: (request) => (isOpen(request) ? [poolOfRequester(request) ?? ""] : []),
      [joinIndexes.sentWith]: (request) => {
        const isJoining = isOpen(request) && poolOfRequester(request) !== undefined;
        const credential = isJoining ? credentialIn(request.spec.extra) : undefined;
        return credential === undefined ? [] : [credential];
      },
    },
  });

/**
 * A request as its budget knows it. A machine that joins is known by the credential of its own configuration, so that one
 * which makes requests without end delays no other one of its pool; a node by its name and the certificate that it uses, so that
 * a former machine of the name does not delay the next one.
 */
export function budgetedRequest(request: CertificateSigningRequest): BudgetedRequest {
  const { metadata, spec } = request;
  const isJoining = poolOfRequester(request) !== undefined;
  const credential = isJoining ? credentialIn(spec.extra) : undefined;
  return {
    key: metadata.name,
    requester: [spec.username ?? "", ...(credential === undefined ? [] : [credential])].join(" "),
    certificate: isJoining ? undefined : certificateIn(spec.extra),
    isShared: isJoining && credential === undefined,
    createdAt: metadata.creationTimestamp ?? "",
  };
}

/** The part of a node that decides about certificates; equal values need no new pass. */
const relevant = (node: Node | undefined) =>
  node === undefined
    ? ""
    : JSON.stringify([
        node.metadata.uid,
        node.metadata.labels,
        node.metadata.annotations?.[annotations.currentConfig] === undefined,
        node.status?.addresses,
        conditionOf(node.status?.conditions, "Ready")?.status,
      ]);

const keysOf = (caches: Caches, index: string, value: string): readonly string[] =>
  caches
    .of(kubernetes.CertificateSigningRequest)
    .byIndex(index, value)
    .map(({ metadata }) => metadata.name);
