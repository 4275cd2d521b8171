import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { namespace } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { isRecord } from "../../ignition/shape.ts";

/**
 * Namespaces that OpenShift's own operators make and keep. On other clusters they are nobody's: whoever may create
 * namespaces may create them, and what lies in them counts for nothing.
 */
export const openshiftNamespaces = {
  config: "openshift-config",
  managed: "openshift-config-managed",
  apiServerOperator: "openshift-kube-apiserver-operator",
  etcd: "openshift-etcd",
} as const;

/** The two objects that say whose the cluster is. No namespace holds them, so that no role in one gives the right to write them. */
export interface ClusterIdentity {
  /** `Infrastructure/cluster`. */
  readonly infrastructure?: KubeObject | undefined;
  /** `ClusterVersion/version`. */
  readonly clusterVersion?: KubeObject | undefined;
  /** Before there is a cluster: a folder of OpenShift's installer, in which nothing is a tenant's. */
  readonly isInstallers?: boolean;
}

/**
 * Whether the cluster is OpenShift's, whose operators keep {@link openshiftNamespaces}. The definitions alone say nothing:
 * `mco up` installs that of ClusterVersion, the operator that of ClusterOperator, and administrators of other clusters those
 * of their mirrors. One object alone says nothing either: an administrator may write an Infrastructure to name the platform, or a
 * ClusterVersion to protect a release. The installer writes both before any operator runs.
 */
export const isOpenShift = ({ infrastructure, clusterVersion, isInstallers = false }: ClusterIdentity): boolean =>
  isInstallers || (infrastructure !== undefined && clusterVersion !== undefined);

/** Where an input lies that OpenShift keeps in a namespace of its own: on other clusters in the suite's namespace. */
export const inputNamespace = (
  ofOpenShift: (typeof openshiftNamespaces)["config" | "managed"],
  onOpenShift: boolean,
): string => (onOpenShift ? ofOpenShift : namespace);

/**
 * The operator's answer to {@link isOpenShift}, as every other component reads it: the ControllerConfig names the namespace of
 * the pull secret. Without a ControllerConfig nothing of OpenShift's namespaces counts.
 *
 * Versions before this question named that namespace on every cluster, and their ControllerConfig stays until the operator of
 * this version writes its own: it waits for the controller. The Infrastructure that each ControllerConfig holds says which
 * of them are OpenShift's.
 */
export const isOpenShiftBy = (controllerConfig: Pick<ControllerConfig, "spec"> | undefined): boolean =>
  controllerConfig !== undefined && isOpenShiftInFolder(controllerConfig) && isRecord(controllerConfig.spec.infra);

/**
 * The same before there is a cluster, in a folder of which nothing is a tenant's, and which may have no Infrastructure.
 */
export const isOpenShiftInFolder = ({ spec }: Pick<ControllerConfig, "spec">): boolean =>
  spec.pullSecret?.namespace === openshiftNamespaces.config;
