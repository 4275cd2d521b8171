import { ClusterOperator } from "../api/foreign/cluster-operator.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { journals, namespace, objects } from "../api/names.ts";
import { buildSettings } from "../core/build/build-settings.ts";
import { poolStatusInputs } from "../core/pool/pool-status.ts";
import { relevantOfMember, trimBuild, trimNode } from "../core/pool/trim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { machineCoalesceMs, watching } from "../kube/controller.ts";
import { watchMachineConfigNodes } from "../kube/watch-members.ts";
import { machineApi, ours, ownNamespaceObject, sourceWatches } from "./cluster-sources.ts";
import type { OperatorWatch } from "./operator-task.ts";

/** The operator has one key: each pass goes through all tasks. */
export const one = "cluster";
const everything = () => [one];

export const watchNamespace: OperatorWatch = () => [
  watching({ resource: kubernetes.Namespace, selection: ownNamespaceObject, concerns: everything }),
];

/** The namespace of the machine API; the rights of earlier releases do not show it. */
export const watchMachineApi: OperatorWatch = () => [
  watching({
    resource: kubernetes.Namespace,
    selection: machineApi,
    mayBeForbidden: true,
    concerns: everything,
  }),
];

export const watchClusterOperators: OperatorWatch = () => [
  watching({ resource: ClusterOperator, concerns: everything }),
];

export const watchMachineConfigurations: OperatorWatch = () => [
  watching({ resource: MachineConfiguration, concerns: everything }),
];

export const watchPools: OperatorWatch = (memory) => [
  watching({
    resource: MachineConfigPool,
    concerns: ({ key, before, after }) => {
      memory.cluster.putPool(key, after, memory.now());
      // The node controller's report of a pool follows from these objects too.
      return before !== undefined &&
        after !== undefined &&
        equalValues([before.spec, poolStatusInputs(before)], [after.spec, poolStatusInputs(after)])
        ? []
        : [one];
    },
  }),
];

export const watchControllerConfigs: OperatorWatch = () => [
  watching({ resource: ControllerConfig, concerns: everything }),
];

/** The objects that decide a pool's image. */
export const watchImages: OperatorWatch = (memory) => [
  watching({
    resource: MachineOSConfig,
    concerns: ({ key, after }) => {
      memory.cluster.putMachineOSConfig(key, after, memory.now());
      // Images alone do not decide whether the builder is needed: objects that are being deleted wait for it.
      return [one];
    },
  }),
  watching({
    resource: MachineOSBuild,
    keep: trimBuild,
    concerns: ({ key, before, after }) =>
      memory.cluster.putMachineOSBuild(key, after, before, memory.now()).length > 0 ? [one] : [],
  }),
];

export const watchMachines: OperatorWatch = (memory) => [
  watchMachineConfigNodes(memory.cluster, () => memory.now(), [one]),
  watching({
    resource: kubernetes.Node,
    keep: trimNode,
    coalesceMs: machineCoalesceMs,
    concerns: ({ key, before, after }) => {
      const isSame =
        before !== undefined &&
        after !== undefined &&
        equalValues(
          [relevantOfMember(before), before.status?.addresses],
          [relevantOfMember(after), after.status?.addresses],
        );
      if (isSame) return [];
      memory.cluster.putNode(key, after, memory.now());
      if (after === undefined) memory.journals.known.delete(`${journals.nodePrefix}${key}`);
      else memory.journals.wanted.add(key);
      return [one];
    },
  }),
];

export const watchDeployments: OperatorWatch = () => [
  watching({ resource: kubernetes.Deployment, selection: ours, concerns: everything }),
];
export const watchDaemonSets: OperatorWatch = () => [
  watching({ resource: kubernetes.DaemonSet, selection: ours, concerns: everything }),
];
export const watchSecrets: OperatorWatch = () => [
  watching({ resource: kubernetes.Secret, selection: ours, concerns: everything }),
];

/** The inputs of ControllerConfig, and all other cluster settings. */
export const watchSources: OperatorWatch = () => sourceWatches(everything);

/** How long machines keep their images after an opt-out; a pass follows by the watch of all ConfigMaps. */
export const watchBuildSettings: OperatorWatch = (memory) => [
  watching({
    resource: kubernetes.ConfigMap,
    selection: ours,
    concerns: ({ key, after }) => {
      if (key === `${namespace}/${objects.buildConfig}`)
        memory.cluster.setGrace(buildSettings(after?.data).optOutGraceMs, memory.now());
      return [];
    },
  }),
];

export const watchControllerPods: OperatorWatch = () => [
  watching({
    resource: kubernetes.Pod,
    selection: { namespace, labelSelector: `k8s-app=${objects.controller}` },
    concerns: everything,
  }),
];
