import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { fieldManagers, machineOSConfigConditions as types } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import {
  type PoolBuildReport,
  imageBuildDegraded,
  isBlamedOnInputs,
  reportedLayering,
  withBuildReport,
} from "../core/build/build-conditions.ts";
import type { OptedIn } from "../core/build/build-intent.ts";
import { activeRebuild } from "../core/build/build-rebuild.ts";
import { type InputProblem, errorsOf, inputsValid } from "../core/build/input-problem.ts";
import { hasEnded, stateOfBuild } from "../core/config/build-phase.ts";
import type { Context } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import { type WantedCondition, writeConfigStatus } from "./write-objects.ts";
import { buildsDegraded, buildsRecovered, inputsAccepted, inputsRefused } from "./reports.ts";

export type Configured = OptedIn & { readonly config: MachineOSConfig };

/** What is true of a pool's image after a pass, for its MachineOSConfig and the pool. */
export interface Standing {
  readonly upToDate: { readonly is: boolean; readonly reason: string; readonly message: string };
  readonly build?: MachineOSBuild;
  readonly reconcileAfterSeconds?: number;
}

/**
 * Reports how a pool's image stands, on the MachineOSConfig and on the pool.
 *
 * @param problems of its inputs; `undefined`: they were not read.
 */
export async function reportStanding(
  pool: MachineConfigPool,
  intent: Configured,
  problems: readonly InputProblem[] | undefined,
  { upToDate, build }: Standing,
  context: Context,
): Promise<void> {
  const { config } = intent;
  const wanted: WantedCondition[] = [
    {
      type: types.upToDate,
      status: upToDate.is ? "True" : "False",
      reason: upToDate.reason,
      message: upToDate.message,
    },
  ];
  if (problems !== undefined) wanted.push(reportInputs(config, problems, context));
  await writeConfigStatus(config, wanted, context, (object) =>
    (object.status?.observedGeneration ?? 0) >= (object.metadata.generation ?? 0)
      ? undefined
      : { observedGeneration: object.metadata.generation ?? 0 },
  );
  const inputs = problems === undefined ? {} : { inputs: inputsReport(problems) };
  const byInputs = problems === undefined ? undefined : degradedByInputs(problems);
  // What is not known yet revokes nothing, but inputs that are valid again revoke what they were blamed for.
  const isUnknown = build === undefined && byInputs === undefined && reportedLayering(pool) === "layered";
  if (isUnknown && (problems === undefined || !isBlamedOnInputs(pool))) return reportToPool(pool, inputs, context);
  const state = build === undefined ? undefined : stateOfBuild(build);
  await reportToPool(
    pool,
    {
      ...inputs,
      degraded: byInputs ?? degradedBy(build, activeRebuild(config) !== undefined),
      ...(intent.source === "PoolLabel" ? { legacy: { phase: state?.phase, message: state?.message ?? "" } } : {}),
    },
    context,
  );
}

/** Reports on the pool that no image can be planned from its inputs. */
export const reportLacking = (
  pool: MachineConfigPool,
  errors: readonly InputProblem[],
  context: Context,
): Promise<void> => reportToPool(pool, { inputs: inputsReport(errors), degraded: degradedByInputs(errors) }, context);

/** That no image can be built from the inputs; `undefined`: they have no error. */
function degradedByInputs(problems: readonly InputProblem[]): PoolBuildReport["degraded"] {
  const errors = errorsOf(problems);
  const { reason, message } = inputsValid(errors);
  return errors.length === 0 ? undefined : { is: true, reason, message };
}

/** Of the pool's condition: errors only, a warning stops nothing. */
function inputsReport(problems: readonly InputProblem[]): NonNullable<PoolBuildReport["inputs"]> {
  const { status, reason, message } = inputsValid(errorsOf(problems));
  return { areValid: status === "True", reason, message };
}

/** The condition InputsValid, with an event where its verdict changes. */
function reportInputs(
  config: MachineOSConfig,
  problems: readonly InputProblem[],
  { report }: Context,
): WantedCondition {
  const before = conditionOf(config.status?.conditions, types.inputsValid);
  const valid = inputsValid(problems);
  if (valid.status === "False" && (before?.status !== "False" || before.message !== valid.message))
    report(inputsRefused(config, valid.message));
  if (valid.status === "True" && before?.status === "False") report(inputsAccepted(config));
  return { type: types.inputsValid, ...valid };
}

function degradedBy(build: MachineOSBuild | undefined, isRebuild: boolean): PoolBuildReport["degraded"] {
  const state = build === undefined ? undefined : stateOfBuild(build);
  if (state?.phase === "Failed") return { is: true, reason: state.reason, message: state.message };
  if (state === undefined || hasEnded(state)) return { is: false, reason: "AsExpected", message: "" };
  return {
    is: false,
    reason: isRebuild ? "RebuildRequested" : "Building",
    message: `${build?.metadata.name}: ${state.phase} ${state.reason}`,
  };
}

/** Writes the pool's conditions about builds, with an event where building fails or works again. */
export async function reportToPool(
  pool: MachineConfigPool,
  wanted: PoolBuildReport,
  { kube, clock, report, signal }: Context,
): Promise<void> {
  const before = imageBuildDegraded(pool);
  await updateObject(
    kube,
    MachineConfigPool,
    pool.metadata,
    (object) => {
      const conditions = withBuildReport(object, wanted, clock.now());
      return conditions === undefined
        ? undefined
        : ({ status: { conditions: [...conditions] } } as Partial<MachineConfigPool>);
    },
    { subresource: "status", owner: fieldManagers.osBuilder, cached: pool, signal },
  );
  const { degraded } = wanted;
  if (degraded?.is === true && before === undefined) report(buildsDegraded(pool, degraded.message));
  if (degraded?.is === false && degraded.reason !== "OptedOut" && before !== undefined) report(buildsRecovered(pool));
}
