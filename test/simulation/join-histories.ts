import { JoinPlace, NodeBinding, ProvisioningToken, kubernetes, names } from "../../src/api/index.ts";
import { McoError } from "../../src/api/errors.ts";
import { readRequest } from "../../src/core/join/node-request.ts";
import {
  type ControllerWrite,
  JoinHarness,
  type Plant,
  apiServerHosts,
  asNode,
  bootstrapper,
  pools,
  requestBy,
  withCredential,
} from "./join-harness.ts";
import {
  type OracleRequest,
  type OracleState,
  emptyState,
  forgotten,
  isDue,
  joined,
  labelProblem,
  labelled,
  nodeDeleted,
  oneForm,
  problemOf,
  released,
  renewed,
  roleLabels,
  signed,
  signedByAnother,
  unlabelled,
} from "./join-oracle.ts";
import { seededRandom } from "./kernel.ts";

const { annotations } = names;

const minuteMs = 60_000;
/** How long the controllers get until they must have seen and done everything. */
const quietMs = { calm: 3000, rough: 20_000 } as const;
/** How long a request that is due may take: requests that wait are judged once a minute. */
const patienceMs = 150_000;

/** One step of a history: what is done, and three numbers that say to whom and how, whatever there is by then. */
export interface Operation {
  readonly what: keyof typeof operations;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  /** The next step comes at once, before the controllers have seen this one. */
  readonly isHasty: boolean;
}

interface Step extends Operation {
  /** A step of another one says who and by which certificate. */
  readonly chosen?: { readonly machine: Machine; readonly certificate: Certificate };
}

export interface History {
  readonly seed: number;
  readonly isRough: boolean;
  /** The API server records with which certificate a request is sent (Kubernetes 1.32). */
  readonly hasCertificates: boolean;
  readonly operations: readonly Operation[];
}

interface Certificate {
  readonly name: string;
  readonly key: number;
  readonly sha256: string;
  readonly endsAt: number;
  /** The controllers were quiet since it was signed, with its request there. */
  isSeen: boolean;
}

interface SentRequest extends OracleRequest {
  status: "open" | "approved" | "denied";
  isSigned: boolean;
  isByHand: boolean;
  /** An approver that is not the suite's has approved it. */
  isByAnother: boolean;
}

interface Machine {
  /** Of a machine that is installed again it is another one. */
  id: string;
  readonly isHonest: boolean;
  /** The name that it asks for if it is honest. */
  readonly name: string;
  readonly address: string;
  config: { readonly credential: string; readonly pool: string; readonly addresses: readonly string[] } | undefined;
  key: number | undefined;
  /** The oldest first. */
  certificates: Certificate[];
}

const tokenName = (index: number) => `token${String(index).padStart(5, "0")}`;
const hostNames = ["w0", "w1", "w2", "w3"] as const;

/** One history as it happens. */
class Run {
  readonly harness: JoinHarness;
  readonly history: History;
  readonly log: string[] = [];
  readonly problems: string[] = [];
  readonly counts: Record<string, number> = {};
  readonly machines: readonly Machine[] = [
    ...[0, 1, 2].map((index) => machineOf(`w${index}`, `10.0.0.${index + 1}`, true)),
    machineOf("liar", "10.0.0.9", false),
  ];
  /** What the oracle says now, and at each step since the controllers were quiet: they may act on what was so then. */
  states: OracleState[] = [emptyState()];
  readonly requests = new Map<string, SentRequest>();
  isSignerLate = false;
  isDown = false;
  #serial = 0;
  #keys = 0;

  constructor(history: History, harness: JoinHarness) {
    this.history = history;
    this.harness = harness;
  }

  get state(): OracleState {
    const last = this.states.at(-1);
    if (last === undefined) throw new Error("bug: no state");
    return last;
  }

  get now(): number {
    return this.harness.now;
  }

  note(text: string): void {
    this.log.push(text);
  }

  problem(text: string): void {
    if (this.problems.length < 3) this.problems.push(text);
    this.log.push(`!! ${text}`);
  }

  count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  /** A new state, before somebody changes something. */
  change(): OracleState {
    this.states.push(structuredClone(this.state));
    return this.state;
  }

