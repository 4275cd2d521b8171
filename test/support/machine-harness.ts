import { type Event, type Node, type Pod, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import type { JournalLine } from "../../src/api/books/journal-line.ts";
import { MachineStateJournal } from "../../src/api/books/machine-state-journal.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../../src/api/kinds/machine-configuration.ts";
import { annotations, hostPaths, labels, notYetSet, objects } from "../../src/api/names.ts";
import type { UserPolicies } from "../../src/core/config/disruption-policy.ts";
import { mergePolicies } from "../../src/core/config/disruption-policy.ts";
import { type ChapterRecord, foldBook } from "../../src/core/books/fold-book.ts";
import { journalOfNode } from "../../src/core/books/journal.ts";
import { drainController } from "../../src/controller/drain-controller.ts";
import { daemonController } from "../../src/daemon/daemon-controller.ts";
import { type DaemonFacts, newDaemonFacts } from "../../src/daemon/daemon-facts.ts";
import type { Host } from "../../src/host/host.ts";
import { type MemoryHost, type MemoryHostOptions, memoryHost } from "./hosts/memory-host.ts";
import { encodeDataUrl } from "../../src/ignition/data-url.ts";
import { runControllers } from "../../src/kube/controller.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import type { ConfigReader } from "../../src/daemon/delivered-configs.ts";
import { type Settled, applyImageContent } from "../../src/daemon/apply-image-content.ts";
import type { HttpHandler } from "../../src/ports/http.ts";
import { completeFirstBoot } from "../../src/daemon/first-boot.ts";
import { firstBootJournal, openNodeJournal } from "../../src/daemon/machine-books.ts";
import { type Journal, type JournalEntry, memoryJournal } from "../../src/ports/journal.ts";
import { type InProcessCluster, inProcessCluster } from "../simulation/in-process-cluster.ts";
import { Kernel } from "../simulation/kernel.ts";
import { Life } from "../simulation/process.ts";
import { notWithin } from "./not-within.ts";
import { VirtualHarness } from "./virtual-harness.ts";
import { clusterConfigs } from "./cluster-configs.ts";

export const images = {
  "os@sha256:1": {
    etc: { "/etc/app.conf": "vendor", "/etc/containers/registries.conf": "" },
    usr: {
      "/usr/lib/systemd/system/crio.service": "[Service]\nExecStart=/bin/crio\n[Install]\nWantedBy=multi-user.target\n",
    },
  },
  "os@sha256:2": {
    etc: { "/etc/app.conf": "vendor 2", "/etc/containers/registries.conf": "" },
    usr: {
      "/usr/lib/systemd/system/crio.service": "[Service]\nExecStart=/bin/crio\n[Install]\nWantedBy=multi-user.target\n",
    },
  },
  "extensions@sha256:1": { etc: {}, usr: {} },
} as const;

/** A configuration in few words. */
export interface Content {
  readonly files?: Readonly<Record<string, string>>;
  readonly units?: readonly object[];
  readonly keys?: readonly string[];
  readonly spec?: Partial<MachineConfig["spec"]>;
  /** Laid over the Ignition config. */
  readonly ignition?: Readonly<Record<string, unknown>>;
}

export function machineConfigOf(
  name: string,
  { files = {}, units = [], keys = [], spec = {}, ignition = {} }: Content,
): MachineConfig {
  return {
    apiVersion: MachineConfig.apiVersion,
    kind: "MachineConfig",
    metadata: { name },
    spec: {
      osImageURL: "os@sha256:1",
      baseOSExtensionsContainerImage: "extensions@sha256:1",
      config: {
        ignition: { version: "3.5.0" },
        storage: {
          files: Object.entries(files).map(([path, text]) => ({
            path,
            mode: 0o644,
            contents: { source: encodeDataUrl(text) },
          })),
        },
        systemd: { units: [...units] },
        ...(keys.length === 0 ? {} : { passwd: { users: [{ name: "core", sshAuthorizedKeys: [...keys] }] } }),
        ...ignition,
      },
      ...spec,
    },
  };
}

const { signal: never } = new AbortController();

/** One machine with its daemon and a drain controller, in virtual time, against an API server in memory. */
export class MachineHarness extends VirtualHarness {
  readonly host: MemoryHost;
  readonly name = "worker-0";
  readonly history: (JournalEntry & { readonly at: number })[] = [];
  /** The daemon's requests to the API server, `METHOD path`, with their times. */
  readonly requests: { readonly at: number; readonly what: string; readonly bytes: number }[] = [];
  /** The daemon's effects on its machine, in order. */
  readonly effects: string[] = [];
  readonly reboots: string[] = [];
  facts: DaemonFacts = newDaemonFacts();
  /** `false`: the machine stays up when it is asked to reboot. */
  goesDown = true;
  /** Where the daemon gets configurations from. */
  configs: ConfigReader = clusterConfigs;
  /** Wraps the host that the daemon sees. */
  tamper: (host: Host) => Host = (host) => host;
  /** What the machine's own services do when it boots, before the daemon starts. */
  atBoot: () => Promise<void> = () => Promise.resolve();
  /** Wraps the host that applies the image's content. */
  contentHost: (host: Host) => Host = (host) => host;
  /** The result of each application of the image's content. */
  readonly settlings: Settled[] = [];
  /** Intercepts requests of the daemon to the API server. */
  intercept: (next: HttpHandler) => HttpHandler = (next) => next;
  /** Kills the daemon at its n-th effect on the machine, counted from 1; it starts again a little later. */
  killAt: { readonly effect: number; readonly when: "before" | "after" } | undefined;
  /** Runs instead of the daemon's start. */
  onDeath: (() => void) | undefined;
  #effectsSoFar = 0;
  #isDown = false;
  #life: Life | undefined;

  private constructor(cluster: InProcessCluster, kernel: Kernel, options: Partial<MemoryHostOptions>) {
    super(kernel, cluster);
    this.host = memoryHost({
      images,
      image: "os@sha256:1",
      kernelArguments: ["root=x"],
      random: kernel.random,
      applyImageContent: (host) => this.applyContent(host),
      ...options,
      onReboot: (because) => this.#reboot(because),
    });
  }

  static async make(
    options: Partial<MemoryHostOptions> & { readonly policies?: UserPolicies } = {},
  ): Promise<MachineHarness> {
    const kernel = new Kernel(11);
    const cluster = await kernel.complete(inProcessCluster(kernel), 60_000);
    const harness = new MachineHarness(cluster, kernel, options);
    const { kube } = cluster;
    await harness.act(async () => {
      for (const name of ["default", "openshift-machine-config-operator"])
        await kube.apply(kubernetes.Namespace, { metadata: { name } }, { owner: "test" });
      await kube.create(MachineConfigPool, {
        apiVersion: MachineConfigPool.apiVersion,
        kind: "MachineConfigPool",
        metadata: { name: "worker" },
        spec: {
          machineConfigSelector: { matchLabels: { [labels.role]: "worker" } },
          nodeSelector: { matchLabels: { [labels.workerRole]: "" } },
        },
      });
      await kube.create(MachineConfiguration, {
        apiVersion: MachineConfiguration.apiVersion,
        kind: "MachineConfiguration",
        metadata: { name: objects.machineConfiguration },
        spec: {
          managementState: "Managed",
          logLevel: "Normal",
          operatorLogLevel: "Normal",
          ...(options.policies === undefined ? {} : { nodeDisruptionPolicy: options.policies }),
        },
      });
      const status = {
        observedGeneration: 1,
        nodeDisruptionPolicyStatus: { clusterPolicies: mergePolicies(options.policies) },
      };
      await kube.patch(
        MachineConfiguration,
        { name: objects.machineConfiguration },
        { type: "merge", body: { status } },
        { subresource: "status" },
      );
      const node = await kube.create(kubernetes.Node, {
        apiVersion: "v1",
        kind: "Node",
        metadata: { name: harness.name, labels: { [labels.workerRole]: "" } },
        spec: {},
      });
      await kube.patch(kubernetes.Node, { name: harness.name }, { type: "merge", body: { spec: { taints: null } } });
      await kube.create(MachineConfigNode, {
        apiVersion: MachineConfigNode.apiVersion,
        kind: "MachineConfigNode",
        metadata: {
          name: harness.name,
          ownerReferences: [{ apiVersion: "v1", kind: "Node", name: harness.name, uid: node.metadata.uid ?? "" }],
        },
        spec: { node: { name: harness.name }, pool: { name: "worker" }, configVersion: { desired: notYetSet } },
      });
      await kube.create(MachineStateJournal, {
        apiVersion: MachineStateJournal.apiVersion,
        kind: "MachineStateJournal",
        metadata: { name: journalOfNode(harness.name) },
        spec: { lines: [], last: [] },
      });
      await harness.host.units.enable("crio.service", never);
      await harness.host.boot({ orderly: true });
    });
    const ports = {
      clock: kernel.clock,
      random: kernel.random,
      log: new Life(kernel, "drain").ports.log,
      journal: memoryJournal(),
    };
    void runControllers(
      [drainController()],
      { ...ports, kube, events: createEventRecorder({ ...ports, kube, component: "machineconfigcontroller" }) },
      never,
    );
    return harness;
  }

  override async pass(ms: number): Promise<void> {
    let over = false;
    this.kernel.schedule(ms, "time passes", () => {
      over = true;
    });
    await this.kernel.run({ until: () => over, maxMs: ms });
  }

  /** Lets time pass until it holds, an hour at most. */
  async until(holds: () => Promise<boolean>, what: string): Promise<void> {
    for (let minutes = 0; minutes < 240; minutes += 1) {
      if (await this.act(holds)) return;
      await this.pass(15_000);
    }
    const { metadata, spec } = await this.node();
    throw notWithin(3600, what, { ...metadata.annotations, ...spec });
  }

  config(name: string, content: Content): Promise<MachineConfig> {
    return this.act(() => this.kube.create(MachineConfig, machineConfigOf(name, content)));
  }

  node(): Promise<Node> {
    return this.act(async () => {
      const node = await this.kube.get(kubernetes.Node, { name: this.name });
      if (node === undefined) throw new Error("the node is gone");
      return node;
    });
  }

  async annotation(key: string): Promise<string | undefined> {
    return (await this.node()).metadata.annotations?.[key];
  }

  annotate(changes: Readonly<Record<string, string | null>>): Promise<unknown> {
    return this.act(() =>
      this.kube.patch(
        kubernetes.Node,
        { name: this.name },
        { type: "merge", body: { metadata: { annotations: changes } } },
      ),
    );
  }

  desire(name: string): Promise<unknown> {
    return this.annotate({ [annotations.desiredConfig]: name });
  }

  /** The node reports Done with this configuration, and is in service. */
  async untilDone(name: string): Promise<void> {
    await this.until(async () => {
      const node = await this.kube.get(kubernetes.Node, { name: this.name });
      const has = node?.metadata.annotations ?? {};
      return (
        has[annotations.currentConfig] === name &&
        has[annotations.state] === "Done" &&
        node?.spec?.unschedulable !== true
      );
    }, `${name} is done`);
    await this.pass(2_000);
  }

  async untilState(state: string): Promise<string> {
    await this.until(
      async () =>
        (await this.kube.get(kubernetes.Node, { name: this.name }))?.metadata.annotations?.[annotations.state] ===
        state,
      `state ${state}`,
    );
    await this.pass(2_000);
    return (await this.annotation(annotations.reason)) ?? "";
  }

  /** Condition `type` of the MachineConfigNode: `status reason`. */
  async condition(type: string): Promise<string> {
    const object = await this.act(() => this.kube.get(MachineConfigNode, { name: this.name }));
    const found = object?.status?.conditions?.find((one) => one.type === type);
    return `${found?.status} ${found?.reason}`;
  }

  async events(): Promise<readonly string[]> {
    await this.pass(5_000);
    const { items } = await this.act(() => this.kube.list<Event>(kubernetes.Event));
    return items.map(({ reason }) => reason ?? "");
  }

  pod(name: string): Promise<Pod> {
    return this.act(() =>
      this.kube.create(kubernetes.Pod, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: {
          name,
          namespace: "default",
          ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "r", uid: "r", controller: true }],
        },
        spec: { nodeName: this.name, containers: [{ name: "c", image: "i", resources: {} }] },
      }),
    );
  }

  async file(path: string): Promise<string | undefined> {
    const entry = await this.host.files.read(path, never);
    return entry?.kind === "file"
      ? new TextDecoder().decode(entry.contents)
      : entry?.kind === "link"
        ? `→ ${entry.target}`
        : entry?.kind;
  }

  put(path: string, text: string, mode = 0o644): Promise<void> {
    return this.host.files.write(
      [{ path, entry: { kind: "file", contents: new TextEncoder().encode(text), mode, uid: 0, gid: 0 } }],
      never,
    );
  }

  async ledgerDocument<T>(name: string): Promise<T | undefined> {
    const text = await this.host.ledger.read(name, never);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  start(): void {
    const life = new Life(this.kernel, "daemon");
    this.#life = life;
    this.facts = newDaemonFacts();
    const recorded: HttpHandler = (request, signal) => {
      this.requests.push({
        at: this.kernel.now,
        what: `${request.method} ${request.target.replace(/\?.*/, "")}`,
        bytes: request.body?.length ?? 0,
      });
      return this.intercept(this.cluster.transport)(request, signal);
    };
    const kube = this.cluster.client(
      (request, signal) => life.guard(() => recorded(request, signal)),
      life.ports.clock,
    );
    const events = createEventRecorder({ ...life.ports, kube, component: "machineconfigdaemon", host: this.name });
    const host = life.wrap(this.tamper(this.host), "host", (effect, when) => {
      if (
        /\.(read|state|status|lookup|group|passwordHash|vendor|watch|freeBytes|madeFolder|placeOf|links|installed|finaliseFailure|labels)$/.test(
          effect,
        )
      )
        return;
      if (when === "before") this.effects.push(effect.slice("host.".length));
      this.#crashPoint(life, when);
    });
    // Journal lines are not counted as effects on the machine, and take no time.
    const books = life.wrap({ ...this.host, books: this.host.books }, "books", () => undefined);
    void (async () => {
      const { journal: real, past } = await openNodeJournal(
        { ...life.ports, host: books, nodeName: this.name, kube },
        life.signal,
      );
      life.signal.addEventListener("abort", () => real.stop(), { once: true });
      const journal: Journal = {
        line: (line) => {
          if (!life.alive) return;
          this.history.push({ ...line, at: this.kernel.now });
          real.line(line);
        },
        flush: (signal) => real.flush(signal),
      };
      await runControllers(
        [
          daemonController({
            host,
            nodeName: this.name,
            configs: (...asked) => this.configs(...asked),
            facts: this.facts,
            past,
            refreshCredentials: async () => void this.effects.push("credentials"),
          }),
        ],
        { ...life.ports, journal, kube, events, coalesceMs: 50 },
        life.signal,
      );
    })().catch(() => undefined);
  }

  kill(): void {
    this.#life?.kill();
  }

  /** `killAt` counts from the next effect. */
  countEffectsFromHere(): void {
    this.#effectsSoFar = 0;
  }

  #crashPoint(life: Life, when: "before" | "after"): void {
    if (when === "before") this.#effectsSoFar += 1;
    if (this.killAt?.effect !== this.#effectsSoFar || this.killAt.when !== when) return;
    this.killAt = undefined;
    life.kill();
    if (this.onDeath !== undefined) {
      this.#isDown = true;
      this.kernel.schedule(1_000, "what follows", this.onDeath);
      this.onDeath = undefined;
      return;
    }
    this.kernel.schedule(3_000, "the daemon starts again", () => {
      if (!this.#isDown && this.#life?.alive !== true) this.start();
    });
  }

  /** What the unit that applies the image's content does. */
  async applyContent(host: Host): Promise<void> {
    const { ports } = new Life(this.kernel, "settle");
    this.settlings.push(await applyImageContent({ ...ports, host: this.contentHost(host) }, never));
    const last = this.settlings.at(-1);
    if (last?.verdict === "failed") throw new Error(last.cause);
  }

  /** The machine goes down and comes up again; without `orderly` it loses its power. */
  async boot(how: { readonly orderly: boolean }): Promise<void> {
    this.kill();
    await this.host.boot(how);
    await this.atBoot();
    this.#isDown = false;
    this.start();
  }

  #reboot(because: string): void {
    this.reboots.push(because);
    if (!this.goesDown) return;
    this.kernel.schedule(1_000, "goes down", () => {
      this.kill();
      this.#isDown = true;
      this.kernel.schedule(20_000, "comes up", () => void this.boot({ orderly: true }));
    });
  }

  /**
   * The machine starts with this configuration: Ignition has done its part, the rest is done before there is a daemon.
   */
  async firstBoot(name: string, content: Content, images: Readonly<Record<string, string>> = {}): Promise<void> {
    const config = machineConfigOf(name, content);
    for (const [path, text] of Object.entries(content.files ?? {})) await this.put(path, text);
    await this.put(hostPaths.servedConfig, JSON.stringify(config), 0o600);
    await this.put(
      hostPaths.encapsulated,
      JSON.stringify({ ...config, spec: { ...config.spec, config: { ignition: { version: "3.5.0" } } } }),
    );
    await this.put(
      hostPaths.nodeAnnotations,
      JSON.stringify({
        [annotations.currentConfig]: name,
        [annotations.desiredConfig]: name,
        [annotations.state]: "Done",
        ...images,
      }),
    );
    this.goesDown = false;
    await this.act(async () => {
      const { ports } = new Life(this.kernel, "first boot");
      const journal = await firstBootJournal({ ...ports, host: this.host }, never);
      await completeFirstBoot({ ...ports, journal, host: this.host, file: hostPaths.encapsulated }, never);
      await journal.flush();
      journal.stop();
      await this.host.boot({ orderly: true });
    });
    this.goesDown = true;
  }

  /** The machine's journal so far. */
  async journal(): Promise<readonly JournalLine[]> {
    await this.pass(15_000);
    const object = await this.act(() => this.kube.get(MachineStateJournal, { name: journalOfNode(this.name) }));
    return object?.spec.lines ?? [];
  }

  /** The chapters that follow from the journal. */
  async chapters(): Promise<readonly ChapterRecord[]> {
    return foldBook(`node/${this.name}`, await this.journal(), { now: this.kernel.clock.now() });
  }

  /** A machine in service with this configuration. */
  async updatedTo(name: string, content: Content, images: Readonly<Record<string, string | null>> = {}): Promise<void> {
    await this.config(name, content);
    await this.annotate({ [annotations.desiredConfig]: name, ...images });
    this.start();
    await this.untilDone(name);
    this.reboots.length = 0;
    this.effects.length = 0;
    this.history.length = 0;
  }
}
