import { McoError } from "../api/errors.ts";
import { type ConfigMap, type Job, type Node, type Pod, type Secret, kubernetes } from "../api/foreign/kubernetes.ts";
import { annotations, buildNamespace, fieldManagers, labels, namespace, objects } from "../api/names.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import { buildConfigKeys } from "../core/build/build-settings.ts";
import { readStepMarker } from "../core/build/image-build.ts";
import { trimNode } from "../core/pool/trim.ts";
import { type KubeClient, pathOf } from "../kube/kube-client.ts";
import { isAlreadyExists, isNotFound } from "../kube/kube-error.ts";
import { WatchCache } from "../kube/watch-cache.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { Random } from "../ports/random.ts";
import type { BuildBackend, BuildProblem, BuildRequest, LogLine, LogSelection, RunRef } from "./backend.ts";
import type { RunState } from "../core/build/run-decision.ts";
import type { BuildObjectOptions } from "./build-job.ts";
import { belongsToBuild, buildAnnotation, jobNameOf, labelsOf, selectionOfBuild } from "./build-names.ts";
import { type Given, buildObjects, maxContentBytes } from "./build-objects.ts";
import { readAuth, readRegistrySecret } from "./registry-secret.ts";
import { runStateOf } from "./run-state.ts";

export interface JobBackendOptions {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Image of the suite that carries buildah. */
  readonly image: string;
  /** Folder of a node where builds keep layers for later ones; without it each build starts from scratch. */
  readonly cacheFolder?: string;
  /** Whether a program is in the image that runs builds: this process runs in the same one. */
  readonly hasProgram: (name: string) => Promise<boolean>;
  /** Runs at once; one on a single machine. */
  readonly atOnce?: number;
}

const defaultAtOnce = 4;
/** Part of a log that is searched for the progress of a build. */
const stepTailLines = 400;
const maxLogBytes = 8 * 1024 * 1024;
const followMs = 1000;

/** Makes images in pods: one Job for each attempt, whose container runs `mco build-image`. */
export const jobBackend = (options: JobBackendOptions): BuildBackend => new JobBackend(options);

const jobKey = (run: Pick<RunRef, "build" | "attempt">) => ({ name: jobNameOf(run), namespace: buildNamespace });

class JobBackend implements BuildBackend {
  readonly kind = "job";
  readonly #options: JobBackendOptions;
  /** Where each run was when it was last observed: its log may have grown past the marker. */
  readonly #steps = new Map<string, string>();
  /** By pool: where its last build ran. */
  readonly #lastNodes = new Map<string, string>();

  constructor(options: JobBackendOptions) {
    this.#options = options;
  }

  async observe(run: RunRef, signal: AbortSignal): Promise<RunState> {
    const job = await this.#jobOf(run, signal);
    const pods = job === undefined ? [] : await this.#podsOf(job, run.build, signal);
    const state = runStateOf(
      { job, pods, step: job === undefined ? undefined : await this.#stepOf(run, pods, signal) },
      this.#options.clock.now(),
    );
    if (state.phase !== "Running" && state.phase !== "Pending") this.#steps.delete(run.id);
    return state;
  }

  capabilities() {
    return { run: true, atOnce: this.#options.atOnce ?? defaultAtOnce };
  }

  async preflight(request: BuildRequest, signal: AbortSignal): Promise<readonly BuildProblem[]> {
    const problems: BuildProblem[] = [];
    if (!(await this.#options.hasProgram("buildah")))
      problems.push({
        code: "BuilderBinaryMissing",
        message:
          "there is no buildah where builds run: install it (hack/image-tools does), or leave custom content, extensions and other kernels out",
      });
    const size = (request.configLayer?.bytes.length ?? 0) + (request.buildVisible?.length ?? 0);
    if (size > maxContentBytes)
      problems.push({
        code: "InputTooLarge",
        message: `the configuration takes ${size} bytes, compressed, and a build is given at most ${maxContentBytes}`,
      });
    for (const [what, name] of Object.entries(request.auth)) {
      const secret = await this.#options.kube.get<Secret>(
        kubernetes.Secret,
        { name, namespace: buildNamespace },
        { signal },
      );
      const reading = secret === undefined ? undefined : readRegistrySecret(secret);
      if (reading === undefined)
        problems.push({ code: "SecretMissing", message: `the ${what} secret ${name} is not in ${namespace}` });
      else if (reading.verdict === "refused")
        problems.push({ code: reading.code, message: `the ${what} secret ${name}: ${reading.problem}` });
    }
    return problems;
  }

  /**
   * An API server without user namespaces drops the field, and the build would run with the users of the machine.
   *
   * @throws McoError `MCO_BUILD_INPUT_MISSING`
   */
  async #checkIsolation(request: BuildRequest, job: Job, signal: AbortSignal): Promise<void> {
    if (request.isolation !== "userNamespace") return;
    const taken = await this.#options.kube.create<Job>(kubernetes.Job, job, {
      owner: fieldManagers.osBuilder,
      dryRun: true,
      signal,
    });
    if (taken.spec?.template.spec?.hostUsers === false) return;
    throw new McoError("MCO_BUILD_INPUT_MISSING", {
      kind: "ConfigMap",
      name: objects.buildConfig,
      namespace,
      for: "isolation",
      problem: `UserNamespacesUnsupported: this API server knows no user namespaces for pods (hostUsers); to have builds without, say so: kubectl patch configmap -n ${namespace} ${objects.buildConfig} --type merge -p '{"data":{"${buildConfigKeys.isolation}":"hostUsers"}}'`,
    });
  }

