import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { type CertificateSigningRequest, type Node, type Service, kubernetes } from "../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { JoinPlace } from "../api/kinds/join-place.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { annotations, joinNamespace, nodeIdentity, objects, signers } from "../api/names.ts";
import { conditionOf, timestampOf } from "../api/schema/object.ts";
import { readCertificateRequest } from "../core/certificates/certificate-request-facts.ts";
import { type AddressOwners, type JoinQuestion, othersIn, placeFor, reservedFor } from "../core/join/join-places.ts";
import { type CsrFacts, type CsrVerdict, type NameBinding, type NodeOfName, judgeCsr } from "../core/join/judge-csr.ts";
import type { KubeletRequest } from "../core/join/kubelet-request.ts";
import { labelsOfJoin, poolOfNode } from "../core/pool/pool-of-node.ts";
import { trimNode, trimService } from "../core/pool/trim.ts";
import { type Caches, type Context, type Controller, type Watch, watching } from "../kube/controller.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../kube/kube-error.ts";
import { type Outcome, done, waiting } from "../kube/outcome.ts";

const indexes = {
  /** By the node that the request is about. */
  node: "node",
  /** Undecided requests, by the pool of the account that asks. */
  open: "open",
} as const;

/** A waiting machine is checked again at this interval, for changes that no watch reports. */
const reconcileAfterSeconds = 60;

const is = ({ status }: CertificateSigningRequest, type: string) =>
  conditionOf(status?.conditions, type)?.status === "True";
const isOpen = (request: CertificateSigningRequest) =>
  !["Approved", "Denied", "Failed"].some((type) => is(request, type));

interface Reading {
  readonly asked: KubeletRequest;
  /** SHA-256 of its public key, in hexadecimal digits. */
  readonly publicKey: string;
}

/** Parsed requests: each is read whenever something changes that it waits for. */
const readings = new WeakMap<CertificateSigningRequest, Reading | "unreadable">();

function readingOf(request: CertificateSigningRequest): Reading | undefined {
  const { spec } = request;
  const known = readings.get(request);
  if (known !== undefined) return known === "unreadable" ? undefined : known;
  const reading = readCertificateRequest(spec.request);
  const fresh: Reading | undefined =
    reading.verdict === "read"
      ? {
          asked: { signer: spec.signerName, usages: spec.usages ?? [], asked: reading.facts },
          publicKey: bytesToHex(sha256(reading.facts.publicKey)),
        }
      : undefined;
  readings.set(request, fresh ?? "unreadable");
  return fresh;
}

/** The nodes that a request is about: one, except for requests that are never granted. */
const nodesOf = (request: CertificateSigningRequest): readonly string[] =>
  (readingOf(request)?.asked.asked.commonNames ?? []).flatMap((name) =>
    name.startsWith(nodeIdentity.userPrefix) ? [name.slice(nodeIdentity.userPrefix.length)] : [],
  );

/** The pool of the account that a machine joins with; `undefined` for other requesters. */
function poolOfAccount({ spec }: CertificateSigningRequest): string | undefined {
  const accounts = `system:serviceaccount:${joinNamespace}:${objects.nodeBootstrapperPrefix}`;
  return spec.username?.startsWith(accounts) === true ? spec.username.slice(accounts.length) : undefined;
}

/** The part of a node that decides about certificates; equal values need no new pass. */
const relevant = (node: Node | undefined) =>
  node === undefined
    ? ""
    : JSON.stringify([
        node.metadata.uid,
        node.metadata.labels,
        node.metadata.annotations?.[annotations.joinedPool],
        node.metadata.annotations?.[annotations.currentConfig] === undefined,
        node.status?.addresses,
        conditionOf(node.status?.conditions, "Ready")?.status,
      ]);

/**
 * Admits machines: approves the certificate that a machine of a pool joins with and those that it requests as a node,
 * denies requests that are never allowed, and gives a joined node the labels of its pool, which its kubelet may not
 * set. Before it approves a client certificate it binds the name to the key, in a NodeBinding. Requests of other users
 * are never touched.
 */
