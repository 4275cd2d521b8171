import { type CertificateSigningRequest, type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations, joinNamespace, nodeIdentity, objects } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import { readCertificateRequest } from "../core/certificates/certificate-request-facts.ts";
import { type CsrFacts, type CsrVerdict, type NodeOfName, judgeCsr } from "../core/join/judge-csr.ts";
import type { KubeletRequest } from "../core/join/kubelet-request.ts";
import { labelsOfJoin, poolOfNode } from "../core/pool/pool-of-node.ts";
import { trimNode } from "../core/pool/trim.ts";
import { type Caches, type Context, type Controller, type Watch, watching } from "../kube/controller.ts";
import { isConflict, isNotFound } from "../kube/kube-error.ts";
import { type Outcome, done, waiting } from "../kube/outcome.ts";

const indexes = {
  /** By the node that the request is about. */
  node: "node",
  /** By requester, of requests that were approved. */
  approvedOf: "approved-of",
  /** Undecided requests, in one list. */
  open: "open",
} as const;

/**
 * A waiting machine is checked again at this interval, for changes that no watch reports: other machines that have
 * joined.
 */
const reconcileAfterSeconds = 60;
/** A machine that has joined makes room for one other; not every waiting machine may take it. */
const wokenAtOnce = 3;

const is = ({ status }: CertificateSigningRequest, type: string) =>
  conditionOf(status?.conditions, type)?.status === "True";
const isOpen = (request: CertificateSigningRequest) =>
  !["Approved", "Denied", "Failed"].some((type) => is(request, type));

/** Parsed requests: each is read whenever another one of its pool is checked. */
const readings = new WeakMap<CertificateSigningRequest, KubeletRequest | "unreadable">();

function askedBy(request: CertificateSigningRequest): KubeletRequest | undefined {
  const { spec } = request;
  const known = readings.get(request);
  if (known !== undefined) return known === "unreadable" ? undefined : known;
  const reading = readCertificateRequest(spec.request);
  const asked =
    reading.verdict === "read"
      ? { signer: spec.signerName, usages: spec.usages ?? [], asked: reading.facts }
      : undefined;
  readings.set(request, asked ?? "unreadable");
  return asked;
}