  newKey(): number {
    return (this.#keys += 1);
  }

  id(kind: string): string {
    return `${kind}-${(this.#serial += 1)}`;
  }

  machine(index: number): Machine {
    return pick(this.machines, index);
  }

  /** One of those that have a certificate, if there are any. */
  joinedMachine(index: number): Machine {
    const all = this.machines.filter(({ certificates }) => certificates.some(({ endsAt }) => endsAt > this.now + 1000));
    return all.length === 0 ? this.machine(index) : pick(all, index);
  }

  /** A certificate that a machine has and that is good. */
  certificateOf(machine: Machine, index: number): Certificate | undefined {
    const good = machine.certificates.filter(({ endsAt }) => endsAt > this.now + 1000);
    return machine.isHonest || index % 2 === 0 ? good.at(-1) : good[index % Math.max(1, good.length)];
  }

  asMachine({ name, sha256 }: Certificate) {
    return withCredential(asNode(name), this.history.hasCertificates ? `X509SHA256=${sha256}` : undefined);
  }

  async send(
    request: Omit<OracleRequest, "id" | "at" | "lifeMs">,
    how: { readonly as: ReturnType<typeof asNode>; readonly seconds: number | undefined; readonly prefix?: string },
  ): Promise<void> {
    const id = this.id(`${how.prefix ?? ""}${request.kind}`);
    const pem = await requestBy(request.key, request.name, request.hosts);
    this.requests.set(id, {
      ...request,
      id,
      at: this.now,
      lifeMs: 1000 * (how.seconds ?? 365 * 86_400),
      status: "open",
      isSigned: false,
      isByHand: false,
      isByAnother: false,
    });
    this.note(
      `${request.machine} asks as ${how.as.name} (${request.credential ?? "no credential"}): ${id} for ${[request.name, ...request.hosts].join(" ")} by key ${request.key}`,
    );
    await this.harness.ask(how.as, { id, pem, isServing: request.kind === "serve", expirationSeconds: how.seconds });
  }

  wrote(write: ControllerWrite): void {
    if (write.what === "labels") return this.gaveLabels(write.node, write.labels);
    const request = this.requests.get(write.request);
    if (request === undefined) return this.problem(`a request of another installer is decided: ${write.request}`);
    this.note(`   ${write.type}: ${request.id}`);
    this.count(`${request.kind} ${write.type}`);
    const { hasCertificates } = this.history;
    if (write.type === "Denied") {
      request.status = "denied";
      if (this.states.every((state) => isDue(state, request, this.now, hasCertificates)))
        this.problem(`${request.id} of ${request.machine} is denied, and it is due`);
      return;
    }
    // A process that ended before it approved has bound the name to a key: any request by that key shows it.
    const alike = [...this.requests.values()].filter(
      ({ kind, status, name, key, pool }) =>
        kind === "join" && status === "open" && name === request.name && key === request.key && pool === request.pool,
    );
    request.status = "approved";
    const problem = (basis: OracleRequest) => {
      // One cache may show a change that another one does not show yet.
      const mixed = this.states.map(({ nodes }) => ({ ...this.state, nodes }));
      const all = [...mixed, ...this.states].map((state) => problemOf(state, basis, this.now, hasCertificates));
      return all.every((one) => one !== undefined) ? all.at(-1) : undefined;
    };
    const basis = [request, ...alike].find((one) => problem(one) === undefined);
    if (basis === undefined) this.problem(`${request.id} of ${request.machine} is approved: ${problem(request)}`);
    for (const state of this.states) {
      if (request.kind === "join") joined(state, basis ?? request, this.now);
      if (request.kind === "renew") renewed(state, request, this.now);
    }
  }

  gaveLabels(node: string, labels: readonly string[]): void {
    this.note(`   labels of ${node}: ${labels.join(" ")}`);
    this.count("labels given");
    const problems = this.states.map((state) => labelProblem(state, node, labels, this.now));
    if (problems.every((problem) => problem !== undefined) && !this.isAboutToJoin(node, labels))
      this.problem(problems.at(-1) ?? "");
    for (const state of this.states) labelled(state, node, labels);
  }

  /** A name is bound before the request is approved, so that labels may come between the two. */
  isAboutToJoin(node: string, labels: readonly string[]): boolean {
    return [...this.requests.values()].some((request) => {
      if (request.name !== node || request.kind !== "join" || request.status !== "open") return false;
      return this.states.some((state) => {
        if (problemOf(state, request, this.now, this.history.hasCertificates) !== undefined) return false;
        const next = structuredClone(state);
        joined(next, request, this.now);
        return labelProblem(next, node, labels, this.now) === undefined;
      });
    });
  }

  /** Signs what was approved. */
  async sign(): Promise<boolean> {
    let isAny = false;
    for (const request of this.requests.values()) {
      if (request.status !== "approved" || request.isSigned) continue;
      request.isSigned = true;
      const issued = await this.harness.sign(request.id, request.name);
      if (issued === undefined) continue;
      isAny = true;
      if (request.kind === "serve") continue;
      // The key decides whose it is, whoever sent the request.
      const owner = this.machines.find(({ id }) => id === this.ownerOf.get(request.key));
      for (const state of this.states)
        signed(state, request.name, this.ownerOf.get(request.key) ?? "", issued.endsAt, this.now);
      if (request.isByAnother)
        for (const state of this.states) signedByAnother(state, request, issued.endsAt, this.history.hasCertificates);
      if (owner === undefined || (owner.isHonest && owner.key !== request.key)) continue;
      owner.certificates.push({ name: request.name, key: request.key, ...issued, isSeen: false });
    }
    return isAny;
  }

  /** Key → machine. */
  readonly ownerOf = new Map<number, string>();

  /** Lets the controllers see everything, and compares what is so with what must be. */
  async untilQuiet(): Promise<void> {
    const { harness } = this;
    const ms = this.history.isRough ? quietMs.rough : quietMs.calm;
    if (this.isDown) {
      await harness.pass(1000);
      return;
    }
    await harness.pass(ms);
    if (!this.isSignerLate && (await this.sign())) await harness.pass(ms);
    if (!harness.isRunning) await harness.pass(ms);
    this.quiet();
    let missing = this.missing();
    if (missing.length > 0) {
      await harness.pass(patienceMs);
      this.quiet();
      missing = missing.filter((one) => this.missing().includes(one));
    }
    for (const one of missing) this.problem(one);
    await this.compareBindings();
  }

  /** Everything so far was seen. */
  quiet(): void {
    this.states = [this.state];
    const { state } = this;
    for (const [name, holder] of state.names) {
      if (state.nodes.has(name)) holder.isRegistered = true;
      else if (holder.release === "maybe" && holder.isRegistered) holder.release = "nodeDeleted";
    }
    for (const { certificates } of this.machines) for (const one of certificates) one.isSeen = true;
  }

  /** What machines must have and do not. */
  missing(): readonly string[] {
    const { hasCertificates } = this.history;
    const open = [...this.requests.values()]
      .filter((request) => request.status === "open" && isDue(this.state, request, this.now, hasCertificates))
      .filter(({ machine }) => this.machines.some(({ id }) => id === machine))
      .map(({ id, machine }) => `${id} of ${machine} is not approved, and it is due`);
    const due = [...this.requests.values()].filter(({ status }) => status === "open");
    for (const one of due) if (isDue(this.state, one, this.now, hasCertificates)) this.count(`${one.kind} waited for`);
    return [...open, ...unlabelled(this.state, this.now).map((name) => `${name} has no labels of its pool`)];
  }

  /** No record names another pool, or addresses of another machine. */
  async compareBindings(): Promise<void> {
    for (const { metadata, spec } of (await this.harness.kube.list(NodeBinding)).items) {
      const holder = this.state.names.get(metadata.name);
      if (holder === undefined || this.state.unclear.has(metadata.name) || spec.revoked === true) continue;
      const strange = (spec.addresses ?? []).map(oneForm).filter((host) => !holder.hosts.includes(host));
      if (strange.length > 0) this.problem(`the record of ${metadata.name} has ${strange.join(" ")}`);
      if (spec.pool !== holder.pool) this.problem(`the record of ${metadata.name} is of pool ${spec.pool}`);
    }
  }

  /** Removes a machine's knowledge of itself: it is installed again. */
  async serve(
    machine: Machine,
    pool: string,
    how: { readonly isNamed: boolean; readonly addresses: readonly string[] },
  ) {
    const { harness } = this;
    const state = this.change();
    const credential = `JTI=${harness.kernel.random.uuid()}`;
    const endsAt = this.now + 60 * minuteMs;
    const node = how.isNamed ? machine.name : undefined;
    const expiresAt = new Date(endsAt).toISOString();
    if (node !== undefined) {
      const name = tokenName((this.#serial += 1));
      await harness.kube.create(ProvisioningToken, {
        apiVersion: ProvisioningToken.apiVersion,
        kind: ProvisioningToken.kind,
        metadata: { name },
        spec: { pool, tokenHash: "0".repeat(64), maxUses: 1, expiresAt, node, addresses: how.addresses },
      } as never);
      state.tokens.set(name, { name: node, pool, endsAt });
    }
    await harness.kube.create(JoinPlace, {
      apiVersion: JoinPlace.apiVersion,
      kind: JoinPlace.kind,
      metadata: { name: `${pool}-${harness.kernel.random.uuid()}` },
      spec: { pool, expiresAt, credential, ...(node === undefined ? {} : { node }), addresses: how.addresses },
    } as never);
    state.served.set(credential, { credential, pool, node, addresses: how.addresses, endsAt });
    machine.config = { credential, pool, addresses: how.addresses };
    if (machine.isHonest) {
      const id = `${machine.name}.${(this.#serial += 1)}`;
      Object.assign(machine, { id, key: undefined, certificates: [] });
    }
    this.note(
      `${machine.id} is served pool ${pool}${node === undefined ? "" : ` by a token for ${node}`} at ${how.addresses.join(" ")}: ${credential}`,
    );
  }

  /** An honest machine asks for its first certificate. */
  async askFirst(machine: Machine, seconds: number | undefined): Promise<void> {
    if (machine.config === undefined) return;
    machine.key ??= this.newKey();
    this.ownerOf.set(machine.key, machine.id);
    await this.askAs(machine, machine.name, seconds);
  }

  /** The API server takes no requests by the credential of a configuration any more. */
  isOver = ({ credential }: { readonly credential: string }) =>
    (this.state.served.get(credential)?.endsAt ?? 0) <= this.now;

  async askAs(machine: Machine, name: string, seconds: number | undefined): Promise<void> {
    if (machine.config === undefined || machine.key === undefined || this.isOver(machine.config)) return;
    const { pool, credential } = machine.config;
    await this.send(
      {
        kind: "join",
        name,
        key: machine.key,
        machine: machine.id,
        isHonest: machine.isHonest,
        pool,
        credential,
        hosts: [],
        isBySeenCertificate: false,
      },
      { as: withCredential(bootstrapper(pool), credential), seconds },
    );
  }

  async register(machine: Machine, certificate: Certificate, lie: number): Promise<void> {
    const { name } = certificate;
    if (this.state.nodes.has(name)) return;
    const kube = this.harness.as(this.asMachine(certificate));
    const metadata = { name, ...(machine.isHonest ? {} : { annotations: lies(lie) }) };
    await kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata });
    this.change().nodes.set(name, { creator: machine.id, isReady: false, labels: [], reported: [] });
    this.note(`${machine.id} registers as ${name}`);
  }
}

const machineOf = (name: string, address: string, isHonest: boolean): Machine => ({
  id: name,
  isHonest,
  name: isHonest ? name : "w3",
  address,
  config: undefined,
  key: undefined,
  certificates: [],
});

/** What its kubelet says of a Node and may be believed by mistake. */
const lies = (index: number) => ({
  [annotations.joinedPool]: pick(pools, index),
  [annotations.firstPivotConfig]: "rendered-master-0123456789abcdef0123456789abcdef",
});

function pick<T>(list: readonly T[], index: number): T {
  if (list.length === 0) throw new Error("bug: an empty list");
  return list[index % list.length] as T;
}

const lives = [3600, 7200, 86_400, undefined] as const;

/** Every step. One that does not apply does nothing. */
const operations = {
  async serve(run: Run, { a, b, c }: Operation) {
    const machine = run.machine(a);
    // One machine in eight fetches from the address of another: from a pod of its node, or behind a common gateway.
    const isBorrowed = !machine.isHonest && c % 4 === 0;
    const address = isBorrowed ? run.machine(c >> 2).address : machine.address;
    await run.serve(machine, pick(pools, b), {
      isNamed: machine.isHonest && (b >> 2) % 3 === 0,
      addresses: [address, ...((b >> 4) % 4 === 0 ? [`${machine.name}.corp.example`] : [])].slice(
        0,
        machine.isHonest && (b >> 2) % 3 === 0 ? 2 : 1,
      ),
    });
  },

  async ask(run: Run, { a, b, c }: Operation) {
    const machine = run.machine(a);
    if (machine.isHonest) return run.askFirst(machine, pick(lives, b));
    const { config } = c % 5 === 0 ? run.machine(c >> 3) : machine;
    if (config !== undefined && run.isOver(config)) return;
    const { pool, credential } = config ?? {
      pool: pick(pools, c),
      credential: `JTI=${run.harness.kernel.random.uuid()}`,
    };
    const isFresh = machine.key === undefined || (b & 8) !== 0;
    const key = isFresh ? run.newKey() : (machine.key ?? 0);
    machine.key = key;
    run.ownerOf.set(key, machine.id);
    const name = pick(
      [...hostNames, ...hostNames, "w3", "W0", "w1.corp.example", "cp.corp.example", "web.shop", "k0", "W3."],
      b >> 4,
    );
    await run.send(
      {
        kind: "join",
        name,
        key,
        machine: machine.id,
        isHonest: false,
        pool,
        credential,
        hosts: [],
        isBySeenCertificate: false,
      },
      { as: withCredential(bootstrapper(pool), credential), seconds: pick(lives, c >> 5) },
    );
  },

  /** The liar reads the request of another machine and sends the same by its own credential. */
  async copy(run: Run, { a, c }: Operation) {
    const liar = run.machine(3);
    const all = [...run.requests.values()].filter(({ kind, isHonest }) => kind === "join" && isHonest);
    const open = all.filter(({ status }) => status === "open");
    if (liar.config === undefined || run.isOver(liar.config) || all.length === 0) return;
    const original = pick(open.length > 0 ? open : all, a);
    const { pool, credential } = liar.config;
    await run.send(
      { ...original, isHonest: false, pool, credential },
      // A list has it before the other one.
      { as: withCredential(bootstrapper(pool), credential), seconds: pick(lives, c), prefix: "a-" },
    );
  },

  /** The liar sends the request of a machine that has joined again and again; an hour later that machine renews. */
  async flood(run: Run, operation: Operation) {
    const liar = run.machine(3);
    const all = [...run.requests.values()].filter(
      ({ kind, isHonest, status }) => kind === "join" && isHonest && status === "approved",
    );
    if (liar.config === undefined || run.isOver(liar.config) || all.length === 0) return;
    const original = pick(all, operation.a);
    const machine = run.machines.find(({ id }) => id === original.machine);
    const certificate = machine?.certificates.find(({ key }) => key === original.key);
    if (machine === undefined || certificate === undefined) return;
    const { pool, credential } = liar.config;
    const as = withCredential(bootstrapper(pool), credential);
    for (let times = 0; times < 9; times += 1) {
      await run.send({ ...original, isHonest: false, pool, credential }, { as, seconds: 86_400, prefix: "f-" });
      if ((operation.b & 3) === 0) await run.untilQuiet();
    }
    await run.untilQuiet();
    await run.harness.pass(70 * minuteMs);
    await cleanRequests(run);
    await operations.renew(run, { ...operation, chosen: { machine, certificate } });
  },

  async register(run: Run, { a, b }: Operation) {
    const machine = run.joinedMachine(a);
    const certificate = run.certificateOf(machine, b);
    if (certificate !== undefined) await run.register(machine, certificate, b >> 1);
  },

  /** The whole way in, as machines go it that nothing disturbs; one that had joined is installed again by the book. */
  async arrive(run: Run, operation: Operation) {
    const machine = run.machine(operation.a);
    if (machine.isHonest && run.state.names.has(machine.name)) {
      if (operation.b % 2 === 0) await releaseName(run, machine.name);
      if (run.state.nodes.has(machine.name)) await removeNode(run, machine.name);
      await run.untilQuiet();
    }
    await operations.serve(run, operation);
    const seconds = pick(lives, operation.c);
    machine.key ??= run.newKey();
    run.ownerOf.set(machine.key, machine.id);
    // By a name with a dot in it, clients may know something else.
    const isDotted = !machine.isHonest && operation.c % 3 === 0;
    await run.askAs(machine, isDotted ? "grafana.corp.example" : machine.name, seconds);
    if (machine.key === undefined) return;
    await run.untilQuiet();
    const certificate = run.certificateOf(machine, 0);
    if (certificate?.key === machine.key && certificate !== undefined)
      await run.register(machine, certificate, operation.b);
    if (isDotted && certificate !== undefined)
      await operations.serveCertificate(run, { ...operation, chosen: { machine, certificate } });
  },

  /** The liar joins by a free name, its name is taken from it, and the machine arrives whose name it is. */
  async takeOver(run: Run, operation: Operation) {
    const { a, b, c } = operation;
    const [liar, victim] = [run.machine(3), run.machine(a % 3)];
    if (run.state.names.has(victim.name)) return;
    await run.serve(liar, pick(pools, b), { isNamed: false, addresses: [liar.address] });
    liar.key = run.newKey();
    run.ownerOf.set(liar.key, liar.id);
    await run.askAs(liar, victim.name, 86_400);
    await run.untilQuiet();
    const certificate = run.certificateOf(liar, 0);
    if (certificate?.name === victim.name && (b & 4) === 0) await run.register(liar, certificate, c);
    if (!operation.isHasty) await run.untilQuiet();
    if (c % 3 === 0) await releaseName(run, victim.name);
    if (c % 3 === 1) await forgetName(run, victim.name);
    if (run.state.nodes.has(victim.name)) await removeNode(run, victim.name);
    await operations.arrive(run, { ...operation, a: a % 3 });
    // The former machine goes on as before.
    if (certificate === undefined) return;
    if ((b & 8) === 0) await run.register(liar, certificate, c);
    await operations[(b & 16) === 0 ? "renew" : "serveCertificate"](run, {
      ...operation,
      chosen: { machine: liar, certificate },
    });
  },

  async ready(run: Run, { a, b }: Operation) {
    const machine = run.joinedMachine(a);
    const certificate = run.certificateOf(machine, b);
    if (certificate === undefined || !run.state.nodes.has(certificate.name)) return;
    await run.harness
      .as(run.asMachine(certificate))
      .patch(
        kubernetes.Node,
        { name: certificate.name },
        { type: "merge", body: { status: { conditions: [{ type: "Ready", status: "True" }] } } },
        { subresource: "status" },
      );
    const node = run.change().nodes.get(certificate.name);
    if (node !== undefined) node.isReady = true;
    run.note(`${certificate.name} is ready`);
  },

  /** Root on a machine writes what it likes into its Node. */
  async lie(run: Run, operation: Operation) {
    const { a, b, c } = operation;
    const machine = run.machine(3);
    const certificate = run.certificateOf(machine, a);
    if (certificate === undefined || !run.state.nodes.has(certificate.name)) return;
    const { name } = certificate;
    const kube = run.harness.as(run.asMachine(certificate));
    const body =
      b % 3 === 0
        ? { metadata: { annotations: { ...lies(c), ...(c % 5 === 0 ? { [annotations.joinedPool]: null } : {}) } } }
        : undefined;
    run.note(`${name} lies (${body === undefined ? "status" : "annotations"})`);
    if (body !== undefined) {
      await kube.patch(kubernetes.Node, { name }, { type: "merge", body });
      return;
    }
    const victim = run.machine(c);
    const addresses = [
      { type: "InternalIP", address: victim.address },
      { type: "Hostname", address: victim.name },
      { type: "InternalDNS", address: pick(["grafana.corp.example", "api.corp.example", "w0.corp.example"], c >> 2) },
    ];
    await kube.patch(
      kubernetes.Node,
      { name },
      { type: "merge", body: { status: { addresses } } },
      { subresource: "status" },
    );
    const node = run.change().nodes.get(name);
    if (node !== undefined) node.reported = addresses.map(({ address }) => oneForm(address));
    if ((c & 64) === 0) return;
    if ((c & 128) === 0) await run.untilQuiet();
    await operations.serveCertificate(run, { ...operation, b: c >> 8, chosen: { machine, certificate } });
  },

  async renew(run: Run, { a, b, c, chosen }: Step) {
    const machine = chosen?.machine ?? run.joinedMachine(a);
    const certificate = chosen?.certificate ?? run.certificateOf(machine, b);
    if (certificate === undefined) return;
    const key = run.newKey();
    run.ownerOf.set(key, machine.id);
    machine.key = key;
    await run.send(
      {
        kind: "renew",
        name: certificate.name,
        key,
        machine: machine.id,
        isHonest: machine.isHonest,
        pool: undefined,
        credential: certificate.sha256.slice(0, 8),
        hosts: [],
        isBySeenCertificate: certificate.isSeen,
      },
      { as: run.asMachine(certificate), seconds: pick(lives, c) },
    );
  },

  async serveCertificate(run: Run, { a, b, c, chosen }: Step) {
    const machine = chosen?.machine ?? run.joinedMachine(a);
    const certificate = chosen?.certificate ?? run.certificateOf(machine, b);
    if (certificate === undefined) return;
    const { name } = certificate;
    const victim = run.machine(c);
    const own = machine.config?.addresses ?? [];
    const hosts = machine.isHonest
      ? [...new Set([...(name.includes(".") ? [] : [name]), ...own])]
      : pick(
          [
            [name],
            [name, machine.address],
            [name, victim.address],
            [victim.name],
            [name, `::ffff:${victim.address}`],
            [name, "grafana.corp.example"],
            [name, `${victim.name}.corp.example`],
            [name, pick([...apiServerHosts, "API.corp.example.", "api.CORP.example"], c >> 2)],
            [name, pick([...(run.state.nodes.get(name)?.reported ?? []), name], c >> 2)],
            [name, pick([...(run.state.nodes.get(name)?.reported ?? []), name], c >> 4)],
            [name, pick(["web.shop", "web.shop.svc", "WEB.shop.svc.", "10.96.0.77"], c >> 2)],
            [`${name.toUpperCase()}`],
            [name, `${victim.name.toUpperCase()}.`],
          ],
          b >> 3,
        );
    if (hosts.length === 0) return;
    await run.send(
      {
        kind: "serve",
        name,
        key: certificate.key,
        machine: machine.id,
        isHonest: machine.isHonest,
        pool: undefined,
        credential: certificate.sha256.slice(0, 8),
        hosts,
        isBySeenCertificate: certificate.isSeen,
      },
      { as: run.asMachine(certificate), seconds: 3600 },
    );
  },

  async deleteNode(run: Run, { a }: Operation) {
    const list = [...run.state.nodes.keys()].filter((name) => name !== "k0");
    if (list.length === 0) return;
    await removeNode(run, pick(list, a));
  },

  async deleteBinding(run: Run, { a }: Operation) {
    const { items } = await run.harness.kube.list(NodeBinding);
    if (items.length === 0) return;
    await forgetName(run, pick(items, a).metadata.name);
  },

  async release(run: Run, { a }: Operation) {
    const { items } = await run.harness.kube.list(NodeBinding);
    if (items.length === 0) return;
    await releaseName(run, pick(items, a).metadata.name);
  },

  /** `mco node address` */
  async address(run: Run, { a, b }: Operation) {
    const { items } = await run.harness.kube.list(NodeBinding);
    if (items.length === 0) return;
    const { metadata, spec } = pick(items, a);
    const host = pick([`${metadata.name}.corp.example`, `10.1.0.${(a % 200) + 1}`], b);
    const addresses = [...new Set([...(spec.addresses ?? []), host])].slice(0, 16);
    await run.harness.kube.patch(
      NodeBinding,
      { name: metadata.name },
      { type: "merge", body: { metadata: { resourceVersion: metadata.resourceVersion }, spec: { addresses } } },
    );
    const state = run.change();
    const holder = state.names.get(metadata.name);
    if (holder !== undefined) state.names.set(metadata.name, { ...holder, hosts: [...holder.hosts, oneForm(host)] });
    run.note(`mco node address ${metadata.name} ${host}`);
  },

  /** An administrator takes a node out of its pool. */
  async unlabel(run: Run, { a }: Operation) {
    const list = [...run.state.nodes].filter(([name, node]) => name !== "k0" && node.labels.length > 0);
    // What the controllers have not seen they cannot respect.
    if (list.length === 0 || run.states.length > 1 || run.isDown) return;
    const [name] = pick(list, a);
    const all = Object.fromEntries(pools.flatMap(roleLabels).map((label) => [label, null]));
    await run.harness.kube.patch(kubernetes.Node, { name }, { type: "merge", body: { metadata: { labels: all } } });
    const state = run.change();
    const [node, holder] = [state.nodes.get(name), state.names.get(name)];
    if (node !== undefined) node.labels = [];
    if (holder !== undefined) holder.labels = "none";
    run.note(`kubectl label node ${name}: none`);
    await run.untilQuiet();
  },

  async approveByHand(run: Run, { a }: Operation) {
    const list = [...run.requests.values()].filter(({ kind, status }) => kind === "join" && status === "open");
    if (list.length === 0 || run.states.length > 1) return;
    const request = pick(list, a);
    const { name } = request;
    const found = await run.harness.kube.get(kubernetes.CertificateSigningRequest, { name: request.id });
    if (found === undefined) return;
    const conditions = [{ type: "Approved", status: "True", reason: "KubectlApprove", message: "by hand" }];
    await run.harness.kube.patch(
      kubernetes.CertificateSigningRequest,
      { name: request.id },
      { type: "merge", body: { status: { conditions } } },
      { subresource: "approval" },
    );
    Object.assign(request, { status: "approved", isByHand: true });
    const state = run.change();
    // A name that somebody has or had is the administrator's affair.
    const isFree = !state.names.has(name) && !state.nodes.has(name) && !state.unclear.has(name);
    if (isFree) joined(state, request, run.now);
    else state.unclear.add(name);
    run.note(`kubectl certificate approve ${request.id}${isFree ? "" : ` (${name} was not free)`}`);
  },

  /** kube-controller-manager approves renewals of all nodes where RBAC says so, as kubeadm and OpenShift have it. */
  async approveByAnother(run: Run, { a }: Operation) {
    const list = [...run.requests.values()].filter(({ kind, status }) => kind === "renew" && status === "open");
    if (list.length === 0 || (run.states.length > 1 && !run.isDown)) return;
    const request = pick(list, a);
    const { id, name } = request;
    const found = await run.harness.kube.get(kubernetes.CertificateSigningRequest, { name: id });
    const binding = await run.harness.kube.get(NodeBinding, { name });
    if (found === undefined || found.status?.conditions !== undefined) return;
    // The suite was about to approve it.
    if (binding !== undefined && readRequest(found)?.publicKey === binding.spec.publicKey) return;
    const conditions = [{ type: "Approved", status: "True", reason: "AutoApproved", message: "by another approver" }];
    await run.harness.kube.patch(
      kubernetes.CertificateSigningRequest,
      { name: id },
      { type: "merge", body: { status: { conditions } } },
      { subresource: "approval" },
    );
    run.change();
    Object.assign(request, { status: "approved", isByAnother: true });
    const isOfHolder = run.state.names.get(name)?.machine === request.machine;
    run.count(isOfHolder ? "renewals of holders by another" : "renewals of former machines by another");
    run.note(`kube-controller-manager approves ${id}`);
  },

  async deleteRequest(run: Run, { a }: Operation) {
    const list = [...run.requests.values()].filter(({ status }) => status !== "open");
    if (list.length === 0) return;
    const { id, name, isByHand, isByAnother } = pick(list, a);
    // Nobody has seen the approval.
    if ((isByHand || isByAnother) && (run.isDown || run.states.length > 1)) run.change().unclear.add(name);
    await run.harness.kube.delete(kubernetes.CertificateSigningRequest, { name: id }).catch(ignoreRefusal);
    run.note(`kubectl delete csr ${id}`);
  },

  async restart(run: Run) {
    run.note("the controllers are killed and start again");
    run.harness.stopControllers();
    await run.harness.pass(500);
    if (!run.isDown) run.harness.startControllers();
  },

  stop(run: Run) {
    run.note("the controllers stop");
    run.harness.stopControllers();
    run.isDown = true;
    return Promise.resolve();
  },

  start(run: Run) {
    run.note("the controllers start");
    run.isDown = false;
    run.harness.startControllers();
    return Promise.resolve();
  },

  crash(run: Run, { a }: Operation) {
    run.note(`the controllers die after ${1 + (a % 4)} writes`);
    run.harness.crashAfter(1 + (a % 4));
    return Promise.resolve();
  },

  async time(run: Run, { a }: Operation) {
    const minutes = pick([1, 5, 20, 70, 130], a);
    run.note(`${minutes} minutes pass`);
    await run.harness.pass(minutes * minuteMs);
  },

  signer(run: Run) {
    run.isSignerLate = !run.isSignerLate;
    run.note(`the signer is ${run.isSignerLate ? "late" : "back"}`);
    return Promise.resolve();
  },

  async service(run: Run, { a }: Operation) {
    const { kube } = run.harness;
    const state = run.change();
    const name = run.id("s");
    const victim = run.machine(a >> 2);
    const spec = a % 2 === 0 ? { clusterIP: "10.96.0.77" } : { clusterIP: "None", externalIPs: [victim.address] };
    const isNamed = a % 2 === 0 && !state.services.has("web.shop");
    if (!state.namespaces.has("shop"))
      await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } });
    state.namespaces.add("shop");
    if (a % 2 === 0 && !isNamed) return;
    await kube.create(kubernetes.Service, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: isNamed ? "web" : name, namespace: "shop" },
      spec: { ...spec, ports: [{ port: 443 }] },
    } as never);
    if (isNamed) state.services.add("web.shop");
    state.services.add(`${isNamed ? "web" : name}.shop`);
    if (a % 2 === 0) state.cluster.add("10.96.0.77");
    run.note(`a Service with ${JSON.stringify(spec)}`);
  },

  /** A node of kubeadm asks for certificates; nothing decides them here. */
  async kubeadm(run: Run, { a }: Operation) {
    const name = "k0";
    if (!run.state.nodes.has(name)) {
      await run.harness.kube.create(kubernetes.Node, {
        apiVersion: "v1",
        kind: "Node",
        metadata: {
          name,
          labels: { "node-role.kubernetes.io/control-plane": "" },
          annotations: { [annotations.joinedPool]: "master" },
        },
      });
      run.change().nodes.set(name, {
        creator: "kubeadm",
        isReady: true,
        labels: ["node-role.kubernetes.io/control-plane"],
        reported: [],
      });
    }
    const isServing = a % 2 === 0;
    const id = run.id("kubeadm");
    run.note(`${name} asks: ${id}`);
    await run.harness.ask(withCredential(asNode(name), `X509SHA256=${"0".repeat(64)}`), {
      id,
      pem: await requestBy(0, name, isServing ? [name] : []),
      isServing,
      expirationSeconds: undefined,
    });
  },
} as const;