  async start(request: BuildRequest, signal: AbortSignal): Promise<RunRef> {
    const run: RunRef = { id: request.id, build: request.build.metadata.name, attempt: request.attempt };
    const there = await this.#jobOf(run, signal);
    if (there?.metadata.deletionTimestamp !== undefined)
      throw new McoError("MCO_BUILD_RUN_ENDING", { job: there.metadata.name });
    const given: Given = {
      pull: await readAuth(this.#options.kube, request.auth.pull, { what: "pull", pool: request.pool }, signal),
      push: await readAuth(this.#options.kube, request.auth.push, { what: "push", pool: request.pool }, signal),
      mounts: await this.#mountsOf(request, signal),
    };
    const objectOptions: BuildObjectOptions = {
      image: this.#options.image,
      cacheFolder: this.#options.cacheFolder,
      toleratesControlPlane: await this.#onlyControlPlane(request.architecture, signal),
      preferredNode: this.#lastNodes.get(labelsOf(request)[labels.targetPool] ?? ""),
    };
    const { configMaps, secrets, job } = buildObjects(request, given, objectOptions);
    for (const object of configMaps)
      await this.#options.kube.apply<ConfigMap>(kubernetes.ConfigMap, object, {
        owner: fieldManagers.osBuilder,
        signal,
      });
    for (const object of secrets)
      await this.#options.kube.apply<Secret>(kubernetes.Secret, object, { owner: fieldManagers.osBuilder, signal });
    if (there !== undefined) return run;
    try {
      await this.#checkIsolation(request, job, signal);
      await this.#options.kube.create<Job>(kubernetes.Job, job, { owner: fieldManagers.osBuilder, signal });
    } catch (error) {
      if (!isAlreadyExists(error) || (await this.#jobOf(run, signal)) === undefined) throw error;
    }
    return run;
  }

  watch(onChange: (build: string) => void): () => void {
    const stopping = new AbortController();
    const selection = { namespace: buildNamespace, labelSelector: labels.ephemeralBuildObject };
    const notify = (object: KubeObject | undefined) => {
      const build = object?.metadata.annotations?.[buildAnnotation];
      if (build !== undefined) onChange(build);
    };
    for (const cache of [
      new WatchCache<Job>({ ...this.#options, resource: kubernetes.Job, selection, keep: trim }),
      new WatchCache<Pod>({ ...this.#options, resource: kubernetes.Pod, selection, keep: trim }),
    ]) {
      cache.onChange(({ before, after }) => notify(after ?? before));
      cache.run(stopping.signal).catch((error: unknown) => {
        if (!stopping.signal.aborted) this.#options.log.error({ error }, "watch of builds ended");
      });
    }
    return () => stopping.abort(new Error("the builder has stopped watching builds"));
  }

  async *logs(
    run: RunRef,
    { tailLines, follow = false, step }: LogSelection,
    signal: AbortSignal,
  ): AsyncIterable<LogLine> {
    let position = 0;
    let current = "";
    for (;;) {
      const ended = !follow || !["Pending", "Running"].includes((await this.observe(run, signal)).phase);
      const text = await this.#logOf(
        run,
        tailLines === undefined || follow ? {} : { tailLines: String(tailLines) },
        signal,
      );
      const complete = ended ? text.length : text.lastIndexOf("\n") + 1;
      for (const line of text.slice(position, complete).split("\n")) {
        const marker = readStepMarker(line);
        if (marker !== undefined) current = marker.state === "start" ? marker.step : current;
        else if (line !== "" && (step === undefined || step === current))
          yield { step: current, text: line } satisfies LogLine;
      }
      position = Math.max(position, complete);
      if (ended) return;
      await this.#options.clock.sleep(followMs, signal);
    }
  }

  async cancel(run: RunRef, because: string, signal: AbortSignal): Promise<void> {
    this.#options.log.info({ run: run.id, because }, "build is taken back");
    const job = await this.#jobOf(run, signal);
    if (job !== undefined)
      await this.#options.kube.delete(kubernetes.Job, job.metadata, { propagation: "Foreground", signal });
  }

  async cleanup(
    { build }: Pick<RunRef, "build">,
    { keepForInspection }: { readonly keepForInspection: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    await this.#removeAll(kubernetes.Secret, build, signal);
    if (keepForInspection) return;
    await this.#removeAll(kubernetes.ConfigMap, build, signal);
    await this.#removeAll(kubernetes.Job, build, signal);
    // The reference's own builder left its digest in one, without our labels.
    await this.#options.kube
      .delete(kubernetes.ConfigMap, { name: `digest-${build}`, namespace }, { signal })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
  }

  async list(signal: AbortSignal): Promise<readonly RunRef[]> {
    const { items } = await this.#options.kube.list<Job>(
      kubernetes.Job,
      { namespace: buildNamespace, labelSelector: labels.ephemeralBuildObject },
      { signal },
    );
    return items.flatMap(({ metadata, status }): readonly RunRef[] => {
      const build = metadata.annotations?.[buildAnnotation];
      const attempt = Number(metadata.annotations?.[annotations.buildAttempt]);
      const ended = (status?.conditions ?? []).some(
        ({ type, status: is }) => is === "True" && (type === "Complete" || type === "Failed"),
      );
      return build === undefined || !Number.isSafeInteger(attempt) || ended || metadata.deletionTimestamp !== undefined
        ? []
        : [{ id: runIdOf(build, attempt), build, attempt }];
    });
  }

  /** The objects that the steps of a build see, as they are in the suite's namespace now. */
  async #mountsOf({ mounts }: BuildRequest, signal: AbortSignal): Promise<Given["mounts"]> {
    const found = await Promise.all(
      mounts.map(async ({ kind, source }) => {
        return {
          kind,
          source:
            source.kind === "Secret"
              ? await this.#options.kube.get<Secret>(
                  kubernetes.Secret,
                  { name: source.name, namespace: buildNamespace },
                  { signal },
                )
              : await this.#options.kube.get<ConfigMap>(
                  kubernetes.ConfigMap,
                  { name: source.name, namespace },
                  { signal },
                ),
        };
      }),
    );
    return found.flatMap(({ kind, source }) => (source === undefined ? [] : [{ kind, source }]));
  }

  /** Whether every node of an architecture is one of the control plane. */
  async #onlyControlPlane(architecture: string, signal: AbortSignal): Promise<boolean> {
    const { items } = await this.#options.kube.list<Node>(
      kubernetes.Node,
      { labelSelector: `${labels.arch}=${architecture}` },
      { signal, keep: trimNode },
    );
    const isControlPlane = ({ metadata }: Node) =>
      metadata.labels?.[labels.masterRole] !== undefined || metadata.labels?.[labels.controlPlaneRole] !== undefined;
    return items.length > 0 && items.every(isControlPlane);
  }

