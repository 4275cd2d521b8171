import { McoError } from "../api/errors.ts";
import type { ControlHandler } from "../host/host.ts";
import type { Files } from "../ports/files.ts";
import type { Forward } from "../ports/forward.ts";
import type { Ports } from "../ports/index.ts";
import type { Child, Processes } from "../ports/process.ts";
import { type ClusterRegistry, clusterRegistry } from "./cluster-registry.ts";
import { type ClusterCredentials, clusterCredentials, hostCredentials } from "./credentials.ts";
import { pointerPath } from "./host/install-machine.ts";
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
  /** With a registry. */
  readonly imageMode: boolean;
  readonly files: Files;
  readonly processes: Processes;
  /** How this program is run: Node.js, its flags, the bundle. */
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly version: string;
  readonly pid: number;
  readonly portIsFree: (host: string, port: number) => Promise<boolean>;
  readonly serveControl: (handle: ControlHandler, signal: AbortSignal) => Promise<void>;
  /** Resolves when the registry answers, and has what machines are born from. */
  readonly afterRegistry: (registry: ClusterRegistry, signal: AbortSignal) => Promise<void>;
  /** Resolves when the API server answers, and has what the operator needs. */
  readonly afterApiServer: (
    credentials: ClusterCredentials,
    registry: ClusterRegistry | undefined,
    addresses: Addresses,
    signal: AbortSignal,
  ) => Promise<void>;
  readonly forward: Forward;
  /** Resolves when a machine that is about to start has a Node with the roles that it may not give itself. */
  readonly registerMachine: (host: HostRecord, signal: AbortSignal) => Promise<void>;
  /**
   * The pointer that an empty machine begins with, with a token for this machine alone; tokens that it had before are
   * good no more. `undefined` where the cluster has no config server: then its machines are born with credentials.
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
 * one process for each host. What it finds of an earlier run in the folder, it continues.
 *
 * @param onReady called once, when everything has been started.
 */
