import { McoError } from "../api/errors.ts";
import { timestampOf } from "../api/schema/object.ts";
import { type BuildFailure, classifyFailure, classifyImageError } from "../core/build/build-failures.ts";
import { labelsOfImage } from "../core/build/image-build.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { type Clock, DeadlineExceeded } from "../ports/clock.ts";
import type { ImageStore, ImageStoreSettings } from "../registry/image-store.ts";
import { pushedProblem } from "../registry/verify-pushed.ts";
import type { BuildBackend, BuildProblem, BuildRequest, LogLine, LogSelection, RunRef } from "./backend.ts";
import type { RunState } from "../core/build/run-decision.ts";
import { readAuth } from "./registry-secret.ts";
import { own } from "../api/schema/own.ts";
import { defined } from "../api/schema/defined.ts";

export interface AppendBackendOptions {
  readonly kube: KubeClient;
  readonly clock: Clock;
  /** Images of registries, read with these settings; their policy judges what is taken as a parent. */
  readonly storeFor: (settings: ImageStoreSettings) => ImageStore;
}

const atOnce = 4;

interface Task {
  readonly run: RunRef;
  readonly stop: AbortController;
  readonly lines: LogLine[];
  state: RunState;
}

/**
 * Makes images in this process: one layer on an existing parent. Nothing of a run outlives the process. Equal requests
 * give equal images, so a lost run is simply started again.
 */
export const appendBackend = (options: AppendBackendOptions): BuildBackend => new AppendBackend(options);

class AppendBackend implements BuildBackend {
  readonly kind = "append";
  readonly #options: AppendBackendOptions;
  readonly #tasks = new Map<string, Task>();
  readonly #listeners = new Set<(build: string) => void>();

  constructor(options: AppendBackendOptions) {
    this.#options = options;
  }

  capabilities() {
    return { run: false, atOnce };
  }

  async preflight(request: BuildRequest): Promise<readonly BuildProblem[]> {
    return request.containerfile === undefined || request.parent !== undefined
      ? []
      : [{ code: "StepsCannotRun", message: "steps of a Containerfile have to run, which takes a build of its own" }];
  }

  async start(request: BuildRequest): Promise<RunRef> {
    const { id, attempt, build } = request;
    const known = this.#tasks.get(id);
    if (known !== undefined && known.state.phase !== "Gone") return known.run;
    const task: Task = {
      run: { id, build: build.metadata.name, attempt },
      stop: new AbortController(),
      lines: [],
      state: { phase: "Pending" },
    };
    this.#tasks.set(id, task);
    // Every end of it is reported as a state.
    void this.#run(request, task);
    return task.run;
  }

