import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import { createApiServer } from "../../src/standin/apiserver/server.ts";
import { sharedSecretKeys } from "../../src/standin/apiserver/access/service-account-tokens.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import type { ClusterRecord } from "../../src/standin/cluster/layout.ts";
import { kubernetesVersion } from "../../src/cli/kubernetes-binaries.ts";
import { testAuthority } from "../../test/support/test-pki.ts";
import { authorityOf, hasKubernetes, startControlPlane } from "../../test/support/kubernetes/control-plane.ts";
import { type Summary, summary } from "./statistics.ts";

/** One way to reach a server: `watch` calls back for every line. */
interface Reach {
  send(method: string, path: string, body?: string): Promise<{ readonly status: number; readonly bytes: number }>;
  watch(path: string, onLine: () => void): Promise<() => void>;
}

interface Paths {
  readonly create: string;
  readonly nodes: string;
  readonly list: string;
  /** A collection with next to nothing in it, so that a watch begins with news. */
  readonly watched: string;
  readonly watch: string;
}

/** Resident memory of a server's processes (VmRSS of proc(5)) in MiB, by name. */
export type Memory = Readonly<Record<string, number>>;

export interface ApiMetrics {
  readonly createsPerSecond: number;
  readonly createMs: Summary;
  readonly updatesPerSecond: number;
  readonly updateMs: Summary;
  readonly listMs: Summary;
  readonly listBytes: number;
  readonly eventsPerSecond: number;
  /** From the write to the last watcher's event. */
  readonly fanOutMs: Summary;
  /**
   * Before the first request, and at the end with everything stored and all watches open; absent where the server is no
   * process of its own.
   */
  readonly memory?: { readonly idle: Memory; readonly loaded: Memory };
}

export interface ApiServerMetrics {
  readonly creates: number;
  readonly concurrency: number;
  readonly nodes: number;
  readonly lists: number;
  readonly watchers: number;
  readonly watchedWrites: number;
  readonly inProcess: ApiMetrics;
  readonly overTls: ApiMetrics;
  /** Kubernetes' own server with its etcd, or that its programs are not there. */
  readonly kubernetes: { readonly version: string; readonly metrics: ApiMetrics } | "absent";
  readonly echoOverTls: ApiMetrics;
}

interface Load {
  readonly creates: number;
  readonly nodes: number;
  readonly lists: number;
  readonly watchers: number;
  readonly watchedWrites: number;
}

const concurrency = 16;
const served: Paths = {
  create: "/api/v1/namespaces/default/configmaps",
  nodes: "/api/v1/nodes",
  list: "/api/v1/nodes",
  watched: "/api/v1/namespaces/kube-node-lease/configmaps",
  watch: "/api/v1/namespaces/kube-node-lease/configmaps?watch=true",
};
const echoed: Paths = { create: "/", nodes: "/", list: "/list", watched: "/", watch: "/watch" };

const configMap = (name: string, value = "value") =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name },
    data: { "settings.yaml": `key: ${value}\n`.repeat(90) },
  });

/** A node as a kubelet and our daemon leave it: labels, annotations, status. */
function node(index: number): string {
  const name = `worker-${index}`;
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node-role.kubernetes.io/worker": "",
      },
      annotations: Object.fromEntries(
        ["currentConfig", "desiredConfig", "state", "reason", "desiredDrain", "lastAppliedDrain"].map((key) => [
          `machineconfiguration.openshift.io/${key}`,
          `rendered-worker-${"0123456789abcdef".repeat(2)}`,
        ]),
      ),
    },
    status: {
      capacity: { cpu: "2", memory: "8Gi", pods: "110" },
      conditions: ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map((type) => ({
        type,
        status: type === "Ready" ? "True" : "False",
        reason: "Kubelet",
        message: "the kubelet says so",
        lastHeartbeatTime: "2026-01-01T00:00:00Z",
        lastTransitionTime: "2026-01-01T00:00:00Z",
      })),
      nodeInfo: {
        machineID: name,
        systemUUID: name,
        bootID: name,
        kernelVersion: "6.1",
        osImage: "an OS",
        containerRuntimeVersion: "r://1",
        kubeletVersion: "v1.34.0",
        kubeProxyVersion: "",
        operatingSystem: "linux",
        architecture: "amd64",
      },
    },
  });
}

/** Runs `work` for 0 … count-1, `concurrency` at a time, and returns how long each took in milliseconds. */
async function each(count: number, work: (index: number) => Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < count; index = next++) {
      const began = performance.now();
      await work(index);
      took.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  return took;
}

