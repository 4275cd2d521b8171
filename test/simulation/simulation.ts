import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import { type ApiServer, createApiServer } from "../../src/standin/apiserver/server.ts";
import {
  ControllerConfig,
  MachineConfig,
  MachineConfigNode,
  MachineConfigPool,
  MachineConfiguration,
  MachineStateJournal,
  type Pod,
  definedResources,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { runController } from "../../src/controller/run-controller.ts";
import { journalOfNode } from "../../src/core/books/journal.ts";
import { mergePolicies } from "../../src/core/config/disruption-policy.ts";
import { encodeDataUrl } from "../../src/ignition/data-url.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { componentSending, createJournalWriter } from "../../src/kube/journal-writer.ts";
import { createBufferedJournal } from "../../src/kube/buffered-journal.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import type { Host } from "../../src/host/host.ts";
import type { HttpHandler } from "../../src/ports/http.ts";
import { type Logger, silentLogger } from "../../src/ports/logger.ts";
import { administrator } from "./in-process-cluster.ts";
import { InvariantKeeper, invariants } from "./invariants.ts";
import { Kernel } from "./kernel.ts";
import { SimulatedMachine, otherImage, stockImage } from "./machines.ts";
import { type NetworkFault, type NetworkFaults, calm, simulatedTransport, stormy } from "./network.ts";
import { Life } from "./process.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly controlPlane?: number;
  readonly workers?: number;
  /** How long, in virtual time, people and accidents act. */
  readonly stormMs?: number;
  /** People want again, and soon, what a pool had before. */
  readonly changesMind?: boolean;
  readonly faults?: boolean;
  /** Planted bugs, which an invariant must find. */
  readonly plant?: Plant;
}

export interface Plant {
  /** Replaces a process's connection to the API server. */
  readonly transport?: (transport: HttpHandler, life: Life, simulation: Simulation) => HttpHandler;
  readonly host?: (host: Host, machine: SimulatedMachine, simulation: Simulation) => Host;
  /** Something else that goes on in this simulation. */
  readonly rogue?: (simulation: Simulation) => void;
}

const { annotations, labels } = names;
const version = "sim";
const app = "web";

