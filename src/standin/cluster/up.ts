import { greatestOf } from "../../api/schema/extremes.ts";
import { McoError } from "../../api/errors.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import type { ControlHandler } from "../../host/host.ts";
import type { Files } from "../../ports/files.ts";
import type { Forward } from "../../ports/forward.ts";
import type { Ports } from "../../ports/index.ts";
import { type LinkedSignal, linkedSignal } from "../../ports/linked-signal.ts";
import type { Child, Processes } from "../../ports/process.ts";
import { whenAborted } from "../../ports/when-aborted.ts";
import type { DeriveKey } from "../registry/registry-users.ts";
import { bootstrapFolders, bootstrapPointer, bootstrapServer, renderBootstrap } from "./bootstrap.ts";
import { type ClusterRegistry, clusterRegistry } from "./cluster-registry.ts";
import { type ClusterCredentials, clusterCredentials, hostCredentials } from "./credentials.ts";
import { installedBy, pointerPath } from "./host/install-machine.ts";
import { protectFolder } from "./protect-folder.ts";
import { kubernetesProcesses } from "./kubernetes-processes.ts";
import {
  type Addresses,
  type ClusterRecord,
  type HostRecord,
  type Layout,
  addressesOf,
  networkFor,
  ports,
  readRecord,
} from "./layout.ts";

export interface UpOptions extends Ports {
  readonly layout: Layout;
  /** The API server program: our own server, or Kubernetes' programs from the folder `binaries`. */
  readonly apiServer: { readonly kind: "embedded" } | { readonly kind: "kubernetes"; readonly binaries: string };
  readonly controlPlane: number;
  readonly workers: number;
  /** A new cluster gets a registry. */
  readonly registry: boolean;
  /** A new cluster is bootstrapped: its control plane has the rendered configuration before the operator runs. */
  readonly bootstraps: boolean;
  readonly files: Files;
  readonly processes: Processes;
  /** How this program is run: Node.js, its flags, the bundle. */
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly version: string;
  readonly pid: number;
  readonly portIsFree: (host: string, port: number) => Promise<boolean>;
  readonly serveControl: (handle: ControlHandler, signal: AbortSignal) => Promise<void>;
  /** Resolves when the registry's process answers and holds the images that machines start from. */
  readonly afterRegistry: (registry: ClusterRegistry, signal: AbortSignal) => Promise<void>;
  /** Compares passwords of the registry's users with hashes that take long. */
  readonly deriveKey: DeriveKey;
  /**
   * Resolves when the API server answers, and has what the operator needs.
   *
   * @returns what it put back of the user's changes, each as a sentence.
   */
  readonly afterApiServer: (
    credentials: ClusterCredentials,
    registry: ClusterRegistry | undefined,
    addresses: Addresses,
    signal: AbortSignal,
  ) => Promise<readonly string[]>;
  /** What the bootstrap renders from: the objects that {@link afterApiServer} applies later. */
  readonly installed: (registry: ClusterRegistry | undefined, addresses: Addresses) => readonly KubeObject[];
  /** Gives the cluster the bootstrap's journal lines of a folder; resolves when it has them. */
  readonly handOver: (folder: string, signal: AbortSignal) => Promise<void>;
  readonly forward: Forward;
  /** Takes set-user-ID bits away from what an earlier release unpacked below a folder; absent without root, which gave none. */
  readonly clearSetId?: ((folder: string) => Promise<void>) | undefined;
  /** Resolves when a machine that is about to start has a Node with the roles that it must not give itself. */
  readonly registerMachine: (host: HostRecord, signal: AbortSignal) => Promise<void>;
  /**
   * The pointer that an empty machine starts with, with a token for this machine only; its earlier tokens become
   * invalid. `undefined` if the cluster has no config server: its machines then start with credentials.
   */
  readonly issuePointer: (host: HostRecord, signal: AbortSignal) => Promise<string | undefined>;
  readonly onProgress: (line: string) => void;
}

/** The programs of Kubernetes that the API consists of; the others are its clients. */
const servers: ReadonlySet<string> = new Set(["etcd", "kube-apiserver"]);

/** Hosts end first, so that they can still report to the API server; it ends next, and its store last. */
const stopRanks = ["host", "client", "server", "store"] as const;
const stopRank = (name: string): (typeof stopRanks)[number] =>
  name.startsWith("host-")
    ? "host"
    : name === "etcd"
      ? "store"
      : name === "apiserver" || name === "kube-apiserver"
        ? "server"
        : "client";

const bootstrapServerName = "bootstrap-server";
/** How often the supervisor checks whether the control plane is installed. */
const installedLookMs = 200;