async function measure(reach: Reach, paths: Paths, load: Load, memory?: () => Memory): Promise<ApiMetrics> {
  const idle = memory?.();
  const create = async (path: string, body: string) => {
    const { status } = await reach.send("POST", path, body);
    if (status !== 201) throw new Error(`POST ${path} answered ${status}`);
  };
  await each(200, (index) => create(paths.create, configMap(`warm-${index}`)));
  const began = performance.now();
  const createMs = await each(load.creates, (index) => create(paths.create, configMap(`created-${index}`)));
  const createsPerSecond = Math.round((load.creates * 1000) / (performance.now() - began));

  const updating = performance.now();
  const updateMs = await each(load.creates, async (index) => {
    const path = paths === echoed ? paths.create : `${paths.create}/created-${index}`;
    const { status } = await reach.send("PUT", path, configMap(`created-${index}`, "other"));
    if (status !== 200) throw new Error(`PUT ${path} answered ${status}`);
  });
  const updatesPerSecond = Math.round((load.creates * 1000) / (performance.now() - updating));

  await each(load.nodes, (index) => create(paths.nodes, node(index)));
  const listMs: number[] = [];
  let listBytes = 0;
  for (let turn = 0; turn < load.lists; turn += 1) {
    const from = performance.now();
    const { status, bytes } = await reach.send("GET", paths.list);
    if (status !== 200) throw new Error(`GET ${paths.list} answered ${status}`);
    listMs.push(performance.now() - from);
    listBytes = bytes;
  }

  let lines = 0;
  let goal = Number.POSITIVE_INFINITY;
  let reached: () => void = () => undefined;
  const stops: (() => void)[] = [];
  const onLine = () => {
    lines += 1;
    if (lines >= goal) reached();
  };
  for (let index = 0; index < load.watchers; index += 1) stops.push(await reach.watch(paths.watch, onLine));
  // Existing objects come first; a marker write shows when all of them have arrived.
  const settle = async (write: number) => {
    await create(paths.watched, configMap(`settle-${write}`));
    for (let before = -1; before !== lines;) {
      before = lines;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  };
  await settle(0);
  const fanOutMs: number[] = [];
  for (let write = 0; write < load.watchedWrites; write += 1) {
    const all = new Promise<void>((resolve) => (reached = resolve));
    goal = lines + load.watchers;
    const from = performance.now();
    await create(paths.watched, configMap(`watched-${write}`));
    await all;
    fanOutMs.push(performance.now() - from);
  }
  const all = new Promise<void>((resolve) => (reached = resolve));
  const events = load.watchers * load.watchedWrites;
  goal = lines + events;
  const from = performance.now();
  await each(load.watchedWrites, (index) => create(paths.watched, configMap(`burst-${index}`)));
  await all;
  const eventsPerSecond = Math.round((events * 1000) / (performance.now() - from));
  const loaded = memory?.();
  for (const stop of stops) stop();
  return {
    createsPerSecond,
    createMs: summary(createMs),
    updatesPerSecond,
    updateMs: summary(updateMs),
    listMs: summary(listMs),
    listBytes,
    eventsPerSecond,
    fanOutMs: summary(fanOutMs),
    ...(idle === undefined || loaded === undefined ? {} : { memory: { idle, loaded } }),
  };
}

function residentMiB(pid: number): number {
  return Math.round(Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024);
}

function inProcess(): Reach {
  const server = createApiServer({
    store: memoryStore(),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    tokenKeys: sharedSecretKeys(systemRandom.bytes(32)),
  });
  const peer = { certificate: { commonName: "admin", organizations: ["system:masters"] } };
  const headers = { "content-type": "application/json" };
  return {
    async send(method, target, body) {
      const answer = await server.handle(
        { method, target, headers, ...(body === undefined ? {} : { body }) },
        peer,
        new AbortController().signal,
      );
      const text = answer.body;
      if (typeof text !== "string" && !(text instanceof Uint8Array))
        throw new Error("a stream where a body was expected");
      return { status: answer.status, bytes: text.length };
    },
    async watch(target, onLine) {
      const stop = new AbortController();
      const { body } = await server.handle({ method: "GET", target, headers }, peer, stop.signal);
      if (typeof body === "string" || body instanceof Uint8Array) throw new Error("a body where a stream was expected");
      void (async () => {
        for await (const chunk of body) countLines(chunk, onLine);
      })().catch(() => undefined);
      return () => stop.abort();
    },
  };
}

function countLines(chunk: string | Uint8Array, onLine: () => void): void {
  const newline = typeof chunk === "string" ? "\n" : 10;
  for (let at = chunk.indexOf(newline as never); at >= 0; at = chunk.indexOf(newline as never, at + 1)) onLine();
}

interface Client {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

function reachOverTls(url: string, identity: Client): Reach & { close(): void } {
  const agent = new Agent({ ...identity, keepAlive: true, maxSockets: concurrency });
  const watching = new Agent({ ...identity });
  const open = (method: string, path: string, by: Agent, body?: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const call = httpsRequest(
        `${url}${path}`,
        {
          method,
          agent: by,
          headers: {
            "content-type": "application/json",
            ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
          },
        },
        resolve,
      );
      call.on("error", reject);
      call.end(body);
    });
  return {
    async send(method, path, body) {
      const answer = await open(method, path, agent, body);
      let bytes = 0;
      for await (const chunk of answer as AsyncIterable<Buffer>) bytes += chunk.length;
      return { status: answer.statusCode ?? 0, bytes };
    },
    async watch(path, onLine) {
      const answer = await open("GET", path, watching);
      answer.on("data", (chunk: Buffer) => countLines(chunk, onLine));
      answer.on("error", () => undefined);
      return () => answer.destroy();
    },
    close() {
      agent.destroy();
      watching.destroy();
    },
  };
}

/** Measures a server that `serve.ts` runs in a process of its own. */
async function measureServed(
  what: "apiserver" | "echo",
  folder: string,
  identity: Client,
  paths: Paths,
  load: Load,
): Promise<ApiMetrics> {
  const child: ChildProcess = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, "serve.ts"), what, folder],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const gone = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.once("data", (chunk: Buffer) => resolve(chunk.toString("utf8").trim()));
    void gone.then((code) => reject(new Error(`${what} ended with ${code}`)));
  });
  const reach = reachOverTls(url, identity);
  try {
    return await measure(reach, paths, load, () => ({ [what]: residentMiB(child.pid ?? 0) }));
  } finally {
    reach.close();
    child.stdin?.end();
    await gone;
  }
}