  async observe({ id }: RunRef): Promise<RunState> {
    return (
      this.#tasks.get(id)?.state ?? {
        phase: "Lost",
        failure: { class: "BuilderLost", step: "context", cause: "the builder that made it has ended", excerpt: "" },
      }
    );
  }

  watch(onChange: (build: string) => void): () => void {
    this.#listeners.add(onChange);
    return () => void this.#listeners.delete(onChange);
  }

  async *logs({ id }: RunRef, { tailLines, step: wanted }: LogSelection): AsyncIterable<LogLine> {
    const lines = (this.#tasks.get(id)?.lines ?? []).filter((line) => wanted === undefined || line.step === wanted);
    yield* tailLines === undefined ? lines : lines.slice(-tailLines);
  }

  async cancel({ id }: RunRef, because: string): Promise<void> {
    const task = this.#tasks.get(id);
    if (task === undefined) return;
    task.stop.abort(new Error(because));
    this.#change(task, { phase: "Gone" });
  }

  async cleanup({ build }: Pick<RunRef, "build">): Promise<void> {
    for (const [
      id,
      {
        run: { build: of },
        state,
      },
    ] of this.#tasks)
      if (of === build && state.phase !== "Running" && state.phase !== "Pending") this.#tasks.delete(id);
  }

  async list(): Promise<readonly RunRef[]> {
    return [...this.#tasks.values()]
      .filter(({ state }) => state.phase === "Running" || state.phase === "Pending")
      .map(({ run: ref }) => ref);
  }
  #change(task: Task, state: RunState): void {
    task.state = state;
    for (const listener of this.#listeners) listener(task.run.build);
  }

  /** A cancelled run does not continue. */
  #step(task: Task, name: string, text: string): void {
    task.stop.signal.throwIfAborted();
    task.lines.push({ step: name, text });
    this.#change(task, {
      ...task.state,
      phase: "Running",
      step: name,
      reason: `Step${name.slice(0, 1).toUpperCase()}${name.slice(1)}`,
    });
  }

  async #work(request: BuildRequest, task: Task, signal: AbortSignal): Promise<string> {
    const { base, parent = { image: base, hasConfigLayer: false }, target, configLayer, architecture } = request;
    this.#step(
      task,
      "context",
      `lays ${configLayer === undefined ? "labels" : `${configLayer.bytes.length} bytes`} on ${parent.image}`,
    );
    const auth = {
      pull: await readAuth(this.#options.kube, request.auth.pull, { what: "pull", pool: request.pool }, signal),
      push: await readAuth(this.#options.kube, request.auth.push, { what: "push", pool: request.pool }, signal),
    };
    const store = this.#options.storeFor({
      auth,
      certificates: async (host) => [...(own(request.registryCertificates, host) ?? []), ...request.trust],
      registries: request.registries,
      policy: request.policy,
      architecture,
      proxy: request.proxy,
    });
    this.#step(task, "pull-base", `reads ${parent.image}`);
    // The policy may ask for more than it did when the parent was made.
    if (parent.image !== base) await store.parentOf(base, signal);
    const image = await store.parentOf(parent.image, signal);
    this.#step(task, "push", `pushes ${target.repository}:${target.tag}`);
    const { digest } = await store.publish(
      image,
      {
        dropTopLayer: parent.hasConfigLayer,
        ...defined({ layer: configLayer }),
        labels: labelsOfImage(request),
        ...target,
        createdSeconds: request.epoch,
      },
      signal,
    );
    this.#step(task, "verify", `asks for ${target.repository}@${digest}`);
    const problem = await pushedProblem(store, `${target.repository}@${digest}`, architecture, signal);
    if (problem !== undefined) throw new Refused(problem);
    return digest;
  }

  async #run(request: BuildRequest, task: Task): Promise<void> {
    const startedAt = this.#now();
    this.#change(task, { phase: "Running", startedAt });
    const deadline = this.#options.clock.deadline(request.limits.seconds * 1000, task.stop.signal);
    try {
      const digest = await this.#work(request, task, deadline.signal);
      task.stop.signal.throwIfAborted();
      this.#change(task, { phase: "Succeeded", step: "verify", digest, startedAt, endedAt: this.#now() });
    } catch (error) {
      if (task.stop.signal.aborted) return this.#change(task, { phase: "Gone" });
      const failure = failureOf(error, task.state.step ?? "context");
      task.lines.push({ step: failure.step, text: `${failure.class}: ${failure.cause}` });
      this.#change(task, { phase: "Failed", step: failure.step, failure, startedAt, endedAt: this.#now() });
    } finally {
      deadline.cancel();
    }
  }

  #now(): string {
    return timestampOf(this.#options.clock.now());
  }
}

/** What was pushed is of no use. */
class Refused extends Error {
  override readonly name = "Refused";
  readonly failure: BuildFailure;

  constructor(failure: BuildFailure) {
    super(failure.cause);
    this.failure = failure;
  }
}

function failureOf(error: unknown, step: string): BuildFailure {
  if (error instanceof Refused) return error.failure;
  const text = error instanceof Error ? error.message : String(error);
  if (error instanceof DeadlineExceeded)
    return { class: "Timeout", step, exitCode: 124, cause: `${step} was ${text}`, excerpt: "" };
  if (error instanceof McoError && error.code === "MCO_BUILD_INPUT_MISSING")
    return {
      class: "InputChanged",
      step,
      cause: `${String(error.facts["kind"])} ${String(error.facts["name"])}: ${String(error.facts["problem"])}`,
      excerpt: "",
    };
  return error instanceof McoError && error.code.startsWith("MCO_IMAGE_")
    ? classifyImageError(step, error)
    : classifyFailure({ step, text });
}
