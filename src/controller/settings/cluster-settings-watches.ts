import {
  type ObjectsOfCluster,
  clusterSettings,
  clusterSettingsKinds,
  objectsOfCluster,
} from "../../core/kubelet/cluster-settings.ts";
import { type Caches, type Watch, watching } from "../../kube/controller.ts";
import type { ClusterSettings } from "../../core/kubelet/cluster-settings.ts";

/** The cluster's own objects that kubelets follow; a cluster may lack each of these kinds. */
export const clusterSettingsWatches: readonly Watch[] = clusterSettingsKinds.map((resource) =>
  watching({ resource, optional: true }),
);

/** The cluster's own objects, where it has them. */
export const clusterObjectsOf = (caches: Caches): ObjectsOfCluster =>
  objectsOfCluster((resource, name) => caches.of(resource).get(name));

/** What the cluster's own objects say to kubelets. */
export const clusterSettingsOf = (caches: Caches): ClusterSettings => clusterSettings(clusterObjectsOf(caches));
