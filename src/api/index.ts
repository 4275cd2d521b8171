export * from "./foreign/cluster-operator.ts";
export * from "./kinds/container-runtime-config.ts";
export * from "./kinds/controller-config.ts";
export * from "./schema/define-resource.ts";
export * from "./errors.ts";
export * from "./books/journal-line.ts";
export * from "./kinds/kubelet-config.ts";
export * from "./foreign/kubernetes.ts";
export * from "./kinds/machine-config-node.ts";
export * from "./kinds/machine-config-pool.ts";
export * from "./kinds/machine-config.ts";
export * from "./kinds/machine-configuration.ts";
export * from "./kinds/machine-os-build.ts";
export * from "./kinds/machine-os-config.ts";
export * from "./books/machine-state-book.ts";
export * from "./books/machine-state-chapter.ts";
export * from "./books/machine-state-journal.ts";
export * as names from "./names.ts";
export * from "./schema/object.ts";
export * from "./kinds/join-place.ts";
export * from "./kinds/node-binding.ts";
export * from "./kinds/os-image-stream.ts";
export * from "./kinds/pinned-image-set.ts";
export * from "./kinds/provisioning-token.ts";
export * from "./books/report-table.ts";

import { ClusterOperator } from "./foreign/cluster-operator.ts";
import { ContainerRuntimeConfig } from "./kinds/container-runtime-config.ts";
import { ControllerConfig } from "./kinds/controller-config.ts";
import { InternalReleaseImage } from "./kinds/internal-release-image.ts";
import { KubeletConfig } from "./kinds/kubelet-config.ts";
import { MachineConfigNode } from "./kinds/machine-config-node.ts";
import { MachineConfigPool } from "./kinds/machine-config-pool.ts";
import { MachineConfig } from "./kinds/machine-config.ts";
import { MachineConfiguration } from "./kinds/machine-configuration.ts";
import { MachineOSBuild } from "./kinds/machine-os-build.ts";
import { MachineOSConfig } from "./kinds/machine-os-config.ts";
import { MachineStateBook } from "./books/machine-state-book.ts";
import { MachineStateChapter } from "./books/machine-state-chapter.ts";
import { MachineStateJournal } from "./books/machine-state-journal.ts";
import { JoinPlace } from "./kinds/join-place.ts";
import { NodeBinding } from "./kinds/node-binding.ts";
import { OSImageStream } from "./kinds/os-image-stream.ts";
import { PinnedImageSet } from "./kinds/pinned-image-set.ts";
import { ProvisioningToken } from "./kinds/provisioning-token.ts";

/** Every kind that this suite defines, in CRD installation order. */
export const definedResources = [
  MachineConfig,
  MachineConfigPool,
  ControllerConfig,
  MachineConfigNode,
  KubeletConfig,
  ContainerRuntimeConfig,
  PinnedImageSet,
  OSImageStream,
  InternalReleaseImage,
  MachineOSConfig,
  MachineOSBuild,
  ProvisioningToken,
  JoinPlace,
  NodeBinding,
  MachineStateJournal,
  MachineStateBook,
  MachineStateChapter,
  MachineConfiguration,
  ClusterOperator,
] as const;
