import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import {
  type CertificateSigningRequest,
  type Namespace,
  type Node,
  type Service,
  kubernetes,
} from "../api/foreign/kubernetes.ts";
import { type Machine, openshift } from "../api/foreign/openshift.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { JoinPlace } from "../api/kinds/join-place.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { NodeBinding, maxMachineAddresses } from "../api/kinds/node-binding.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { annotations, joinNamespace, machineNamespace, nodeIdentity, objects, signers } from "../api/names.ts";
import { conditionOf, timestampOf } from "../api/schema/object.ts";
import { readCertificateRequest } from "../core/certificates/certificate-request-facts.ts";
import { certificateFacts } from "../core/certificates/certificate-facts.ts";
import { readPem } from "../core/certificates/pem.ts";
import {
  type CertificateHolder,
  certificateIn,
  certificatesAfterJoin,
  credentialIn,
  holderOf,
  requestLifeMs,
  withCertificate,
} from "../core/join/certificate-holder.ts";
import { canonicalHost } from "../core/join/canonical-host.ts";
import { apiServerHosts } from "../core/join/config-server.ts";
import {
  type AddressOwners,
  type ForeignHosts,
  type JoinQuestion,
  type PlaceOfRequest,
  foreignHosts,
  formerMachine,
  heldFor,
  isReleased,
  joinedAt,
  placeOf,
} from "../core/join/join-places.ts";
import { protectedHosts } from "../core/join/protected-hosts.ts";
import {
  type CsrFacts,
  type CsrReason,
  type CsrVerdict,
  type NameBinding,
  type NodeOfName,
  judgeCsr,
} from "../core/join/judge-csr.ts";
import {
  type KubeletRequest,
  boundedRequest,
  kubeletRequestProblem,
  mostNames,
  namedNode,
} from "../core/join/kubelet-request.ts";
import { type ShortForm, shortFormsIn } from "../core/join/service-names.ts";
import { trimRequest } from "../core/join/trim-request.ts";
import { DecisionMeter } from "../core/metrics/decision-meter.ts";
import { isControlPlane } from "../core/pool/member-facts.ts";
import { makesControlPlane, poolOfNode } from "../core/pool/pool-of-node.ts";
import { trimNamespace, trimNode, trimService } from "../core/pool/trim.ts";
import { decodeBase64 } from "../ignition/data-url.ts";
import { type Caches, type Context, type Controller, type Watch, watching } from "../kube/controller.ts";
import { isAlreadyExists, isConflict, isForbidden, isNotFound } from "../kube/kube-error.ts";
import { type Outcome, done, waiting } from "../kube/outcome.ts";
import { RequestBudget } from "./request-budget.ts";

const indexes = {
  /** By the node that the request is about. */
  node: "node",
  /** Undecided requests, by the pool of the account that asks. */
  open: "open",
  /** JoinPlaces by their credential. */
  credential: "credential",
  /** JoinPlaces by the name that they hold. */
  held: "held",
  /** Undecided requests of machines that join, by the credential that they were sent with. */
  sentWith: "sentWith",
} as const;

/** A waiting machine is checked again at this interval, for changes that no watch reports. */
const reconcileAfterSeconds = 60;

/** How long one list of Machines is used. */
const machinesMs = 5000;

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
          asked: boundedRequest({ signer: spec.signerName, usages: spec.usages ?? [], asked: reading.facts }),
          publicKey: bytesToHex(sha256(reading.facts.publicKey)),
        }
      : undefined;
  readings.set(request, fresh ?? "unreadable");
  return fresh;
}

/** A certificate that was issued. */
interface Issued {
  /** SHA-256, in hexadecimal digits. */
  readonly sha256: string;
  /** ISO 8601; `undefined`: it cannot be read. */
  readonly endsAt: string | undefined;
}

/** Read certificates: those of a node are compared with each of its requests. */
const issuedCertificates = new WeakMap<CertificateSigningRequest, Issued | "none">();

