import { ContainerRuntimeConfig } from "../../api/kinds/container-runtime-config.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { fieldManagers } from "../../api/names.ts";
import { runtimeInputsOf } from "../../core/runtime/base-texts.ts";
import { decideRuntimeConfig } from "../../core/runtime/decide-runtime-config.ts";
import type { Controller } from "../../kube/controller.ts";
import { clusterSettingsOf, clusterSettingsWatches } from "./cluster-settings-watches.ts";
import { settingsController } from "./settings-controller.ts";

/** Acts on ContainerRuntimeConfigs. */
export function runtimeController({ generatorVersion }: { readonly generatorVersion: string }): Controller {
  return settingsController({
    name: "runtime",
    resource: ContainerRuntimeConfig,
    owner: fieldManagers.runtime,
    generatorVersion,
    inputs: clusterSettingsWatches,
    isInput: (config) => /^0[01]-.+$/.test(config),
    decide: (view, caches) => {
      const { gates } = clusterSettingsOf(caches);
      const configOf = (name: string) => caches.of(MachineConfig).get(name);
      return decideRuntimeConfig({
        ...view,
        inputsOf: (pool) => runtimeInputsOf(pool, gates, configOf),
      });
    },
  });
}