async function removeNode(run: Run, name: string): Promise<void> {
  await run.harness.kube.delete(kubernetes.Node, { name });
  nodeDeleted(run.change(), name);
  run.note(`kubectl delete node ${name}`);
}

/**
 * A process that ended may have bound the name for a request that is open still: whose record the administrator changes is
 * not known then. Nor is what becomes of an approval by hand whose record is deleted.
 */
function leaveUnclear(run: Run, name: string, isDeleted: boolean): void {
  const isUnknown = [...run.requests.values()].some(
    (one) => one.name === name && one.kind === "join" && (one.status === "open" || (isDeleted && one.isByHand)),
  );
  if (isUnknown) run.change().unclear.add(name);
}

/** `mco node release` */
async function releaseName(run: Run, name: string): Promise<void> {
  if ((await run.harness.kube.get(NodeBinding, { name })) === undefined) return;
  leaveUnclear(run, name, false);
  await run.harness.kube.patch(NodeBinding, { name }, { type: "merge", body: { spec: { revoked: true } } });
  released(run.change(), name);
  run.note(`mco node release ${name}`);
}

async function forgetName(run: Run, name: string): Promise<void> {
  if ((await run.harness.kube.get(NodeBinding, { name })) === undefined) return;
  leaveUnclear(run, name, true);
  await run.harness.kube.delete(NodeBinding, { name });
  forgotten(run.change(), name);
  run.note(`kubectl delete nodebinding ${name}`);
}

