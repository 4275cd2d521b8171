export * from "./cluster-operator.ts";
export * from "./container-runtime-config.ts";
export * from "./controller-config.ts";
export * from "./define-resource.ts";
export * from "./errors.ts";
export * from "./journal-line.ts";
export * from "./kubelet-config.ts";
export * from "./kubernetes.ts";
export * from "./machine-config-node.ts";
export * from "./machine-config-pool.ts";
export * from "./machine-config.ts";
export * from "./machine-configuration.ts";
export * from "./machine-os-build.ts";
export * from "./machine-os-config.ts";
export * from "./machine-state-book.ts";
export * from "./machine-state-chapter.ts";
export * from "./machine-state-journal.ts";
export * as names from "./names.ts";
export * from "./object.ts";
export * from "./provisioning-token.ts";
export * from "./stories.ts";

import { ClusterOperator } from "./cluster-operator.ts";
import { ContainerRuntimeConfig } from "./container-runtime-config.ts";
import { ControllerConfig } from "./controller-config.ts";
import { KubeletConfig } from "./kubelet-config.ts";
import { MachineConfigNode } from "./machine-config-node.ts";
import { MachineConfigPool } from "./machine-config-pool.ts";
import { MachineConfig } from "./machine-config.ts";
import { MachineConfiguration } from "./machine-configuration.ts";
import { MachineOSBuild } from "./machine-os-build.ts";
import { MachineOSConfig } from "./machine-os-config.ts";
import { MachineStateBook } from "./machine-state-book.ts";
import { MachineStateChapter } from "./machine-state-chapter.ts";
import { MachineStateJournal } from "./machine-state-journal.ts";
import { ProvisioningToken } from "./provisioning-token.ts";

/** Every kind that this suite defines, in the order in which CRDs are installed. */
export const definedResources = [
  MachineConfig,
  MachineConfigPool,
  ControllerConfig,
  MachineConfigNode,
  KubeletConfig,
  ContainerRuntimeConfig,
  MachineOSConfig,
  MachineOSBuild,
  ProvisioningToken,
  MachineStateJournal,
  MachineStateBook,
  MachineStateChapter,
  MachineConfiguration,
  ClusterOperator,
] as const;