  async #podsOf(job: Job, build: string, signal: AbortSignal): Promise<readonly Pod[]> {
    const { items } = await this.#options.kube.list<Pod>(kubernetes.Pod, selectionOfBuild(build), { signal });
    const own = items.filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === job.metadata.uid));
    for (const { metadata, spec } of own) {
      const pool = metadata.labels?.[labels.targetPool];
      if (pool !== undefined && spec?.nodeName !== undefined) this.#lastNodes.set(pool, spec.nodeName);
    }
    return own;
  }

  /** The Job of a run, and not another build's of the same name. */
  async #jobOf(run: Pick<RunRef, "build" | "attempt">, signal: AbortSignal): Promise<Job | undefined> {
    const job = await this.#options.kube.get(kubernetes.Job, jobKey(run), { signal });
    return job !== undefined && belongsToBuild(run.build, job) ? job : undefined;
  }

  /** Text of the newest pod's log, its containers one after the other; empty where there is none to be had. */
  async #logOf(run: RunRef, query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<string> {
    const job = await this.#jobOf(run, signal);
    const pod =
      job === undefined
        ? undefined
        : (await this.#podsOf(job, run.build, signal))
            .toSorted((a, b) => (a.metadata.creationTimestamp ?? "").localeCompare(b.metadata.creationTimestamp ?? ""))
            .at(-1);
    const texts: string[] = [];
    for (const container of pod === undefined ? [] : startedIn(pod))
      texts.push(await this.#podLog(pod, container, query, signal));
    const { tailLines } = query;
    return tailLines === undefined ? texts.join("") : endOf(texts.join(""), Number(tailLines));
  }

  async #podLog(
    pod: Pod | undefined,
    container: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<string> {
    if (pod === undefined) return "";
    try {
      const target = `${pathOf(kubernetes.Pod, pod.metadata, "log")}?${new URLSearchParams({ container, limitBytes: String(maxLogBytes), ...query }).toString()}`;
      // A kubelet may send more than it is asked for: root on the machine speaks for it.
      const text = await this.#options.kube.request(
        { method: "GET", target, headers: { accept: "*/*" }, mostBytes: maxLogBytes },
        { signal },
      );
      return typeof text === "string" ? text : "";
    } catch (error) {
      signal.throwIfAborted();
      // Its machine may be shutting down or not up yet: the log is for people, and nothing depends on it.
      this.#options.log.debug({ pod: pod.metadata.name, error }, "log of a build not read");
      return "";
    }
  }

  async #stepOf(run: RunRef, pods: readonly Pod[], signal: AbortSignal): Promise<string | undefined> {
    const found = pods.flatMap((pod) =>
      statusesOf(pod).flatMap((each) => (each.state?.running ? [{ pod, each }] : [])),
    );
    const [running] = found;
    const text =
      running === undefined
        ? ""
        : await this.#podLog(running.pod, running.each.name, { tailLines: String(stepTailLines) }, signal);
    const last = text.split("\n").findLast((line) => readStepMarker(line)?.state === "start");
    const step = last === undefined ? undefined : readStepMarker(last)?.step;
    if (step !== undefined) this.#steps.set(run.id, step);
    return this.#steps.get(run.id);
  }

  async #removeAll<T extends KubeObject>(resource: Resource<T>, build: string, signal: AbortSignal): Promise<void> {
    const { items } = await this.#options.kube.list(resource, selectionOfBuild(build), { signal });
    for (const { metadata } of items.filter((object) => belongsToBuild(build, object)))
      await this.#options.kube.delete(resource, metadata, { propagation: "Background", signal });
  }
}

const endOf = (text: string, lines: number): string =>
  text
    .split(/(?<=\n)/)
    .slice(-lines)
    .join("");

/** In the order in which they run. */
const statusesOf = ({ status }: Pod) => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
];
const startedIn = (pod: Pod): readonly string[] =>
  statusesOf(pod).flatMap(({ name, state }) =>
    state?.running === undefined && state?.terminated === undefined ? [] : [name],
  );

/** Name of one attempt. */
export const runIdOf = (build: string, attempt: number): string => `${build}-${attempt}`;

/** A watch that only signals changes needs no more. */
const trim = <T extends KubeObject>({ apiVersion, kind, metadata }: T): T => ({ apiVersion, kind, metadata }) as T;