/** kube-controller-manager removes requests that were decided, an hour later. */
async function cleanRequests(run: Run): Promise<void> {
  for (const { id, status } of run.requests.values())
    if (status !== "open")
      await run.harness.kube.delete(kubernetes.CertificateSigningRequest, { name: id }).catch(ignoreRefusal);
  run.note("the requests of the hour before are removed");
}

const ignoreRefusal = (error: unknown) => {
  if (!(error instanceof McoError)) throw error;
};

const weights: Readonly<Record<keyof typeof operations, number>> = {
  arrive: 12,
  takeOver: 5,
  serve: 10,
  ask: 14,
  copy: 6,
  flood: 3,
  register: 8,
  ready: 3,
  lie: 9,
  renew: 10,
  serveCertificate: 10,
  deleteNode: 6,
  deleteBinding: 2,
  release: 4,
  address: 2,
  unlabel: 3,
  approveByHand: 2,
  approveByAnother: 8,
  deleteRequest: 3,
  restart: 3,
  stop: 3,
  start: 4,
  crash: 3,
  time: 6,
  signer: 2,
  service: 2,
  kubeadm: 2,
};
const weighted = (Object.keys(weights) as (keyof typeof operations)[]).flatMap((what) =>
  Array.from({ length: weights[what] }, () => what),
);

