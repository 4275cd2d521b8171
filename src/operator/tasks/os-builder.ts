import { type Secret, kubernetes } from "../../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import {
  annotations,
  buildNamespace,
  finalizers,
  labels,
  machineOSConfigConditions,
  namespace,
  objects,
} from "../../api/names.ts";
import { type KubeObject, conditionOf } from "../../api/schema/object.ts";
import { layeringTold } from "../../core/build/build-conditions.ts";
import { buildSettings } from "../../core/build/build-settings.ts";
import { wantsImages } from "../../core/config/opt-in.ts";
import {
  type BuilderDecision,
  type BuilderFacts,
  type LeftOver,
  decideBuilder,
} from "../../core/operator/decide-builder.ts";
import { isNotFound } from "../../kube/kube-error.ts";
import { applyManifest, forgetApplied } from "../apply-manifest.ts";
import { ours, ownMap, pullSecretOf } from "../cluster-sources.ts";
import { manifestInputs } from "../components.ts";
import { builderDeployment } from "../manifests.ts";
import { type OperatorTask, type TaskContext, type TaskResult, done, failed } from "../operator-task.ts";
import {
  watchBuildSettings,
  watchDeployments,
  watchImages,
  watchMachineConfigurations,
  watchPools,
  watchSources,
} from "../operator-watches.ts";

/** How long inputs of images may be wrong before the operator is degraded by it. */
const invalidInputsMs = 600_000;
/** Secret with which machines of a subscription get packages, where a cluster has one. */
const entitlementKey = { namespace: "openshift-config-managed", name: "etc-pki-entitlement" } as const;

/** The process that builds images. */
export const osBuilder: OperatorTask<BuilderFacts, BuilderDecision> = {
  name: "OsBuilder",
  watches: [watchMachineConfigurations, watchPools, watchImages, watchDeployments, watchSources, watchBuildSettings],
  observe,
  decide: decideBuilder,

  async perform(decision, context) {
    const { memory } = context;
    switch (decision.do) {
      case "deploy":
        memory.builderUnwantedSince = undefined;
        return deploy(context);
      case "nothing":
        return done;
      case "wait":
        memory.builderUnwantedSince = decision.unwantedSince;
        return done;
      case "remove":
        memory.builderUnwantedSince = decision.unwantedSince;
        await remove(decision.left, context);
        memory.builderUnwantedSince = undefined;
        return done;
    }
  },
};

async function observe(context: TaskContext): Promise<BuilderFacts> {
  const { caches, clock, kube, memory, signal } = context;
  const configs = caches.of(MachineOSConfig).list();
  const pools = caches.of(MachineConfigPool).list();
  const isWanted = wantsImages(pools, configs, buildSettings(ownMap(objects.buildConfig, context)?.data));
  const leaving = configs.filter(
    ({ metadata }) =>
      metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(finalizers.osBuildCleanup) === true,
  );
  const isDeployed = caches.of(kubernetes.Deployment, ours).get(`${namespace}/${objects.osBuilder}`) !== undefined;
  // Only a builder that may have to go is asked what it has left.
  const jobs =
    !isDeployed || isWanted || leaving.length > 0
      ? []
      : (
          await kube.list(
            kubernetes.Job,
            { namespace: buildNamespace, labelSelector: labels.ephemeralBuildObject },
            { signal },
          )
        ).items;
  return {
    isWanted,
    leaving: namesOf(leaving),
    isDeployed,
    unwantedSince: memory.builderUnwantedSince,
    now: clock.monotonic(),
    pools: namesOf(pools.filter(isLayered)),
    machineOSConfigs: namesOf(configs.filter((config) => stillCounts(config, pools))),
    jobs: namesOf(jobs),
  };
}

const namesOf = (items: readonly KubeObject[]): readonly string[] => items.map(({ metadata }) => metadata.name);

/** Whether machines of a pool still lack the request to go back to the stock operating system. */
const isLayered = (pool: MachineConfigPool): boolean =>
  pool.metadata.deletionTimestamp === undefined &&
  (layeringTold(pool) === "layered" || pool.metadata.annotations?.[annotations.optOutAfter] !== undefined);

/** Whether a MachineOSConfig does not say yet that it decides about its pool no more. */
const stillCounts = ({ metadata, status }: MachineOSConfig, pools: readonly MachineConfigPool[]): boolean =>
  conditionOf(status?.conditions, machineOSConfigConditions.accepted)?.status !== "False" &&
  pools.some((pool) => pool.metadata.name === metadata.name);

/** Nobody waits for an image that cannot be made: the operator reports inputs that stay wrong. */
async function deploy(context: TaskContext): Promise<TaskResult> {
  const { caches, clock } = context;
  const configs = caches.of(MachineOSConfig).list();
  await copyForBuilds(configs, context);
  await applyManifest(kubernetes.Deployment, builderDeployment(manifestInputs(context)), context, { watched: true });
  const invalid = configs.flatMap(({ metadata, status }) => {
    const condition = conditionOf(status?.conditions, machineOSConfigConditions.inputsValid);
    return condition?.status === "False" && clock.now() - Date.parse(condition.lastTransitionTime) > invalidInputsMs
      ? [`MachineOSConfig ${metadata.name}: ${condition.message}`]
      : [];
  });
  return invalid.length === 0 ? done : failed(invalid.join("; "));
}

async function remove(left: LeftOver | undefined, context: TaskContext): Promise<void> {
  const { kube, log, signal } = context;
  if (left !== undefined) log.warn({ ...left }, "the builder is removed before it has cleaned up");
  try {
    await kube.delete(kubernetes.Deployment, { name: objects.osBuilder, namespace }, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  forgetApplied(kubernetes.Deployment.kind, `${namespace}/${objects.osBuilder}`, context);
}

/**
 * Builds read Secrets of the suite's own namespace only: the cluster's pull secret and its entitlement are copied
 * there.
 */
async function copyForBuilds(configs: readonly MachineOSConfig[], context: TaskContext): Promise<void> {
  await copySecret(objects.globalPullSecret, pullSecretOf(context), context);
  const entitlement = await context.kube.get(kubernetes.Secret, entitlementKey, context);
  for (const { spec } of configs)
    await copySecret(`${objects.entitlementPrefix}${spec.machineConfigPool.name}`, entitlement, context);
}

async function copySecret(name: string, from: Secret | undefined, context: TaskContext): Promise<void> {
  if (from?.data === undefined) return;
  const copy = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace },
    type: from.type ?? "Opaque",
    data: from.data,
  } as KubeObject;
  await applyManifest(kubernetes.Secret, copy, context);
}