/** One cluster in one process in virtual time: API server, controllers, daemons on memory hosts, people, accidents. */
export class Simulation {
  readonly kernel: Kernel;
  readonly kube: KubeClient;
  readonly machines = new Map<string, SimulatedMachine>();
  readonly keeper: InvariantKeeper;
  readonly failures: unknown[] = [];
  /** How often each kind of accident happened. */
  readonly accidents: Record<string, number> = {};
  /** How often each kind of network fault happened, and how often another process came to lead. */
  readonly faults: Record<string, number> = {};
  readonly #options: SimulationOptions;
  readonly #store = memoryStore();
  #server: ApiServer;
  /** While the API server is down. */
  #away: { readonly over: Promise<void> } | undefined;
  #faults: NetworkFaults = calm;
  #crashAtEffect = 0;
  #controllers: Life[] = [];
  /** Includes processes that have ended: what they sent may still arrive. */
  readonly #everController: Life[] = [];
  #leader = "";
  #stormEnds = 0;
  #touched = 0;
  #serial = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.kernel = new Kernel(options.seed);
    this.#server = this.#newServer();
    // Kubelets, people and checks of this simulation wait while the server is unavailable; requests of processes fail.
    this.kube = this.#client(async (request, signal) => {
      while (this.#away !== undefined) await this.#away.over;
      return this.#server.as(administrator)(request, signal);
    });
    this.keeper = new InvariantKeeper(this.kernel, this.machines, {
      blindness: () => this.#everController.flatMap(({ blindness }) => blindness),
      soFar: () => this.#everController.length + this.#everController.filter(({ alive }) => !alive).length,
    });
  }

  #newServer(): ApiServer {
    return createApiServer({
      store: this.#store,
      clock: this.kernel.clock,
      random: this.kernel.random,
      log: silentLogger,
    });
  }

  #client(transport: HttpHandler, life?: Life): KubeClient {
    return createKubeClient({
      transport,
      clock: life?.ports.clock ?? this.kernel.clock,
      random: this.kernel.random,
      userAgent: "simulation",
      requestTimeoutMs: 10_000,
    });
  }

  #connect(life: Life): HttpHandler {
    const transport = simulatedTransport({
      life,
      kernel: this.kernel,
      faults: () => this.#faults,
      happened: (fault) => this.#happened(fault),
      disturb: (target) => this.#disturb(target),
      server: () =>
        this.#away === undefined
          ? this.#server.as(administrator)
          : () => Promise.reject(new Error("connection refused")),
    });
    const watched: HttpHandler = async (request, signal) => {
      const response = await transport(request, signal);
      // A lease that was taken or renewed is that process's.
      if (
        request.method !== "GET" &&
        response.status < 300 &&
        request.target.includes("/leases") &&
        typeof request.body === "string" &&
        request.body.includes(`"holderIdentity":"${life.name}"`)
      ) {
        if (this.#leader !== "" && this.#leader !== life.name) this.#happened("leader change");
        this.#leader = life.name;
      }
      return response;
    };
    return this.#options.plant?.transport?.(watched, life, this) ?? watched;
  }

  #happened(fault: NetworkFault | "leader change"): void {
    this.faults[fault] = (this.faults[fault] ?? 0) + 1;
  }

  /** An unknown client writes an object, and changes nothing that matters. */
  async #disturb(target: string): Promise<void> {
    if (this.#away !== undefined) return;
    const path = target.replace(/\?.*/, "").replace(/\/status$/, "");
    const body = JSON.stringify({ metadata: { annotations: { "test/touched": String((this.#touched += 1)) } } });
    await this.#server
      .as(administrator)(
        { method: "PATCH", target: path, headers: { "content-type": "application/merge-patch+json" }, body },
        new AbortController().signal,
      )
      .catch(() => undefined);
  }

  /** Lets time pass. */
  pass(ms: number): Promise<unknown> {
    return this.kernel.run({ until: () => false, maxMs: ms });
  }

  /** Acts as an administrator and lets time pass until the action is done. */
  act<T>(work: Promise<T>): Promise<T> {
    return this.kernel.complete(work, 600_000);
  }

  async setUp(): Promise<void> {
    const { kube } = this;
    await this.act(
      (async () => {
        for (const resource of definedResources)
          await kube.apply(kubernetes.CustomResourceDefinition, resource.crd(), { owner: "setup" });
        await kube.create(kubernetes.Namespace, {
          apiVersion: "v1",
          kind: "Namespace",
          metadata: { name: names.namespace },
        });
        const pool = (name: string, role: string) => ({
          apiVersion: MachineConfigPool.apiVersion,
          kind: "MachineConfigPool",
          metadata: { name, labels: { [labels.builtInPool]: "" } },
          spec: {
            machineConfigSelector: { matchLabels: { [labels.role]: name } },
            nodeSelector: { matchLabels: { [role]: "" } },
            maxUnavailable: 1,
            paused: false,
          },
        });
        await kube.create(MachineConfigPool, pool("master", labels.masterRole) as MachineConfigPool);
        await kube.create(MachineConfigPool, pool("worker", labels.workerRole) as MachineConfigPool);
        await kube.create(MachineConfiguration, {
          apiVersion: MachineConfiguration.apiVersion,
          kind: "MachineConfiguration",
          metadata: { name: "cluster" },
          spec: {},
        } as MachineConfiguration);
        const policies = mergePolicies({
          files: [
            { path: "/etc/test/quiet", actions: [{ type: "None" }] },
            { path: "/etc/test/reload", actions: [{ type: "Reload", reload: { serviceName: "crio.service" } }] },
          ],
        });
        await kube.patch(
          MachineConfiguration,
          { name: "cluster" },
          {
            type: "merge",
            body: { status: { observedGeneration: 1, nodeDisruptionPolicyStatus: { clusterPolicies: policies } } },
          },
          { subresource: "status" },
        );
        await kube.create(ControllerConfig, {
          apiVersion: ControllerConfig.apiVersion,
          kind: "ControllerConfig",
          metadata: {
            name: names.objects.controllerConfig,
            annotations: { [annotations.generatedByVersion]: version },
          },
          spec: {
            clusterDNSIP: "10.0.0.10",
            cloudProviderConfig: "",
            kubeAPIServerServingCAData: "",
            rootCAData: "",
            cloudProviderCAData: null,
            additionalTrustBundle: null,
            images: {},
            baseOSContainerImage: stockImage,
            releaseImage: "release",
            proxy: null,
            infra: null,
            dns: null,
            ipFamilies: "IPv4",
          },
        } as unknown as ControllerConfig);
        await this.#makeJournal(names.journals.controller);
        this.keeper.follow(kube);
        this.keeper.agreement.start();
        for (const role of ["master", "worker"])
          await kube.create(MachineConfig, this.#config(`50-${role}`, role, { "/etc/test/base": role }));
      })(),
    );
    const { controlPlane = 1, workers = 3 } = this.#options;
    for (let index = 0; index < controlPlane; index += 1)
      await this.#addMachine(`master-${index}`, { [labels.masterRole]: "", [labels.controlPlaneRole]: "" });
    for (let index = 0; index < workers; index += 1)
      await this.#addMachine(`worker-${index}`, { [labels.workerRole]: "", [labels.zone]: `zone-${index % 2}` });
    await this.#startApplication();
    this.startController();
  }

  #makeJournal(name: string): Promise<MachineStateJournal> {
    return this.kube.create(MachineStateJournal, {
      apiVersion: MachineStateJournal.apiVersion,
      kind: "MachineStateJournal",
      metadata: { name },
      spec: { lines: [], last: [] },
    });
  }

  #config(
    name: string,
    role: string,
    files: Readonly<Record<string, string>>,
    kernelArguments: readonly string[] = [],
    osImageURL?: string,
  ): MachineConfig {
    return {
      apiVersion: MachineConfig.apiVersion,
      kind: "MachineConfig",
      metadata: { name, labels: { [labels.role]: role } },
      spec: {
        ...(osImageURL === undefined ? {} : { osImageURL }),
        kernelArguments: [...kernelArguments],
        config: {
          ignition: { version: "3.4.0" },
          storage: {
            files: Object.entries(files).map(([path, text]) => ({
              path,
              mode: 0o644,
              overwrite: true,
              contents: { source: encodeDataUrl(text) },
            })),
          },
        },
      },
    };
  }

  async #addMachine(name: string, nodeLabels: Readonly<Record<string, string>>): Promise<void> {
    const machine = new SimulatedMachine({
      kernel: this.kernel,
      kube: this.kube,
      name,
      labels: nodeLabels,
      connect: (life) => this.#connect(life),
      client: (transport, life) => this.#client(transport, life),
      crashAtEffect: () => this.#crashAtEffect,
      onReboot: (subject) => this.keeper.rebooting(subject),
      onFailure: (error) => this.failures.push(error),
      onEffect: (subject, { kind, what }) => this.keeper.effects.happened(subject, kind, what),
      tamper: (host, subject) => this.#options.plant?.host?.(host, subject, this) ?? host,
    });
    this.machines.set(name, machine);
    await this.act(machine.join());
    await this.act(this.#makeJournal(journalOfNode(name)));
    const node = await this.act(this.kube.get(kubernetes.Node, { name }));
    await this.act(
      this.kube.create(MachineConfigNode, {
        apiVersion: MachineConfigNode.apiVersion,
        kind: "MachineConfigNode",
        metadata: { name, ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid: node?.metadata.uid ?? "" }] },
        spec: {
          node: { name },
          pool: { name: name.replace(/-\d+$/, "") },
          configVersion: { desired: names.notYetSet },
        },
      }),
    );
  }

  /** Another controller process; of two at once, the lease decides which one leads. */
  startController(): void {
    const life = new Life(this.kernel, `controller/${(this.#serial += 1)}`);
    this.#controllers = [...this.#controllers.filter(({ alive }) => alive), life];
    this.#everController.push(life);
    const kube = this.#client(this.#connect(life), life);
    const events = createEventRecorder({ ...life.ports, kube, component: "machine-config-controller" });
    const writer = { component: "controller", instance: life.name };
    const journalWriter = createJournalWriter({
      ...life.ports,
      kube,
      name: names.journals.controller,
      owner: names.fieldManagers.journal,
      rules: componentSending,
    });
    const journal = createBufferedJournal({
      ...life.ports,
      writer,
      boot: this.kernel.random.uuid(),
      sender: journalWriter,
    });
    life.signal.addEventListener("abort", () => journal.stop(), { once: true });
    const log: Logger = {
      ...silentLogger,
      warn: (_, message) => {
        if (message === "lease lost") this.keeper.effects.controllerUnheard();
      },
      child: () => log,
    };
    void runController(
      {
        ...life.ports,
        log,
        journal,
        kube,
        events,
        identity: life.name,
        version,
        generatorVersion: "1",
        controllers: ["render", "node", "drain"],
      },
      life.signal,
    )
      .catch((error: unknown) => {
        if (life.alive) this.failures.push(error);
      })
      .finally(() => {
        // A process that ended by itself (it lost its lease) is restarted, as by a kubelet.
        if (life.alive) this.#endController(life);
      });
  }

  killController(): void {
    const life = this.#controllers.find(({ alive }) => alive);
    if (life !== undefined) this.#endController(life);
  }

  #endController(life: Life): void {
    life.kill();
    this.keeper.effects.controllerUnheard();
    this.kernel.schedule(this.kernel.between(500, 10_000), "controller starts again", () => this.startController());
  }

  /** The API server stops: every watch ends at once, and requests fail. Later it comes back with the same store. */
  restartServer(): void {
    if (this.#away !== undefined) return;
    this.#server.close();
    const { promise: over, resolve } = Promise.withResolvers<void>();
    this.#away = { over };
    this.kernel.schedule(this.kernel.between(100, 15_000), "API server comes back", () => {
      this.#server = this.#newServer();
      this.#away = undefined;
      resolve();
      this.keeper.follow(this.kube);
    });
  }

  /** Pods of one application with a budget, and the minimum that it keeps; a controller replaces and counts them. */
  async #startApplication(): Promise<void> {
    const { kube, kernel } = this;
    const replicas = Math.max(2, (this.#options.workers ?? 3) - 1);
    const keep = replicas - 1;
    await this.act(
      kube.create(kubernetes.PodDisruptionBudget, {
        apiVersion: "policy/v1",
        kind: "PodDisruptionBudget",
        metadata: { name: app, namespace: "default" },
        spec: { minAvailable: keep, selector: { matchLabels: { app } } },
      }),
    );
    const pods = () => [...this.keeper.pods.objects.values()].filter((pod) => pod.metadata.labels?.["app"] === app);
    const healthy = (pod: Pod) =>
      pod.metadata.deletionTimestamp === undefined &&
      pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;

    const look = async (): Promise<void> => {
      const all = pods();
      for (const pod of all) {
        const key = { name: pod.metadata.name, namespace: "default" };
        const machine = this.machines.get(pod.spec?.nodeName ?? "");
        if (pod.metadata.deletionTimestamp !== undefined) {
          const since = kernel.clock.now() - Date.parse(pod.metadata.deletionTimestamp);
          if (since > -28_000) await kube.delete(kubernetes.Pod, key, { gracePeriodSeconds: 0 }).catch(() => undefined);
        } else if (machine?.isUp !== true)
          await kube.delete(kubernetes.Pod, key, { gracePeriodSeconds: 0 }).catch(() => undefined);
        else if (!healthy(pod)) {
          const now = new Date(kernel.clock.now()).toISOString();
          await kube
            .patch(
              kubernetes.Pod,
              key,
              {
                type: "merge",
                body: {
                  status: {
                    phase: "Running",
                    conditions: [{ type: "Ready", status: "True", lastTransitionTime: now }],
                  },
                },
              },
              { subresource: "status" },
            )
            .catch(() => undefined);
        }
      }
      const alive = all.filter((pod) => pod.metadata.deletionTimestamp === undefined);
      if (alive.length < replicas) {
        const nodes = [...this.keeper.nodes.objects.values()].filter(
          (node) =>
            node.metadata.labels?.[labels.workerRole] !== undefined &&
            node.spec?.unschedulable !== true &&
            this.machines.get(node.metadata.name)?.isUp === true,
        );
        const target = nodes[Math.floor(kernel.random.next() * nodes.length)];
        if (target !== undefined) {
          await kube
            .create(kubernetes.Pod, {
              apiVersion: "v1",
              kind: "Pod",
              metadata: {
                name: `${app}-${(this.#serial += 1)}`,
                namespace: "default",
                labels: { app },
                annotations: { "test/min-available": String(keep) },
                ownerReferences: [
                  { apiVersion: "apps/v1", kind: "ReplicaSet", name: app, uid: "replica-set", controller: true },
                ],
              },
              spec: { nodeName: target.metadata.name, containers: [{ name: "c", image: "x" }] },
            })
            .catch(() => undefined);
        }
      }
      const count = pods().filter(healthy).length;
      const status = {
        currentHealthy: count,
        desiredHealthy: keep,
        expectedPods: replicas,
        disruptionsAllowed: Math.max(0, count - keep),
        observedGeneration: 1,
      };
      await kube
        .patch(
          kubernetes.PodDisruptionBudget,
          { name: app, namespace: "default" },
          { type: "merge", body: { status } },
          { subresource: "status" },
        )
        .catch(() => undefined);
    };
    const again = () => {
      kernel.schedule(4000, "application", () => void look().then(again));
    };
    again();
    for (let index = 0; index < replicas * 2; index += 1) await this.pass(4500);
  }

  /** A change by an administrator: files, kernel arguments, pauses, cordons, budgets. */
  async #peopleAct(): Promise<void> {
    const { kernel, kube } = this;
    const role = kernel.chance(0.25) ? "master" : "worker";
    const roll = kernel.random.next();
    this.#serial += 1;
    const text =
      this.#options.changesMind === true && kernel.chance(0.3) ? `either ${this.#serial % 2}` : `v${this.#serial}`;
    this.kernel.note(`people: ${roll.toFixed(3)} ${role} ${text}`);
    if (roll < 0.55) {
      const path =
        ["/etc/test/reboot", "/etc/test/quiet", "/etc/test/reload", "/etc/test/base"][
          Math.floor(kernel.random.next() * 4)
        ] ?? "/etc/test/reboot";
      await kube.apply(
        MachineConfig,
        this.#config(
          `60-${role}-${path.split("/").at(-1)}`,
          role,
          { [path]: text },
          kernel.chance(0.3) ? [`a=${text.replace(" ", "-")}`] : [],
          kernel.chance(0.1) ? otherImage : undefined,
        ),
        { owner: "people", force: true },
      );
    } else if (roll < 0.65) {
      const { items } = await kube.list(MachineConfig, { labelSelector: `${labels.role}=${role}` });
      const own = items.filter(({ metadata }) => metadata.name.startsWith("60-"));
      const victim = own[Math.floor(kernel.random.next() * own.length)];
      if (victim !== undefined) await kube.delete(MachineConfig, victim.metadata);
    } else if (roll < 0.75)
      await kube.patch(
        MachineConfigPool,
        { name: role },
        { type: "merge", body: { spec: { paused: kernel.chance(0.5) } } },
      );
    else if (roll < 0.85)
      await kube.patch(
        MachineConfigPool,
        { name: "worker" },
        { type: "merge", body: { spec: { maxUnavailable: kernel.chance(0.5) ? 2 : 1 } } },
      );
    else {
      const name = `worker-${Math.floor(kernel.random.next() * (this.#options.workers ?? 3))}`;
      const node = this.keeper.nodes.objects.get(name);
      const cordoned = node?.metadata.annotations?.["test/cordoned"] !== undefined;
      // An administrator cordons machines in service, and removes only cordons of their own.
      if (!cordoned && node?.spec?.unschedulable === true) return;
      await kube.patch(
        kubernetes.Node,
        { name },
        {
          type: "merge",
          body: {
            metadata: { annotations: { "test/cordoned": cordoned ? null : "yes" } },
            spec: { unschedulable: cordoned ? null : true },
          },
        },
      );
    }
  }

  #accident(): void {
    const { kernel } = this;
    const count = (name: string) => {
      this.accidents[name] = (this.accidents[name] ?? 0) + 1;
      kernel.note(`accident: ${name}`);
    };
    const machines = [...this.machines.values()];
    const machine = machines[Math.floor(kernel.random.next() * machines.length)];
    const roll = kernel.random.next();
    if (roll < 0.35) {
      count("daemon killed");
      machine?.killDaemon();
    } else if (roll < 0.55) {
      count("controller killed");
      this.killController();
    } else if (roll < 0.65) {
      count("second controller");
      if (this.#controllers.filter(({ alive }) => alive).length < 2) this.startController();
    } else if (roll < 0.8) {
      count("API server restarted");
      this.restartServer();
    } else if (roll < 0.88) {
      // Only once: a machine that never boots its target rightly goes back, and then does not end on the newest one.
      count("boot not finalised");
      void machine?.host.failToFinalise?.("error: no space left on the boot partition");
    } else if (roll < 0.91) {
      count("boots not finalised for a while");
      // Long enough for the machine to go back from its target.
      const again = (left: number) => {
        if (left === 0 || kernel.now > this.#stormEnds) return;
        // Two machines: one refusal excludes its own machine, and the second one quarantines the target.
        for (const each of [machine, machines[(machines.indexOf(machine as SimulatedMachine) + 1) % machines.length]])
          void each?.host.failToFinalise?.("error: no space left on the boot partition");
        kernel.schedule(5000, "boots fail", () => again(left - 1));
      };
      again(120);
      // The machine has something to boot.
      void this.kube
        .apply(MachineConfig, this.#config("60-worker-boots", "worker", {}, [`boots=${(this.#serial += 1)}`]), {
          owner: "people",
          force: true,
        })
        .catch(() => undefined);
    } else {
      count("power cut");
      machine?.powerCut();
    }
  }

  /** People and accidents for a while, then calm until everything is quiet, then the last check. */
  async storm(): Promise<void> {
    const { kernel } = this;
    const stormMs = this.#options.stormMs ?? 12 * 60_000;
    const faults = this.#options.faults !== false;
    await this.kernel.run({ until: () => this.keeper.isQuiet, maxMs: 15 * 60_000 });
    await this.pass(10_000);
    this.keeper.checkStatus();
    if (faults) {
      this.#faults = stormy;
      this.#crashAtEffect = 0.01;
    }
    const end = kernel.now + stormMs;
    this.#stormEnds = end;
    const people = () => {
      if (kernel.now > end) return;
      void this.#peopleAct().catch(() => undefined);
      const isHasty = this.#options.changesMind === true && kernel.chance(0.2);
      const pause = isHasty ? kernel.between(500, 6_000) : kernel.between(5_000, 90_000);
      kernel.schedule(pause, "people", people);
    };
    const accidents = () => {
      if (kernel.now > end) return;
      this.#accident();
      kernel.schedule(kernel.between(10_000, 120_000), "accident", accidents);
    };
    people();
    if (faults) accidents();
    await this.pass(stormMs);
    this.#faults = calm;
    this.#crashAtEffect = 0;
    if (!this.#controllers.some(({ alive }) => alive)) this.startController();
    await this.act(
      (async () => {
        for (const name of ["master", "worker"])
          await this.kube.patch(MachineConfigPool, { name }, { type: "merge", body: { spec: { paused: false } } });
        for (const [name, node] of this.keeper.nodes.objects) {
          if (node.metadata.annotations?.["test/cordoned"] !== undefined)
            await this.kube.patch(
              kubernetes.Node,
              { name },
              {
                type: "merge",
                body: { metadata: { annotations: { "test/cordoned": null } }, spec: { unschedulable: null } },
              },
            );
        }
      })(),
    );
    await this.pass(10_000);
    for (let turn = 0; turn < 6; turn += 1) {
      if ((await this.kernel.run({ until: () => this.keeper.isQuiet, maxMs: 30 * 60_000 })) === "done") break;
      await this.act(this.#cure());
    }
    // Arrival is not enough: every machine stays there.
    await this.pass(5 * 60_000);
    this.keeper.checkEnd();
    await this.keeper.checkJournals();
    this.keeper.checkStatus();
    await this.#disturbNobody();
    this.keeper.checkStatus();
  }

  /** A machine that never boots its target goes back, and waits for people to choose something else. */
  async #cure(): Promise<void> {
    const excluded = new Set(
      [...this.keeper.machineConfigNodes.objects.values()]
        .filter(({ metadata }) => metadata.annotations?.[annotations.refusedTargets] !== undefined)
        .flatMap(({ metadata }) => {
          const node = this.keeper.nodes.objects.get(metadata.name);
          return (node === undefined ? undefined : this.keeper.poolOf(node)?.metadata.name) ?? [];
        }),
    );
    for (const { metadata } of this.keeper.pools.objects.values()) {
      if (metadata.annotations?.[annotations.quarantined] !== undefined || excluded.has(metadata.name))
        await this.kube.apply(
          MachineConfig,
          this.#config(`60-${metadata.name}-quiet`, metadata.name, {
            "/etc/test/quiet": `cure ${(this.#serial += 1)}`,
          }),
          { owner: "people", force: true },
        );
    }
  }

  /** Every process and the API server restart: no machine and no count may show it. */
  async #disturbNobody(): Promise<void> {
    this.keeper.countsStand(true);
    for (const machine of this.machines.values()) machine.killDaemon();
    await this.pass(40_000);
    this.killController();
    this.restartServer();
    await this.pass(60_000);
    this.keeper.countsStand(false);
  }

  /** The report of a violation, for finding the bug. */
  history(): string {
    return [
      `seed ${this.#options.seed}, trace ${this.kernel.traceHash}, ${this.kernel.events} events, ${Math.round(this.kernel.now / 1000)} virtual seconds`,
      ...this.keeper.violations.map(
        ({ invariant, atMs, what }) => `  invariant ${invariant} (${invariants[invariant]}) at ${atMs} ms: ${what}`,
      ),
      ...this.failures.map(
        (error) => `  a process ended: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      ),
      ...(process.env["SEED"] === undefined
        ? []
        : (this.keeper.violations[0]?.before ?? this.kernel.recent).map((line) => `    ${line}`)),
    ].join("\n");
  }
}

export interface RunResult {
  readonly seed: number;
  readonly simulation: Simulation;
  readonly traceHash: string;
}

export async function simulate(options: SimulationOptions): Promise<RunResult> {
  const simulation = new Simulation(options);
  await simulation.setUp();
  options.plant?.rogue?.(simulation);
  await simulation.storm();
  return { seed: options.seed, simulation, traceHash: simulation.kernel.traceHash };
}
