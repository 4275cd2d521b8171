import { type Pod, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { keyOf } from "../../../api/schema/object.ts";
import { kubeletConfPath, nodeSizingPath } from "../../../core/kubelet/kubelet-config.ts";
import { nodeSettings } from "../../../core/kubelet/node-settings.ts";
import { clusterNamespaces } from "../../apiserver/schema/shares.ts";
import { sourceGroup } from "../../../core/join/source-group.ts";
import { type KubeClient, updateObject } from "../../../kube/kube-client.ts";
import { isNotFound, retryAfterMs } from "../../../kube/kube-error.ts";
import { WatchCache } from "../../../kube/watch-cache.ts";
import { WorkQueue } from "../../../kube/work-queue.ts";
import type { Files } from "../../../ports/files.ts";
import type { Listen, ListenLimits, TlsFiles } from "../../../ports/listener.ts";
import { type LinkedSignal, linkedSignal } from "../../../ports/linked-signal.ts";
import { backedOff, jittered } from "../../../ports/random.ts";
import { whenAborted } from "../../../ports/when-aborted.ts";
import { kubeletClientName, ports } from "../layout.ts";
import { type Rejection, inAdmissionOrder, rejectionOf } from "./admit-pod.ts";
import { type ConfiguredNode, type NodeFacts, type Readiness, apiRetry, mostPodsOf, writeNode } from "./node-object.ts";
import { logResponse } from "./pod-logs.ts";
import { PodPlaces } from "./pod-places.ts";
import { PodWorker, type PodWorkerOptions } from "./pod-worker.ts";

/**
 * Limits of those who read logs: the API server alone gets any, shares them among its users, and follows them for hours. A kubelet ends streams after
 * four, too: kubernetes/kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go (v1.34).
 */
const logLimits: ListenLimits = {
  connections: 512,
  connectionsOfOneSource: 512,
  requests: 256,
  arriveMs: 10_000,
  requestMs: 4 * 3_600_000,
  bodyBytes: 0,
  burst: 1000,
  perSecond: 1000,
  sourceOf: sourceGroup,
};

export interface KubeletOptions extends Omit<PodWorkerOptions, "kube" | "hostAddress">, NodeFacts {
  readonly files: Files;
  /** Certificate of its log server, once its Node identifies the machine. */
  readonly serving: (kube: KubeClient, signal: AbortSignal) => Promise<TlsFiles>;
  readonly listen: Listen;
}

/** What the kubelet needs of its machine. */
export interface Power {
  /** Pods run and the Node is reported only while the machine is on. */
  readonly isOn: () => boolean;
  readonly bootId: () => string;
}

const ready: Readiness = { ready: true, reason: "KubeletReady", message: "the kubelet is ready" };
const shuttingDown: Readiness = { ready: false, reason: "KubeletNotReady", message: "node is shutting down" };

/** How often the node renews its lease, and how often it writes its status all the same. */
const heartbeatMs = 10_000;
const statusMs = 300_000;
/** Pods that never ran here, and whose deletion is under way at the same time. */
const unstartedAtOnce = 16;

/** The kubelet of a machine in a folder: its Node and Lease, its pods, and their logs. Made once it is a member. */
export class Kubelet {
  readonly #options: KubeletOptions;
  readonly #kube: KubeClient;
  readonly #power: Power;
  readonly #signal: AbortSignal;
  readonly #pods: WatchCache<Pod>;
  readonly #workerOptions: PodWorkerOptions;
  readonly #workers = new Map<string, PodWorker>();
  /** Pods on their way out, by uid. */
  readonly #terminating = new Map<string, { readonly worker: PodWorker; readonly work: Promise<void> }>();
  /** Ends the tries to report that pods are gone, once the machine goes down. */
  #reports: LinkedSignal;
  /** Of {@link #terminating}, by uid, those that ran here, and may have processes still. */
  readonly #leaving = new Set<string>();
  /** Of {@link #workers}, by uid, those whose pods have ended. */
  readonly #ended = new Set<string>();
  /** The pods that do not run here, by key: their uids. */
  readonly #rejected = new Map<string, string>();
  /** Those of {@link #rejected} whose objects do not say it yet. */
  readonly #rejections = new Map<string, { readonly pod: Pod; readonly rejection: Rejection }>();
  /** One after the other: there may be tens of thousands, some of which the API server does not take. */
  readonly #rejecting: WorkQueue;
  /** Pods that never ran here and are being deleted, by uid, whose deletion has not begun. */
  readonly #unstarted = new Map<string, Pod>();
  #endingUnstarted = 0;
  /** Its pods are listed: those of an incomplete list would be admitted in the order of the list. */
  #isComplete = false;
  /** It has begun since its last stop, and knows from its configuration how many pods it may run. */
  #hasBegun = false;
  /** Of the configuration that the kubelet was started with. */
  #configured: ConfiguredNode;

  constructor(options: KubeletOptions, kube: KubeClient, power: Power, signal: AbortSignal) {
    this.#options = options;
    this.#kube = kube;
    this.#power = power;
    this.#signal = signal;
    this.#reports = linkedSignal(signal);
    const selection = { fieldSelector: `spec.nodeName=${options.nodeName}` };
    this.#pods = new WatchCache<Pod>({ ...options, kube, resource: kubernetes.Pod, selection });
    this.#workerOptions = { ...options, kube, hostAddress: options.address };
    this.#rejecting = new WorkQueue({
      clock: options.clock,
      random: options.random,
      workers: 1,
      coalesceMs: 0,
      preferred: clusterNamespaces,
      work: async (key) => {
        await this.#writeRejection(key);
        return {};
      },
      notBeforeMs: retryAfterMs,
      onFailure: (key, error) => {
        if (!signal.aborted) options.log.warn({ error, pod: key }, "the pod's rejection is not written, trying again");
      },
    });
    signal.addEventListener("abort", () => this.#rejecting.stop(), { once: true });
    this.#pods.onChange(({ key }) => this.#syncPod(key));
    void this.#pods.synced.then(() => {
      this.#isComplete = true;
      this.#syncPods();
    });
  }

  /** Watches pods, reports the Node and serves logs until the signal aborts. */
  async run(): Promise<void> {
    await Promise.all([this.#pods.run(this.#signal), this.#heartbeat(), this.#serveLogs()]);
  }

  /** The machine is on: its Node shows it, and its pods start. */
  async begin(): Promise<void> {
    await this.#readConfiguration();
    await this.#report(ready);
    this.#hasBegun = true;
    this.#syncPods();
  }

  async announceShutdown(): Promise<void> {
    await this.#report(shuttingDown).catch(() => undefined);
  }

  /**
   * Ends all pods, and those that are on their way out with them, whatever time their deletion gives them. What the API
   * server has not been told of them by then is told after the next boot, which meets them as pods that never ran.
   */
  async stopPods(graceMs: number): Promise<void> {
    this.#hasBegun = false;
    const leaving = [...this.#terminating.values()];
    const all = [...this.#workers.values(), ...leaving.map(({ worker }) => worker)];
    this.#workers.clear();
    this.#ended.clear();
    this.#unstarted.clear();
    const works = Promise.all(leaving.map(({ work }) => work));
    const grace = this.#options.clock.deadline(graceMs);
    await Promise.all(all.map((worker) => worker.stop(graceMs)));
    await Promise.race([works, whenAborted(grace.signal)]);
    grace.cancel();
    this.#reports.abort(new Error("the machine goes down"));
    await works;
    this.#reports = linkedSignal(this.#signal);
  }

  /** A machine in a folder runs without a configuration too, and with one that a kubelet would refuse. */
  async #readConfiguration(): Promise<void> {
    const { files, locate, log } = this.#options;
    const read = (file: string) =>
      locate
        .onMachine(file)
        .then((path) => files.readText(path))
        .catch(() => undefined);
    const text = await read(kubeletConfPath);
    this.#configured = text === undefined ? undefined : nodeSettings(text, await read(nodeSizingPath));
    if (text !== undefined && this.#configured === undefined)
      log.warn({ file: kubeletConfPath }, "a kubelet would not start with its configuration; the defaults count");
  }

  #report(readiness: Readiness): Promise<void> {
    const facts = { ...this.#options, configured: this.#configured };
    return writeNode(this.#kube, facts, this.#power.bootId, readiness, this.#options, this.#signal);
  }

  #syncPods(): void {
    for (const pod of inAdmissionOrder(this.#pods.list())) this.#syncPod(keyOf(pod));
  }

  #syncPod(key: string): void {
    if (!this.#power.isOn() || !this.#isComplete || !this.#hasBegun) return;
    const pod = this.#pods.get(key);
    if (pod?.metadata.uid !== this.#rejected.get(key)) this.#rejected.delete(key);
    for (const [uid, worker] of this.#workers)
      if (pod?.metadata.uid !== uid && worker.key === key) void this.#end(uid, worker, "unreported");
    // A pod that is gone already has no time left: its author deleted it by force.
    for (const [uid, { worker }] of this.#terminating)
      if (pod?.metadata.uid !== uid && worker.key === key) void worker.stop(0);
    if (pod === undefined) return;
    const uid = pod.metadata.uid ?? "";
    const known = this.#workers.get(uid);
    if (pod.metadata.deletionTimestamp !== undefined) {
      known?.update(pod);
      if (known !== undefined) void this.#end(uid, known, "reported");
      else if (!this.#terminating.has(uid)) {
        this.#unstarted.set(uid, pod);
        this.#endUnstarted();
      }
      return;
    }
    if (pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed") {
      if (known !== undefined) this.#ended.add(uid);
      return;
    }
    if (known !== undefined) known.update(pod);
    else if (!this.#terminating.has(uid) && !this.#rejected.has(key)) this.#admit(key, pod, uid);
  }

  /** Runs a pod, or says in its status why this machine does not. */
  #admit(key: string, pod: Pod, uid: string): void {
    const active = this.#workers.size - this.#ended.size + this.#leaving.size;
    const rejection = rejectionOf(pod, active, mostPodsOf(this.#configured));
    if (rejection !== undefined) {
      this.#rejected.set(key, uid);
      this.#rejections.set(key, { pod, rejection });
      this.#rejecting.add(key);
      return;
    }
    const worker = new PodWorker(pod, this.#workerOptions);
    this.#workers.set(uid, worker);
    worker.start();
  }

  async #writeRejection(key: string): Promise<void> {
    const each = this.#rejections.get(key);
    if (each === undefined) return;
    const { pod, rejection } = each;
    await updateObject(
      this.#kube,
      kubernetes.Pod,
      pod.metadata,
      ({ metadata, status }) =>
        metadata.uid === pod.metadata.uid && status?.phase !== "Succeeded" && status?.phase !== "Failed"
          ? { status: { phase: "Failed", ...rejection } }
          : undefined,
      { subresource: "status", owner: "kubelet", cached: pod, signal: this.#signal },
    ).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    if (this.#rejections.get(key) === each) this.#rejections.delete(key);
  }

  /** A few at a time: there may be tens of thousands. */
  #endUnstarted(): void {
    for (const [uid, pod] of this.#unstarted) {
      if (this.#endingUnstarted >= unstartedAtOnce) return;
      this.#unstarted.delete(uid);
      this.#endingUnstarted += 1;
      void this.#end(uid, new PodWorker(pod, this.#workerOptions), "reported").finally(() => {
        this.#endingUnstarted -= 1;
        this.#endUnstarted();
      });
    }
  }

  /** Ends a pod; one whose object is still there is `reported` as ended. */
  #end(uid: string, worker: PodWorker, how: "reported" | "unreported"): Promise<void> {
    if (this.#workers.delete(uid) && !this.#ended.has(uid)) this.#leaving.add(uid);
    this.#ended.delete(uid);
    const before = this.#terminating.get(uid);
    if (before !== undefined) return before.work;
    const { signal } = this.#reports;
    const end = async () => {
      await (how === "reported" ? worker.end() : worker.stop(0));
      this.#leaving.delete(uid);
      if (how === "reported") await worker.reportGone(signal);
    };
    const work = this.#untilTaken("pod not ended, trying again", end, signal)
      .then(() => worker.clearAway())
      .finally(() => {
        this.#terminating.delete(uid);
        this.#leaving.delete(uid);
        worker.forget();
      });
    this.#terminating.set(uid, { worker, work });
    return work;
  }

  async #heartbeat(): Promise<void> {
    const { clock, random, log } = this.#options;
    let statusAt = clock.monotonic();
    let failures = 0;
    while (!this.#signal.aborted) {
      if (this.#power.isOn()) {
        // A beat that gets no answer must not take the place of the next ones: the lease lasts for four.
        const beat = clock.deadline(heartbeatMs, this.#signal);
        try {
          await this.#renewLease(beat.signal);
          const takenForLost = await this.#isTakenForLost(beat.signal);
          failures = 0;
          if (this.#power.isOn() && (takenForLost || clock.monotonic() - statusAt > statusMs)) {
            await this.#report(ready);
            statusAt = clock.monotonic();
          }
        } catch (error) {
          failures += 1;
          if (!this.#signal.aborted) log.debug({ error }, "heartbeat failed");
        } finally {
          beat.cancel();
        }
      }
      const pauseMs =
        failures === 0
          ? jittered(random, heartbeatMs, 0.04)
          : Math.min(heartbeatMs, backedOff(random, failures, apiRetry));
      await clock.sleep(pauseMs, this.#signal).catch(() => undefined);
    }
  }

  async #renewLease(signal: AbortSignal): Promise<void> {
    const { clock, nodeName } = this.#options;
    const metadata = { name: nodeName, namespace: "kube-node-lease" };
    const renewTime = `${new Date(clock.now()).toISOString().slice(0, 23)}000Z`;
    const spec = { holderIdentity: nodeName, leaseDurationSeconds: 40, renewTime };
    const renewed = await updateObject(this.#kube, kubernetes.Lease, metadata, () => ({ spec }), { signal });
    if (renewed !== undefined) return;
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec };
    await this.#kube.create(kubernetes.Lease, lease, { signal });
  }

  /** The machine may have been declared lost while it did not respond: then its status is written at once. */
  async #isTakenForLost(signal: AbortSignal): Promise<boolean> {
    const node = await this.#kube.get(kubernetes.Node, { name: this.#options.nodeName }, { signal });
    return node?.status?.conditions?.find(({ type }) => type === "Ready")?.status !== "True";
  }

  /** As soon as there is something to serve with, and never given up. */
  #serveLogs(): Promise<void> {
    const { address, listen, serving } = this.#options;
    const logs = {
      ...this.#options,
      podOf: (key: string) => this.#pods.get(key),
      logFile: (pod: Pod, container: string) => new PodPlaces(pod, this.#options).logFile(container),
    };
    return this.#untilTaken("logs are not served, trying again", async () =>
      listen(
        { host: address, port: ports.kubelet, tls: await serving(this.#kube, this.#signal), limits: logLimits },
        async (request, client, signal) => {
          if (client === undefined) return { status: 401, headers: {}, body: "Unauthorized\n" };
          const mayRead = client.commonName === kubeletClientName || client.organizations.includes("system:masters");
          return mayRead ? logResponse(request, logs, signal) : { status: 403, headers: {}, body: "Forbidden\n" };
        },
        this.#signal,
      ),
    );
  }

  /** Tries until it succeeds or the signal aborts. */
  async #untilTaken(problem: string, work: () => Promise<unknown>, signal = this.#signal): Promise<void> {
    const { clock, random, log } = this.#options;
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        await work();
        return;
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ error }, problem);
        await clock.sleep(backedOff(random, failures, apiRetry), signal).catch(() => undefined);
      }
    }
  }
}
