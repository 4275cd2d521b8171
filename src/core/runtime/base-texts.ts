import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { KnownGates } from "../kubelet/kubelet-base.ts";
import { type RuntimeInputs, storageConfPath } from "./container-runtime-config.ts";
import { baseFileText } from "../render/base-config-of.ts";

/** The gate without which additional stores have no effect. */
const storesGate = "AdditionalStorageConfig";

/** What a ContainerRuntimeConfig changes in a pool. @param configOf a MachineConfig by its name. */
export const runtimeInputsOf = (
  pool: string,
  { enabled = [] }: KnownGates,
  configOf: (name: string) => MachineConfig | undefined,
): RuntimeInputs => ({
  storage: baseFileText(storageConfPath, pool, configOf) ?? ownStorageConf,
  hasStores: enabled.includes(storesGate),
});

/** What a machine's storage begins with where its base configurations hold no storage.conf. */
export const ownStorageConf = `[storage]
driver = "overlay"
runroot = "/run/containers/storage"
graphroot = "/var/lib/containers/storage"

[storage.options]
additionalimagestores = []

[storage.options.overlay]
skip_mount_home = "true"
`;
