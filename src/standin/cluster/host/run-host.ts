import type { Taint } from "../../../api/foreign/kubernetes.ts";
import type { ControlHandler, HostMachine } from "../../../host/host.ts";
import type { KubeClient } from "../../../kube/kube-client.ts";
import type { Files } from "../../../ports/files.ts";
import { backedOff } from "../../../ports/random.ts";
import type { Ports } from "../../../ports/index.ts";
import { type LinkedSignal, linkedSignal } from "../../../ports/linked-signal.ts";
import type { Listen, TlsFiles } from "../../../ports/listener.ts";
import type { Processes } from "../../../ports/process.ts";
import { Kubelet } from "./kubelet.ts";
import { apiRetry } from "./node-object.ts";
import type { Locate } from "./pod-places.ts";
import { unmountBelow } from "./unmount-below.ts";

export interface HostOptions extends Ports {
  readonly nodeName: string;
  readonly address: string;
  readonly directory: string;
  readonly files: Files;
  readonly processes: Processes;
  readonly machine: HostMachine;
  /** Installs a system on a machine that has none. */
  readonly install: (report: ReportState, signal: AbortSignal) => Promise<void>;
  /** Runs before the kubelet starts, once the system is up; it may ask for a reboot. */
  readonly beforeKubelet: (signal: AbortSignal) => Promise<void>;
  /**
   * Makes the machine a member of the cluster, or finds that it is one. `lost`: the machine must be reinstalled to
   * join.
   */
  readonly enter: (report: ReportState, signal: AbortSignal) => Promise<KubeClient | "lost">;
  /** Certificate of its log server, once its Node identifies the machine. */
  readonly serving: (kube: KubeClient, signal: AbortSignal) => Promise<TlsFiles>;
  /** Initial taints of the Node. */
  readonly taints: readonly Taint[];
  readonly serveControl: (handle: ControlHandler, signal: AbortSignal) => Promise<void>;
  readonly listen: Listen;
  /** Links of machines are those of their users. */
  readonly locate: Locate;
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly version: string;
  readonly architecture: string;
}

/** Reports the progress of a machine that has not joined yet, as a keyword and as text. */
export type ReportState = (
  state: "fetching" | "waiting" | "installing" | "joining" | "refused",
  reason: string,
) => void;

/** How long a pod may take to end at a reboot. */
const shutdownGraceMs = 10_000;

/**
 * One machine of a one-machine cluster: init (boot, reboot, power) and a kubelet (node, pods, logs). Pods are its
 * children. Runs until `signal` aborts, then shuts the machine down in order.
 */