/** First and last wait before a process that ended is started again. */
const firstBackoffMs = 250;
const lastBackoffMs = 10_000;
const stopGraceMs = 15_000;

/** A process's start time, in clock ticks since boot: with the id, it names one process for good (proc(5)). */
export async function startTimeOf(files: Files, pid: number): Promise<string | undefined> {
  const stat = await files.readText(`/proc/${pid}/stat`).catch((error: unknown) => {
    // It ended between the opening of the file and the reading.
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return undefined;
    throw error;
  });
  // The second field is the program's name in parentheses, which may hold anything.
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

/** The record of the cluster that runs in a folder, or `undefined` when none does. */
export async function runningCluster(files: Files, layout: Layout): Promise<ClusterRecord | undefined> {
  const record = await readRecord(files, layout);
  if (record === undefined) return undefined;
  return (await startTimeOf(files, record.supervisor.pid)) === record.supervisor.startTime ? record : undefined;
}

/**
 * Brings a one-machine cluster up and keeps its processes alive until `signal` aborts: API server, cluster controllers,
 * one process for each host. If the folder has the record of an earlier run, it continues that cluster.
 *
 * @param onReady called once, when everything has been started.
 */
export async function runCluster(
  options: UpOptions,
  signal: AbortSignal,
  onReady: (record: ClusterRecord) => void,
): Promise<void> {
  const { files, layout } = options;
  const live = await runningCluster(files, layout);
  if (live !== undefined)
    throw new McoError("MCO_CLUSTER_RUNNING", { directory: layout.directory, supervisor: live.supervisor.pid });
  const earlier = await readRecord(files, layout);

  const addresses = addressesOf(earlier?.network ?? (await freeNetwork(options)));
  await protectFolder(files, layout);
  if (earlier !== undefined && earlier.withoutSetId !== true) await clearImages(options);
  const credentials = await clusterCredentials({ ...options, addresses });
  const hasRegistry = earlier === undefined ? options.registry : earlier.registry === true;
  const registry = hasRegistry ? await clusterRegistry({ ...options, addresses }) : undefined;

  const bootstrap = earlier === undefined ? (options.bootstraps ? "running" : undefined) : earlier.bootstrap;
  const hosts = [...(earlier?.hosts ?? hostsFor(options))];
  const supervisor = new Supervisor(
    { ...options, addresses, credentials, clusterRegistry: registry },
    hosts,
    bootstrap,
  );
  const onAbort = () => supervisor.stopping.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    onReady(await supervisor.start());
    await whenAborted(supervisor.stopping.signal);
  } finally {
    await supervisor.stop();
  }
}

/** What earlier releases unpacked of images; the caches of builds in /var keep what is theirs. */
async function clearImages({ files, layout, clearSetId }: UpOptions): Promise<void> {
  const hosts = await files.list(layout.hosts);
  for (const folder of [layout.osImages, ...hosts.map((name) => `${layout.host(name)}/sysroot/deploy`)])
    await clearSetId?.(folder);
}

interface SupervisorOptions extends UpOptions {
  readonly addresses: Addresses;
  readonly credentials: ClusterCredentials;
  readonly clusterRegistry: ClusterRegistry | undefined;
}

/** What the supervisor remembers while the cluster runs. */
interface SupervisorMemory {
  hosts: readonly HostRecord[];
  /** The current process of each name, and its start time. */
  readonly processes: Map<string, { readonly child: Child; readonly startTime: string }>;
  /** One for each process that is kept alive; resolves when the cluster stops. */
  readonly loops: Promise<void>[];
  /** The registry's start, from the first connection on. */
  registry: Promise<void> | undefined;
  /** As the record has it. */
  bootstrap: ClusterRecord["bootstrap"];
  /** The life of the bootstrap server, while it serves the control plane. */
  bootstrapServer: LinkedSignal | undefined;
  /** As the record has them. */
  notices: readonly string[];
  /** Everything has been started: from now on every restart is recorded. */
  ready: boolean;
}

/** Starts the cluster's processes, starts each again when it ends, and records them. */
class Supervisor {
  readonly stopping = new AbortController();
  readonly #options: SupervisorOptions;
  readonly #memory: SupervisorMemory;