/** The certificate that a request was granted; the signer puts it before those that certify it. */
function issuedIn(request: CertificateSigningRequest): Issued | undefined {
  const known = issuedCertificates.get(request);
  if (known !== undefined) return known === "none" ? undefined : known;
  const text = request.status?.certificate ?? "";
  const reading = readPem(new TextDecoder().decode(decodeBase64(text)));
  const [first] = reading.verdict === "read" ? reading.blocks.filter(({ label }) => label === "CERTIFICATE") : [];
  const issued =
    first === undefined
      ? undefined
      : { sha256: bytesToHex(sha256(first.der)), endsAt: certificateFacts(first.der)?.notAfter };
  issuedCertificates.set(request, issued ?? "none");
  return issued;
}

const askedAt = ({ metadata }: CertificateSigningRequest) => Date.parse(metadata.creationTimestamp ?? "");

/** Whether a request was for a client certificate of the key that a name is bound to. */
const isForKey = (request: CertificateSigningRequest, binding: NodeBinding) =>
  request.spec.signerName === signers.kubeletClient && readingOf(request)?.publicKey === binding.spec.publicKey;

/**
 * Whether a request was for a client certificate of the machine that has a name, maybe for a key that it has replaced since.
 * While a certificate of a former machine was valid, the keys of the two could not be told apart. A request that is older than
 * the join is of a machine that had the name before.
 */
const isOfMachine = (request: CertificateSigningRequest, binding: NodeBinding) =>
  isForKey(request, binding) ||
  (request.spec.signerName === signers.kubeletClient &&
    (request.metadata.creationTimestamp ?? "") > joinedAt(binding) &&
    holderOf(binding.spec, { credential: undefined, issued: [], isNew: false, askedAt: askedAt(request) }) ===
      "holder");

/** The node that a request is about. */
function nodeOf(request: CertificateSigningRequest): string | undefined {
  const reading = readingOf(request);
  return reading === undefined ? undefined : namedNode(reading.asked);
}

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
        node.metadata.annotations?.[annotations.currentConfig] === undefined,
        node.status?.addresses,
        conditionOf(node.status?.conditions, "Ready")?.status,
      ]);

/**
 * Admits machines: approves the certificate that a machine of a pool joins with and those that it requests as a node,
 * and denies requests that are never allowed. Before it approves a client certificate it binds the name to the key, in a
 * NodeBinding, by which the binding controller gives the Node its labels. Requests of other users are never touched.
 */
export function joinController(decisions = new DecisionMeter()): Controller {
  const memory: JoinMemory = {
    reported: new Map(),
    bound: new Map(),
    recorded: new Map(),
    byHand: new Set(),
    machines: undefined,
    budget: new RequestBudget(),
  };
  return {
    name: "join",
    watches: watchesOf(memory),
    owns: [
      "CertificateSigningRequest.status.conditions",
      "NodeBinding.spec.publicKey",
      "NodeBinding.spec.expiresAt",
      "NodeBinding.spec.certificates",
      "NodeBinding.spec.formerExpiresAt",
      "JoinPlace.status",
    ],

    async reconcile(key, context): Promise<Outcome> {
      const { caches } = context;
      const request = caches.of(kubernetes.CertificateSigningRequest).get(key);
      if (request === undefined || !isOpen(request)) memory.reported.delete(key);
      if (request === undefined) {
        memory.recorded.delete(key);
        memory.byHand.delete(key);
      }
      if (request === undefined || request.metadata.deletionTimestamp !== undefined) return done();
      if (is(request, "Approved")) return admitted(request, memory, context);
      if (!isOpen(request)) return done();
      const turn = memory.budget.take(budgeted(request), context.clock.monotonic());
      if (turn.verdict !== "judge") return done(turn.verdict === "later" ? turn.afterSeconds : undefined);

      if (awaitsApprovalByHand(request, memory, caches)) return done(1);
      const observed = observeJoin(request, memory, context);
      const verdict = await judgeWithMachine(observed.facts, observed.name, memory, context);
      switch (verdict.verdict) {
        case "leave":
          return done();
        case "approve":
          if (
            request.spec.signerName === signers.kubeletClient &&
            !((await spendPlace(observed, context)) && (await bindName(request, observed, memory, context)))
          )
            return done(1);
          if (await decide(request, verdict, context)) decisions.decided(verdict.verdict, verdict.reason);
          return done();
        case "deny":
          if (await decide(request, verdict, context)) decisions.decided(verdict.verdict, verdict.reason);
          return done();
        case "wait":
          if (memory.reported.get(key) !== verdict.message) decisions.decided(verdict.verdict, verdict.reason);
          return wait(request, verdict, memory, context);
      }
    },
  };
}

