import { withTransition } from "../../api/schema/conditions.ts";
import { conditionOf, timestampOf } from "../../api/schema/object.ts";
import { type Node, type Pod, type Taint, kubernetes } from "../../api/foreign/kubernetes.ts";

import type { ControlHandler, Machine } from "../../host/host.ts";
import { type KubeClient, updateObject } from "../../kube/kube-client.ts";
import { isAlreadyExists, retryAfterMs } from "../../kube/kube-error.ts";
import { WatchCache } from "../../kube/watch-cache.ts";
import type { Files } from "../../ports/files.ts";
import { backedOff, jittered } from "../../ports/random.ts";
import type { Ports } from "../../ports/index.ts";
import type { Listen, TlsFiles } from "../../ports/listener.ts";
import type { Processes } from "../../ports/process.ts";
import { kubeletClientName, ports } from "../layout.ts";
import { logResponse } from "./pod-logs.ts";
import { unmountBelow } from "./unmount-below.ts";
import { PodWorker, type PodWorkerOptions } from "./pod-worker.ts";

export interface HostOptions extends Ports {
  readonly nodeName: string;
  readonly address: string;
  readonly directory: string;
  readonly files: Files;
  readonly processes: Processes;
  readonly machine: Machine;
  /** Puts a system on the machine, where it has none. */
  readonly install: (tell: Tell, signal: AbortSignal) => Promise<void>;
  /** What waits for nothing but the system, before the kubelet starts; it may ask for a reboot. */
  readonly beforeKubelet: (signal: AbortSignal) => Promise<void>;
  /**
   * Makes the machine a member of the cluster, or finds that it is one. `lost`: it has to be installed anew for that.
   */
  readonly enter: (tell: Tell, signal: AbortSignal) => Promise<KubeClient | "lost">;
  /** What its logs are served with, once its Node says who it is. */
  readonly serving: (kube: KubeClient, signal: AbortSignal) => Promise<TlsFiles>;
  /** Taints that the Node begins with. */
  readonly taints: readonly Taint[];
  readonly serveControl: (handle: ControlHandler, signal: AbortSignal) => Promise<void>;
  readonly listen: Listen;
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly version: string;
  readonly architecture: string;
}

/** Says how far a machine is that is no member yet, in a word and for people. */
export type Tell = (state: "fetching" | "waiting" | "installing" | "joining" | "refused", reason: string) => void;

/** What a machine has that is a member of the cluster. */
interface Membership {
  readonly kube: KubeClient;
  readonly pods: WatchCache<Pod>;
  readonly workerOptions: PodWorkerOptions;
}

/** How often the node says that it lives, and how long a pod may take to end at a reboot. */
const heartbeatMs = 10_000;
const statusMs = 300_000;
const shutdownGraceMs = 10_000;
/** Between tries of what the API server did not take. */
const apiRetry = { firstMs: 500, lastMs: 5_000, spread: 0.2 };

/**
 * One machine of a one-machine cluster: init (boot, reboot, power) and a kubelet (node, pods, logs). Pods are its
 * children. Runs until `signal` aborts, then shuts the machine down in order.
 */
