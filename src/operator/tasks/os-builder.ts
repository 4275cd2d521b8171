import { type Secret, kubernetes } from "../../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import {
  annotations,
  buildNamespace,
  fieldManagers,
  finalizers,
  labels,
  machineOSConfigConditions,
  namespace,
  objects,
} from "../../api/names.ts";
import { type KubeObject, conditionOf, longestObjectName } from "../../api/schema/object.ts";
import { reportedLayering } from "../../core/build/build-conditions.ts";
import { defaultOptInOf } from "../../core/build/build-settings.ts";
import { wantsImages } from "../../core/config/opt-in.ts";
import { buildCredentials, credentialChanges, registryTypes } from "../../core/operator/build-credentials.ts";
import {
  type BuilderDecision,
  type BuilderFacts,
  type LeftOver,
  decideBuilder,
} from "../../core/operator/decide-builder.ts";
import { isInvalid, isNotFound } from "../../kube/kube-error.ts";
import { builderPolicies } from "../admission-policies.ts";
import { applyManifest, forgetApplied, isApplied, reapplyMs } from "../apply-manifest.ts";
import { clusterPullSecretOf, entitlementKeyOf, ours, ownMap } from "../cluster-sources.ts";
import { builderBoundsIn, manifestInputs } from "../components.ts";
import { builderDeployment, builderMetrics } from "../manifests.ts";
import { type OperatorTask, type TaskContext, type TaskResult, progressing, taskDone } from "../operator-task.ts";
import {
  watchBuildSettings,
  watchDeployments,
  watchImages,
  watchMachines,
  watchMachineConfigurations,
  watchPools,
  watchSecrets,
  watchSources,
} from "../operator-watches.ts";
import { servingSecret } from "../serving-certificate.ts";

/** The process that builds images. */
export const osBuilder: OperatorTask<BuilderFacts, BuilderDecision> = {
  name: "OsBuilder",
  watches: [
    watchMachineConfigurations,
    watchPools,
    watchImages,
    watchDeployments,
    watchSources,
    watchBuildSettings,
    watchSecrets,
    watchMachines,
  ],
  observe,
  decide: decideBuilder,

  async perform(decision, context) {
    const { memory } = context;
    switch (decision.do) {
      case "deploy":
        memory.builderUnwantedSince = undefined;
        return deploy(context);
      case "waitForPolicy":
        return progressing("the builder waits for the policies that bound what its pods may have");
      case "nothing":
        await keepCredentials([], context);
        return taskDone;
      case "wait":
        memory.builderUnwantedSince = decision.unwantedSince;
        return taskDone;
      case "remove":
        memory.builderUnwantedSince = decision.unwantedSince;
        await remove(decision.left, context);
        await keepCredentials([], context);
        memory.builderUnwantedSince = undefined;
        return taskDone;
    }
  },
};

