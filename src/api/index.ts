export * from "./cluster-operator.ts";
export * from "./container-runtime-config.ts";
export * from "./controller-config.ts";
export * from "./define-resource.ts";
export * from "./errors.ts";
export * from "./kubelet-config.ts";
export * from "./kubernetes.ts";
export * from "./machine-config-node.ts";
export * from "./machine-config-pool.ts";
export * from "./machine-config.ts";
export * from "./machine-configuration.ts";
export * as names from "./names.ts";
export * from "./object.ts";

import { ClusterOperator } from "./cluster-operator.ts";
import { ContainerRuntimeConfig } from "./container-runtime-config.ts";
import { ControllerConfig } from "./controller-config.ts";
import { KubeletConfig } from "./kubelet-config.ts";
import { MachineConfigNode } from "./machine-config-node.ts";
import { MachineConfigPool } from "./machine-config-pool.ts";
import { MachineConfig } from "./machine-config.ts";
import { MachineConfiguration } from "./machine-configuration.ts";

/** Every kind that this suite defines, in the order in which CRDs are installed. */
export const definedResources = [
  MachineConfig,
  MachineConfigPool,
  ControllerConfig,
  MachineConfigNode,
  KubeletConfig,
  ContainerRuntimeConfig,
  MachineConfiguration,
  ClusterOperator,
] as const;