export function joinController(): Controller {
  const memory: JoinMemory = { reported: new Map(), bound: new Map() };
  return {
    name: "join",
    watches: watchesOf(memory),
    owns: [
      "CertificateSigningRequest.status.conditions",
      "Node.metadata.annotations/joined-pool",
      "NodeBinding.spec.publicKey",
      "NodeBinding.spec.expiresAt",
    ],

    async reconcile(key, context): Promise<Outcome> {
      const { caches } = context;
      const request = caches.of(kubernetes.CertificateSigningRequest).get(key);
      if (request === undefined || !isOpen(request)) memory.reported.delete(key);
      if (request === undefined || request.metadata.deletionTimestamp !== undefined) return done();
      if (is(request, "Approved")) return welcome(request, context);
      if (!isOpen(request)) return done();

      const observed = observeJoin(request, memory, context);
      const verdict = judgeCsr(observed.facts);
      switch (verdict.verdict) {
        case "leave":
          return done();
        case "approve":
          if (
            request.spec.signerName === signers.kubeletClient &&
            !(await bindName(request, observed, memory, context))
          )
            return done(1);
          await decide(request, verdict, context);
          return done();
        case "deny":
          await decide(request, verdict, context);
          return done();
        case "wait":
          return wait(request, verdict, memory, context);
      }
    },
  };
}

interface JoinMemory {
  /** Request → what was last reported of it while it waits. */
  readonly reported: Map<string, string>;
  /** Node → its binding as this process wrote it last: the watch brings it later. */
  readonly bound: Map<string, NodeBinding>;
}

function wait(
  request: CertificateSigningRequest,
  { reason, message }: Exclude<CsrVerdict, { verdict: "leave" }>,
  { reported }: JoinMemory,
  { report }: Pick<Context, "report">,
): Outcome {
  const { name } = request.metadata;
  if (reported.get(name) !== message)
    report({ about: request, notice: reason, type: "Warning", message: `Not approved: ${message}` });
  reported.set(name, message);
  return waiting(reason, message, reconcileAfterSeconds);
}

const keysOf = (caches: Caches, index: string, value: string): readonly string[] =>
  caches
    .of(kubernetes.CertificateSigningRequest)
    .byIndex(index, value)
    .map(({ metadata }) => metadata.name);

const watchesOf = ({ bound }: JoinMemory): readonly [Watch, ...Watch[]] => [
  watching<CertificateSigningRequest>({
    resource: kubernetes.CertificateSigningRequest,
    indexes: {
      [indexes.node]: nodesOf,
      [indexes.open]: (request) => (isOpen(request) ? [poolOfAccount(request) ?? ""] : []),
    },
  }),
  watching<Node>({
    resource: kubernetes.Node,
    keep: trimNode,
    concerns: ({ key, before, after }, caches) =>
      relevant(before) === relevant(after) ? [] : keysOf(caches, indexes.node, key),
  }),
  // A machine may be waiting for a new pool, for a place, or for its name.
  watching<MachineConfigPool>({
    resource: MachineConfigPool,
    concerns: ({ key, before, after }, caches) =>
      before === undefined || after === undefined ? keysOf(caches, indexes.open, key) : [],
  }),
  watching<JoinPlace>({
    resource: JoinPlace,
    concerns: ({ before, after }, caches) =>
      before === undefined && after !== undefined ? keysOf(caches, indexes.open, after.spec.pool) : [],
  }),
  watching<NodeBinding>({
    resource: NodeBinding,
    concerns: ({ key, after }, caches) => {
      if (after === undefined || after.spec.publicKey === bound.get(key)?.spec.publicKey) bound.delete(key);
      return keysOf(caches, indexes.node, key);
    },
  }),
  watching<ProvisioningToken>({
    resource: ProvisioningToken,
    concerns: ({ before, after }, caches) =>
      [before, after].flatMap((token) => keysOf(caches, indexes.node, token?.spec.node ?? "")),
  }),
  watching<Service>({ resource: kubernetes.Service, keep: trimService, concerns: () => [] }),
  watching<ControllerConfig>({ resource: ControllerConfig, concerns: () => [] }),
];

interface ObservedJoin {
  readonly facts: CsrFacts;
  readonly binding: NodeBinding | undefined;
  readonly place: JoinPlace | undefined;
}

/**
 * Everything that decides about one request. A binding that the cache does not show yet, or not as it is, is found out
 * when the name is bound: that write is refused then.
 */
