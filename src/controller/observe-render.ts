import { openshift } from "../api/foreign/openshift.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { OSImageStream } from "../api/kinds/os-image-stream.ts";
import { credentialConditions, labels, objects } from "../api/names.ts";
import { type Resource, conditionOf } from "../api/schema/object.ts";
import { membersOf } from "../core/config/is-rendered.ts";
import { poolSelects } from "../core/config/pool-selector.ts";
import { gateDefaults, nodeDefaults } from "../core/kubelet/decide-defaults.ts";
import type { SettingsObject } from "../core/kubelet/decide-generated.ts";
import { selectPools } from "../core/kubelet/select-pools.ts";
import { baseConfigNames } from "../core/render/base-config-of.ts";
import { baseRoles } from "../core/render/base-configs.ts";
import type { RenderView } from "../core/render/render-decision.ts";
import { storageOverridesOf } from "../core/render/render-for-pool.ts";
import { credentialsConfigName } from "../core/runtime/decide-credentials.ts";
import { registriesConfigName } from "../core/runtime/registries-config.ts";
import { registryKinds } from "../core/runtime/registry-objects.ts";
import type { Caches, Context } from "../kube/controller.ts";
import type { RenderOptions } from "./render-options.ts";
import { isJudged, settingsKinds } from "./render-watches.ts";

/** Everything that decides about the rendered config of a pool, as the caches show it now. */
export function observeRender(
  pool: MachineConfigPool,
  options: RenderOptions,
  { caches, clock }: Pick<Context, "caches" | "clock">,
): RenderView {
  const { version, generatorVersion, baseConfigs, settings } = options;
  const machineConfigs = caches.of(MachineConfig);
  const pools = caches.of(MachineConfigPool).list();
  const below = poolsBelow(pool, pools);
  return {
    version,
    generatorVersion,
    baseConfigs,
    monotonic: clock.monotonic(),
    pool,
    pools,
    controllerConfig: caches.of(ControllerConfig).get(objects.controllerConfig),
    osImageStream: caches.of(OSImageStream).get(objects.clusterSingleton),
    members: membersOf(pool, pools, machineConfigs.list()),
    current: machineConfigs.get(pool.spec.configuration?.name ?? ""),
    overrides: storageOverridesOf(caches.of(MachineConfiguration).get(objects.machineConfiguration)),
    missingBase: baseConfigs === "awaited" ? missingBase(pool, caches) : undefined,
    unjudged: settings === "awaited" ? unjudgedFor(below, caches) : undefined,
    generated: below
      .flatMap((one) => generatedFor(one, caches, options))
      .map((name) => ({ name, isThere: machineConfigs.get(name) !== undefined })),
  };
}

/** The first missing base configuration of the roles that a pool selects; `undefined`: none is missing. */
const missingBase = ({ spec }: MachineConfigPool, caches: Caches): string | undefined =>
  baseRoles
    .filter((role) => poolSelects(spec.machineConfigSelector, { [labels.role]: role }))
    .flatMap(baseConfigNames)
    .find((name) => caches.of(MachineConfig).get(name) === undefined);

/** Pools whose generated MachineConfigs become part of a pool's: by their role. */
const poolsBelow = (
  { spec, metadata }: MachineConfigPool,
  pools: readonly MachineConfigPool[],
): readonly MachineConfigPool[] =>
  pools.filter(
    (one) =>
      one.metadata.name === metadata.name ||
      poolSelects(spec.machineConfigSelector, { [labels.role]: one.metadata.name }),
  );

/** An object with settings for these pools that is about to become a MachineConfig; `undefined`: there is none. */
function unjudgedFor(pools: readonly MachineConfigPool[], caches: Caches): string | undefined {
  const unjudged = settingsKinds
    .flatMap((resource) => caches.of(resource as Resource<SettingsObject>).list())
    .find(
      (object) => !isJudged(object) && selectPools(object.spec.machineConfigPoolSelector, pools).verdict !== "refused",
    );
  return unjudged === undefined ? undefined : `${unjudged.kind}/${unjudged.metadata.name}`;
}

/** Names of the MachineConfigs that this process makes for a pool of what the cluster has. */
function generatedFor(
  { metadata: { name, labels: has } }: MachineConfigPool,
  caches: Caches,
  options: RenderOptions,
): readonly string[] {
  const names: string[] = [];
  const isBuiltIn = has?.[labels.builtInPool] !== undefined;
  const hasRegistries = () => registryKinds.some((resource) => caches.of(resource as Resource).size > 0);
  if (options.registries === "awaited" && isBuiltIn && hasRegistries()) names.push(registriesConfigName(name));
  if (options.settings === "absent") return names;
  const credentials = caches.of(openshift.CRIOCredentialProviderConfig).get(objects.clusterSingleton);
  const isThere = (resource: Resource) => caches.of(resource).get(objects.clusterSingleton) !== undefined;
  const isRefused = conditionOf(credentials?.status?.conditions, credentialConditions.rendered)?.status === "False";
  if (credentials !== undefined && isBuiltIn && !isRefused) names.push(credentialsConfigName(name));
  if (isThere(openshift.ConfigNode)) names.push(nodeDefaults(name));
  if (isThere(openshift.FeatureGate)) names.push(gateDefaults(name));
  return names;
}
