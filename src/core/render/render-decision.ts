import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { OSImageStream } from "../../api/kinds/os-image-stream.ts";
import type { StorageOverride } from "../config/reconcilable.ts";
import type { RenderResult, SourceReference } from "./render-pool.ts";

/** The rendered config of a pool, with the members that it was merged from. */
export type RenderedPool = Extract<RenderResult, { readonly verdict: "rendered" }>;

/** Whether a pool may get a new target now. */
export type TargetTurn =
  | { readonly verdict: "taken" }
  | { readonly verdict: "later"; readonly seconds: number; readonly message: string };

/** The part of a rendered config that the API server keeps under its name. */
export type KeptConfig =
  | { readonly verdict: "kept" }
  /** Another writer made it, or changed it. */
  | { readonly verdict: "taken" }
  | { readonly verdict: "partly"; readonly lost: readonly string[] };

/** The result of rendering in this pass. */
export interface RenderTarget {
  readonly rendered: RenderedPool;
  readonly turn: TargetTurn;
  /** The MachineConfig of that name, as the watch shows it; absent: there is none. */
  readonly known: MachineConfig | undefined;
}

/** The inputs of a decision about a pool's rendered config: the caches when the pass began, and what it did since. */
export interface RenderView {
  readonly version: string;
  readonly generatorVersion: string;
  /** `absent`: this process makes no base configurations, so rendering does not wait for them. */
  readonly baseConfigs: "awaited" | "absent";
  /** Monotonic milliseconds. */
  readonly monotonic: number;
  readonly pool: MachineConfigPool;
  readonly pools: readonly MachineConfigPool[];
  readonly controllerConfig: ControllerConfig | undefined;
  readonly osImageStream: OSImageStream | undefined;
  /** The MachineConfigs that the pool selects. */
  readonly members: readonly MachineConfig[];
  /** The config that the pool points to. */
  readonly current: MachineConfig | undefined;
  readonly overrides: readonly StorageOverride[];
  /** The first base configuration of the pool's roles that is not there. */
  readonly missingBase: string | undefined;
  /** An object with settings that is about to become a MachineConfig of the pool. */
  readonly unjudged: string | undefined;
  /** MachineConfigs that this process makes for the pool of what the cluster has. */
  readonly generated: readonly { readonly name: string; readonly isThere: boolean }[];
  readonly target?: RenderTarget;
  /** Absent until the target is stored. */
  readonly kept?: KeptConfig;
}

/** The memory of a pool between passes; a restart costs one more report and a short wait. */
export interface PoolRenderMemory {
  /** The problem that was last reported as the reason why the pool cannot be rendered. */
  readonly refused: string | undefined;
  /** The target that was last reported. */
  readonly pointed: string | undefined;
  /** The pool's objects with settings, or a generated MachineConfig → since when (monotonic milliseconds). */
  readonly awaited: ReadonlyMap<string, number>;
}

/** A new target that is reported. */
export type TargetNews =
  | { readonly is: "first" }
  /** `isKnown`: its book has it, and the pool still, or again, points elsewhere. */
  | { readonly is: "changed"; readonly from: MachineConfig; readonly isKnown: boolean };

/** The next act of a pass over a pool, each with its reason for people. */
export type RenderDecision = { readonly because: string } & (RenderStep | RenderEnd);

/** Steps after which the pass decides again. */
export type RenderStep =
  /** Remembers that something is awaited from now on. */
  | { readonly do: "await"; readonly what: string }
  /** Forgets what is awaited no longer. */
  | { readonly do: "endWait"; readonly what: readonly string[] }
  /** Takes a turn of the pool for the rendered config. */
  | { readonly do: "takeTurn"; readonly rendered: RenderedPool }
  /** Creates the rendered config. */
  | { readonly do: "store"; readonly config: RenderedPool["config"] }
  /** Makes the pool the owner of a rendered config that the installation brought. */
  | {
      readonly do: "adopt";
      readonly name: string;
      readonly ownerReferences: NonNullable<MachineConfig["metadata"]["ownerReferences"]>;
    }
  /** Writes the rendered config over what has its name as a dry run, to learn what the API server would keep. */
  | { readonly do: "tryWrite"; readonly config: RenderedPool["config"] };

/** Ends of a pass. */
export type RenderEnd =
  | { readonly do: "rest" | "refuseAll" }
  | { readonly do: "wait"; readonly reason: string; readonly seconds: number }
  /** The pool keeps its current config. */
  | {
      readonly do: "refuse";
      readonly reason: "RenderRefused" | "RenderedNameTaken" | "RenderedConfigNotKept";
      /** For the condition of the pool. */
      readonly message: string;
      /** The book of the pool does not have it. */
      readonly isNews: boolean;
    }
  | {
      readonly do: "point";
      readonly rendered: RenderedPool;
      /** A refusal was reported, and it has ended. */
      readonly isRecovered: boolean;
      readonly news: TargetNews | undefined;
      /** Absent: the pool has it. */
      readonly configuration: { readonly name: string; readonly source: SourceReference[] } | undefined;
    };

export type RenderCase<Name extends RenderDecision["do"]> = RenderDecision & { readonly do: Name };