/** The nodes that a request is about: one, except for requests that are never granted. */
const nodesOf = (request: CertificateSigningRequest): readonly string[] =>
  (askedBy(request)?.asked.commonNames ?? []).flatMap((name) =>
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
 * set. Requests of other users are never touched.
 */
export function joinController(): Controller {
  const memory: JoinMemory = { told: new Map(), crowded: new Set(), granted: new Map() };
  return {
    name: "join",
    watches: watchesOf(memory),
    owns: ["CertificateSigningRequest.status.conditions", "Node.metadata.annotations/joined-pool"],

    async reconcile(key, context): Promise<Outcome> {
      const { caches } = context;
      const { told, crowded, granted } = memory;
      const request = caches.of(kubernetes.CertificateSigningRequest).get(key);
      crowded.delete(key);
      if (request === undefined || !isOpen(request)) {
        granted.delete(key);
        told.delete(key);
      }
      if (request === undefined || request.metadata.deletionTimestamp !== undefined) return done();
      if (is(request, "Approved")) return welcome(request, context);
      if (!isOpen(request) || granted.has(key)) return done();

      const verdict = judgeCsr(factsOf(request, caches, [...granted.values()]));
      switch (verdict.verdict) {
        case "leave":
          return done();
        case "approve":
        case "deny":
          if ((await decide(request, verdict, context)) && verdict.verdict === "approve") granted.set(key, request);
          return done();
        case "wait":
          return wait(request, verdict, memory, context);
      }
    },
  };
}

interface JoinMemory {
  /** What was last reported of a waiting request. */
  readonly told: Map<string, string>;
  /** Requests that wait until other machines have joined. */
  readonly crowded: Set<string>;
  /** Approved requests that the watch does not show as approved yet. */
  readonly granted: Map<string, CertificateSigningRequest>;
}

function wait(
  request: CertificateSigningRequest,
  { reason, message }: Exclude<CsrVerdict, { verdict: "leave" }>,
  { told, crowded }: JoinMemory,
  { report }: Pick<Context, "report">,
): Outcome {
  const { name } = request.metadata;
  if (told.get(name) !== message)
    report({ about: request, notice: reason, type: "Warning", message: `Not approved: ${message}` });
  told.set(name, message);
  if (reason === "TooManyUnderWay") crowded.add(name);
  return waiting(reason, message, reconcileAfterSeconds);
}

/** Wakes some requests that wait for room; one that finds none waits again. */
function wake({ crowded }: JoinMemory): readonly string[] {
  const woken = [...crowded].slice(0, wokenAtOnce);
  for (const key of woken) crowded.delete(key);
  return woken;
}

function watchesOf(memory: JoinMemory): readonly [Watch, ...Watch[]] {
  return [
    watching<CertificateSigningRequest>({
      resource: kubernetes.CertificateSigningRequest,
      indexes: {
        [indexes.node]: nodesOf,
        [indexes.approvedOf]: (request) => (is(request, "Approved") ? [request.spec.username ?? ""] : []),
        [indexes.open]: (request) => (isOpen(request) ? [""] : []),
      },
    }),
    watching<Node>({
      resource: kubernetes.Node,
      keep: trimNode,
      concerns: ({ key, before, after }, caches) =>
        relevant(before) === relevant(after)
          ? []
          : [...keysOf(caches, indexes.node, key), ...(before === undefined ? wake(memory) : [])],
    }),
    // A machine may be waiting for a new pool.
    watching<MachineConfigPool>({
      resource: MachineConfigPool,
      concerns: ({ before, after }, caches) =>
        before === undefined || after === undefined ? keysOf(caches, indexes.open, "") : [],
    }),
  ];
}

const keysOf = (caches: Caches, index: string, value: string): readonly string[] =>
  caches
    .of(kubernetes.CertificateSigningRequest)
    .byIndex(index, value)
    .map(({ metadata }) => metadata.name);

/** @param granted requests whose approval the cache may not show yet. */
function factsOf(
  request: CertificateSigningRequest,
  caches: Caches,
  granted: readonly CertificateSigningRequest[],
): CsrFacts {
  const pools = caches.of(MachineConfigPool).list();
  const nodes = caches.of(kubernetes.Node);
  const name = nodesOf(request)[0];
  const node = name === undefined ? undefined : nodes.get(name);
  const approved = caches
    .of(kubernetes.CertificateSigningRequest)
    .byIndex(indexes.approvedOf, request.spec.username ?? "");
  const alsoApproved = granted.filter(({ spec }) => spec.username === request.spec.username);
  const underWay = new Set(
    [...approved, ...alsoApproved].flatMap(nodesOf).filter((other) => other !== name && nodes.get(other) === undefined),
  );
  return {
    namespace: joinNamespace,
    requester: { username: request.spec.username ?? "", groups: request.spec.groups ?? [] },
    request: askedBy(request),
    pools: pools.map(({ metadata }) => metadata.name),
    node: node === undefined ? undefined : nodeOfName(node, pools),
    underWay: underWay.size,
  };
}

function nodeOfName(node: Node, pools: readonly MachineConfigPool[]): NodeOfName {
  const membership = poolOfNode(node, pools);
  const ready = conditionOf(node.status?.conditions, "Ready")?.status;
  const addresses = node.status?.addresses ?? [];
  return {
    pool: membership.verdict === "member" ? membership.pool : undefined,
    joinedPool: node.metadata.annotations?.[annotations.joinedPool],
    // A kubelet that is unavailable now was heard from before.
    inService:
      ready === "True" || ready === "Unknown" || node.metadata.annotations?.[annotations.currentConfig] !== undefined,
    names: addresses.flatMap(({ type, address }) =>
      ["Hostname", "InternalDNS", "ExternalDNS"].includes(type) ? [address] : [],
    ),
    addresses: addresses.flatMap(({ type, address }) => (["InternalIP", "ExternalIP"].includes(type) ? [address] : [])),
  };
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