/** Judges a request; where only an address is unknown, the machine API is asked whose it is. */
async function judgeWithMachine(
  facts: CsrFacts,
  node: string,
  memory: JoinMemory,
  context: Context,
): Promise<CsrVerdict> {
  const verdict = judgeCsr(facts);
  if (verdict.verdict !== "wait" || verdict.reason !== "AddressUnknown") return verdict;
  const machines = (await machinesOf(memory, context))
    .filter(({ status }) => status?.nodeRef?.name === node)
    .map(({ metadata, status }) => ({
      name: metadata.name,
      addresses: (status?.addresses ?? []).flatMap(({ address }) => address ?? []),
    }));
  return machines.length === 0 ? verdict : judgeCsr({ ...facts, machines });
}

/** All Machines. Requests that wait share one answer: a node may have made thousands. */
async function machinesOf(memory: JoinMemory, { kube, clock, signal }: Context): Promise<readonly Machine[]> {
  const now = clock.monotonic();
  if (memory.machines !== undefined && now - memory.machines.at < machinesMs) return memory.machines.items;
  const found = await kube
    .list(openshift.Machine, { namespace: machineNamespace }, { signal })
    .catch((error: unknown) => {
      // Not every cluster has that API, and rights may be those of an earlier version.
      if (isNotFound(error) || isForbidden(error)) return undefined;
      throw error;
    });
  const items = found?.items ?? [];
  memory.machines = { at: now, items };
  return items;
}

interface JoinMemory {
  /** Request → the last report about it while it waits. */
  readonly reported: Map<string, string>;
  /** Node → its binding as this process wrote it last, and when: the watch brings it later. */
  readonly bound: Map<string, { readonly binding: NodeBinding; readonly at: number }>;
  /** Request → UID of the binding that its certificate was recorded in. */
  readonly recorded: Map<string, string>;
  /** Requests that were approved by hand, and whose names were bound or were not free: a name that is freed later is free. */
  readonly byHand: Set<string>;
  /** As listed last. */
  machines: { readonly at: number; readonly items: readonly Machine[] } | undefined;
  readonly budget: RequestBudget;
}

/**
 * For how long an own write counts more than the watch. An answer may come after what the watch brings of it, and of later
 * writes, so that nothing else would end it.
 */
const ownWriteMs = 10_000;