export async function runHost(options: HostOptions, signal: AbortSignal): Promise<void> {
  const { clock, random, log, machine, nodeName } = options;
  const podsFolder = `${options.directory}/pods`;
  const starts: PodWorkerOptions["starts"] = new Map();
  let membership: Membership | undefined;
  /** How far the machine is on its way to be one. */
  let journey: { readonly state: string; readonly reason: string } | undefined;
  const workers = new Map<string, PodWorker>();
  const terminating = new Map<string, Promise<void>>();
  /** `off`: as after a failure; nothing runs and nothing is reported. */
  let power: "on" | "booting" | "goingDown" | "off" = "off";
  let bootId = "";
  let transition: Promise<void> = Promise.resolve();
  /** Ends what a start waits for, when the machine goes down in the middle of it. */
  let going = new AbortController();
  const background: Promise<void>[] = [];

  // A host process that was killed is a machine that lost its power: only an orderly end leaves this mark.
  const orderlyEnd = `${options.directory}/orderly-end`;
  const endedInOrder = (await options.files.stat(orderlyEnd)) !== undefined;
  await options.files.remove(orderlyEnd);

  await options.files.remove(podsFolder);

  const tell: Tell = (state, reason) => {
    if (journey?.state !== state || journey.reason !== reason)
      log.info({ state, reason }, "on the way into the cluster");
    journey = { state, reason };
  };

  /** The machine is a member from here on, whatever its power does. */
  function become(kube: KubeClient): Membership {
    const pods = new WatchCache<Pod>({
      kube,
      resource: kubernetes.Pod,
      selection: { fieldSelector: `spec.nodeName=${nodeName}` },
      clock,
      random,
      log,
    });
    const workerOptions: PodWorkerOptions = {
      ...options,
      kube,
      hostAddress: options.address,
      hostRoot: `${options.directory}/rootfs`,
      podsFolder,
      starts,
    };
    const made = { kube, pods, workerOptions };
    pods.onChange(({ key }) => syncPod(made, key));
    background.push(pods.run(signal), heartbeat(kube), serveLogs(made));
    journey = undefined;
    return made;
  }

  function syncPod({ pods, workerOptions }: Membership, key: string): void {
    if (power !== "on") return;
    const pod = pods.get(key);
    for (const [uid, worker] of workers) {
      if (pod?.metadata.uid === uid) continue;
      if (`${worker.folder}`.startsWith(`${podsFolder}/${key.replace("/", "_")}_`)) end(uid, worker, false);
    }
    if (pod === undefined) return;
    const uid = pod.metadata.uid ?? "";
    const known = workers.get(uid);
    if (pod.metadata.deletionTimestamp !== undefined) {
      const worker = known ?? new PodWorker(pod, workerOptions);
      worker.update(pod);
      end(uid, worker, true);
      return;
    }
    if (pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed") return;
    if (known !== undefined) known.update(pod);
    else if (!terminating.has(uid)) {
      const worker = new PodWorker(pod, workerOptions);
      workers.set(uid, worker);
      worker.start();
    }
  }

  function end(uid: string, worker: PodWorker, tell: boolean): void {
    workers.delete(uid);
    if (terminating.has(uid)) return;
    const work = (async () => {
      for (let failures = 1; ; failures += 1) {
        try {
          await (tell ? worker.terminate() : worker.stop(0));
          return;
        } catch (error) {
          if (signal.aborted) return;
          log.warn({ error }, "pod not ended, trying again");
          await clock.sleep(backedOff(random, failures, apiRetry), signal).catch(() => undefined);
        }
      }
    })().finally(() => {
      terminating.delete(uid);
      worker.forget();
    });
    terminating.set(uid, work);
  }

  async function stopAll(graceMs: number): Promise<void> {
    const all = [...workers.values()];
    workers.clear();
    await Promise.all(all.map((worker) => worker.stop(graceMs)));
    await Promise.all(terminating.values());
  }

  const isInterrupted = () => power !== "booting";

  async function start(orderly: boolean): Promise<void> {
    power = "booting";
    going = new AbortController();
    const until = AbortSignal.any([signal, going.signal]);
    try {
      await options.install(tell, until);
      await unmountBelow(options.directory, options, signal);
      ({ bootId } = await machine.boot({ orderly }));
      log.info({ bootId }, "booted");
      // Settling may want the machine to boot once more before anything else runs on it, and so may its first boot.
      if (isInterrupted()) return;
      await options.beforeKubelet(until);
      if (isInterrupted()) return;
      const entered = membership ?? (await enter(until));
      if (entered === "lost") return await start(false);
      membership = entered;
    } catch (error) {
      if (going.signal.aborted && !signal.aborted) return;
      throw error;
    }
    if (isInterrupted()) return;
    power = "on";
    const { kube, pods } = membership;
    await writeNode(kube, true, "KubeletReady", "the kubelet is ready");
    for (const pod of pods.list()) syncPod(membership, `${pod.metadata.namespace}/${pod.metadata.name}`);
  }

  /** Tries until it is a member: a server that is away is no reason to boot again. */
  async function enter(until: AbortSignal): Promise<Membership | "lost"> {
    for (let failures = 1; ; failures += 1) {
      try {
        const kube = await options.enter(tell, until);
        return kube === "lost" ? kube : become(kube);
      } catch (error) {
        until.throwIfAborted();
        tell("waiting", error instanceof Error ? error.message : String(error));
        log.warn({ error }, "not in the cluster, trying again");
        await clock.sleep(backedOff(random, failures, apiRetry), until);
      }
    }
  }

  /** The machine goes down: what waits for something else waits no more. */
  function leave(next: "goingDown" | "off"): void {
    power = next;
    going.abort(new Error("the machine goes down"));
  }

  /** Runs transitions one after the other; what comes in while one runs, waits. */
  function then(work: () => Promise<void>): void {
    transition = transition.then(async () => {
      for (let failures = 1; !signal.aborted; failures += 1) {
        try {
          await work();
          return;
        } catch (error) {
          // Left as it is, the machine would stay dark: every transition may be begun again.
          log.error({ error }, "power transition failed, trying again");
          await clock.sleep(backedOff(random, failures, apiRetry), signal).catch(() => undefined);
        }
      }
    });
  }

  async function shutdown(): Promise<void> {
    leave("goingDown");
    if (membership !== undefined)
      await writeNode(membership.kube, false, "KubeletNotReady", "node is shutting down").catch(() => undefined);
    await stopAll(shutdownGraceMs);
  }

  const control: ControlHandler = async (verb, because) => {
    switch (verb) {
      case "status":
        return { power, bootId, ...journey };
      case "reboot":
        if (power !== "on" && power !== "booting") return { accepted: false };
        log.info({ because }, "reboot requested");
        leave("goingDown");
        then(async () => {
          await shutdown();
          await start(true);
        });
        return { accepted: true };
      case "power-cut":
        log.info({ because }, "power cut");
        leave("goingDown");
        then(async () => {
          await stopAll(0);
          await start(false);
        });
        return { accepted: true };
      case "fail":
        log.info({ because }, "failing");
        leave("off");
        then(() => stopAll(0));
        return { accepted: true };
      case "fail-to-finalise":
        // By this process, which owns the machine's folder while it boots, and not in the middle of that.
        then(async () => machine.failToFinalise?.(because));
        return { accepted: machine.failToFinalise !== undefined };
      case "recover":
        if (power !== "on") then(() => start(false));
        return { accepted: true };
      default:
        throw new Error(`a machine does not know "${verb}"`);
    }
  };

  async function writeNode(kube: KubeClient, ready: boolean, reason: string, message: string): Promise<void> {
    for (let failures = 1; ; failures += 1) {
      try {
        await registerNode(kube);
        await updateObject(
          kube,
          kubernetes.Node,
          { name: nodeName },
          (node) => ({ status: statusOf(node, ready, reason, message) }),
          { subresource: "status", owner: "kubelet", signal },
        );
        return;
      } catch (error) {
        if (signal.aborted) throw error;
        log.debug({ error }, "node not written");
        await clock.sleep(Math.max(retryAfterMs(error), backedOff(random, failures, apiRetry)), signal);
      }
    }
  }

  async function registerNode(kube: KubeClient): Promise<void> {
    const labels = {
      "kubernetes.io/hostname": nodeName,
      "kubernetes.io/os": "linux",
      "kubernetes.io/arch": options.architecture,
      "node.openshift.io/os_id": "mco",
    };
    const existing = await kube.get(kubernetes.Node, { name: nodeName }, { signal });
    if (existing !== undefined) {
      const same = Object.entries(labels).every(([label, value]) => existing.metadata.labels?.[label] === value);
      if (!same)
        await kube.patch(
          kubernetes.Node,
          { name: nodeName },
          { type: "merge", body: { metadata: { labels } } },
          { owner: "kubelet", signal },
        );
      return;
    }
    try {
      await kube.create(
        kubernetes.Node,
        {
          apiVersion: "v1",
          kind: "Node",
          metadata: { name: nodeName, labels },
          spec: options.taints.length === 0 ? {} : { taints: [...options.taints] },
        },
        { owner: "kubelet", signal },
      );
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }

  function statusOf(node: Node, ready: boolean, reason: string, message: string): NonNullable<Node["status"]> {
    const condition = (type: string, is: boolean, why: string, text: string) =>
      withTransition(
        conditionOf(node.status?.conditions, type),
        { type, status: is ? "True" : "False", reason: why, message: text, lastHeartbeatTime: timestamp() },
        clock.now(),
      );
    return {
      ...node.status,
      addresses: [
        { type: "InternalIP", address: options.address },
        { type: "Hostname", address: nodeName },
      ],
      capacity: { cpu: "2", memory: "8Gi", pods: "110", "ephemeral-storage": "64Gi" },
      allocatable: { cpu: "2", memory: "8Gi", pods: "110", "ephemeral-storage": "64Gi" },
      daemonEndpoints: { kubeletEndpoint: { Port: ports.kubelet } },
      conditions: [
        condition("MemoryPressure", false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        condition("DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("PIDPressure", false, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        condition("Ready", ready, reason, message),
      ],
      nodeInfo: {
        machineID: nodeName,
        systemUUID: nodeName,
        bootID: bootId,
        kernelVersion: "directory-host",
        osImage: "MCO stock OS 1",
        containerRuntimeVersion: `process://${options.version}`,
        kubeletVersion: `v1.34.0-mco.${options.version}`,
        kubeProxyVersion: "",
        operatingSystem: "linux",
        architecture: options.architecture,
      },
    };
  }

  const timestamp = () => timestampOf(clock.now());

  async function heartbeat(kube: KubeClient): Promise<void> {
    const key = { name: nodeName, namespace: "kube-node-lease" };
    let statusAt = clock.monotonic();
    let failures = 0;
    while (!signal.aborted) {
      if (power === "on") {
        // A beat that gets no answer must not take the place of the next ones: the lease lasts for four.
        const beat = clock.deadline(heartbeatMs, signal);
        try {
          const renewTime = `${new Date(clock.now()).toISOString().slice(0, 23)}000Z`;
          const spec = { holderIdentity: nodeName, leaseDurationSeconds: 40, renewTime };
          const renewed = await updateObject(kube, kubernetes.Lease, key, () => ({ spec }), { signal: beat.signal });
          if (renewed === undefined)
            await kube.create(
              kubernetes.Lease,
              { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: key, spec },
              { signal: beat.signal },
            );
          // Somebody may have taken this machine for lost while it was silent: then its status is written at once.
          const node = await kube.get(kubernetes.Node, { name: nodeName }, { signal: beat.signal });
          failures = 0;
          const takenForLost = node?.status?.conditions?.find(({ type }) => type === "Ready")?.status !== "True";
          if (power === "on" && (takenForLost || clock.monotonic() - statusAt > statusMs)) {
            await writeNode(kube, true, "KubeletReady", "the kubelet is ready");
            statusAt = clock.monotonic();
          }
        } catch (error) {
          failures += 1;
          if (!signal.aborted) log.debug({ error }, "heartbeat failed");
        } finally {
          beat.cancel();
        }
      }
      await clock
        .sleep(
          failures === 0
            ? jittered(random, heartbeatMs, 0.04)
            : Math.min(heartbeatMs, backedOff(random, failures, apiRetry)),
          signal,
        )
        .catch(() => undefined);
    }
  }

  /** As soon as there is something to serve with, and never given up. */
  async function serveLogs({ kube, pods }: Membership): Promise<void> {
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        await options.listen(
          { host: options.address, port: ports.kubelet, tls: await options.serving(kube, signal) },
          async (request, client, requestSignal) => {
            if (client === undefined) return { status: 401, headers: {}, body: "Unauthorized\n" };
            if (client.commonName !== kubeletClientName && !client.organizations.includes("system:masters"))
              return { status: 403, headers: {}, body: "Forbidden\n" };
            return logResponse(
              request,
              {
                files: options.files,
                clock,
                podOf: (key) => pods.get(key),
                logFile: (pod, container) =>
                  `${podsFolder}/${pod.metadata.namespace}_${pod.metadata.name}_${pod.metadata.uid}/${container}.log`,
              },
              requestSignal,
            );
          },
          signal,
        );
        return;
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ error }, "logs are not served, trying again");
        await clock.sleep(backedOff(random, failures, apiRetry), signal).catch(() => undefined);
      }
    }
  }

  await options.serveControl(control, signal);
  then(() => start(endedInOrder));
  await new Promise<void>((resolve) =>
    signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  await transition.catch(() => undefined);
  await Promise.all(background);
  power = "off";
  await stopAll(shutdownGraceMs);
  const patience = clock.deadline(shutdownGraceMs);
  await unmountBelow(options.directory, options, patience.signal);
  patience.cancel();
  await options.files.write(orderlyEnd, "");
}