export async function runCluster(
  options: UpOptions,
  signal: AbortSignal,
  onReady: (record: ClusterRecord) => void,
): Promise<void> {
  const { files, layout, clock, log, processes } = options;
  const live = await runningCluster(files, layout);
  if (live !== undefined)
    throw new McoError("MCO_CLUSTER_RUNNING", { directory: layout.directory, supervisor: live.supervisor.pid });
  const earlier = await readRecord(files, layout);

  const addresses = addressesOf(earlier?.network ?? (await freeNetwork(options)));
  let hosts: HostRecord[] = [...(earlier?.hosts ?? hostsFor(options))];
  await files.makeDirectory(layout.logs);
  const credentials = await clusterCredentials({ ...options, addresses });
  const imageMode = options.imageMode || earlier?.imageMode === true;
  const registry = imageMode ? await clusterRegistry({ ...options, addresses }) : undefined;

  const supervised = new Map<string, Child>();
  const startTimes = new Map<string, string>();
  const loops: Promise<void>[] = [];
  const stopping = new AbortController();

  async function writeRecord(): Promise<ClusterRecord> {
    const record: ClusterRecord = {
      v: 1,
      version: options.version,
      apiServer: options.apiServer.kind,
      network: addresses.network,
      ...(imageMode ? { imageMode } : {}),
      supervisor: { pid: options.pid, startTime: (await startTimeOf(files, options.pid)) ?? "" },
      processes: [...supervised].map(([name, { pid }]) => ({ name, pid, startTime: startTimes.get(name) ?? "" })),
      hosts,
    };
    await files.write(layout.record, JSON.stringify(record, undefined, 2));
    return record;
  }

  /** Starts a process of this program, and again whenever it ends, until the cluster stops. */
  function supervise(name: string, args: readonly string[]): void {
    const [program = "", ...leading] = options.program;
    keepAlive(name, program, [...leading, ...args]);
  }

  function keepAlive(name: string, program: string, args: readonly string[]): void {
    loops.push(
      (async () => {
        let backoff = firstBackoffMs;
        while (!stopping.signal.aborted) {
          const began = clock.monotonic();
          const child = processes.spawn(program, args, {
            env: { ...options.environment, MCO_LIFELINE: "3" },
            logFile: `${layout.logs}/${name}.log`,
            lifeline: true,
            group: true,
          });
          supervised.set(name, child);
          startTimes.set(name, (await startTimeOf(files, child.pid)) ?? "");
          if (ready) await writeRecord();
          const exit = await child.exited;
          if (stopping.signal.aborted) return;
          if (clock.monotonic() - began > 60_000) backoff = firstBackoffMs;
          log.warn({ name, ...exit, againInMs: backoff }, "process ended");
          await clock.sleep(backoff, stopping.signal).catch(() => undefined);
          backoff = Math.min(backoff * 2, lastBackoffMs);
        }
      })(),
    );
  }

  let ready = false;
  async function startHost(host: HostRecord): Promise<void> {
    await files.makeDirectory(layout.host(host.name));
    if (host.joins !== true) {
      await hostCredentials(files, layout, credentials, { name: host.name, address: addresses.host(host.index) });
      await options.registerMachine(host, stopping.signal);
    }
    supervise(`host-${host.name}`, [
      "host",
      "run",
      host.name,
      "--dir",
      layout.directory,
      "--index",
      String(host.index),
    ]);
  }

  async function writePointer(host: HostRecord): Promise<boolean> {
    const pointer = await options.issuePointer(host, stopping.signal);
    if (pointer !== undefined) await files.write(pointerPath(layout.host(host.name)), pointer, { mode: 0o600 });
    return pointer !== undefined;
  }

  async function addHost(pool: string): Promise<HostRecord> {
    const prefix = pool === "master" ? "master" : pool;
    const number =
      Math.max(
        -1,
        ...hosts
          .filter(({ name }) => name.startsWith(`${prefix}-`))
          .map(({ name }) => Number(name.slice(prefix.length + 1))),
      ) + 1;
    const begun: HostRecord = {
      name: `${prefix}-${number}`,
      pool,
      index: Math.max(-1, ...hosts.map(({ index }) => index)) + 1,
    };
    // Its name and its address are reserved from now on, even if others are added meanwhile.
    hosts = [...hosts, begun];
    try {
      const host: HostRecord = (await writePointer(begun)) ? { ...begun, joins: true } : begun;
      hosts = hosts.map((other) => (other === begun ? host : other));
      // Recorded before it is started: after a crash, the next process finds it.
      await writeRecord();
      await startHost(host);
      await writeRecord();
      return host;
    } catch (error) {
      hosts = hosts.filter(({ name }) => name !== begun.name);
      throw error;
    }
  }

  const control: ControlHandler = async (verb, argument) => {
    switch (verb) {
      case "add-host":
        return addHost(argument);
      case "issue-pointer": {
        const host = hosts.find(({ name, joins }) => name === argument && joins === true);
        if (host === undefined) throw new Error(`no machine "${argument}" joins`);
        return { issued: await writePointer(host) };
      }
      default:
        throw new Error(`the supervisor does not know "${verb}"`);
    }
  };

  const onAbort = () => stopping.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    // Whom everybody in the cluster believes to be the API server: at first the cluster's own authority, and more while
    // it is replaced.
    if ((await files.stat(layout.trustedAuthorities)) === undefined)
      await files.write(layout.trustedAuthorities, credentials.authority.certificate);
    options.onProgress(`API server at ${credentials.serverUrl}`);
    await writeRecord();
    if (registry !== undefined) {
      options.onProgress(`registry at ${registry.host}`);
      supervise("registry", ["registry", "--dir", layout.directory]);
      await options.afterRegistry(registry, stopping.signal);
    }
    if (options.apiServer.kind === "kubernetes") {
      const parts = await kubernetesProcesses({
        ...options,
        binaries: options.apiServer.binaries,
        addresses,
        credentials,
      });
      // Its programs know no lifeline: the kernel ends them with us (prctl(2) PR_SET_PDEATHSIG).
      const start = ({ name, program, args }: (typeof parts)[number]) =>
        keepAlive(name, "setpriv", ["--pdeathsig", "TERM", "--", program, ...args]);
      for (const part of parts.filter(({ name }) => servers.has(name))) start(part);
      await options.afterApiServer(credentials, registry, addresses, stopping.signal);
      for (const part of parts.filter(({ name }) => !servers.has(name))) start(part);
    } else {
      supervise("apiserver", ["apiserver", "--dir", layout.directory]);
      await options.afterApiServer(credentials, registry, addresses, stopping.signal);
      supervise("cluster-controllers", ["cluster-controllers", "--dir", layout.directory]);
    }
    if (hosts.length > 0) options.onProgress(`starting ${hosts.map(({ name }) => name).join(", ")}`);
    for (const host of hosts) await startHost(host);
    // One address for the config servers of all control-plane machines, as a load balancer gives it.
    const configServers = () =>
      hosts
        .filter(({ pool }) => pool === "master")
        .map(({ index }) => ({ host: addresses.host(index), port: ports.configServer }));
    await options.forward(
      { host: addresses.configServer, port: ports.configServer, to: configServers, log },
      stopping.signal,
    );
    await options.serveControl(control, stopping.signal);
    ready = true;
    onReady(await writeRecord());
    await new Promise<void>((resolve) =>
      stopping.signal.aborted ? resolve() : stopping.signal.addEventListener("abort", () => resolve(), { once: true }),
    );
  } finally {
    stopping.abort(new Error("the cluster stops"));
    for (const rank of stopRanks)
      await stopAll(
        [...supervised].filter(([name]) => stopRank(name) === rank).map(([, child]) => child),
        options,
      );
    await Promise.all(loops);
    const last = await readRecord(files, layout);
    if (last !== undefined)
      await files.write(
        layout.record,
        JSON.stringify({ ...last, processes: [], supervisor: { pid: 0, startTime: "" } }, undefined, 2),
      );
  }
}

async function stopAll(children: readonly Child[], options: Pick<UpOptions, "clock">): Promise<void> {
  for (const child of children) child.kill("SIGTERM");
  const deadline = options.clock.deadline(stopGraceMs);
  await Promise.race([
    Promise.all(children.map(({ exited }) => exited)),
    new Promise((resolve) => deadline.signal.addEventListener("abort", resolve, { once: true })),
  ]);
  deadline.cancel();
  for (const child of children) child.kill("SIGKILL");
  await Promise.all(children.map(({ exited }) => exited));
}

function hostsFor({ controlPlane, workers }: Pick<UpOptions, "controlPlane" | "workers">): HostRecord[] {
  const masters = Array.from({ length: controlPlane }, (_, number) => ({
    name: `master-${number}`,
    pool: "master",
    index: number,
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