export function historyOf(seed: number): History {
  const random = seededRandom(seed);
  const number = () => Math.floor(random.next() * 65_536);
  const length = 10 + (number() % 16);
  return {
    seed,
    isRough: number() % 3 === 0,
    hasCertificates: number() % 5 !== 0,
    operations: Array.from({ length }, () => ({
      what: pick(weighted, number()),
      // Two of five steps are the liar's.
      a: number() % 5 === 0 ? 4 * number() + 3 : number(),
      b: number(),
      c: number(),
      isHasty: number() % 4 === 0,
    })),
  };
}

export interface Outcome {
  readonly problems: readonly string[];
  /** What happened, a step a line. */
  readonly log: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly events: number;
}

export async function runHistory(history: History, plant?: Plant): Promise<Outcome> {
  let run: Run | undefined;
  const harness = await JoinHarness.start({
    seed: history.seed,
    isRough: history.isRough,
    onWrite: (write) => run?.wrote(write),
    ...(plant === undefined ? {} : { plant }),
  });
  run = new Run(history, harness);
  for (const host of apiServerHosts) run.state.cluster.add(host);
  try {
    await harness.pass(1000);
    for (const operation of history.operations) {
      run.count(operation.what);
      await operations[operation.what](run, operation).catch((error: unknown) => {
        ignoreRefusal(error);
        run.note(`   refused: ${(error as McoError).message.slice(0, 200)}`);
        run.count("refused");
      });
      if (!operation.isHasty) await run.untilQuiet();
      if (run.problems.length > 0) break;
    }
    run.isSignerLate = false;
    if (run.isDown) {
      run.isDown = false;
      harness.startControllers();
    }
    if (run.problems.length === 0) await run.untilQuiet();
  } finally {
    harness.close();
  }
  return { problems: run.problems, log: run.log, counts: run.counts, events: harness.kernel.events };
}

/** The shortest history that goes wrong in the same way and that leaving out one step at a time finds. */
export async function shrink(history: History, plant?: Plant): Promise<{ history: History; outcome: Outcome }> {
  let best = { history, outcome: await runHistory(history, plant) };
  for (let index = history.operations.length - 1; index >= 0; index -= 1) {
    const shorter = { ...best.history, operations: best.history.operations.toSpliced(index, 1) };
    const outcome = await runHistory(shorter, plant);
    if (outcome.problems.length > 0) best = { history: shorter, outcome };
  }
  return best;
}

export const describeHistory = ({ history, outcome }: { history: History; outcome: Outcome }): string =>
  [
    `seed ${history.seed}${history.isRough ? ", rough network" : ""}${history.hasCertificates ? "" : ", certificates are not recorded"}:`,
    ...outcome.log,
    ...outcome.problems.map((problem) => `PROBLEM: ${problem}`),
  ].join("\n  ");
