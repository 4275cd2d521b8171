import { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { fieldManagers } from "../../api/names.ts";
import { kubeletBaseOf } from "../../core/kubelet/cluster-settings.ts";
import { decideKubeletConfig } from "../../core/kubelet/decide-kubelet-config.ts";
import { selectPools } from "../../core/kubelet/select-pools.ts";
import { basePartOf } from "../../core/render/base-config-of.ts";
import type { Controller } from "../../kube/controller.ts";
import { clusterSettingsOf, clusterSettingsWatches } from "./cluster-settings-watches.ts";
import { settingsController } from "./settings-controller.ts";

/** Whether a MachineConfig is a base configuration that kubelet.conf begins with. */
export const isKubeletBase = (config: string): boolean => basePartOf(config) === "kubelet";

/** Acts on KubeletConfigs. */
export function kubeletController({ generatorVersion }: { readonly generatorVersion: string }): Controller {
  return settingsController({
    name: "kubelet",
    resource: KubeletConfig,
    owner: fieldManagers.kubelet,
    generatorVersion,
    inputs: clusterSettingsWatches,
    isInput: isKubeletBase,
    decide: (view, caches) => {
      const settings = clusterSettingsOf(caches);
      const configOf = (name: string) => caches.of(MachineConfig).get(name);
      const selection = selectPools(view.object.spec.machineConfigPoolSelector, view.pools);
      const pools = selection.verdict === "selected" ? selection.pools : [];
      const bases = new Map(
        pools.map(({ metadata: { name } }) => [name, kubeletBaseOf(name, settings, configOf)] as const),
      );
      const isLeaving = view.object.metadata.deletionTimestamp !== undefined;
      if (!isLeaving && [...bases.values()].includes(undefined)) return undefined;
      return decideKubeletConfig({
        ...view,
        baseOf: (pool) => bases.get(pool) ?? { verdict: "refused", reason: "its base configuration is missing" },
      });
    },
  });
}
