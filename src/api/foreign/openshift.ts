import { configGroup, group } from "../names.ts";
import { type KubeObject, resource } from "../schema/object.ts";

/**
 * OpenShift kinds that the suite reads if the cluster has them, limited to the fields that it reads: openshift/api
 * config/v1 types_{infrastructure,network,dns,proxy,image,scheduling,cluster_operator,apiserver,tlssecurityprofile}.go
 * (master).
 */
export interface Infrastructure extends KubeObject {
  readonly spec?: { readonly cloudConfig?: { readonly name?: string; readonly key?: string } };
  readonly status?: {
    readonly platform?: string;
    readonly platformStatus?: { readonly type?: string };
    readonly controlPlaneTopology?: string;
    readonly infrastructureTopology?: string;
    readonly apiServerInternalURI?: string;
  };
}

interface Mtu {
  readonly from?: number;
  readonly to?: number;
}

export interface Network extends KubeObject {
  readonly spec?: { readonly serviceNetwork?: readonly string[]; readonly networkType?: string };
  readonly status?: {
    readonly serviceNetwork?: readonly string[];
    readonly networkType?: string;
    readonly migration?: {
      readonly networkType?: string;
      readonly mtu?: { readonly network?: Mtu; readonly machine?: Mtu };
    };
  };
}

export interface Dns extends KubeObject {
  readonly spec?: { readonly baseDomain?: string };
}

export interface Proxy extends KubeObject {
  readonly spec?: { readonly trustedCA?: { readonly name?: string } };
  readonly status?: { readonly httpProxy?: string; readonly httpsProxy?: string; readonly noProxy?: string };
}

export interface ImageConfig extends KubeObject {
  readonly spec?: { readonly additionalTrustedCA?: { readonly name?: string } };
}

export interface SchedulerConfig extends KubeObject {
  readonly spec?: { readonly mastersSchedulable?: boolean };
}

export interface ApiServerConfig extends KubeObject {
  readonly spec?: {
    readonly tlsSecurityProfile?: {
      readonly type?: string;
      readonly custom?: { readonly ciphers?: readonly string[]; readonly minTLSVersion?: string };
    } | null;
  };
}

/** Singletons of group config.openshift.io are named `cluster`. */
export const openshift = {
  Infrastructure: resource<Infrastructure>(`${configGroup}/v1`, "Infrastructure", "infrastructures", "Cluster"),
  Network: resource<Network>(`${configGroup}/v1`, "Network", "networks", "Cluster"),
  Dns: resource<Dns>(`${configGroup}/v1`, "DNS", "dnses", "Cluster"),
  Proxy: resource<Proxy>(`${configGroup}/v1`, "Proxy", "proxies", "Cluster"),
  Image: resource<ImageConfig>(`${configGroup}/v1`, "Image", "images", "Cluster"),
  Scheduler: resource<SchedulerConfig>(`${configGroup}/v1`, "Scheduler", "schedulers", "Cluster"),
  APIServer: resource<ApiServerConfig>(`${configGroup}/v1`, "APIServer", "apiservers", "Cluster"),
  /** ClusterVersion is named `version`. */
  ClusterVersion: resource(`${configGroup}/v1`, "ClusterVersion", "clusterversions", "Cluster"),
  OSImageStream: resource(`${group}/v1`, "OSImageStream", "osimagestreams", "Cluster"),
  InternalReleaseImage: resource(`${group}/v1`, "InternalReleaseImage", "internalreleaseimages", "Cluster"),
} as const;
