import { type Node, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { daemonController } from "../../src/daemon/daemon-controller.ts";
import { openNodeJournal } from "../../src/daemon/machine-books.ts";
import type { Host } from "../../src/host/host.ts";
import { type HostEffect, type MemoryHost, memoryHost } from "../support/hosts/memory-host.ts";
import { runControllers } from "../../src/kube/controller.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { type KubeClient, updateObject } from "../../src/kube/kube-client.ts";
import type { HttpHandler } from "../../src/ports/http.ts";
import type { Kernel } from "./kernel.ts";
import { Life } from "./process.ts";
import { ownConfigs } from "../support/cluster-configs.ts";

export const stockImage = "os/stock@sha256:0";
/** The image that people sometimes choose instead of the stock image. */
export const otherImage = "os/other@sha256:0";
const stock = {
  etc: { "/etc/chrony.conf": "vendor", "/etc/containers/registries.conf": "" },
  usr: { "/usr/lib/systemd/system/crio.service": "[Install]\nWantedBy=multi-user.target\n" },
};

export interface MachineOptions {
  readonly kernel: Kernel;
  /** As an administrator, without a network: the machine's kubelet. */
  readonly kube: KubeClient;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly connect: (life: Life) => HttpHandler;
  readonly client: (transport: HttpHandler, life: Life) => KubeClient;
  /** Probability that the daemon dies at an effect on its host. */
  readonly crashAtEffect: () => number;
  /** Called before every reboot that the daemon asks for. */
  readonly onReboot: (machine: SimulatedMachine, because: string) => void;
  /** For planted bugs: replaces the daemon's host. */
  readonly tamper?: (host: Host, machine: SimulatedMachine) => Host;
  readonly onFailure: (error: unknown) => void;
  /** Something happened to the machine's host. */
  readonly onEffect: (machine: string, effect: HostEffect) => void;
}

/** One machine: a memory host, a kubelet that reports, and a daemon that can die at any time and comes back. */
export class SimulatedMachine {
  readonly name: string;
  readonly host: MemoryHost;
  readonly #options: MachineOptions;
  #life: Life | undefined;
  #power: "on" | "down" = "down";
  effects = 0;

  constructor(options: MachineOptions) {
    this.#options = options;
    this.name = options.name;
    this.host = memoryHost({
      images: {
        [stockImage]: stock,
        [otherImage]: { ...stock, etc: { ...stock.etc, "/etc/chrony.conf": "another vendor" } },
      },
      image: stockImage,
      kernelArguments: ["root=x"],
      random: options.kernel.random,
      onReboot: (because) => this.#reboot(because),
      onEffect: (effect) => options.onEffect(options.name, effect),
    });
  }

  get isUp(): boolean {
    return this.#power === "on";
  }

  get daemonLives(): boolean {
    return this.#life?.alive === true;
  }

  /** First start: registers the node. */
  async join(): Promise<void> {
    const { kube, labels, name } = this.#options;
    await this.host.units.enable("crio.service", new AbortController().signal);
    const node: Node = { apiVersion: "v1", kind: "Node", metadata: { name, labels: { ...labels } }, spec: {} };
    await kube.create(kubernetes.Node, node);
    await this.#boot(true);
  }

  killDaemon(): void {
    if (this.#life?.alive !== true) return;
    this.#life.kill();
    this.#options.kernel.schedule(this.#options.kernel.between(1000, 8000), `${this.name}: daemon starts again`, () => {
      if (this.#power === "on") this.#startDaemon();
    });
  }

  powerCut(): void {
    if (this.#power !== "on") return;
    this.#goDown();
    this.#options.kernel.schedule(
      this.#options.kernel.between(20_000, 60_000),
      `${this.name}: power comes back`,
      () => void this.#boot(false),
    );
  }

  #reboot(because: string): void {
    this.#options.onReboot(this, because);
    this.#options.kernel.schedule(this.#options.kernel.between(200, 3000), `${this.name}: goes down`, () => {
      if (this.#power !== "on") return;
      this.#goDown();
      this.#options.kernel.schedule(
        this.#options.kernel.between(10_000, 50_000),
        `${this.name}: comes up`,
        () => void this.#boot(true),
      );
    });
  }

  #goDown(): void {
    this.#power = "down";
    this.#life?.kill();
    void this.#report(false);
  }

  async #boot(orderly: boolean): Promise<void> {
    await this.host.boot({ orderly });
    this.#power = "on";
    await this.#report(true);
    this.#options.kernel.schedule(this.#options.kernel.between(500, 4000), `${this.name}: daemon starts`, () =>
      this.#startDaemon(),
    );
  }

  async #report(ready: boolean): Promise<void> {
    const { kube, kernel, name } = this.#options;
    const { bootId } = await this.host.os.status(new AbortController().signal);
    const now = new Date(kernel.clock.now()).toISOString();
    await updateObject(
      kube,
      kubernetes.Node,
      { name },
      (node) => ({
        status: {
          ...node.status,
          nodeInfo: { ...node.status?.nodeInfo, bootID: bootId } as NonNullable<Node["status"]>["nodeInfo"] & object,
          conditions: [
            {
              type: "Ready",
              status: ready ? "True" : "False",
              reason: ready ? "KubeletReady" : "KubeletNotReady",
              message: "",
              lastTransitionTime: now,
              lastHeartbeatTime: now,
            },
          ],
        },
      }),
      { subresource: "status", owner: "kubelet" },
    );
  }

  #startDaemon(): void {
    if (this.#life?.alive === true || this.#power !== "on") return;
    const { kernel, name, connect, client, crashAtEffect, tamper, onFailure } = this.#options;
    const configs = ownConfigs(name, this.#options.kube, onFailure);
    const life = new Life(kernel, `daemon/${name}`);
    this.#life = life;
    const kube = client(connect(life), life);
    const events = createEventRecorder({ ...life.ports, kube, component: "machineconfigdaemon", host: name });
    const point = (effect: string) => {
      if (/\.(read|state|status|lookup|group|passwordHash|vendor|watch|links|labels)$/.test(effect)) return;
      this.effects += 1;
      if (kernel.chance(crashAtEffect())) this.killDaemon();
    };
    const host = life.wrap(tamper?.(this.host, this) ?? this.host, "host", point);
    void (async () => {
      const { journal, past } = await openNodeJournal({ ...life.ports, host, nodeName: name, kube }, life.signal);
      life.signal.addEventListener("abort", () => journal.stop(), { once: true });
      await runControllers(
        [daemonController({ host, nodeName: name, configs, past })],
        { ...life.ports, journal, kube, events, coalesceMs: 50 },
        life.signal,
      );
    })().catch(onFailure);
  }
}
