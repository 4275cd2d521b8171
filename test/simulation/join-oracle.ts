/**
 * What an administrator would say of machines and names, from what was served, asked, approved and deleted alone. It shares
 * no code with `src/core/join`, so that a mistake there is none here.
 */

/** A configuration that was served. */
export interface ServedConfig {
  readonly credential: string;
  readonly pool: string;
  /** The only name that it is for. */
  readonly node: string | undefined;
  readonly addresses: readonly string[];
  readonly endsAt: number;
  /** The name and the key that it let in. */
  letIn?: { readonly name: string; readonly key: number };
  /** An administrator has released the name of the machine that it let in. */
  isExpelled?: boolean;
  /** A machine that had its name by another configuration has asked again by this one. */
  isDoubtful?: boolean;
}

/** Whose a name is. */
export interface Holder {
  readonly machine: string;
  key: number;
  readonly pool: string;
  readonly since: number;
  /** When its last certificate ends. */
  endsAt: number;
  /** When the last certificate ends of another machine that had the name. */
  formerEndsAt: number;
  /** Hosts that were recorded of it, in one form. */
  hosts: readonly string[];
  readonly config: string | undefined;
  /** `maybe`: its Node was there for too short a time for anybody to see it, or nobody has seen yet that it is gone. */
  release: "none" | "maybe" | "nodeDeleted" | "byAdministrator";
  /** Its Node was there while the controllers were quiet. */
  isRegistered: boolean;
  /** `due`: it must get the labels of its pool; `may`: it can; `given`, `none`: it gets none any more. */
  labels: "due" | "may" | "given" | "none";
}

interface OracleNode {
  readonly creator: string;
  isReady: boolean;
  /** Role labels. */
  labels: readonly string[];
  reported: readonly string[];
}

export interface OracleRequest {
  readonly id: string;
  readonly kind: "join" | "renew" | "serve";
  readonly name: string;
  readonly key: number;
  /** Who sends it. */
  readonly machine: string;
  readonly isHonest: boolean;
  /** Of an account with which machines join. */
  readonly pool: string | undefined;
  readonly credential: string | undefined;
  readonly hosts: readonly string[];
  readonly lifeMs: number;
  readonly at: number;
  /** It is sent with the newest certificate of the machine, which the controllers have seen. */
  readonly isBySeenCertificate: boolean;
}

export interface OracleState {
  readonly names: Map<string, Holder>;
  readonly served: Map<string, ServedConfig>;
  /** Tokens that name a machine. */
  readonly tokens: Map<string, { readonly name: string; readonly pool: string; readonly endsAt: number }>;
  readonly nodes: Map<string, OracleNode>;
  /** Hosts of the API server and of Services, in one form. */
  readonly cluster: Set<string>;
  /** What authors of Services claim. */
  readonly external: Set<string>;
  /** `NAME.NAMESPACE` of Services. */
  readonly services: Set<string>;
  readonly namespaces: Set<string>;
  /** Names with an approval by hand, or a certificate that was signed too late, that nobody can account for. */
  readonly unclear: Set<string>;
  /** Names whose record an administrator deleted, with the end of the certificate that is forgotten. */
  readonly forgotten: Map<string, number>;
}

export const emptyState = (): OracleState => ({
  names: new Map(),
  served: new Map(),
  tokens: new Map(),
  nodes: new Map(),
  cluster: new Set(),
  external: new Set(),
  services: new Set(),
  namespaces: new Set(["default", "kube-system", "kube-public", "kube-node-lease"]),
  unclear: new Set(),
  forgotten: new Map(),
});

