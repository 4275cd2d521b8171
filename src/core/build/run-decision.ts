import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { BuildState } from "../config/build-phase.ts";
import type { NodeConfig } from "../config/node-config.ts";
import type { BuildFailure } from "./build-failures.ts";
import type { FailureRecord } from "./build-retry.ts";
import type { BuildIsolation } from "./build-settings.ts";

/** The state of a run, as its backend reports it. */
export interface RunState {
  readonly phase: "Pending" | "Running" | "Succeeded" | "Failed" | "Lost" | "Gone";
  /** Of a pending run: `WaitingForPod`, `Unschedulable`, `PullingBuilderImage`. */
  readonly reason?: string;
  readonly message?: string;
  readonly step?: string;
  /** RFC 3339 */
  readonly startedAt?: string;
  readonly endedAt?: string;
  /** `sha256:…` of what was pushed. */
  readonly digest?: string;
  readonly failure?: BuildFailure;
}

/** What this pass over a build has found out and done. Absent parts are read when a decision requires them. */
export interface RunPass {
  /** As the watch showed it when the pass began, or as a failure was noted in it. */
  readonly build: MachineOSBuild;
  /** Builds whose runs the same backend has under way, when the pass began. */
  readonly running: readonly string[];
  /** Whether the inputs of the build are what they were; `isRebuild`: a user requested it to be built again. */
  readonly inputs?:
    | { readonly are: "changed" }
    | { readonly are: "unreadable" }
    | { readonly are: "same"; readonly isRebuild: boolean };
  /** Everything that the attempt needs; an image that cannot be read fails it. */
  readonly request?:
    | {
        readonly verdict: "request";
        readonly request: { readonly isolation: BuildIsolation; readonly containerfile?: string };
      }
    | { readonly verdict: "failed"; readonly failure: BuildFailure };
  /** `missing`: a Secret or ConfigMap was deleted while the run was starting. */
  readonly start?: { readonly verdict: "begun" } | ({ readonly verdict: "missing" } & MissingInput);
  readonly run?: RunState;
  readonly verification?:
    | { readonly verdict: "good"; readonly facts: object }
    | { readonly verdict: "failed"; readonly failure: BuildFailure }
    | { readonly verdict: "waits"; readonly message: string };
}

/** A Secret or ConfigMap that a run needs. */
export interface MissingInput {
  readonly kind: string;
  readonly name: string;
  readonly problem: string;
  /** It is about the isolation of the pod, and not about an object. */
  readonly isIsolation: boolean;
}

/** The inputs of a decision about a build that has not ended. */
export interface RunView extends RunPass {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** How many runs the backend has at once; absent: no backend runs such builds. */
  readonly atOnce: number | undefined;
  /** All builds, as the watch shows them. */
  readonly builds: readonly MachineOSBuild[];
  readonly pool: Pick<MachineConfigPool, "metadata"> | undefined;
  /** The MachineOSConfig of the build exists. */
  readonly isOwned: boolean;
  readonly maxRetries: number;
  readonly rendered: MachineConfig | undefined;
}

/** What a pass over a build does next, each with its reason for people. */
export type RunDecision = { readonly because: string } & (RunQuestion | RunEnd);

/** The view is incomplete, or a failure is noted: the pass decides again. */
export type RunQuestion =
  | { readonly do: "readInputs" }
  | { readonly do: "makeRequest"; readonly moreMemory: boolean; readonly noCache: boolean }
  | { readonly do: "start" }
  | { readonly do: "observe" }
  /** Verifies an image as nodes will. */
  | {
      readonly do: "verify";
      readonly image: string;
      readonly architecture: string;
      readonly baseDigest: string;
      readonly config: NodeConfig;
    }
  /** Notes a failure of the present attempt and what follows from it. */
  | { readonly do: "noteFailure"; readonly failure: BuildFailure };

/** Ends of a pass. `seconds` until the next one; absent: at the next event. */
export type RunEnd =
  | { readonly do: "rest"; readonly seconds?: number }
  | { readonly do: "queue"; readonly seconds: number }
  /** Reports what holds the build back. */
  | { readonly do: "hold"; readonly state: BuildState; readonly seconds: number }
  /** Reports a run that was begun. */
  | {
      readonly do: "reportBegun";
      readonly state: BuildState;
      readonly containerfile: string | undefined;
      /** The time of the attempt is noted on the build, and is over. */
      readonly wasScheduled: boolean;
      readonly seconds: number;
    }
  | {
      readonly do: "reportRun";
      readonly state: BuildState;
      readonly run: RunState;
      /** The first report of a run that runs. */
      readonly isFirst: boolean;
      readonly isNewStep: boolean;
      readonly seconds: number;
    }
  /** Reports that the build waits for the run of another one. */
  | { readonly do: "reportAttached"; readonly state: BuildState }
  | {
      readonly do: "succeed";
      readonly image: string;
      readonly reason: "Ready" | "Appended" | "Reused";
      /** What was verified of the image. */
      readonly facts: object | undefined;
      readonly run: RunState | undefined;
    }
  /** `record`: the failure of the build that it waited for. */
  | {
      readonly do: "fail";
      readonly reason: string;
      readonly message: string;
      readonly record: FailureRecord | undefined;
    }
  /** Schedules another attempt. `charge`: the new counter of the pool, if the failure counts. */
  | {
      readonly do: "retry";
      readonly at: string;
      readonly charge: number | undefined;
      readonly state: BuildState;
      readonly record: FailureRecord;
    }
  /** Ends the build without an image; `again`: its run is started once more then. */
  | {
      readonly do: "interrupt";
      readonly reason: "Superseded" | "UserDeleted";
      readonly again: string | undefined;
      readonly seconds?: number;
    };

export type RunCase<Name extends RunDecision["do"]> = RunDecision & { readonly do: Name };