  constructor(options: SupervisorOptions, hosts: readonly HostRecord[], bootstrap: ClusterRecord["bootstrap"]) {
    this.#options = options;
    this.#memory = {
      hosts,
      processes: new Map(),
      loops: [],
      registry: undefined,
      bootstrap,
      bootstrapServer: undefined,
      notices: options.clusterRegistry?.notices ?? [],
      ready: false,
    };
  }

  /** @returns the record, once everything has been started. */
  async start(): Promise<ClusterRecord> {
    const { files, layout, credentials, onProgress } = this.#options;
    // The authorities that the whole cluster trusts for the API server: at first the cluster's own, and more while it
    // is replaced.
    if ((await files.stat(layout.trustedAuthorities)) === undefined)
      await files.write(layout.trustedAuthorities, credentials.authority.certificate);
    onProgress(`API server at ${credentials.serverUrl}`);
    await this.#writeRecord();
    await this.#forwardRegistry();
    await Promise.all([this.#startApi(), this.#startBootstrap()]);
    for (const notice of this.#memory.notices) onProgress(notice);
    await this.#forwardConfigServers();
    if (this.#memory.hosts.length > 0) onProgress(`starting ${this.#memory.hosts.map(({ name }) => name).join(", ")}`);
    for (const host of this.#memory.hosts) await this.#startHost(host);
    await this.#options.serveControl((verb, argument) => this.#control(verb, argument), this.stopping.signal);
    this.#memory.ready = true;
    if (this.#memory.bootstrap === "running") this.#memory.loops.push(this.#completeBootstrap());
    return this.#writeRecord();
  }

  async stop(): Promise<void> {
    const { files, layout } = this.#options;
    this.stopping.abort(new Error("the cluster stops"));
    for (const rank of stopRanks)
      await stopAll(
        [...this.#memory.processes].filter(([name]) => stopRank(name) === rank).map(([, { child }]) => child),
        this.#options,
      );
    await Promise.all(this.#memory.loops);
    const last = await readRecord(files, layout);
    if (last !== undefined)
      await files.write(
        layout.record,
        JSON.stringify({ ...last, processes: [], supervisor: { pid: 0, startTime: "" } }, undefined, 2),
        { mode: 0o600 },
      );
  }

  /** The API server and its controllers: our own, or Kubernetes' programs. */
  async #startApi(): Promise<void> {
    const { apiServer, layout, addresses, credentials, clusterRegistry: registry } = this.#options;
    const afterApiServer = async () => {
      const notices = await this.#options.afterApiServer(credentials, registry, addresses, this.stopping.signal);
      this.#memory.notices = [...this.#memory.notices, ...notices];
    };
    if (apiServer.kind === "embedded") {
      this.#supervise("apiserver", ["apiserver", "--dir", layout.directory]);
      await afterApiServer();
      this.#supervise("cluster-controllers", ["cluster-controllers", "--dir", layout.directory]);
      return;
    }
    const parts = await kubernetesProcesses({ ...this.#options, binaries: apiServer.binaries });
    // Its programs know no lifeline: the kernel ends them with us (prctl(2) PR_SET_PDEATHSIG).
    const start = ({ name, program, args }: (typeof parts)[number]) =>
      this.#keepAlive(name, "setpriv", ["--pdeathsig", "TERM", "--", program, ...args]);
    for (const part of parts.filter(({ name }) => servers.has(name))) start(part);
    await afterApiServer();
    for (const part of parts.filter(({ name }) => !servers.has(name))) start(part);
  }

  /**
   * Renders the first configurations, and starts the server that gives them to the machines of the control plane. None
   * of it needs the API server.
   */
  async #startBootstrap(): Promise<void> {
    const { addresses, clusterRegistry: registry, installed, onProgress } = this.#options;
    if (this.#memory.bootstrap !== "running") return;
    onProgress("bootstrap: rendering the first configurations");
    await renderBootstrap(installed(registry, addresses), this.#options, this.stopping.signal);
    for (const host of await this.#notInstalled()) await this.#writePointer(host);
    const life = linkedSignal(this.stopping.signal);
    this.#memory.bootstrapServer = life;
    this.#supervise(bootstrapServerName, await bootstrapServer(this.#options), life.signal);
  }

  /** Machines of the control plane that wait for their first configuration. */
  async #notInstalled(): Promise<readonly HostRecord[]> {
    const { files, layout } = this.#options;
    const waiting: HostRecord[] = [];
    for (const host of this.#memory.hosts)
      if (host.bootstraps === true && (await installedBy(files, layout.host(host.name))) === undefined)
        waiting.push(host);
    return waiting;
  }

  /**
   * Ends the bootstrap once the control plane has its configuration: stops its server, and hands the journal of its
   * programs to the cluster. A bootstrap that does not come so far is completed by the next run.
   */
  async #completeBootstrap(): Promise<void> {
    const { clock, layout, log, handOver } = this.#options;
    const stopping = this.stopping.signal;
    try {
      while ((await this.#notInstalled()).length > 0) await clock.sleep(installedLookMs, stopping);
      const server = this.#memory.processes.get(bootstrapServerName);
      this.#memory.bootstrapServer?.abort(new Error("the bootstrap is over"));
      this.#memory.bootstrapServer = undefined;
      if (server !== undefined) await stopAll([server.child], this.#options);
      this.#memory.processes.delete(bootstrapServerName);
      await handOver(bootstrapFolders(layout).journal, stopping);
      this.#memory.bootstrap = "done";
      await this.#writeRecord();
    } catch (error) {
      if (!stopping.aborted) log.error({ error }, "the bootstrap was not completed");
    }
  }

  /**
   * One address for the config servers of all control-plane machines, as a load balancer gives it; during the bootstrap
   * for its server.
   */
  async #forwardConfigServers(): Promise<void> {
    const { addresses, log, forward } = this.#options;
    const configServers = () =>
      this.#memory.bootstrapServer !== undefined
        ? [{ host: addresses.bootstrap, port: ports.configServer }]
        : this.#memory.hosts
            .filter(({ pool }) => pool === "master")
            .map(({ index }) => ({ host: addresses.host(index), port: ports.configServer }));
    await forward(
      { host: addresses.configServer, port: ports.configServer, to: configServers, log },
      this.stopping.signal,
    );
  }

  /** The registry's process starts with the first connection: a cluster that builds no images runs none. */
  async #forwardRegistry(): Promise<void> {
    const { addresses, clusterRegistry: registry, layout, log, forward, onProgress, afterRegistry } = this.#options;
    if (registry === undefined) return;
    onProgress(`registry at ${registry.host}`);
    const start = async (): Promise<void> => {
      if (!this.#memory.processes.has("registry")) this.#supervise("registry", ["registry", "--dir", layout.directory]);
      await afterRegistry(registry, this.stopping.signal);
    };
    await forward(
      {
        host: addresses.registry,
        port: ports.registry,
        to: () => [{ host: addresses.registry, port: ports.registryProcess }],
        before: () =>
          (this.#memory.registry ??= start().catch((error: unknown) => {
            // The next connection tries again.
            this.#memory.registry = undefined;
            throw error;
          })),
        log,
      },
      this.stopping.signal,
    );
  }

  async #writeRecord(): Promise<ClusterRecord> {
    const { files, layout, version, apiServer, addresses, clusterRegistry: registry, pid } = this.#options;
    const record: ClusterRecord = {
      v: 1,
      version,
      apiServer: apiServer.kind,
      network: addresses.network,
      ...(registry === undefined ? {} : { registry: true }),
      ...(this.#memory.bootstrap === undefined ? {} : { bootstrap: this.#memory.bootstrap }),
      withoutSetId: true,
      supervisor: { pid, startTime: (await startTimeOf(files, pid)) ?? "" },
      processes: [...this.#memory.processes].map(([name, { child, startTime }]) => ({
        name,
        pid: child.pid,
        startTime,
      })),
      hosts: this.#memory.hosts,
      ...(this.#memory.notices.length === 0 ? {} : { notices: this.#memory.notices }),
    };
    await files.write(layout.record, JSON.stringify(record, undefined, 2), { mode: 0o600 });
    return record;
  }

  /** Starts a process of this program, and again whenever it ends, until the signal aborts: that of the cluster. */
  #supervise(name: string, args: readonly string[], until?: AbortSignal): void {
    const [program = "", ...leading] = this.#options.program;
    this.#keepAlive(name, program, [...leading, ...args], until);
  }

  #keepAlive(name: string, program: string, args: readonly string[], until = this.stopping.signal): void {
    this.#memory.loops.push(this.#restartForever(name, program, args, until));
  }

  async #restartForever(name: string, program: string, args: readonly string[], stopping: AbortSignal): Promise<void> {
    const { clock, environment, files, layout, log, processes } = this.#options;
    let backoff = firstBackoffMs;
    while (!stopping.aborted) {
      const began = clock.monotonic();
      const child = processes.spawn(program, args, {
        env: { ...environment, MCO_LIFELINE: "3" },
        logFile: `${layout.logs}/${name}.log`,
        lifeline: true,
        group: true,
      });
      this.#memory.processes.set(name, { child, startTime: "" });
      this.#memory.processes.set(name, { child, startTime: (await startTimeOf(files, child.pid)) ?? "" });
      if (this.#memory.ready) await this.#writeRecord();
      const exit = await child.exited;
      if (stopping.aborted) return;
      if (clock.monotonic() - began > 60_000) backoff = firstBackoffMs;
      log.warn({ name, ...exit, againInMs: backoff }, "process ended");
      await clock.sleep(backoff, stopping).catch(() => undefined);
      backoff = Math.min(backoff * 2, lastBackoffMs);
    }
  }

  async #startHost(host: HostRecord): Promise<void> {
    const { files, layout, credentials, addresses } = this.#options;
    await files.makeDirectory(layout.host(host.name));
    if (host.joins !== true) {
      await hostCredentials(files, layout, credentials, { name: host.name, address: addresses.host(host.index) });
      await this.#options.registerMachine(host, this.stopping.signal);
    }
    this.#supervise(`host-${host.name}`, [
      "host",
      "run",
      host.name,
      "--dir",
      layout.directory,
      "--index",
      String(host.index),
    ]);
  }

  async #control(verb: string, argument: string): ReturnType<ControlHandler> {
    switch (verb) {
      case "add-host":
        return this.#addHost(argument);
      case "issue-pointer": {
        const host = this.#memory.hosts.find(
          ({ name, joins, bootstraps }) => name === argument && (joins === true || bootstraps === true),
        );
        if (host === undefined) throw new Error(`no machine "${argument}" joins`);
        return { issued: await this.#writePointer(host) };
      }
      default:
        throw new Error(`the supervisor does not know "${verb}"`);
    }
  }

  async #addHost(pool: string): Promise<HostRecord> {
    const begun = nextHost(this.#memory.hosts, pool);
    // Its name and its address are reserved from now on, even if others are added meanwhile.
    this.#memory.hosts = [...this.#memory.hosts, begun];
    try {
      const host: HostRecord = (await this.#writePointer(begun)) ? { ...begun, joins: true } : begun;
      this.#memory.hosts = this.#memory.hosts.map((other) => (other === begun ? host : other));
      // Recorded before it is started: after a crash, the next process finds it.
      await this.#writeRecord();
      await this.#startHost(host);
      await this.#writeRecord();
      return host;
    } catch (error) {
      this.#memory.hosts = this.#memory.hosts.filter(({ name }) => name !== begun.name);
      throw error;
    }
  }

  async #writePointer(host: HostRecord): Promise<boolean> {
    const { files, layout } = this.#options;
    const pointer =
      host.bootstraps === true
        ? await bootstrapPointer(host, this.#options)
        : await this.#options.issuePointer(host, this.stopping.signal);
    if (pointer !== undefined) await files.write(pointerPath(layout.host(host.name)), pointer, { mode: 0o600 });
    return pointer !== undefined;
  }
}

/** A machine with the next free number of its pool, and the next free address. */
function nextHost(hosts: readonly HostRecord[], pool: string): HostRecord {
  const numbers = hosts
    .filter(({ name }) => name.startsWith(`${pool}-`))
    .map(({ name }) => Number(name.slice(pool.length + 1)));
  return {
    name: `${pool}-${greatestOf(numbers, -1) + 1}`,
    pool,
    index:
      greatestOf(
        hosts.map(({ index }) => index),
        -1,
      ) + 1,
  };
}

async function stopAll(children: readonly Child[], options: Pick<UpOptions, "clock">): Promise<void> {
  for (const child of children) child.kill("SIGTERM");
  const deadline = options.clock.deadline(stopGraceMs);
  await Promise.race([Promise.all(children.map(({ exited }) => exited)), whenAborted(deadline.signal)]);
  deadline.cancel();
  for (const child of children) child.kill("SIGKILL");
  await Promise.all(children.map(({ exited }) => exited));
}

function hostsFor({
  controlPlane,
  workers,
  bootstraps,
}: Pick<UpOptions, "controlPlane" | "workers" | "bootstraps">): HostRecord[] {
  const masters = Array.from({ length: controlPlane }, (_, number) => ({
    name: `master-${number}`,
    pool: "master",
    index: number,
    ...(bootstraps ? { bootstraps: true as const } : {}),
  }));
  const others = Array.from({ length: workers }, (_, number) => ({
    name: `worker-${number}`,
    pool: "worker",
    index: controlPlane + number,
  }));
  return [...masters, ...others];
}

async function freeNetwork({ layout, portIsFree }: Pick<UpOptions, "layout" | "portIsFree">): Promise<string> {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const network = networkFor(layout.directory, attempt);
    if (await portIsFree(addressesOf(network).apiServer, ports.apiServer)) return network;
  }
  throw new McoError("MCO_CLUSTER_START_FAILED", { problem: "no free network in 127.0.0.0/8 was found" });
}