function bindingOf(
  name: string,
  { bound }: Pick<JoinMemory, "bound">,
  { caches, clock }: Pick<Context, "caches" | "clock">,
): NodeBinding | undefined {
  const own = bound.get(name);
  return own !== undefined && clock.monotonic() - own.at < ownWriteMs ? own.binding : caches.of(NodeBinding).get(name);
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

/**
 * A machine that joins is known by the credential of its own configuration, so that one which makes requests without end
 * delays no other one of its pool.
 */
function budgeted(request: CertificateSigningRequest) {
  const { metadata, spec } = request;
  const isJoining = poolOfAccount(request) !== undefined;
  const credential = isJoining ? credentialIn(spec.extra) : undefined;
  return {
    key: metadata.name,
    requester: [spec.username ?? "", ...(credential === undefined ? [] : [credential])].join(" "),
    isShared: isJoining && credential === undefined,
    createdAt: metadata.creationTimestamp ?? "",
  };
}

const watchesOf = ({ bound, budget }: JoinMemory): readonly [Watch, ...Watch[]] => [
  watching<CertificateSigningRequest>({
    resource: kubernetes.CertificateSigningRequest,
    keep: trimRequest,
    concerns: ({ key, before, after }) => {
      if (before !== undefined) budget.ended(budgeted(before));
      if (after !== undefined && isOpen(after)) budget.opened(budgeted(after));
      return [key];
    },
    indexes: {
      [indexes.node]: (request) => {
        const node = nodeOf(request);
        return node === undefined ? [] : [node];
      },
      [indexes.open]: (request) => (isOpen(request) ? [poolOfAccount(request) ?? ""] : []),
      [indexes.sentWith]: (request) => {
        const credential = isOpen(request) && poolOfAccount(request) !== undefined && credentialIn(request.spec.extra);
        return credential === false || credential === undefined ? [] : [credential];
      },
    },
  }),
  watching<Node>({
    resource: kubernetes.Node,
    keep: trimNode,
    concerns: ({ key, before, after }, caches) =>
      relevant(before) === relevant(after) ? [] : keysOf(caches, indexes.node, key),
  }),
  // A machine may be waiting for a new pool, for its place, or for its name.
  watching<MachineConfigPool>({
    resource: MachineConfigPool,
    concerns: ({ key, before, after }, caches) =>
      before === undefined || after === undefined ? keysOf(caches, indexes.open, key) : [],
  }),
  watching<JoinPlace>({
    resource: JoinPlace,
    concerns: ({ before, after }, caches) =>
      before === undefined && after?.spec.credential !== undefined
        ? keysOf(caches, indexes.sentWith, after.spec.credential)
        : [],
    indexes: {
      [indexes.credential]: ({ spec }) => (spec.credential === undefined ? [] : [spec.credential]),
      [indexes.held]: ({ spec }) => (spec.node === undefined ? [] : [spec.node]),
    },
  }),
  watching<NodeBinding>({
    resource: NodeBinding,
    concerns: ({ key, after }, caches) => {
      if (after === undefined || after.spec.publicKey === bound.get(key)?.binding.spec.publicKey) bound.delete(key);
      return keysOf(caches, indexes.node, key);
    },
  }),
  watching<ProvisioningToken>({
    resource: ProvisioningToken,
    concerns: ({ before, after }, caches) =>
      [before, after].flatMap((token) => keysOf(caches, indexes.node, token?.spec.node ?? "")),
  }),
  watching<Service>({ resource: kubernetes.Service, keep: trimService, concerns: () => [] }),
  watching<Namespace>({ resource: kubernetes.Namespace, keep: trimNamespace, concerns: () => [] }),
  watching<ControllerConfig>({ resource: ControllerConfig, concerns: () => [] }),
];

interface ObservedJoin {
  readonly facts: CsrFacts;
  readonly binding: NodeBinding | undefined;
  readonly name: string;
}

/**
 * Everything that decides about one request. A binding or a place that the cache does not show yet, or not as it is, is
 * found out when the name is bound and the place is spent: that write is refused then.
 */
function observeJoin(request: CertificateSigningRequest, memory: JoinMemory, { caches, clock }: Context): ObservedJoin {
  const reading = readingOf(request);
  const name = nodeOf(request) ?? "";
  const now = clock.now();
  const pools = caches.of(MachineConfigPool).list();
  const nodes = caches.of(kubernetes.Node);
  const binding = bindingOf(name, memory, { caches, clock });
  const places = caches.of(JoinPlace);
  const credential = credentialIn(request.spec.extra);
  const question: JoinQuestion = {
    name,
    pool: poolOfAccount(request) ?? "",
    publicKey: reading?.publicKey ?? "",
    credential,
    places: credential === undefined ? [] : places.byIndex(indexes.credential, credential),
    tokens: caches.of(ProvisioningToken).list(),
    binding,
    now,
  };
  const place = placeOf(question);
  const node = name === "" ? undefined : nodes.get(name);
  const { dnsNames = [], ipAddresses = [] } = reading?.asked.asked ?? {};
  const asked = [...dnsNames, ...ipAddresses];
  const known = binding === undefined ? undefined : bindingFacts(binding, node, now);
  const foreign: ForeignHosts =
    asked.length === 0 || asked.length > mostNames
      ? { others: [], claimed: [], contested: [] }
      : foreignHosts(name, asked, addressOwners(caches, node, { own: known?.addresses ?? [], asked }));
  const facts: CsrFacts = {
    namespace: joinNamespace,
    requester: { username: request.spec.username ?? "", groups: request.spec.groups ?? [] },
    request: reading?.asked,
    publicKey: question.publicKey,
    pools: pools.map(({ metadata }) => metadata.name),
    node: node === undefined ? undefined : nodeOfName(node, pools),
    binding: known,
    isRevoked: binding?.spec.revoked === true,
    holder: binding === undefined ? "holder" : holderOfRequest(request, binding, caches, now),
    place,
    shortForms: asked.length > mostNames ? [] : shortForms([name, ...dnsNames], caches),
    heldFor: heldFor(
      { ...question, places: places.byIndex(indexes.held, name) },
      place.verdict === "free" && place.isHeld,
    ),
    former: makesControlPlane(pools.find(({ metadata }) => metadata.name === question.pool))
      ? formerMachine(binding, question.pool, now)
      : undefined,
    ...foreign,
    machines: [],
  };
  return { facts, binding, name };
}

/** The record of a certificate may follow later than the request that is sent with it: issued ones count at once. */
function holderOfRequest(
  request: CertificateSigningRequest,
  binding: NodeBinding,
  caches: Caches,
  now: number,
): CertificateHolder {
  const credential = certificateIn(request.spec.extra);
  // A machine is a node only after it joined. Where the certificate tells, clocks that differ must not.
  if (credential === undefined && (request.metadata.creationTimestamp ?? "") < joinedAt(binding)) return "former";
  // Only then is it asked which one: a node may have thousands of requests.
  const issued =
    credential === undefined || binding.spec.certificates?.includes(credential) === true
      ? []
      : caches
          .of(kubernetes.CertificateSigningRequest)
          .byIndex(indexes.node, binding.metadata.name)
          .flatMap((other) => (isForKey(other, binding) ? (issuedIn(other)?.sha256 ?? []) : []));
  const isNew = Date.parse(joinedAt(binding)) > now - requestLifeMs;
  return holderOf(binding.spec, { credential, issued, isNew, askedAt: askedAt(request) });
}

/** A released name is free, unless the machine of its key has registered by it again. */
function bindingFacts({ spec }: NodeBinding, node: Node | undefined, now: number): NameBinding | undefined {
  const isGood = Date.parse(spec.expiresAt) > now;
  if (spec.revoked === true || (spec.releasedAt !== undefined && (node === undefined || !isGood))) return undefined;
  return { pool: spec.pool, publicKey: spec.publicKey, isGood, addresses: spec.addresses ?? [] };
}

function shortForms(names: readonly string[], caches: Caches): readonly ShortForm[] {
  if (!names.some((name) => name.includes("."))) return [];
  const services = caches.of(kubernetes.Service).list();
  return shortFormsIn(names, {
    namespaces: new Set(
      caches
        .of(kubernetes.Namespace)
        .list()
        .map(({ metadata }) => metadata.name),
    ),
    services: new Set(services.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)),
  });
}

