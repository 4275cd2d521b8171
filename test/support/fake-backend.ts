import { canonicalJson } from "../../src/core/text/canonical-json.ts";
import type { BuildFailure } from "../../src/core/build/build-failures.ts";
import { sha256Hex } from "../../src/core/build/build-key.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { BuildBackend, BuildProblem, BuildRequest, RunRef } from "../../src/os-builder/backend.ts";
import type { RunState } from "../../src/core/build/run-decision.ts";

/** What a run does, in order, each for so many milliseconds. The last one stays. */
export type FakeTime =
  | { readonly forMs: number; readonly is: "pending"; readonly reason?: string }
  | { readonly forMs: number; readonly is: "running"; readonly step: string }
  | { readonly is: "succeeds"; readonly digest?: string }
  | { readonly is: "fails"; readonly failure: BuildFailure }
  | { readonly is: "lost" };

interface FakeRun {
  readonly request: BuildRequest;
  readonly since: number;
  readonly script: readonly FakeTime[];
  ended: "cancelled" | "deleted" | undefined;
}

type Verb = "preflight" | "start" | "observe" | "cancel" | "cleanup" | "list";

/** A quick build that succeeds. */
const ordinary: readonly FakeTime[] = [
  { forMs: 1000, is: "pending" },
  { forMs: 1000, is: "running", step: "pull-base" },
  { forMs: 1000, is: "running", step: "push" },
  { is: "succeeds" },
];

/**
 * A backend that makes no images and follows a script and a clock. It stands for everything outside the os-builder, so
 * it outlives the os-builder's process.
 */
export class FakeBackend implements BuildBackend {
  readonly kind = "fake";
  readonly #clock: Clock;
  readonly #listeners = new Set<(build: string) => void>();
  readonly #runs = new Map<string, FakeRun>();
  /** Builds that still have objects; `secrets` while the Secrets exist, too. */
  readonly objects = new Map<string, "secrets" | "kept">();
  /** Every start that began a run. */
  readonly started: BuildRequest[] = [];
  readonly cancelled: string[] = [];
  /** What the next runs do, one entry for each attempt; the last entry applies to all further attempts. */
  scripts: readonly (readonly FakeTime[])[] = [ordinary];
  problems: readonly BuildProblem[] = [];
  canRun = true;
  atOnce = 4;
  /** Decides, from a verb and the number of its calls so far, whether the call rejects. */
  breaks: (verb: Verb, call: number) => boolean = () => false;
  readonly #calls = new Map<Verb, number>();
  /** What a start rejects with. */
  startFails: Error | undefined;
  /** Called after each verb that changes something. */
  onCall: () => void = () => undefined;
  onImage: (image: string, request: BuildRequest) => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  #called(verb: Verb): void {
    const call = (this.#calls.get(verb) ?? 0) + 1;
    this.#calls.set(verb, call);
    if (this.breaks(verb, call)) throw new Error(`${verb} did not get through`);
  }

  capabilities(): { readonly run: boolean; readonly atOnce: number } {
    return { run: this.canRun, atOnce: this.atOnce };
  }

  async preflight(): Promise<readonly BuildProblem[]> {
    this.#called("preflight");
    return Promise.resolve(this.problems);
  }

  async start(request: BuildRequest): Promise<RunRef> {
    this.#called("start");
    if (this.startFails !== undefined) throw this.startFails;
    const ref = { id: request.id, build: request.build.metadata.name, attempt: request.attempt };
    if (!this.#runs.has(request.id)) {
      const script = this.scripts[Math.min(this.started.length, this.scripts.length - 1)] ?? ordinary;
      this.#runs.set(request.id, { request, since: this.#clock.monotonic(), script, ended: undefined });
      this.started.push(request);
      this.onCall();
      this.objects.set(ref.build, "secrets");
      let after = 0;
      for (const moment of script) {
        this.#clock.after(after, () => this.#notify(ref.build));
        after += "forMs" in moment ? moment.forMs : 0;
      }
    }
    return Promise.resolve(ref);
  }

  #notify(build: string): void {
    for (const listener of this.#listeners) listener(build);
  }

  async observe(run: RunRef): Promise<RunState> {
    this.#called("observe");
    const known = this.#runs.get(run.id);
    if (known === undefined || known.ended !== undefined) return Promise.resolve({ phase: "Gone" });
    let left = this.#clock.monotonic() - known.since;
    const startedAt = new Date(this.#clock.now() - left).toISOString();
    for (const moment of known.script) {
      if ("forMs" in moment) {
        if (left < moment.forMs)
          return moment.is === "pending"
            ? { phase: "Pending", ...(moment.reason === undefined ? {} : { reason: moment.reason }) }
            : { phase: "Running", step: moment.step, startedAt };
        left -= moment.forMs;
        continue;
      }
      const endedAt = new Date(this.#clock.now()).toISOString();
      if (moment.is === "lost") return { phase: "Lost" };
      if (moment.is === "fails")
        return { phase: "Failed", step: moment.failure.step, failure: moment.failure, startedAt, endedAt };
      const digest = moment.digest ?? digestOf(known.request);
      this.onImage(`${known.request.target.repository}@${digest}`, known.request);
      return { phase: "Succeeded", digest, startedAt, endedAt };
    }
    return { phase: "Lost" };
  }

  watch(onChange: (build: string) => void): () => void {
    this.#listeners.add(onChange);
    return () => this.#listeners.delete(onChange);
  }

  async *logs(): AsyncIterable<{ readonly step: string; readonly text: string }> {
    for (const { target } of this.started)
      yield await Promise.resolve({ step: "push", text: `${target.repository}:${target.tag}` });
  }

  async cancel(run: RunRef): Promise<void> {
    this.#called("cancel");
    const known = this.#runs.get(run.id);
    if (known !== undefined && known.ended === undefined) {
      known.ended = "cancelled";
      this.cancelled.push(run.id);
      this.onCall();
    }
    return Promise.resolve();
  }

  async cleanup(
    run: Pick<RunRef, "build">,
    { keepForInspection }: { readonly keepForInspection: boolean },
  ): Promise<void> {
    this.#called("cleanup");
    if (!this.objects.has(run.build)) return Promise.resolve();
    if (keepForInspection) this.objects.set(run.build, "kept");
    else this.objects.delete(run.build);
    this.onCall();
    return Promise.resolve();
  }

  async list(): Promise<readonly RunRef[]> {
    this.#called("list");
    return Promise.resolve(
      [...this.#runs.values()]
        .filter(({ ended }) => ended === undefined)
        .map(({ request }) => ({ id: request.id, build: request.build.metadata.name, attempt: request.attempt })),
    );
  }

  /** Deletes a run as a user with other tools would. */
  deleteRun(id: string): void {
    const run = this.#runs.get(id);
    if (run === undefined) return;
    run.ended = "deleted";
    this.#notify(run.request.build.metadata.name);
  }
}

/** Equal inputs give an equal digest, as in a reproducible build. */
const digestOf = ({ base, containerfile, parent, configLayer, labels, architecture }: BuildRequest): string =>
  `sha256:${sha256Hex(canonicalJson({ base, containerfile, parent, layer: configLayer?.digest, labels, architecture }))}`;