function observeJoin(
  request: CertificateSigningRequest,
  { bound }: JoinMemory,
  { caches, clock }: Context,
): ObservedJoin {
  const reading = readingOf(request);
  const name = nodesOf(request)[0] ?? "";
  const now = clock.now();
  const pools = caches.of(MachineConfigPool).list();
  const nodes = caches.of(kubernetes.Node);
  const bindings = caches.of(NodeBinding).list();
  const binding = bound.get(name) ?? caches.of(NodeBinding).get(name);
  const question: JoinQuestion = {
    name,
    pool: poolOfAccount(request) ?? "",
    places: caches.of(JoinPlace).list(),
    tokens: caches.of(ProvisioningToken).list(),
    bindings,
    taken: new Set([...bound.values()].flatMap(({ spec }) => spec.place ?? [])),
    now,
  };
  const place = placeFor(question);
  const node = name === "" ? undefined : nodes.get(name);
  const asked = [...(reading?.asked.asked.dnsNames ?? []), ...(reading?.asked.asked.ipAddresses ?? [])];
  const facts: CsrFacts = {
    namespace: joinNamespace,
    requester: { username: request.spec.username ?? "", groups: request.spec.groups ?? [] },
    request: reading?.asked,
    publicKey: reading?.publicKey ?? "",
    pools: pools.map(({ metadata }) => metadata.name),
    node: node === undefined ? undefined : nodeOfName(node, pools),
    binding: binding === undefined ? undefined : bindingFacts(binding, now),
    place: place?.metadata.name,
    reservedFor: reservedFor(question),
    others: asked.length === 0 ? [] : othersIn(name, asked, addressOwners(caches, bindings)),
  };
  return { facts, binding, place };
}

const bindingFacts = ({ spec }: NodeBinding, now: number): NameBinding => ({
  pool: spec.pool,
  publicKey: spec.publicKey,
  isGood: Date.parse(spec.expiresAt) > now,
  addresses: spec.addresses ?? [],
});

function addressOwners(caches: Caches, bindings: readonly NodeBinding[]): AddressOwners {
  const services = caches
    .of(kubernetes.Service)
    .list()
    .flatMap(({ metadata, spec }) =>
      [...(spec?.clusterIPs ?? []), spec?.clusterIP, ...(spec?.externalIPs ?? [])].flatMap((address) =>
        address === undefined || address === "" || address === "None"
          ? []
          : [[address, `${metadata.namespace}/${metadata.name}`] as const],
      ),
    );
  return {
    nodes: caches
      .of(kubernetes.Node)
      .list()
      .map(({ metadata, status: { addresses = [] } = {} }) => ({
        name: metadata.name,
        addresses: addresses.map(({ address }) => address),
      })),
    bindings,
    services: new Map(services),
    apiServer: apiServerHosts(caches.of(ControllerConfig).get(objects.controllerConfig)),
  };
}

function apiServerHosts(config: ControllerConfig | undefined): readonly string[] {
  const status = config?.spec.infra?.["status"] as Readonly<Record<string, unknown>> | undefined;
  return [status?.["apiServerInternalURI"], status?.["apiServerURL"]].flatMap((url) =>
    typeof url === "string" && URL.canParse(url) ? [new URL(url).hostname] : [],
  );
}

function nodeOfName(node: Node, pools: readonly MachineConfigPool[]): NodeOfName {
  const membership = poolOfNode(node, pools);
  const ready = conditionOf(node.status?.conditions, "Ready")?.status;
  return {
    pool: membership.verdict === "member" ? membership.pool : undefined,
    joinedPool: node.metadata.annotations?.[annotations.joinedPool],
    // A kubelet that is unavailable now was heard from before.
    inService:
      ready === "True" || ready === "Unknown" || node.metadata.annotations?.[annotations.currentConfig] !== undefined,
    names: (node.status?.addresses ?? []).flatMap(({ type, address }) =>
      ["Hostname", "InternalDNS", "ExternalDNS"].includes(type) ? [address] : [],
    ),
  };
}

/** Fields of a binding that has ended and that another machine takes. */
const absent = { place: null, addresses: null, nodeUID: null } as const;

/** kube-controller-manager --cluster-signing-duration: what a request that names no duration gets at most. */
const longestSeconds = 366 * 86_400;

/**
 * Binds the name to the key of a request that is about to be approved: whoever asks for the same name next is refused,
 * also if this process ends before it approves. @returns `false`: another writer was first; it must be judged again.
 */
