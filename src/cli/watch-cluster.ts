import {
  ClusterOperator,
  ControllerConfig,
  MachineConfigNode,
  MachineConfigPool,
  MachineConfiguration,
  kubernetes,
} from "../api/index.ts";
import { type ClusterFacts, type ClusterStatus, clusterStatus } from "../core/preview/cluster-status.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { WatchCache } from "../kube/watch-cache.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";

/** Context of a cluster, besides its objects. */
export type ClusterPlace = Pick<ClusterFacts, "configServerAddress">;

/** Changes within this time are combined into one pass. */
const settleMs = 150;

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
  };
  let pending = false;
  const look = () => {
    if (pending || stopping.signal.aborted) return;
    pending = true;
    systemClock.after(settleMs, () => {
      pending = false;
      if (stopping.signal.aborted) return;
      const status = clusterStatus({
        pools: caches.pools.list(),
        nodes: caches.nodes.list(),
        machineConfigNodes: caches.machineConfigNodes.list(),
        clusterOperators: caches.clusterOperators.list(),
        machineConfigurations: caches.machineConfigurations.list(),
        controllerConfigs: caches.controllerConfigs.list(),
        ...place,
      });
      if (onChange(status) === "stop") stopping.abort(new Error("seen enough"));
    });
  };
  for (const cache of Object.values(caches)) {
    cache.onChange(look);
    void cache.synced.then(look);
  }
  await Promise.all(Object.values(caches).map((cache) => cache.run(stopping.signal)));
  signal.removeEventListener("abort", onAbort);
}

/** One reading of the cluster. */
export async function lookAtCluster(kube: KubeClient, place: ClusterPlace = {}): Promise<ClusterStatus> {
  const none = { items: [] };
  const [pools, nodes, machineConfigNodes, clusterOperators, machineConfigurations, controllerConfigs] =
    await Promise.all([
      kube.list(MachineConfigPool).catch(notServed),
      kube.list(kubernetes.Node),
      kube.list(MachineConfigNode).catch(notServed),
      kube.list(ClusterOperator).catch(notServed),
      kube.list(MachineConfiguration).catch(notServed),
      kube.list(ControllerConfig).catch(notServed),
    ]);
  return clusterStatus({
    pools: pools.items,
    nodes: nodes.items,
    machineConfigNodes: machineConfigNodes.items,
    clusterOperators: clusterOperators.items,
    machineConfigurations: machineConfigurations.items,
    controllerConfigs: controllerConfigs.items,
    ...place,
  });

  function notServed(error: unknown): { items: [] } {
    if ((error as { httpStatus?: number }).httpStatus === 404) return none as { items: [] };
    throw error;
  }
}
