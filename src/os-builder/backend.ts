import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import type { BuildIsolation } from "../core/build/build-settings.ts";
import type { BuildProxy } from "../core/build/image-build.ts";
import type { RunState } from "../core/build/run-decision.ts";
import type { ContentMode } from "../core/config/node-config.ts";

/** A small file that a build finds in its context. */
export interface ContextFile {
  readonly path: string;
  readonly contents: Uint8Array;
  readonly mode: number;
}

/** Files that steps of the build see, and that never get into the image. */
export interface HostContent {
  readonly kind: "entitlement" | "rpmGpg" | "yumRepos";
  /** Secret or ConfigMap of the suite's namespace. */
  readonly source: { readonly kind: "Secret" | "ConfigMap"; readonly name: string };
}

/** One attempt to make an image. Nothing in it is secret but `proxy` and the contents of `configLayer` and `buildVisible`. */
export interface BuildRequest {
  /** Name of the MachineOSBuild and the number of the attempt: the same one is never run twice. */
  readonly id: string;
  readonly build: Pick<MachineOSBuild, "metadata" | "spec">;
  readonly attempt: number;
  readonly pool: string;
  readonly mode: ContentMode;
  /** `amd64`, `arm64`, … */
  readonly architecture: string;
  /** Pullspec by digest. */
  readonly base: string;
  readonly extensions?: string;
  /** Rendered text; absent if neither packages nor custom steps require their own image. */
  readonly containerfile?: string;
  /** Image whose layers are taken over, less its configuration, for strategy `append`. */
  readonly parent?: { readonly image: string; readonly hasConfigLayer: boolean };
  readonly context: readonly ContextFile[];
  /** tar.gz, and the digest of its contents; absent for os-only images. */
  readonly configLayer?: { readonly bytes: Uint8Array; readonly digest: string; readonly diffId: string };
  /** tar.gz of the configuration's files that steps of the build see. */
  readonly buildVisible?: Uint8Array;
  readonly mounts: readonly HostContent[];
  /** Names of Secrets in the suite's namespace. */
  readonly auth: { readonly pull: string; readonly push: string };
  /** PEM */
  readonly trust: readonly string[];
  /** By host: PEM texts. */
  readonly registryCertificates: Readonly<Record<string, readonly string[]>>;
  readonly registries?: string;
  readonly policy?: string;
  readonly proxy?: BuildProxy;
  readonly target: { readonly repository: string; readonly tag: string };
  /** Seconds: the time of everything in the image. */
  readonly epoch: number;
  readonly noCache: boolean;
  readonly limits: {
    readonly seconds: number;
    readonly pushSeconds: number;
    readonly cpu: string;
    readonly memory: string;
    readonly storage: string;
  };
  /** How its pod is kept from the machine. */
  readonly isolation: BuildIsolation;
  readonly labels: Readonly<Record<string, string>>;
}

/** A run by its request's id, enough to find it again after a restart. */
export interface RunRef {
  readonly id: string;
  readonly build: string;
  readonly attempt: number;
}

export interface LogLine {
  readonly step: string;
  readonly text: string;
}

/** Which lines of a log. */
export interface LogSelection {
  /** The last so many. */
  readonly tailLines?: number;
  /** Until the run has ended. */
  readonly follow?: boolean;
  readonly step?: string;
}

/** Something that is missing before a build can begin. */
export interface BuildProblem {
  readonly code: string;
  readonly message: string;
}

/**
 * Makes images. All verbs may be repeated; they return the current state, and failures of a build are values. A verb
 * that rejects had no effect, and is retried.
 */
export interface BuildBackend {
  readonly kind: "job" | "append" | "fake";
  /** `run`: steps of a Containerfile can be run. */
  capabilities(): { readonly run: boolean; readonly atOnce: number };
  /** Changes nothing. */
  preflight(request: BuildRequest, signal: AbortSignal): Promise<readonly BuildProblem[]>;
  /** Creates the run's objects and starts it; adopts an existing run with this id. */
  start(request: BuildRequest, signal: AbortSignal): Promise<RunRef>;
  observe(run: RunRef, signal: AbortSignal): Promise<RunState>;
  /** Calls when something may have happened to a run; {@link observe} is the truth. Returns the way to stop it. */
  watch(onChange: (build: string) => void): () => void;
  logs(run: RunRef, how: LogSelection, signal: AbortSignal): AsyncIterable<LogLine>;
  /** {@link observe} returns `Gone` some time later. */
  cancel(run: RunRef, because: string, signal: AbortSignal): Promise<void>;
  /** Removes what the run needed, secrets first. `keepForInspection`: everything but those stays for a while. */
  cleanup(run: Pick<RunRef, "build">, how: { readonly keepForInspection: boolean }, signal: AbortSignal): Promise<void>;
  /** Everything that still runs, even if another process started it. */
  list(signal: AbortSignal): Promise<readonly RunRef[]>;
}