function addressOwners(
  caches: Caches,
  node: Node | undefined,
  { own, asked }: { readonly own: readonly string[]; readonly asked: readonly string[] },
): AddressOwners {
  return {
    own,
    nodes: caches.of(kubernetes.Node).list().map(ownedBy),
    bindings: caches
      .of(NodeBinding)
      .list()
      .filter(({ spec }) => !isReleased(spec)),
    ...protectedHosts(
      {
        services: caches.of(kubernetes.Service).list(),
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

/** Names and addresses of Nodes, read once: every request is compared with those of all. One that changes is another object. */
const ownedHosts = new WeakMap<Node, AddressOwners["nodes"][number]>();

function ownedBy(node: Node): AddressOwners["nodes"][number] {
  const known = ownedHosts.get(node);
  if (known !== undefined) return known;
  const { metadata, status: { addresses = [] } = {} } = node;
  const hosts = { name: metadata.name, addresses: addresses.map(({ address }) => canonicalHost(address)) };
  ownedHosts.set(node, hosts);
  return hosts;
}

function nodeOfName(node: Node, pools: readonly MachineConfigPool[]): NodeOfName {
  const membership = poolOfNode(node, pools);
  const ready = conditionOf(node.status?.conditions, "Ready")?.status;
  return {
    pool: membership.verdict === "member" ? membership.pool : undefined,
    // A kubelet that is unavailable now was heard from before.
    inService:
      ready === "True" || ready === "Unknown" || node.metadata.annotations?.[annotations.currentConfig] !== undefined,
  };
}

/** Fields of a binding that has ended and that another machine takes. */
const absent = {
  joinedAt: null,
  place: null,
  addresses: null,
  nodeUID: null,
  lastPool: null,
  releasedAt: null,
  revoked: null,
  certificates: null,
  formerExpiresAt: null,
} as const;

/** kube-controller-manager --cluster-signing-duration: what a request that names no duration gets at most. */
const longestSeconds = 366 * 86_400;

/**
 * Binds the name to the key of a request before its approval: the next request for the same name is refused, even if
 * this process ends before it approves. @returns `false`: another writer was first; it must be judged again.
 */
async function bindName(
  request: CertificateSigningRequest,
  { facts, binding, name }: ObservedJoin,
  { bound }: JoinMemory,
  { kube, clock, signal }: Context,
): Promise<boolean> {
  const place = facts.place.verdict === "free" ? facts.place : undefined;
  const until = clock.now() + 1000 * Math.min(longestSeconds, request.spec.expirationSeconds ?? longestSeconds);
  const isSame = binding !== undefined && binding.spec.publicKey === facts.publicKey;
  const isGood = facts.binding?.isGood === true;
  const isNode = facts.requester.username === `${nodeIdentity.userPrefix}${name}`;
  const isOfHolder = binding !== undefined && (isNode || isGood);
  // A machine that joins by the account of its pool again is no longer one whose Node is missing.
  const { releasedAt, lastPool, ...rest } = binding?.spec ?? {};
  // What the pool of its deleted Node was says nothing of its next one.
  const kept = lastPool === undefined || (releasedAt !== undefined && !isNode) ? rest : { ...rest, lastPool };
  const spec: NodeBinding["spec"] = {
    ...(isOfHolder
      ? { ...kept, pool: binding.spec.pool, ...(isNode && releasedAt !== undefined ? { releasedAt } : {}) }
      : {
          ...certificatesAfterJoin(binding?.spec, facts.publicKey, clock.now()),
          pool: poolOfAccount(request) ?? "",
          joinedAt: timestampOf(clock.now()),
          ...(place === undefined ? {} : { place: place.place.metadata.name, addresses: hostsOf(place, name) }),
        }),
    publicKey: facts.publicKey,
    // A node renews to another key: its certificate of the former one is good until its own end.
    expiresAt:
      (isSame || isOfHolder) && Date.parse(binding.spec.expiresAt) > until
        ? binding.spec.expiresAt
        : timestampOf(until),
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
    bound.set(name, { binding: written, at: clock.monotonic() });
    return true;
  } catch (error) {
    if (!isConflict(error) && !isAlreadyExists(error) && !isNotFound(error)) throw error;
    bound.delete(name);
    return false;
  }
}

/** What a machine may serve under: where it fetched its configuration from, and what its token says. */
const hostsOf = ({ place, isHeld }: Extract<PlaceOfRequest, { verdict: "free" }>, name: string) =>
  [...(isHeld ? [name] : []), ...(place.spec.addresses ?? [])].slice(0, maxMachineAddresses);

/**
 * Notes in the place which machine it lets in, before the name is bound and the request is approved: a place that has a
 * machine lets in no other one, whatever becomes of the Node and the binding. A process that ends after this write goes on
 * from it. @returns `false`: another writer was first.
 */
async function spendPlace({ facts, name }: ObservedJoin, { kube, clock, signal }: Context): Promise<boolean> {
  if (facts.place.verdict !== "free" || facts.place.place.status?.machine !== undefined) return true;
  const { metadata } = facts.place.place;
  const status: NonNullable<JoinPlace["status"]> = {
    machine: name,
    publicKey: facts.publicKey,
    joinedAt: timestampOf(clock.now()),
  };
  try {
    await kube.patch(
      JoinPlace,
      { name: metadata.name },
      { type: "merge", body: { metadata: { resourceVersion: metadata.resourceVersion }, status } },
      { subresource: "status", signal },
    );
    return true;
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
    return false;
  }
}

/**
 * Records a certificate that was issued for a key of the machine that has a name, once: a binding lists the last ones, and a node that had
 * many would have the older ones recorded again and again. The request that holds it is removed after an hour.
 *
 * @returns `false`: another writer was first.
 */
async function recordCertificate(
  request: CertificateSigningRequest,
  { bound, recorded }: JoinMemory,
  { caches, kube, clock, signal }: Context,
): Promise<boolean> {
  const name = nodeOf(request) ?? "";
  const binding = bindingOf(name, { bound }, { caches, clock });
  const issued = issuedIn(request);
  if (binding === undefined || issued === undefined || !isOfMachine(request, binding)) return true;
  const { resourceVersion, uid = "" } = binding.metadata;
  if (recorded.get(request.metadata.name) === uid) return true;
  const changes = withCertificate(binding.spec, issued);
  try {
    if (changes !== undefined) {
      const written = await kube.patch(
        NodeBinding,
        { name },
        { type: "merge", body: { metadata: { resourceVersion }, spec: changes } },
        { signal },
      );
      if (bound.has(name)) bound.set(name, { binding: written, at: clock.monotonic() });
    }
    recorded.set(request.metadata.name, uid);
    return true;
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
    bound.delete(name);
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

/** Whether an administrator approved a joining machine by hand. */
const isByHand = (request: CertificateSigningRequest): boolean =>
  is(request, "Approved") &&
  poolOfAccount(request) !== undefined &&
  request.spec.signerName === signers.kubeletClient &&
  conditionOf(request.status?.conditions, "Approved")?.reason !== ("NodeJoins" satisfies CsrReason);

/** Whether the name of a request may go to another one, which was approved by hand and comes later in the queue. */
const awaitsApprovalByHand = (request: CertificateSigningRequest, { byHand }: JoinMemory, caches: Caches): boolean =>
  poolOfAccount(request) !== undefined &&
  caches
    .of(kubernetes.CertificateSigningRequest)
    .byIndex(indexes.node, nodeOf(request) ?? "")
    .some((other) => isByHand(other) && !byHand.has(other.metadata.name));

/**
 * What follows an approval: the record of the certificate. An administrator who approves the request of a joining machine
 * by hand admits it as if its configuration did, so that its name is bound as well.
 */
async function admitted(request: CertificateSigningRequest, memory: JoinMemory, context: Context): Promise<Outcome> {
  if (isByHand(request)) {
    const observed = observeJoin(request, memory, context);
    if (!memory.byHand.has(request.metadata.name) && bindsByHand(request, observed, context)) {
      const isBound = (await spendPlace(observed, context)) && (await bindName(request, observed, memory, context));
      if (!isBound) return done(1);
    }
    memory.byHand.add(request.metadata.name);
  }
  return done((await recordCertificate(request, memory, context)) ? undefined : 1);
}

/**
 * Whether an approval by hand gives a name to its key: the name is free, and was so when the request was made. Requests are kept
 * for an hour, and one of a former machine says nothing about the next one of its name. A Node that was there before the
 * approval is not that of the machine.
 */
function bindsByHand(
  request: CertificateSigningRequest,
  { facts, binding, name }: ObservedJoin,
  { caches }: Pick<Context, "caches">,
): boolean {
  const at = request.metadata.creationTimestamp ?? "";
  const node = caches.of(kubernetes.Node).get(name);
  if (facts.request === undefined || kubeletRequestProblem(facts.request) !== undefined) return false;
  const approvedAt = conditionOf(request.status?.conditions, "Approved")?.lastTransitionTime ?? at;
  if (node !== undefined && (node.metadata.creationTimestamp ?? "") < approvedAt) return false;
  if (binding === undefined) return true;
  const { publicKey, releasedAt, expiresAt } = binding.spec;
  const freeAt = releasedAt ?? expiresAt;
  return publicKey !== facts.publicKey && facts.binding?.isGood !== true && Date.parse(freeAt) < Date.parse(at);
}