/**
 * Measures Kubernetes' own API server as `mco up --api-server kubernetes` starts it, without its clients: they would
 * act on the nodes that are stored here.
 */
async function measureKubernetes(load: Load): Promise<ApiServerMetrics["kubernetes"]> {
  if (!hasKubernetes) return "absent";
  const controlPlane = await startControlPlane();
  const { processes } = JSON.parse(readFileSync(join(controlPlane.directory, "cluster.json"), "utf8")) as ClusterRecord;
  const pidsOf = (...wanted: readonly string[]) => processes.filter(({ name }) => wanted.includes(name));
  const clients = pidsOf("kube-controller-manager", "kube-scheduler");
  const tell = (signal: "SIGSTOP" | "SIGCONT") => {
    for (const { pid } of clients) process.kill(pid, signal);
  };
  tell("SIGSTOP");
  try {
    const authority = await authorityOf(controlPlane);
    const admin = await authority.issue({ commonName: "bench", organizations: ["system:masters"], usage: "client" });
    const reach = reachOverTls(controlPlane.url, {
      ca: authority.certificate,
      cert: admin.certificate,
      key: admin.key,
    });
    const memory = () =>
      Object.fromEntries(pidsOf("kube-apiserver", "etcd").map(({ name, pid }) => [name, residentMiB(pid)]));
    try {
      return { version: kubernetesVersion, metrics: await measure(reach, served, load, memory) };
    } finally {
      reach.close();
    }
  } finally {
    tell("SIGCONT");
    await controlPlane.stop();
  }
}

/**
 * The API server under load: without a socket on the memory store, over TLS with its database in a process of its own,
 * and Kubernetes' own beside it.
 */
export async function measureApiServer(load: Load, tell: (line: string) => void): Promise<ApiServerMetrics> {
  const folder = mkdtempSync(join(tmpdir(), "mco-bench-"));
  try {
    const authority = await testAuthority();
    const server = await authority.server("127.0.0.1");
    const admin = await authority.client("admin", ["system:masters"]);
    writeFileSync(join(folder, "server.crt"), server.certificate);
    writeFileSync(join(folder, "server.key"), server.key);
    writeFileSync(join(folder, "ca.crt"), authority.certificate);
    writeFileSync(join(folder, "tokens.key"), await authority.signingKey());
    const identity = { ca: authority.certificate, cert: admin.certificate, key: admin.key };

    tell("in process");
    const direct = await measure(inProcess(), served, load);
    tell("embedded, over TLS");
    const tls = await measureServed("apiserver", folder, identity, served, load);
    tell(hasKubernetes ? `Kubernetes ${kubernetesVersion}, over TLS` : "Kubernetes: its programs are not built");
    const kubernetes = await measureKubernetes(load);
    tell("echo over TLS");
    writeFileSync(join(folder, "list.json"), "x".repeat(tls.listBytes));
    const plain = await measureServed("echo", folder, identity, echoed, load);
    return { ...load, concurrency, inProcess: direct, overTls: tls, kubernetes, echoOverTls: plain };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