async function observe(context: TaskContext): Promise<BuilderFacts> {
  const { caches, clock, kube, memory, signal } = context;
  const configs = caches.of(MachineOSConfig).list();
  const pools = caches.of(MachineConfigPool).list();
  const defaultOptIn = defaultOptInOf(ownMap(objects.buildConfig, context)?.data);
  const isWanted = wantsImages(pools, configs, { defaultOptIn });
  const leaving = configs.filter(
    ({ metadata }) =>
      metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(finalizers.osBuildCleanup) === true,
  );
  const isDeployed = caches.of(kubernetes.Deployment, ours).get(`${namespace}/${objects.osBuilder}`) !== undefined;
  // Remaining objects matter only if the builder may have to be removed.
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
    isBound: builderPolicies(builderBoundsIn(context)).every((manifest) => isApplied(manifest, context)),
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
  (reportedLayering(pool) === "layered" || pool.metadata.annotations?.[annotations.optOutAfter] !== undefined);

/** Whether a MachineOSConfig does not yet report that it no longer decides about its pool. */
const stillCounts = ({ metadata, status }: MachineOSConfig, pools: readonly MachineConfigPool[]): boolean =>
  conditionOf(status?.conditions, machineOSConfigConditions.accepted)?.status !== "False" &&
  pools.some((pool) => pool.metadata.name === metadata.name);

/**
 * Done as soon as the builder is there. An image that cannot be built delays nothing: wrong inputs are the pool's, whose
 * own condition degrades the operator where upgrades wait for that pool.
 */
async function deploy(context: TaskContext): Promise<TaskResult> {
  const { caches } = context;
  const configs = caches.of(MachineOSConfig).list();
  const refused = await copyForBuilds(configs, context);
  await keepCredentials(
    buildCredentials({
      machineOSConfigs: configs,
      builds: caches.of(MachineOSBuild).list(),
      buildConfig: ownMap(objects.buildConfig, context)?.data,
      secrets: caches.of(kubernetes.Secret, ours).list(),
    }),
    context,
  );
  const certificate = await servingSecret({ component: objects.osBuilder, secret: builderMetrics.secret }, context);
  const builder = builderDeployment(manifestInputs(context, certificate?.hash));
  await applyManifest(kubernetes.Deployment, builder, context, { watched: true });
  if (refused !== undefined) throw refused;
  return taskDone;
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
 * Brings the copies in the namespace of builds to the desired state; the builder reads only these. They are not
 * watched: if the rights are those of an earlier version, only this task fails, and the others report it.
 */
async function keepCredentials(wanted: readonly Secret[], { clock, kube, memory, signal }: TaskContext): Promise<void> {
  const text = JSON.stringify(wanted);
  const last = memory.credentials;
  if (last?.text === text && clock.monotonic() - last.at < reapplyMs) return;
  const selection = { namespace: buildNamespace, labelSelector: labels.buildCredential };
  const { items: found } = await kube.list<Secret>(kubernetes.Secret, selection, { signal });
  const { apply, remove: gone } = credentialChanges(wanted, found);
  for (const name of gone)
    await kube.delete(kubernetes.Secret, { name, namespace: buildNamespace }, { signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  for (const secret of apply)
    await kube.apply<Secret>(kubernetes.Secret, secret, { owner: fieldManagers.operator, force: true, signal });
  memory.credentials = { text, at: clock.monotonic() };
}

/**
 * MachineOSConfigs name Secrets of the suite's own namespace only: the cluster's pull secret and its entitlement are copied
 * there.
 *
 * @returns why a copy was refused; it keeps no other credential from the builds.
 */
async function copyForBuilds(configs: readonly MachineOSConfig[], context: TaskContext): Promise<unknown> {
  const refused = [await copySecret(objects.globalPullSecret, clusterPullSecretOf(context), context)];
  const entitlement = await context.kube.get(kubernetes.Secret, entitlementKeyOf(context), context);
  for (const { spec } of configs) {
    const name = `${objects.entitlementPrefix}${spec.machineConfigPool.name}`;
    // No pool of a longer name has configurations that an image could be built for.
    if (name.length <= longestObjectName) refused.push(await copySecret(name, entitlement, context));
  }
  return refused.find((error) => error !== undefined);
}

/**
 * A copy keeps the type that it has, which the API server lets nobody change: its name says what it is for, and builds get it
 * by that. A new one takes any data, unless it holds credentials for registries.
 *
 * @returns why the API server refuses it, as data that its type does not take.
 */
async function copySecret(name: string, from: Secret | undefined, context: TaskContext): Promise<unknown> {
  if (from?.data === undefined) return undefined;
  const copied = context.caches.of(kubernetes.Secret, ours).get(`${namespace}/${name}`);
  const ofSource = from.type !== undefined && registryTypes.has(from.type) ? from.type : "Opaque";
  const type = copied?.type ?? (name === objects.globalPullSecret ? ofSource : "Opaque");
  const copy = { apiVersion: "v1", kind: "Secret", metadata: { name, namespace }, type, data: from.data } as KubeObject;
  try {
    await applyManifest(kubernetes.Secret, copy, context);
    return undefined;
  } catch (error) {
    if (isInvalid(error)) return error;
    throw error;
  }
}