export async function runHost(options: HostOptions, signal: AbortSignal): Promise<void> {
  // A host process that was killed is a machine that lost its power: only an orderly end leaves this mark.
  const orderlyEnd = `${options.directory}/orderly-end`;
  const endedInOrder = (await options.files.stat(orderlyEnd)) !== undefined;
  await options.files.remove(orderlyEnd);
  // A killed program may have left a mount in the folder of its pod.
  await unmountBelow(options.directory, options, signal);
  await options.files.remove(podsFolderOf(options));

  const host = new RunningMachine(options, signal);
  await options.serveControl((verb, because) => host.control(verb, because), signal);
  host.begin(endedInOrder);
  await new Promise<void>((resolve) =>
    signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  await host.end();
  const patience = options.clock.deadline(shutdownGraceMs);
  await unmountBelow(options.directory, options, patience.signal);
  patience.cancel();
  await options.files.write(orderlyEnd, "");
}

const podsFolderOf = ({ directory }: Pick<HostOptions, "directory">) => `${directory}/pods`;

/** Init of one machine: what its power does, and how it becomes a member of the cluster. */
class RunningMachine {
  readonly #options: HostOptions;
  readonly #signal: AbortSignal;
  /** `off`: as after a failure; nothing runs and nothing is reported. */
  #power: "on" | "booting" | "goingDown" | "off" = "off";
  #bootId = "";
  #kubelet: Kubelet | undefined;
  /** How far a machine is that is no member yet. */
  #journey: { readonly state: string; readonly reason: string } | undefined;
  /** Transitions of power, one after the other. */
  #transition: Promise<void> = Promise.resolve();
  /** Ends the waiting of a start if the machine goes down meanwhile. */
  #going: LinkedSignal;
  readonly #background: Promise<void>[] = [];

  constructor(options: HostOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#going = linkedSignal(signal);
  }

  begin(orderly: boolean): void {
    this.#then(() => this.#start(orderly));
  }

  async end(): Promise<void> {
    await this.#transition.catch(() => undefined);
    await Promise.all(this.#background);
    this.#power = "off";
    await this.#stopPods(shutdownGraceMs);
  }

  async control(...[verb, because]: Parameters<ControlHandler>): ReturnType<ControlHandler> {
    const { log, machine } = this.#options;
    switch (verb) {
      case "status":
        return { power: this.#power, bootId: this.#bootId, ...this.#journey };
      case "reboot":
        if (this.#power !== "on" && this.#power !== "booting") return { accepted: false };
        log.info({ because }, "reboot requested");
        this.#leave("goingDown");
        this.#then(() => this.#reboot());
        return { accepted: true };
      case "power-cut":
        log.info({ because }, "power cut");
        this.#leave("goingDown");
        this.#then(() => this.#loseAndRegainPower());
        return { accepted: true };
      case "fail":
        log.info({ because }, "failing");
        this.#leave("off");
        this.#then(() => this.#stopPods(0));
        return { accepted: true };
      case "fail-to-finalise":
        // By this process, which owns the machine's folder while it boots, and not in the middle of that.
        this.#then(async () => machine.failToFinalise?.(because));
        return { accepted: machine.failToFinalise !== undefined };
      case "recover":
        if (this.#power !== "on") this.#then(() => this.#start(false));
        return { accepted: true };
      default:
        throw new Error(`a machine does not know "${verb}"`);
    }
  }

  /** Runs transitions one after the other; later requests wait. */
  #then(work: () => Promise<void>): void {
    const { clock, random, log } = this.#options;
    this.#transition = this.#transition.then(async () => {
      for (let failures = 1; !this.#signal.aborted; failures += 1) {
        try {
          await work();
          return;
        } catch (error) {
          // Otherwise the machine would stay off: every transition can be repeated.
          log.error({ error }, "power transition failed, trying again");
          await clock.sleep(backedOff(random, failures, apiRetry), this.#signal).catch(() => undefined);
        }
      }
    });
  }

  /** The machine goes down: end all waiting. */
  #leave(next: "goingDown" | "off"): void {
    this.#power = next;
    this.#going.abort(new Error("the machine goes down"));
  }

  async #reboot(): Promise<void> {
    this.#leave("goingDown");
    await this.#kubelet?.announceShutdown();
    await this.#stopPods(shutdownGraceMs);
    await this.#start(true);
  }

  async #loseAndRegainPower(): Promise<void> {
    await this.#stopPods(0);
    await this.#start(false);
  }

  async #stopPods(graceMs: number): Promise<void> {
    await this.#kubelet?.stopPods(graceMs);
  }

  /** As a call, since the power may change while a start waits. */
  #isInterrupted(): boolean {
    return this.#power !== "booting";
  }

  async #start(orderly: boolean): Promise<void> {
    const { install, directory, machine, beforeKubelet, log } = this.#options;
    this.#power = "booting";
    this.#going.release();
    const going = linkedSignal(this.#signal);
    this.#going = going;
    const until = going.signal;
    try {
      await install(this.#report, until);
      await unmountBelow(directory, this.#options, this.#signal);
      ({ bootId: this.#bootId } = await machine.boot({ orderly }));
      log.info({ bootId: this.#bootId }, "booted");
      // Applying the image's content may require another boot before anything else runs, and so may the first boot.
      if (this.#isInterrupted()) return;
      await beforeKubelet(until);
      if (this.#isInterrupted()) return;
      const entered = this.#kubelet ?? (await this.#enter(until));
      if (entered === "lost") return await this.#start(false);
      this.#kubelet = entered;
    } catch (error) {
      if (going.signal.aborted && !this.#signal.aborted) return;
      throw error;
    }
    if (this.#isInterrupted()) return;
    this.#power = "on";
    await this.#kubelet.begin();
  }

  readonly #report: ReportState = (state, reason) => {
    if (this.#journey?.state !== state || this.#journey.reason !== reason)
      this.#options.log.info({ state, reason }, "on the way into the cluster");
    this.#journey = { state, reason };
  };

  /** Retries until it has joined: an unavailable server is no reason to reboot. */
  async #enter(until: AbortSignal): Promise<Kubelet | "lost"> {
    const { clock, random, log } = this.#options;
    for (let failures = 1; ; failures += 1) {
      try {
        const kube = await this.#options.enter(this.#report, until);
        return kube === "lost" ? kube : this.#become(kube);
      } catch (error) {
        until.throwIfAborted();
        this.#report("waiting", error instanceof Error ? error.message : String(error));
        log.warn({ error }, "not in the cluster, trying again");
        await clock.sleep(backedOff(random, failures, apiRetry), until);
      }
    }
  }

  /** The machine is a member from here on, whatever its power does. */
  #become(kube: KubeClient): Kubelet {
    const folders = { podsFolder: podsFolderOf(this.#options) };
    const power = { isOn: () => this.#power === "on", bootId: () => this.#bootId };
    const kubelet = new Kubelet({ ...this.#options, ...folders, starts: new Map() }, kube, power, this.#signal);
    this.#background.push(kubelet.run());
    this.#journey = undefined;
    return kubelet;
  }
}