async function bindName(
  request: CertificateSigningRequest,
  { facts, binding, place }: ObservedJoin,
  { bound }: JoinMemory,
  { kube, clock, signal }: Context,
): Promise<boolean> {
  const [name = ""] = nodesOf(request);
  const until = clock.now() + 1000 * Math.min(longestSeconds, request.spec.expirationSeconds ?? longestSeconds);
  const isSame = binding !== undefined && binding.spec.publicKey === facts.publicKey;
  const isGood = facts.binding?.isGood === true;
  const isNode = facts.requester.username === `${nodeIdentity.userPrefix}${name}`;
  const spec: NodeBinding["spec"] = {
    ...(binding !== undefined && (isNode || isGood)
      ? binding.spec
      : {
          pool: poolOfAccount(request) ?? facts.node?.joinedPool ?? "",
          ...(place === undefined || isNode
            ? {}
            : { place: place.metadata.name, addresses: place.spec.addresses ?? [] }),
        }),
    publicKey: facts.publicKey,
    expiresAt: isSame && Date.parse(binding.spec.expiresAt) > until ? binding.spec.expiresAt : timestampOf(until),
  };
  const metadata = { name, ...(binding === undefined ? {} : { resourceVersion: binding.metadata.resourceVersion }) };
  const object = { apiVersion: NodeBinding.apiVersion, kind: NodeBinding.kind, metadata, spec } as NodeBinding;
  try {
    const written =
      binding === undefined
        ? await kube.create(NodeBinding, object, { signal })
        : await kube.patch(
            NodeBinding,
            { name },
            { type: "merge", body: { metadata, spec: { ...absent, ...spec } } },
            { signal },
          );
    bound.set(name, written);
    return true;
  } catch (error) {
    if (!isConflict(error) && !isAlreadyExists(error) && !isNotFound(error)) throw error;
    return false;
  }
}

/** @returns `false`: another writer was first. */
async function decide(
  request: CertificateSigningRequest,
  { verdict, reason, message }: Exclude<CsrVerdict, { verdict: "leave" }>,
  { kube, report, log, signal }: Context,
): Promise<boolean> {
  const { name, resourceVersion } = request.metadata;
  const condition = { type: verdict === "approve" ? "Approved" : "Denied", status: "True", reason, message };
  try {
    await kube.patch(
      kubernetes.CertificateSigningRequest,
      { name },
      {
        type: "merge",
        body: {
          metadata: { resourceVersion },
          status: { conditions: [...(request.status?.conditions ?? []), condition] },
        },
      },
      { subresource: "approval", signal },
    );
  } catch (error) {
    // Another writer has changed or removed it: the watch reports it and leads to a new pass.
    if (!isConflict(error) && !isNotFound(error)) throw error;
    return false;
  }
  log.info(
    { request: name, requester: request.spec.username, reason },
    verdict === "approve" ? "certificate request approved" : "certificate request denied",
  );
  report({
    about: request,
    notice: reason,
    type: verdict === "approve" ? "Normal" : "Warning",
    message: `${condition.type}: ${message}`,
  });
  return true;
}

/**
 * Gives the node of an admitted machine the labels of its pool, once: a label that is removed afterwards stays removed.
 */
async function welcome(
  request: CertificateSigningRequest,
  { caches, kube, report, signal }: Context,
): Promise<Outcome> {
  const pool = caches.of(MachineConfigPool).get(poolOfAccount(request) ?? "");
  const [name = ""] = nodesOf(request);
  const node = caches.of(kubernetes.Node).get(name);
  if (pool === undefined || node === undefined || node.metadata.annotations?.[annotations.joinedPool] !== undefined)
    return done();
  const membership = poolOfNode(node, caches.of(MachineConfigPool).list());
  // The node has been recreated since, for another pool.
  if (membership.verdict === "member" && membership.pool !== pool.metadata.name) return done();
  const body = {
    metadata: {
      resourceVersion: node.metadata.resourceVersion,
      labels: labelsOfJoin(pool),
      annotations: { [annotations.joinedPool]: pool.metadata.name },
    },
  };
  try {
    await kube.patch(kubernetes.Node, { name }, { type: "merge", body }, { signal });
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
    return done(1);
  }
  report({ about: node, notice: "NodeJoined", message: `Joined pool ${pool.metadata.name}` });
  return done();
}
