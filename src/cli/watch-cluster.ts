import {
  ClusterOperator,
  ControllerConfig,
  MachineConfigNode,
  MachineConfigPool,
  MachineConfiguration,
  MachineOSBuild,
  MachineOSConfig,
  kubernetes,
} from "../api/index.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { registryKinds } from "../core/runtime/registry-objects.ts";
import { type ClusterFacts, type ClusterStatus, clusterStatus } from "../core/preview/cluster-status.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { isNotFound } from "../kube/kube-error.ts";
import { WatchCache } from "../kube/watch-cache.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";

/** Context of a cluster, besides its objects. */
export type ClusterPlace = Pick<ClusterFacts, "configServerAddress">;

/** Changes within this time are combined into one pass. */
const debounceMs = 150;

/**
 * Watches pools, nodes and their progress, and calls `onChange` with the whole picture whenever some of it changed,
 * until `signal` aborts or `onChange` returns "stop". Kinds that are not installed yet count as having no objects.
 */
export async function watchCluster(
  kube: KubeClient,
  onChange: (status: ClusterStatus) => "stop" | undefined,
  signal: AbortSignal,
  place: ClusterPlace = {},
): Promise<void> {
  const stopping = new AbortController();
  const onAbort = () => stopping.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  const options = { kube, clock: systemClock, random: systemRandom, log: silentLogger };
  const caches = {
    pools: new WatchCache({ ...options, resource: MachineConfigPool }),
    nodes: new WatchCache({ ...options, resource: kubernetes.Node }),
    machineConfigNodes: new WatchCache({ ...options, resource: MachineConfigNode }),
    clusterOperators: new WatchCache({ ...options, resource: ClusterOperator }),
    machineConfigurations: new WatchCache({ ...options, resource: MachineConfiguration, optional: true }),
    controllerConfigs: new WatchCache({ ...options, resource: ControllerConfig, optional: true }),
    machineOSConfigs: new WatchCache({ ...options, resource: MachineOSConfig, optional: true }),
    machineOSBuilds: new WatchCache({ ...options, resource: MachineOSBuild, optional: true }),
  };
  let absentKinds: readonly string[] = [];
  let pending = false;
  const look = () => {
    if (pending || stopping.signal.aborted) return;
    pending = true;
    systemClock.after(debounceMs, () => {
      pending = false;
      if (stopping.signal.aborted) return;
      const status = clusterStatus({
        pools: caches.pools.list(),
        nodes: caches.nodes.list(),
        machineConfigNodes: caches.machineConfigNodes.list(),
        clusterOperators: caches.clusterOperators.list(),
        machineConfigurations: caches.machineConfigurations.list(),
        controllerConfigs: caches.controllerConfigs.list(),
        machineOSConfigs: caches.machineOSConfigs.list(),
        machineOSBuilds: caches.machineOSBuilds.list(),
        absentKinds,
        now: systemClock.now(),
        ...place,
      });
      if (onChange(status) === "stop") stopping.abort(new Error("seen enough"));
    });
  };
  for (const cache of Object.values(caches)) {
    cache.onChange(look);
    void cache.synced.then(look);
  }
  // What is installed while somebody watches is shown the next time.
  void kindsAbsentFrom(kube).then((kinds) => {
    absentKinds = kinds;
    look();
  });
  await Promise.all(Object.values(caches).map((cache) => cache.run(stopping.signal)));
  signal.removeEventListener("abort", onAbort);
}

/** One reading of the cluster. */
export async function readClusterStatus(kube: KubeClient, place: ClusterPlace = {}): Promise<ClusterStatus> {
  const none = { items: [] };
  const [
    absentKinds,
    pools,
    nodes,
    machineConfigNodes,
    clusterOperators,
    configurations,
    controllerConfigs,
    configs,
    builds,
  ] = await Promise.all([
    kindsAbsentFrom(kube),
    kube.list(MachineConfigPool).catch(notServed),
    kube.list(kubernetes.Node),
    kube.list(MachineConfigNode).catch(notServed),
    kube.list(ClusterOperator).catch(notServed),
    kube.list(MachineConfiguration).catch(notServed),
    kube.list(ControllerConfig).catch(notServed),
    kube.list(MachineOSConfig).catch(notServed),
    kube.list(MachineOSBuild).catch(notServed),
  ]);
  return clusterStatus({
    pools: pools.items,
    nodes: nodes.items,
    machineConfigNodes: machineConfigNodes.items,
    clusterOperators: clusterOperators.items,
    machineConfigurations: configurations.items,
    controllerConfigs: controllerConfigs.items,
    machineOSConfigs: configs.items,
    machineOSBuilds: builds.items,
    absentKinds,
    now: systemClock.now(),
    ...place,
  });

  function notServed(error: unknown): { items: [] } {
    if ((error as { httpStatus?: number }).httpStatus === 404) return none as { items: [] };
    throw error;
  }
}

/** Kinds of other projects that settings of machines come from. */
const settingKinds = [
  ...registryKinds,
  openshift.FeatureGate,
  openshift.APIServer,
  openshift.ConfigNode,
  openshift.CRIOCredentialProviderConfig,
];

/** Those that a server does not have; none where it does not answer. Never rejects. */
async function kindsAbsentFrom(kube: KubeClient): Promise<readonly string[]> {
  const served = new Set<string>();
  for (const apiVersion of new Set(settingKinds.map((kind) => kind.apiVersion))) {
    try {
      const list = (await kube.request({ method: "GET", target: `/apis/${apiVersion}`, headers: {} })) as {
        readonly resources?: readonly { readonly kind: string }[];
      };
      for (const { kind } of list.resources ?? []) served.add(`${apiVersion}/${kind}`);
    } catch (error) {
      if (!isNotFound(error)) return [];
    }
  }
  return settingKinds.flatMap(({ apiVersion, kind }) => (served.has(`${apiVersion}/${kind}`) ? [] : [kind]));
}
