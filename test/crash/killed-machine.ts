import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { build } from "esbuild";
import { createApiServer } from "../../src/standin/apiserver/server.ts";
import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import {
  MachineConfig,
  MachineConfigNode,
  MachineConfiguration,
  MachineStateJournal,
  type Node,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { mergePolicies } from "../../src/core/config/disruption-policy.ts";
import type { JournalLine } from "../../src/api/books/journal-line.ts";
import { journalOfNode } from "../../src/core/books/journal.ts";
import { drainStep } from "../../src/core/pool/drain-step.ts";
import { type Disk, systemDisk } from "../../src/host/directory/disk.ts";
import { serveControl } from "../../src/host/directory/control.ts";
import { directoryMachine } from "../../src/host/directory/directory-host.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import type { HttpHandler } from "../../src/ports/http.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { httpListen, systemClock, systemRandom } from "../../src/ports/node/index.ts";
import type { Random } from "../../src/ports/random.ts";
import { administrator } from "../simulation/in-process-cluster.ts";
import { type Content, machineConfigOf } from "./contents.ts";
import { Keeper, type Watched } from "./invariants.ts";
import { type DirectorySubjects, type Subject, directorySubjects } from "./subjects.ts";
import { shown } from "../support/not-within.ts";
import { ampleLimits } from "../support/ample-limits.ts";

const { annotations, labels, nodeStates } = names;
/** No wait here takes this long on any machine. */
const patienceMs = 30_000;

/** A disk that stops working after so many calls, as on a machine that loses its power. */
function dyingDisk(calls: number): Disk {
  let left = calls;
  const dying =
    <Args extends readonly unknown[]>(work: (...args: Args) => Promise<void>) =>
    async (...args: Args): Promise<void> => {
      left -= 1;
      if (left < 0) throw new Error("the power is gone");
      await work(...args);
    };
  const { create, append, symlink, mkdir: makeFolder, give, chmod, chown, sync, rename, unlink, rmdir } = systemDisk;
  return {
    create: dying(create),
    append: dying(append),
    symlink: dying(symlink),
    mkdir: dying(makeFolder),
    give: dying(give),
    chmod: dying(chmod),
    chown: dying(chown),
    sync: dying(sync),
    rename: dying(rename),
    unlink: dying(unlink),
    rmdir: dying(rmdir),
  };
}

/** A machine in a folder, whose daemon is a real process, and the code that kills it. */
export class KilledMachine implements Watched {
  readonly scenario = { services: ["crio.service", "app.service"] };
  readonly policies = mergePolicies({
    files: [{ path: "/etc/quiet", actions: [{ type: "None" }] }],
    units: [
      {
        name: "app.service",
        actions: [{ type: "DaemonReload" }, { type: "Restart", restart: { serviceName: "app.service" } }],
      },
    ],
  });
  readonly nodeName = "worker-0";
  readonly effects: string[] = [];
  readonly configs = new Map<string, MachineConfig>();
  readonly everDesired = new Set<string>();
  readonly never = new AbortController().signal;
  readonly keeper = new Keeper(this);
  readonly counts = { kills: 0, reboots: 0, cuts: 0, cutReboots: 0, targets: 0, wentBack: 0 };
  subject!: Subject;
  node!: Node;
  #journal: readonly JournalLine[] = [];
  handReboots = 0;
  readonly #random: Random;
  readonly #ending = new AbortController();
  #machines!: DirectorySubjects;
  #kube!: KubeClient;
  #url = "";
  #program = "";
  #child: ChildProcess | undefined;
  #wake = Promise.withResolvers<void>();
  #rebooting: Promise<void> | undefined;
  #failure: unknown;
  #draining: Promise<unknown> = Promise.resolve();
  #errors = "";

  private constructor(random: Random) {
    this.#random = random;
  }

  static async start(random: Random): Promise<KilledMachine> {
    const machine = new KilledMachine(random);
    await machine.#setUp();
    return machine;
  }

  get reboots(): number {
    return this.counts.reboots;
  }

  get cuts(): number {
    return this.counts.cuts;
  }

  get history(): string {
    return JSON.stringify(this.node.metadata.annotations);
  }

  phase(): undefined {
    return undefined;
  }

  async #setUp(): Promise<void> {
    this.#machines = await directorySubjects();
    const { folder } = this.#machines;
    this.subject = await this.#machines.make({ random: systemRandom, onReboot: () => undefined });
    this.#program = join(folder, "daemon.mjs");
    await build({
      entryPoints: [join(import.meta.dirname, "daemon-process.ts")],
      outfile: this.#program,
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node24",
      banner: {
        js: 'import { createRequire as createRequireForBundle } from "node:module"; const require = createRequireForBundle(import.meta.url);',
      },
      logLevel: "silent",
    });
    const server = createApiServer({
      store: memoryStore(),
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
    });
    this.#ending.signal.addEventListener("abort", () => server.close(), { once: true });
    const transport = this.#noticing(server.as(administrator));
    const { port } = await httpListen(
      { host: "127.0.0.1", port: 0, limits: ampleLimits },
      (request, _client, signal) => this.#checking(transport, request, signal),
      this.#ending.signal,
    );
    this.#url = `http://127.0.0.1:${port}`;
    this.#kube = createKubeClient({ transport, clock: systemClock, random: systemRandom, userAgent: "kills" });
    for (const resource of [MachineConfig, MachineConfigNode, MachineConfiguration, MachineStateJournal])
      await this.#kube.apply(kubernetes.CustomResourceDefinition, resource.crd(), { owner: "kills" });
    await this.#kube.create(MachineConfiguration, {
      apiVersion: MachineConfiguration.apiVersion,
      kind: "MachineConfiguration",
      metadata: { name: "cluster" },
      spec: {},
    } as MachineConfiguration);
    await this.#kube.patch(
      MachineConfiguration,
      { name: "cluster" },
      {
        type: "merge",
        body: { status: { observedGeneration: 1, nodeDisruptionPolicyStatus: { clusterPolicies: this.policies } } },
      },
      { subresource: "status" },
    );
    await this.#kube.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: this.nodeName, labels: { [labels.workerRole]: "" } },
      spec: {},
    });
    await this.#kube.create(MachineConfigNode, {
      apiVersion: MachineConfigNode.apiVersion,
      kind: "MachineConfigNode",
      metadata: { name: this.nodeName },
      spec: { node: { name: this.nodeName }, pool: { name: "worker" }, configVersion: { desired: names.notYetSet } },
    } as MachineConfigNode);
    await this.#kube.create(MachineStateJournal, {
      apiVersion: MachineStateJournal.apiVersion,
      kind: "MachineStateJournal",
      metadata: { name: journalOfNode(this.nodeName) },
      spec: { lines: [], last: [] },
    });
    await serveControl(
      join(this.#directory, "control.sock"),
      async (verb) => {
        if (verb !== "reboot") throw new Error(`nobody knows how to ${verb}`);
        this.#rebooting ??= this.#reboot().catch((error: unknown) => {
          this.#failure = error;
          this.#notify();
        });
        return {};
      },
      this.#ending.signal,
    );
    await this.keeper.begin(undefined);
    this.#startDaemon();
  }

  get #directory(): string {
    const { directory } = this.subject;
    if (directory === undefined) throw new Error("bug: the machine lies in no folder");
    return directory;
  }

  #notify(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }

  /** Resolves once `holds`; checks whenever the Node was written or the machine has come up. */
  async until(what: string, holds: () => boolean): Promise<void> {
    const deadline = systemClock.deadline(patienceMs);
    const late = new Promise<never>((_resolve, reject) =>
      deadline.signal.addEventListener(
        "abort",
        () =>
          reject(
            new Error(
              `${what} takes longer than ${patienceMs} ms: ${this.history}; the machine says ${shown(this.node.metadata.annotations)}; the daemon said: ${this.#errors.slice(-2000)}`,
            ),
          ),
        { once: true },
      ),
    );
    try {
      for (;;) {
        if (this.#failure !== undefined) throw this.#failure;
        if (holds()) return;
        await Promise.race([this.#wake.promise, late]);
      }
    } finally {
      deadline.cancel();
      late.catch(() => undefined);
    }
  }

  /** A daemon may report only what is its own. */
  async #checking(
    transport: HttpHandler,
    request: Parameters<HttpHandler>[0],
    signal: AbortSignal,
  ): ReturnType<HttpHandler> {
    if (request.method !== "GET")
      await this.keeper.sending(
        request.method,
        request.target,
        typeof request.body === "string" ? request.body : new TextDecoder().decode(request.body),
      );
    return transport(request, signal);
  }

  #noticing(transport: HttpHandler): HttpHandler {
    return async (request, signal) => {
      const response = await transport(request, signal);
      if (request.method === "GET" || response.status >= 300 || typeof response.body !== "string") return response;
      const object = JSON.parse(response.body) as { readonly kind?: string };
      if (object.kind === "Node") {
        this.node = object as Node;
        this.#draining = this.#draining
          .then(() => this.#drain())
          .catch((error: unknown) => void (this.#failure = error));
        this.#notify();
      } else if (object.kind === "MachineStateJournal") {
        this.#journal = (object as MachineStateJournal).spec.lines;
        this.#notify();
      }
      return response;
    };
  }

  async #drain(): Promise<void> {
    const step = drainStep(this.node);
    const write = (body: object) => this.#kube.patch(kubernetes.Node, { name: this.nodeName }, { type: "merge", body });
    if (step.do === "cordon")
      await write({
        metadata: { annotations: { [annotations.cordonedFor]: step.request, [annotations.lastAppliedDrain]: null } },
        spec: { unschedulable: true },
      });
    else if (step.do === "evict")
      await write({ metadata: { annotations: { [annotations.lastAppliedDrain]: step.request } } });
    else if (step.do === "uncordon")
      await write({
        metadata: { annotations: { [annotations.cordonedFor]: null, [annotations.lastAppliedDrain]: step.request } },
        ...(step.remedy ? { spec: { unschedulable: null } } : {}),
      });
  }

  #startDaemon(): void {
    const child = spawn(
      process.execPath,
      [this.#program, this.#url, this.#directory, this.nodeName, join(this.#machines.folder, "images")],
      { stdio: ["pipe", "ignore", "pipe"] },
    );
    child.stderr.on("data", (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-100_000);
    });
    child.stdin.on("error", () => undefined);
    this.#child = child;
  }

  /** Sends SIGKILL and waits for the end of the process. */
  async #killDaemon(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGKILL");
    await ended;
  }

  async #boot(how: "orderly" | "powerCut"): Promise<void> {
    await this.subject.machine.boot({ orderly: how === "orderly" });
    await this.keeper.after();
    this.#startDaemon();
    this.#notify();
  }

  /** The daemon has asked for a reboot. Now and then the power fails while the machine shuts down. */
  async #reboot(): Promise<void> {
    this.counts.reboots += 1;
    await this.#killDaemon();
    if (this.#random.next() < 0.4) {
      this.counts.cutReboots += 1;
      const calls = Math.floor(this.#random.next() * 250);
      const dying = directoryMachine({
        directory: this.#directory,
        images: this.#machines.trees,
        disk: dyingDisk(calls),
      });
      const survived = await dying.boot({ orderly: true }).then(
        () => true,
        () => false,
      );
      await (survived ? this.#boot("orderly") : this.#boot("powerCut"));
    } else await this.#boot("orderly");
    this.#rebooting = undefined;
    this.#notify();
  }

  async target(content: Content): Promise<string> {
    this.counts.targets += 1;
    const config = machineConfigOf(`rendered-${this.counts.targets}`, content);
    this.configs.set(config.metadata.name, await this.#kube.create(MachineConfig, config));
    this.everDesired.add(config.metadata.name);
    await this.#kube.patch(
      kubernetes.Node,
      { name: this.nodeName },
      { type: "merge", body: { metadata: { annotations: { [annotations.desiredConfig]: config.metadata.name } } } },
    );
    return config.metadata.name;
  }

  /** Kills the daemon, or now and then cuts the whole machine's power; then the machine runs again. */
  async kill(): Promise<void> {
    // While the machine shuts down there is no daemon to kill.
    await this.until("a reboot", () => this.#rebooting === undefined);
    this.counts.kills += 1;
    await this.#killDaemon();
    if (this.#rebooting !== undefined) return this.until("a reboot", () => this.#rebooting === undefined);
    await this.keeper.after();
    if (this.#random.next() < 0.2) {
      this.counts.cuts += 1;
      await this.#boot("powerCut");
    } else this.#startDaemon();
  }

  /**
   * Waits until the machine reports its target and is in service, and checks that it has it. A machine whose shutdown
   * was cut short three times for the same target rightly goes back and reports that: then it must have the previous
   * configuration.
   */
  async converged(target: string): Promise<void> {
    const has = (key: string) => this.node.metadata.annotations?.[key] ?? "";
    const wentBack = () =>
      has(annotations.state) === nodeStates.degraded &&
      has(annotations.reason).startsWith(`${target} is refused: after `);
    await this.until(
      `the way to ${target}`,
      () =>
        wentBack() ||
        (this.#rebooting === undefined &&
          has(annotations.state) === nodeStates.done &&
          has(annotations.currentConfig) === target &&
          !has(annotations.desiredDrain).startsWith("drain-") &&
          this.node.spec?.unschedulable !== true),
    );
    if (wentBack()) this.counts.wentBack += 1;
  }

  /**
   * Once the journal reports the end of the way to `target`, the machine's content must equal what the machine
   * recorded, whatever was killed and when.
   */
  async untilReported(target: string): Promise<void> {
    const isEnd = ({ path, run, chapter }: JournalLine) =>
      (path === "Updated" && run === target) || (chapter === "Degraded" && path === "Failed");
    await this.until(
      `the journal of ${target}`,
      () =>
        this.#journal.at(-1) !== undefined &&
        this.#journal.some(isEnd) &&
        (this.#journal.at(-1)?.chapter !== "Update" || this.#journal.at(-1)?.path === "Updated"),
    );
    const wentBack = this.node.metadata.annotations?.[annotations.state] === nodeStates.degraded;
    await this.keeper.books(this.#journal, !wentBack, systemClock.now());
  }

  async close(): Promise<void> {
    await this.#killDaemon();
    this.keeper.said("the daemon's log", [this.#errors]);
    await this.#draining;
    this.#ending.abort();
    await this.#machines.close();
  }
}
