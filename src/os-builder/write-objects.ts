import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, fieldManagers, type machineOSConfigConditions } from "../api/names.ts";
import { setCondition } from "../api/schema/conditions.ts";
import type { Condition } from "../api/schema/object.ts";
import { withProgress } from "../api/schema/progress-conditions.ts";
import { progressOfConfig } from "../core/build/image-progress.ts";
import { conditionsOfBuild, mayFollow } from "../core/build/build-state.ts";
import type { Context } from "../kube/controller.ts";
import { updateByDecision, updateObject } from "../kube/kube-client.ts";
import { type BuildState, stateOfBuild } from "../core/config/build-phase.ts";
import { defined } from "../api/schema/defined.ts";

type ConditionType = (typeof machineOSConfigConditions)[keyof typeof machineOSConfigConditions];

export interface WantedCondition {
  readonly type: ConditionType;
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

type ConfigStatus = NonNullable<MachineOSConfig["status"]>;

/** Conditions with some of them set, and what follows from all of them; `undefined`: they say so already. */
function withConditions(
  before: readonly Condition[] | undefined,
  wanted: readonly WantedCondition[],
  generation: number | undefined,
  now: number,
): readonly Condition[] | undefined {
  const generated = generation === undefined ? {} : { observedGeneration: generation };
  const said = wanted.reduce<readonly Condition[]>(
    (conditions, want) => setCondition<Condition>(conditions, { ...want, ...generated }, now),
    before ?? [],
  );
  const next = withProgress<Condition>(said, progressOfConfig(said), now) as readonly Condition[];
  const changed =
    next.length !== (before ?? []).length || next.some((condition, index) => condition !== before?.[index]);
  return changed ? next : undefined;
}

/** Sets conditions of a MachineOSConfig, and related fields. */
export async function writeConfigStatus(
  config: MachineOSConfig,
  wanted: readonly WantedCondition[],
  context: Context,
  more?: (object: MachineOSConfig) => Partial<ConfigStatus> | undefined,
): Promise<void> {
  const { kube, clock, signal } = context;
  await updateObject(
    kube,
    MachineOSConfig,
    config.metadata,
    (object) => {
      if (object.metadata.uid !== config.metadata.uid) return undefined;
      const conditions = withConditions(
        object.status?.conditions as readonly Condition[] | undefined,
        wanted,
        object.metadata.generation,
        clock.now(),
      );
      const rest = more?.(object);
      if (conditions === undefined && rest === undefined) return undefined;
      return {
        status: { ...rest, ...(conditions === undefined ? {} : { conditions: [...conditions] }) },
      } as Partial<MachineOSConfig>;
    },
    { subresource: "status", owner: fieldManagers.osBuilder, cached: config, signal },
  );
}

type Annotations = Readonly<Record<string, string | null>>;

/** The part of `changes` that is not applied yet; `undefined` if there is none. */
function missing(has: Readonly<Record<string, string>> | undefined, changes: Annotations): Annotations | undefined {
  const left = Object.entries(changes).filter(([key, value]) => (has?.[key] ?? null) !== value);
  return left.length === 0 ? undefined : Object.fromEntries(left);
}

const annotated = <T extends MachineConfigPool | MachineOSConfig | MachineOSBuild>(
  object: T,
  changes: Annotations,
  labelChanges: Annotations = {},
): Partial<T> | undefined => {
  const [notes, labels] = [
    missing(object.metadata.annotations, changes),
    missing(object.metadata.labels, labelChanges),
  ];
  if (notes === undefined && labels === undefined) return undefined;
  return {
    metadata: { ...defined({ annotations: notes, labels }) },
  } as unknown as Partial<T>;
};

export async function annotatePool(
  pool: MachineConfigPool,
  changes: Annotations,
  { kube, signal }: Context,
  labelChanges: Annotations = {},
): Promise<void> {
  await updateObject(kube, MachineConfigPool, pool.metadata, (object) => annotated(object, changes, labelChanges), {
    owner: fieldManagers.osBuilder,
    cached: pool,
    signal,
  });
}

/** `unless`: checked against the current object at the time of the write. */
export async function annotateConfig(
  config: MachineOSConfig,
  changes: Annotations,
  { kube, signal }: Context,
  unless: (object: MachineOSConfig) => boolean = () => false,
): Promise<void> {
  await updateObject(
    kube,
    MachineOSConfig,
    config.metadata,
    (object) =>
      object.metadata.uid !== config.metadata.uid || unless(object) ? undefined : annotated(object, changes),
    { owner: fieldManagers.osBuilder, cached: config, signal },
  );
}

export async function annotateBuild(
  build: MachineOSBuild,
  changes: Annotations | ((object: MachineOSBuild) => Annotations | undefined),
  { kube, signal }: Context,
): Promise<MachineOSBuild | undefined> {
  return updateObject(
    kube,
    MachineOSBuild,
    build.metadata,
    (object) => {
      const wanted = typeof changes === "function" ? changes(object) : changes;
      return object.metadata.uid !== build.metadata.uid || wanted === undefined ? undefined : annotated(object, wanted);
    },
    { owner: fieldManagers.osBuilder, cached: build, signal },
  );
}

/** Longest message of a condition. */
const conditionText = 1024;

/** The message of a condition, which images and registries have a part in. */
export const clipped = (text: string): string =>
  text.length <= conditionText ? text : `${text.slice(0, conditionText - 1)}…`;

type BuildStatus = NonNullable<MachineOSBuild["status"]>;

/** Brings a build into a state, where it may go there. @returns whether something was written. */
export async function writeBuildState(
  build: MachineOSBuild,
  state: BuildState,
  context: Context,
  more: Partial<BuildStatus> = {},
): Promise<boolean> {
  const { kube, clock, signal } = context;
  const nothing = { decision: undefined };
  const updated = await updateByDecision(
    kube,
    MachineOSBuild,
    build.metadata,
    (object) => {
      const now = stateOfBuild(object);
      // Events of an earlier attempt arrive too late.
      if (
        object.metadata.annotations?.[annotations.buildAttempt] !==
        build.metadata.annotations?.[annotations.buildAttempt]
      )
        return nothing;
      if (
        object.metadata.uid !== build.metadata.uid ||
        !(mayFollow(now.phase, state.phase) || (now.phase === "Initial" && state.phase === "Initial"))
      )
        return nothing;
      // Both times are written once.
      const times = Object.fromEntries(
        Object.entries(more).filter(
          ([field]) => !((field === "buildStart" || field === "buildEnd") && object.status?.[field] !== undefined),
        ),
      );
      const same =
        now.phase === state.phase &&
        now.reason === state.reason &&
        now.message === state.message &&
        object.status?.conditions !== undefined &&
        Object.keys(times).length === 0;
      if (same) return nothing;
      const conditions = [
        ...conditionsOfBuild(state, object.status?.conditions as readonly Condition[] | undefined, clock.now()),
      ];
      return { ...nothing, write: { status: { ...times, conditions } } as Partial<MachineOSBuild> };
    },
    { subresource: "status", owner: fieldManagers.osBuilder, cached: build, signal },
  );
  return updated?.isWritten === true;
}
