import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { machineOSConfigConditions as types } from "../../api/names.ts";
import { conditionOf, timestampOf } from "../../api/schema/object.ts";
import { type BuildRowObjects, buildOfPool } from "../build/build-rows.ts";
import { stateOfBuild } from "../config/build-phase.ts";
import { describeBuild, shortImage } from "../config/image-pair.ts";
import { buildRemedies, inputsTodo, obstacleOf } from "./build-explain.ts";
import { type Explanation, type Remedies, section } from "./explanation.ts";

const nothing: Remedies = { next: [], todo: [] };

/**
 * Where a MachineOSConfig is: whether it decides about its pool, whether an image can be made from its inputs, and where
 * that image is.
 *
 * @param now milliseconds since the epoch.
 */
export function explainMachineOSConfig(config: MachineOSConfig, objects: BuildRowObjects, now: number): Explanation {
  const { name } = config.metadata;
  const pool = objects.pools.find(({ metadata }) => metadata.name === config.spec.machineConfigPool.name);
  const build = pool === undefined ? undefined : buildOfPool(objects, pool);
  const conditions = config.status?.conditions ?? [];
  const { reason, headline, remedies } = stateOfConfig(config, { pool: pool?.metadata.name, build, now });
  return {
    subject: `machineosconfig/${name}`,
    asOf: timestampOf(now),
    freshness: "Fresh",
    reason,
    headline,
    sections: [
      ...section(
        "Conditions",
        conditions.map(
          ({ type, status, reason: why, message }) =>
            `${type}: ${status} (${why})${message === "" ? "" : `, ${message}`}`,
        ),
      ),
      ...section("Build", build === undefined ? [] : [describeBuild(build)]),
      ...section(
        "Rolled out",
        config.status?.currentImagePullSpec === undefined ? [] : [shortImage(config.status.currentImagePullSpec)],
      ),
    ],
    ...remedies,
  };
}

interface ConfigState {
  readonly reason: string;
  readonly headline: string;
  readonly remedies: Remedies;
}

/** The first of the conditions that keeps an image from being made or given, in the order in which they matter. */
function stateOfConfig(
  config: MachineOSConfig,
  {
    pool,
    build,
    now,
  }: { readonly pool: string | undefined; readonly build: MachineOSBuild | undefined; readonly now: number },
): ConfigState {
  const { name } = config.metadata;
  const named = config.spec.machineConfigPool.name;
  const is = (type: string) => conditionOf(config.status?.conditions, type);
  const state = (reason: string, headline: string, remedies: Partial<Remedies>): ConfigState => ({
    reason,
    headline: `MachineOSConfig ${name}: ${headline}.`,
    remedies: { ...nothing, ...remedies },
  });
  if (config.metadata.deletionTimestamp !== undefined)
    return state("Deleting", "it is being deleted", {
      next: [`its builds are removed, and then it is gone: mco build status`],
    });
  const accepted = is(types.accepted);
  if (accepted?.status === "False")
    return state(accepted.reason, accepted.message, { todo: [acceptTodo(name, named, accepted.reason)] });
  const correct = inputsTodo(config);
  if (correct !== undefined) return state("InputsInvalid", "no image can be made from its inputs", { todo: [correct] });
  const upToDate = is(types.upToDate);
  if (upToDate?.status === "True") return state("UpToDate", "its image is the one that the pool wants", {});
  const obstacle = obstacleOf(config);
  if (obstacle !== undefined) return state(upToDate?.reason ?? "", upToDate?.message ?? "", { todo: [obstacle] });
  if (build !== undefined && pool !== undefined && upToDate?.reason !== "WaitingForRender")
    return state(upToDate?.reason ?? "Building", describeBuild(build), runs(build, pool, now));
  return state(upToDate?.reason ?? "NotSeen", upToDate?.message ?? "the builder has not looked at it yet", {
    next: [
      upToDate?.reason === "WaitingForRender"
        ? `its image is built when pool ${named} has a configuration: mco explain pool/${named}`
        : "the builder takes it on; if it does not: kubectl get pods -n openshift-machine-config-operator",
    ],
  });
}

/** A build that ended well leaves nothing to do but to publish its image. */
function runs(build: MachineOSBuild, pool: string, now: number): Remedies {
  const remedies = buildRemedies(build, pool, now);
  return remedies.next.length + remedies.todo.length > 0
    ? remedies
    : { next: ["its image is published next"], todo: [] };
}

/** What has a MachineOSConfig decide about its pool. */
function acceptTodo(name: string, pool: string, reason: string): string {
  switch (reason) {
    case "PoolNotFound":
      return `make the pool ${pool}, or delete this one: kubectl delete machineosconfig ${name}`;
    case "OptedOut":
      return "take the annotation or label away that the message names, or delete this MachineOSConfig";
    default:
      return `delete one of the two: kubectl delete machineosconfig ${name}`;
  }
}

/**
 * Where a build is, and what follows.
 *
 * @param now milliseconds since the epoch.
 */
export function explainMachineOSBuild(build: MachineOSBuild, objects: BuildRowObjects, now: number): Explanation {
  const { name } = build.metadata;
  const config = objects.configs.find(({ metadata }) => metadata.name === build.spec.machineOSConfig.name);
  const pool = objects.pools.find(({ metadata }) => metadata.name === config?.spec.machineConfigPool.name);
  const state = stateOfBuild(build);
  const isWanted = pool !== undefined && buildOfPool(objects, pool)?.metadata.name === name;
  const remedies = isWanted
    ? buildRemedies(build, pool.metadata.name, now)
    : { next: ["nothing: no pool waits for it, and it is removed in its time"], todo: [] };
  return {
    subject: `machineosbuild/${name}`,
    asOf: timestampOf(now),
    freshness: "Fresh",
    reason: state.reason === "" ? state.phase : state.reason,
    headline: `${describeBuild(build)}.`,
    sections: [
      ...section("For", [
        `${build.spec.machineConfig.name}${pool === undefined ? "" : ` of pool ${pool.metadata.name}`}`,
      ]),
      ...section(
        "Image",
        build.status?.digestedImagePushSpec === undefined ? [] : [shortImage(build.status.digestedImagePushSpec)],
      ),
    ],
    ...remedies,
  };
}