/** One form of a host: RFC 4343 for names, the URL standard for addresses. */
export function oneForm(host: string): string {
  if (!host.includes(":")) return host.toLowerCase().replace(/\.+$/, "");
  const plain = new URL(`http://[${host.replace(/[[\]]/g, "")}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(plain);
  if (mapped === null) return plain;
  const [high, low] = [parseInt(mapped[1] ?? "", 16), parseInt(mapped[2] ?? "", 16)];
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

export const roleLabels = (pool: string): readonly string[] =>
  pool === "master"
    ? ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]
    : [...new Set(["node-role.kubernetes.io/worker", `node-role.kubernetes.io/${pool}`])];

/** Timestamps of the API server have seconds; a controller may be as late. */
const slackMs = 2500;

/** Whether a name is a machine's at a time, so that no other machine gets it. */
function owns(state: OracleState, name: string, now: number): Holder | undefined {
  const holder = state.names.get(name);
  if (holder === undefined || holder.endsAt <= now || holder.release === "byAdministrator") return undefined;
  return holder.release === "nodeDeleted" && !state.nodes.has(name) ? undefined : holder;
}

const isNodeName = (name: string) => /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name);

/** The Service that pods take a name for, or the namespace in which it would be one. */
function resolvedByPods(state: OracleState, name: string): "service" | "namespace" | undefined {
  const parts = oneForm(name).split(".");
  if (parts.length < 2 || parts.length > 3) return undefined;
  if (state.services.has(parts.slice(-2).join("."))) return "service";
  return parts.length === 2 && state.namespaces.has(parts[1] ?? "") ? "namespace" : undefined;
}

/** When the last certificate ends by which a machine of another pool would be the next machine of the control plane. */
function certificateOfAnotherPool(state: OracleState, name: string, pool: string): number {
  const before = state.names.get(name);
  return pool !== "master" || before === undefined || before.pool === pool
    ? 0
    : Math.max(before.endsAt, before.formerEndsAt);
}

/** Why a machine must not get its first certificate; `undefined`: it may. */
function joinProblem(state: OracleState, request: OracleRequest, now: number): string | undefined {
  const { name, key, pool = "", credential = "" } = request;
  if (!isNodeName(name)) return `${name} is no name of a node`;
  const node = state.nodes.get(name);
  if (node?.isReady === true) return `the node ${name} is in service`;
  const holder = owns(state, name, now);
  const isFree = holder === undefined || holder.release === "maybe";
  const config = state.served.get(credential);
  if (holder?.key === key && holder.pool === pool) {
    // Whoever sends it: by the configuration of the machine itself, or by one that nobody has used.
    if (config === undefined || config.pool !== pool || config.endsAt <= now)
      return "its credential is of no configuration";
    if (config.isExpelled === true) return "an administrator has released the machine that its configuration let in";
    const { name: other = name, key: otherKey = key } = config.letIn ?? { name: config.node };
    return other === name && otherKey === key ? undefined : `its credential is of ${other} with the key ${otherKey}`;
  }
  if (!isFree) return `${name} belongs to the key ${holder.key} of pool ${holder.pool}`;
  if (config === undefined) return "no configuration was served with its credential";
  if (config.pool !== pool) return `its configuration is of pool ${config.pool}`;
  if (config.endsAt <= now) return "the hour of its configuration is over";
  if (config.isExpelled === true) return "an administrator has released the machine that its configuration let in";
  if (config.letIn !== undefined && (config.letIn.name !== name || config.letIn.key !== key))
    return `its configuration let in ${config.letIn.name} with the key ${config.letIn.key}`;
  if (config.node !== undefined && config.node !== name) return `its configuration is for ${config.node}`;
  if (node !== undefined && !state.names.has(name)) return `the node ${name} is another installer's`;
  const isHeld = config.node === name;
  const held =
    [...state.tokens.values()].some((token) => token.name === name && token.endsAt > now) ||
    [...state.served.values()].some(
      (one) => one.node === name && one.letIn === undefined && one.endsAt > now && one !== config,
    );
  if (held && !isHeld) return `a token holds ${name}`;
  const formerEndsAt = certificateOfAnotherPool(state, name, pool);
  if (formerEndsAt > now + slackMs) return `a machine of another pool has a certificate for ${name}`;
  const resolved = resolvedByPods(state, name);
  return resolved === "service" || (resolved === "namespace" && !isHeld)
    ? `pods take ${name} for a Service`
    : undefined;
}

/** Why a machine must not get its next certificate. */
function renewProblem(state: OracleState, { name, machine }: OracleRequest): string | undefined {
  const holder = state.names.get(name);
  if (holder === undefined) return `nothing says that ${name} joined`;
  if (holder.release === "byAdministrator") return `an administrator released ${name}`;
  return holder.machine === machine ? undefined : `${name} is of ${holder.machine}, and ${machine} asks`;
}

/** Why a machine must not get a certificate for its hosts. */
function serveProblem(
  state: OracleState,
  request: OracleRequest,
  now: number,
  hasCertificates: boolean,
): string | undefined {
  const { name, machine, hosts } = request;
  const holder = state.names.get(name);
  if (holder === undefined) return `nothing says that ${name} joined`;
  if (holder.release === "byAdministrator") return `an administrator released ${name}`;
  if (hasCertificates && holder.machine !== machine) return `${name} is of ${holder.machine}, and ${machine} asks`;
  for (const host of hosts.map(oneForm)) {
    if (!holder.hosts.includes(host) && (host !== name || name.includes(".")))
      return `${host} is not recorded of ${name}`;
    if (state.cluster.has(host)) return `${host} is the cluster's`;
    if (/(^|\.)svc(\.|$)|\.pod$|\.cluster\.local$|^localhost(\.|$)|^kubernetes(\.|$)/.test(host))
      return `${host} is a name of Services`;
    if (resolvedByPods(state, host) === "service") return `pods take ${host} for a Service`;
    for (const other of state.names.keys()) {
      if (other === name) continue;
      const older = owns(state, other, now);
      // A machine that came back and is in no pool holds its name alone.
      if (older === undefined || older.release !== "none") continue;
      if (other === host) return `${host} is the name of another machine`;
      if (older.hosts.includes(host) && older.since < holder.since - slackMs) return `${host} is of ${other}`;
    }
  }
  return undefined;
}

/** Why a certificate must not be given; `undefined`: it may. */
export function problemOf(
  state: OracleState,
  request: OracleRequest,
  now: number,
  hasCertificates: boolean,
): string | undefined {
  if (state.unclear.has(request.name)) return undefined;
  // Where the API server records no certificates, a record that was deleted told two machines apart.
  if (request.kind !== "join" && !hasCertificates && (state.forgotten.get(request.name) ?? 0) > now) return undefined;
  switch (request.kind) {
    case "join":
      return joinProblem(state, request, now);
    case "renew":
      return renewProblem(state, request);
    case "serve":
      return serveProblem(state, request, now, hasCertificates);
  }
}

/**
 * Whether an honest machine must get a certificate. Where a rule of the documents says that it waits, or where the time
 * is too short to say, it need not.
 */
export function isDue(state: OracleState, request: OracleRequest, now: number, hasCertificates: boolean): boolean {
  const { name, machine, key, kind, pool = "" } = request;
  if (!request.isHonest || state.unclear.has(name) || problemOf(state, request, now, hasCertificates) !== undefined)
    return false;
  if (!hasCertificates && state.forgotten.has(name)) return false;
  const holder = state.names.get(name);
  if (kind === "join") {
    const config = state.served.get(request.credential ?? "");
    if (config === undefined || config.isDoubtful === true || config.endsAt < now + 180_000) return false;
    const own = owns(state, name, now);
    if (own !== undefined)
      return own.release === "none" && own.key === key && own.pool === pool && own.config === request.credential;
    if (certificateOfAnotherPool(state, name, pool) > now - 90_000) return false;
    // A name is free when the last certificate has ended, and a released one when the controllers have seen it.
    return (
      !state.nodes.has(name) && (holder === undefined || holder.endsAt < now - 90_000 || holder.release !== "none")
    );
  }
  if (
    !request.isBySeenCertificate ||
    request.at < (holder?.since ?? 0) + slackMs ||
    holder?.machine !== machine ||
    !state.nodes.has(name)
  )
    return false;
  if (holder.release !== "none" || holder.endsAt < now + 60_000) return false;
  // Without a record of certificates, nothing tells the machine from the former one.
  if (kind === "renew") return hasCertificates || holder.formerEndsAt < request.at - slackMs;
  return request.hosts.map(oneForm).every((host) => {
    if (resolvedByPods(state, host) !== undefined) return false;
    for (const [other, one] of state.names)
      if (other !== name && (other === host || (one.hosts.includes(host) && one.since < holder.since + slackMs)))
        return false;
    for (const other of state.nodes.keys()) if (other !== name && other === host) return false;
    return true;
  });
}

/** As the API server writes times. */
const endOf = (time: number) => Math.floor(time / 1000) * 1000;

/** What an approval of a first certificate changes. */
export function joined(state: OracleState, request: OracleRequest, now: number): void {
  const { name, key, pool = "", credential = "", machine, lifeMs } = request;
  const config = state.served.get(credential);
  const isUsable =
    config !== undefined && config.pool === pool && config.endsAt > now && (config.node ?? name) === name;
  const holder = owns(state, name, now);
  const isSpent = config?.letIn !== undefined && (config.letIn.name !== name || config.letIn.key !== key);
  if (holder?.key === key && holder.pool === pool) {
    holder.endsAt = Math.max(holder.endsAt, endOf(now + lifeMs));
    if (isUsable && !isSpent && credential !== holder.config) config.isDoubtful = true;
    if (holder.release === "nodeDeleted")
      Object.assign(holder, { release: "none", labels: "due", isRegistered: false });
    // Whether the controllers have seen that its Node is gone: then it has joined again.
    if (holder.release === "maybe") {
      const isAnew = isUsable && !isSpent && credential !== holder.config;
      holder.isRegistered = false;
      if (isAnew) holder.hosts = [...new Set([...holder.hosts, ...config.addresses.map(oneForm)])];
      holder.labels = "may";
    }
    return;
  }
  if (isUsable && !isSpent) config.letIn = { name, key };
  // Between two steps, the controllers may still have seen that the name was the machine's.
  const before = state.names.get(name);
  if (holder === undefined && (!isUsable || isSpent) && before?.key === key) {
    state.unclear.add(name);
    return;
  }
  const hosts = isUsable && !isSpent ? [...(config.node === name ? [name] : []), ...config.addresses].map(oneForm) : [];
  state.names.set(name, {
    machine,
    key,
    pool,
    since: now,
    endsAt: endOf(now + lifeMs),
    hosts,
    config: isUsable ? credential : undefined,
    formerEndsAt: Math.max(before?.formerEndsAt ?? 0, before === undefined || before.key === key ? 0 : before.endsAt),
    release: "none",
    isRegistered: false,
    labels: "due",
  });
}

export function renewed(state: OracleState, { name, key, lifeMs }: OracleRequest, now: number): void {
  const holder = state.names.get(name);
  if (holder === undefined) return;
  holder.key = key;
  holder.endsAt = Math.max(holder.endsAt, endOf(now + lifeMs));
}

/** The Node of a name is gone. */
export function nodeDeleted(state: OracleState, name: string): void {
  state.nodes.delete(name);
  const holder = state.names.get(name);
  if (holder === undefined) return;
  if (holder.release === "none") holder.release = "maybe";
  if (holder.labels === "given") holder.labels = holder.pool === "master" ? "none" : "due";
  else if (holder.labels === "due") holder.labels = "may";
}

/** `mco node release`. */
export function released(state: OracleState, name: string): void {
  const holder = state.names.get(name);
  if (holder === undefined) return;
  holder.release = "byAdministrator";
  holder.labels = "none";
  const config = state.served.get(holder.config ?? "");
  if (config !== undefined) config.isExpelled = true;
}

/** `kubectl delete nodebinding`: nothing says any more whose the name is, nor that it was released. */
export function forgotten(state: OracleState, name: string): void {
  const config = state.served.get(state.names.get(name)?.config ?? "");
  if (config !== undefined) config.isExpelled = false;
  const { endsAt = 0, formerEndsAt = 0 } = state.names.get(name) ?? {};
  state.forgotten.set(name, Math.max(endsAt, formerEndsAt, state.forgotten.get(name) ?? 0));
  state.names.delete(name);
}

/** A certificate was signed. One that comes after the time that was asked for finds the name free: that is not promised. */
export function signed(state: OracleState, name: string, machine: string, endsAt: number, now: number): void {
  const holder = state.names.get(name);
  if (holder?.machine === machine && holder.endsAt <= now) state.unclear.add(name);
  if (holder?.machine === machine) holder.endsAt = Math.max(holder.endsAt, endsAt);
}

/**
 * Another approver than the suite's has let a node renew its certificate: whose the name is stays as it is. The certificate
 * is good for as long as it is, of the machine that has the name or of a former one; without a record of certificates, both
 * count.
 */
export function signedByAnother(
  state: OracleState,
  { name, machine }: OracleRequest,
  endsAt: number,
  hasCertificates: boolean,
): void {
  const holder = state.names.get(name);
  if (holder === undefined) return;
  if (!hasCertificates || holder.machine !== machine) holder.formerEndsAt = Math.max(holder.formerEndsAt, endsAt);
  if (!hasCertificates || holder.machine === machine) holder.endsAt = Math.max(holder.endsAt, endsAt);
}

/** Labels that a controller gives to a Node. @returns why it must not. */
export function labelProblem(
  state: OracleState,
  name: string,
  given: readonly string[],
  now: number,
): string | undefined {
  if (state.unclear.has(name)) return undefined;
  const record = state.names.get(name);
  // A Node that registered in time may get them when the certificate has ended; whose it is nobody sees.
  const isOwn = record !== undefined && record.release !== "byAdministrator" && state.nodes.has(name);
  const holder = isOwn ? record : owns(state, name, now);
  if (holder === undefined) return `${name} is nobody's`;
  const strange = given.filter((label) => !roleLabels(holder.pool).includes(label));
  if (strange.length > 0) return `the machine of ${name} joined pool ${holder.pool}, and gets ${strange.join(", ")}`;
  return holder.labels === "due" || holder.labels === "may" ? undefined : `${name} gets labels that were taken from it`;
}

export function labelled(state: OracleState, name: string, given: readonly string[]): void {
  const node = state.nodes.get(name);
  const holder = state.names.get(name);
  if (node !== undefined) node.labels = [...new Set([...node.labels, ...given])];
  if (holder === undefined) return;
  holder.labels = "given";
  // A machine that comes back leaves addresses to those that took them.
  const others = [...state.names].flatMap(([other, one]) =>
    other !== name && one.release === "none" ? one.hosts : [],
  );
  if (holder.release === "nodeDeleted") holder.hosts = holder.hosts.filter((host) => !others.includes(host));
  if (holder.release !== "byAdministrator") holder.release = "none";
}

/** Machines whose Nodes must have the labels of their pools. */
export function unlabelled(state: OracleState, now: number): readonly string[] {
  return [...state.names].flatMap(([name, holder]) =>
    holder.labels === "due" &&
    holder.endsAt > now + 60_000 &&
    holder.release !== "byAdministrator" &&
    !state.unclear.has(name) &&
    state.nodes.get(name)?.creator === holder.machine &&
    roleLabels(holder.pool).some((label) => state.nodes.get(name)?.labels.includes(label) !== true)
      ? [name]
      : [],
  );
}
