import { openshift } from "../api/foreign/openshift.ts";
import { ContainerRuntimeConfig } from "../api/kinds/container-runtime-config.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { KubeletConfig } from "../api/kinds/kubelet-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { OSImageStream } from "../api/kinds/os-image-stream.ts";
import { annotations } from "../api/names.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import { isRendered, poolInRenderedName } from "../core/config/is-rendered.ts";
import { poolSelects } from "../core/config/pool-selector.ts";
import type { SettingsObject } from "../core/kubelet/decide-generated.ts";
import { selectPools } from "../core/kubelet/select-pools.ts";
import { trimMachineConfig } from "../core/pool/trim.ts";
import { isCompleted } from "../core/render/controller-config-of.ts";
import { storageOverridesOf } from "../core/render/render-for-pool.ts";
import { registryKinds, trimRegistryObject } from "../core/runtime/registry-objects.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Caches, type Controller, watching } from "../kube/controller.ts";
import type { ObjectChange } from "../kube/watch-cache.ts";
import type { RenderOptions } from "./render-options.ts";

/** Objects with settings that become MachineConfigs of the pools that they select. */
export const settingsKinds = [KubeletConfig, ContainerRuntimeConfig] as const;

/** Objects of the whole cluster that become MachineConfigs of every pool, or of every built-in one. */
const clusterKinds = [openshift.CRIOCredentialProviderConfig, openshift.ConfigNode, openshift.FeatureGate] as const;

/** The sources of rendered configs, and the pools that a change of one concerns. */
export function renderWatches(options: Pick<RenderOptions, "settings" | "registries">): Controller["watches"] {
  return [
    watching({
      resource: MachineConfigPool,
      concerns: ({ key, before, after }, caches) =>
        before !== undefined && after !== undefined && before.metadata.generation === after.metadata.generation
          ? []
          : key === "worker" && before?.spec.osImageStream?.name !== after?.spec.osImageStream?.name
            ? allPools(caches)
            : [key],
    }),
    watching({ resource: MachineConfig, keep: trimMachineConfig, concerns: poolsSelecting }),
    watching({
      resource: ControllerConfig,
      concerns: (change, caches) => (concernsRendering(change) ? allPools(caches) : []),
    }),
    watching({
      resource: MachineConfiguration,
      concerns: ({ before, after }, caches) =>
        equalValues(storageOverridesOf(before), storageOverridesOf(after)) ? [] : allPools(caches),
    }),
    ...(options.settings === "awaited" ? settingsKinds : []).map((resource) =>
      watching<SettingsObject>({
        resource: resource as Resource<SettingsObject>,
        concerns: ({ before, after }, caches) =>
          isJudged(before) === isJudged(after) ? [] : poolsOf(after ?? before, caches),
      }),
    ),
    watching({
      resource: OSImageStream,
      optional: true,
      concerns: ({ before, after }, caches) =>
        equalValues(before?.status, after?.status) &&
        before?.metadata.annotations?.[annotations.streamInputs] ===
          after?.metadata.annotations?.[annotations.streamInputs]
          ? []
          : allPools(caches),
    }),
    // What is made of them wakes the pools.
    ...(options.registries === "awaited" ? registryKinds : []).map((resource) =>
      watching<KubeObject>({ resource, keep: trimRegistryObject, optional: true, concerns: () => [] }),
    ),
    ...(options.settings === "awaited" ? clusterKinds : []).map((resource) =>
      watching<KubeObject>({ resource, optional: true, concerns: () => [] }),
    ),
  ];
}

const allPools = (caches: Caches): readonly string[] =>
  caches
    .of(MachineConfigPool)
    .list()
    .map(({ metadata }) => metadata.name);

/** Whether a controller has said what became of the object as it is. */
export const isJudged = (object: SettingsObject | undefined): boolean =>
  object === undefined ||
  object.metadata.deletionTimestamp !== undefined ||
  object.status?.observedGeneration === object.metadata.generation;

/** The pools that an object with settings selects. */
function poolsOf(object: SettingsObject | undefined, caches: Caches): readonly string[] {
  const selection = selectPools(object?.spec.machineConfigPoolSelector, caches.of(MachineConfigPool).list());
  return selection.verdict === "selected" ? selection.pools.map(({ metadata }) => metadata.name) : [];
}

/**
 * Pools that select a MachineConfig before or after a change; for a rendered config that is deleted, or whose contents
 * change, the pool of its name and those that need it.
 */
function poolsSelecting({ key, before, after }: ObjectChange<MachineConfig>, caches: Caches): readonly string[] {
  const pools = caches.of(MachineConfigPool).list();
  const changed = after ?? before;
  const isSameSpec = before !== undefined && after !== undefined && equalValues(before.spec, after.spec);
  const named = poolInRenderedName(key);
  // A new one is judged when its pool comes to its name.
  const needing = (before === undefined || isSameSpec ? [] : pools)
    .filter(({ metadata, spec }) => metadata.name === named || spec.configuration?.name === key)
    .map(({ metadata }) => metadata.name);
  if (changed !== undefined && isRendered(changed, pools)) return needing;
  // Only merged content matters; annotations do not, except the one that names the generator.
  if (
    isSameSpec &&
    equalValues(before.metadata.labels, after.metadata.labels) &&
    equalValues(before.metadata.annotations, after.metadata.annotations)
  )
    return [];
  const selecting = pools
    .filter(({ spec }) =>
      [before, after].some(
        (config) => config !== undefined && poolSelects(spec.machineConfigSelector, config.metadata.labels),
      ),
    )
    .map(({ metadata }) => metadata.name);
  return named === undefined ? selecting : [...new Set([...selecting, ...needing])];
}

function concernsRendering({ before, after }: ObjectChange<ControllerConfig>): boolean {
  if (before === undefined || after === undefined) return true;
  return (
    before.metadata.generation !== after.metadata.generation ||
    isCompleted(before) !== isCompleted(after) ||
    !equalValues(before.metadata.annotations, after.metadata.annotations)
  );
}
