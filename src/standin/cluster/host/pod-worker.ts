import { McoError, errorCodes } from "../../../api/errors.ts";
import { withTransition } from "../../../api/schema/conditions.ts";
import { timestampOf } from "../../../api/schema/object.ts";
import { type Container, type ContainerStatus, type Pod, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { equalValues } from "../../../ignition/canonical.ts";
import { type KubeClient, updateObject } from "../../../kube/kube-client.ts";
import { isConflict, retryAfterMs } from "../../../kube/kube-error.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Files } from "../../../ports/files.ts";
import { linkedSignal } from "../../../ports/linked-signal.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { Child, Processes } from "../../../ports/process.ts";
import { type Random, backedOff, jittered } from "../../../ports/random.ts";
import { whenAborted } from "../../../ports/when-aborted.ts";
import { PodPlaces, type PlacesOptions } from "./pod-places.ts";
import { argumentsOf, containerProblem } from "./pod-problem.ts";
import { type HeldToken, podFieldOf, removeSecrets, writeVolumes } from "./pod-volumes.ts";
import { own } from "../../../api/schema/own.ts";

export interface PodWorkerOptions extends PlacesOptions {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly files: Files;
  readonly processes: Processes;
  readonly hostAddress: string;
  /** How the suite's own image is run: program and leading arguments; the container's arguments follow. */
  readonly program: readonly string[];
  /** Put into every container's environment. */
  readonly environment: Readonly<Record<string, string>>;
  readonly version: string;
  /**
   * How often each container was started, by pod uid and name: over boots of the machine, whose cache of pods may lag
   * behind.
   */
  readonly starts: Map<string, number>;
}

/** First wait before a container that ended is started again; doubles up to the last. */
const firstBackoffMs = 500;
const lastBackoffMs = 30_000;
/** A container that ran this long is healthy: its next end starts with the first wait again. */
const healthyRunMs = 60_000;

/**
 * Volumes are brought up to date this often, as by a kubelet (KubeletConfiguration syncFrequency, and at once when the
 * pod's annotations change).
 */
const volumeSyncMs = 60_000;
/** Between tries of what the API server did not take. */
const apiRetry = { firstMs: 500, lastMs: 10_000, spread: 0.2 };
/**
 * Limits of a container's termination message, and of the log in its place (kubernetes/kubernetes
 * pkg/kubelet/container/runtime.go, v1.34).
 */
const lastWords = { bytes: 4096, logBytes: 2048, logLines: 80, path: "/dev/termination-log" } as const;
/** A longer file is not read for its last words: a program may print without end. */
const mostReadBytes = 64 * 1024 * 1024;

type ContainerState =
  | { readonly is: "waiting"; readonly reason: string; readonly message: string }
  | { readonly is: "running"; readonly startedAt: string }
  | {
      readonly is: "terminated";
      readonly exitCode: number;
      readonly reason: string;
      readonly message: string;
      readonly startedAt: string;
      readonly finishedAt: string;
    };

interface Running {
  state: ContainerState;
  last: ContainerState | undefined;
  restarts: number;
  child: Child | undefined;
}

/**
 * Images that hosts run: the suite itself and a sleeper for tests. No others: a manifest must not execute as root on a
 * user's laptop.
 */
export const suiteImage = (version: string) => `mco.local/machine-config-operator:${version}`;
export const pauseImage = (version: string) => `mco.local/pause:${version}`;

/** Why a container is not started, before anything is made for it. */
function startProblem(
  container: Container,
  pod: Pod,
  version: string,
): { readonly reason: string; readonly message: string } | undefined {
  const { image = "" } = container;
  if (image === pauseImage(version)) return undefined;
  if (image !== suiteImage(version))
    return {
      reason: "ErrImagePull",
      message: `this host runs only ${suiteImage(version)} and ${pauseImage(version)}: a manifest must not execute other programs on this machine`,
    };
  const message = containerProblem(container, pod, pauseImage(version));
  return message === undefined ? undefined : { reason: "CreateContainerConfigError", message };
}

/** Volumes that are too large for its host: to find that out takes the host as long as to make others. */
const isTooLarge = (error: unknown): error is McoError & { readonly code: "MCO_POD_VOLUMES_TOO_LARGE" } =>
  error instanceof McoError && error.code === "MCO_POD_VOLUMES_TOO_LARGE";

/** What a container shows whose volumes cannot be made yet. */
function waitingFor(error: unknown): ContainerState {
  if (isTooLarge(error))
    return {
      is: "waiting",
      reason: "CreateContainerConfigError",
      message: `${error.message.replace(/\.?$/, ".")} ${errorCodes[error.code].remedy}`,
    };
  return {
    is: "waiting",
    reason: "ContainerCreating",
    message: error instanceof Error ? error.message : String(error),
  };
}

/** A sleeper that takes `--stop-after=SECONDS` to end once it is asked to. */
function pauseCommand(container: Container): readonly string[] {
  const seconds =
    /^--stop-after=(\d{1,4})$/.exec(
      container.args?.find((argument) => argument.startsWith("--stop-after=")) ?? "",
    )?.[1] ?? "0";
  return ["/bin/sh", "-c", `trap 'sleep ${seconds}; exit 0' TERM; while :; do sleep 3600 & wait $!; done`, "pause"];
}

/** Runs one pod on its host: volumes, processes, restarts, status, and its orderly end. */
export class PodWorker {
  readonly #options: PodWorkerOptions;
  readonly #containers = new Map<string, Running>();
  readonly #stop = new AbortController();
  readonly #places: PodPlaces;
  #pod: Pod;
  #loops: Promise<void> | undefined;
  #refresh: Promise<void> | undefined;
  readonly #tokens = new Map<string, HeldToken>();
  /** Ends the wait for the next check of volumes. */
  #syncVolumes = new AbortController();
  /** The write of a status that was refused at first. */
  #reporting: Promise<void> | undefined;
  /** A container changed while that write was under way, which may not have it. */
  #hasNews = false;
  #ended = false;
  /** It ran before its machine went down, and may not be started again. */
  #cutOff = false;

  constructor(pod: Pod, options: PodWorkerOptions) {
    this.#pod = pod;
    this.#options = options;
    this.#places = new PodPlaces(pod, options);
  }

  /** Namespace and name. */
  get key(): string {
    return `${this.#pod.metadata.namespace}/${this.#pod.metadata.name}`;
  }

  get folder(): string {
    return this.#places.folder;
  }

  /** The newest version of the pod; only fields that may change in a running pod are read. */
  update(pod: Pod): void {
    if (JSON.stringify(pod.metadata.annotations) !== JSON.stringify(this.#pod.metadata.annotations))
      this.#syncVolumes.abort(new Error("the pod has changed"));
    this.#pod = pod;
    // The pod was declared lost while this machine did not respond: report again what runs here.
    const ready = (status: Pod["status"]) => status?.conditions?.find(({ type }) => type === "Ready")?.status;
    if (
      this.#loops !== undefined &&
      !this.#stop.signal.aborted &&
      pod.metadata.deletionTimestamp === undefined &&
      ready(pod.status) !== undefined &&
      ready(pod.status) !== ready(this.#status(pod, this.#options.hostAddress))
    )
      void this.#report();
  }

  logFile(container: string): string {
    return this.#places.logFile(container);
  }

  start(): void {
    this.#loops ??= this.#run().catch((error: unknown) => this.#giveUp(error));
  }

  /** What a pod did to its own folder ends the pod, and not its host. */
  async #giveUp(error: unknown): Promise<void> {
    this.#options.log.warn({ error, pod: this.#pod.metadata.name }, "the pod cannot go on");
    const message = error instanceof Error ? error.message : String(error);
    for (const { name } of this.#pod.spec?.containers ?? [])
      if (this.#containers.get(name)?.state.is !== "terminated")
        this.#set(name, { is: "waiting", reason: "CreateContainerError", message });
    await this.#report();
  }

  /**
   * Ends all containers: TERM, the grace period, KILL. The pod object stays; after a reboot the pod starts again. Called
   * again, it shortens the time that the containers have left, and asks them no second time.
   */
  async stop(graceMs: number): Promise<void> {
    const isAsked = this.#stop.signal.aborted;
    if (!isAsked) this.#stop.abort(new Error("the pod is stopped"));
    const children = [...this.#containers.values()].flatMap(({ child }) => (child === undefined ? [] : [child]));
    const gone = Promise.all(children.map(({ exited }) => exited));
    if (graceMs > 0) {
      if (!isAsked) for (const child of children) child.kill("SIGTERM");
      const deadline = this.#options.clock.deadline(graceMs);
      await Promise.race([gone, whenAborted(deadline.signal)]);
      deadline.cancel();
    }
    for (const child of children) child.kill("SIGKILL");
    await gone;
    await this.#loops;
    await this.#refresh;
    await this.#reporting;
    this.#ended = true;
  }

  /** Ends all containers in the time that the pod's deletion gives them. */
  async end(): Promise<void> {
    const { metadata, spec } = this.#pod;
    if (!this.#ended)
      await this.stop((metadata.deletionGracePeriodSeconds ?? spec?.terminationGracePeriodSeconds ?? 30) * 1000);
  }

  /** Reports to the API server that the pod is gone. */
  async reportGone(signal: AbortSignal): Promise<void> {
    const { name, namespace = "", uid } = this.#pod.metadata;
    try {
      await this.#options.kube.delete(
        kubernetes.Pod,
        { name, namespace },
        { gracePeriodSeconds: 0, ...(uid === undefined ? {} : { uid }), signal },
      );
    } catch (error) {
      if (!isConflict(error)) throw error; // Another pod has its name: it is gone.
    }
  }

  /** Removes its folder. One that cannot be removed is told of and left: no other pod ever uses it. */
  async clearAway(): Promise<void> {
    const { files, log } = this.#options;
    await files.remove(this.folder).catch((error: unknown) => {
      log.warn(
        { error, pod: this.#pod.metadata.name, folder: this.folder },
        "the folder of a pod that is gone is left",
      );
    });
  }

  async #run(): Promise<void> {
    const { files } = this.#options;
    const { signal } = this.#stop;
    const before = [...(this.#pod.status?.initContainerStatuses ?? []), ...(this.#pod.status?.containerStatuses ?? [])];
    for (const status of before) {
      // The pod ran before this boot: what it was counts as its last state.
      this.#containers.set(status.name, {
        state: { is: "waiting", reason: "ContainerCreating", message: "" },
        last: undefined,
        restarts:
          status.restartCount +
          (status.state?.waiting === undefined || status.lastState?.terminated !== undefined ? 1 : 0),
        child: undefined,
      });
    }
    if (
      this.#pod.spec?.restartPolicy === "Never" &&
      before.some(({ state }) => state?.running !== undefined || state?.terminated !== undefined)
    ) {
      const at = this.#timestamp();
      for (const { name, state } of before)
        this.#set(name, {
          is: "terminated",
          exitCode: state?.terminated?.exitCode ?? 137,
          reason: state?.terminated?.reason ?? "Error",
          message: state?.terminated?.message ?? "",
          startedAt: state?.terminated?.startedAt ?? state?.running?.startedAt ?? at,
          finishedAt: state?.terminated?.finishedAt ?? at,
        });
      for (const { name, restartCount } of before)
        this.#set(
          name,
          this.#containers.get(name)?.state ?? { is: "waiting", reason: "ContainerCreating", message: "" },
        ).restarts = restartCount;
      this.#cutOff = true;
      return this.#report();
    }
    for (const container of this.#pod.spec?.initContainers ?? []) {
      if (this.#isRefused(container)) return this.#report();
      await this.#volumesFor([container]);
      await this.#keep(container, initPolicy(this.#pod));
      await removeSecrets(this.#pod, this.#places, container, files);
      // After a container that succeeded the next one starts; after any other the pod has failed.
      const state = this.#containers.get(container.name)?.state;
      if (signal.aborted || state?.is !== "terminated" || state.exitCode !== 0) return;
    }
    // What is not run mounts nothing.
    const run = (this.#pod.spec?.containers ?? []).filter((container) => !this.#isRefused(container));
    if (run.length < (this.#pod.spec?.containers ?? []).length) await this.#report();
    if (run.length === 0) return;
    const refresh = await this.#volumesFor(run);
    if (
      !signal.aborted &&
      (this.#pod.spec?.volumes ?? []).some(
        ({ configMap, secret, projected }) =>
          configMap !== undefined || secret !== undefined || projected !== undefined,
      )
    )
      this.#refresh = this.#keepVolumes(run, refresh);
    const policy = this.#pod.spec?.restartPolicy ?? "Always";
    await Promise.all(run.map((container) => this.#keep(container, policy)));
  }

  /** Shows why a container does not start. */
  #isRefused(container: Container): boolean {
    const refusal = startProblem(container, this.#pod, this.#options.version);
    if (refusal !== undefined) this.#set(container.name, { is: "waiting", ...refusal });
    return refusal !== undefined;
  }

  /** Makes the volumes that containers mount, however often it takes. */
  async #volumesFor(mountsOf: readonly Container[]): Promise<number | undefined> {
    const { clock, files, log } = this.#options;
    const { signal } = this.#stop;
    let wait = firstBackoffMs;
    while (!signal.aborted) {
      try {
        // It holds Secrets, logs, and what a build is made from: other users of the host have no part in it.
        await files.makeDirectory(this.folder, { mode: 0o700 });
        return await this.#writeVolumes(mountsOf);
      } catch (error) {
        for (const container of mountsOf) this.#set(container.name, waitingFor(error));
        log.debug({ pod: this.#pod.metadata.name, error }, "volumes not ready");
        await this.#report();
        await clock.sleep(wait, signal).catch(() => undefined);
        wait = Math.min(wait * 2, isTooLarge(error) ? volumeSyncMs : 5000);
      }
    }
    return undefined;
  }

  #writeVolumes(mountsOf: readonly Container[]): Promise<number | undefined> {
    return writeVolumes(this.#pod, this.#places, { ...this.#options, tokens: this.#tokens, mountsOf });
  }

  async #keepVolumes(mountsOf: readonly Container[], firstMs: number | undefined): Promise<void> {
    const { clock, random, log } = this.#options;
    const { signal } = this.#stop;
    let waitMs = Math.min(firstMs ?? Infinity, jittered(random, volumeSyncMs, 0.2));
    let failures = 0;
    for (;;) {
      const waiting = linkedSignal(signal);
      const wake = () => waiting.abort(new Error("the volumes are to be written now"));
      this.#syncVolumes.signal.addEventListener("abort", wake, { once: true });
      if (this.#syncVolumes.signal.aborted) wake();
      await clock.sleep(waitMs, waiting.signal).catch(() => undefined);
      this.#syncVolumes.signal.removeEventListener("abort", wake);
      waiting.release();
      if (signal.aborted) return;
      if (this.#syncVolumes.signal.aborted) this.#syncVolumes = new AbortController();
      try {
        waitMs = Math.min((await this.#writeVolumes(mountsOf)) ?? Infinity, jittered(random, volumeSyncMs, 0.2));
        failures = 0;
      } catch (error) {
        failures += 1;
        waitMs = isTooLarge(error) ? jittered(random, volumeSyncMs, 0.2) : backedOff(random, failures, apiRetry);
        log.warn({ error, pod: this.#pod.metadata.name, waitMs: Math.round(waitMs) }, "volumes not refreshed");
      }
    }
  }

  async #keep(container: Container, policy: string): Promise<void> {
    const { clock, processes, version } = this.#options;
    const { signal } = this.#stop;
    const isPause = container.image === pauseImage(version);
    // The sleeper is a shell, which variables lead to other programs, and it reads none.
    const environment = this.#environment(isPause ? [] : (container.env ?? []));
    const command = isPause ? pauseCommand(container) : [...this.#options.program, ...argumentsOf(container)];
    let backoff = firstBackoffMs;
    while (!signal.aborted) {
      const [program = "", ...args] = command.map((word) => expanded(word, environment));
      const startedAt = this.#timestamp();
      const began = clock.monotonic();
      await this.#prepareLastWords(container);
      // The pod's end waits for the processes that it found.
      if (signal.aborted) return;
      const child = processes.spawn(program, args, {
        env: environment,
        logFile: this.logFile(container.name),
        lifeline: true,
        group: true,
        cwd: this.folder,
      });
      const running = this.#set(container.name, { is: "running", startedAt });
      running.child = child;
      const { starts } = this.#options;
      running.restarts = Math.max(running.restarts, starts.get(this.#startsKey(container.name)) ?? 0);
      starts.set(this.#startsKey(container.name), running.restarts + 1);
      await this.#report();
      const exit = await child.exited;
      running.child = undefined;
      const exitCode = exit.code ?? 137;
      const ended: ContainerState = {
        is: "terminated",
        exitCode,
        reason: exitCode === 0 ? "Completed" : "Error",
        message: await this.#lastWordsOf(container, exitCode),
        startedAt,
        finishedAt: this.#timestamp(),
      };
      running.last = ended;
      this.#set(container.name, ended);
      if (signal.aborted) return;
      if (policy === "Never" || (policy === "OnFailure" && exitCode === 0)) {
        await this.#report();
        return;
      }
      if (clock.monotonic() - began > healthyRunMs) backoff = firstBackoffMs;
      this.#set(container.name, {
        is: "waiting",
        reason: "CrashLoopBackOff",
        message: `back-off ${Math.round(backoff / 1000)}s restarting failed container=${container.name} pod=${this.#pod.metadata.name}`,
      });
      await this.#report();
      await clock.sleep(backoff, signal).catch(() => undefined);
      backoff = Math.min(backoff * 2, lastBackoffMs);
      running.restarts += 1;
    }
  }

  #lastWordsFile({ terminationMessagePath = lastWords.path }: Container): Promise<string> {
    return this.#places.inPod(terminationMessagePath);
  }

  async #prepareLastWords(container: Container): Promise<void> {
    const file = await this.#lastWordsFile(container);
    await this.#options.files.remove(file);
    await this.#options.files.makeDirectory(file.slice(0, file.lastIndexOf("/")));
  }

  /** The container's termination message, or the end of its log if it asked for that. */
  async #lastWordsOf(container: Container, exitCode: number): Promise<string> {
    const { files } = this.#options;
    const end = (bytes: Uint8Array | undefined, limit: number) =>
      new TextDecoder().decode((bytes ?? new Uint8Array()).slice(-limit));
    const contentsOf = async (path: string) => {
      const stat = await files.stat(path);
      return stat?.kind === "file" && stat.sizeBytes <= mostReadBytes ? files.read(path) : undefined;
    };
    const termination = await contentsOf(await this.#lastWordsFile(container));
    if (termination !== undefined && termination.length > 0)
      return new TextDecoder().decode(termination.slice(0, lastWords.bytes));
    if (container.terminationMessagePolicy !== "FallbackToLogsOnError" || exitCode === 0) return "";
    return end(await contentsOf(this.logFile(container.name)), lastWords.logBytes)
      .split("\n")
      .slice(-lastWords.logLines)
      .join("\n");
  }

  #startsKey(container: string): string {
    return `${this.#pod.metadata.uid ?? ""}/${container}`;
  }

  /** The pod was deleted. */
  forget(): void {
    for (const { name } of [...(this.#pod.spec?.initContainers ?? []), ...(this.#pod.spec?.containers ?? [])])
      this.#options.starts.delete(this.#startsKey(name));
  }

  #environment(variables: NonNullable<Container["env"]>): Readonly<Record<string, string>> {
    const environment: Record<string, string> = {
      ...this.#options.environment,
      MCO_POD_ROOT: this.#places.root,
      MCO_LIFELINE: "3",
      HOSTNAME: this.#pod.metadata.name,
    };
    // The status is written once containers run; where they run is known before.
    const pod: Pod = {
      ...this.#pod,
      status: { ...this.#pod.status, hostIP: this.#options.hostAddress, podIP: this.#options.hostAddress },
    };
    for (const { name, value, valueFrom } of variables)
      environment[name] = value ?? podFieldOf(pod, valueFrom?.fieldRef?.fieldPath ?? "") ?? "";
    return environment;
  }

  #timestamp(): string {
    return timestampOf(this.#options.clock.now());
  }

  #set(name: string, state: ContainerState): Running {
    const running = this.#containers.get(name) ?? { state, last: undefined, restarts: 0, child: undefined };
    running.state = state;
    this.#containers.set(name, running);
    return running;
  }

  /** Writes the state of the containers; retries a refused write in the background until it succeeds. */
  async #report(): Promise<void> {
    if (this.#reporting !== undefined) {
      this.#hasNews = true;
      return;
    }
    try {
      await this.#writeStatus();
    } catch (error) {
      this.#reporting ??= this.#reportLater(error);
    }
  }

  async #reportLater(first: unknown): Promise<void> {
    const { clock, random, log } = this.#options;
    const { signal } = this.#stop;
    let error = first;
    for (let failures = 1; !signal.aborted; failures += 1) {
      const waitMs = Math.max(retryAfterMs(error), backedOff(random, failures, apiRetry));
      log.warn(
        { error, pod: this.#pod.metadata.name, waitMs: Math.round(waitMs) },
        "pod status not written, trying again",
      );
      await clock.sleep(waitMs, signal).catch(() => undefined);
      if (signal.aborted) break;
      try {
        do {
          this.#hasNews = false;
          await this.#writeStatus();
        } while (this.#hasNews && !signal.aborted);
        break;
      } catch (caught) {
        error = caught;
      }
    }
    // In the same step as the last look for news.
    this.#reporting = undefined;
  }

  async #writeStatus(): Promise<void> {
    const { kube, hostAddress } = this.#options;
    const { name, namespace = "" } = this.#pod.metadata;
    await updateObject(
      kube,
      kubernetes.Pod,
      { name, namespace },
      (pod) => {
        if (pod.metadata.uid !== this.#pod.metadata.uid) return undefined;
        const status = this.#status(pod, hostAddress);
        return equalValues(status, pod.status) ? undefined : { status };
      },
      { subresource: "status", owner: "kubelet" },
    );
  }

  #status(pod: Pod, hostAddress: string): NonNullable<Pod["status"]> {
    const initial = pod.spec?.initContainers ?? [];
    const statusOf = (container: Container): ContainerStatus => {
      const running = this.#containers.get(container.name);
      const waits = initial.length === 0 ? "ContainerCreating" : "PodInitializing";
      const state = running?.state ?? { is: "waiting", reason: waits, message: "" };
      const image = container.image ?? "";
      return {
        name: container.name,
        image,
        imageID: image,
        // One that runs before the others is ready once it has ended well (core/v1 ContainerStatus).
        ready: initial.includes(container) ? state.is === "terminated" && state.exitCode === 0 : state.is === "running",
        started: state.is === "running",
        restartCount: running?.restarts ?? 0,
        containerID: `process://${running?.child?.pid ?? 0}`,
        state: stateField(state),
        ...(running?.last === undefined ? {} : { lastState: stateField(running.last) }),
      };
    };
    const initStatuses = initial.map(statusOf);
    const statuses = (pod.spec?.containers ?? []).map(statusOf);
    const initialized = initStatuses.every(({ ready }) => ready);
    // With a policy that starts it again, no end of an init container is the pod's.
    const initFailed =
      initPolicy(pod) === "Never" &&
      initStatuses.some(({ state }) => state?.terminated !== undefined && state.terminated.exitCode !== 0);
    const all = (is: (status: ContainerStatus) => boolean) => statuses.every(is);
    const succeeded = all(({ state }) => state?.terminated?.exitCode === 0);
    const failed = initFailed || (!succeeded && all(({ state }) => state?.terminated !== undefined));
    const phase = succeeded
      ? "Succeeded"
      : failed
        ? "Failed"
        : statuses.some(
              ({ state }) =>
                state?.running !== undefined ||
                state?.terminated !== undefined ||
                state?.waiting?.reason === "CrashLoopBackOff",
            )
          ? "Running"
          : "Pending";
    const ready = all((status) => status.ready);
    const before = new Map((pod.status?.conditions ?? []).map((condition) => [condition.type, condition]));
    const condition = (type: string, is: boolean, reason?: string) => {
      const next = {
        type,
        status: is ? "True" : "False",
        lastProbeTime: null as unknown as string,
        ...(reason === undefined ? {} : { reason }),
      };
      return withTransition(before.get(type), next, this.#options.clock.now());
    };
    return {
      ...pod.status,
      phase: this.#cutOff ? "Failed" : phase,
      // As a kubelet says it of pods that a shutdown ends (pkg/kubelet/nodeshutdown, v1.34).
      ...(this.#cutOff
        ? { reason: "Terminated", message: "Pod was terminated in response to imminent node shutdown." }
        : {}),
      hostIP: hostAddress,
      podIP: hostAddress,
      podIPs: [{ ip: hostAddress }],
      startTime: pod.status?.startTime ?? this.#timestamp(),
      conditions: [
        condition("Initialized", initialized, initialized ? undefined : "ContainersNotInitialized"),
        condition("Ready", ready, ready ? undefined : succeeded ? "PodCompleted" : "ContainersNotReady"),
        condition("ContainersReady", ready, ready ? undefined : succeeded ? "PodCompleted" : "ContainersNotReady"),
        ...(before.has("PodScheduled")
          ? [before.get("PodScheduled")].flatMap((old) => old ?? [])
          : [condition("PodScheduled", true)]),
      ],
      ...(initStatuses.length === 0 ? {} : { initContainerStatuses: initStatuses }),
      containerStatuses: statuses,
    };
  }
}

/** `$(NAME)` in arguments. */
const expanded = (word: string, environment: Readonly<Record<string, string>>): string =>
  word.replaceAll(/\$\(([A-Za-z_][A-Za-z0-9_]*)\)/g, (whole, name: string) => own(environment, name) ?? whole);

/** A container that ended well is not started again before the others run. */
const initPolicy = (pod: Pod): "Never" | "OnFailure" => (pod.spec?.restartPolicy === "Never" ? "Never" : "OnFailure");

function stateField(state: ContainerState): NonNullable<ContainerStatus["state"]> {
  if (state.is === "running") return { running: { startedAt: state.startedAt } };
  if (state.is === "waiting")
    return { waiting: { reason: state.reason, ...(state.message === "" ? {} : { message: state.message }) } };
  return {
    terminated: {
      exitCode: state.exitCode,
      reason: state.reason,
      ...(state.message === "" ? {} : { message: state.message }),
      startedAt: state.startedAt,
      finishedAt: state.finishedAt,
    },
  };
}
